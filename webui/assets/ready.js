// The page is ready (`data-ready` on the root) once Gradio has drawn the box, and the conversation that was asked for is
// open. What is sent earlier would go into another one, and what is sent while files are on their way would go without
// them: a press of Send or of Enter is kept until then.
(() => {
  const root = document.documentElement, PATIENCE_MS = 10_000;
  const $ = selector => document.querySelector(selector);
  // Python writes another stamp whenever it opens a conversation, together with all the rest. Other reasons to fill a part
  // of the page have none.
  const stamp = () => $("#top h1")?.dataset.opened || "";
  const open = () => $("#top h1")?.dataset.conversation || "";
  const isShut = () => !root.hasAttribute("data-ready") || Boolean(window.aivista.uploads?.isBusy());
  let last = "", before = "", asked = "", isKept = false, timer = 0;

  const unlock = () => {
    clearTimeout(timer);
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
    if (!$("#box textarea") || last === before || (asked && open() !== asked)) return;
    unlock();
    go();
  };
  const wait = () => new MutationObserver(look).observe(document.body, { childList: true, subtree: true, attributeFilter: ["data-opened"] });

  const isSent = event => event.type === "click"
    ? event.target.closest?.("#box .submit-button")
    : event.target.matches?.("#box textarea") && window.aivista.keys.is(event, "composer.send");
  const keep = event => {
    if (!isShut() || !isSent(event)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    isKept = true;
    window.aivista.sending.show($("#box textarea")?.value || "");
  };
  const letGo = () => { if (isKept) window.aivista.sending.hide(); isKept = false; };
  addEventListener("keydown", keep, true);
  addEventListener("click", keep, true);

  // Another conversation is being opened: an answer that does not come must not keep the composer shut. What was to be sent
  // stays in the box then: where it would go is not known.
  window.aivista.opening = conversation => {
    window.aivista.drafts?.leave(conversation);
    before = stamp() || last;
    asked = conversation;
    letGo();
    root.removeAttribute("data-ready");
    clearTimeout(timer);
    timer = setTimeout(() => { letGo(); unlock(); window.aivista.drafts?.stay(); }, PATIENCE_MS);
  };
  addEventListener("aivista-uploaded", event => { if (event.detail.isWhole) go(); else letGo(); });

  if (document.body) wait(); else addEventListener("DOMContentLoaded", wait);
})();
