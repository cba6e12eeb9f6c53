// Files on their way into the message, a row each: how far, and the way to leave one out. Gradio sends all files of one
// drop in one request and tells nothing of it; here each goes by itself, and Gradio gets the list of those that arrived.
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

  // ---- a row: it is shown only for what takes a moment
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
        // All is sent, and the server has yet to answer: a bar that waits, not one that stands still.
        if (share >= 1) bar.removeAttribute("value"); else bar.value = Math.round(share * 100);
        at.textContent = `${Math.round(share * 100)} %`;
      },
      end: () => { clearTimeout(late); row.remove(); },
    };
  };

  // ---- one file: the list with its path as the server answers, an empty one when it was left out or failed
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

  // ---- how many drops are on their way: who sends meanwhile waits for them, until they stand in the box
  let running = 0, isWhole = true;
  const thumbs = () => all("#box .thumbnail-item").length;
  const arrived = (before, count, tries = TAKEN_TRIES) => {
    if (count && tries && thumbs() < before + count) { setTimeout(arrived, TAKEN_MS, before, count, tries - 1); return; }
    running -= 1;
    if (running) return;
    dispatchEvent(new CustomEvent("aivista-uploaded", { detail: { isWhole } }));
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

// Pictures dropped or pasted anywhere on the page go into the message; while they are dragged, a target says where they
// would end. The stage has drops of its own: the painter takes pictures (features/viewer/mask.js), the Files tab takes
// any file (features/files). Whatever takes no file does not let the browser leave the page for it either.
//
// Before they go on, files that cannot be added are told of in the composer instead of failing one by one later. This
// script comes before those that listen for the same drops, and hands on what it lets through as a drop on the box.
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

  // ---- where a drop would end
  const zoneOf = target => {
    if (isBlocked()) return { name: "" };
    const stage = target?.closest?.("#stage");
    if (!stage) return { name: "message", place: $("#center") };
    // The Files tab marks its own folders.
    return target.closest("#files") ? { name: "files" } : { name: "paint", place: stage };
  };
  // What is dragged is known by its kinds alone, and by some browsers not even those.
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
    // A drag that ends outside of the window says nothing: without news for a moment it is over.
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

  // ---- pasted where nobody types; in the box itself Gradio takes it
  addEventListener("paste", event => {
    const files = [...(event.clipboardData?.files || [])];
    if (!files.length || isBlocked() || event.target.closest?.("#box, #files, .cm-editor")) return;
    if (event.target.closest?.("input, textarea, [contenteditable=true]") && event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    take(files);
  });
}

// Pictures that were attached and not sent stay with their conversation: they leave the box when another one is opened,
// and stand in it again when their own comes back, for as long as the page is open.
{
  const STEP_MS = 20, MOST_STEPS = 200;
  const shelf = new Map();  // by conversation: the addresses of its pictures
  const thumbnails = () => all("#box .thumbnail-item");
  let moves = 0;

  // One at a time: the list is drawn anew after each.
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

  // Under the names they had: a part that was painted over is found by its picture's name.
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
  // Pictures of other conversations come as files.
  addEventListener("aivista-attach", async event => {
    const files = await Promise.all(event.detail.map(one => fetched(one.url, one.name)));
    aivista.drops.hand(files.flat());
  });
  aivista.attached = { leave, arrive, clear };
}
