// The browser's own way back and forward. Each conversation is an entry of its history. On a phone so is each thing that
// was opened over it (a pane of the stage, the painter, the list of conversations, a dialog, a sheet): Back closes what
// was opened last, before it goes to another conversation, and Forward opens it again. A picture that fills the window
// is such a thing on every screen.
//
// An entry says what the page shows: { conversation, layers }, the layers from the lowest to the topmost. Whatever
// changes the page, `settle` brings the history in line with it, one step after the other: steps back are taken by the
// browser in its own time.
(() => {
  const root = document.documentElement;
  const $ = selector => document.querySelector(selector);
  const isPhone = () => matchMedia("(max-width: 760px)").matches;
  const STEP_MS = 1000, OPENING_MS = 10_000;  // neither a step nor a conversation that never comes may block the next
  const press = selector => $(selector)?.click();
  const [kind, about] = [layer => layer.split(" ")[0], layer => layer.split(" ")[1]];

  // ---- what can lie over the conversation: how it is closed, and where that can be, how it is opened again
  const LAYERS = {
    pane: { close: () => root.removeAttribute("data-stage"), open: name => window.aivista.tabs.show(name) },
    file: { close: () => press("#files .fi-back") },
    painter: { close: () => window.aivista.painter.leave() },
    full: { close: () => root.removeAttribute("data-full"), open: () => root.setAttribute("data-full", "") },
    drawer: { close: () => root.removeAttribute("data-rail-open"), open: () => root.setAttribute("data-rail-open", "") },
    dialog: { close: name => window.aivista.dialogs.close(name), open: name => window.aivista.dialogs.open(name) },
    form: { close: () => press("#sty-form [data-style=cancel]") },
    sheet: { close: id => document.getElementById(id)?.hidePopover() },
  };
  let panes = [], isTabChosen = false;
  const seenPanes = () => {
    const pane = `pane ${root.dataset.tab}`, at = panes.indexOf(pane);
    // A picture that is opened from the gallery lies over it; whoever goes from tab to tab opens nothing on top.
    if (!root.hasAttribute("data-stage")) panes = [];
    else if (at >= 0) panes = panes.slice(0, at + 1);
    else panes = isTabChosen ? [pane] : [...panes, pane];
    isTabChosen = false;
    return panes;
  };
  const seenLayers = () => {
    const full = root.hasAttribute("data-full") ? ["full"] : [];
    if (!isPhone()) return full;
    const stage = seenPanes(), dialog = window.aivista.dialogs.opened();
    return [
      ...stage,
      ...(stage.at(-1) === "pane files" && $("#files[data-open]") ? ["file"] : []),
      ...(root.hasAttribute("data-painting") ? ["painter"] : []),
      ...full,
      ...(root.hasAttribute("data-rail-open") ? ["drawer"] : []),
      ...(dialog ? [`dialog ${dialog}`] : []),
      ...(dialog === "styles" && $("#sty-form") ? ["form"] : []),
      ...[...document.querySelectorAll("[popover]:popover-open")].map(one => `sheet ${one.id}`),
    ];
  };

  // ---- which conversation is open, or has been asked for
  const stamp = () => $("#top h1")?.dataset.opened || "";
  let asked = null;  // { conversation, stamp, isReturn }
  let opened = "";
  const ask = (conversation, isReturn = false) => {
    const mine = asked = { conversation, stamp: stamp(), isReturn };
    setTimeout(() => { if (asked === mine) { asked = null; soon(); } }, OPENING_MS);
  };
  const seenConversation = () => {
    const shown = $("#top h1")?.dataset.conversation || "", now = stamp();
    // Python stamps what it opens. One that was deleted does not come, and another one does.
    const isThere = asked && (shown === asked.conversation || (now && now !== asked.stamp));
    const isReturn = Boolean(asked?.isReturn), isOpened = Boolean(now) && now !== opened;
    const conversation = asked && !isThere ? asked.conversation : shown;
    if (isThere) asked = null;
    opened = now || opened;
    return { conversation, isOpened: isOpened || Boolean(asked), isReturn };
  };

  // ---- the entry of the history that is shown, in line with the page
  let entry = { conversation: "", layers: [] };
  const write = (to, isNew) => {
    entry = to;
    const url = new URL(location.href);
    url.searchParams.set("c", to.conversation);
    history[isNew ? "pushState" : "replaceState"]({ aivista: to }, "", url);
  };
  let stepped = null;
  const stepBack = async count => {
    root.setAttribute("data-stepping", "");
    await new Promise(done => { stepped = done; history.go(-count); setTimeout(done, STEP_MS); });
    stepped = null;
    root.removeAttribute("data-stepping");
  };
  const bringInLine = async () => {
    const { conversation, isOpened, isReturn } = seenConversation(), layers = seenLayers();
    if (!conversation) return;
    if (conversation !== entry.conversation) {
      // A new conversation that gets its name is the one it was; a list from which one was chosen makes room for it.
      const isSame = !entry.conversation || isReturn || (entry.conversation === "new" && !isOpened);
      if (entry.layers.length > 1) await stepBack(entry.layers.length - 1);
      if (isSame && entry.layers.length) write({ ...entry, conversation }, false);
      else write({ conversation, layers: [] }, !isSame && !entry.layers.length);
    }
    let same = 0;
    while (same < layers.length && layers[same] === entry.layers[same]) same += 1;
    const gone = entry.layers.length - same, come = layers.slice(same), replaced = Math.min(gone, come.length);
    if (gone > replaced) {
      await stepBack(gone - replaced);
      entry = { conversation, layers: entry.layers.slice(0, same + replaced) };
    }
    come.forEach((_, at) => write({ conversation, layers: layers.slice(0, same + at + 1) }, at >= replaced));
  };
  let isBusy = false, isStale = false, timer = 0;
  const settle = async () => {
    isStale = true;
    if (isBusy) return;
    isBusy = true;
    try { while (isStale) { isStale = false; await bringInLine(); } } finally { isBusy = false; }
  };
  const soon = () => { clearTimeout(timer); timer = setTimeout(() => { timer = 0; settle(); }); };
  window.aivista.history = { isSettled: () => !timer && !isBusy && !asked };

  // ---- the person goes back or forward
  const openConversation = conversation => {
    const button = Object.assign(document.createElement("button"), { hidden: true });
    Object.assign(button.dataset, { act: conversation === "new" ? "new" : "open", arg: conversation });
    document.body.append(button);
    ask(conversation, true);
    button.click();
    button.remove();
  };
  const show = to => {
    const before = entry;
    entry = to;
    for (const layer of [...before.layers].reverse()) if (!to.layers.includes(layer)) LAYERS[kind(layer)].close(about(layer));
    if (to.conversation !== before.conversation) openConversation(to.conversation);
    if (isPhone()) {
      panes = to.layers.filter(layer => kind(layer) === "pane");
      const come = to.layers.filter(layer => !before.layers.includes(layer));
      for (const layer of [...panes.slice(-1), ...come.filter(one => kind(one) !== "pane")]) LAYERS[kind(layer)].open?.(about(layer));
    }
    // What cannot be opened again leaves its entry.
    soon();
  };
  addEventListener("popstate", event => {
    if (stepped) stepped();
    else if (event.state?.aivista) show(event.state.aivista);
  });

  addEventListener("click", event => {
    if (event.target.closest?.("#tabs [data-tab]")) isTabChosen = true;
    const { act, arg } = event.isTrusted ? event.target.closest?.("[data-act=open], [data-act=new]")?.dataset || {} : {};
    if (act) ask(act === "new" ? "new" : arg);
  }, true);
  addEventListener("aivista-opening", event => ask(event.detail));
  addEventListener("toggle", event => { if (event.target.matches?.("[popover]")) soon(); }, true);
  const watch = () => {
    const parts = ["#top", "#files"].map($);
    if (!parts.every(Boolean)) { setTimeout(watch, 200); return; }
    // After a reload the entry is still there, and what lay over the page is not.
    entry = history.state?.aivista || entry;
    new MutationObserver(soon).observe(root, { attributes: true });
    addEventListener("aivista-patched", soon);
    const look = new MutationObserver(soon);
    for (const part of parts) look.observe(part, { childList: true, subtree: true, attributeFilter: ["data-conversation", "data-opened", "data-open"] });
    soon();
  };
  if (document.body) watch(); else addEventListener("DOMContentLoaded", watch);
})();
