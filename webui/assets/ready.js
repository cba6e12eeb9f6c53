// The page is ready (`data-ready` on the root) once Python has filled it for the conversation that is open. What is sent
// earlier would go into another one, so a press of Send or of Enter is kept until then.
(() => {
  const root = document.documentElement, PATIENCE_MS = 10_000;
  const $ = selector => document.querySelector(selector);
  // Python writes a new stamp whenever it fills the page, together with all the rest.
  const stamp = () => $("#rail-stamp [data-at]")?.dataset.at;
  let before, isKept = false, timer = 0;

  const settle = () => {
    filled.disconnect();
    clearTimeout(timer);
    root.setAttribute("data-ready", "");
    if (isKept) $("#box .submit-button")?.click();
    isKept = false;
  };
  const filled = new MutationObserver(() => { if (stamp() !== before) settle(); });
  const wait = () => filled.observe(document.body, { childList: true, subtree: true, attributeFilter: ["data-at"] });

  const isSent = event => event.type === "click"
    ? event.target.closest?.("#box .submit-button")
    : event.target.matches?.("#box textarea") && window.aivistaKeys.is(event, "composer.send");
  const keep = event => {
    if (root.hasAttribute("data-ready") || !isSent(event)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    isKept = true;
  };
  addEventListener("keydown", keep, true);
  addEventListener("click", keep, true);

  // Another conversation is being opened: an answer that does not come must not keep the composer shut.
  window.aivistaOpening = () => {
    before = stamp();
    root.removeAttribute("data-ready");
    wait();
    clearTimeout(timer);
    timer = setTimeout(settle, PATIENCE_MS);
  };

  if (document.body) wait(); else addEventListener("DOMContentLoaded", wait);
})();
