// Helpers for all scripts. Scripts run once the document is parsed: all of our elements exist, Gradio's inputs do not
// yet.
const root = document.documentElement, aivista = window.aivista;
const $ = (selector, from = document) => from?.querySelector(selector) ?? null;
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
// Run for elements that match, or within one.
const on = (kinds, selector, then, options) => {
  for (const kind of kinds.split(" ")) addEventListener(kind, event => {
    const found = event.target.closest?.(selector);
    if (found) then(found, event);
  }, options);
};
// A new element.
const createElement = (tag, values = {}, ...inside) => {
  const element = Object.assign(document.createElement(tag), values);
  element.append(...inside);
  return element;
};
// Events for all scripts, named `aivista-<name>`.
const emit = (name, detail) => dispatchEvent(new CustomEvent(`aivista-${name}`, { detail }));
// A copy of a template's content.
const cloneTemplate = template => template?.content.firstElementChild.cloneNode(true) ?? null;
const download = (href, name = "") => createElement("a", { href, download: name }).click();
const setText = (element, text) => { if (element && element.textContent !== text) element.textContent = text; };
const setAttribute = (element, name, value) => { if (element && element.getAttribute(name) !== value) element.setAttribute(name, value); };
// A text with each `{name}` in it filled in.
const formatText = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
// The position of one pointer, or the middle of two, and their distance.
const pinch = pointers => {
  const [one, two = one] = [...pointers.values()];
  return { x: (one.x + two.x) / 2, y: (one.y + two.y) / 2, apart: Math.hypot(one.x - two.x, one.y - two.y) || 1 };
};
const clamp = (value, least, most) => Math.min(most, Math.max(least, value));
const isPhone = () => matchMedia("(max-width: 760px)").matches;
const isNarrow = () => matchMedia("(max-width: 1180px)").matches;
// The open conversation, "new" before it has a turn. Python writes a new stamp whenever it opens one, but not when a
// new one gets its id.
const conversation = () => $("#top h1")?.dataset.conversation || "";
const stamp = () => $("#top h1")?.dataset.opened || "";
// Another conversation is opened, or a new one is begun. `isReturn` says that the browser's Back or Forward leads
// there.
const openConversation = (id, isReturn = false) => {
  root.removeAttribute("data-rail-open");
  if (id === "new" || isPhone()) root.removeAttribute("data-stage");
  aivista.opening(id, aivista.shell.act("page.open", { arg: id === "new" ? "" : id }), isReturn);
};
// Focus the box; on a phone, close what lies over it.
const focusComposer = () => {
  if (isPhone()) root.removeAttribute("data-stage");
  $("#box textarea")?.focus();
};
// A button that starts a turn is disabled for a moment: a double click must not start two.
const once = (button, work) => {
  if (button.disabled) return;
  button.disabled = true;
  setTimeout(() => { if (button.isConnected) button.disabled = false; }, 1500);
  work();
};
// Rename in place: Enter or leaving the field accepts, Escape cancels. `done` is called with the typed name, or with
// nothing. Returns a function that ends it.
const editName = (input, done) => {
  let isDone = false;
  const end = isKept => {
    if (isDone) return;
    isDone = true;
    const text = input.value.trim();
    input.remove();
    done(isKept ? text : "");
  };
  input.addEventListener("keydown", event => {
    const isKept = aivista.keys.is(event, "field.keep");
    if (!isKept && !aivista.keys.is(event, "field.leave")) return;
    event.preventDefault();
    event.stopPropagation();
    end(isKept);
  });
  // Not at once: when a list that contains it is removed, nothing was accepted, and nothing of it may be removed
  // meanwhile.
  input.addEventListener("blur", () => setTimeout(() => { if (input.isConnected) end(true); }));
  input.focus();
  input.select();
  return end;
};
// The live line of the running turn, searched from the end: a long thread is not walked each time.
const liveLine = () => {
  for (let turn = $("#thread")?.lastElementChild, left = 3; turn && left; turn = turn.previousElementSibling, left -= 1) {
    const found = $(".live", turn);
    if (found) return found;
  }
  return null;
};
const isPaneShown = pane => root.dataset.tab === pane && root.hasAttribute("data-stage");
// When the page is idle. Safari has no such function.
const whenIdle = window.requestIdleCallback || (work => setTimeout(work, 0));

// ---- stored by this browser, or for this page alone when storage is full or disabled, as in a private window
const readStored = key => { try { return localStorage.getItem(key); } catch { return null; } };
const store = (key, text) => { try { localStorage.setItem(key, text); } catch { /* this page alone */ } };
const readStoredTexts = key => {
  try {
    const texts = JSON.parse(readStored(key) || "[]");
    return Array.isArray(texts) ? texts.filter(one => typeof one === "string" && one.trim()) : [];
  } catch { return []; }
};

// ---- reacting to what Python changed on the page, and to what Gradio draws in the composer: once for many changes,
// and not with the next frame, because a hidden tab draws none
const onPatched = look => { addEventListener("aivista-patched", look); look(); };
const onInputsChanged = look => {
  let timer = 0;
  const soon = () => { timer ||= setTimeout(() => { timer = 0; look(); }, 16); };
  new MutationObserver(soon).observe($("#composer"), { childList: true, subtree: true, attributeFilter: ["src"] });
  look();
};

// ---- text into the box, with the event that Gradio listens for
const setTextareaValue = (area, words) => {
  Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(area, words);
  area.dispatchEvent(new Event("input", { bubbles: true }));
};

// ---- a message is sent: before Gradio handles the key
const onSend = then => {
  on("click", "#box .submit-button", (_, event) => then(event), true);
  // A list over the box that takes the key has handled it at the window.
  document.addEventListener("keydown", event => { if (event.target.matches("#box textarea") && aivista.keys.is(event, "composer.send")) then(event); }, true);
};

// The keys of the page, by their names in the one table (shortcuts.toml) from which the dialog of keys is made, too.
// The other scripts ask here for the name of a key press; none of them reads keys by itself.
{
  const table = aivista.shortcuts;
  const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
  const STORAGE_KEY = "aivista-single-keys";

  // ---- single keys can be turned off, for users of voice control or who hit keys by accident
  const areSingleKeysOn = () => readStored(STORAGE_KEY) !== "off";

  // Safari sends 229 for a key of an input method, when isComposing is already false.
  const isComposing = event => event.isComposing || event.keyCode === 229;
  const TEXTLESS = new Set(["button", "checkbox", "color", "file", "image", "radio", "range", "reset", "submit"]);
  const isTyping = at => {
    const field = at?.closest?.("input, textarea, select, [contenteditable=true]");
    return Boolean(field) && !(field.tagName === "INPUT" && TEXTLESS.has(field.type));
  };

  // ---- chords
  const parsed = new Map();
  const parse = chord => {
    if (!parsed.has(chord)) {
      const parts = chord === "+" ? ["+"] : chord.split("+"), key = parts.pop();
      parsed.set(chord, { key: key === "Space" ? " " : key, mod: parts.includes("Mod"), shift: parts.includes("Shift"), alt: parts.includes("Alt"), isSingle: chord.length === 1 || chord === "Letter" });
    }
    return parsed.get(chord);
  };
  // In a layout without Latin letters, the key's position says which one is meant.
  const letterOf = event => (event.key.length === 1 && event.key > "\u007f" && /^Key[A-Z]$/.test(event.code) ? event.code.slice(3) : event.key).toLowerCase();
  const matches = (event, chord) => {
    const { key, mod, shift, alt, isSingle } = parse(chord);
    // AltGr types a character; Windows reports it as Ctrl and Alt together.
    const hasSign = isSingle && event.getModifierState?.("AltGraph");
    const hasMod = isMac ? event.metaKey : event.ctrlKey, hasOther = isMac ? event.ctrlKey : event.metaKey;
    if (!hasSign && (hasMod !== mod || hasOther || event.altKey !== alt)) return false;
    if (isSingle && (!areSingleKeysOn() || isTyping(event.target))) return false;
    if (key === "Letter") return /^\S$/u.test(event.key);
    // Whether a character needs Shift depends on the layout.
    if (!(isSingle && !/[A-Z]/.test(key)) && event.shiftKey !== shift) return false;
    return letterOf(event) === key.toLowerCase();
  };

  // ---- names: "page.search" is one row; "painter.move" is a row of several keys, and `find` tells which one
  const chordsOf = name => { const [group, one] = name.split("."); return table[group][one]; };
  const find = (event, name) => {
    if (isComposing(event)) return "";
    return Object.keys(chordsOf(name)).find(part => chordsOf(name)[part].some(chord => matches(event, chord))) || "";
  };
  const is = (event, name) => {
    const chords = chordsOf(name);
    return Array.isArray(chords) ? !isComposing(event) && chords.some(chord => matches(event, chord)) : Boolean(find(event, name));
  };
  const usesKey = (event, name) => [chordsOf(name)].flat().some(chord => parse(chord).key === event.key);  // whatever else is held
  const walk = (event, name, list, at) => {  // in a list that wraps around: the new index, or -1
    const to = { previous: (at - 1 + list.length) % list.length, next: (at + 1) % list.length, first: 0, last: list.length - 1 }[find(event, name)];
    return to ?? -1;
  };

  // ---- Escape: the first of these that has something to close handles it. First what lies over the page, then what
  // fills the window, then what is in progress on the stage, then the running turn, and the stage itself last. Fields
  // handle it before all of them.
  const LAYERS = ["dialog", "drawer", "full", "mode", "turn", "stage"];
  const escapeHandlers = new Map(LAYERS.map(layer => [layer, []]));
  const onEscape = (layer, close) => escapeHandlers.get(layer).push(close);
  // The browser or Gradio closes a menu; it is gone already when the key event arrives.
  const MENUS = ":popover-open, [role=combobox][aria-expanded=true], [role=listbox][aria-expanded=true]";
  let hadMenu = false;
  addEventListener("keydown", event => { hadMenu = is(event, "page.escape") && Boolean($(MENUS)); }, true);
  addEventListener("keydown", event => {
    if (!is(event, "page.escape") || event.defaultPrevented || hadMenu) return;
    for (const layer of LAYERS) {
      if (!escapeHandlers.get(layer).some(close => close(event))) continue;
      event.preventDefault();
      return;
    }
  });

  // ---- Enter that an input method uses must not send: Gradio sends on any Enter
  let wasComposing = false;
  addEventListener("keydown", event => { wasComposing = isComposing(event); }, true);
  addEventListener("keypress", event => {
    if (!event.target.matches?.("#box textarea") || !(wasComposing || event.isComposing)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);

  // ---- the dialog of keys: its switch, and the names of keys on a Mac
  addEventListener("change", event => { if (event.target.id === "keys-single") store(STORAGE_KEY, event.target.checked ? "on" : "off"); });
  const MAC = { Ctrl: "⌘", Alt: "⌥", Shift: "⇧" };
  addEventListener("aivista-patched", () => {
    const single = $("#keys-single");
    if (!single || single.dataset.settled) return;
    single.dataset.settled = "";
    single.checked = areSingleKeysOn();
    if (isMac) for (const key of all("#keys kbd b")) key.textContent = MAC[key.textContent] ?? key.textContent;
  });

  aivista.keys = { is, find, usesKey, walk, onEscape, isTyping, isMac };
}

// Actions: the page calls Python by name and carries out the reply (webui/shell/actions.py). A reply changes HTML by
// the ids of elements, shows a sentence, and names events for scripts, sent as `aivista-<name>`.
{
  const TOAST_MS = 8000;

  // Browsers offer `crypto.randomUUID` only on HTTPS and localhost.
  const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, "0")).join("");
  // The state of the page is read from what it shows: the open conversation, the marked pictures, each reference with
  // its field.
  const pageState = () => {
    const open = conversation(), fields = all("#ctx select[data-role]");
    return {
      conversation: open === "new" ? "" : open,
      editing: $("#ctx .ctx.none") ? "none" : $("#ctx .ctx[data-handle]")?.dataset.handle || "",
      references: fields.map(one => one.dataset.role),
      roles: Object.fromEntries(fields.filter(one => one.value).map(one => [one.dataset.role, one.value])),
      chips: aivista.chips?.values || {},
    };
  };

  // ---- an element replaces the existing one: scroll positions and the focus in it are kept
  const selectorOf = element => {
    if (element.id) return `#${CSS.escape(element.id)}`;
    const signs = [...element.attributes].filter(one => one.name.startsWith("data-"));
    return signs.length ? signs.map(one => `[${one.name}="${CSS.escape(one.value)}"]`).join("") : "";
  };
  // Elements with data-merge are not replaced: only their differences are applied, by id or position. Pictures do not
  // flash, what is open stays open, and what says data-keep stays as it is.
  const merge = (have, now) => {
    if (have.nodeType !== Node.ELEMENT_NODE) { if (have.data !== now.data) have.data = now.data; return; }
    if (have.isEqualNode(now) || have.hasAttribute("data-keep")) return;
    for (const name of have.getAttributeNames()) if (name !== "open" && !now.hasAttribute(name)) have.removeAttribute(name);
    for (const { name, value } of now.attributes) if (name !== "open" && have.getAttribute(name) !== value) {
      have.setAttribute(name, value);
      if (name === "value" && have.matches("input")) have.value = value;
    }
    const before = [...have.childNodes], named = new Map(before.filter(one => one.id).map(one => [one.id, one]));
    const children = [...now.childNodes].map((one, at) => {
      const same = one.id ? named.get(one.id) : before[at];
      if (same?.nodeName !== one.nodeName || (same.id || "") !== (one.id || "")) return one;
      merge(same, one);
      return same;
    });
    // Remaining elements are not moved for removed ones: moving an element loses the focus.
    const remaining = new Set(children);
    for (const one of before) if (!remaining.has(one)) one.remove();
    children.forEach((one, at) => { if (have.childNodes[at] !== one) have.insertBefore(one, have.childNodes[at] ?? null); });
  };
  // Times are shown in the reader's own time zone.
  const localizeTimes = from => {
    for (const one of all("[data-moment]", from)) one.textContent = new Date(one.dataset.moment).toLocaleString(document.documentElement.lang || undefined, { dateStyle: "medium", timeStyle: "short" });
  };
  localizeTimes();
  // A box stays: only its content is changed. Gradio's boxes have two wrappers around it.
  const fillBox = (box, html) => {
    const frame = $(":scope > .html-container", box) || box, inside = frame === box ? box : $(":scope > .flat", frame) || frame.appendChild(createElement("div", { className: "flat" }));
    const now = inside.cloneNode(false);
    now.innerHTML = html;
    localizeTimes(now);
    merge(inside, now);
  };
  const applyPatch = ({ id, html = null, parent = "", before: next = "" }) => {
    const before = document.getElementById(id);
    if (before?.classList.contains("flat")) { fillBox(before, html); return; }
    const place = parent ? document.getElementById(parent) : document.body;
    // The container of a changed part is no longer what its digest says.
    (before || place)?.closest(`[data-is]:not([id="${CSS.escape(id)}"])`)?.removeAttribute("data-is");
    if (html === null) { before?.remove(); return; }
    const { content } = createElement("template", { innerHTML: html });
    localizeTimes(content);
    const now = content.firstElementChild;
    if (!before) { place?.insertBefore(now, next ? document.getElementById(next) : null); return; }
    if (now.dataset.is && now.dataset.is === before.dataset.is) return;
    if (before.hasAttribute("data-merge")) { merge(before, now); return; }
    const focused = before.contains(document.activeElement) ? selectorOf(document.activeElement) : "";
    const scrolls = from => [from, ...all("[data-scroll]", from)].filter(one => one.matches("[data-scroll]"));
    const tops = scrolls(before).map(one => one.scrollTop);
    before.replaceWith(now);
    scrolls(now).forEach((one, at) => { one.scrollTop = tops[at] ?? 0; });
    if (focused) $(focused, now)?.focus({ preventScroll: true });
  };

  // ---- the toast: a problem stays until another toast, anything else for a while
  let toastTimer = 0;
  const hideToast = () => { clearTimeout(toastTimer); $("#toast")?.remove(); };
  const hideToastLater = () => {
    clearTimeout(toastTimer);
    toastTimer = setTimeout(() => { if ($("#toast:is(:hover, :focus-within)")) hideToastLater(); else hideToast(); }, TOAST_MS);
  };
  const showToast = (text, { isProblem = false, stays = false } = {}) => {
    const line = createElement("div", { id: "toast", className: isProblem ? "toast bad" : "toast", role: isProblem ? "alert" : "status" }, createElement("span", {}, text));
    hideToast();
    document.body.append(line);
    if (!stays) hideToastLater();
  };

  // ---- a reply is carried out
  const applyReply = async (reply, isLate = () => false) => {
    const { patches = [], events: { inputs: changed, painted, ...events } = {} } = reply;
    if (painted) emit("painted", painted);
    if (changed) await setInputs(changed);
    if (isLate()) return {};
    for (const patch of patches) applyPatch(patch);
    if (patches.some(patch => patch.id === "toast") && !$("#toast.bad")) hideToastLater();
    for (const [event, detail] of Object.entries(events)) emit(event, detail);
    emitOpened();
    if (patches.length) emit("patched");
    return reply;
  };
  // Another conversation was opened, or the same anew; or a new one got its id.
  let shown = { conversation: conversation(), stamp: stamp() };
  const emitOpened = () => {
    const was = shown;
    shown = { conversation: conversation(), stamp: stamp() || was.stamp };
    if (shown.stamp !== was.stamp) emit("opened", { isOther: shown.conversation !== was.conversation });
    else if (shown.conversation !== was.conversation) emit("named");
  };

  // ---- `isNewest` drops the reply when the same action was called again meanwhile; of the conversations to be opened,
  // only the newest counts. A reply about a conversation that is no longer open would be shown in another one.
  const OPENING = ["page.open", "gallery.open", "gallery.compare", "gallery.reference", "recipes.branch"];
  const newestCalls = {};
  const act = async (name, args, options) => {
    const group = OPENING.includes(name) ? "opening" : name, call = newestCalls[group] = {};
    try { return await request(name, args, { ...options, isOther: () => newestCalls[group] !== call }); }
    finally { if (newestCalls[group] === call) delete newestCalls[group]; }
  };
  const request = async (name, args = {}, { isNewest = false, isOther }) => {
    const isOpening = OPENING.includes(name), stateBefore = pageState();
    let reply;
    try {
      const answer = await fetch(`aivista/act/${name}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ args, state: stateBefore }) });
      reply = await answer.json();
    } catch {
      showToast(aivista.translate("cut"), { isProblem: true });
      return {};
    }
    const isLeft = () => name.startsWith("page.") && !isOpening && pageState().conversation !== stateBefore.conversation;
    const isLate = () => isLeft() || ((isNewest || isOpening) && isOther());
    if (isLate()) return {};
    if (reply.error) { showToast(reply.error, { isProblem: true }); return {}; }
    return applyReply(reply, isLate);
  };
  // Whether the answer to this action is still pending.
  const isPending = name => name in newestCalls;
  // ---- Gradio changes its own inputs: its event asks for the changes, and reports when it is done
  const INPUTS_TIMEOUT_MS = 2000;
  let pendingInputs = {}, waiters = [];
  // The inputs of the panel are drawn when the first change is made.
  const setInputs = (changes = {}) => new Promise(done => {
    const { later = "{}" } = $("#composer").dataset;
    delete $("#composer").dataset.later;
    for (const [name, other] of [JSON.parse(later), changes].flatMap(Object.entries)) pendingInputs[name] = { ...pendingInputs[name], ...other };
    waiters.push(done);
    setTimeout(done, INPUTS_TIMEOUT_MS);
    emit("set-inputs");
  });
  const takeInputs = names => {
    const now = pendingInputs;
    pendingInputs = {};
    return names.map(name => now[name] && { __type__: "update", ...now[name] });
  };
  const confirmInputs = () => { for (const done of waiters.splice(0)) done(); };
  // What is not visible at first is in a template.
  const expandTemplate = box => { const folded = $(":scope > template", box); folded?.replaceWith(folded.content); };
  const removeElement = id => { document.getElementById(id)?.remove(); emit("patched"); };

  on("click", "[data-toast]", button => {
    const { toast, action, args } = button.dataset;
    hideToast();
    if (toast === "undo") act(action, JSON.parse(args));
  });
  addEventListener("aivista-save", event => {
    const { name, text } = event.detail, address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    download(address, name);
    setTimeout(() => URL.revokeObjectURL(address), TOAST_MS);
  });
  aivista.shell = { act, isPending, showToast, hideToast, applyReply, removeElement, expandTemplate, setInputs, takeInputs, confirmInputs, newId, pageState };
}

// Dialogs over the page: focus goes in, the rest is inert, Escape closes, focus returns. One is open at a time.
{
  const keys = aivista.keys;
  // By the attribute of <html> that shows it: the box, its title, and its first focus.
  const DIALOGS = {
    settings: ["#settings-box", "set-title", "#s-key"],
    styles: ["#styles-box", "sty-title", "#sty-find"],
    prompts: ["#prompts-box", "prm-title", "#prm-find"],
    shortcuts: ["#shortcuts-box", "keys-title", "#keys [data-act=shortcuts_close]"],
  };
  // The action that renders it when it is opened; those not listed here are in the page.
  const loaders = new Map();
  let returnTo = null;

  const opened = () => Object.keys(DIALOGS).find(name => root.hasAttribute(`data-${name}`)) || "";
  const toggle = (name, on) => {
    const [place, title, first] = DIALOGS[name], box = $(place), shell = $("#shell");
    if (!box || !shell || on === root.hasAttribute(`data-${name}`)) return;
    root.toggleAttribute(`data-${name}`, on);
    for (const [key, value] of [["role", "dialog"], ["aria-modal", "true"], ["aria-labelledby", title], ["tabindex", "-1"]]) box.setAttribute(key, value);
    shell.inert = on;
    if (on) { returnTo = document.activeElement; ($(first) || box).focus(); } else (returnTo?.isConnected && returnTo !== document.body ? returnTo : $("#box textarea"))?.focus?.();
  };
  const loadWith = (name, fill) => loaders.set(name, fill);
  const open = async name => {
    await loaders.get(name)?.();
    const other = opened();
    if (other && other !== name) toggle(other, false);
    toggle(name, true);
  };
  for (const name of ["prompts", "shortcuts"]) loadWith(name, () => $(DIALOGS[name][0]) || aivista.shell.act(`${name}.open`));
  const close = name => toggle(name, false);

  keys.onEscape("dialog", () => { const name = opened(); if (name) close(name); return Boolean(name); });
  // Releasing the mouse outside after selecting text in a box is no click there, though the browser sends one.
  let pressedTarget = null;
  addEventListener("pointerdown", event => { pressedTarget = event.target; }, true);
  addEventListener("click", event => { if (event.target.id in DIALOGS && pressedTarget === event.target) close(event.target.id); });
  aivista.dialogs = { open, close, opened, loadWith };
}

// Menus of actions: beside their button, on a phone a sheet from below. Keys walk through them; leaving one returns the
// focus.
{
  const keys = aivista.keys;
  let opener = null, returnTo = null;
  const items = menu => all("[role=menuitem]:not([hidden])", menu);
  const open = (menu, by, row = by) => {
    [opener, returnTo] = [by, row];
    menu.style.cssText = "";
    menu.showPopover({ source: by });
    by.setAttribute("aria-expanded", "true");
    if (!isPhone()) {
      const at = by.getBoundingClientRect(), { width, height } = menu.getBoundingClientRect(), isBelow = at.bottom + height + 12 <= innerHeight;
      const left = at.left + width > innerWidth - 8 ? at.right - width : at.left;
      menu.style.cssText = `top: ${isBelow ? at.bottom + 4 : Math.max(8, at.top - 4 - height)}px; left: ${Math.max(8, left)}px`;
    }
    items(menu)[0]?.focus();
  };
  const close = () => { $(".menu:popover-open")?.hidePopover(); returnTo?.focus({ preventScroll: true }); };
  addEventListener("toggle", event => { if (event.target.matches?.(".menu") && event.newState === "closed") opener?.setAttribute("aria-expanded", "false"); }, true);
  on("keydown", ".menu", (menu, event) => {
    const list = items(menu), to = keys.walk(event, "menu.walk", list, list.indexOf(document.activeElement));
    if (to >= 0) list[to].focus(); else if (keys.is(event, "menu.leave")) close(); else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
  // Firefox closes an open menu before the mouse button is released.
  const onContext = (selector, show) => on("contextmenu", selector, (one, event) => {
    event.preventDefault();
    if (event.buttons && event.pointerType !== "touch") addEventListener("pointerup", () => setTimeout(() => show(one)), { once: true });
    else show(one);
  });
  aivista.menus = { open, close, onContext };
}

// The rail as a drawer over the page: what lies behind is inert while it is open, and the focus goes in.
{
  const update = () => {
    const isOpen = root.hasAttribute("data-rail-open") && isNarrow(), behind = [$("#center"), $("#stage")];
    if (behind.every(one => one.inert === isOpen)) return;
    for (const one of behind) one.inert = isOpen;
    // Once it is visible, unless something in it has the focus by then.
    if (isOpen) requestAnimationFrame(() => { if (!document.activeElement.closest("#rail")) $("#rail [data-act=rail]")?.focus(); });
  };
  new MutationObserver(update).observe(root, { attributeFilter: ["data-rail-open"] });
  addEventListener("resize", update);
}

// Screen reader announcements of a turn: now and then what the agent is doing, and at the end the answer, once. The
// thread itself is no live region, because a streaming answer would be read from its first word again and again.
{
  const REST_MS = 4000, LONGEST = 600;
  let line = null, sentence = "", announced = "", announcedAt = 0, isLive = false, lastConversation = "";

  const announce = text => {
    line ??= document.body.appendChild(createElement("div", { id: "announce", role: "status" }));
    line.textContent = text;
    [announced, announcedAt] = [text, performance.now()];
  };
  const answerText = () => {
    const rows = all("#thread > .turn:last-child > .bot :is(.md, .pic img, .card h3, .ask)");
    const parts = rows.filter(one => !one.closest("details, [role=alert]")).map(one => (one.alt ?? one.textContent).trim());
    const text = [...new Set(parts)].filter(Boolean).join(" ");
    return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  };
  setInterval(() => {
    const sentenceLine = $("span", liveLine()), open = conversation();
    // The user reads an opened conversation by themselves.
    if (open !== lastConversation && !(isLive && sentenceLine)) { lastConversation = open; isLive = Boolean(sentenceLine); return; }
    if (isLive && !sentenceLine) announce(answerText());
    isLive = Boolean(sentenceLine);
    sentence = sentenceLine?.textContent.trim() || "";
    if (sentence && sentence !== announced && performance.now() - announcedAt > REST_MS) announce(sentence);
  }, 500);
}

// The texts of scripts in the visitor's language, and Gradio's own English texts replaced (shell/document.py).
{
  const LABEL_ATTRIBUTES = ["aria-label", "title"], LABELLED = "[aria-label], [title]", NOTICES = ".toast-body";
  const tables = Object.fromEntries(["script", "names", "parts"].map(name => [name, JSON.parse($("#words").dataset[name])]));
  aivista.translate = (key, values = {}) => formatText(tables.script[key] ?? "", values);

  // ---- Gradio's own: control names by their whole text, notices also by a part of it
  const translatedName = text => tables.names[text.trim()];
  const translatedNotice = text => translatedName(text) ?? tables.parts[Object.keys(tables.parts).find(part => text.includes(part))];
  const translateLabels = element => {
    for (const attribute of LABEL_ATTRIBUTES) {
      const text = element.getAttribute(attribute), translated = text && translatedName(text);
      if (translated && translated !== text) element.setAttribute(attribute, translated);
      // The untranslated message, in place of the message itself.
      else if (text?.includes("'s message: ")) element.removeAttribute(attribute);
    }
  };
  const translateNotice = element => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const { data } = walker.currentNode, translated = data.trim() && translatedNotice(data);
      if (translated && translated !== data) walker.currentNode.data = translated;
    }
  };
  // Only new elements are looked at: a thread may be long, and an answer streams.
  const translateAll = from => {
    if (from.matches(LABELLED)) translateLabels(from);
    for (const element of all(LABELLED, from)) translateLabels(element);
    const around = from.closest(NOTICES);
    for (const element of around ? [around] : all(NOTICES, from)) translateNotice(element);
  };
  new MutationObserver(records => {
    for (const { type, target, addedNodes } of records) {
      if (type === "attributes") translateLabels(target);
      else for (const node of addedNodes) if (node.nodeType === Node.ELEMENT_NODE && node.isConnected) translateAll(node);
    }
  }).observe(document.body, { childList: true, subtree: true, attributeFilter: ["aria-label"] });
}

// The page is ready (`data-ready` on the root) once Gradio has drawn the box, and the requested conversation is open. A
// message sent earlier would go into another conversation, and one sent during an upload would go without the file: a
// press of Send or Enter is held until then.
{
  const OPEN_TIMEOUT_MS = 10_000;
  const isBlocked = () => !root.hasAttribute("data-ready") || Boolean(aivista.uploads?.isBusy());
  let pendingOpen = null, isSendHeld = false;

  const sendHeld = () => {
    if (!isSendHeld || isBlocked()) return;
    isSendHeld = false;
    $("#box .submit-button")?.click();
  };
  const checkReady = () => {
    if (pendingOpen || root.hasAttribute("data-ready") || !$("#box textarea")) return;
    boxObserver.disconnect();
    performance.mark("aivista-ready");
    root.setAttribute("data-ready", "");
    emit("ready");
    // Once every script knows which conversation is open.
    queueMicrotask(sendHeld);
  };
  const boxObserver = new MutationObserver(checkReady);
  boxObserver.observe($("#composer"), { childList: true, subtree: true });

  onSend(event => {
    if (!isBlocked()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    isSendHeld = true;
    aivista.sending.show($("#box textarea")?.value || "");
  });
  const dropHeld = () => { if (isSendHeld) aivista.sending.hide(); isSendHeld = false; };

  // Another conversation is being opened: a missing answer must not block the composer. A message to be sent stays in
  // the box then, because its conversation is unknown.
  aivista.opening = async (id, answer, isReturn = false) => {
    const request = pendingOpen = { id };
    dropHeld();
    root.removeAttribute("data-ready");
    emit("leaving", { id, isReturn });
    await Promise.race([answer, new Promise(done => setTimeout(done, OPEN_TIMEOUT_MS))]);
    if (pendingOpen !== request) return;
    pendingOpen = null;
    dropHeld();
    emit("stayed");
    checkReady();
  };
  addEventListener("aivista-opened", () => { if (pendingOpen?.id === conversation()) pendingOpen = null; checkReady(); });
  addEventListener("aivista-uploaded", event => { if (event.detail.isWhole) sendHeld(); else dropHeld(); });
}

// A picture that cannot be shown: the studio is asked why, and its sentence takes the picture's place. When the studio
// is unreachable, nothing is said about the picture.
{
  const reasons = new Map();  // by URL: the studio's sentence, or nothing
  const reasonOf = address => {
    if (!reasons.has(address)) reasons.set(address, fetch(address).then(answer => (answer.ok ? "" : answer.text()), () => ""));
    return reasons.get(address);
  };
  addEventListener("error", async event => {
    const image = event.target;
    if (image?.tagName !== "IMG" || !new URL(image.src, location.href).pathname.includes("/media/")) return;
    const reason = (await reasonOf(image.currentSrc || image.src)).slice(0, 300);
    if (!reason || image.naturalWidth) return;
    image.classList.add("lost");
    image.title = reason;
    image.parentElement?.setAttribute("data-lost", reason);
  }, true);
  addEventListener("load", event => {
    if (!event.target.classList?.contains("lost")) return;
    event.target.classList.remove("lost");
    event.target.removeAttribute("title");
    event.target.parentElement?.removeAttribute("data-lost");
  }, true);
}

// The tab's title during a turn: that it is running, and, when nobody saw it end, how it ended. With the bell turned
// on, the system shows a notification as well. Python writes how the newest turn of this tab ended next to the rail's
// stamp.
{
  const KEY = "aivista-bell", NOTE_MS = 6000;
  const canNotify = () => "Notification" in window;
  const isOn = () => canNotify() && readStored(KEY) === "on" && Notification.permission === "granted";
  const setBell = isOn => { store(KEY, isOn ? "on" : "off"); drawBell(); };
  const isAway = () => document.hidden || !document.hasFocus();

  // ---- the title
  let unseenResult = "";
  const MARKS = {
    done: title => aivista.translate("title_done", { title }),
    failed: title => aivista.translate("title_failed", { title }),
    waiting: title => aivista.translate("title_waiting", { title }),
  };
  const pageTitle = title => {
    drawBell();
    if (liveLine()) return aivista.translate("title_working", { title }) || title;
    return MARKS[unseenResult]?.(title) || title;
  };
  const markSeen = () => {
    if (isAway() || !unseenResult) return;
    unseenResult = "";
    document.title = pageTitle(`${$("#top h1").textContent} · Aivista`);
  };
  addEventListener("focus", markSeen);
  document.addEventListener("visibilitychange", markSeen);

  // ---- the end of a turn
  const SENTENCES = {
    done: () => aivista.translate("told_done"),
    failed: () => aivista.translate("told_failed"),
    waiting: () => aivista.translate("told_waiting"),
  };
  const turnEnded = how => {
    if (!isAway() || !(how in SENTENCES)) return;
    unseenResult = how;
    if (!isOn()) return;
    try {
      const notification = new Notification($("#top h1").textContent, { body: SENTENCES[how](), tag: "aivista-turn" });
      notification.onclick = () => { window.focus(); notification.close(); };
    } catch { /* this browser tells through service workers alone: the title says it */ }
  };
  addEventListener("aivista-listed", event => turnEnded(event.detail.ended));

  // ---- the bell
  let noteTimer = 0;
  const showNote = text => {
    const place = $("#bell-note");
    if (!place) return;
    place.textContent = text;
    clearTimeout(noteTimer);
    noteTimer = setTimeout(() => { place.textContent = ""; }, NOTE_MS);
  };
  const drawBell = () => {
    const bell = $("#bell");
    if (!bell) return;
    bell.hidden = !canNotify();
    setAttribute(bell, "aria-checked", String(isOn()));
  };
  on("click", "#bell", async () => {
    if (isOn()) { setBell(false); showNote(aivista.translate("bell_off")); return; }
    const answer = Notification.permission === "default" ? await Notification.requestPermission() : Notification.permission;
    setBell(answer === "granted");
    showNote(answer === "granted" ? aivista.translate("bell_on") : aivista.translate("bell_blocked"));
  });

  aivista.pageTitle = pageTitle;
}
