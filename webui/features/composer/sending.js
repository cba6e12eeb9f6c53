// Uploads into the message, a row each with progress and cancel. Gradio sends all files of one drop in one request and
// reports no progress; here each file is sent by itself, and Gradio gets the list of those that arrived.
{
  const AT_ONCE = 3, QUIET_MS = 250, TOLD_MS = 12000, TAKEN_MS = 25, TAKEN_TRIES = 120;
  const template = () => $("#tpl-upload");
  const limit = () => Number(template()?.dataset.most) || 20;  // megabytes
  const size = bytes => bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.max(1, Math.round(bytes / 1e3))} kB`;
  const isPicture = file => file.type.startsWith("image/") || /\.(heic|heif|avif)$/i.test(file.name);

  const list = () => {
    const found = $("#uploads");
    if (found) return found;
    const empty = made("ul", { id: "uploads" });
    $("#box")?.before(empty);
    return empty;
  };
  const tell = (key, values) => {
    const row = made("li", { className: "bad", role: "alert" }, filled(template()?.dataset[key] || "", values));
    list().append(row);
    setTimeout(() => row.remove(), TOLD_MS);
  };
  const short = name => name.length > 40 ? `${name.slice(0, 24)}…${name.slice(-12)}` : name;
  const admits = file => {
    if (!isPicture(file)) { tell("kind", { name: short(file.name) }); return false; }
    if (file.size > limit() * 2 ** 20) {
      tell("large", { name: short(file.name), megabytes: Math.ceil(file.size / 2 ** 20), limit: limit() });
      return false;
    }
    return true;
  };

  // ---- a row: shown only for uploads that take a moment
  const rowOf = (file, cancel) => {
    const row = cloned(template());
    if (!row) return { at: () => {}, end: () => {} };
    const bar = $("progress", row), at = $(".at", row);
    $(".name", row).textContent = short(file.name);
    $("button", row).addEventListener("click", cancel);
    bar.setAttribute("aria-label", filled(bar.getAttribute("aria-label"), { name: file.name }));
    bar.value = 0;
    at.textContent = size(file.size);
    const late = setTimeout(() => list().append(row), QUIET_MS);
    return {
      at: share => {
        // Everything is sent, and the server has yet to answer: the bar shows waiting.
        if (share >= 1) bar.removeAttribute("value"); else bar.value = Math.round(share * 100);
        at.textContent = `${Math.round(share * 100)} %`;
      },
      end: () => { clearTimeout(late); row.remove(); },
    };
  };

  // ---- one file: resolves to a list with its path when the server answers, to an empty one when it was cancelled or
  // failed
  const sendOne = (address, file, init) => new Promise(resolve => {
    const request = new XMLHttpRequest(), form = new FormData();
    const row = rowOf(file, () => request.abort());
    const done = paths => { row.end(); resolve(paths); };
    const failed = key => { isWhole = false; tell(key, { name: short(file.name), megabytes: Math.ceil(file.size / 2 ** 20), limit: limit() }); done([]); };
    form.append("files", file, file.name);
    request.open("POST", address);
    request.withCredentials = init.credentials === "include";
    for (const [name, value] of new Headers(init.headers || {})) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", event => { if (event.lengthComputable) row.at(event.loaded / event.total); });
    request.addEventListener("abort", () => done([]));
    request.addEventListener("error", () => failed("failed"));
    request.addEventListener("load", () => {
      if (request.status === 413) { failed("large"); return; }
      if (request.status === 507 || request.status === 503) { failed("full"); return; }
      try { done(request.status === 200 ? JSON.parse(request.responseText) : (failed("failed"), [])); } catch { failed("failed"); }
    });
    request.send(form);
  });

  // ---- the number of drops in progress: Send waits until their files are in the box
  let running = 0, isWhole = true;
  const thumbs = () => all("#box .thumbnail-item").length;
  const arrived = (before, count, tries = TAKEN_TRIES) => {
    if (count && tries && thumbs() < before + count) { setTimeout(arrived, TAKEN_MS, before, count, tries - 1); return; }
    running -= 1;
    if (running) return;
    emit("uploaded", { isWhole });
    isWhole = true;
  };
  const sendAll = async (address, files, init) => {
    running += 1;
    const answers = files.map(() => []), queue = [...files.keys()];
    const work = async () => { for (let at = queue.shift(); at !== undefined; at = queue.shift()) answers[at] = await sendOne(address, files[at], init); };
    try { await Promise.all(Array.from({ length: Math.min(AT_ONCE, files.length) }, work)); }
    finally { arrived(thumbs(), answers.flat().length); }
    return new Response(JSON.stringify(answers.flat()), { status: 200, headers: { "Content-Type": "application/json" } });
  };

  const plain = window.fetch;
  window.fetch = (resource, init = {}) => {
    const files = init.body instanceof FormData ? init.body.getAll("files").filter(one => one instanceof File) : [];
    if (!files.length || init.method !== "POST") return plain(resource, init);
    const address = new URL(resource instanceof Request ? resource.url : resource, location.href);
    if (!address.pathname.endsWith("/gradio_api/upload")) return plain(resource, init);
    // Gradio would follow one request by this name; there are several now.
    if (files.length > 1) address.searchParams.delete("upload_id");
    return sendAll(address, files, init);
  };
  aivista.uploads = { isPicture, admits, isBusy: () => running > 0 };
}

// Pictures dropped or pasted anywhere on the page go into the message; while they are dragged, a target shows where
// they will go. The stage has drops of its own: the painter takes pictures (features/viewer/painter.js), the Files tab
// takes any file (features/files). A drop elsewhere must not make the browser leave the page either.
//
// Files that cannot be added are reported in the composer at once, instead of failing one by one later. This script
// runs before the others that listen for the same drops, and passes on accepted files as a drop on the box.
{
  const hasFiles = event => [...(event.dataTransfer?.types || [])].includes("Files");
  const isBlocked = () => Boolean(aivista.dialogs?.opened()) || Boolean($("dialog[open]"));
  const ours = new WeakSet();

  // ---- in
  const admitted = files => files.filter(aivista.uploads.admits);
  const hand = files => {
    const area = $("#box textarea"), dataTransfer = new DataTransfer();
    if (!area || !files.length) return;
    for (const file of files) dataTransfer.items.add(file);
    const drop = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
    ours.add(drop);
    area.dispatchEvent(drop);
  };
  const take = files => { hand(admitted(files)); toComposer(); };

  aivista.drops = { hand };

  // ---- where a drop would go
  const zoneOf = target => {
    if (isBlocked()) return { name: "" };
    const stage = target?.closest?.("#stage");
    if (!stage) return { name: "message", place: $("#center") };
    // The Files tab marks its own folders.
    return target.closest("#files") ? { name: "files" } : { name: "paint", place: stage };
  };
  // Of dragged files only the types are known, and in some browsers not even those.
  const areOthers = event => {
    const items = [...(event.dataTransfer?.items || [])].filter(item => item.kind === "file");
    return items.length > 0 && items.every(item => item.type && !item.type.startsWith("image/"));
  };

  // ---- the target
  let target = null, leaving = 0;
  const element = () => {
    if (target?.isConnected) return target;
    target = cloned($("#tpl-drop"));
    if (target) document.body.append(target);
    return target;
  };
  const hide = () => { clearTimeout(leaving); root.removeAttribute("data-dragging"); target?.remove(); target = null; };
  const show = event => {
    const { name, place } = zoneOf(event.target), shown = place && element();
    if (!shown) { hide(); return; }
    const box = place.getBoundingClientRect(), zone = areOthers(event) ? "nothing" : name;
    Object.assign(shown.style, { left: `${box.left}px`, top: `${box.top}px`, width: `${box.width}px`, height: `${box.height}px` });
    if (shown.dataset.zone !== zone) shown.dataset.zone = zone;
    root.setAttribute("data-dragging", "");
    // A drag that ends outside the window sends no event: after a moment without events it is over.
    clearTimeout(leaving);
    leaving = setTimeout(hide, 1200);
  };
  for (const name of ["dragenter", "dragover"]) addEventListener(name, event => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    if (event.dataTransfer) event.dataTransfer.dropEffect = isBlocked() ? "none" : "copy";
    show(event);
  }, true);
  addEventListener("dragleave", event => { if (!event.relatedTarget) hide(); }, true);
  addEventListener("dragend", hide, true);
  addEventListener("drop", event => {
    hide();
    if (ours.has(event) || !hasFiles(event)) return;
    const { name } = zoneOf(event.target);
    if (name === "paint" || name === "files") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (name === "message") take([...event.dataTransfer.files]);
  }, true);

  // ---- pasted outside a text field; inside the box Gradio handles it
  addEventListener("paste", event => {
    const files = [...(event.clipboardData?.files || [])];
    if (!files.length || isBlocked() || event.target.closest?.("#box, #files, .cm-editor")) return;
    if (event.target.closest?.("input, textarea, [contenteditable=true]") && event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    take(files);
  });
}

// Attached pictures that were not sent stay with their conversation: they leave the box when another one is opened, and
// return when theirs is opened again, as long as the page is open.
{
  const STEP_MS = 20, MOST_STEPS = 200;
  const shelf = new Map();  // URLs of its pictures, by conversation
  const thumbnails = () => all("#box .thumbnail-item");
  let moves = 0;

  // One at a time: the list is redrawn after each.
  const clear = (left = MOST_STEPS) => {
    const button = $("#box .thumbnail-item .delete-button");
    if (!button || !left) return;
    button.click();
    setTimeout(clear, STEP_MS, left - 1);
  };
  const leave = conversation => {
    moves += 1;
    const addresses = thumbnails().map(one => one.querySelector("img")?.src).filter(Boolean);
    if (addresses.length) shelf.set(conversation, addresses); else shelf.delete(conversation);
    clear();
  };

  // Under their former names: a mask finds its picture by the file's name.
  const fetched = async (address, called = "") => {
    try {
      const answer = await fetch(address), data = await answer.blob();
      const name = called || decodeURIComponent(new URL(address).pathname.split("/").at(-1));
      return answer.ok ? [new File([data], name, { type: data.type })] : [];
    } catch { return []; }
  };
  const arrive = async conversation => {
    const addresses = shelf.get(conversation), move = moves;
    if (!addresses) return;
    const files = (await Promise.all(addresses.map(one => fetched(one)))).flat();
    // Another conversation may have been opened meanwhile.
    if (move !== moves) return;
    shelf.delete(conversation);
    aivista.drops.hand(files);
  };
  // Pictures of other conversations are added as files.
  addEventListener("aivista-attach", async event => {
    const files = await Promise.all(event.detail.map(one => fetched(one.url, one.name)));
    aivista.drops.hand(files.flat());
  });
  aivista.attached = { leave, arrive, clear };
}

// A sent message is shown at once, and becomes one turn however often Send is pressed: it is in the thread before
// Python knows it, and pressing again before it was accepted reuses the same id.
{
  const LONGEST_MS = 60_000, MOST_KEPT = 20, LOOK_MS = 200;
  const text = () => $("#box textarea")?.value || "";
  const files = () => all("#box .thumbnail-item img").map(one => one.src).join(" ");
  let press = null;  // what was pressed last and is not accepted yet
  let left = "";  // what was taken out of the box last
  let unwatch = () => {};

  const hide = () => { unwatch(); if ($("#turn-now[data-sending]")) aivista.shell.remove("turn-now"); };
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
    emit("patched");
    // When a turn fails before it is recorded, its text returns to the box.
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

  // Everything that is sent besides the text. Python accepts an id once, begins one new conversation for all messages
  // of it, and holds back text that was written for a conversation which has changed elsewhere.
  const page = aivista.shell.newId();
  const composed = () => JSON.stringify({
    ...aivista.shell.pageState(), mask: $("#mask").value, expand: $("#expand").value, request: press?.id || "", seen: press?.seen || "",
    begun: `${page} ${stamp()}`, price: $("#cost .price")?.dataset.maximum || "",
  });

  // ---- accepted: the message leaves the composer and is kept until its turn is over; text typed after it stays, and
  // so does a file that arrived meanwhile
  let kept = [];
  const paint = fields => emit("painted", fields);
  const taken = (mine, [message, fields]) => {
    if (press?.id !== mine.id) return;
    press = null;
    const { mask, expand, editing, references } = JSON.parse(fields), { id, from, stamp } = mine;
    kept = [...kept, { id, from, stamp, message, mask, expand, editing, references }].slice(-MOST_KEPT);
    // The mask first: a file that is removed by itself takes its mask along.
    if ((mask || expand) && $("#mask").value === mask && $("#expand").value === expand) paint({ mask: "", expand: "" });
    if (text().startsWith(mine.text)) aivista.drafts.put(text().slice(mine.text.length));
    left = mine.text;
    if (mine.files && files() === mine.files) aivista.shell.set({ box: { value: { text: text(), files: [] } } });
  };
  // ---- answered: a user who went to another conversation stays there, and finds the turn in its own
  const isElsewhere = ({ from, stamp: was }, told) => conversation() !== told && (conversation() !== from || (stamp() && stamp() !== was));
  const answered = ({ patches, events }) => {
    const { sent, thread, over = {} } = events, mine = kept.find(one => one.id === sent);
    if (!mine || !isElsewhere(mine, thread?.conversation)) return aivista.shell.take({ patches, events });
    return aivista.shell.take({ patches: patches.filter(one => one.id === "toast"), events: { over, listed: {} } });
  };
  // ---- over: a message without a turn returns to the composer, unless something else is in it by now
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
    const place = aivista.shell.pageState(), isMarked = place.editing === mine.editing && place.references.join() === mine.references.join();
    if (how === "failed") back(mine);
    else if (how === "refused") back({ ...mine, mask: "", expand: "" });
    else if (how === "unused" && (mine.mask || mine.expand)) back({ ...mine, message: { text: "", files: [] } });
    else if (isMarked) aivista.shell.take({ patches: [{ id: "ctx", html: "" }] });
  };
  addEventListener("aivista-over", ({ detail }) => Object.entries(detail).forEach(one => over(...one)));

  // Gradio does not report that an event was not answered, or failed.
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

// Unsent text is restored after a reload, for every conversation: its text, settings and marked pictures. This browser
// alone stores it, for a month, and removes it when the message is sent. Files are not part of it: they stay with the
// attachments as long as the page is open.
{
  const PREFIX = "aivista-draft ", EARLY = "aivista-early", NEW = "new", LOOK_MS = 400, SETTLE_MS = 80, ALONG_MS = 10000, SHOWN_MS = 3000;
  const MOST = 40, LONGEST = 100_000, LIFE_MS = 30 * 24 * 3600 * 1000;
  const shell = aivista.shell;
  const area = () => $("#box textarea"), text = () => area()?.value || "";

  // ---- storage
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

  // Text typed into a page that was left before Python had filled it: Gradio reloads a page once by itself when the
  // connection is back.
  const early = () => { try { const words = sessionStorage.getItem(EARLY); sessionStorage.removeItem(EARLY); return words; } catch { return ""; } };
  addEventListener("pagehide", () => { try { if (!where && text()) sessionStorage.setItem(EARLY, text()); } catch { /* nothing is kept here */ } });

  // ---- from the composer: its current content. Settings alone are no draft; together with text they are part of it.
  let where = "", last = "", isSending = false, isMoving = false, moves = 0, goesAlongUntil = 0;
  let leaving = null;  // what the box held when another conversation was requested, until that one is open
  let awaited = null;  // settings and marks being restored: until they are shown, the draft already counts them
  const areShown = ({ chips, editing, references }) => shell.pageState().editing === editing && shell.pageState().references.join() === references.join()
    && Object.entries(chips).every(([name, value]) => aivista.chips.values[name] === value);
  const now = () => {
    if (awaited && (Date.now() > awaited.until || areShown(awaited.marks))) awaited = null;
    const { chips, editing, references, roles } = shell.pageState(), marks = awaited?.marks || { chips: { ...chips }, editing, references, roles };
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

  // ---- another conversation is requested: the box is empty from now on, and what is typed belongs to that one
  const leave = to => {
    if (to === where || leaving !== null) return;
    look();
    goesAlongUntil = 0;
    leaving = text();
    put("");
    if (!isSending) aivista.attached.leave(where);
  };
  // It did not open: the former text returns, before what was typed meanwhile.
  const stay = () => {
    if (leaving === null) return;
    put(leaving + text());
    leaving = null;
    aivista.attached.arrive(where);
  };

  // ---- another conversation: its own draft comes, before text that was put into the box for it
  const arrive = (here, left) => {
    const draft = read(here), typed = text() === left ? "" : text();
    bring(here, { ...draft, text: [draft?.text, early(), typed].filter(Boolean).join("\n") });
    aivista.attached.arrive(here);
  };
  const moved = () => {
    const here = conversation();
    if (here === where) { stay(); return; }
    const from = where, wasLeft = leaving !== null || isMoving, move = ++moves;
    where = here;
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
    // Python fills the page in several steps; a change between them could be overwritten.
    isMoving = true;
    setTimeout(settled, SETTLE_MS);
  };

  // The first message of a new conversation gives it its id: the draft stays with whoever goes on typing.
  const named = () => { moves += 1; where = conversation(); isMoving = false; last = ""; forget(NEW); };

  // ---- sent: the draft is in the thread, or returns to the box when the turn fails
  onSend(() => {
    if (!text().trim() && !$("#box .thumbnail-item")) return;
    if (!navigator.onLine) return;
    isSending = true;
    last = "";
    awaited = null;
    forget(where);
    // Until Python has emptied the box, its content was already sent.
    const wait = tries => { if (!text() || !tries) isSending = false; else setTimeout(wait, 100, tries - 1); };
    setTimeout(wait, 100, 50);
  });
  // A returned text is in the box again, which may never have been empty in between.
  addEventListener("aivista-over", () => { isSending = false; });

  // Pictures of another conversation begin a new one: the text written for them goes there, too.
  aivista.drafts = { goAlong: () => { goesAlongUntil = Date.now() + ALONG_MS; }, put };

  sweep();
  for (const [event, then] of Object.entries({ leaving: ({ detail }) => leave(detail.id), stayed: stay, opened: moved, named })) addEventListener(`aivista-${event}`, then);
  moved();
  setInterval(look, LOOK_MS);
  // What Python has not accepted by now may never have been sent.
  addEventListener("pagehide", () => { isSending = false; look(); });
  document.addEventListener("visibilitychange", look);
}
