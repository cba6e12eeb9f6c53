// Up and Down in the composer bring back what was sent before, across reloads. The draft is kept, and so is what is
// changed in a message on the way. Within several lines the keys move the caret first, and an input method has them. In
// another conversation one begins anew: the draft that was kept on the way is that of the one before.
(() => {
  const KEY = "aivista-sent", MOST = 100, LONGEST = 8000, keys = window.aivista.keys;
  const field = target => target?.matches?.("#box textarea") ? target : null;
  const read = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(KEY) || "[]");
      return Array.isArray(kept) ? kept.filter(one => typeof one === "string").slice(-MOST) : [];
    } catch { return []; }
  };
  const open = () => document.querySelector("#top h1")?.dataset.conversation || "";
  let walk = null;  // { where, sent, at, texts }: texts holds the draft and what was changed, by their place

  const keep = text => {
    walk = null;
    const words = text.slice(0, LONGEST);
    if (!words.trim()) return;
    const sent = read().filter((one, at, all) => !(at === all.length - 1 && one === words));
    try { localStorage.setItem(KEY, JSON.stringify([...sent, words].slice(-MOST))); } catch { /* full or private: this page only */ }
  };

  const put = (area, text) => {
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(area, text);
    area.dispatchEvent(new Event("input", { bubbles: true }));
    area.setSelectionRange(text.length, text.length);
  };

  // Where the caret stands among the lines as they are wrapped: a copy of the field is measured, which no property tells.
  const edges = area => {
    const style = getComputedStyle(area), mirror = document.createElement("div"), caret = document.createElement("span");
    const same = ["font", "letterSpacing", "wordSpacing", "lineHeight", "tabSize", "padding", "borderWidth", "boxSizing", "textIndent"];
    for (const name of same) mirror.style[name] = style[name];
    Object.assign(mirror.style, { position: "absolute", visibility: "hidden", whiteSpace: "pre-wrap", overflowWrap: "break-word", width: `${area.clientWidth}px`, borderStyle: "solid" });
    caret.textContent = "\u200b";
    const begin = caret.cloneNode(true), end = caret.cloneNode(true);
    mirror.append(begin, area.value.slice(0, area.selectionStart), caret, area.value.slice(area.selectionStart), end);
    document.body.append(mirror);
    const place = { first: caret.offsetTop <= begin.offsetTop + 2, last: caret.offsetTop >= end.offsetTop - 2 };
    mirror.remove();
    return place;
  };

  const step = (area, by) => {
    if (walk === null) { const sent = read(); walk = { where: open(), sent, at: sent.length, texts: new Map() }; }
    const to = walk.at + by;
    if (to < 0 || to > walk.sent.length) return false;
    walk.texts.set(walk.at, area.value);
    walk.at = to;
    put(area, walk.texts.get(to) ?? walk.sent[to] ?? "");
    return true;
  };

  addEventListener("keydown", event => {
    const area = field(event.target);
    if (!area) return;
    if (keys.is(event, "composer.send")) { keep(area.value); return; }
    const by = { earlier: -1, later: 1 }[keys.find(event, "composer.recall")];
    if (!by || area.selectionStart !== area.selectionEnd) return;
    if (walk?.where !== open()) walk = null;
    if (by > 0 && walk === null) return;
    const { first, last } = edges(area);
    if ((by < 0 ? first : last) && step(area, by)) event.preventDefault();
  }, true);
  addEventListener("click", event => {
    if (event.target.closest?.("#box .submit-button")) keep(document.querySelector("#box textarea")?.value || "");
  }, true);
})();
