// The list above the box while one types: after # or @ the pictures of the conversation, after / prompts and styles.
(() => {
  const { act, remove } = window.aivista.shell, keys = window.aivista.keys;
  const $ = selector => document.querySelector(selector);
  const field = () => $("#box textarea");
  // A slash within an address or a fraction begins nothing, nor does an @ within a name of a mailbox.
  const SIGN = /(?:(?:^|[\s(（，。])([/／])|(?:^|[^\w/&])([#＃@＠])(?![#＃]))([^\s/／#＃@＠]{0,40})$/u;
  const MOST_PROMPTS = 5, SHOWN = 200, GAP_PX = 8, WIDE_PX = 420;
  let asked = "", offered = [];

  const list = () => $("#suggestions");
  const options = () => [...document.querySelectorAll("#suggestions [role=option]")];
  const chosen = () => $("#suggestions [aria-selected=true]");
  const close = () => {
    asked = "";
    const box = field();
    for (const name of ["aria-activedescendant", "aria-controls", "aria-autocomplete"]) box?.removeAttribute(name);
    if (list()) remove("suggestions");
  };
  const choose = option => {
    for (const one of options()) one.setAttribute("aria-selected", String(one === option));
    field().setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  };

  // What stands around the box cuts off whatever is not fixed.
  const place = () => {
    const shown = list(), box = $("#composer").getBoundingClientRect();
    Object.assign(shown.style, { left: `${box.left + GAP_PX}px`, width: `${Math.min(WIDE_PX, box.width - 2 * GAP_PX)}px`, bottom: `${innerHeight - box.top + GAP_PX}px` });
  };
  const prompts = query => {
    try {
      const kept = JSON.parse(localStorage.getItem("aivista-starred") || "[]").filter(one => typeof one === "string" && one.toLowerCase().includes(query));
      return kept.slice(0, MOST_PROMPTS);
    } catch { return []; }
  };
  const look = async () => {
    const box = field();
    const found = box && document.activeElement === box && box.selectionStart === box.selectionEnd ? SIGN.exec(box.value.slice(0, box.selectionStart)) : null;
    if (!found) { if (asked) close(); return; }
    const [, slash, , query] = found, kind = slash ? "styles" : "pictures", wanted = `${kind} ${query}`;
    if (wanted === asked) return;
    asked = wanted;
    offered = slash ? prompts(query.toLowerCase()) : [];
    await act(`suggestions.${kind}`, { query, prompts: offered.map(one => one.slice(0, SHOWN)) }, { isNewest: true });
    // Left meanwhile, or the whole name stands there already.
    const all = options(), isWhole = all.length === 1 && all[0].dataset.insert === `#${query}`;
    if (asked !== wanted || isWhole || document.activeElement !== field()) { if (list()) remove("suggestions"); return; }
    if (!all.length) return;
    place();
    for (const [name, value] of [["aria-autocomplete", "list"], ["aria-controls", "suggestions"]]) field().setAttribute(name, value);
    // Enter after a picture's name sends the message, unless one chose from the list.
    if (slash) choose(all[0]);
  };
  const pick = option => {
    const box = field(), at = box.selectionStart, found = SIGN.exec(box.value.slice(0, at));
    if (!found) { close(); return; }
    const [, slash, sign, query] = found, begin = at - query.length - (slash || sign).length;
    const text = option.dataset.insert || offered[options().indexOf(option)], end = begin + text.length + 1;
    const after = box.value.slice(at);
    close();
    window.aivista.aids.put(`${box.value.slice(0, begin)}${text} ${after.replace(/^ /, "")}`, [end, end]);
  };

  let waiting = 0;
  const soon = () => { clearTimeout(waiting); waiting = setTimeout(look); };
  addEventListener("input", event => { if (event.target === field() && !event.isComposing) soon(); });
  document.addEventListener("selectionchange", () => { if (asked && document.activeElement === field()) soon(); });
  addEventListener("resize", () => { if (list()) place(); });
  addEventListener("focusout", event => { if (event.target === field()) close(); });
  // The box keeps the focus.
  addEventListener("pointerdown", event => { if (event.target.closest?.("#suggestions")) event.preventDefault(); });
  addEventListener("click", event => { const option = event.target.closest?.("#suggestions [role=option]"); if (option) pick(option); });
  // Before whatever else hears of keys in the box: it sends on Enter, and brings earlier prompts with the arrows.
  addEventListener("keydown", event => {
    if (event.target !== field() || !list()) return;
    const all = options(), to = keys.walk(event, "suggestions.walk", all, chosen() ? all.indexOf(chosen()) : -1);
    if (to >= 0) choose(all[to]);
    else if (keys.is(event, "suggestions.take") && chosen()) pick(chosen());
    else if (keys.is(event, "suggestions.complete")) pick(chosen() || all[0]);
    else if (keys.is(event, "suggestions.leave")) { const left = asked; close(); asked = left; }
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
})();
