// The page is ready (`data-ready` on the root) once Python has filled it for the conversation that is open. What is sent
// earlier would go into another one, and what is sent while files are on their way would go without them: a press of Send
// or of Enter is kept until then.
(() => {
  const root = document.documentElement, PATIENCE_MS = 10_000, AGAIN_MS = 1000;
  const $ = selector => document.querySelector(selector);
  // Python writes another stamp whenever it opens a conversation, together with all the rest. Other reasons to fill a part
  // of the page have none.
  const stamp = () => $("#top h1")?.dataset.opened || "";
  const open = () => $("#top h1")?.dataset.conversation || "";
  const isShut = () => !root.hasAttribute("data-ready") || Boolean(window.aivistaUploads?.isBusy());
  let last = "", before = "", asked = "", isKept = false, isAsked = false, timer = 0, unfilled = 0, refusals = 0;

  const unlock = () => {
    clearTimeout(timer);
    clearTimeout(unfilled);
    $("#unfilled")?.remove();
    refusals = 0;
    asked = "";
    root.setAttribute("data-ready", "");
  };
  const go = () => {
    if (!isKept || isShut()) return;
    isKept = false;
    $("#box .submit-button")?.click();
  };
  const look = () => {
    if (root.hasAttribute("data-ready")) return;
    last = stamp() || last;
    // Python had nobody to fill it for: the visitor had no cookie yet.
    if (!isAsked && $("#box textarea") && isUnfilled()) { isAsked = true; ask(); }
    // A page that comes filled is drawn part by part, and its box may be the last.
    if (!$("#box textarea") || last === before || (asked && open() !== asked)) return;
    unlock();
    go();
  };
  const wait = () => {
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true, attributeFilter: ["data-opened"] });
    askIn(PATIENCE_MS, true);
  };

  // ---- the first fill: a page that is not answered, or with an error, says so and asks again. Python's words are not here
  // yet.
  const isUnfilled = () => !root.hasAttribute("data-ready") && !asked && !stamp();
  const tell = (key, values = {}) => {
    const told = window.aivistaUnfilled[root.lang] || window.aivistaUnfilled.en;
    const text = Object.entries(values).reduce((said, [name, value]) => said.replaceAll(`{${name}}`, () => value), told[key]);
    const notice = $("#unfilled") || document.body.appendChild(Object.assign(document.createElement("p"), { id: "unfilled", role: "alert" }));
    if (notice.textContent !== text) notice.textContent = text;
  };
  let asking = null;
  const ask = async () => {
    const mine = asking = {}, args = { name: new URLSearchParams(location.search).get("c") || "" };
    let status = 0, told = {};
    try {
      const answer = await fetch("aivista/act/page.fill", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ args }) });
      status = answer.status;
      told = await answer.json();
      if (answer.ok) { if (mine === asking && isUnfilled()) window.aivistaShell.take(told); return; }
    } catch { /* told below */ }
    refused(status, told.error || told.detail);
  };
  const askIn = (ms, isSilent) => {
    clearTimeout(unfilled);
    unfilled = setTimeout(() => {
      if (!isUnfilled()) return;
      if (isSilent) tell("silent");
      ask();
      askIn(PATIENCE_MS, true);
    }, ms);
  };
  const refused = (status, detail) => {
    if (!isUnfilled()) return;
    if (typeof detail === "string") tell("refused", { why: detail });
    else if (status) tell("failed", { status });
    else tell("silent");
    askIn(Math.min(AGAIN_MS * 2 ** refusals, PATIENCE_MS), false);
    refusals += 1;
  };

  const isSent = event => event.type === "click"
    ? event.target.closest?.("#box .submit-button")
    : event.target.matches?.("#box textarea") && window.aivistaKeys.is(event, "composer.send");
  const keep = event => {
    if (!isShut() || !isSent(event)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    isKept = true;
    window.aivistaSending.show($("#box textarea")?.value || "");
  };
  const letGo = () => { if (isKept) window.aivistaSending.hide(); isKept = false; };
  addEventListener("keydown", keep, true);
  addEventListener("click", keep, true);

  // Another conversation is being opened: an answer that does not come must not keep the composer shut. What was to be sent
  // stays in the box then: where it would go is not known.
  window.aivistaOpening = conversation => {
    window.aivistaDrafts?.leave(conversation);
    before = stamp() || last;
    asked = conversation;
    letGo();
    root.removeAttribute("data-ready");
    clearTimeout(timer);
    timer = setTimeout(() => { letGo(); unlock(); window.aivistaDrafts?.stay(); }, PATIENCE_MS);
  };
  addEventListener("aivista-uploaded", event => { if (event.detail.isWhole) go(); else letGo(); });

  if (document.body) wait(); else addEventListener("DOMContentLoaded", wait);
})();
