// What every script is written with. They run once the document is read: all of ours is there, Gradio's inputs are not yet.
const root = document.documentElement, aivista = window.aivista;
const $ = (selector, from = document) => from?.querySelector(selector) ?? null;
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
// What happens to an element that fits, or within one.
const on = (kinds, selector, then, options) => {
  for (const kind of kinds.split(" ")) addEventListener(kind, event => {
    const found = event.target.closest?.(selector);
    if (found) then(found, event);
  }, options);
};
// An element that is not in the page yet.
const made = (tag, values = {}, ...inside) => {
  const element = Object.assign(document.createElement(tag), values);
  element.append(...inside);
  return element;
};
// What every script may hear of, as `aivista-<name>`.
const emit = (name, detail) => dispatchEvent(new CustomEvent(`aivista-${name}`, { detail }));
// A copy of what a template holds.
const cloned = template => template?.content.firstElementChild.cloneNode(true) ?? null;
const download = (href, name = "") => made("a", { href, download: name }).click();
const setText = (element, text) => { if (element && element.textContent !== text) element.textContent = text; };
const setAttribute = (element, name, value) => { if (element && element.getAttribute(name) !== value) element.setAttribute(name, value); };
// A text with each `{name}` in it filled in.
const filled = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
// Where one pointer is, or what lies between two, and how far they are apart.
const grip = pointers => {
  const [one, two = one] = [...pointers.values()];
  return { x: (one.x + two.x) / 2, y: (one.y + two.y) / 2, apart: Math.hypot(one.x - two.x, one.y - two.y) || 1 };
};
const clamp = (value, least, most) => Math.min(most, Math.max(least, value));
const isPhone = () => matchMedia("(max-width: 760px)").matches;
const isNarrow = () => matchMedia("(max-width: 1180px)").matches;
// The conversation that is open, "new" before it has a turn. Python writes another stamp whenever it opens one, not when it
// gives a new one its name.
const conversation = () => $("#top h1")?.dataset.conversation || "";
const stamp = () => $("#top h1")?.dataset.opened || "";
// Another one is opened, or a new one is begun. `isReturn` says that the browser's way back or forward leads there.
const openConversation = (id, isReturn = false) => {
  root.removeAttribute("data-rail-open");
  if (id === "new" || isPhone()) root.removeAttribute("data-stage");
  aivista.opening(id, aivista.shell.act("page.open", { arg: id === "new" ? "" : id }), isReturn);
};
// The box has the focus; on a phone what lies over it goes.
const toComposer = () => {
  if (isPhone()) root.removeAttribute("data-stage");
  $("#box textarea")?.focus();
};
// A button that lets a turn begin rests for a moment: pressed twice it must not begin two.
const once = (button, work) => {
  if (button.disabled) return;
  button.disabled = true;
  setTimeout(() => { if (button.isConnected) button.disabled = false; }, 1500);
  work();
};
// A name is typed over another one: Enter keeps it, and so does whoever goes elsewhere; Escape does not. `done` is given
// what was typed, or nothing. What is returned ends it.
const typeName = (input, done) => {
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
  // Not at once: where a list that holds it goes, nothing was left, and nothing of it may be removed meanwhile.
  input.addEventListener("blur", () => setTimeout(() => { if (input.isConnected) end(true); }));
  input.focus();
  input.select();
  return end;
};
// The line of the turn that is at work, looked for from the end: a long thread is not gone through each time.
const live = () => {
  for (let turn = $("#thread")?.lastElementChild, left = 3; turn && left; turn = turn.previousElementSibling, left -= 1) {
    const found = $(".live", turn);
    if (found) return found;
  }
  return null;
};
const isShown = pane => root.dataset.tab === pane && root.hasAttribute("data-stage");
// Once the page rests. Safari has no such call.
const rest = window.requestIdleCallback || (work => setTimeout(work, 0));

// ---- kept by this browser, unless it is full or keeps nothing, as in a private window: then for this page alone
const kept = key => { try { return localStorage.getItem(key); } catch { return null; } };
const keep = (key, text) => { try { localStorage.setItem(key, text); } catch { /* this page alone */ } };
const keptTexts = key => {
  try {
    const texts = JSON.parse(kept(key) || "[]");
    return Array.isArray(texts) ? texts.filter(one => typeof one === "string" && one.trim()) : [];
  } catch { return []; }
};

// ---- what follows from what Python has made of the page, and from what Gradio draws in the composer: that is asked once
// for many changes, and not with the next frame, since a tab that nobody looks at draws none
const follow = look => { addEventListener("aivista-patched", look); look(); };
const followInputs = look => {
  let timer = 0;
  const soon = () => { timer ||= setTimeout(() => { timer = 0; look(); }, 16); };
  new MutationObserver(soon).observe($("#composer"), { childList: true, subtree: true, attributeFilter: ["src"] });
  look();
};

// ---- words into the box, where Gradio hears of them
const setWords = (area, words) => {
  Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(area, words);
  area.dispatchEvent(new Event("input", { bubbles: true }));
};

// ---- a message is sent: before Gradio hears of it
const onSend = then => {
  on("click", "#box .submit-button", (_, event) => then(event), true);
  // A list over the box that takes the key has heard of it at the window.
  document.addEventListener("keydown", event => { if (event.target.matches("#box textarea") && aivista.keys.is(event, "composer.send")) then(event); }, true);
};

// The keys of the page, by the names of the one table (shortcuts.toml) that the dialog of keys is made from as well. The
// other scripts ask here which name a key press has; none of them reads keys by itself.
{
  const table = aivista.shortcuts;
  const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
  const KEPT = "aivista-single-keys";

  // ---- single keys can be turned off, for those who speak to their machine or hit keys by accident
  const areSinglesOn = () => kept(KEPT) !== "off";

  // 229 is what a key of an input method says in Safari, where isComposing is false already.
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
  // Where the layout writes no Latin letters, the place of the key says which one is meant.
  const letterOf = event => (event.key.length === 1 && event.key > "\u007f" && /^Key[A-Z]$/.test(event.code) ? event.code.slice(3) : event.key).toLowerCase();
  const fits = (event, chord) => {
    const { key, mod, shift, alt, isSingle } = parse(chord);
    // With AltGr a sign is typed; Windows reports it as Ctrl and Alt together.
    const hasSign = isSingle && event.getModifierState?.("AltGraph");
    const hasMod = isMac ? event.metaKey : event.ctrlKey, hasOther = isMac ? event.ctrlKey : event.metaKey;
    if (!hasSign && (hasMod !== mod || hasOther || event.altKey !== alt)) return false;
    if (isSingle && (!areSinglesOn() || isTyping(event.target))) return false;
    if (key === "Letter") return /^\S$/u.test(event.key);
    // To type a sign, Shift may be needed or not: that is the layout's affair.
    if (!(isSingle && !/[A-Z]/.test(key)) && event.shiftKey !== shift) return false;
    return letterOf(event) === key.toLowerCase();
  };

  // ---- names: "page.search" is one row, "painter.move" a row of several, of which `find` tells the one
  const row = name => { const [group, one] = name.split("."); return table[group][one]; };
  const find = (event, name) => {
    if (isComposing(event)) return "";
    return Object.keys(row(name)).find(part => row(name)[part].some(chord => fits(event, chord))) || "";
  };
  const is = (event, name) => {
    const chords = row(name);
    return Array.isArray(chords) ? !isComposing(event) && chords.some(chord => fits(event, chord)) : Boolean(find(event, name));
  };
  const lifts = (event, name) => [row(name)].flat().some(chord => parse(chord).key === event.key);  // whatever else is held
  const walk = (event, name, list, at) => {  // in a list that goes round: the index one comes to, or -1
    const to = { previous: (at - 1 + list.length) % list.length, next: (at + 1) % list.length, first: 0, last: list.length - 1 }[find(event, name)];
    return to ?? -1;
  };

  // ---- Escape: the first of these that has something to close has it. What lies over the page goes first, then what
  // fills the window, what is under way on the stage, then the turn that is at work, and the stage itself last. Fields have it before all of them.
  const LAYERS = ["dialog", "drawer", "full", "mode", "turn", "stage"];
  const closers = new Map(LAYERS.map(layer => [layer, []]));
  const closes = (layer, close) => closers.get(layer).push(close);
  // A menu is the browser's or Gradio's to close; it is gone already when the press gets here.
  const MENUS = ":popover-open, [role=combobox][aria-expanded=true], [role=listbox][aria-expanded=true]";
  let hadMenu = false;
  addEventListener("keydown", event => { hadMenu = is(event, "page.escape") && Boolean($(MENUS)); }, true);
  addEventListener("keydown", event => {
    if (!is(event, "page.escape") || event.defaultPrevented || hadMenu) return;
    for (const layer of LAYERS) {
      if (!closers.get(layer).some(close => close(event))) continue;
      event.preventDefault();
      return;
    }
  });

  // ---- an input method that takes Enter for itself must not send: Gradio sends on it whoever pressed it
  let isTaken = false;
  addEventListener("keydown", event => { isTaken = isComposing(event); }, true);
  addEventListener("keypress", event => {
    if (!event.target.matches?.("#box textarea") || !(isTaken || event.isComposing)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);

  // ---- the dialog of keys: its switch, and the names that keys have on a Mac
  addEventListener("change", event => { if (event.target.id === "keys-single") keep(KEPT, event.target.checked ? "on" : "off"); });
  const MAC = { Ctrl: "⌘", Alt: "⌥", Shift: "⇧" };
  const settle = () => {
    const single = $("#keys-single");
    if (!single || single.dataset.settled) return;
    single.dataset.settled = "";
    single.checked = areSinglesOn();
    if (isMac) for (const key of all("#keys kbd b")) key.textContent = MAC[key.textContent] ?? key.textContent;
  };
  addEventListener("aivista-patched", settle);

  aivista.keys = { is, find, lifts, walk, closes, isTyping, isMac };
}

// Actions: the page asks Python by name and carries out the reply (webui/shell/actions.py). A reply changes HTML by the
// ids of its elements, says a sentence, and names what only a script can do: that comes as an event `aivista-<name>`.
{
  const TOAST_MS = 8000;

  // A browser offers `crypto.randomUUID` to pages of this machine and of HTTPS alone.
  const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, "0")).join("");
  // What the page shows is what the composer works on: the marked pictures, each reference with its field.
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

  // ---- an element takes the place of the one that is there: what is scrolled there and has the focus stays so
  const signOf = element => {
    if (element.id) return `#${CSS.escape(element.id)}`;
    const signs = [...element.attributes].filter(one => one.name.startsWith("data-"));
    return signs.length ? signs.map(one => `[${one.name}="${CSS.escape(one.value)}"]`).join("") : "";
  };
  // What says data-merge is not replaced: only what is other in it is, found by its id or its place. Pictures do not
  // flash, what is open stays open, what says data-keep stays as it is.
  const merge = (have, now) => {
    if (have.nodeType !== Node.ELEMENT_NODE) { if (have.data !== now.data) have.data = now.data; return; }
    if (have.isEqualNode(now) || have.hasAttribute("data-keep")) return;
    for (const name of have.getAttributeNames()) if (name !== "open" && !now.hasAttribute(name)) have.removeAttribute(name);
    for (const { name, value } of now.attributes) if (name !== "open" && have.getAttribute(name) !== value) {
      have.setAttribute(name, value);
      if (name === "value" && have.matches("input")) have.value = value;
    }
    const before = [...have.childNodes], named = new Map(before.filter(one => one.id).map(one => [one.id, one]));
    const kept = [...now.childNodes].map((one, at) => {
      const same = one.id ? named.get(one.id) : before[at];
      if (same?.nodeName !== one.nodeName || (same.id || "") !== (one.id || "")) return one;
      merge(same, one);
      return same;
    });
    // What stays is not moved for what goes: an element that is moved loses the focus.
    const staying = new Set(kept);
    for (const one of before) if (!staying.has(one)) one.remove();
    kept.forEach((one, at) => { if (have.childNodes[at] !== one) have.insertBefore(one, have.childNodes[at] ?? null); });
  };
  // Moments are said in the reader's own time zone.
  const sayMoments = from => {
    for (const one of all("[data-moment]", from)) one.textContent = new Date(one.dataset.moment).toLocaleString(document.documentElement.lang || undefined, { dateStyle: "medium", timeStyle: "short" });
  };
  sayMoments();
  // A box stays: only what is other in it is changed. In one of Gradio's two frames lie around that.
  const fill = (box, html) => {
    const frame = $(":scope > .html-container", box) || box, inside = frame === box ? box : $(":scope > .flat", frame) || frame.appendChild(made("div", { className: "flat" }));
    const now = inside.cloneNode(false);
    now.innerHTML = html;
    sayMoments(now);
    merge(inside, now);
  };
  const put = ({ id, html = null, parent = "", before: next = "" }) => {
    const before = document.getElementById(id);
    if (before?.classList.contains("flat")) { fill(before, html); return; }
    const place = parent ? document.getElementById(parent) : document.body;
    // What holds a part that changes is not what it was.
    (before || place)?.closest(`[data-is]:not([id="${CSS.escape(id)}"])`)?.removeAttribute("data-is");
    if (html === null) { before?.remove(); return; }
    const { content } = made("template", { innerHTML: html });
    sayMoments(content);
    const now = content.firstElementChild;
    if (!before) { place?.insertBefore(now, next ? document.getElementById(next) : null); return; }
    if (now.dataset.is && now.dataset.is === before.dataset.is) return;
    if (before.hasAttribute("data-merge")) { merge(before, now); return; }
    const focused = before.contains(document.activeElement) ? signOf(document.activeElement) : "";
    const scrolls = from => [from, ...all("[data-scroll]", from)].filter(one => one.matches("[data-scroll]"));
    const tops = scrolls(before).map(one => one.scrollTop);
    before.replaceWith(now);
    scrolls(now).forEach((one, at) => { one.scrollTop = tops[at] ?? 0; });
    if (focused) $(focused, now)?.focus({ preventScroll: true });
  };

  // ---- the sentence: a problem stays until something else is said, anything else for a while
  let waiting = 0;
  const hush = () => { clearTimeout(waiting); $("#toast")?.remove(); };
  const wait = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { if ($("#toast:is(:hover, :focus-within)")) wait(); else hush(); }, TOAST_MS);
  };
  const say = (text, { isProblem = false, stays = false } = {}) => {
    const line = made("div", { id: "toast", className: isProblem ? "toast bad" : "toast", role: isProblem ? "alert" : "status" }, made("span", {}, text));
    hush();
    document.body.append(line);
    if (!stays) wait();
  };

  // ---- a reply is carried out
  // The composer's fields come first: what the patches say of the page, such as which conversation is open, holds for
  // them then. A mask goes before its file does: a file that goes by itself takes the mask along. While Gradio changes its
  // fields, another reply may open another conversation.
  const take = async (reply, isLate = () => false) => {
    const { patches = [], events: { inputs: changed, painted, ...events } = {} } = reply;
    if (painted) emit("painted", painted);
    if (changed) await set(changed);
    if (isLate()) return {};
    for (const patch of patches) put(patch);
    if (patches.some(patch => patch.id === "toast") && !$("#toast.bad")) wait();
    for (const [event, detail] of Object.entries(events)) emit(event, detail);
    tellOpened();
    if (patches.length) emit("patched");
    return reply;
  };
  // Another conversation is open now, or the same anew; or a new one has got its name.
  let open = { conversation: conversation(), stamp: stamp() };
  const tellOpened = () => {
    const was = open;
    open = { conversation: conversation(), stamp: stamp() || was.stamp };
    if (open.stamp !== was.stamp) emit("opened", { isOther: open.conversation !== was.conversation });
    else if (open.conversation !== was.conversation) emit("named");
  };

  // ---- `isNewest` drops the reply when the same action was asked for again meanwhile; of the conversations that are to be
  // opened, the newest is. What was asked about one that is not the open one any more would be shown in the other one.
  const OPENING = ["page.open", "gallery.open", "gallery.compare", "gallery.reference", "recipes.branch"];
  const newest = {};
  const act = async (name, args, options) => {
    const asked = OPENING.includes(name) ? "opening" : name, mine = newest[asked] = {};
    try { return await ask(name, args, { ...options, isOther: () => newest[asked] !== mine }); }
    finally { if (newest[asked] === mine) delete newest[asked]; }
  };
  const ask = async (name, args = {}, { isNewest = false, isOther }) => {
    const isOpening = OPENING.includes(name), here = pageState();
    let reply;
    try {
      const answer = await fetch(`aivista/act/${name}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ args, state: here }) });
      reply = await answer.json();
    } catch {
      say(aivista.words.say("cut"), { isProblem: true });
      return {};
    }
    const isLeft = () => name.startsWith("page.") && !isOpening && pageState().conversation !== here.conversation;
    const isLate = () => isLeft() || ((isNewest || isOpening) && isOther());
    if (isLate()) return {};
    if (reply.error) { say(reply.error, { isProblem: true }); return {}; }
    return take(reply, isLate);
  };
  // Whether what was asked for by this action has not come yet.
  const isAwaited = name => name in newest;
  // ---- Gradio's inputs are changed by Gradio: its event asks for what is other about them, and says when it is done
  const SET_MS = 2000;
  let others = {}, settled = [];
  // What the panel holds comes the first time that anything is changed.
  const set = (told = {}) => new Promise(done => {
    const { later = "{}" } = $("#composer").dataset;
    delete $("#composer").dataset.later;
    for (const [name, other] of [JSON.parse(later), told].flatMap(Object.entries)) others[name] = { ...others[name], ...other };
    settled.push(done);
    setTimeout(done, SET_MS);
    emit("set-inputs");
  });
  const inputs = names => {
    const now = others;
    others = {};
    return names.map(name => now[name] && { __type__: "update", ...now[name] });
  };
  const areSet = () => { for (const done of settled.splice(0)) done(); };
  // What nobody sees at first waits in a template.
  const unfold = box => { const folded = $(":scope > template", box); folded?.replaceWith(folded.content); };
  const remove = id => { document.getElementById(id)?.remove(); emit("patched"); };

  on("click", "[data-toast]", button => {
    const { toast, action, args } = button.dataset;
    hush();
    if (toast === "undo") act(action, JSON.parse(args));
  });
  addEventListener("aivista-save", event => {
    const { name, text } = event.detail, address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    download(address, name);
    setTimeout(() => URL.revokeObjectURL(address), TOAST_MS);
  });
  aivista.shell = { act, isAwaited, say, hush, take, remove, unfold, set, inputs, areSet, newId, pageState };
}

// Dialogs over the page: focus goes in, the rest is inert, Escape closes, focus goes back. One is open at a time.
{
  const keys = aivista.keys;
  // By the attribute of <html> that shows it: the box, its title, and what has the focus first.
  const DIALOGS = {
    settings: ["#settings-box", "set-title", "#s-key"],
    styles: ["#styles-box", "sty-title", "#sty-find"],
    prompts: ["#prompts-box", "prm-title", "#prm-find"],
    shortcuts: ["#shortcuts-box", "keys-title", "#keys [data-act=shortcuts_close]"],
  };
  // Where it comes from when it is opened; those that are not here stand in the page.
  const fillers = new Map();
  let back = null;

  const opened = () => Object.keys(DIALOGS).find(name => root.hasAttribute(`data-${name}`)) || "";
  const turn = (name, on) => {
    const [place, title, first] = DIALOGS[name], box = $(place), shell = $("#shell");
    if (!box || !shell || on === root.hasAttribute(`data-${name}`)) return;
    root.toggleAttribute(`data-${name}`, on);
    for (const [key, value] of [["role", "dialog"], ["aria-modal", "true"], ["aria-labelledby", title], ["tabindex", "-1"]]) box.setAttribute(key, value);
    shell.inert = on;
    if (on) { back = document.activeElement; ($(first) || box).focus(); } else (back?.isConnected && back !== document.body ? back : $("#box textarea"))?.focus?.();
  };
  const fills = (name, fill) => fillers.set(name, fill);
  const open = async name => {
    await fillers.get(name)?.();
    const other = opened();
    if (other && other !== name) turn(other, false);
    turn(name, true);
  };
  for (const name of ["prompts", "shortcuts"]) fills(name, () => $(DIALOGS[name][0]) || aivista.shell.act(`${name}.open`));
  const close = name => turn(name, false);

  keys.closes("dialog", () => { const name = opened(); if (name) close(name); return Boolean(name); });
  // Whoever marks words in a box and lets go beside it has not clicked there, though the browser says so.
  let pressed = null;
  addEventListener("pointerdown", event => { pressed = event.target; }, true);
  addEventListener("click", event => { if (event.target.id in DIALOGS && pressed === event.target) close(event.target.id); });
  aivista.dialogs = { open, close, opened, fills };
}

// Menus, of what can be done with one thing: beside what opened them, on a phone a sheet from below. They are walked by
// keys; whoever leaves one is where they were.
{
  const keys = aivista.keys;
  let opener = null, back = null;
  const items = menu => all("[role=menuitem]:not([hidden])", menu);
  const open = (menu, by, row = by) => {
    [opener, back] = [by, row];
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
  const close = () => { $(".menu:popover-open")?.hidePopover(); back?.focus({ preventScroll: true }); };
  addEventListener("toggle", event => { if (event.target.matches?.(".menu") && event.newState === "closed") opener?.setAttribute("aria-expanded", "false"); }, true);
  on("keydown", ".menu", (menu, event) => {
    const list = items(menu), to = keys.walk(event, "menu.walk", list, list.indexOf(document.activeElement));
    if (to >= 0) list[to].focus(); else if (keys.is(event, "menu.leave")) close(); else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
  // Firefox closes a menu that stands there before the button of the mouse is let go.
  const onContext = (selector, show) => on("contextmenu", selector, (one, event) => {
    event.preventDefault();
    if (event.buttons && event.pointerType !== "touch") addEventListener("pointerup", () => setTimeout(() => show(one)), { once: true });
    else show(one);
  });
  aivista.menus = { open, close, onContext };
}

// The rail as a drawer over the page: what lies behind it is inert while it is open, and the focus goes in.
{
  const settle = () => {
    const isOpen = root.hasAttribute("data-rail-open") && isNarrow(), behind = [$("#center"), $("#stage")];
    if (behind.every(one => one.inert === isOpen)) return;
    for (const one of behind) one.inert = isOpen;
    // Once it is seen, unless something in it has the focus by then.
    if (isOpen) requestAnimationFrame(() => { if (!document.activeElement.closest("#rail")) $("#rail [data-act=rail]")?.focus(); });
  };
  new MutationObserver(settle).observe(root, { attributeFilter: ["data-rail-open"] });
  addEventListener("resize", settle);
}

// What a screen reader says of a turn: what the agent is at, now and then, and at the end the answer, once. The thread
// itself is no live region, since an answer that streams into one is read out from its first word again and again.
{
  const REST_MS = 4000, LONGEST = 600;
  let line = null, sentence = "", said = "", saidAt = 0, isLive = false, heard = "";

  const say = text => {
    line ??= document.body.appendChild(made("div", { id: "announce", role: "status" }));
    line.textContent = text;
    [said, saidAt] = [text, performance.now()];
  };
  const answer = () => {
    const rows = all("#thread > .turn:last-child > .bot :is(.md, .pic img, .card h3, .ask)");
    const parts = rows.filter(one => !one.closest("details, [role=alert]")).map(one => (one.alt ?? one.textContent).trim());
    const text = [...new Set(parts)].filter(Boolean).join(" ");
    return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  };
  const look = () => {
    const told = $("span", live()), open = conversation();
    // A conversation that is opened is read by whoever opens it.
    if (open !== heard && !(isLive && told)) { heard = open; isLive = Boolean(told); return; }
    if (isLive && !told) say(answer());
    isLive = Boolean(told);
    sentence = told?.textContent.trim() || "";
    if (sentence && sentence !== said && performance.now() - saidAt > REST_MS) say(sentence);
  };
  setInterval(look, 500);
}

// What scripts say, in the visitor's language, and what Gradio says by itself put into it (shell/document.py).
{
  const NAMED = ["aria-label", "title"], LABELLED = "[aria-label], [title]", NOTICES = ".toast-body";
  const tables = Object.fromEntries(["script", "names", "parts"].map(name => [name, JSON.parse($("#words").dataset[name])]));
  const say = (key, values = {}) => filled(tables.script[key] ?? "", values);

  // ---- Gradio's own: names of its parts by the whole text, notices also by a part of it
  const ours = text => tables.names[text.trim()];
  const ourNotice = text => ours(text) ?? tables.parts[Object.keys(tables.parts).find(part => text.includes(part))];
  const name = element => {
    for (const attribute of NAMED) {
      const text = element.getAttribute(attribute), mine = text && ours(text);
      if (mine && mine !== text) element.setAttribute(attribute, mine);
      // The source of a message, in the place of the message itself.
      else if (text?.includes("'s message: ")) element.removeAttribute(attribute);
    }
  };
  const notice = element => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const { data } = walker.currentNode, mine = data.trim() && ourNotice(data);
      if (mine && mine !== data) walker.currentNode.data = mine;
    }
  };
  // Only what has come is looked at: a thread may be long, and an answer streams.
  const settle = from => {
    if (from.matches(LABELLED)) name(from);
    for (const element of all(LABELLED, from)) name(element);
    const around = from.closest(NOTICES);
    for (const element of around ? [around] : all(NOTICES, from)) notice(element);
  };
  new MutationObserver(records => {
    for (const { type, target, addedNodes } of records) {
      if (type === "attributes") name(target);
      else for (const node of addedNodes) if (node.nodeType === Node.ELEMENT_NODE && node.isConnected) settle(node);
    }
  }).observe(document.body, { childList: true, subtree: true, attributeFilter: ["aria-label"] });

  aivista.words = { say };
}

// The page is ready (`data-ready` on the root) once Gradio has drawn the box, and the conversation that was asked for is
// open. What is sent earlier would go into another one, and what is sent while files are on their way would go without
// them: a press of Send or of Enter is kept until then.
{
  const PATIENCE_MS = 10_000;
  const isShut = () => !root.hasAttribute("data-ready") || Boolean(aivista.uploads?.isBusy());
  let asked = null, isKept = false;

  const go = () => {
    if (!isKept || isShut()) return;
    isKept = false;
    $("#box .submit-button")?.click();
  };
  const look = () => {
    if (asked || root.hasAttribute("data-ready") || !$("#box textarea")) return;
    drawn.disconnect();
    performance.mark("aivista-ready");
    root.setAttribute("data-ready", "");
    emit("ready");
    // Once every script knows which conversation is open.
    queueMicrotask(go);
  };
  const drawn = new MutationObserver(look);
  drawn.observe($("#composer"), { childList: true, subtree: true });

  onSend(event => {
    if (!isShut()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    isKept = true;
    aivista.sending.show($("#box textarea")?.value || "");
  });
  const letGo = () => { if (isKept) aivista.sending.hide(); isKept = false; };

  // Another conversation is being opened: an answer that does not come must not keep the composer shut. What was to be sent
  // stays in the box then: where it would go is not known.
  aivista.opening = async (id, answer, isReturn = false) => {
    const mine = asked = { id };
    letGo();
    root.removeAttribute("data-ready");
    emit("leaving", { id, isReturn });
    await Promise.race([answer, new Promise(done => setTimeout(done, PATIENCE_MS))]);
    if (asked !== mine) return;
    asked = null;
    letGo();
    emit("stayed");
    look();
  };
  addEventListener("aivista-opened", () => { if (asked?.id === conversation()) asked = null; look(); });
  addEventListener("aivista-uploaded", event => { if (event.detail.isWhole) go(); else letGo(); });
}

// A picture whose file cannot be shown: the studio is asked why, and its sentence stands in the picture's place. Where the
// studio cannot be reached nothing is said of the picture.
{
  const asked = new Map();  // by address: the studio's sentence, or nothing
  const reasonOf = address => {
    if (!asked.has(address)) asked.set(address, fetch(address).then(answer => (answer.ok ? "" : answer.text()), () => ""));
    return asked.get(address);
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

// What the browser's tab says of a turn: that it is at work, and once nobody saw it end, how it did. Whoever turned the
// bell on is told by the system as well. Python writes how the newest turn of this tab ended next to the rail's stamp.
{
  const words = aivista.words;
  const KEY = "aivista-bell", NOTE_MS = 6000;
  const canTell = () => "Notification" in window;
  const isOn = () => canTell() && kept(KEY) === "on" && Notification.permission === "granted";
  const turn = isOn => { keep(KEY, isOn ? "on" : "off"); settle(); };
  const isAway = () => document.hidden || !document.hasFocus();

  // ---- the title
  let unseen = "";
  const MARKS = {
    done: title => words.say("title_done", { title }),
    failed: title => words.say("title_failed", { title }),
    waiting: title => words.say("title_waiting", { title }),
  };
  const heading = title => {
    settle();
    if (live()) return words.say("title_working", { title }) || title;
    return MARKS[unseen]?.(title) || title;
  };
  const seen = () => {
    if (isAway() || !unseen) return;
    unseen = "";
    document.title = heading(`${$("#top h1").textContent} · Aivista`);
  };
  addEventListener("focus", seen);
  document.addEventListener("visibilitychange", seen);

  // ---- the end of a turn
  const SENTENCES = {
    done: () => words.say("told_done"),
    failed: () => words.say("told_failed"),
    waiting: () => words.say("told_waiting"),
  };
  const ended = how => {
    if (!isAway() || !(how in SENTENCES)) return;
    unseen = how;
    if (!isOn()) return;
    try {
      const told = new Notification($("#top h1").textContent, { body: SENTENCES[how](), tag: "aivista-turn" });
      told.onclick = () => { window.focus(); told.close(); };
    } catch { /* this browser tells through service workers alone: the title says it */ }
  };
  addEventListener("aivista-listed", event => ended(event.detail.ended));

  // ---- the bell
  let noting = 0;
  const note = text => {
    const place = $("#bell-note");
    if (!place) return;
    place.textContent = text;
    clearTimeout(noting);
    noting = setTimeout(() => { place.textContent = ""; }, NOTE_MS);
  };
  const settle = () => {
    const bell = $("#bell");
    if (!bell) return;
    bell.hidden = !canTell();
    setAttribute(bell, "aria-checked", String(isOn()));
  };
  const ring = async () => {
    if (isOn()) { turn(false); note(words.say("bell_off")); return; }
    const answer = Notification.permission === "default" ? await Notification.requestPermission() : Notification.permission;
    turn(answer === "granted");
    note(answer === "granted" ? words.say("bell_on") : words.say("bell_blocked"));
  };
  on("click", "#bell", ring);

  aivista.told = { heading };
}
