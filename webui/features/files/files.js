// The editor of the files panel: Gradio's own, with CodeMirror 6 inside. Each file keeps its own state (text, cursor,
// undo history), so that undo never mixes files; no key press is sent to the server.
//
// Gradio 6.31's layout, as measured: the view is the property `cmTile` of the element `.cm-content`; its state's
// `config.base` holds everything that makes the editor (keys, language, listeners), from which a state with another
// text is made. Gradio replaces that base when the language has changed, a moment later, because languages are loaded
// one by one.
{
  const WAIT_MS = 50;
  let onChange = null, queued = false;

  const view = () => $("#fi-code .cm-content")?.cmTile?.root?.view || null;
  const setProps = props => aivista.shell.setInputs({ "fi-code": props });
  // ---- loaded when first needed: its code is larger than the rest of the page
  let loading = null;
  const ready = () => loading ||= new Promise(resolve => {
    // Gradio draws it among the inputs of the composer.
    const look = () => { if (view()) { $("#files").append($("#fi-code")); observe(); resolve(view()); } else setTimeout(look, WAIT_MS); };
    setProps({ visible: true });
    look();
  });
  const observe = () => {
    const changed = () => { queued = false; onChange?.(); };
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
  const createState = text => {
    const { state } = view();
    return state.constructor.create({ doc: text, extensions: state.config.base });
  };
  const showState = (state, language, label) => {
    const box = view();
    box.setState(state);
    box.contentDOM.setAttribute("aria-label", label);
    box.contentDOM.setAttribute("aria-describedby", "fi-help");
    setProps({ language: language || null });
    box.requestMeasure();
  };
  // Replace a text by another, changed only where they differ: the cursor stays, and undo restores the first.
  const textChange = (state, text) => {
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
    ready, view, createState, showState, textChange, goTo,
    listen: then => { onChange = then; },
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
  const spaceOf = id => { if (!spaces.has(id)) spaces.set(id, { id, docs: new Map(), open: "", folded: new Set(), focused: "" }); return spaces.get(id); };
  let current = spaceOf(""), shownDoc = null, count = 0;
  const opened = () => { const doc = current.docs.get(current.open); return doc && document.getElementById(doc.key) ? doc : null; };
  const stateOf = doc => (shownDoc === doc ? editor.view()?.state : null) || doc.state;
  const saveState = () => { if (shownDoc && editor.view()) shownDoc.state = editor.view().state; };
  const isDirty = doc => Boolean(doc?.state) && !stateOf(doc).doc.eq(doc.saved);
  const textOf = doc => stateOf(doc).doc.toString().replaceAll("\n", doc.ending);
  const part = (doc, name) => document.getElementById(`${doc.key}-${name}`);

  // ---- requests to Python run one after the other, and always say what is open: the answer holds what has changed
  let queue = Promise.resolve();
  const request = async (space, name, args) => {
    const hadFocus = Boolean(document.activeElement?.closest("#fi-tree"));
    const docs = [...space.docs.values()].slice(0, MOST_OPEN).map(doc => {
      const askedVersion = part(doc, "notice")?.dataset.version;
      return { key: doc.key, name: doc.name, version: doc.version, is_dirty: isDirty(doc), asked: askedVersion ? Number(askedVersion) : null };
    });
    const given = { conversation: space.id, docs, is_begun: Boolean($("#fi-frame")), ...args?.() };
    const { events = {} } = await shell.act(`files.${name}`, given);
    const now = events.begun ? spaceOf(events.begun) : space;
    if (events.files) for (const [key, file] of Object.entries(events.files)) await applyFile(now, key, file);
    if (events.begun && space === current) enterConversation(events.begun);
    else if (space !== current) await shell.act("files.show", { conversation: current.id });
    draw();
    if (hadFocus && document.activeElement === document.body) find(current.focused)?.focus({ preventScroll: true });
    return events;
  };
  const act = (name, args) => { const space = current; return (queue = queue.catch(() => {}).then(() => request(space, name, args))); };
  const refresh = () => act("show");
  const applyFile = async (at, key, update) => {
    const before = [...at.docs.values()].find(doc => doc.key === key);
    if (!update) { if (before) closeFile(before, at); return; }
    const { kind = "", text = "", ...file } = update, doc = before || { key, state: null, ending: "\n" };
    if (doc.name !== file.name) {
      at.docs.delete(doc.name);
      if (at.open === doc.name) at.open = file.name;
      at.docs.set(file.name, doc);
    }
    if (kind === "text") {
      await editor.ready();
      // A user who has typed since the request was sent is asked the next time.
      if (isDirty(doc) && !doc.isGivenUp) return;
      if (!doc.state) doc.state = editor.createState(text);
      else {
        const change = editor.textChange(stateOf(doc), text.replace(/\r\n?/g, "\n"));
        if (shownDoc === doc) editor.view().dispatch(change); else doc.state = change.state;
      }
      doc.state = stateOf(doc);
      Object.assign(doc, { saved: doc.state.doc, ending: text.includes("\r\n") ? "\r\n" : "\n" });
    } else if (kind) Object.assign(doc, { state: null, saved: null });
    Object.assign(doc, file);
  };
  const closeFile = (doc, at = current) => {
    document.getElementById(doc.key)?.remove();
    at.docs.delete(doc.name);
    if (at.open === doc.name) at.open = "";
  };
  // A first file began a conversation: the composer's content belongs to it.
  const enterConversation = id => { current = spaceOf(id); aivista.drafts.carryAlong(); shell.act("page.open", { arg: id }); };

  // ---- actions on a file
  const open = async name => {
    saveState();
    const space = current, key = `fi-${++count}`;
    if (!space.docs.has(name)) await act("open", () => ({ key, name }));
    if (space === current && space.docs.has(name)) { space.open = name; draw(); }
  };
  const create = async name => {
    const { files } = await act("create", () => ({ key: `fi-${++count}`, name }));
    const file = files?.[`fi-${count}`];
    if (!file) return;
    current.focused = current.open = file.name;
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
  const run = async (name = current.open) => {
    if (current.open !== name) await open(name);
    const doc = opened();
    if (!doc?.isProgram || !doc.state || doc.isRunning || (isDirty(doc) && !(await save(doc)))) return;
    doc.isRunning = true;
    const wait = createElement("p", { id: `${doc.key}-out`, className: "quiet" }, part(doc, "run").dataset.running);
    part(doc, "run").replaceChildren(wait);
    draw();
    // A slow action holds up nothing else.
    await shell.act("files.run", { conversation: current.id, key: doc.key, name: doc.name });
    doc.isRunning = false;
    wait.remove();
    await refresh();
  };
  const rename = async (path, wanted, isFolder) => {
    if ((await act("rename", () => ({ name: path, new_name: wanted, is_folder: isFolder }))).files) focus(wanted);
  };

  // ---- deleted at once, with undo as long as the toast is shown; unsaved text comes back with the file
  const undoable = new Map();
  const remove = async (path, isFolder) => {
    const space = current, wasOpen = space.open, { deleted } = await act("delete", () => ({ name: path, is_folder: isFolder }));
    if (!deleted) return;
    saveState();
    const docs = deleted.names.map(name => space.docs.get(name)).filter(Boolean);
    for (const doc of docs) { space.docs.delete(doc.name); if (space.open === doc.name) space.open = ""; }
    undoable.set(deleted.token, { mine: space, docs, wasOpen });
    draw();
  };
  addEventListener("aivista-undeleted", ({ detail: { token, versions } }) => {
    const { mine: space, docs, wasOpen } = undoable.get(token) || {};
    for (const doc of docs || []) {
      if (versions[doc.name] && !space.docs.has(doc.name)) space.docs.set(doc.name, Object.assign(doc, { version: versions[doc.name] }));
    }
    if (space?.docs.has(wasOpen)) space.open = wasOpen;
    refresh();
  });

  // ---- from the user's machine; characters that a name cannot have become an underscore
  const safeName = name => name.normalize("NFC").replace(/[^\p{L}\p{M}\p{N}_. -]/gu, "_").replace(/\.{2,}/g, ".").trim().slice(0, 100) || "_";
  let conflicts = [];
  const upload = async (list, more = "") => {
    const space = current;
    let id = space.id, newest = "";
    conflicts = [];
    for (const [name, file] of list) {
      const address = `aivista/files/${encodeURIComponent(id || "new")}/upload?name=${encodeURIComponent(name)}${more}`;
      // One byte too many is enough to be refused by name.
      const answer = await fetch(address, { method: "POST", body: file.slice(0, MOST_BYTES + 1) }).then(one => one.json()).catch(() => ({ error: aivista.translate("cut") }));
      id ||= answer.conversation || "";
      if (answer.code === "file_changed") conflicts.push([name, file]);
      else if (answer.error) shell.showToast(answer.error, { isProblem: true });
      else newest = answer.name;
    }
    if (!space.id && id && space === current) enterConversation(id);
    await refresh();
    if (newest) makeTabbable(find(newest));
    const line = $("#fi-ask");
    line.hidden = !conflicts.length;
    $("span", line).textContent = formatText(line.dataset.said, { names: conflicts.map(([name]) => name).join(", ") });
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
      editor.showState(doc.state, doc.language, part(doc, "main").dataset.editor);
    } else if (!doc?.state) shownDoc = null;
    $("#files").toggleAttribute("data-open", Boolean(doc));
    $("#files").toggleAttribute("data-editing", Boolean(doc?.state) && !part(doc, "diff"));
    for (const row of rows()) {
      row.hidden = [...current.folded].some(folder => row.dataset.path.startsWith(`${folder}/`));
      if (row.dataset.folder) row.setAttribute("aria-expanded", String(!current.folded.has(row.dataset.path)));
      else row.setAttribute("aria-selected", String(current.open === row.dataset.path));
    }
    makeTabbable(find(current.focused) || find(current.open) || visibleRows()[0]);
    drawUnsaved();
  };
  const drawUnsaved = () => {
    const doc = opened(), { unsaved } = $("#fi-frame").dataset, dirty = isDirty(doc);
    for (const row of all("#fi-tree [data-label]")) {
      const its = isDirty(current.docs.get(row.dataset.path));
      if (row.title && row.hasAttribute("data-unsaved") === its) continue;
      row.toggleAttribute("data-unsaved", its);
      row.title = formatText(row.dataset.label, { time: clock(row.dataset.at, { dateStyle: "medium", timeStyle: "short" }) }) + (its ? `, ${unsaved}` : "");
      row.setAttribute("aria-label", row.title);
    }
    if (!doc) return;
    const main = part(doc, "main");
    setText($("small", main), dirty ? unsaved : formatText(doc.said, { time: when(doc.at) }));
    $(".fi-head", main).toggleAttribute("data-unsaved", dirty);
    for (const [name, isOff] of [["save", !dirty], ["run", Boolean(doc.isRunning)]]) { const button = $(`[data-files=${name}]`, main); if (button) button.disabled = isOff; }
  };

  // ---- the tree: one row is in the Tab order
  const rows = () => all("#fi-tree .fi-row");
  const visibleRows = () => rows().filter(row => !row.hidden);
  const find = path => rows().find(row => row.dataset.path === path);
  const last = path => path.split("/").pop(), folderOf = path => path.split("/").slice(0, -1).join("/");
  let typed = { text: "", at: 0 }, menuOf = "";
  const makeTabbable = row => {
    if (!row) return;
    for (const one of rows()) one.tabIndex = one === row ? 0 : -1;
    current.focused = row.dataset.path;
  };
  const focus = path => { const row = find(path); makeTabbable(row); row?.focus(); };
  const fold = (row, isFolded) => { if (isFolded) current.folded.add(row.dataset.path); else current.folded.delete(row.dataset.path); draw(); return row; };
  const isOpen = row => row.getAttribute("aria-expanded") === "true";
  const enter = row => { if (row.dataset.folder) fold(row, isOpen(row)); else open(row.dataset.path); };
  const steps = {
    next: row => visibleRows()[visibleRows().indexOf(row) + 1],
    previous: row => visibleRows()[visibleRows().indexOf(row) - 1],
    first: () => visibleRows()[0],
    last: () => visibleRows().at(-1),
    open: row => (!row.dataset.folder ? null : isOpen(row) ? steps.next(row) : fold(row, false)),
    close: row => (row.dataset.folder && isOpen(row) ? fold(row, true) : find(folderOf(row.dataset.path))),
  };
  const typeAhead = (row, key) => {
    typed = { text: Date.now() - typed.at < 700 ? typed.text + key : key, at: Date.now() };
    const list = visibleRows(), from = list.indexOf(row) + (typed.text.length === 1 ? 1 : 0);
    return [...list.slice(from), ...list.slice(0, from)].find(one => last(one.dataset.path).toLowerCase().startsWith(typed.text.toLowerCase()));
  };
  const walk = (event, row) => {
    const way = keys.find(event, "files.walk") || keys.find(event, "files.fold");
    if (keys.is(event, "files.open")) enter(row);
    else if (keys.is(event, "files.rename")) menuActs.rename(row);
    else if (keys.is(event, "files.delete")) menuActs.delete(row);
    else if (keys.is(event, "files.menu")) openMenu(row);
    else if (way || keys.is(event, "files.jump")) { const to = way ? steps[way](row) : typeAhead(row, event.key); makeTabbable(to); to?.focus(); }
    else return;
    event.preventDefault();
  };

  // ---- naming: a new file's name above the tree, a new name over a row, whatever is redrawn meanwhile
  const nameBox = () => $("#fi-name");
  let naming = null;
  const placeNameBox = () => {
    const row = naming?.path && find(naming.path);
    nameBox().style.cssText = row ? "position: absolute; margin: 0; right: 8px; translate: 0 -50%" : "";
    if (!row) return;
    const at = $("span", row).getBoundingClientRect(), side = $(".fi-side").getBoundingClientRect();
    nameBox().style.top = `${at.top + at.height / 2 - side.top}px`;
    nameBox().style.left = `${at.left - side.left - 7}px`;
  };
  const askName = (path, value, then) => {
    naming = { path, value, then };
    Object.assign(nameBox(), { hidden: false, value });
    placeNameBox();
    nameBox().focus();
    const [from, dot] = [value.lastIndexOf("/") + 1, value.lastIndexOf(".")];
    nameBox().setSelectionRange(from, dot > from ? dot : value.length);
  };
  const endNaming = async isKept => {
    if (!naming) return;
    const { value, then } = naming, wanted = nameBox().value.trim(), hadKeys = document.activeElement === nameBox();
    naming = null;
    nameBox().hidden = true;
    if (hadKeys) find(current.focused)?.focus();
    if (isKept && wanted && wanted !== value && !wanted.endsWith("/")) await then(wanted);
  };

  // ---- the menu of a file or a folder
  const openMenu = row => {
    const list = $("#fi-menu"), isFolder = Boolean(row.dataset.folder);
    makeTabbable(row);
    menuOf = row.dataset.path;
    for (const button of all("button", list)) button.hidden = { run: !row.hasAttribute("data-program"), download: isFolder }[button.dataset.choice] || false;
    list.setAttribute("aria-label", $(".fi-more", row).title);
    aivista.menus.open(list, $(".fi-more", row), row);
  };
  const menuActs = {
    run: row => run(row.dataset.path),
    rename: row => { const { path, folder } = row.dataset; askName(path, path, wanted => rename(path, wanted, Boolean(folder))); },
    download: row => download(`aivista/files/${current.id}/raw?name=${encodeURIComponent(row.dataset.path)}&download=1`),
    delete: row => remove(row.dataset.path, Boolean(row.dataset.folder)),
  };

  // ---- presses
  const acts = {
    new: () => {
      const now = find(current.focused), folder = now?.dataset.folder || (now ? folderOf(current.focused) : "");
      askName("", folder ? `${folder}/` : "", create);
    },
    upload: () => $(".fi-pick").click(),
    back: () => { saveState(); current.open = ""; draw(); },
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
    both: () => { const doc = opened(); return shell.act("files.compare", { conversation: current.id, key: doc.key, name: doc.name, text: textOf(doc) }).then(draw); },
    single: () => { part(opened(), "diff").remove(); draw(); },
    close: () => { closeFile(opened()); draw(); },
    replace: () => upload(conflicts, "&replace=1"),
    skip: () => { $("#fi-ask").hidden = true; },
  };
  addEventListener("click", event => {
    const item = event.target.closest?.("#fi-menu [data-choice]"), button = event.target.closest?.("#files [data-files]"), row = event.target.closest?.("#fi-tree .fi-row");
    if (item) { aivista.menus.close(); menuActs[item.dataset.choice](find(menuOf)); }
    else if (button) acts[button.dataset.files]?.(button);
    else if (row) { makeTabbable(row); if (event.target.closest(".fi-more")) openMenu(row); else { row.focus(); enter(row); } }
  });
  aivista.menus.onContext("#fi-tree .fi-row", openMenu);
  addEventListener("keydown", event => {
    const row = event.target.closest?.("#fi-tree .fi-row");
    if (keys.is(event, "files.save") && isPaneShown("files")) { event.preventDefault(); save(); }
    else if (event.target.id === "fi-name") { if (keys.is(event, "field.keep")) endNaming(true); else if (keys.is(event, "field.leave")) endNaming(false); }
    else if (row) walk(event, row);
  }, true);
  // Keys that the editor, the tree or a name has used stay here: elsewhere Escape closes the stage.
  document.addEventListener("keydown", event => { if (keys.is(event, "page.escape") && event.target.closest?.("#fi-code .cm-editor, #fi-tree .fi-row, #fi-name")) event.stopPropagation(); });
  on("focusout", "#fi-name", () => endNaming(true));
  addEventListener("scroll", event => { if (naming && event.target.closest?.(".fi-side")) placeNameBox(); }, true);
  on("change", ".fi-pick", input => {
    const list = [...input.files].map(file => [safeName(file.name), file]);
    input.value = "";
    upload(list);
  });

  // ---- dropped onto the panel, or onto one of its folders
  const carries = event => event.target.closest?.("#files") && [...(event.dataTransfer?.types || [])].includes("Files");
  for (const name of ["dragenter", "dragover", "drop"]) addEventListener(name, event => {
    if (!carries(event)) { $("#files")?.removeAttribute("data-drop"); return; }
    event.preventDefault();
    event.stopImmediatePropagation();
    $("#files").toggleAttribute("data-drop", name !== "drop");
    const folder = event.target.closest("[data-folder]")?.dataset.folder;
    if (name === "drop") upload([...event.dataTransfer.files].map(file => [(folder ? `${folder}/` : "") + safeName(file.name), file]));
  }, true);
  addEventListener("dragleave", event => { if (!event.relatedTarget?.closest?.("#files")) $("#files")?.removeAttribute("data-drop"); }, true);

  // ---- when to refresh: the tab or another conversation is opened, a tool or a turn has ended
  let lastSeen = "";
  onPatched(() => {
    const line = liveLine(), id = shell.pageState().conversation, now = `${id} ${line ? line.dataset.tools || "0" : "-"}`;
    if (lastSeen === now) return;
    lastSeen = now;
    if (current.id !== id) { saveState(); current = spaceOf(id); shownDoc = null; $("#fi-tree")?.replaceChildren(); draw(); }
    if (isPaneShown("files") || current.docs.size) refresh();
  });
  editor.listen(() => { const doc = opened(); if (doc?.state && shownDoc === doc) { saveState(); drawUnsaved(); } });
  addEventListener("aivista-patched", () => {
    draw();
    if (naming) placeNameBox();
  });
  addEventListener("aivista-tab", event => { if (event.detail === "files") refresh(); });
  addEventListener("focus", () => { if (isPaneShown("files")) refresh(); });
  addEventListener("beforeunload", event => { if ([...spaces.values()].some(one => [...one.docs.values()].some(isDirty))) event.preventDefault(); });
}
