// What is done with the files: begun, brought in, renamed, deleted and brought back, run.
(() => {
  const files = window.aivistaFiles, { $, word, filled } = files;
  const MOST_BYTES = 1 << 20;

  const taken = name => Object.assign(new Error(filled("exists", { names: name })));
  const create = async name => {
    await files.settled(name);
    const { file } = await files.send("write", { name, text: "", version: 0 }).catch(error => { throw error.code === "file_changed" ? taken(name) : error; });
    files.tree.focus(file.name);
    await files.refresh();
    await files.open(file.name);
    window.aivistaEditor.focus();
  };
  const below = path => files.here().files.filter(one => one.name.startsWith(`${path}/`)).map(one => one.name);
  const rename = async (path, wanted, isFolder) => {
    for (const name of isFolder ? below(path) : [path]) {
      const { file } = await files.send("rename", { name, new_name: isFolder ? wanted + name.slice(path.length) : wanted });
      files.renamed(name, file);
    }
    files.tree.focus(wanted);
    await files.refresh();
  };

  // ---- deleted at once, and back for as long as the sentence stands; what was not saved comes back with it
  const remove = async (path, isFolder) => {
    const names = isFolder ? below(path) : [path], here = files.here();
    const docs = names.map(name => here.docs.get(name)).filter(Boolean), wasOpen = here.open;
    try {
      const { token, said } = await files.send("delete", { names });
      for (const doc of docs) { files.keep(); files.close(doc); }
      await files.refresh();
      files.tell(said, { label: word("undo"), run: () => undo(here, token, docs, wasOpen).catch(files.failed) });
    } catch (error) { files.failed(error); }
  };
  const undo = async (here, token, docs, wasOpen) => {
    const { files: list } = await files.send("undelete", { token });
    here.files = list;
    for (const doc of docs) {
      const file = list.find(one => one.name === doc.name);
      if (file) here.docs.set(doc.name, Object.assign(doc, { file }));
    }
    if (docs.some(doc => doc.name === wasOpen)) here.open = wasOpen;
    files.draw();
  };

  // ---- from the person's machine; signs that a name cannot have here become an underscore
  const plain = name => name.normalize("NFC").replace(/[^\p{L}\p{M}\p{N}_. -]/gu, "_").replace(/\.{2,}/g, ".").trim().slice(0, 100) || "_";
  const put = (name, file, more = "") => files.ask(files.address("upload", name, more), { method: "POST", body: file });
  const bringIn = async (list, folder = "") => {
    const there = [], all = [...list];
    try {
      if (all.length) await files.settled(plain(all[0].name));
      for (const file of all) {
        const name = (folder ? `${folder}/` : "") + plain(file.name);
        if (file.size > MOST_BYTES) { files.tell(filled("too-large", { name, limit: 1 }), { isProblem: true }); continue; }
        try { await put(name, file); files.tree.focus(name); } catch (error) { if (error.code === "file_changed") there.push([name, file]); else throw error; }
      }
      await files.refresh();
    } catch (error) { files.failed(error); files.refresh().catch(() => {}); }
    if (there.length) files.tell(filled("exists", { names: there.map(([name]) => name).join(", ") }), { isProblem: true, label: word("replace"), run: () => replace(there).catch(files.failed) });
  };
  const replace = async there => {
    for (const [name, file] of there) await put(name, file, "&replace=1");
    await files.refresh();
  };

  // ---- a program and what it says; what is not saved is saved first, so that what runs is what is seen
  const run = async path => {
    if (path && files.here().open !== path) await files.open(path);
    const doc = files.opened();
    if (!doc?.file.isProgram || doc.isRunning || (files.isDirty(doc) && !(await files.save(doc)))) return;
    doc.isRunning = true;
    doc.run = `<p class="quiet">${word("running")}</p>`;
    files.draw();
    try { doc.run = (await files.send("run", { name: doc.name })).html; } catch (error) { doc.run = ""; files.failed(error); }
    doc.isRunning = false;
    await files.refresh().catch(files.failed);
    files.draw();
  };

  files.moves = { create, rename, remove, run };
  const acts = {
    new: () => files.tree.begin(),
    upload: () => $("#files .fi-pick").click(),
    back: () => { files.keep(); files.here().open = ""; files.draw(); },
    save: () => files.save(),
    run: () => run(""),
    close_run: () => { const doc = files.opened(); doc.run = ""; files.draw(); },
    line: button => window.aivistaEditor.goTo(Number(button.dataset.line)),
    open: button => files.open(button.dataset.name),
  };
  addEventListener("click", event => { const button = event.target.closest?.("#files [data-files]"); acts[button?.dataset.files]?.(button); });
  addEventListener("change", event => {
    if (!event.target.matches?.("#files .fi-pick")) return;
    const list = [...event.target.files];
    event.target.value = "";
    bringIn(list);
  });

  // ---- dropped onto the panel, or onto one of its folders
  const carries = event => event.target.closest?.("#files") && [...(event.dataTransfer?.types || [])].includes("Files");
  for (const name of ["dragenter", "dragover", "drop"]) addEventListener(name, event => {
    if (!carries(event)) { $("#files")?.removeAttribute("data-drop"); return; }
    event.preventDefault();
    event.stopImmediatePropagation();
    $("#files").toggleAttribute("data-drop", name !== "drop");
    if (name === "drop") bringIn(event.dataTransfer.files, event.target.closest("[data-folder]")?.dataset.folder);
  }, true);
  addEventListener("dragleave", event => { if (!event.relatedTarget || !event.relatedTarget.closest?.("#files")) $("#files")?.removeAttribute("data-drop"); }, true);
})();
