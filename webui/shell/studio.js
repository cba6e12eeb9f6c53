// A contact sheet: one picture is current, and its details stand beneath. The arrow keys go from picture to picture.
{
  const keys = aivista.keys;
  const FRAME = ".sheet > figure > .frame";
  const frames = sheet => all(":scope > figure > .frame:not(.pending)", sheet);
  const makeCurrent = (sheet, frame) => {
    for (const one of frames(sheet)) {
      const isNow = one === frame;
      one.parentElement.classList.toggle("now", isNow);
      if (isNow) one.removeAttribute("tabindex"); else one.tabIndex = -1;
    }
  };
  const targetFrame = (sheet, frame, way) => {
    const list = frames(sheet), at = list.indexOf(frame), across = getComputedStyle(sheet).gridTemplateColumns.split(" ").length;
    const to = { left: at - 1, right: at + 1, up: at - across, down: at + across, first: 0, last: list.length - 1 }[way];
    return to === undefined ? undefined : list[to] || frame;
  };
  // Safari gives a clicked button no focus.
  on("focusin click", FRAME, frame => makeCurrent(frame.closest(".sheet"), frame));
  // Python, which redraws a turn, does not know which picture is current.
  addEventListener("aivista-patched", () => {
    const figure = document.activeElement?.closest(".sheet > figure:not(.now)");
    if (figure) makeCurrent(figure.parentElement, $(".frame", figure));
  });
  on("keydown", FRAME, (frame, event) => {
    const next = targetFrame(frame.closest(".sheet"), frame, keys.find(event, "sheet.walk"));
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
}

// The tabs of the stage. The open one is in html[data-tab] and shown by CSS alone, so that a pane keeps its scroll
// position and what is painted in it; on a phone the same bar leads to the conversation as well. The tab is kept over
// reloads, and so is whether the stage is open, and whether it is narrow.
{
  const PANES = ["canvas", "gallery", "tree", "files", "trace"];
  const KEY = "aivista-stage";
  const storedStage = () => { try { return { ...JSON.parse(readStored(KEY)) }; } catch { return {}; } };
  const storeStage = changes => store(KEY, JSON.stringify({ ...storedStage(), ...changes }));

  const markTabs = () => {
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
    if (name === "chat") { root.removeAttribute("data-stage"); markTabs(); return; }
    const isNew = root.dataset.tab !== name || !root.hasAttribute("data-stage");
    root.dataset.tab = name;
    root.setAttribute("data-stage", "");
    markTabs();
    if (focus) $(`#tab-${name}`)?.focus();
    // Its panel loads when it is first shown, and refreshes whenever it is shown again.
    if (isNew) loadPane();
  };
  const loadPane = () => {
    aivista.shell.expandTemplate($(`#${root.dataset.tab}`));
    emit("tab", root.dataset.tab);
  };
  aivista.tabs = { show };

  // As it was left: set by the document itself, before anything is drawn.
  if (!PANES.includes(root.dataset.tab)) root.dataset.tab = "canvas";
  addEventListener("aivista-ready", () => {
    markTabs();
    if (root.hasAttribute("data-stage")) loadPane();
  }, { once: true });

  addEventListener("click", event => {
    const tab = event.target.closest?.("#tabs [data-tab]");
    if (tab) { show(tab.dataset.tab); return; }
    if (event.target.closest?.("#tabs .stage-width")) { storeStage({ isNarrow: root.toggleAttribute("data-stage-narrow") }); markTabs(); return; }
    const act = event.target.closest?.("[data-act]")?.dataset.act, isOpening = ["view", "compare"].includes(act);
    // A user who opens a picture or its comparison wants to see that one, and no newer one.
    if (isOpening || event.target.closest?.("[data-gal=open], [data-tree=open]")) newest = "";
    if (isOpening) { root.dataset.tab = "canvas"; markTabs(); }
    // What is put into the composer must be visible, and on a phone the stage covers it.
    if (act === "say" && isPhone()) root.removeAttribute("data-stage");
  }, true);
  // The canvas shows the result of a turn, at once or when it is opened; but painting, a comparison (also one that is
  // loading) and a picture that fills the window go on undisturbed.
  let newest = "";
  const showNewest = () => {
    const isSeen = isPaneShown("canvas") && !root.matches("[data-painting], [data-full]") && !aivista.shell.isPending("page.compare");
    if (!newest || !isSeen || !$("#canvas :is(.cv-pic, [data-act=say])")) return;
    aivista.shell.act("page.view", { arg: newest });
    newest = "";
  };
  addEventListener("aivista-listed", event => { newest = event.detail.newest || newest; showNewest(); });
  addEventListener("aivista-leaving", () => { newest = ""; });
  on("keydown", "#tabs [role=tab]", (tab, event) => {
    const to = aivista.keys.walk(event, "stage.tab", PANES, PANES.indexOf(tab.dataset.tab));
    if (to < 0) return;
    event.preventDefault();
    show(PANES[to], true);
  });
  new MutationObserver(() => {
    markTabs();
    storeStage(isPhone() ? { tab: root.dataset.tab } : { tab: root.dataset.tab, open: root.hasAttribute("data-stage") });
    showNewest();
  }).observe(root, { attributeFilter: ["data-stage", "data-tab", "data-full"] });
  addEventListener("resize", () => { if (!isPhone()) markTabs(); });
}

// Behaviour of the page that needs no server: theme, drawers, the title.
{
  const keys = aivista.keys, dialogs = aivista.dialogs;

  // ---- theme: the system's, until the user chooses
  const THEMES = ["system", "light", "dark"];
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const theme = () => readStored("aivista-theme") || "system";
  const applyTheme = () => {
    const chosen = theme(), dark = chosen === "dark" || (chosen === "system" && systemDark.matches);
    if (document.body.classList.contains("dark") !== dark) document.body.classList.toggle("dark", dark);
    const button = $("[data-act=theme]"), label = button?.getAttribute("data-" + chosen);
    if (label && button.title !== label) { button.title = label; button.setAttribute("aria-label", label); }
  };
  systemDark.addEventListener("change", applyTheme);
  addEventListener("aivista-theme", applyTheme);

  // Inside another site's page, a cookie is sent back only when it is marked for that.
  const setCookie = (name, value) => {
    const site = window.top === window ? "samesite=lax" : "samesite=none; secure; partitioned";
    document.cookie = `${name}=${value}; path=${new URL(document.baseURI).pathname}; max-age=31536000; ${site}`;
    return document.cookie.includes(`${name}=${value}`);
  };
  // Visitors are identified by a cookie: where the browser keeps none, the first page says so.
  root.toggleAttribute("data-no-cookie", !setCookie("aivista_kept", "1"));

  const send = button => aivista.shell.act(`page.${button.dataset.act}`, { arg: button.dataset.arg || "" });
  const acts = {
    rail: () => root.toggleAttribute(isNarrow() ? "data-rail-open" : "data-rail-hidden"),
    stage: () => root.toggleAttribute("data-stage"),
    theme: () => { store("aivista-theme", THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]); applyTheme(); },
    language: button => { setCookie("aivista_lang", button.dataset.arg); location.reload(); },
    settings: () => { root.removeAttribute("data-rail-open"); dialogs.open("settings"); },
    sign_in: () => window.top === window ? location.assign("account/sign-in") : window.open("account/sign-in", "_blank", "noopener"),
    settings_close: () => dialogs.close("settings"),
    styles: () => dialogs.open("styles"),
    styles_close: () => dialogs.close("styles"),
    shortcuts: () => { root.removeAttribute("data-rail-open"); dialogs.open("shortcuts"); },
    shortcuts_close: () => dialogs.close("shortcuts"),
    say: button => aivista.aids.insertText(button.dataset.arg),
    view: button => { root.setAttribute("data-stage", ""); send(button); },
    edit: button => { focusComposer(); send(button); },
    reference: button => { focusComposer(); send(button); },
    new: () => { openConversation("new"); $("#box textarea")?.focus(); },
    open: button => openConversation(button.dataset.arg),
    edit_words: button => { send(button); $("#box textarea")?.focus(); },
    ...aivista.cards,
  };
  // Pictures of the open conversation were deleted or restored: the thread, the stage and the composer update, too.
  addEventListener("aivista-pictures", () => {
    const opened = all("#canvas .cv-pic[data-handle], #canvas .cmp[data-pair]").map(one => one.dataset.handle || one.dataset.pair);
    aivista.thread?.holdPosition();
    aivista.shell.act("page.changed", { arg: opened.join(" ") });
  });

  addEventListener("click", event => {
    const button = event.target.closest?.("[data-act]");
    // A double click on such a button counts once.
    if (button && !acts[button.dataset.act] && event.detail > 1) return;
    if (button) { (acts[button.dataset.act] || send)(button, send); return; }
    if (root.hasAttribute("data-rail-open") && !event.target.closest?.("#rail")) root.removeAttribute("data-rail-open");
  });

  // ---- keys of the whole page; Escape is handled in shell.js
  keys.onEscape("drawer", () => {
    const isOpen = root.hasAttribute("data-rail-open");
    root.removeAttribute("data-rail-open");
    if (isOpen) all(".show-rail, #tabs .to-chats").find(one => one.offsetParent)?.focus();
    return isOpen;
  });
  keys.onEscape("turn", () => { const stop = liveLine() && $("#box .stop-button"); stop?.click(); return Boolean(stop); });
  // While the user types, the stage stays: Escape in the composer only stops a turn.
  keys.onEscape("stage", event => {
    const isOpen = root.hasAttribute("data-stage") && !event.target.closest?.("#box");
    if (isOpen && event.target.closest?.("#stage")) focusComposer();
    if (isOpen) root.removeAttribute("data-stage");
    return isOpen;
  });
  addEventListener("keydown", event => {
    const act = keys.is(event, "page.new") ? "new" : keys.is(event, "page.help") ? "shortcuts" : "";
    if (!act || dialogs.opened()) return;
    event.preventDefault();
    acts[act]({ dataset: { act } });
  });

  // ---- the seconds of a running turn count on between two updates
  const LATE = 1.5;
  let clock = { element: null, from: 0, at: 0 };
  setInterval(() => {
    const time = $("time", liveLine());
    if (!time) { clock = { element: null, from: 0, at: 0 }; return; }
    const from = Number(time.dataset.s);
    if (clock.element === null || from > clock.from + (performance.now() - clock.at) / 1000) clock = { element: time, from, at: performance.now() };
    const text = aivista.translate("seconds", { count: Math.floor(clock.from + (performance.now() - clock.at) / 1000) });
    setText(time, text);
    const usual = $("[data-late]", liveLine());
    if (usual && parseInt(text, 10) > usual.dataset.usual * LATE) setText(usual, usual.dataset.late);
  }, 250);

  // ---- effects of what Python rendered (title, language) and of what Gradio drew (names for screen readers)
  onPatched(() => {
    const title = $("#top h1"), heading = aivista.pageTitle(`${title.textContent} · Aivista`);
    setAttribute(root, "lang", title.dataset.language);
    if (document.title !== heading) document.title = heading;
    applyTheme();
  });
  onInputsChanged(() => {
    setAttribute($("#box textarea"), "aria-label", aivista.translate("message"));
    // Gradio makes them list items outside of a list.
    for (const one of all("#box :is(.thumbnails:not([role]), [role=listitem])")) one.setAttribute("role", "group");
    for (const button of all("#box :is(.upload-button, .submit-button, .stop-button)")) setAttribute(button, "title", button.ariaLabel);
  });
}

// The browser's Back and Forward. Each conversation is an entry of the history. On a phone so is each thing that was
// opened over it (a pane of the stage, the painter, the list of conversations, a dialog, a sheet): Back closes what was
// opened last, before it goes to another conversation, and Forward opens it again. A picture that fills the window is
// such a thing on every screen.
//
// An entry says what the page shows: { conversation, layers }, the layers from the lowest to the topmost. Whatever
// changes the page, `syncHistory` brings the history in line with it, one step after the other: the browser carries out
// steps back asynchronously.
{
  const STEP_MS = 1000;  // a step that never arrives must not block the next
  const click = selector => $(selector)?.click();
  const [kindOf, argumentOf] = [layer => layer.split(" ")[0], layer => layer.split(" ")[1]];

  // ---- what can lie over the conversation: how it is closed and, where possible, opened again
  const LAYERS = {
    pane: { close: () => root.removeAttribute("data-stage"), open: name => aivista.tabs.show(name) },
    file: { close: () => click("#files .fi-back") },
    painter: { close: () => aivista.painter.leave() },
    full: { close: () => root.removeAttribute("data-full"), open: () => root.setAttribute("data-full", "") },
    drawer: { close: () => root.removeAttribute("data-rail-open"), open: () => root.setAttribute("data-rail-open", "") },
    dialog: { close: name => aivista.dialogs.close(name), open: name => aivista.dialogs.open(name) },
    form: { close: () => click("#sty-form [data-style=cancel]") },
    sheet: { close: id => document.getElementById(id)?.hidePopover() },
  };
  let panes = [], isTabChosen = false;
  const currentPanes = () => {
    const pane = `pane ${root.dataset.tab}`, at = panes.indexOf(pane);
    // A picture that is opened from the gallery lies over it; going from tab to tab opens nothing on top.
    if (!root.hasAttribute("data-stage")) panes = [];
    else if (at >= 0) panes = panes.slice(0, at + 1);
    else panes = isTabChosen ? [pane] : [...panes, pane];
    isTabChosen = false;
    return panes;
  };
  const currentLayers = () => {
    const full = root.hasAttribute("data-full") ? ["full"] : [];
    if (!isPhone()) return full;
    const stage = currentPanes(), dialog = aivista.dialogs.opened();
    return [
      ...stage,
      ...(stage.at(-1) === "pane files" && $("#files[data-open]") ? ["file"] : []),
      ...(root.hasAttribute("data-painting") ? ["painter"] : []),
      ...full,
      ...(root.hasAttribute("data-rail-open") ? ["drawer"] : []),
      ...(dialog ? [`dialog ${dialog}`] : []),
      ...(dialog === "styles" && $("#sty-form") ? ["form"] : []),
      ...all("[popover]:popover-open").map(one => `sheet ${one.id}`),
    ];
  };

  // ---- which conversation is open, or was requested: a deleted one does not open, and another one does
  let requested = null;  // { id, isReturn }
  let lastOpened = { isOpened: true };
  const currentConversation = () => {
    const now = requested ? { isOpened: true, ...requested } : { ...lastOpened, id: conversation() };
    lastOpened = {};
    return now;
  };
  addEventListener("aivista-leaving", event => { requested = event.detail; syncSoon(); });
  addEventListener("aivista-opened", ({ detail: { isOther } }) => {
    // The open one may be shown anew while another is loading.
    if (requested && !isOther && requested.id !== conversation()) return;
    lastOpened = { isOpened: true, isReturn: requested?.isReturn };
    requested = null;
    syncSoon();
  });
  addEventListener("aivista-stayed", () => { requested = null; syncSoon(); });

  // ---- the current history entry, in line with the page
  let entry = { conversation: "", layers: [] };
  const writeEntry = (to, isNew) => {
    entry = to;
    const url = new URL(location.href);
    url.searchParams.set("c", to.conversation);
    history[isNew ? "pushState" : "replaceState"]({ aivista: to }, "", url);
  };
  let stepDone = null;
  const stepBack = async count => {
    root.setAttribute("data-stepping", "");
    await new Promise(done => { stepDone = done; history.go(-count); setTimeout(done, STEP_MS); });
    stepDone = null;
    root.removeAttribute("data-stepping");
  };
  const syncHistory = async () => {
    const { id: conversation, isOpened, isReturn } = currentConversation(), layers = currentLayers();
    if (conversation !== entry.conversation) {
      // A new conversation that gets its id is still the same entry; a list from which the user chose is replaced.
      const isSame = !entry.conversation || isReturn || (entry.conversation === "new" && !isOpened);
      if (entry.layers.length > 1) await stepBack(entry.layers.length - 1);
      if (isSame && entry.layers.length) writeEntry({ ...entry, conversation }, false);
      else writeEntry({ conversation, layers: [] }, !isSame && !entry.layers.length);
    }
    let same = 0;
    while (same < layers.length && layers[same] === entry.layers[same]) same += 1;
    const removed = entry.layers.length - same, added = layers.slice(same), replaced = Math.min(removed, added.length);
    if (removed > replaced) {
      await stepBack(removed - replaced);
      entry = { conversation, layers: entry.layers.slice(0, same + replaced) };
    }
    added.forEach((_, at) => writeEntry({ conversation, layers: layers.slice(0, same + at + 1) }, at >= replaced));
  };
  let isBusy = false, isStale = false, timer = 0;
  const sync = async () => {
    isStale = true;
    if (isBusy) return;
    isBusy = true;
    try { while (isStale) { isStale = false; await syncHistory(); } } finally { isBusy = false; }
  };
  const syncSoon = () => { clearTimeout(timer); timer = setTimeout(() => { timer = 0; sync(); }); };
  aivista.history = { isSettled: () => !timer && !isBusy && !requested };

  // ---- the user goes back or forward
  const showEntry = to => {
    const before = entry;
    entry = to;
    for (const layer of [...before.layers].reverse()) if (!to.layers.includes(layer)) LAYERS[kindOf(layer)].close(argumentOf(layer));
    if (to.conversation !== before.conversation) openConversation(to.conversation, true);
    if (isPhone()) {
      panes = to.layers.filter(layer => kindOf(layer) === "pane");
      const added = to.layers.filter(layer => !before.layers.includes(layer));
      for (const layer of [...panes.slice(-1), ...added.filter(one => kindOf(one) !== "pane")]) LAYERS[kindOf(layer)].open?.(argumentOf(layer));
    }
    // What cannot be opened again is removed from its entry.
    syncSoon();
  };
  addEventListener("popstate", event => {
    if (stepDone) stepDone();
    else if (event.state?.aivista) showEntry(event.state.aivista);
  });

  addEventListener("click", event => {
    if (event.target.closest?.("#tabs [data-tab]")) isTabChosen = true;
  }, true);
  addEventListener("toggle", event => { if (event.target.matches?.("[popover]")) syncSoon(); }, true);
  // After a reload the entry still exists, but what lay over the page does not.
  entry = history.state?.aivista || entry;
  new MutationObserver(syncSoon).observe(root, { attributes: true });
  new MutationObserver(syncSoon).observe($("#files"), { attributeFilter: ["data-open"] });
  onPatched(syncSoon);
}
