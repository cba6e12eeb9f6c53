// A picture that was not sent yet. Dropped onto the stage or chosen there, it goes into the message and has no handle:
// what is painted over it names it as the Nth of the composer's files, `upload:N`.
//
// How Gradio 6.31 orders them, measured: a MultimodalTextbox holds its files in one list and appends to it when an
// upload is done, the files of one drop in the order of the drop; of two uploads at once the one that ends first comes
// first, and its end hides the sign of the other. A removal closes the gap. Send waits for the newest upload and hands
// the list over as it is. The thumbnails in #box show the list in that order. They are reused by position, so an
// element says nothing about its file: the address of its image does, which ends in the file's name. Hence a file that
// may be painted over gets a name of its own, which it still has when a failed turn gives it back.
(() => {
  const root = document.documentElement, painter = window.aivistaPainter;
  const { $, all, word } = painter;
  // How long a file may be missing: with no upload in sight, after another one hid it, and after a failed turn.
  const UPLOAD_MS = 2000, HIDDEN_MS = 60000, RETURN_MS = 5000;
  const records = new Map();  // by a name of ours, "new-k3f9": {handle, file, url, width, height, place, ...}

  const isNew = handle => records.has(handle);
  const freshName = () => {
    const name = `new-${Math.random().toString(36).slice(2, 6).padEnd(4, "0")}`;
    return records.has(name) ? freshName() : name;
  };
  const renamed = (file, handle) => {
    const [, stem, ending] = file.name.match(/^(.*?)(\.[A-Za-z0-9]{1,5})?$/s);
    const type = ending || `.${file.type.split("/")[1] || "img"}`;
    return new File([file], `${stem.slice(0, 60)}${handle.slice(3)}${type}`, { type: file.type });
  };

  // ---- where its file is among those of the message
  const thumbnails = () => all("#box .thumbnail-item");
  const placeOf = record => 1 + thumbnails().findIndex(one => one.querySelector("img")?.src.includes(`${record.handle.slice(3)}.`));
  const settleOne = record => {
    const found = placeOf(record), now = performance.now();
    if (found) Object.assign(record, { until: 0, isReturning: false });
    if (record.until && $("#box .loader")) record.until = Math.max(record.until, now + UPLOAD_MS);
    if (record.until && thumbnails().length > record.before) Object.assign(record, { until: now + HIDDEN_MS, before: Infinity });
    const waits = record.until > now, place = found || (waits && !record.isReturning ? thumbnails().length + 1 + record.ahead : 0);
    if (!place && !waits) { lose(record); return; }
    if (place === record.place && !painter.draft?.isHeld) return;
    record.place = place;
    if (place) painter.restamp(record.handle);
  };
  const placeNew = () => { for (const record of [...records.values()]) if (!painter.isTaken(record.handle)) settleOne(record); };
  const lose = record => {
    const isDraft = painter.draft?.handle === record.handle, isOpen = painter.sheet?.handle === record.handle;
    records.delete(record.handle);
    URL.revokeObjectURL(record.url);
    if (isOpen) { painter.leave(); painter.sheet = null; }
    if (isDraft) { painter.forget(); whisper(word("newGone")); }
  };
  const awaitFile = handle => Object.assign(records.get(handle), { place: 0, before: Infinity, until: performance.now() + RETURN_MS, isReturning: true });

  // ---- the line that says so in the composer: beside Python's own, which is rendered anew after every turn
  let line = null;
  const shownOne = () => {
    const { draft } = painter, others = [...records.values()].filter(record => record.place && !record.isLeft && !painter.isTaken(record.handle));
    return records.get(draft?.handle) || others.at(-1);
  };
  const noteNew = () => {
    const record = shownOne(), template = $("#pt-chip"), context = $("#context");
    if (!record || !template || !context) { line?.remove(); return; }
    line ??= template.content.firstElementChild.cloneNode(true);
    if (!line.isConnected) context.prepend(line);
    const { draft } = painter, own = draft?.handle === record.handle, [label, chip] = line.children;
    const verb = !own ? "" : draft.name === "expand" ? label.dataset.expanding : label.dataset.editing;
    const text = !own ? `· ${word("newPaint")}` : draft.name === "mask" ? `· ${word("maskNote", { share: draft.share })}` : "";
    const small = chip.querySelector("small"), image = chip.querySelector("img");
    if (label.textContent !== verb) label.textContent = verb;
    if (small.textContent !== text) small.textContent = text;
    if (image.src !== record.url) image.src = record.url;
  };

  let said = null, quiet = 0;
  const whisper = text => {  // over the composer, which is in sight where the stage may not be
    clearTimeout(quiet);
    said.textContent = text;
    quiet = setTimeout(() => { said.textContent = ""; }, 8000);
    requestAnimationFrame(() => {  // when the composer has its height without the file
      const box = $("#composer").getBoundingClientRect();
      Object.assign(said.style, { left: `${box.left}px`, width: `${box.width}px`, bottom: `${innerHeight - box.top + 8}px` });
    });
  };
  const watch = () => {
    const template = $("#pt-chip"), center = $("#center");
    if (!template || !center) { setTimeout(watch, 200); return; }
    said = template.content.querySelector("#ctx-said").cloneNode(true);
    center.append(said);
  };
  if (document.body) watch(); else addEventListener("DOMContentLoaded", watch);

  // ---- in: by a drop onto the stage or by its button
  const readable = async (file, ahead) => {  // what the browser can show it can let be painted over
    if (file.type === "image/svg+xml") return null;
    const image = new Image(), url = URL.createObjectURL(file);
    image.src = url;
    try { await image.decode(); } catch { URL.revokeObjectURL(url); return null; }
    const handle = freshName();
    // Upright as its EXIF says.
    return { handle, file: renamed(file, handle), url, width: image.naturalWidth || 1, height: image.naturalHeight || 1, ahead };
  };
  const attach = files => {
    const dataTransfer = new DataTransfer();
    for (const file of files) dataTransfer.items.add(file);
    $("#box textarea")?.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
  };
  const openNew = record => {
    const { draft } = painter;
    root.setAttribute("data-stage", "");
    window.aivistaTabs?.show("canvas");
    painter.openOn({ conversation: "", ...record }, record.url, draft?.handle === record.handle && draft.name === "expand" ? "expand" : "mask");
  };
  const take = async files => {
    const images = files.filter(window.aivistaUploads.isPicture);
    let record = null;
    for (let at = 0; at < images.length && !record; at++) record = await readable(images[at], at);
    if (record) {
      images[record.ahead] = record.file;
      const before = thumbnails().length;
      Object.assign(record, { place: before + 1 + record.ahead, before, until: performance.now() + UPLOAD_MS });
      records.set(record.handle, record);
    }
    if (images.length) attach(images);
    if (record) openNew(record);
    if (images.length) painter.whisper(word(record ? "added" : "attached"));
  };
  const isFileDrag = event => event.target.closest?.("#stage") && [...(event.dataTransfer?.types || [])].includes("Files");
  addEventListener("dragover", event => { if (isFileDrag(event)) event.preventDefault(); });
  addEventListener("drop", event => {
    if (!isFileDrag(event)) return;
    event.preventDefault();
    take([...event.dataTransfer.files]);
  });
  addEventListener("change", event => {
    if (event.target.id !== "pt-photo" || !event.target.files.length) return;
    take([...event.target.files]);
    event.target.value = "";
  });
  Object.assign(painter.acts, {
    choose: () => $("#pt-photo").click(),
    again: () => { const record = shownOne(); if (record) openNew(record); },
    unpaint: () => {
      const record = shownOne();
      if (!record) return;
      record.isLeft = true;
      if (painter.draft?.handle === record.handle) painter.forget();
      painter.note();
      $("#box textarea")?.focus();
    },
  });

  Object.assign(painter, {
    isNew, awaitFile, placeNew, noteNew,
    wired: handle => isNew(handle) ? `upload:${records.get(handle).place}` : handle,
    files: handle => ({ files: thumbnails().length, place: records.get(handle).place }),
  });
})();
