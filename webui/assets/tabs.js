// The tabs of the stage. Which one is open stands in html[data-tab] and decides by CSS alone, so that a pane keeps its
// place and what is painted in it; on a phone the same bar leads to the conversation as well. The tab is kept over
// reloads, and so is whether the stage is open beside the conversation, and whether it is narrow.
(() => {
  const root = document.documentElement;
  const $ = selector => document.querySelector(selector);
  const all = selector => [...document.querySelectorAll(selector)];
  const PANES = ["canvas", "gallery", "tree", "files", "trace"];
  const narrow = () => matchMedia("(max-width: 760px)").matches;
  const KEY = "aivista-stage";
  const kept = () => { try { const all = JSON.parse(localStorage.getItem(KEY)); return typeof all === "object" && all ? all : {}; } catch { return {}; } };
  const keep = changes => { try { localStorage.setItem(KEY, JSON.stringify({ ...kept(), ...changes })); } catch { /* full or private: this page only */ } };
  window.aivista.stage = { kept, keep };

  const mark = () => {
    const open = root.dataset.tab;
    for (const tab of all("#tabs [role=tab]")) {
      const is = tab.dataset.tab === open;
      tab.setAttribute("aria-selected", String(is));
      tab.tabIndex = is ? 0 : -1;
    }
    $("#tabs .stage-width")?.setAttribute("aria-pressed", String(!root.hasAttribute("data-stage-narrow")));
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
    if (isNew) tell();
  };
  const tell = () => {
    window.aivista.shell.unfold($(`#${root.dataset.tab}`));
    dispatchEvent(new CustomEvent("aivista-tab", { detail: root.dataset.tab }));
  };
  window.aivista.tabs = { show };

  // ---- as it was left: a new conversation begins without the stage, and on a phone with the conversation
  const before = kept();
  root.toggleAttribute("data-stage-narrow", Boolean(before.isNarrow));
  root.dataset.tab = PANES.includes(before.tab) ? before.tab : "canvas";
  if (before.open && !narrow() && new URL(location.href).searchParams.get("c") !== "new") root.setAttribute("data-stage", "");
  const ready = new MutationObserver(() => {
    if (!root.hasAttribute("data-ready")) return;
    ready.disconnect();
    mark();
    if (root.hasAttribute("data-stage")) tell();
  });
  ready.observe(root, { attributeFilter: ["data-ready"] });

  addEventListener("click", event => {
    const tab = event.target.closest?.("#tabs [data-tab]");
    if (tab) { show(tab.dataset.tab); return; }
    if (event.target.closest?.("#tabs .stage-width")) { keep({ isNarrow: root.toggleAttribute("data-stage-narrow") }); mark(); return; }
    const act = event.target.closest?.("[data-act]")?.dataset.act;
    // Whoever opens a picture or its comparison wants to see it.
    if (["view", "compare"].includes(act)) { root.dataset.tab = "canvas"; mark(); }
    // What is put into the composer is to be seen, and on a phone the stage lies over it.
    if (act === "say" && narrow()) root.removeAttribute("data-stage");
    if (["stage", "new", "open"].includes(act)) requestAnimationFrame(mark);
  }, true);
  // Whoever looks at the canvas is shown what came of a turn, at once or when they come to it; not while painting,
  // comparing or looking at a picture that fills the window, which go on. Whoever opens another picture meanwhile wants that one.
  let newest = "";
  const showNewest = () => {
    const isSeen = root.dataset.tab === "canvas" && root.hasAttribute("data-stage") && !root.matches("[data-painting], [data-full]");
    if (!newest || !isSeen || !$("#canvas :is(.cv-pic, [data-act=say])")) return;
    window.aivista.shell.act("page.view", { arg: newest });
    newest = "";
  };
  addEventListener("aivista-listed", event => { newest = event.detail.newest || newest; showNewest(); });
  addEventListener("click", event => {
    const button = event.target.closest?.("[data-act], [data-tab], [data-gal=open], [data-tree=open]");
    if (["view", "compare", "open", "new"].includes(button?.dataset.act) || button?.dataset.gal || button?.dataset.tree) newest = "";
    if (button?.dataset.act === "stage" || button?.dataset.tab === "canvas") requestAnimationFrame(showNewest);
  });
  addEventListener("keydown", event => {
    const tab = event.target.closest?.("#tabs [role=tab]");
    const to = tab ? window.aivista.keys.walk(event, "stage.tab", PANES, PANES.indexOf(tab.dataset.tab)) : -1;
    if (to < 0) return;
    event.preventDefault();
    show(PANES[to], true);
  });
  new MutationObserver(showNewest).observe(root, { attributeFilter: ["data-full"] });
  new MutationObserver(() => {
    mark();
    keep(narrow() ? { tab: root.dataset.tab } : { tab: root.dataset.tab, open: root.hasAttribute("data-stage") });
  }).observe(root, { attributeFilter: ["data-stage", "data-tab"] });
  addEventListener("resize", () => { if (!narrow()) mark(); });
})();
