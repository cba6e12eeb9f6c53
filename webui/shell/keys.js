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
