// The tabs of the stage. Which one is open stands in html[data-tab] and decides by CSS alone, so that a pane keeps its
// place and what is painted in it; on a phone the same bar leads to the conversation as well.
(() => {
  const root = document.documentElement;
  const $ = selector => document.querySelector(selector);
  const all = selector => [...document.querySelectorAll(selector)];
  const PANES = ["canvas", "gallery", "tree", "files", "trace"];
  const narrow = () => matchMedia("(max-width: 760px)").matches;

  const mark = () => {
    const open = root.dataset.tab;
    for (const tab of all("#tabs [role=tab]")) {
      const is = tab.dataset.tab === open;
      tab.setAttribute("aria-selected", String(is));
      tab.tabIndex = is ? 0 : -1;
    }
    $("#tabs .to-chat")?.setAttribute("aria-pressed", String(!root.hasAttribute("data-stage")));
  };
  const show = (name, focus = false) => {
    if (name === "chat") { root.removeAttribute("data-stage"); mark(); return; }
    const isNew = root.dataset.tab !== name || !root.hasAttribute("data-stage");
    root.dataset.tab = name;
    root.setAttribute("data-stage", "");
    mark();
    if (focus) $(`#tab-${name}`)?.focus();
    // Its panel fills itself when it is first seen, and again when it is come back to.
    if (isNew) dispatchEvent(new CustomEvent("aivista-tab", { detail: name }));
  };
  window.aivistaTabs = { show };
  root.dataset.tab = "canvas";

  addEventListener("click", event => {
    const tab = event.target.closest?.("#tabs [data-tab]");
    if (tab) { show(tab.dataset.tab); return; }
    const act = event.target.closest?.("[data-act]")?.dataset.act;
    // Whoever opens a picture or its comparison wants to see it.
    if (["view", "compare"].includes(act)) { root.dataset.tab = "canvas"; mark(); }
    if (["stage", "new", "open"].includes(act)) requestAnimationFrame(mark);
  }, true);
  addEventListener("keydown", event => {
    const tab = event.target.closest?.("#tabs [role=tab]"), step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!tab || !step) return;
    event.preventDefault();
    show(PANES[(PANES.indexOf(tab.dataset.tab) + step + PANES.length) % PANES.length], true);
  });
  new MutationObserver(mark).observe(root, { attributeFilter: ["data-stage"] });
  addEventListener("resize", () => { if (!narrow()) mark(); });
})();
