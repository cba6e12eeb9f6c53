// The files of the open conversation: what there is, what is open, what is not saved. What the person writes lives here
// until it is saved, for each conversation, whatever is shown meanwhile. The tree is files_tree.js's, what is brought in,
// taken out and run files_moves.js's; all meet in window.aivistaFiles.
(() => {
  const root = document.documentElement, editor = window.aivistaEditor;
  const $ = (selector, from = document) => from.querySelector(selector);
  const word = name => $("#files .fi")?.getAttribute(`data-${name}`) || "";
  const filled = (name, parts) => Object.entries(parts).reduce((text, [key, part]) => text.replace(`{${key}}`, part), word(name));
  const isShown = () => root.dataset.tab === "files" && root.hasAttribute("data-stage");
  const onPage = () => { const id = $("#top h1")?.dataset.conversation || ""; return id === "new" ? "" : id; };

  // ---- by conversation: {id, files, docs, open, folded}; by name: {name, file, kind, state, saved, text, ending, ...}
  const spaces = new Map();
  const space = id => { if (!spaces.has(id)) spaces.set(id, { id, files: [], docs: new Map(), open: "", folded: new Set(), isKnown: false }); return spaces.get(id); };
  let here = space("");
  const opened = () => here.docs.get(here.open) || null;
  // A kept state may be older than what is on screen, for the one that is shown.
  const stateOf = doc => (doc === opened() && shownDoc === doc ? editor.view()?.state : null) || doc.state;
  const isDirty = doc => Boolean(doc?.state) && !stateOf(doc).doc.eq(doc.saved);
  const textOf = doc => { const text = stateOf(doc).doc.toString(); return doc.ending === "\n" ? text : text.replaceAll("\n", doc.ending); };
  const unsaved = () => [...spaces.values()].flatMap(one => [...one.docs.values()].filter(isDirty));
  let shownDoc = null;

  // ---- Python is asked; whatever goes wrong is one sentence
  const address = (path, name = "", more = "") => `aivista/files/${encodeURIComponent(here.id)}/${path}${name ? `?name=${encodeURIComponent(name)}${more}` : more}`;
  const ask = async (url, options = {}) => {
    const answer = await fetch(url, options).catch(() => { throw new Error(word("failed")); });
    const body = await answer.json().catch(() => null);
    if (!answer.ok || !body) throw Object.assign(new Error(body?.error || word("failed")), { code: body?.code || "" });
    return body;
  };
  const send = (path, body) => ask(address(path), { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

  // ---- one sentence at the foot, with at most one button
  let hushing = 0;
  const hush = () => { clearTimeout(hushing); $("#files .fi-said")?.replaceChildren(); };
  const tell = (text, { label = "", run = null, isProblem = false } = {}) => {
    hush();
    const line = document.createElement("p"), words = document.createElement("span");
    words.textContent = text;
    line.className = isProblem ? "bad" : "ok";
    if (isProblem) line.setAttribute("role", "alert");
    line.append(words);
    if (run) {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "b line", textContent: label });
      button.addEventListener("click", () => { hush(); run(); });
      line.append(button);
    }
    const wait = () => { clearTimeout(hushing); hushing = setTimeout(hush, 9000); };
    for (const event of ["pointerenter", "focusin"]) line.addEventListener(event, () => clearTimeout(hushing));
    for (const event of ["pointerleave", "focusout"]) line.addEventListener(event, wait);
    $("#files .fi-said").append(line);
    wait();
  };
  const failed = error => tell(error.message, { isProblem: true });

  // ---- what there is; a file that changed meanwhile is read anew, unless the person changed it as well
  let asking = 0;
  const refresh = async () => {
    const mine = here, turn = ++asking;
    if (mine.id) {
      const { files } = await ask(address("list"));
      if (mine !== here || turn !== asking) return;
      mine.files = files;
    }
    mine.isKnown = true;
    await follow();
    draw();
  };
  const fileOf = name => here.files.find(one => one.name === name) || null;
  const follow = async () => {
    for (const doc of [...here.docs.values()]) {
      const now = fileOf(doc.name);
      if (!now && !isDirty(doc)) { close(doc); continue; }
      if (!now) { doc.other = { isGone: true }; continue; }
      if (now.version === doc.file.version) { doc.file = now; doc.other = null; continue; }
      if (isDirty(doc)) { doc.other = now; continue; }
      await reread(doc).catch(failed);
    }
  };
  const reread = async doc => {
    const mine = here, { file, kind, text } = await ask(address("read", doc.name));
    if (mine !== here) return;
    if (kind !== "text" || !doc.state) {
      here.docs.delete(doc.name);
      if (here.open === doc.name) await open(doc.name);
      return;
    }
    put(doc, file, text);
  };
  const put = (doc, file, text) => {
    const change = editor.turned(stateOf(doc), text.replace(/\r\n?/g, "\n"));
    if (shownDoc === doc) editor.view().dispatch(change); else doc.state = change.state;
    doc.state = stateOf(doc);
    Object.assign(doc, { file, saved: doc.state.doc, ending: endingOf(text), other: null, both: "" });
  };
  const endingOf = text => (text.includes("\r\n") ? "\r\n" : "\n");

  // ---- opening
  const keep = () => { if (shownDoc && editor.view()) shownDoc.state = editor.view().state; };
  const open = async name => {
    keep();
    here.open = name;
    const mine = here;
    draw();
    try {
      if (!here.docs.has(name)) {
        const { file, kind, text } = await ask(address("read", name));
        const doc = { name: file.name, file, kind, text, state: null, saved: null, ending: endingOf(text || ""), other: null, both: "", run: "" };
        if (kind === "text") {
          await editor.ready();
          doc.state = editor.make(text);
          doc.saved = doc.state.doc;
        }
        mine.docs.set(doc.name, doc);
        if (here === mine && here.open === name) here.open = doc.name;
      }
    } catch (error) {
      if (here === mine && here.open === name) here.open = "";
      failed(error);
    }
    if (here === mine) draw();
  };
  const close = doc => {
    here.docs.delete(doc.name);
    if (here.open === doc.name) here.open = "";
  };
  const renamed = (from, file) => {
    const doc = here.docs.get(from);
    here.files = [...here.files.filter(one => one.name !== from), file];
    if (doc) { here.docs.delete(from); Object.assign(doc, { name: file.name, file }); here.docs.set(file.name, doc); }
    if (here.open === from) here.open = file.name;
  };

  // ---- saving
  const save = async (doc = opened()) => {
    if (!doc?.state || doc.isSaving) return false;
    const mine = here, state = stateOf(doc);
    doc.isSaving = true;
    try {
      const { file } = await send("write", { name: doc.name, text: textOf(doc), version: doc.file.version });
      Object.assign(doc, { file, saved: state.doc, other: null, both: "" });
      mine.files = [...mine.files.filter(one => one.name !== file.name), file];
      return true;
    } catch (error) {
      // What it is now comes with the list; the bar over the editor says the rest.
      if (error.code === "file_changed") await refresh(); else failed(error);
      return false;
    } finally {
      doc.isSaving = false;
      draw();
    }
  };
  const keepMine = async doc => {
    doc.file = { ...doc.file, version: doc.other?.isGone ? 0 : doc.other.version };
    doc.other = null;
    await save(doc);
  };
  const takeOther = async doc => {
    if (doc.other?.isGone) { close(doc); draw(); return; }
    const { file, text } = await ask(address("read", doc.name));
    if (text === null) { close(doc); await open(doc.name); return; }
    put(doc, file, text);
    draw();
  };
  const seeBoth = async doc => {
    doc.both = doc.both ? "" : (await send("compare", { name: doc.name, text: textOf(doc) })).html;
    draw();
  };

  // ---- drawing: the tree, the head, and in the body the editor or what stands in its place
  const clock = moment => new Intl.DateTimeFormat(word("language"), { hour: "2-digit", minute: "2-digit", ...(new Date(moment).toDateString() === new Date().toDateString() ? {} : { day: "numeric", month: "short" }) }).format(new Date(moment));
  const draw = () => {
    if (!$("#files .fi")) return;
    const doc = opened(), box = $("#files");
    box.toggleAttribute("data-open", Boolean(here.open));
    box.dataset.shows = !doc ? "none" : doc.both ? "both" : doc.kind;
    window.aivistaFiles.tree?.draw();
    body(doc);
    head(doc);
  };
  const body = doc => {
    const place = $("#files .fi-view");
    if (doc?.state && shownDoc !== doc) {
      shownDoc = doc;
      editor.show(doc.state, doc.file.language, filled("editor", { name: doc.name }));
    } else if (!doc?.state) shownDoc = null;
    const shows = `${here.id} ${doc ? `${doc.name} ${doc.file.version} ${doc.kind} ${doc.both.length}` : ""}`;
    if (place.dataset.shows === shows) return;
    place.dataset.shows = shows;
    place.firstElementChild.hidden = Boolean(here.open);
    while (place.childElementCount > 1) place.lastElementChild.remove();
    if (!doc) return;
    if (doc.both) place.insertAdjacentHTML("beforeend", `<div class="fi-diff" tabindex="0">${doc.both}</div>`);
    else if (doc.kind === "picture") place.append(Object.assign(new Image(), { src: `${address("raw", doc.name)}&v=${doc.file.version}`, alt: doc.name }));
    else if (doc.kind !== "text") {
      const note = document.createElement("p");
      note.className = "quiet";
      note.textContent = word(doc.kind === "long" ? "long" : "binary");
      place.append(note);
      if (doc.kind === "long") place.append(Object.assign(document.createElement("pre"), { textContent: doc.text, tabIndex: 0 }));
    }
  };
  const head = doc => {
    const bar = $("#files .fi-head"), dirty = isDirty(doc);
    bar.hidden = !here.open;
    if (here.open) {
      const by = doc && filled(doc.file.by === "agent" ? "by-agent" : "by-person", { time: clock(doc.file.at) });
      const foreign = doc?.file.untrusted ? ` · ${word("untrusted")}` : "";
      set($(".fi-title b", bar), here.open.split("/").pop());
      bar.title = here.open;
      set($(".fi-title small", bar), dirty ? word("unsaved") : by ? by + foreign : "");
      bar.toggleAttribute("data-unsaved", dirty);
      $("[data-files=save]", bar).hidden = doc?.kind !== "text";
      $("[data-files=save]", bar).disabled = !dirty;
      $("[data-files=run]", bar).hidden = !(doc?.kind === "text" && doc.file.isProgram);
      $("[data-files=run]", bar).disabled = Boolean(doc?.isRunning);
      $("[data-files=download]", bar).href = address("raw", here.open, "&download=1");
    }
    note(doc);
    const run = $("#files .fi-run"), said = doc?.run || "";
    if (run.dataset.said !== `${doc?.name} ${said}`) { run.dataset.said = `${doc?.name} ${said}`; run.innerHTML = said; }
    window.aivistaFiles.tree?.mark();
  };
  const set = (place, text) => { if (place.textContent !== text) place.textContent = text; };
  const note = doc => {
    const place = $("#files .fi-note"), other = doc && isDirty(doc) ? doc.other : null;
    const says = !other ? "" : other.isGone ? "was-deleted" : other.by === "agent" ? "agent-changed" : "other-changed";
    const state = `${doc?.name} ${says} ${Boolean(doc?.both)}`;
    if (place.dataset.state === state) return;
    place.dataset.state = state;
    place.replaceChildren();
    if (!says) return;
    const line = document.createElement("p"), row = document.createElement("div");
    line.textContent = word(says);
    const choice = (label, work) => {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "b line", textContent: word(label) });
      button.addEventListener("click", () => Promise.resolve(work(doc)).catch(failed));
      row.append(button);
    };
    choice("keep-mine", keepMine);
    choice(other.isGone ? "close-file" : "take-theirs", takeOther);
    if (!other.isGone) choice(doc.both ? "hide-both" : "see-both", seeBoth);
    place.append(line, row);
  };

  // ---- a conversation of its own for files that come before the first message
  const settled = async name => {
    if (here.id) return;
    const { conversation } = await ask("aivista/files", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ name }) });
    here = space(conversation);
    here.isKnown = true;
    window.aivista?.act({ act: "open", arg: conversation });
  };

  // ---- when to look: somebody comes to the tab, opens another conversation, a tool or a turn has ended
  const look = () => refresh().catch(error => { if (isShown()) failed(error); });
  let seen = "";
  const watch = () => {
    const live = $("#chat .live"), id = onPage(), now = `${id} ${live ? live.dataset.tools || "0" : "-"}`;
    if (seen === now) return;
    const isOther = here.id !== id;
    seen = now;
    if (isOther) { keep(); here = space(id); shownDoc = null; hush(); draw(); }
    if (isShown() || here.docs.size) look();
  };
  const changed = () => {
    const doc = opened();
    if (!doc?.state || shownDoc !== doc) return;
    keep();
    head(doc);
  };

  window.aivistaFiles = {
    $, word, filled, address, ask, send, tell, hush, failed, refresh, keep, open, close, renamed, save, draw, opened, isDirty, fileOf, settled,
    here: () => here,
  };

  editor.listen(changed);
  addEventListener("aivista-tab", event => { if (event.detail === "files") look(); });
  addEventListener("focus", () => { if (isShown()) look(); });
  addEventListener("beforeunload", event => { if (unsaved().length) event.preventDefault(); });
  addEventListener("keydown", event => {
    if (!window.aivistaKeys.is(event, "files.save") || !isShown()) return;
    event.preventDefault();
    save();
  }, true);
  const observe = () => {
    if (!$("#files .fi")) { setTimeout(observe, 200); return; }
    // Keys that the editor or the tree has used stay here: Escape closes the stage elsewhere.
    $("#files").addEventListener("keydown", event => { if (window.aivistaKeys.is(event, "page.escape") && event.target.closest(".cm-editor, .fi-tree")) event.stopPropagation(); });
    draw();
    watch();
    new MutationObserver(watch).observe(document.body, { childList: true, subtree: true, attributeFilter: ["data-tools", "data-conversation"] });
  };
  if (document.body) observe(); else addEventListener("DOMContentLoaded", observe);
})();
