// The tree of the files panel: drawn from the list, walked by keys, its files named in place, and a menu for each.
(() => {
  const files = window.aivistaFiles, keys = window.aivistaKeys, { $, word, filled } = files;
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const place = () => $("#files .fi-tree");
  const rows = () => all(".fi-row", place());
  const picture = /\.(png|jpe?g|gif|webp|avif)$/i;
  let focused = "", naming = null, typed = { text: "", at: 0 }, menuOf = null;

  const sized = bytes => (bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(bytes < 1e4 ? 1 : 0)} KB` : `${(bytes / 1e6).toFixed(1)} MB`);
  const icon = name => $(`#files .fi-icons [data-icon=${name}]`).firstElementChild.cloneNode(true);
  const iconOf = file => icon(picture.test(file.name) ? "picture" : file.language && file.language !== "markdown" ? "code" : "text");

  // ---- from names with slashes to rows: folders first, each with what is in it
  const grown = list => {
    const top = { folders: new Map(), files: [] };
    for (const file of list) {
      let at = top, path = "";
      for (const part of file.name.split("/").slice(0, -1)) {
        path = path ? `${path}/${part}` : part;
        if (!at.folders.has(part)) at.folders.set(part, { path, folders: new Map(), files: [] });
        at = at.folders.get(part);
      }
      at.files.push(file);
    }
    return top;
  };
  const { compare } = new Intl.Collator(undefined, { numeric: true });
  const last = path => path.split("/").pop();
  const flat = (branch, level, folded, found = []) => {
    const folders = [...branch.folders].sort(([one], [other]) => compare(one, other));
    const names = branch.files.sort((one, other) => compare(one.name, other.name)), size = folders.length + names.length;
    folders.forEach(([, folder], at) => {
      const isFolded = folded.has(folder.path);
      found.push({ folder: folder.path, level, at, size, isFolded });
      if (!isFolded) flat(folder, level + 1, folded, found);
    });
    names.forEach((file, at) => found.push({ file, level, at: folders.length + at, size }));
    return found;
  };

  const row = one => {
    const line = document.createElement("div"), name = document.createElement("span"), path = one.folder || one.file.name;
    line.className = "fi-row";
    line.setAttribute("role", "treeitem");
    line.setAttribute("aria-level", one.level);
    line.setAttribute("aria-posinset", one.at + 1);
    line.setAttribute("aria-setsize", one.size);
    line.style.setProperty("--level", one.level - 1);
    line.tabIndex = -1;
    line.dataset.path = path;
    name.textContent = last(path);
    if (one.folder) {
      line.dataset.folder = path;
      line.setAttribute("aria-expanded", String(!one.isFolded));
      line.append(icon(one.isFolded ? "folder" : "open"), name);
    } else {
      const dot = document.createElement("b"), size = document.createElement("small");
      size.textContent = sized(one.file.size);
      dot.title = word("unsaved");
      line.append(iconOf(one.file), name, dot, size);
      if (one.file.by === "agent") size.before(icon("agent"));
    }
    const more = Object.assign(document.createElement("button"), { type: "button", className: "fi-more", tabIndex: -1, title: filled("more", { name: last(path) }) });
    // For the pointer alone: keys have the menu key, F2 and Delete on the row itself.
    more.setAttribute("aria-hidden", "true");
    more.dataset.files = "menu";
    more.append(icon("more"));
    line.append(more);
    return line;
  };
  const draw = () => {
    const box = place(), here = files.here();
    if (!box || naming) return;
    const had = box.contains(document.activeElement), list = here.files;
    box.replaceChildren(...flat(grown(list), 1, here.folded).map(row));
    box.hidden = !list.length;
    $("#files .empty").hidden = Boolean(list.length) || !here.isKnown;
    $("#files .fi-count").textContent = !list.length ? "" : list.length === 1 ? word("count-one") : filled("count", { count: list.length });
    const pack = $("#files .fi-all");
    pack.hidden = !list.length;
    pack.href = files.address("zip");
    rove(find(focused) || find(here.open) || rows()[0]);
    mark();
    if (had && !box.contains(document.activeElement)) find(focused)?.focus({ preventScroll: true });
  };
  // What changes with every key typed into the editor: nothing is drawn anew for it.
  const mark = () => {
    const here = files.here();
    for (const line of rows()) {
      if (line.dataset.folder) { line.setAttribute("aria-label", filled("folder", { name: line.dataset.folder })); continue; }
      const file = files.fileOf(line.dataset.path), doc = here.docs.get(line.dataset.path), isDirty = files.isDirty(doc);
      if (!file) continue;
      line.toggleAttribute("data-unsaved", isDirty);
      line.setAttribute("aria-selected", String(here.open === file.name));
      const by = filled(file.by === "agent" ? "by-agent" : "by-person", { time: new Date(file.at).toLocaleString(word("language"), { dateStyle: "medium", timeStyle: "short" }) });
      const label = [last(file.name), sized(file.size), by, ...(isDirty ? [word("unsaved")] : [])].join(", ");
      if (line.getAttribute("aria-label") !== label) { line.setAttribute("aria-label", label); line.title = label; }
    }
  };

  // ---- one row is in the order of the Tab key
  const find = path => rows().find(line => line.dataset.path === path);
  const rove = line => {
    if (!line) return;
    for (const one of rows()) one.tabIndex = -1;
    line.tabIndex = 0;
    focused = line.dataset.path;
  };
  const fold = (path, isFolded) => { const { folded } = files.here(); if (isFolded) folded.add(path); else folded.delete(path); focused = path; draw(); };
  const act = line => { if (line.dataset.folder) fold(line.dataset.folder, line.getAttribute("aria-expanded") === "true"); else files.open(line.dataset.path); };
  const parent = line => find(line.dataset.path.split("/").slice(0, -1).join("/"));
  const step = {
    next: line => line.nextElementSibling,
    previous: line => line.previousElementSibling,
    first: () => rows()[0],
    last: () => rows().at(-1),
    open: line => {
      if (line.getAttribute("aria-expanded") === "false") { fold(line.dataset.folder, false); return find(focused); }
      return line.dataset.folder && line.nextElementSibling?.dataset.path.startsWith(`${line.dataset.folder}/`) ? line.nextElementSibling : null;
    },
    close: line => {
      if (line.getAttribute("aria-expanded") === "true") { fold(line.dataset.folder, true); return find(focused); }
      return parent(line);
    },
  };
  const seek = (line, key) => {
    typed = { text: Date.now() - typed.at < 700 ? typed.text + key : key, at: Date.now() };
    const list = rows(), from = list.indexOf(line) + (typed.text.length === 1 ? 1 : 0);
    return [...list.slice(from), ...list.slice(0, from)].find(one => last(one.dataset.path).toLowerCase().startsWith(typed.text.toLowerCase()));
  };
  const walk = event => {
    const line = event.target.closest?.(".fi-row");
    if (!line || naming) return;
    const way = keys.find(event, "files.walk") || keys.find(event, "files.fold");
    if (keys.is(event, "files.open")) act(line);
    else if (keys.is(event, "files.rename")) name(line);
    else if (keys.is(event, "files.delete")) files.moves.remove(line.dataset.path, Boolean(line.dataset.folder));
    else if (keys.is(event, "files.menu")) openMenu(line);
    else if (way || keys.is(event, "files.jump")) {
      const to = way ? step[way](line) : seek(line, event.key);
      if (to) { rove(to); to.focus(); }
    } else return;
    event.preventDefault();
  };

  // ---- a name, given in place: a new file's, or another one for a file or a folder
  const ask = (line, value, then) => {
    const box = Object.assign(document.createElement("input"), { type: "text", value, maxLength: 120, spellcheck: false, autocomplete: "off" });
    box.setAttribute("aria-label", word("name-label"));
    box.placeholder = word("name-label").match(/[\w./-]+$/)?.[0] || "";
    naming = box;
    line.classList.add("naming");
    for (const one of all("span, small, b, button", line)) one.hidden = true;
    line.append(box);
    box.focus();
    const [from, dot] = [value.lastIndexOf("/") + 1, value.lastIndexOf(".")];
    box.setSelectionRange(from, dot > from ? dot : value.length);
    const end = async isKept => {
      if (naming !== box) return;
      naming = null;
      const wanted = box.value.trim();
      if (isKept && wanted && wanted !== value && !wanted.endsWith("/")) {
        try { await then(wanted); } catch (error) { files.failed(error); }
      }
      draw();
      if (document.activeElement === document.body) find(focused)?.focus();
    };
    box.addEventListener("keydown", event => {
      event.stopPropagation();
      if (keys.is(event, "field.keep")) end(true);
      else if (keys.is(event, "field.leave")) end(false);
    });
    box.addEventListener("blur", () => end(true));
  };
  const name = line => { if (line) ask(line, line.dataset.path, wanted => files.moves.rename(line.dataset.path, wanted, Boolean(line.dataset.folder))); };
  const begin = () => {
    const box = place(), line = document.createElement("div"), now = find(focused);
    const folder = now?.dataset.folder || (now ? now.dataset.path.split("/").slice(0, -1).join("/") : "");
    if (naming) return;
    line.className = "fi-row";
    line.append(icon("text"));
    box.hidden = false;
    $("#files .empty").hidden = true;
    box.prepend(line);
    ask(line, folder ? `${folder}/` : "", wanted => files.moves.create(wanted));
  };

  // ---- the menu of a file or a folder
  const menu = () => $("#fi-menu");
  const openMenu = line => {
    const list = menu(), isFolder = Boolean(line.dataset.folder), box = line.getBoundingClientRect();
    rove(line);
    menuOf = line.dataset.path;
    for (const button of all("button", list)) button.hidden = { run: !files.fileOf(menuOf)?.isProgram, download: isFolder }[button.dataset.menu] || false;
    list.setAttribute("aria-label", filled("more", { name: last(menuOf) }));
    list.showPopover();
    const own = list.getBoundingClientRect();
    list.style.left = `${Math.max(8, Math.min(innerWidth - own.width - 8, box.right - own.width + 4))}px`;
    list.style.top = `${box.bottom + own.height + 8 > innerHeight ? Math.max(8, box.top - own.height - 4) : box.bottom + 2}px`;
    all("button:not([hidden])", list)[0].focus();
  };
  const closeMenu = () => { menu().hidePopover(); find(menuOf)?.focus(); };
  const inMenu = event => {
    const items = all("button:not([hidden])", menu()), to = keys.walk(event, "menu.walk", items, items.indexOf(event.target));
    if (to >= 0) items[to].focus();
    else if (keys.is(event, "menu.leave")) closeMenu();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  const chosen = {
    run: path => files.moves.run(path),
    rename: path => name(find(path)),
    download: path => { const link = Object.assign(document.createElement("a"), { href: files.address("raw", path, "&download=1"), download: "" }); link.click(); },
    delete: path => files.moves.remove(path, Boolean(find(path)?.dataset.folder)),
  };

  files.tree = { draw, mark, begin, openMenu, focus: path => { focused = path; } };
  addEventListener("click", event => {
    const item = event.target.closest?.("#fi-menu [data-menu]");
    if (item) { closeMenu(); chosen[item.dataset.menu](menuOf); return; }
    const line = event.target.closest?.("#files .fi-row[data-path]");
    if (!line || naming) return;
    rove(line);
    if (event.target.closest(".fi-more")) openMenu(line); else { line.focus(); act(line); }
  });
  addEventListener("contextmenu", event => {
    const line = event.target.closest?.("#files .fi-row[data-path]");
    if (line && !naming) { event.preventDefault(); openMenu(line); }
  });
  addEventListener("keydown", event => { if (event.target.closest?.("#fi-menu")) inMenu(event); else if (event.target.closest?.("#files .fi-tree")) walk(event); }, true);
})();
