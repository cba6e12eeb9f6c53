// The editor of the files panel: Gradio's own, with CodeMirror 6 inside. Each file keeps its own state (text, cursor,
// undo history), so that undo never mixes files; no key press is sent to the server.
//
// Gradio 6.31's layout, as measured: the view is the property `cmTile` of the element `.cm-content`; its state's
// `config.base` holds everything that makes the editor (keys, language, listeners), from which a state with another
// text is made. Gradio replaces that base when the language has changed, a moment later, because languages are loaded
// one by one.
{
  const WAIT_MS = 50;
  let heard = null, queued = false;

  const view = () => $("#fi-code .cm-content")?.cmTile?.root?.view || null;
  const tell = props => aivista.shell.set({ "fi-code": props });
  // ---- loaded when first needed: its code is larger than the rest of the page
  let coming = null;
  const ready = () => coming ||= new Promise(resolve => {
    // Gradio draws it among the inputs of the composer.
    const look = () => { if (view()) { $("#files").append($("#fi-code")); begin(); resolve(view()); } else setTimeout(look, WAIT_MS); };
    tell({ visible: true });
    look();
  });
  const begin = () => {
    const changed = () => { queued = false; heard?.(); };
    new MutationObserver(() => { if (!queued) { queued = true; requestAnimationFrame(changed); } })
      .observe(view().contentDOM, { childList: true, subtree: true, characterData: true });
    recolour();
    new MutationObserver(recolour).observe(document.head, { childList: true, subtree: true });
  };

  // ---- its colours, by kind of token, so that they are ours in light and dark and readable
  const ROLES = {
    key: ["#5e81ac", "#fda331", "#81a1c1"],
    string: ["#d08770", "#b5bd68", "#8abeb7"],
    number: ["#88c0d0", "#a54543"],
    type: ["#ebcb8b", "#6fb3d2", "#fc6d24"],
    sign: ["#a3be8c", "#cc99cc", "#8fbcbb", "#bf616a"],
    tag: ["#b48ead", "#6987af"],
    comment: ["#434c5e", "#808080"],
    text: ["#3b4252", "#dddddd", "#b9d2ff"],
    wrong: ["#d30102"],
  };
  const hex = colour => `#${(colour.match(/\d+/g) || []).slice(0, 3).map(part => Number(part).toString(16).padStart(2, "0")).join("")}`;
  const roleOf = Object.fromEntries(Object.entries(ROLES).flatMap(([role, colours]) => colours.map(colour => [colour, role])));
  const recolour = () => {
    for (const sheet of document.styleSheets) {
      if (sheet.href || !sheet.ownerNode?.textContent.includes("\u037c")) continue;
      for (const rule of sheet.cssRules) {
        // The colours of tokens: a class of its own, with the character that begins CodeMirror's class names.
        const role = /^\.\u037c\w+$/.test(rule.selectorText || "") && roleOf[hex(rule.style.color)];
        if (role) rule.style.color = `var(--code-${role})`;
      }
    }
  };

  // ---- texts
  const make = text => {
    const { state } = view();
    return state.constructor.create({ doc: text, extensions: state.config.base });
  };
  const show = (state, language, label) => {
    const box = view();
    box.setState(state);
    box.contentDOM.setAttribute("aria-label", label);
    box.contentDOM.setAttribute("aria-describedby", "fi-help");
    tell({ language: language || null });
    box.requestMeasure();
  };
  // Replace a text by another, changed only where they differ: the cursor stays, and undo restores the first.
  const turned = (state, text) => {
    const before = state.doc.toString(), most = Math.min(before.length, text.length);
    let from = 0, end = 0;
    while (from < most && before[from] === text[from]) from++;
    while (end < most - from && before[before.length - 1 - end] === text[text.length - 1 - end]) end++;
    return state.update({ changes: { from, to: before.length - end, insert: text.slice(from, text.length - end) }, userEvent: "reload" });
  };
  const goTo = line => {
    const box = view(), { doc } = box.state, place = doc.line(Math.max(1, Math.min(line, doc.lines)));
    box.dispatch({ selection: { anchor: place.from, head: place.to }, scrollIntoView: true });
    box.focus();
  };

  aivista.editor = {
    ready, view, make, show, turned, goTo,
    listen: then => { heard = then; },
    focus: () => view()?.focus(),
  };
}

// The files of the open conversation. Unsaved text lives here for each conversation, whatever is shown meanwhile. Each
// open file has an element of its own, which Python fills; all share one editor.
{
  const editor = aivista.editor, keys = aivista.keys, shell = aivista.shell;
  const MOST_BYTES = 1 << 20, MOST_OPEN = 200;

  // ---- by conversation: the open files by name ({key, name, version, said, at, state, saved, ending, ...}), and the
  // folded folders
  const spaces = new Map();
  const space = id => { if (!spaces.has(id)) spaces.set(id, { id, docs: new Map(), open: "", folded: new Set(), focused: "" }); return spaces.get(id); };
  let here = space(""), shownDoc = null, count = 0;
  const opened = () => { const doc = here.docs.get(here.open); return doc && document.getElementById(doc.key) ? doc : null; };
  const stateOf = doc => (shownDoc === doc ? editor.view()?.state : null) || doc.state;
  const keep = () => { if (shownDoc && editor.view()) shownDoc.state = editor.view().state; };
  const isDirty = doc => Boolean(doc?.state) && !stateOf(doc).doc.eq(doc.saved);
  const textOf = doc => stateOf(doc).doc.toString().replaceAll("\n", doc.ending);
  const part = (doc, name) => document.getElementById(`${doc.key}-${name}`);

  // ---- requests to Python run one after the other, and always say what is open: the answer holds what has changed
  let queue = Promise.resolve();
  const ask = async (mine, name, args) => {
    const hadFocus = Boolean(document.activeElement?.closest("#fi-tree"));
    const docs = [...mine.docs.values()].slice(0, MOST_OPEN).map(doc => {
      const asked = part(doc, "notice")?.dataset.version;
      return { key: doc.key, name: doc.name, version: doc.version, is_dirty: isDirty(doc), asked: asked ? Number(asked) : null };
    });
    const given = { conversation: mine.id, docs, is_begun: Boolean($("#fi-frame")), ...args?.() };
    const { events = {} } = await shell.act(`files.${name}`, given);
    const now = events.begun ? space(events.begun) : mine;
    if (events.files) for (const [key, told] of Object.entries(events.files)) await take(now, key, told);
    if (events.begun && mine === here) arrive(events.begun);
    else if (mine !== here) await shell.act("files.show", { conversation: here.id });
    draw();
    if (hadFocus && document.activeElement === document.body) find(here.focused)?.focus({ preventScroll: true });
    return events;
  };
  const act = (name, args) => { const mine = here; return (queue = queue.catch(() => {}).then(() => ask(mine, name, args))); };
  const look = () => act("show");
  const take = async (at, key, told) => {
    const before = [...at.docs.values()].find(doc => doc.key === key);
    if (!told) { if (before) close(before, at); return; }
    const { kind = "", text = "", ...file } = told, doc = before || { key, state: null, ending: "\n" };
    if (doc.name !== file.name) {
      at.docs.delete(doc.name);
      if (at.open === doc.name) at.open = file.name;
      at.docs.set(file.name, doc);
    }
    if (kind === "text") {
      await editor.ready();
      // A user who has typed since the request was sent is asked the next time.
      if (isDirty(doc) && !doc.isGivenUp) return;
      if (!doc.state) doc.state = editor.make(text);
      else {
        const change = editor.turned(stateOf(doc), text.replace(/\r\n?/g, "\n"));
        if (shownDoc === doc) editor.view().dispatch(change); else doc.state = change.state;
      }
      doc.state = stateOf(doc);
      Object.assign(doc, { saved: doc.state.doc, ending: text.includes("\r\n") ? "\r\n" : "\n" });
    } else if (kind) Object.assign(doc, { state: null, saved: null });
    Object.assign(doc, file);
  };
  const close = (doc, at = here) => {
    document.getElementById(doc.key)?.remove();
    at.docs.delete(doc.name);
    if (at.open === doc.name) at.open = "";
  };
  // A first file began a conversation: the composer's content belongs to it.
  const arrive = id => { here = space(id); aivista.drafts.goAlong(); shell.act("page.open", { arg: id }); };

  // ---- actions on a file
  const open = async name => {
    keep();
    const mine = here, key = `fi-${++count}`;
    if (!mine.docs.has(name)) await act("open", () => ({ key, name }));
    if (mine === here && mine.docs.has(name)) { mine.open = name; draw(); }
  };
  const create = async name => {
    const { files } = await act("create", () => ({ key: `fi-${++count}`, name }));
    const told = Object.entries(files || {}).find(([key]) => key === `fi-${count}`)?.[1];
    if (!told) return;
    here.focused = here.open = told.name;
    draw();
    editor.focus();
  };
  const save = async (doc = opened(), version = null) => {
    if (!isDirty(doc)) return false;
    let state = null;
    const { files } = await act("save", () => { state = stateOf(doc); return { key: doc.key, name: doc.name, text: textOf(doc), version: version ?? doc.version }; });
    if (!files?.[doc.key]) return false;
    doc.saved = state.doc;
    part(doc, "diff")?.remove();
    draw();
    return true;
  };
  const run = async (name = here.open) => {
    if (here.open !== name) await open(name);
    const doc = opened();
    if (!doc?.isProgram || !doc.state || doc.isRunning || (isDirty(doc) && !(await save(doc)))) return;
    doc.isRunning = true;
    const wait = made("p", { id: `${doc.key}-out`, className: "quiet" }, part(doc, "run").dataset.running);
    part(doc, "run").replaceChildren(wait);
    draw();
    // A slow action holds up nothing else.
    await shell.act("files.run", { conversation: here.id, key: doc.key, name: doc.name });
    doc.isRunning = false;
    wait.remove();
    await look();
  };
  const rename = async (path, wanted, isFolder) => {
    if ((await act("rename", () => ({ name: path, new_name: wanted, is_folder: isFolder }))).files) focus(wanted);
  };

  // ---- deleted at once, with undo as long as the toast is shown; unsaved text comes back with the file
  const thrown = new Map();
  const remove = async (path, isFolder) => {
    const mine = here, wasOpen = mine.open, { deleted } = await act("delete", () => ({ name: path, is_folder: isFolder }));
    if (!deleted) return;
    keep();
    const docs = deleted.names.map(name => mine.docs.get(name)).filter(Boolean);
    for (const doc of docs) { mine.docs.delete(doc.name); if (mine.open === doc.name) mine.open = ""; }
    thrown.set(deleted.token, { mine, docs, wasOpen });
    draw();
  };
  addEventListener("aivista-undeleted", ({ detail: { token, versions } }) => {
    const { mine, docs, wasOpen } = thrown.get(token) || {};
    for (const doc of docs || []) {
      if (versions[doc.name] && !mine.docs.has(doc.name)) mine.docs.set(doc.name, Object.assign(doc, { version: versions[doc.name] }));
    }
    if (mine?.docs.has(wasOpen)) mine.open = wasOpen;
    look();
  });

  // ---- from the user's machine; characters that a name cannot have become an underscore
  const plain = name => name.normalize("NFC").replace(/[^\p{L}\p{M}\p{N}_. -]/gu, "_").replace(/\.{2,}/g, ".").trim().slice(0, 100) || "_";
  let taken = [];
  const bringIn = async (list, more = "") => {
    const mine = here;
    let id = mine.id, newest = "";
    taken = [];
    for (const [name, file] of list) {
      const address = `aivista/files/${encodeURIComponent(id || "new")}/upload?name=${encodeURIComponent(name)}${more}`;
      // One byte too many is enough to be refused by name.
      const answer = await fetch(address, { method: "POST", body: file.slice(0, MOST_BYTES + 1) }).then(one => one.json()).catch(() => ({ error: aivista.words.say("cut") }));
      id ||= answer.conversation || "";
      if (answer.code === "file_changed") taken.push([name, file]);
      else if (answer.error) shell.say(answer.error, { isProblem: true });
      else newest = answer.name;
    }
    if (!mine.id && id && mine === here) arrive(id);
    await look();
    if (newest) rove(find(newest));
    const line = $("#fi-ask");
    line.hidden = !taken.length;
    $("span", line).textContent = filled(line.dataset.said, { names: taken.map(([name]) => name).join(", ") });
  };

  // ---- drawing: what only this page knows of the tree, and which open file is shown
  const clock = (moment, style) => new Date(moment).toLocaleString($("#fi-frame").dataset.language, style);
  const when = at => clock(at, { hour: "2-digit", minute: "2-digit", ...(new Date(at).toDateString() === new Date().toDateString() ? {} : { day: "numeric", month: "short" }) });
  const draw = () => {
    if (!$("#fi-frame")) return;
    const doc = opened();
    for (const one of all("#fi-files > div")) one.hidden = one.id !== doc?.key;
    if (doc?.state && shownDoc !== doc) {
      shownDoc = doc;
      editor.show(doc.state, doc.language, part(doc, "main").dataset.editor);
    } else if (!doc?.state) shownDoc = null;
    $("#files").toggleAttribute("data-open", Boolean(doc));
    $("#files").toggleAttribute("data-editing", Boolean(doc?.state) && !part(doc, "diff"));
    for (const row of rows()) {
      row.hidden = [...here.folded].some(folder => row.dataset.path.startsWith(`${folder}/`));
      if (row.dataset.folder) row.setAttribute("aria-expanded", String(!here.folded.has(row.dataset.path)));
      else row.setAttribute("aria-selected", String(here.open === row.dataset.path));
    }
    rove(find(here.focused) || find(here.open) || seen()[0]);
    mark();
  };
  const mark = () => {
    const doc = opened(), { unsaved } = $("#fi-frame").dataset, dirty = isDirty(doc);
    for (const row of all("#fi-tree [data-label]")) {
      const its = isDirty(here.docs.get(row.dataset.path));
      if (row.title && row.hasAttribute("data-unsaved") === its) continue;
      row.toggleAttribute("data-unsaved", its);
      row.title = filled(row.dataset.label, { time: clock(row.dataset.at, { dateStyle: "medium", timeStyle: "short" }) }) + (its ? `, ${unsaved}` : "");
      row.setAttribute("aria-label", row.title);
    }
    if (!doc) return;
    const main = part(doc, "main");
    setText($("small", main), dirty ? unsaved : filled(doc.said, { time: when(doc.at) }));
    $(".fi-head", main).toggleAttribute("data-unsaved", dirty);
    for (const [name, isOff] of [["save", !dirty], ["run", Boolean(doc.isRunning)]]) { const button = $(`[data-files=${name}]`, main); if (button) button.disabled = isOff; }
  };

  // ---- the tree: one row is in the Tab order
  const rows = () => all("#fi-tree .fi-row");
  const seen = () => rows().filter(row => !row.hidden);
  const find = path => rows().find(row => row.dataset.path === path);
  const last = path => path.split("/").pop(), folderOf = path => path.split("/").slice(0, -1).join("/");
  let typed = { text: "", at: 0 }, menuOf = "";
  const rove = row => {
    if (!row) return;
    for (const one of rows()) one.tabIndex = one === row ? 0 : -1;
    here.focused = row.dataset.path;
  };
  const focus = path => { const row = find(path); rove(row); row?.focus(); };
  const fold = (row, isFolded) => { if (isFolded) here.folded.add(row.dataset.path); else here.folded.delete(row.dataset.path); draw(); return row; };
  const isOpen = row => row.getAttribute("aria-expanded") === "true";
  const enter = row => { if (row.dataset.folder) fold(row, isOpen(row)); else open(row.dataset.path); };
  const step = {
    next: row => seen()[seen().indexOf(row) + 1],
    previous: row => seen()[seen().indexOf(row) - 1],
    first: () => seen()[0],
    last: () => seen().at(-1),
    open: row => (!row.dataset.folder ? null : isOpen(row) ? step.next(row) : fold(row, false)),
    close: row => (row.dataset.folder && isOpen(row) ? fold(row, true) : find(folderOf(row.dataset.path))),
  };
  const seek = (row, key) => {
    typed = { text: Date.now() - typed.at < 700 ? typed.text + key : key, at: Date.now() };
    const list = seen(), from = list.indexOf(row) + (typed.text.length === 1 ? 1 : 0);
    return [...list.slice(from), ...list.slice(0, from)].find(one => last(one.dataset.path).toLowerCase().startsWith(typed.text.toLowerCase()));
  };
  const walk = (event, row) => {
    const way = keys.find(event, "files.walk") || keys.find(event, "files.fold");
    if (keys.is(event, "files.open")) enter(row);
    else if (keys.is(event, "files.rename")) chosen.rename(row);
    else if (keys.is(event, "files.delete")) chosen.delete(row);
    else if (keys.is(event, "files.menu")) openMenu(row);
    else if (way || keys.is(event, "files.jump")) { const to = way ? step[way](row) : seek(row, event.key); rove(to); to?.focus(); }
    else return;
    event.preventDefault();
  };

  // ---- naming: a new file's name above the tree, a new name over a row, whatever is redrawn meanwhile
  const box = () => $("#fi-name");
  let naming = null;
  const place = () => {
    const row = naming?.path && find(naming.path);
    box().style.cssText = row ? "position: absolute; margin: 0; right: 8px; translate: 0 -50%" : "";
    if (!row) return;
    const at = $("span", row).getBoundingClientRect(), side = $(".fi-side").getBoundingClientRect();
    box().style.top = `${at.top + at.height / 2 - side.top}px`;
    box().style.left = `${at.left - side.left - 7}px`;
  };
  const askName = (path, value, then) => {
    naming = { path, value, then };
    Object.assign(box(), { hidden: false, value });
    place();
    box().focus();
    const [from, dot] = [value.lastIndexOf("/") + 1, value.lastIndexOf(".")];
    box().setSelectionRange(from, dot > from ? dot : value.length);
  };
  const named = async isKept => {
    if (!naming) return;
    const { value, then } = naming, wanted = box().value.trim(), hadKeys = document.activeElement === box();
    naming = null;
    box().hidden = true;
    if (hadKeys) find(here.focused)?.focus();
    if (isKept && wanted && wanted !== value && !wanted.endsWith("/")) await then(wanted);
  };
  const begin = () => {
    const now = find(here.focused), folder = now?.dataset.folder || (now ? folderOf(here.focused) : "");
    askName("", folder ? `${folder}/` : "", create);
  };

  // ---- the menu of a file or a folder
  const openMenu = row => {
    const list = $("#fi-menu"), isFolder = Boolean(row.dataset.folder);
    rove(row);
    menuOf = row.dataset.path;
    for (const button of all("button", list)) button.hidden = { run: !row.hasAttribute("data-program"), download: isFolder }[button.dataset.choice] || false;
    list.setAttribute("aria-label", $(".fi-more", row).title);
    aivista.menus.open(list, $(".fi-more", row), row);
  };
  const chosen = {
    run: row => run(row.dataset.path),
    rename: row => { const { path, folder } = row.dataset; askName(path, path, wanted => rename(path, wanted, Boolean(folder))); },
    download: row => download(`aivista/files/${here.id}/raw?name=${encodeURIComponent(row.dataset.path)}&download=1`),
    delete: row => remove(row.dataset.path, Boolean(row.dataset.folder)),
  };

  // ---- presses
  const acts = {
    new: begin,
    upload: () => $(".fi-pick").click(),
    back: () => { keep(); here.open = ""; draw(); },
    save: () => save(),
    run: () => run(),
    close_run: button => button.closest(".fi-console").remove(),
    line: button => editor.goTo(Number(button.dataset.line)),
    open: button => open(button.dataset.name),
    mine: button => save(opened(), Number(button.dataset.version)),
    theirs: async () => {
      const doc = opened();
      doc.isGivenUp = true;
      await act("open", () => ({ key: doc.key, name: doc.name }));
      doc.isGivenUp = false;
    },
    both: () => { const doc = opened(); return shell.act("files.compare", { conversation: here.id, key: doc.key, name: doc.name, text: textOf(doc) }).then(draw); },
    single: () => { part(opened(), "diff").remove(); draw(); },
    close: () => { close(opened()); draw(); },
    replace: () => bringIn(taken, "&replace=1"),
    skip: () => { $("#fi-ask").hidden = true; },
  };
  addEventListener("click", event => {
    const item = event.target.closest?.("#fi-menu [data-choice]"), button = event.target.closest?.("#files [data-files]"), row = event.target.closest?.("#fi-tree .fi-row");
    if (item) { aivista.menus.close(); chosen[item.dataset.choice](find(menuOf)); }
    else if (button) acts[button.dataset.files]?.(button);
    else if (row) { rove(row); if (event.target.closest(".fi-more")) openMenu(row); else { row.focus(); enter(row); } }
  });
  aivista.menus.onContext("#fi-tree .fi-row", openMenu);
  addEventListener("keydown", event => {
    const row = event.target.closest?.("#fi-tree .fi-row");
    if (keys.is(event, "files.save") && isShown("files")) { event.preventDefault(); save(); }
    else if (event.target.id === "fi-name") { if (keys.is(event, "field.keep")) named(true); else if (keys.is(event, "field.leave")) named(false); }
    else if (row) walk(event, row);
  }, true);
  // Keys that the editor, the tree or a name has used stay here: elsewhere Escape closes the stage.
  document.addEventListener("keydown", event => { if (keys.is(event, "page.escape") && event.target.closest?.("#fi-code .cm-editor, #fi-tree .fi-row, #fi-name")) event.stopPropagation(); });
  on("focusout", "#fi-name", () => named(true));
  addEventListener("scroll", event => { if (naming && event.target.closest?.(".fi-side")) place(); }, true);
  on("change", ".fi-pick", input => {
    const list = [...input.files].map(file => [plain(file.name), file]);
    input.value = "";
    bringIn(list);
  });

  // ---- dropped onto the panel, or onto one of its folders
  const carries = event => event.target.closest?.("#files") && [...(event.dataTransfer?.types || [])].includes("Files");
  for (const name of ["dragenter", "dragover", "drop"]) addEventListener(name, event => {
    if (!carries(event)) { $("#files")?.removeAttribute("data-drop"); return; }
    event.preventDefault();
    event.stopImmediatePropagation();
    $("#files").toggleAttribute("data-drop", name !== "drop");
    const folder = event.target.closest("[data-folder]")?.dataset.folder;
    if (name === "drop") bringIn([...event.dataTransfer.files].map(file => [(folder ? `${folder}/` : "") + plain(file.name), file]));
  }, true);
  addEventListener("dragleave", event => { if (!event.relatedTarget?.closest?.("#files")) $("#files")?.removeAttribute("data-drop"); }, true);

  // ---- when to refresh: the tab or another conversation is opened, a tool or a turn has ended
  let seenOf = "";
  follow(() => {
    const line = live(), id = shell.pageState().conversation, now = `${id} ${line ? line.dataset.tools || "0" : "-"}`;
    if (seenOf === now) return;
    seenOf = now;
    if (here.id !== id) { keep(); here = space(id); shownDoc = null; $("#fi-tree")?.replaceChildren(); draw(); }
    if (isShown("files") || here.docs.size) look();
  });
  editor.listen(() => { const doc = opened(); if (doc?.state && shownDoc === doc) { keep(); mark(); } });
  addEventListener("aivista-patched", () => {
    draw();
    if (naming) place();
  });
  addEventListener("aivista-tab", event => { if (event.detail === "files") look(); });
  addEventListener("focus", () => { if (isShown("files")) look(); });
  addEventListener("beforeunload", event => { if ([...spaces.values()].some(one => [...one.docs.values()].some(isDirty))) event.preventDefault(); });
}
