// What was typed and not sent is there again after a reload, in every conversation: its words, the chips and the marked
// pictures. It is kept by this browser alone, for a month, and goes when the message is sent. Files are not part of it:
// they are in attached.js, for as long as the page is open.
(() => {
  const root = document.documentElement;
  const $ = selector => document.querySelector(selector);
  const PREFIX = "aivista-draft ", EARLY = "aivista-early", NEW = "new", LOOK_MS = 400, SETTLE_MS = 80, ALONG_MS = 10000, SHOWN_MS = 3000;
  const MOST = 40, LONGEST = 100_000, LIFE_MS = 30 * 24 * 3600 * 1000;
  const shell = window.aivista.shell;
  const area = () => $("#box textarea"), text = () => area()?.value || "";
  const open = () => $("#top h1")?.dataset.conversation || "";
  // Python writes it when it opens a conversation, not when it gives a new one its name.
  const stamp = () => $("#top h1")?.dataset.opened || "";

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

  // What was typed into a page that was left before Python had filled it: Gradio loads a page once more by itself when the
  // connection is back.
  const early = () => { try { const words = sessionStorage.getItem(EARLY); sessionStorage.removeItem(EARLY); return words; } catch { return ""; } };
  addEventListener("pagehide", () => { try { if (!where && text()) sessionStorage.setItem(EARLY, text()); } catch { /* nothing is kept here */ } });

  // ---- from the composer: what it holds now. Chips alone are no draft; beside words they are part of it.
  let where = "", seen = "", last = "", isSending = false, isMoving = false, moves = 0, goesAlongUntil = 0;
  let leaving = null;  // what the box held when another conversation was asked for, until that one is there
  let awaited = null;  // chips and marks on their way back: until they are shown, a draft has them all the same
  const areShown = ({ chips, editing, references }) => shell.place().editing === editing && shell.place().references.join() === references.join()
    && Object.entries(chips).every(([name, value]) => window.aivista.chips.values[name] === value);
  const now = () => {
    if (awaited && (Date.now() > awaited.until || areShown(awaited.marks))) awaited = null;
    const { chips, editing, references, roles } = shell.place(), marks = awaited?.marks || { chips: { ...chips }, editing, references, roles };
    const draft = { text: text().slice(0, LONGEST), ...marks };
    return draft.text.trim() || draft.editing || draft.references.length ? draft : null;
  };
  const keep = () => {
    if (!where || isSending || isMoving || leaving !== null || open() !== where) return;
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
    const { chips = {}, editing = "", references = [], roles: kept = {} } = draft || {};
    // Drafts of an earlier version hold them as JSON.
    const roles = typeof kept === "string" ? JSON.parse(kept || "{}") : kept;
    const isChanged = Object.entries(chips).some(([name, value]) => window.aivista.chips.values[name] !== value);
    if (!isChanged && !editing && !references.length) return;
    const told = { conversation: conversation === NEW ? "" : conversation, chips: isChanged ? chips : {}, editing, references, roles };
    const mine = awaited = { marks: { chips, editing, references, roles }, until: Infinity };
    window.aivista.shell.act("page.restore", told).then(() => { mine.until = Date.now() + SHOWN_MS; });
  };

  // ---- another conversation is asked for: its box is empty from now on, and what is typed is typed for that one
  const leave = to => {
    if (!where || to === where || leaving !== null) return;
    keep();
    goesAlongUntil = 0;
    leaving = text();
    put("");
    if (!isSending) window.aivista.attached.leave(where);
  };
  // It has not come: what stood in the box is there again, before what was typed meanwhile.
  const stay = () => {
    if (leaving === null) return;
    put(leaving + text());
    leaving = null;
    window.aivista.attached.arrive(where);
  };

  // ---- another conversation: its own draft comes, before words that are in the box for it already
  const arrive = (here, left) => {
    const draft = read(here), typed = text() === left ? "" : text();
    bring(here, { ...draft, text: [draft?.text, early(), typed].filter(Boolean).join("\n") });
    window.aivista.attached.arrive(here);
  };
  const moved = () => {
    const here = open(), before = seen;
    if (!here) return;
    seen = stamp() || seen;
    if (here === where) { if (seen !== before) stay(); return; }
    const from = where, wasLeft = leaving !== null || isMoving, move = ++moves;
    where = here;
    // The first message of a new conversation gives it its name: whoever goes on typing stays where they are.
    if (from === NEW && seen === before) { isMoving = false; last = ""; forget(NEW); return; }
    isSending = false;
    leaving = awaited = null;
    const goesAlong = Date.now() < goesAlongUntil;
    goesAlongUntil = 0;
    if (goesAlong) { isMoving = false; last = ""; forget(from); return; }
    const draft = wasLeft ? null : JSON.parse(last || "null"), left = from && !wasLeft ? text() : "";
    if (from && draft) write(from, { ...draft, at: Date.now() });
    last = "";
    const settled = () => {
      if (move !== moves) return;
      if (!root.hasAttribute("data-ready")) { setTimeout(settled, SETTLE_MS); return; }
      last = "";
      isMoving = false;
      arrive(here, left);
    };
    // Python fills the page in several strokes; what is written between them may be written over.
    isMoving = true;
    setTimeout(settled, SETTLE_MS);
  };

  // ---- sent: what it was is in the thread, or comes back into the box when the turn fails
  const sent = () => {
    // A press that was kept comes before this script has seen which conversation is open now.
    moved();
    if (!where || !navigator.onLine) return;
    isSending = true;
    last = "";
    awaited = null;
    forget(where);
    // Until Python has emptied the box, what stands in it was sent already.
    const wait = tries => { if (!text() || !tries) isSending = false; else setTimeout(wait, 100, tries - 1); };
    setTimeout(wait, 100, 50);
  };
  // What comes back is in the box again, which may never have been seen empty.
  addEventListener("aivista-over", () => { isSending = false; });
  addEventListener("keydown", event => {
    if (event.target.matches?.("#box textarea") && window.aivista.keys.is(event, "composer.send") && (text().trim() || $("#box .thumbnail-item"))) sent();
  }, true);
  addEventListener("click", event => { if (event.target.closest?.("#box .submit-button") && (text().trim() || $("#box .thumbnail-item"))) sent(); }, true);

  // Pictures of elsewhere begin a conversation: the words that were written for them go there, too.
  window.aivista.drafts = { goAlong: () => { goesAlongUntil = Date.now() + ALONG_MS; }, leave, stay, put };

  const watch = () => {
    const top = $("#top");
    if (!top) { setTimeout(watch, 200); return; }
    sweep();
    new MutationObserver(moved).observe(top, { childList: true, subtree: true, attributeFilter: ["data-conversation"] });
    moved();
    setInterval(keep, LOOK_MS);
    // What Python has not taken by now may never have been sent.
    addEventListener("pagehide", () => { isSending = false; keep(); });
    document.addEventListener("visibilitychange", keep);
  };
  if (document.body) watch(); else addEventListener("DOMContentLoaded", watch);
})();
