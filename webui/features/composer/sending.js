// What is sent is seen at once, and is one turn however often it is pressed: it stands in the thread before Python has
// heard of it, and a press that was not taken yet has the same id as the one before.
{
  const LONGEST_MS = 60_000, MOST_KEPT = 20, LOOK_MS = 200;
  const text = () => $("#box textarea")?.value || "";
  const files = () => all("#box .thumbnail-item img").map(one => one.src).join(" ");
  let press = null;  // what was pressed last and is not taken yet
  let left = "";  // what was taken out of the box last
  let unwatch = () => {};

  const hide = () => { unwatch(); $("#turn-now[data-sending]")?.remove(); };
  const show = words => {
    hide();
    const list = $("#thread"), pictures = all("#box .thumbnail-item img").map(one => made("img", { src: one.src, alt: "" }));
    if (!list || !(words.trim() || pictures.length)) return;
    const said = words.trim() ? [made("div", { className: "md" }, made("p", { className: "own", dir: "auto", textContent: words }))] : [];
    const files = pictures.length ? [made("div", { className: "sent-files" }, ...pictures)] : [];
    $("#turn-now")?.remove();
    const turn = made("article", { id: "turn-now", className: "turn" }, made("div", { id: "turn-now-said", className: "user" }, ...files, ...said), made("div", { id: "turn-now-told", className: "bot" }));
    Object.assign(turn.dataset, { sending: "", merge: "" });
    list.append(turn);
    // Nothing comes of a turn that fails before it stands there: its words come back into the box.
    left = "";
    const look = setInterval(() => { if (left === words && text() === words) hide(); }, LOOK_MS);
    const last = setTimeout(hide, LONGEST_MS);
    unwatch = () => { clearInterval(look); clearTimeout(last); };
  };
  onSend(event => {
    if (!(text().trim() || files())) return;
    if (aivista.painter?.isUnset()) { event.preventDefault(); event.stopImmediatePropagation(); return; }
    const isSame = press && press.text === text() && press.files === files();
    const seen = all("#thread > .turn:not(#turn-now)").at(-1)?.id.slice("turn-".length) || "";
    press = { id: isSame ? press.id : aivista.shell.newId(), text: text(), files: files(), seen, from: conversation(), stamp: stamp() };
    show(press.text);
  });

  // All that goes along with the words. Python takes what it was sent under one name once, begins one new conversation for
  // all that is said in it, and holds words back that were said to a conversation which has gone on elsewhere.
  const page = aivista.shell.newId();
  const composed = () => JSON.stringify({
    ...aivista.shell.place(), mask: $("#mask").value, expand: $("#expand").value, request: press?.id || "", seen: press?.seen || "",
    begun: `${page} ${stamp()}`, price: $("#cost .price")?.dataset.told || "",
  });

  // ---- taken: what was sent leaves the composer, and is kept until its turn is over; words that were typed behind it
  // meanwhile stay, and so does a file that came
  let kept = [];
  const paint = fields => dispatchEvent(new CustomEvent("aivista-painted", { detail: fields }));
  const taken = (mine, [message, fields]) => {
    if (press?.id !== mine.id) return;
    press = null;
    const { mask, expand, editing, references } = JSON.parse(fields), { id, from, stamp } = mine;
    kept = [...kept, { id, from, stamp, message, mask, expand, editing, references }].slice(-MOST_KEPT);
    // The mask before its file: a file that goes by itself takes the mask along.
    if ((mask || expand) && $("#mask").value === mask && $("#expand").value === expand) paint({ mask: "", expand: "" });
    if (text().startsWith(mine.text)) aivista.drafts.put(text().slice(mine.text.length));
    left = mine.text;
    if (mine.files && files() === mine.files) aivista.shell.set({ box: { value: { text: text(), files: [] } } });
  };
  // ---- answered: whoever went elsewhere meanwhile stays there, and finds the turn in its conversation
  const isElsewhere = ({ from, stamp: was }, told) => conversation() !== told && (conversation() !== from || (stamp() && stamp() !== was));
  const answered = ({ patches, events }) => {
    const { sent, thread, over = {} } = events, mine = kept.find(one => one.id === sent);
    if (!mine || !isElsewhere(mine, thread?.conversation)) return aivista.shell.take({ patches, events });
    return aivista.shell.take({ patches: patches.filter(one => one.id === "toast"), events: { over, listed: {} } });
  };
  // ---- over: what was sent for nothing comes back, unless something else stands there by now
  const back = ({ message: { text: words, files: paths }, mask, expand }) => {
    const there = text(), isFree = (!there && !files()) || (there === words && all("#box .thumbnail-item").length === paths.length);
    const isUnpainted = ["", mask].includes($("#mask").value) && ["", expand].includes($("#expand").value);
    if (isUnpainted && (mask || expand)) paint({ mask, expand });
    if (isFree && (words || paths.length)) aivista.shell.set({ box: { value: { text: words, files: paths.map(one => ({ ...one, url: new URL(`gradio_api/file=${one.path}`, document.baseURI).href })) } } });
  };
  const over = (request, how) => {
    const mine = kept.find(one => one.id === request);
    if (!mine) return;
    kept = kept.filter(one => one !== mine);
    const place = aivista.shell.place(), isMarked = place.editing === mine.editing && place.references.join() === mine.references.join();
    if (how === "failed") back(mine);
    else if (how === "refused") back({ ...mine, mask: "", expand: "" });
    else if (how === "unused" && (mine.mask || mine.expand)) back({ ...mine, message: { text: "", files: [] } });
    else if (isMarked) aivista.shell.take({ patches: [{ id: "ctx", html: "" }] });
  };
  addEventListener("aivista-over", ({ detail }) => Object.entries(detail).forEach(one => over(...one)));

  // Gradio says to nobody that an event was not answered, or answered with a failure.
  const failed = told => {
    hide();
    const why = told.error || told.detail;
    aivista.shell.say(typeof why === "string" ? why : aivista.words.say("cut"), { isProblem: true });
  };
  const plain = window.fetch;
  window.fetch = async (resource, init) => {
    if (!new URL(resource.url ?? resource, location.href).pathname.endsWith("/gradio_api/run/predict")) return plain(resource, init);
    const mine = press && String(init?.body).includes(press.id) ? press : null;
    try {
      const answer = await plain(resource, init);
      if (!answer.ok) failed(await answer.clone().json().catch(() => ({})));
      else if (mine) taken(mine, JSON.parse(init.body).data);
      return answer;
    } catch (error) {
      failed({});
      throw error;
    }
  };
  aivista.sending = { show, hide, composed, answered, kept: () => kept.map(one => one.id) };
}

// What was typed and not sent is there again after a reload, in every conversation: its words, the chips and the marked
// pictures. It is kept by this browser alone, for a month, and goes when the message is sent. Files are not part of it:
// they are in attachments.js, for as long as the page is open.
{
  const PREFIX = "aivista-draft ", EARLY = "aivista-early", NEW = "new", LOOK_MS = 400, SETTLE_MS = 80, ALONG_MS = 10000, SHOWN_MS = 3000;
  const MOST = 40, LONGEST = 100_000, LIFE_MS = 30 * 24 * 3600 * 1000;
  const shell = aivista.shell;
  const area = () => $("#box textarea"), text = () => area()?.value || "";

  // ---- on the shelf
  const read = where => { try { return JSON.parse(kept(PREFIX + where)); } catch { return null; } };
  const forget = where => { try { localStorage.removeItem(PREFIX + where); } catch { /* nothing is kept here */ } };
  const write = (where, draft) => keep(PREFIX + where, JSON.stringify(draft));
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
    && Object.entries(chips).every(([name, value]) => aivista.chips.values[name] === value);
  const now = () => {
    if (awaited && (Date.now() > awaited.until || areShown(awaited.marks))) awaited = null;
    const { chips, editing, references, roles } = shell.place(), marks = awaited?.marks || { chips: { ...chips }, editing, references, roles };
    const draft = { text: text().slice(0, LONGEST), ...marks };
    return draft.text.trim() || draft.editing || draft.references.length ? draft : null;
  };
  const look = () => {
    if (!where || isSending || isMoving || leaving !== null || conversation() !== where) return;
    const draft = now(), told = JSON.stringify(draft);
    if (told === last) return;
    last = told;
    if (draft) write(where, { ...draft, at: Date.now() }); else forget(where);
  };

  // ---- into the composer
  const put = words => {
    const field = area();
    if (field && field.value !== words) setWords(field, words);
  };
  const bring = (to, draft) => {
    put(draft?.text || "");
    const { chips = {}, editing = "", references = [], roles: kept = {} } = draft || {};
    // Drafts of an earlier version hold them as JSON.
    const roles = typeof kept === "string" ? JSON.parse(kept || "{}") : kept;
    const isChanged = Object.entries(chips).some(([name, value]) => aivista.chips.values[name] !== value);
    if (!isChanged && !editing && !references.length) return;
    const told = { conversation: to === NEW ? "" : to, chips: isChanged ? chips : {}, editing, references, roles };
    const mine = awaited = { marks: { chips, editing, references, roles }, until: Infinity };
    aivista.shell.act("page.restore", told).then(() => { mine.until = Date.now() + SHOWN_MS; });
  };

  // ---- another conversation is asked for: its box is empty from now on, and what is typed is typed for that one
  const leave = to => {
    if (!where || to === where || leaving !== null) return;
    look();
    goesAlongUntil = 0;
    leaving = text();
    put("");
    if (!isSending) aivista.attached.leave(where);
  };
  // It has not come: what stood in the box is there again, before what was typed meanwhile.
  const stay = () => {
    if (leaving === null) return;
    put(leaving + text());
    leaving = null;
    aivista.attached.arrive(where);
  };

  // ---- another conversation: its own draft comes, before words that are in the box for it already
  const arrive = (here, left) => {
    const draft = read(here), typed = text() === left ? "" : text();
    bring(here, { ...draft, text: [draft?.text, early(), typed].filter(Boolean).join("\n") });
    aivista.attached.arrive(here);
  };
  const moved = () => {
    const here = conversation(), before = seen;
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
  onSend(() => {
    if (!text().trim() && !$("#box .thumbnail-item")) return;
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
  });
  // What comes back is in the box again, which may never have been seen empty.
  addEventListener("aivista-over", () => { isSending = false; });

  // Pictures of elsewhere begin a conversation: the words that were written for them go there, too.
  aivista.drafts = { goAlong: () => { goesAlongUntil = Date.now() + ALONG_MS; }, leave, stay, put };

  sweep();
  new MutationObserver(moved).observe($("#top"), { childList: true, subtree: true, attributeFilter: ["data-conversation"] });
  moved();
  setInterval(look, LOOK_MS);
  // What Python has not taken by now may never have been sent.
  addEventListener("pagehide", () => { isSending = false; look(); });
  document.addEventListener("visibilitychange", look);
}
