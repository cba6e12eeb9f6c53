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
// As a press of its row in the list, of one that may not be listed.
const openConversation = id => {
  const button = made("button", { hidden: true });
  Object.assign(button.dataset, { act: id === "new" ? "new" : "open", arg: id });
  document.body.append(button);
  button.click();
  button.remove();
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
