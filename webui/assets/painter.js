// The painter over the stage: a mask on a canvas of at most 1024 px, or a picture's edges drawn outwards. What it makes
// goes into two hidden fields of the composer, `mask` and `expand`, which Send takes along and Python empties.
(() => {
  const root = document.documentElement;
  const $ = selector => document.querySelector(selector);
  const all = selector => [...document.querySelectorAll(selector)];
  const clamp = (value, least, most) => Math.min(most, Math.max(least, value));
  const MOST_UNDOS = 30, HARD = 128, MOST_ZOOM = 8, STEP_PX = 8, TOLERANCE = 1.02, FLOOR = 0.35;
  const SIDES = ["left", "top", "right", "bottom"];

  const word = (name, values = {}) => Object.entries(values).reduce((text, [key, value]) => text.replaceAll(`{${key}}`, value), $("#pt")?.dataset[name] || "");
  const isPainting = () => root.hasAttribute("data-painting");
  const mode = () => $("#pt").dataset.mode;

  // ---- the hidden fields, written so that Svelte sees them
  const field = name => $(`#${name} :is(textarea, input)`);
  const read = name => field(name)?.value || "";
  const write = (name, value) => {
    const input = field(name);
    if (!input || input.value === value) return;
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(input), "value").set.call(input, value);
    input.dispatchEvent(new Event("input", { bubbles: true }));
  };

  // ---- a sheet: one picture, what is painted over it (one byte a pixel, 0 or 255), how far it grows
  let sheet = null;
  const ink = document.createElement("canvas"), brush = ink.getContext("2d", { willReadFrequently: true });
  const canvas = () => $("#pt-canvas");
  const front = () => canvas().getContext("2d", { willReadFrequently: true });
  const longest = () => Math.max(sheet.w, sheet.h);
  const none = () => ({ left: 0, top: 0, right: 0, bottom: 0 });
  const newSheet = ({ conversation, handle, width, height }) => {
    const scale = Math.min(1, Number($("#pt").dataset.longest) / Math.max(width, height));
    const w = Math.max(1, Math.round(width * scale)), h = Math.max(1, Math.round(height * scale));
    return { conversation, handle, width: Number(width), height: Number(height), w, h, alpha: new Uint8Array(w * h), undo: [], redo: [], growth: none() };
  };
  const painted = alpha => { let count = 0; for (let at = 0; at < alpha.length; at++) if (alpha[at]) count++; return count; };
  const percent = () => {
    const share = 100 * painted(sheet.alpha) / sheet.alpha.length;
    return share === 0 ? "" : share < 0.1 ? "< 0.1" : share < 1 || (share > 99 && share < 100) ? share.toFixed(1) : String(Math.round(share));
  };

  // ---- pixels: from bytes to a canvas and back
  const filled = (alpha, colour) => {
    const image = new ImageData(sheet.w, sheet.h), pixels = new Uint32Array(image.data.buffer), [red, green, blue] = colour;
    for (let at = 0; at < alpha.length; at++) pixels[at] = (alpha[at] << 24 | blue << 16 | green << 8 | red) >>> 0;
    return image;
  };
  const rose = () => { const hex = getComputedStyle(document.body).getPropertyValue("--av-mask").trim() || "#FF2E63"; return [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16)); };
  const hex = colour => `rgb(${colour.join(" ")})`;
  const reaches = (alpha, w, h) => {  // how deep in the mask each pixel lies, in thirds of a pixel; the picture's edge is no border
    const reach = new Uint16Array(alpha.length).fill(65535);
    for (let y = 0, at = 0; y < h; y++) for (let x = 0; x < w; x++, at++) {
      if (!alpha[at]) { reach[at] = 0; continue; }
      let least = x ? reach[at - 1] + 3 : 65535;
      if (y) { least = Math.min(least, reach[at - w] + 3); if (x) least = Math.min(least, reach[at - w - 1] + 4); if (x < w - 1) least = Math.min(least, reach[at - w + 1] + 4); }
      reach[at] = Math.min(least, 65535);
    }
    for (let y = h - 1, at = alpha.length - 1; y >= 0; y--) for (let x = w - 1; x >= 0; x--, at--) {
      let least = reach[at];
      if (x < w - 1) least = Math.min(least, reach[at + 1] + 3);
      if (y < h - 1) { least = Math.min(least, reach[at + w] + 3); if (x) least = Math.min(least, reach[at + w - 1] + 4); if (x < w - 1) least = Math.min(least, reach[at + w + 1] + 4); }
      reach[at] = least;
    }
    return reach;
  };
  const softened = () => {  // what is shown: the edge fades inwards as far as the change will, but stays visible
    const feather = 3 * Number($("#pt-feather").value) * longest() / 1024, reach = reaches(sheet.alpha, sheet.w, sheet.h), shown = new Uint8Array(sheet.alpha.length);
    for (let at = 0; at < shown.length; at++) {
      if (!reach[at]) continue;
      const depth = Math.min(1, reach[at] / feather);
      shown[at] = 255 * Math.max(FLOOR, depth * depth * (3 - 2 * depth));
    }
    return shown;
  };
  const toPng = () => {
    const out = Object.assign(document.createElement("canvas"), { width: sheet.w, height: sheet.h });
    const image = new ImageData(sheet.w, sheet.h), pixels = new Uint32Array(image.data.buffer);
    for (let at = 0; at < pixels.length; at++) pixels[at] = sheet.alpha[at] ? 0xffffffff : 0xff000000;
    out.getContext("2d", { willReadFrequently: true }).putImageData(image, 0, 0);
    return out.toDataURL("image/png").split(",")[1];
  };
  const fromImage = image => {  // white, and nothing darker or transparent, is what changes
    const read = Object.assign(document.createElement("canvas"), { width: sheet.w, height: sheet.h }).getContext("2d");
    read.drawImage(image, 0, 0, sheet.w, sheet.h);
    const { data } = read.getImageData(0, 0, sheet.w, sheet.h), alpha = new Uint8Array(sheet.alpha.length);
    for (let at = 0, from = 0; at < alpha.length; at++, from += 4) {
      const light = (0.299 * data[from] + 0.587 * data[from + 1] + 0.114 * data[from + 2]) * data[from + 3] / 255;
      alpha[at] = light >= HARD ? 255 : 0;
    }
    return alpha;
  };
  const decoded = async png => createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());

  // ---- what is shown
  const show = () => {
    const view = canvas(), colour = rose();
    if (view.width !== sheet.w || view.height !== sheet.h) Object.assign(view, { width: sheet.w, height: sheet.h });
    if (ink.width !== sheet.w || ink.height !== sheet.h) Object.assign(ink, { width: sheet.w, height: sheet.h });
    brush.putImageData(filled(sheet.alpha, colour), 0, 0);
    front().putImageData(filled(softened(), colour), 0, 0);
    tell();
  };
  const tell = () => {
    const share = percent(), grown = SIDES.some(side => sheet.growth[side]);
    const after = { width: Math.round(sheet.width * (1 + sheet.growth.left + sheet.growth.right)), height: Math.round(sheet.height * (1 + sheet.growth.top + sheet.growth.bottom)) };
    const text = mode() === "expand" ? word("sizeAfter", after) : share ? word("share", { share }) : word("nothing");
    if ($("#pt-share").textContent !== text) $("#pt-share").textContent = text;
    $("#pt-handle").textContent = sheet.handle;
    $("#pt-pixels").textContent = `${sheet.width}×${sheet.height}`;
    for (const [name, is] of [["undo", sheet.undo.length], ["redo", sheet.redo.length], ["clear", share], ["last", offered()], ["reset", grown]]) $(`#pt [data-paint=${name}]`).disabled = !is;
    for (const input of all("#pt [data-side]")) if (input !== document.activeElement) input.value = String(Math.round(sheet.growth[input.dataset.side] * 1000) / 10);
    layout();
    note();
  };
  let quiet = 0;
  const whisper = text => {
    clearTimeout(quiet);
    $("#pt-said").textContent = text;
    quiet = setTimeout(() => { $("#pt-said").textContent = ""; }, 8000);
  };
  const say = text => { const place = $("#pt-note"); place.hidden = !text; place.textContent = text; };

  // ---- the last mask of each picture, for as long as the tab is open
  const shelf = () => `aivista-mask ${sheet.conversation} ${sheet.handle}`;
  const keep = value => { try { sessionStorage.setItem(shelf(), value); } catch { /* no room: the mask is in the field, only not kept for later */ } };
  const kept = () => { try { return sessionStorage.getItem(shelf()) || ""; } catch { return ""; } };
  const offered = () => kept() && kept() !== draft?.value ? kept() : "";

  // ---- the draft: what lies in a field for the next message, and the mark of its picture in the composer
  let draft = null, taken = null, claimed = "", marked = "";
  const chip = () => $("#ctx .ctx[data-handle]");
  const act = (name, handle) => window.aivista?.act({ act: name, arg: handle });
  const claim = handle => {
    if (claimed === handle || chip()?.dataset.handle === handle) return;
    claimed = marked = handle;
    act("edit", handle);
  };
  const put = (name, value, share = "") => {
    write(name === "mask" ? "expand" : "mask", "");
    write(name, value);
    const { conversation, handle } = sheet;
    draft = value ? { name, value, share, conversation, handle } : null;
    taken = null;
    if (value) claim(handle);
    else if (marked === handle) { marked = claimed = ""; act("drop", handle); }
    note();
  };
  const forget = () => {
    draft = taken = null;
    claimed = marked = "";
    write("mask", "");
    write("expand", "");
    wipe();
  };
  const wipe = () => {
    if (!sheet) return;
    sheet.growth = none();
    if (painted(sheet.alpha)) { remember(); sheet.alpha = new Uint8Array(sheet.alpha.length); }
    if (isPainting()) show();
  };
  const note = () => {
    const place = chip(), label = place?.previousElementSibling, own = draft && place?.dataset.handle === draft.handle;
    if (!place) return;
    const text = own && draft.name === "mask" ? `· ${word("maskNote", { share: draft.share })}` : "";
    if (place.querySelector("small").textContent !== text) place.querySelector("small").textContent = text;
    const verb = own && draft.name === "expand" ? label.dataset.expanding : label.dataset.editing;
    if (label.textContent !== verb) label.textContent = verb;
  };
  const settle = () => {
    const editing = chip()?.dataset.handle || "", where = $("#top h1")?.dataset.conversation;
    if (editing && editing === claimed) claimed = "";
    if (draft) {
      if (!read(draft.name)) { taken = draft; draft = null; marked = ""; wipe(); }
      else if (draft.conversation !== where || (editing && editing !== draft.handle && !claimed)) forget();
      else if (!editing) claim(draft.handle);  // the end of an earlier turn took the mark away
    } else if (taken && read(taken.name) === taken.value) {  // the turn failed: Python gave it back
      [draft, taken] = [taken, null];
      recall();
    }
    note();
  };
  const recall = async () => {
    if (!sheet || !draft || draft.handle !== sheet.handle || draft.conversation !== sheet.conversation) return;
    const { png, feather, ...growth } = JSON.parse(draft.value), here = sheet;
    if (draft.name === "expand") for (const side of SIDES) sheet.growth[side] = growth[side];
    else {
      const image = await decoded(png);
      if (sheet !== here) return;
      if (feather) setSlider("feather", feather);
      sheet.alpha = fromImage(image);
    }
    if (isPainting()) show();
  };

  // ---- changes, each of which can be undone
  const remember = () => { sheet.undo.push(sheet.alpha.slice()); if (sheet.undo.length > MOST_UNDOS) sheet.undo.shift(); sheet.redo = []; };
  const commit = () => {
    const share = percent();
    say("");
    if (share) sheet.growth = none();
    const value = share ? JSON.stringify({ handle: sheet.handle, png: toPng(), feather: Number($("#pt-feather").value) }) : "";
    if (value) keep(value);
    if (value || draft?.name === "mask") put("mask", value, share);
    show();
  };
  const change = alpha => { remember(); sheet.alpha = alpha; commit(); };
  const swap = (from, to) => { if (!from.length) return; to.push(sheet.alpha); sheet.alpha = from.pop(); commit(); };
  const setSlider = (name, value) => { const input = $(`#pt-${name}`); input.value = String(value); input.nextElementSibling.textContent = input.value; };
  const loadFile = async file => {
    const here = sheet;
    let image;
    try { image = await createImageBitmap(file); } catch { say(word("notRead")); return; }
    if (sheet !== here) return;
    const stretch = (image.width / image.height) / (sheet.width / sheet.height);
    if (stretch > TOLERANCE || stretch < 1 / TOLERANCE) { say(word("wrongShape", { mask_width: image.width, mask_height: image.height, width: sheet.width, height: sheet.height })); return; }
    const alpha = fromImage(image);
    if (!painted(alpha)) { say(word("emptyFile")); return; }
    change(alpha);
    whisper(word("loaded"));
  };
  const loadLast = async () => {
    const here = sheet, value = offered();
    if (!value) return;
    const { png, feather } = JSON.parse(value), image = await decoded(png);
    if (sheet !== here) return;
    if (feather) setSlider("feather", feather);
    change(fromImage(image));
  };

  // ---- a stroke, by pointer or by key
  let stroke = null, tool = "brush";
  const widthOfBrush = () => Math.max(1, Number($("#pt-size").value) * longest() / 1024);
  const line = (context, from, to) => {
    context.globalCompositeOperation = tool === "eraser" ? "destination-out" : "source-over";
    Object.assign(context, { strokeStyle: hex(rose()), lineWidth: widthOfBrush(), lineCap: "round", lineJoin: "round" });
    // Half a pixel more: a canvas draws no line without length, and a dab is one.
    context.beginPath(); context.moveTo(...from); context.lineTo(to[0] + 0.5, to[1]); context.stroke();
    context.globalCompositeOperation = "source-over";
  };
  const both = draw => { draw(brush); draw(front()); };
  const begin = point => { stroke = { from: point, last: point, shown: tool === "box" ? front().getImageData(0, 0, sheet.w, sheet.h) : null }; if (tool !== "box") both(context => line(context, point, point)); };
  const goOn = point => {
    const { from, last, shown } = stroke;
    if (tool === "box") {
      brush.putImageData(filled(sheet.alpha, rose()), 0, 0);
      front().putImageData(shown, 0, 0);
      both(context => { context.fillStyle = hex(rose()); context.fillRect(from[0], from[1], point[0] - from[0], point[1] - from[1]); });
    } else both(context => line(context, last, point));
    stroke.last = point;
  };
  const finish = () => {
    const before = sheet.alpha, { data } = brush.getImageData(0, 0, sheet.w, sheet.h), after = new Uint8Array(before.length);
    for (let at = 0; at < after.length; at++) after[at] = data[4 * at + 3] >= HARD ? 255 : 0;
    stroke = null;
    let at = 0;
    while (at < after.length && after[at] === before[at]) at++;
    if (at < after.length) change(after); else show();
  };
  const cancel = () => { if (stroke) { stroke = null; show(); } };

  // ---- the view: how near, and where
  let view = { zoom: 1, x: 0, y: 0 }, still = null;
  const well = () => $(".pt-well");
  const look = () => {
    const box = well(), most = [box.clientWidth, box.clientHeight].map(size => size * (view.zoom - 0.5) / 2);
    view.x = clamp(view.x, -most[0], most[0]);
    view.y = clamp(view.y, -most[1], most[1]);
    $(".pt-view").style.transform = `translate(${view.x}px, ${view.y}px) scale(${view.zoom})`;
  };
  const fit = () => { view = { zoom: 1, x: 0, y: 0 }; look(); };
  const zoomBy = (factor, clientX, clientY) => {
    const box = well().getBoundingClientRect(), zoom = clamp(view.zoom * factor, 0.5, MOST_ZOOM), grown = zoom / view.zoom;
    const x = (clientX ?? box.left + box.width / 2) - box.left - box.width / 2, y = (clientY ?? box.top + box.height / 2) - box.top - box.height / 2;
    view = { zoom, x: x - (x - view.x) * grown, y: y - (y - view.y) * grown };
    look();
  };
  const pan = (x, y) => { view.x += x; view.y += y; look(); };
  // The picture as large as fits, or with room around it for its edges; while an edge is dragged nothing else moves.
  const layout = () => {
    const { clientWidth, clientHeight } = well(), ratio = sheet.width / sheet.height, room = mode() === "expand" ? 0.78 : 1;
    const { left, top, right, bottom } = mode() === "expand" ? sheet.growth : none();
    const width = still?.width ?? Math.max(16, Math.min((clientWidth - 32) * room / (1 + left + right), (clientHeight - 32) * room / (1 + top + bottom) * ratio)), height = width / ratio;
    const x = still?.x ?? (clientWidth - width * (1 + left + right)) / 2 + left * width, y = still?.y ?? (clientHeight - height * (1 + top + bottom)) / 2 + top * height;
    const place = (element, ...sizes) => Object.assign(element.style, Object.fromEntries(["left", "top", "width", "height"].map((name, at) => [name, `${sizes[at]}px`])));
    place($(".pt-pic"), x, y, width, height);
    for (const frame of all(".pt-frame")) place(frame, x - left * width, y - top * height, width * (1 + left + right), height * (1 + top + bottom));
    return { width, height, x, y };
  };

  // ---- expanding
  const grow = changes => {
    const most = Number($("#pt").dataset.growth);
    for (const [side, value] of Object.entries(changes)) sheet.growth[side] = Math.round(clamp(Number.isFinite(value) ? value : 0, 0, most) * 10000) / 10000;
    tell();
  };
  const grown = () => {
    const isGrown = SIDES.some(side => sheet.growth[side]);
    if (isGrown && painted(sheet.alpha)) { remember(); sheet.alpha = new Uint8Array(sheet.alpha.length); }
    if (isGrown || draft?.name === "expand") put("expand", isGrown ? JSON.stringify({ handle: sheet.handle, ...sheet.growth }) : "");
    show();
  };
  const toRatio = ([across, down]) => {
    const wider = across / down / (sheet.width / sheet.height);
    return wider > 1 ? { ...none(), left: (wider - 1) / 2, right: (wider - 1) / 2 } : { ...none(), top: (1 / wider - 1) / 2, bottom: (1 / wider - 1) / 2 };
  };
  const ratioOf = option => option.textContent.split(":").map(Number);
  const offerRatios = () => { for (const option of $("#pt-ratio").options) if (option.textContent.includes(":")) option.disabled = Math.max(...Object.values(toRatio(ratioOf(option)))) > Number($("#pt").dataset.growth); };
  const edgeTo = (drag, event) => {
    const { side, from, start } = drag, across = side === "left" || side === "right", sign = side === "left" || side === "top" ? -1 : 1;
    const moved = across ? (event.clientX - start.x) / still.width : (event.clientY - start.y) / still.height;
    grow({ [side]: from + sign * moved / view.zoom });
  };

  // ---- opening and leaving
  const setMode = name => {
    cancel();
    $("#pt").dataset.mode = name;
    for (const button of all("#pt [data-paint=mode]")) button.setAttribute("aria-pressed", String(button.dataset.mode === name));
    fit();
    show();
  };
  const open = button => {
    const picture = $("#canvas .cv-pic");
    if (!picture) return;
    const { conversation, handle } = picture.dataset;
    const isNew = sheet?.conversation !== conversation || sheet?.handle !== handle;
    if (isNew) { sheet = newSheet(picture.dataset); key = null; }
    $(".pt-pic img").src = picture.querySelector("img").src;
    root.setAttribute("data-painting", "");
    $("#pt-ratio").value = "";
    offerRatios();
    say("");
    setMode(button.dataset.mode);
    if (isNew) recall();
    canvas().focus();
  };
  const leave = () => { if (isPainting()) { cancel(); root.removeAttribute("data-painting"); } };
  const close = () => {
    leave();
    if (matchMedia("(max-width: 760px)").matches) root.removeAttribute("data-stage");
    (draft ? $("#box textarea") : $("#canvas [data-paint=open]"))?.focus();
  };

  const acts = {
    open,
    close,
    mode: button => setMode(button.dataset.mode),
    tool: button => { tool = button.dataset.tool; for (const one of all("#pt [data-tool]")) one.setAttribute("aria-pressed", String(one === button)); },
    undo: () => swap(sheet.undo, sheet.redo),
    redo: () => swap(sheet.redo, sheet.undo),
    clear: () => change(new Uint8Array(sheet.alpha.length)),
    invert: () => change(sheet.alpha.map(value => 255 - value)),
    load: () => $("#pt-file").click(),
    last: loadLast,
    zoom: button => ({ zoom_in: () => zoomBy(1.5), zoom_out: () => zoomBy(1 / 1.5), fit })[button.dataset.zoom](),
    reset: () => { $("#pt-ratio").value = ""; grow(none()); grown(); },
  };
  addEventListener("click", event => {
    const button = event.target.closest?.("[data-paint]");
    if (button) { acts[button.dataset.paint](button); return; }
    const other = event.target.closest?.("[data-act]")?.dataset;
    if (["view", "open", "new"].includes(other?.act)) leave();
    if (["open", "new"].includes(other?.act) || (other?.act === "drop" && other.arg === draft?.handle)) forget();
  });
  addEventListener("input", event => {
    const { id, dataset } = event.target;
    if (id === "pt-size" || id === "pt-feather") event.target.nextElementSibling.textContent = event.target.value;
    if (id === "pt-feather") show();
    if (dataset?.side) { $("#pt-ratio").value = ""; grow({ [dataset.side]: Number(event.target.value) / 100 }); }
  });
  addEventListener("change", event => {
    const { id, dataset, files } = event.target;
    if (id === "pt-feather" && painted(sheet.alpha)) commit();
    if (dataset?.side) { event.target.blur?.(); grown(); }
    if (id === "pt-ratio" && event.target.value) { grow(toRatio(ratioOf(event.target.selectedOptions[0]))); grown(); }
    if (id === "pt-file" && files.length) { loadFile(files[0]); event.target.value = ""; }
  });

  // ---- pointers: one paints or drags an edge, two move and pinch; with Space or the middle button one moves
  const pointers = new Map();
  let drag = null, isSpace = false, key = null;
  const at = event => { const box = canvas().getBoundingClientRect(); return [(event.clientX - box.left) * sheet.w / box.width, (event.clientY - box.top) * sheet.h / box.height]; };
  const ring = point => {
    const place = $(".pt-ring"), size = 100 * widthOfBrush() / sheet.w;
    Object.assign(place.style, point ? { left: `${100 * point[0] / sheet.w}%`, top: `${100 * point[1] / sheet.h}%`, width: `${size}%`, opacity: 1 } : { opacity: 0 });
  };
  const between = () => {
    const [one, two] = [...pointers.values()];
    return { x: (one.x + two.x) / 2, y: (one.y + two.y) / 2, apart: Math.hypot(one.x - two.x, one.y - two.y) || 1 };
  };
  const startDrag = event => {
    const start = { x: event.clientX, y: event.clientY }, side = event.target.dataset?.edge;
    if (pointers.size === 2) { cancel(); still = null; return { kind: "pinch", ...between() }; }
    if (pointers.size > 2) return null;
    if (side) { still = layout(); return { kind: "edge", side, start, from: sheet.growth[side] }; }
    if (isSpace || event.button === 1 || mode() === "expand") return { kind: "pan", ...start };
    if (event.button) return null;
    begin(at(event));
    return { kind: "stroke" };
  };
  addEventListener("pointerdown", event => {
    const box = event.target.closest?.(".pt-well");
    if (!box || event.target.closest(".pt-zoom")) return;
    event.preventDefault();
    key = null;
    canvas().focus({ preventScroll: true });
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    try { box.setPointerCapture(event.pointerId); } catch { /* the pointer is gone already */ }
    drag = startDrag(event);
  });
  addEventListener("pointermove", event => {
    if (!isPainting() || !sheet) return;
    if (event.target.closest?.(".pt-well") && mode() === "mask" && event.pointerType !== "touch") ring(drag?.kind === "pan" ? null : at(event));
    if (!pointers.has(event.pointerId) || !drag) return;
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (drag.kind === "stroke") for (const one of event.getCoalescedEvents?.() || [event]) goOn(at(one));
    else if (drag.kind === "edge") edgeTo(drag, event);
    else if (drag.kind === "pan") { pan(event.clientX - drag.x, event.clientY - drag.y); Object.assign(drag, { x: event.clientX, y: event.clientY }); }
    else if (pointers.size === 2) {
      const now = between();
      pan(now.x - drag.x, now.y - drag.y);
      zoomBy(now.apart / drag.apart, now.x, now.y);
      Object.assign(drag, now);
    }
  });
  const lift = event => {
    if (!pointers.delete(event.pointerId) || !drag) return;
    const { kind } = drag;
    drag = null;
    if (kind === "stroke" && stroke) { if (event.type === "pointerup") finish(); else cancel(); }
    if (kind === "edge") { still = null; $("#pt-ratio").value = ""; grown(); }
  };
  addEventListener("pointerup", lift);
  addEventListener("pointercancel", lift);
  addEventListener("pointerout", event => { if (event.target.closest?.(".pt-well") && !well().contains(event.relatedTarget) && !key) ring(null); });
  addEventListener("wheel", event => {
    if (!event.target.closest?.(".pt-well")) return;
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX, event.clientY);
  }, { passive: false });

  // ---- keys: a brush of its own that the arrows move
  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const reveal = () => {  // a brush that leaves the well takes the view along
    const box = well().getBoundingClientRect(), place = $(".pt-ring").getBoundingClientRect(), x = place.left + place.width / 2, y = place.top + place.height / 2;
    pan(clamp(x, box.left + 24, box.right - 24) - x, clamp(y, box.top + 24, box.bottom - 24) - y);
  };
  const moveKey = ([x, y], isFar) => {
    key ??= { x: sheet.w / 2, y: sheet.h / 2 };
    const step = STEP_PX * (isFar ? 5 : 1) * longest() / 1024;
    Object.assign(key, { x: clamp(key.x + x * step, 0, sheet.w), y: clamp(key.y + y * step, 0, sheet.h), hasMoved: true });
    ring([key.x, key.y]);
    reveal();
    if (stroke) goOn([key.x, key.y]);
  };
  const pressKey = () => {
    key ??= { x: sheet.w / 2, y: sheet.h / 2 };
    ring([key.x, key.y]);
    if (stroke) { goOn([key.x, key.y]); finish(); key.isDone = true; return; }  // the second corner of a box
    Object.assign(key, { hasMoved: false, isDone: false });
    begin([key.x, key.y]);
  };
  const liftKey = () => {
    if (!stroke || !key || key.isDone || (tool === "box" && !key.hasMoved)) return;
    finish();
  };
  const isTyping = target => target.matches?.("input[type=number], select");
  const shortcuts = event => {
    const letter = event.key.toLowerCase(), isCommand = event.ctrlKey || event.metaKey;
    if (isCommand && letter === "z") return event.shiftKey ? acts.redo : acts.undo;
    if (isCommand && letter === "y") return acts.redo;
    if (isCommand || event.altKey) return null;
    if (event.key === "[" || event.key === "]") return () => { setSlider("size", Number($("#pt-size").value) + (event.key === "[" ? -8 : 8)); if (key) ring([key.x, key.y]); };
    if (event.key === "+" || event.key === "=") return () => zoomBy(1.5);
    if (event.key === "-") return () => zoomBy(1 / 1.5);
    return event.key === "0" ? fit : null;
  };
  const onCanvas = event => {
    const arrow = ARROWS[event.key], isPaint = event.key === " " || event.key === "Enter";
    if (arrow && (event.ctrlKey || event.altKey || event.metaKey)) return () => pan(-48 * arrow[0], -48 * arrow[1]);
    if (mode() === "expand") return arrow ? () => pan(-48 * arrow[0], -48 * arrow[1]) : null;
    if (arrow || (isPaint && key)) $("#pt").dataset.keys = "";
    if (arrow) return () => moveKey(arrow, event.shiftKey);
    if (!isPaint) return null;
    // Whoever works with the mouse holds Space to move the picture; the brush of the keys wakes with the arrows.
    if (!key && hand() === "pointer") { isSpace = event.key === " "; return () => {}; }
    return event.repeat ? () => {} : pressKey;
  };
  // Whether one works with a pointer or with keys: what Space does, and whether the help is shown, depend on it.
  const hand = to => { const place = $("#pt"); if (place && to) place.dataset.hand = to; return place?.dataset.hand; };
  addEventListener("pointerdown", () => hand("pointer"), true);
  addEventListener("keydown", event => {
    if (event.target.id !== "pt-canvas" || event.key in ARROWS) hand("keys");
    if (!isPainting() || !root.hasAttribute("data-stage")) return;
    const isElsewhere = event.target.closest?.("#center, #rail, #settings, #styles");
    if (event.key === "Escape" && !isElsewhere) {
      event.stopImmediatePropagation();
      if (stroke) cancel(); else close();
      return;
    }
    if (!event.target.closest?.("#pt") || isTyping(event.target)) return;
    const arrow = ARROWS[event.key];
    const run = shortcuts(event) || (event.target.id === "pt-canvas" ? onCanvas(event) : arrow && event.target.closest(".pt-zoom") ? () => pan(-48 * arrow[0], -48 * arrow[1]) : null);
    if (run) { event.preventDefault(); run(); }
  }, true);
  addEventListener("keyup", event => {
    if (event.key === " ") isSpace = false;
    if ((event.key === " " || event.key === "Enter") && event.target.id === "pt-canvas") liftKey();
  });
  addEventListener("blur", () => { isSpace = false; });

  // ---- a picture dropped onto the stage goes where pictures go: into the message
  const dropped = event => event.target.closest?.("#stage") && [...(event.dataTransfer?.types || [])].includes("Files");
  addEventListener("dragover", event => { if (dropped(event)) event.preventDefault(); });
  addEventListener("drop", event => {
    if (!dropped(event)) return;
    event.preventDefault();
    const files = [...event.dataTransfer.files].filter(file => file.type.startsWith("image/") || /\.(heic|heif|avif)$/i.test(file.name));
    if (!files.length) return;
    const dataTransfer = new DataTransfer();
    for (const file of files) dataTransfer.items.add(file);
    $("#box textarea")?.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    whisper(word("attached"));
  });

  // ---- what Python changed: the composer's line, the fields
  const watch = () => {
    const line = $("#ctx"), place = well();
    if (!line || !place) { setTimeout(watch, 200); return; }
    new MutationObserver(settle).observe(line, { childList: true, subtree: true, characterData: true });
    new ResizeObserver(() => { if (isPainting() && sheet) { layout(); look(); } }).observe(place);
    new MutationObserver(() => { if (isPainting() && sheet) show(); }).observe(document.body, { attributeFilter: ["class"] });
    setInterval(settle, 250);
  };
  if (document.body) watch(); else addEventListener("DOMContentLoaded", watch);
})();
