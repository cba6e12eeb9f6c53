// Files on their way into the message, a row each: how far, and the way to leave one out. Gradio sends all files of one
// drop in one request and tells nothing of it; here each goes by itself, and Gradio gets the list of those that arrived.
(() => {
  const $ = selector => document.querySelector(selector);
  const AT_ONCE = 3, QUIET_MS = 250, TOLD_MS = 12000, TAKEN_MS = 25, TAKEN_TRIES = 120;
  const template = () => $("#tpl-upload");
  const limit = () => Number(template()?.dataset.most) || 20;  // megabytes
  const size = bytes => bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.max(1, Math.round(bytes / 1e3))} kB`;
  const isPicture = file => file.type.startsWith("image/") || /\.(heic|heif|avif)$/i.test(file.name);

  const list = () => {
    const found = $("#uploads");
    if (found) return found;
    const made = Object.assign(document.createElement("ul"), { id: "uploads" });
    $("#box")?.before(made);
    return made;
  };
  const tell = (key, values) => {
    const text = Object.entries(values).reduce((said, [name, value]) => said.replaceAll(`{${name}}`, () => value), template()?.dataset[key] || "");
    const row = Object.assign(document.createElement("li"), { className: "bad", textContent: text });
    row.setAttribute("role", "alert");
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
    const row = template()?.content.firstElementChild.cloneNode(true);
    if (!row) return { at: () => {}, end: () => {} };
    const bar = row.querySelector("progress"), at = row.querySelector(".at");
    row.querySelector(".name").textContent = short(file.name);
    row.querySelector("button").addEventListener("click", cancel);
    bar.setAttribute("aria-label", bar.getAttribute("aria-label").replace("{name}", () => file.name));
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
  const thumbs = () => document.querySelectorAll("#box .thumbnail-item").length;
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
  window.aivista.uploads = { isPicture, admits, isBusy: () => running > 0 };
})();
