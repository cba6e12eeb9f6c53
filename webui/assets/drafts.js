// What was typed and not sent is there again after a reload, in every conversation: its words, the chips and the marked
// pictures. It is kept by this browser alone, for a month, and goes when the message is sent. Files are not part of it.
(() => {
  const root = document.documentElement;
  const $ = selector => document.querySelector(selector);
  const PREFIX = "aivista-draft ", NEW = "new", LOOK_MS = 400, SETTLE_MS = 80, ALONG_MS = 10000;
  const MOST = 40, LONGEST = 20000, LIFE_MS = 30 * 24 * 3600 * 1000;
  const area = () => $("#box textarea"), text = () => area()?.value || "";
  const open = () => $("#top h1")?.dataset.conversation || "";
  const wire = name => $(`#${name} :is(textarea, input)`)?.value || "";

  // ---- on the shelf
  const read = where => { try { return JSON.parse(localStorage.getItem(PREFIX + where) || "null"); } catch { return null; } };
  const forget = where => { try { localStorage.removeItem(PREFIX + where); } catch { /* nothing is kept here */ } };
  const write = (where, draft) => { try { localStorage.setItem(PREFIX + where, JSON.stringify(draft)); } catch { /* full or private: this page only */ } };
  const sweep = () => {
    try {
      const names = Object.keys(localStorage).filter(name => name.startsWith(PREFIX));
      const kept = names.map(name => [name, read(name.slice(PREFIX.length))?.at || 0]).sort((one, other) => other[1] - one[1]);
      for (const [name] of kept.filter(([, at], place) => place >= MOST || Date.now() - at > LIFE_MS)) localStorage.removeItem(name);
    } catch { /* nothing is kept here */ }
  };

  // ---- from the composer: what it holds now. Chips alone are no draft; beside words they are part of it.
  let where = "", last = "", isSending = false, hasBegun = false, isMoving = false, goesAlongUntil = 0;
  const now = () => {
    const chips = { ...window.aivistaChips.values }, references = wire("references").split(/\s+/).filter(Boolean);
    const draft = { text: text().slice(0, LONGEST), chips, editing: wire("editing"), references, roles: wire("roles") };
    return draft.text.trim() || draft.editing || references.length ? draft : null;
  };
  const keep = () => {
    if (!where || isSending || isMoving || open() !== where) return;
    const draft = now(), told = JSON.stringify(draft);
    if (told === last) return;
    last = told;
    if (draft) write(where, { ...draft, at: Date.now() }); else forget(where);
  };

  // ---- into the composer
  const put = words => {
    const field = area();
    if (!field || field.value === words) return;
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(field, words);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const bring = (conversation, draft) => {
    put(draft?.text || "");
    const { chips, editing, references = [], roles } = draft || {};
    const isChanged = chips && Object.entries(chips).some(([name, value]) => window.aivistaChips.values[name] !== value);
    if (!isChanged && !editing && !references.length) return;
    const told = { conversation: conversation === NEW ? "" : conversation, chips: isChanged ? chips : {}, editing: editing || "", references, roles: roles || "" };
    // The way to Python stands a moment after the page does.
    const ask = (tries = 40) => window.aivistaDraft ? window.aivistaDraft.restore(told) : tries && setTimeout(ask, 100, tries - 1);
    ask();
  };

  // ---- another conversation: its own draft comes, unless Python has put words into the box on the way
  const moved = () => {
    const here = open();
    if (!here || here === where) return;
    const from = where, left = text();
    where = here;
    isSending = false;
    // The first message of a new conversation gives it its name: whoever goes on typing stays where they are.
    if (from === NEW && hasBegun) { hasBegun = false; last = ""; forget(NEW); return; }
    hasBegun = false;
    const goesAlong = Date.now() < goesAlongUntil;
    goesAlongUntil = 0;
    if (goesAlong) { last = ""; forget(from); return; }
    if (from) { const draft = JSON.parse(last || "null"); if (draft) write(from, { ...draft, at: Date.now() }); }
    const settled = () => {
      if (open() !== here) return;
      if (!root.hasAttribute("data-ready")) { setTimeout(settled, SETTLE_MS); return; }
      last = "";
      isMoving = false;
      if (text() === left && (!left || from)) bring(here, read(here));
    };
    // Python fills the page in several strokes; what is written between them may be written over.
    isMoving = true;
    setTimeout(settled, SETTLE_MS);
  };

  // ---- sent: what it was is in the thread, or comes back into the box when the turn fails
  const sent = () => {
    if (!where) return;
    isSending = true;
    hasBegun = where === NEW;
    last = "";
    forget(where);
    // Until Python has emptied the box, what stands in it was sent already.
    const wait = tries => { if (!text() || !tries) isSending = false; else setTimeout(wait, 100, tries - 1); };
    setTimeout(wait, 100, 50);
  };
  addEventListener("keydown", event => {
    if (event.target.matches?.("#box textarea") && window.aivistaKeys.is(event, "composer.send") && (text().trim() || $("#box .thumbnail-item"))) sent();
  }, true);
  addEventListener("click", event => { if (event.target.closest?.("#box .submit-button") && (text().trim() || $("#box .thumbnail-item"))) sent(); }, true);

  // Pictures of elsewhere begin a conversation: the words that were written for them go there, too.
  window.aivistaDrafts = { goAlong: () => { goesAlongUntil = Date.now() + ALONG_MS; } };

  const watch = () => {
    const top = $("#top");
    if (!top) { setTimeout(watch, 200); return; }
    sweep();
    new MutationObserver(moved).observe(top, { childList: true, subtree: true, attributeFilter: ["data-conversation"] });
    moved();
    setInterval(keep, LOOK_MS);
    addEventListener("pagehide", keep);
    document.addEventListener("visibilitychange", keep);
  };
  if (document.body) watch(); else addEventListener("DOMContentLoaded", watch);
})();
