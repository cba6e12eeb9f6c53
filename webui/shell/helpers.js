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
const download = (href, name = "") => made("a", { href, download: name }).click();
const setText = (element, text) => { if (element && element.textContent !== text) element.textContent = text; };
const setAttribute = (element, name, value) => { if (element && element.getAttribute(name) !== value) element.setAttribute(name, value); };
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
// As a press of its row in the list, of one that may not be listed.
const openConversation = id => {
  const button = made("button", { hidden: true });
  Object.assign(button.dataset, { act: id === "new" ? "new" : "open", arg: id });
  document.body.append(button);
  button.click();
  button.remove();
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

// ---- what follows from what the page has become: asked once for many changes, and not with the next frame, since a tab
// that nobody looks at draws none
const LATER_MS = 16;
const looks = [];
const follow = look => { looks.push(look); look(); };
let isLooking = false;
new MutationObserver(() => {
  if (isLooking) return;
  isLooking = true;
  setTimeout(() => { isLooking = false; for (const look of looks) look(); }, LATER_MS);
}).observe(document.body, { childList: true, subtree: true, attributeFilter: ["data-conversation", "data-opened", "data-tools", "data-pair", "data-difference", "src"] });

// ---- words into the box, where Gradio hears of them
const setWords = (area, words) => {
  Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(area, words);
  area.dispatchEvent(new Event("input", { bubbles: true }));
};

// ---- a message is sent: before Gradio hears of it
const onSend = then => {
  on("click", "#box .submit-button", (_, event) => then(event), true);
  on("keydown", "#box textarea", (_, event) => { if (aivista.keys.is(event, "composer.send")) then(event); }, true);
};
