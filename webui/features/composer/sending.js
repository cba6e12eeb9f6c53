// Uploads into the message, a row each with progress and cancel. Gradio sends all files of one drop in one request and
// reports no progress; here each file is sent by itself, and Gradio gets the list of those that arrived.
{
  const AT_ONCE = 3, ROW_DELAY_MS = 250, MESSAGE_MS = 12000, ARRIVAL_MS = 25, ARRIVAL_TRIES = 120;
  const template = () => $("#tpl-upload");
  const limit = () => Number(template()?.dataset.most) || 20;  // megabytes
  const isPicture = file => file.type.startsWith("image/") || /\.(heic|heif|avif)$/i.test(file.name);

  const uploadList = () => {
    const found = $("#uploads");
    if (found) return found;
    const empty = createElement("ul", { id: "uploads" });
    $("#box")?.before(empty);
    return empty;
  };
  const showProblem = (key, values) => {
    const row = createElement("li", { className: "bad", role: "alert" }, formatText(template()?.dataset[key] || "", values));
    uploadList().append(row);
    setTimeout(() => row.remove(), MESSAGE_MS);
  };
  const short = name => name.length > 40 ? `${name.slice(0, 24)}…${name.slice(-12)}` : name;
  const accepts = file => {
    if (!isPicture(file)) { showProblem("kind", { name: short(file.name) }); return false; }
    if (file.size > limit() * 2 ** 20) {
      showProblem("large", { name: short(file.name), megabytes: Math.ceil(file.size / 2 ** 20), limit: limit() });
      return false;
    }
    return true;
  };

  // ---- a row: shown only for uploads that take a moment
  const rowOf = (file, cancel) => {
    const row = cloneTemplate(template());
    if (!row) return { at: () => {}, end: () => {} };
    const bar = $("progress", row), at = $(".at", row);
    $(".name", row).textContent = short(file.name);
    $("button", row).addEventListener("click", cancel);
    bar.setAttribute("aria-label", formatText(bar.getAttribute("aria-label"), { name: file.name }));
    bar.value = 0;
    at.textContent = file.size >= 1e6 ? `${(file.size / 1e6).toFixed(1)} MB` : `${Math.max(1, Math.round(file.size / 1e3))} kB`;
    const late = setTimeout(() => uploadList().append(row), ROW_DELAY_MS);
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
    const failed = key => { isWhole = false; showProblem(key, { name: short(file.name), megabytes: Math.ceil(file.size / 2 ** 20), limit: limit() }); done([]); };
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
  const thumbnailCount = () => all("#box .thumbnail-item").length;
  const waitForThumbnails = (before, count, tries = ARRIVAL_TRIES) => {
    if (count && tries && thumbnailCount() < before + count) { setTimeout(waitForThumbnails, ARRIVAL_MS, before, count, tries - 1); return; }
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
    finally { waitForThumbnails(thumbnailCount(), answers.flat().length); }
    return new Response(JSON.stringify(answers.flat()), { status: 200, headers: { "Content-Type": "application/json" } });
  };

  const originalFetch = window.fetch;
  window.fetch = (resource, init = {}) => {
    const files = init.body instanceof FormData ? init.body.getAll("files").filter(one => one instanceof File) : [];
    if (!files.length || init.method !== "POST") return originalFetch(resource, init);
    const address = new URL(resource instanceof Request ? resource.url : resource, location.href);
    if (!address.pathname.endsWith("/gradio_api/upload")) return originalFetch(resource, init);
    // Gradio would follow one request by this name; there are several now.
    if (files.length > 1) address.searchParams.delete("upload_id");
    return sendAll(address, files, init);
  };
  aivista.uploads = { isPicture, accepts, isBusy: () => running > 0 };
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
  const ownDrops = new WeakSet();

  // ---- in
  const addToBox = files => {
    const area = $("#box textarea"), dataTransfer = new DataTransfer();
    if (!area || !files.length) return;
    for (const file of files) dataTransfer.items.add(file);
    const drop = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
    ownDrops.add(drop);
    area.dispatchEvent(drop);
  };
  const addFiles = files => { addToBox(files.filter(aivista.uploads.accepts)); focusComposer(); };

  aivista.drops = { addToBox };

  // ---- where a drop would go
  const dropZone = target => {
    if (isBlocked()) return { name: "" };
    const stage = target?.closest?.("#stage");
    if (!stage) return { name: "message", place: $("#center") };
    // The Files tab marks its own folders.
    return target.closest("#files") ? { name: "files" } : { name: "paint", place: stage };
  };
  // Of dragged files only the types are known, and in some browsers not even those.
  const hasNoPicture = event => {
    const items = [...(event.dataTransfer?.items || [])].filter(item => item.kind === "file");
    return items.length > 0 && items.every(item => item.type && !item.type.startsWith("image/"));
  };

  // ---- the target
  let overlay = null, hideTimer = 0;
  const overlayElement = () => {
    if (overlay?.isConnected) return overlay;
    overlay = cloneTemplate($("#tpl-drop"));
    if (overlay) document.body.append(overlay);
    return overlay;
  };
  const hide = () => { clearTimeout(hideTimer); root.removeAttribute("data-dragging"); overlay?.remove(); overlay = null; };
  const show = event => {
    const { name, place } = dropZone(event.target), shown = place && overlayElement();
    if (!shown) { hide(); return; }
    const box = place.getBoundingClientRect(), zone = hasNoPicture(event) ? "nothing" : name;
    Object.assign(shown.style, { left: `${box.left}px`, top: `${box.top}px`, width: `${box.width}px`, height: `${box.height}px` });
    if (shown.dataset.zone !== zone) shown.dataset.zone = zone;
    root.setAttribute("data-dragging", "");
    // A drag that ends outside the window sends no event: after a moment without events it is over.
    clearTimeout(hideTimer);
    hideTimer = setTimeout(hide, 1200);
  };
  for (const name of ["dragenter", "dragover"]) addEventListener(name, event => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = isBlocked() ? "none" : "copy";
    show(event);
  }, true);
  addEventListener("dragleave", event => { if (!event.relatedTarget) hide(); }, true);
  addEventListener("dragend", hide, true);
  addEventListener("drop", event => {
    hide();
    if (ownDrops.has(event) || !hasFiles(event)) return;
    const { name } = dropZone(event.target);
    if (name === "paint" || name === "files") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (name === "message") addFiles([...event.dataTransfer.files]);
  }, true);

  // ---- pasted outside a text field; inside the box Gradio handles it
  addEventListener("paste", event => {
    const files = [...(event.clipboardData?.files || [])];
    if (!files.length || isBlocked() || event.target.closest?.("#box, #files, .cm-editor")) return;
    if (event.target.closest?.("input, textarea, [contenteditable=true]") && event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    addFiles(files);
  });
}

// Attached pictures that were not sent stay with their conversation: they leave the box when another one is opened, and
// return when theirs is opened again, as long as the page is open.
{
  const STEP_MS = 20, MOST_STEPS = 200;
  const stashed = new Map();  // URLs of its pictures, by conversation
  let moves = 0;

  // One at a time: the list is redrawn after each.
  const clear = (left = MOST_STEPS) => {
    const button = $("#box .thumbnail-item .delete-button");
    if (!button || !left) return;
    button.click();
    setTimeout(clear, STEP_MS, left - 1);
  };
  const stash = conversation => {
    moves += 1;
    const addresses = all("#box .thumbnail-item").map(one => one.querySelector("img")?.src).filter(Boolean);
    if (addresses.length) stashed.set(conversation, addresses); else stashed.delete(conversation);
    clear();
  };

  // Under their former names: a mask finds its picture by the file's name.
  const fetchFile = async (address, called = "") => {
    try {
      const answer = await fetch(address), data = await answer.blob();
      const name = called || decodeURIComponent(new URL(address).pathname.split("/").at(-1));
      return answer.ok ? [new File([data], name, { type: data.type })] : [];
    } catch { return []; }
  };
  const restore = async conversation => {
    const addresses = stashed.get(conversation), move = moves;
    if (!addresses) return;
    const files = (await Promise.all(addresses.map(one => fetchFile(one)))).flat();
    // Another conversation may have been opened meanwhile.
    if (move !== moves) return;
    stashed.delete(conversation);
    aivista.drops.addToBox(files);
  };
  // Pictures of other conversations are added as files.
  addEventListener("aivista-attach", async event => {
    const files = await Promise.all(event.detail.map(one => fetchFile(one.url, one.name)));
    aivista.drops.addToBox(files.flat());
  });
  aivista.attached = { stash, restore, clear };
}

// A sent message is shown at once, and becomes one turn however often Send is pressed: it is in the thread before
// Python knows it, and pressing again before it was accepted reuses the same id.
{
  const LONGEST_MS = 60_000, MOST_KEPT = 20, LOOK_MS = 200;
  const text = () => $("#box textarea")?.value || "";
  const files = () => all("#box .thumbnail-item img").map(one => one.src).join(" ");
  let pending = null;  // what was pressed last and is not accepted yet
  let takenText = "";  // what was taken out of the box last
  let stopWatching = () => {};

  const hide = () => { stopWatching(); if ($("#turn-now[data-sending]")) aivista.shell.removeElement("turn-now"); };
  const show = words => {
    hide();
    const list = $("#thread"), pictures = all("#box .thumbnail-item img").map(one => createElement("img", { src: one.src, alt: "" }));
    if (!list || !(words.trim() || pictures.length)) return;
    const message = words.trim() ? [createElement("div", { className: "md" }, createElement("p", { className: "own", dir: "auto", textContent: words }))] : [];
    const files = pictures.length ? [createElement("div", { className: "sent-files" }, ...pictures)] : [];
    $("#turn-now")?.remove();
    const turn = createElement("article", { id: "turn-now", className: "turn" }, createElement("div", { id: "turn-now-said", className: "user" }, ...files, ...message), createElement("div", { id: "turn-now-told", className: "bot" }));
    Object.assign(turn.dataset, { sending: "", merge: "" });
    list.append(turn);
    emit("patched");
    // When a turn fails before it is recorded, its text returns to the box.
    takenText = "";
    const look = setInterval(() => { if (takenText === words && text() === words) hide(); }, LOOK_MS);
    const last = setTimeout(hide, LONGEST_MS);
    stopWatching = () => { clearInterval(look); clearTimeout(last); };
  };
  onSend(event => {
    if (!(text().trim() || files())) return;
    if (aivista.painter?.isUnset()) { event.preventDefault(); event.stopImmediatePropagation(); return; }
    const isSame = pending && pending.text === text() && pending.files === files();
    const seen = all("#thread > .turn:not(#turn-now)").at(-1)?.id.slice("turn-".length) || "";
    pending = { id: isSame ? pending.id : aivista.shell.newId(), text: text(), files: files(), seen, from: conversation(), stamp: stamp() };
    show(pending.text);
  });

  // Everything that is sent besides the text. Python accepts an id once, begins one new conversation for all messages
  // of it, and holds back text that was written for a conversation which has changed elsewhere.
  const page = aivista.shell.newId();
  const composedFields = () => JSON.stringify({
    ...aivista.shell.pageState(), mask: $("#mask").value, expand: $("#expand").value, request: pending?.id || "", seen: pending?.seen || "",
    begun: `${page} ${stamp()}`, price: $("#cost .price")?.dataset.maximum || "",
  });

  // ---- accepted: the message leaves the composer and is kept until its turn is over; text typed after it stays, and
  // so does a file that arrived meanwhile
  let unfinished = [];
  const accepted = (sent, [message, fields]) => {
    if (pending?.id !== sent.id) return;
    pending = null;
    const { mask, expand, editing, references } = JSON.parse(fields), { id, from, stamp } = sent;
    unfinished = [...unfinished, { id, from, stamp, message, mask, expand, editing, references }].slice(-MOST_KEPT);
    // The mask first: a file that is removed by itself takes its mask along.
    if ((mask || expand) && $("#mask").value === mask && $("#expand").value === expand) emit("painted", { mask: "", expand: "" });
    if (text().startsWith(sent.text)) aivista.drafts.setPrompt(text().slice(sent.text.length));
    takenText = sent.text;
    if (sent.files && files() === sent.files) aivista.shell.setInputs({ box: { value: { text: text(), files: [] } } });
  };
  // ---- answered: a user who went to another conversation stays there, and finds the turn in its own
  const isElsewhere = ({ from, stamp: was }, turnConversation) => conversation() !== turnConversation && (conversation() !== from || (stamp() && stamp() !== was));
  const answered = ({ patches, events }) => {
    const { sent, thread, over = {} } = events, message = unfinished.find(one => one.id === sent);
    if (!message || !isElsewhere(message, thread?.conversation)) return aivista.shell.applyReply({ patches, events });
    return aivista.shell.applyReply({ patches: patches.filter(one => one.id === "toast"), events: { over, listed: {} } });
  };
  // ---- over: a message without a turn returns to the composer, unless something else is in it by now
  const returnMessage = ({ message: { text: words, files: paths }, mask, expand }) => {
    const current = text(), isFree = (!current && !files()) || (current === words && all("#box .thumbnail-item").length === paths.length);
    const isUnpainted = ["", mask].includes($("#mask").value) && ["", expand].includes($("#expand").value);
    if (isUnpainted && (mask || expand)) emit("painted", { mask, expand });
    if (isFree && (words || paths.length)) aivista.shell.setInputs({ box: { value: { text: words, files: paths.map(one => ({ ...one, url: new URL(`gradio_api/file=${one.path}`, document.baseURI).href })) } } });
  };
  const turnOver = (request, how) => {
    const message = unfinished.find(one => one.id === request);
    if (!message) return;
    unfinished = unfinished.filter(one => one !== message);
    const place = aivista.shell.pageState(), isMarked = place.editing === message.editing && place.references.join() === message.references.join();
    if (how === "failed") returnMessage(message);
    else if (how === "refused") returnMessage({ ...message, mask: "", expand: "" });
    else if (how === "unused" && (message.mask || message.expand)) returnMessage({ ...message, message: { text: "", files: [] } });
    else if (isMarked) aivista.shell.applyReply({ patches: [{ id: "ctx", html: "" }] });
  };
  addEventListener("aivista-over", ({ detail }) => Object.entries(detail).forEach(one => turnOver(...one)));

  // Gradio does not report that an event was not answered, or failed.
  const sendFailed = answer => {
    hide();
    const why = answer.error || answer.detail;
    aivista.shell.showToast(typeof why === "string" ? why : aivista.translate("cut"), { isProblem: true });
  };
  const originalFetch = window.fetch;
  window.fetch = async (resource, init) => {
    if (!new URL(resource.url ?? resource, location.href).pathname.endsWith("/gradio_api/run/predict")) return originalFetch(resource, init);
    const sent = pending && String(init?.body).includes(pending.id) ? pending : null;
    try {
      const answer = await originalFetch(resource, init);
      if (!answer.ok) sendFailed(await answer.clone().json().catch(() => ({})));
      else if (sent) accepted(sent, JSON.parse(init.body).data);
      return answer;
    } catch (error) {
      sendFailed({});
      throw error;
    }
  };
  aivista.sending = { show, hide, composedFields, answered, unfinished: () => unfinished.map(one => one.id) };
}

// Unsent text is restored after a reload, for every conversation: its text, settings and marked pictures. This browser
// alone stores it, for a month, and removes it when the message is sent. Files are not part of it: they stay with the
// attachments as long as the page is open.
{
  const PREFIX = "aivista-draft ", EARLY = "aivista-early", NEW = "new", LOOK_MS = 400, SETTLE_MS = 80, CARRY_MS = 10000, SHOWN_MS = 3000;
  const MOST = 40, LONGEST = 100_000, LIFE_MS = 30 * 24 * 3600 * 1000;
  const shell = aivista.shell;
  const area = () => $("#box textarea"), text = () => area()?.value || "";

  // ---- storage
  const read = where => { try { return JSON.parse(readStored(PREFIX + where)); } catch { return null; } };
  const forget = where => { try { localStorage.removeItem(PREFIX + where); } catch { /* nothing is kept here */ } };
  const write = (where, draft) => store(PREFIX + where, JSON.stringify({ ...draft, at: Date.now() }));
  const sweep = () => {
    try {
      const names = Object.keys(localStorage).filter(name => name.startsWith(PREFIX));
      const drafts = names.map(name => [name, read(name.slice(PREFIX.length))?.at || 0]).sort((one, other) => other[1] - one[1]);
      for (const [name] of drafts.filter(([, at], place) => place >= MOST || Date.now() - at > LIFE_MS)) localStorage.removeItem(name);
    } catch { /* nothing is kept here */ }
  };

  // Text typed into a page that was left before Python had filled it: Gradio reloads a page once by itself when the
  // connection is back.
  const takeEarlyText = () => { try { const words = sessionStorage.getItem(EARLY); sessionStorage.removeItem(EARLY); return words; } catch { return ""; } };
  addEventListener("pagehide", () => { try { if (!where && text()) sessionStorage.setItem(EARLY, text()); } catch { /* nothing is kept here */ } });

  // ---- from the composer: its current content. Settings alone are no draft; together with text they are part of it.
  let where = "", lastSaved = "", isSending = false, isMoving = false, moves = 0, carriedUntil = 0;
  let leavingText = null;  // what the box held when another conversation was requested, until that one is open
  let restoring = null;  // settings and marks being restored: until they are shown, the draft already counts them
  const areShown = ({ chips, editing, references }) => shell.pageState().editing === editing && shell.pageState().references.join() === references.join()
    && Object.entries(chips).every(([name, value]) => aivista.chips.values[name] === value);
  const currentDraft = () => {
    if (restoring && (Date.now() > restoring.until || areShown(restoring.marks))) restoring = null;
    const { chips, editing, references, roles } = shell.pageState(), marks = restoring?.marks || { chips: { ...chips }, editing, references, roles };
    const draft = { text: text().slice(0, LONGEST), ...marks };
    return draft.text.trim() || draft.editing || draft.references.length ? draft : null;
  };
  const saveDraft = () => {
    if (!where || isSending || isMoving || leavingText !== null || conversation() !== where) return;
    const draft = currentDraft(), serialized = JSON.stringify(draft);
    if (serialized === lastSaved) return;
    lastSaved = serialized;
    if (draft) write(where, draft); else forget(where);
  };

  // ---- into the composer
  const setPrompt = words => {
    const field = area();
    if (field && field.value !== words) setTextareaValue(field, words);
  };
  const restoreDraft = (to, draft) => {
    setPrompt(draft?.text || "");
    const { chips = {}, editing = "", references = [], roles: storedRoles = {} } = draft || {};
    // Drafts of an earlier version hold them as JSON.
    const roles = typeof storedRoles === "string" ? JSON.parse(storedRoles || "{}") : storedRoles;
    const isChanged = Object.entries(chips).some(([name, value]) => aivista.chips.values[name] !== value);
    if (!isChanged && !editing && !references.length) return;
    const args = { conversation: to === NEW ? "" : to, chips: isChanged ? chips : {}, editing, references, roles };
    const request = restoring = { marks: { chips, editing, references, roles }, until: Infinity };
    aivista.shell.act("page.restore", args).then(() => { request.until = Date.now() + SHOWN_MS; });
  };

  // ---- another conversation is requested: the box is empty from now on, and what is typed belongs to that one
  const leaveConversation = to => {
    if (to === where || leavingText !== null) return;
    saveDraft();
    carriedUntil = 0;
    leavingText = text();
    setPrompt("");
    if (!isSending) aivista.attached.stash(where);
  };
  // It did not open: the former text returns, before what was typed meanwhile.
  const stayInConversation = () => {
    if (leavingText === null) return;
    setPrompt(leavingText + text());
    leavingText = null;
    aivista.attached.restore(where);
  };

  // ---- another conversation: its own draft comes, before text that was put into the box for it
  const enterConversation = (here, left) => {
    const draft = read(here), typed = text() === left ? "" : text();
    restoreDraft(here, { ...draft, text: [draft?.text, takeEarlyText(), typed].filter(Boolean).join("\n") });
    aivista.attached.restore(here);
  };
  const conversationOpened = () => {
    const here = conversation();
    if (here === where) { stayInConversation(); return; }
    const from = where, wasLeft = leavingText !== null || isMoving, move = ++moves;
    where = here;
    isSending = false;
    leavingText = restoring = null;
    const goesAlong = Date.now() < carriedUntil;
    carriedUntil = 0;
    if (goesAlong) { isMoving = false; lastSaved = ""; forget(from); return; }
    const draft = wasLeft ? null : JSON.parse(lastSaved || "null"), left = from && !wasLeft ? text() : "";
    if (from && draft) write(from, draft);
    lastSaved = "";
    const settled = () => {
      if (move !== moves) return;
      if (!root.hasAttribute("data-ready")) { setTimeout(settled, SETTLE_MS); return; }
      lastSaved = "";
      isMoving = false;
      enterConversation(here, left);
    };
    // Python fills the page in several steps; a change between them could be overwritten.
    isMoving = true;
    setTimeout(settled, SETTLE_MS);
  };

  // The first message of a new conversation gives it its id: the draft stays with whoever goes on typing.
  const conversationNamed = () => { moves += 1; where = conversation(); isMoving = false; lastSaved = ""; forget(NEW); };

  // ---- sent: the draft is in the thread, or returns to the box when the turn fails
  onSend(() => {
    if (!text().trim() && !$("#box .thumbnail-item")) return;
    if (!navigator.onLine) return;
    isSending = true;
    lastSaved = "";
    restoring = null;
    forget(where);
    // Until Python has emptied the box, its content was already sent.
    const wait = tries => { if (!text() || !tries) isSending = false; else setTimeout(wait, 100, tries - 1); };
    setTimeout(wait, 100, 50);
  });
  // A returned text is in the box again, which may never have been empty in between.
  addEventListener("aivista-over", () => { isSending = false; });

  // Pictures of another conversation begin a new one: the text written for them goes there, too.
  aivista.drafts = { carryAlong: () => { carriedUntil = Date.now() + CARRY_MS; }, setPrompt };

  sweep();
  for (const [event, then] of Object.entries({ leaving: ({ detail }) => leaveConversation(detail.id), stayed: stayInConversation, opened: conversationOpened, named: conversationNamed })) addEventListener(`aivista-${event}`, then);
  conversationOpened();
  setInterval(saveDraft, LOOK_MS);
  // What Python has not accepted by now may never have been sent.
  addEventListener("pagehide", () => { isSending = false; saveDraft(); });
  document.addEventListener("visibilitychange", saveDraft);
}
