// The painter over the stage: a mask on a canvas of at most 1024 px, or a picture's edges drawn outwards. Here is the
// sheet that is painted on and all that changes it. painter_hands.js has the view, the pointers and the keys,
// painter_draft.js what goes along with the next message, painter_drop.js the pictures that were not sent yet.
(() => {
  const root = document.documentElement;
  const { painted, percent, filled, softened, toPng, fromImage, fromStrokes, isSame, decoded } = window.aivistaPixels;
  const $ = selector => document.querySelector(selector);
  const all = selector => [...document.querySelectorAll(selector)];
  const clamp = (value, least, most) => Math.min(most, Math.max(least, value));
  const MOST_UNDOS = 30, TOLERANCE = 1.02;
  const SIDES = ["left", "top", "right", "bottom"];
  const painter = window.aivistaPainter = { sheet: null, stroke: null };

  const word = (name, values = {}) => Object.entries(values).reduce((text, [key, value]) => text.replaceAll(`{${key}}`, value), $("#pt")?.dataset[name] || "");
  const isPainting = () => root.hasAttribute("data-painting");
  const mode = () => $("#pt").dataset.mode;

  // ---- a sheet: one picture, what is painted over it (one byte a pixel, 0 or 255), how far it grows
  const ink = document.createElement("canvas"), brush = ink.getContext("2d", { willReadFrequently: true });
  const canvas = () => $("#pt-canvas");
  const front = () => canvas().getContext("2d", { willReadFrequently: true });
  const longest = () => Math.max(painter.sheet.w, painter.sheet.h);
  const none = () => ({ left: 0, top: 0, right: 0, bottom: 0 });
  const newSheet = ({ conversation, handle, width, height }) => {
    const scale = Math.min(1, Number($("#pt").dataset.longest) / Math.max(width, height));
    const w = Math.max(1, Math.round(width * scale)), h = Math.max(1, Math.round(height * scale));
    return { conversation, handle, width: Number(width), height: Number(height), w, h, alpha: new Uint8Array(w * h), undo: [], redo: [], growth: none() };
  };
  const isBlank = () => !painted(painter.sheet.alpha);
  const rose = () => { const hex = getComputedStyle(document.body).getPropertyValue("--av-mask").trim() || "#FF2E63"; return [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16)); };
  const hex = colour => `rgb(${colour.join(" ")})`;

  // ---- what is shown
  const show = () => {
    const { sheet } = painter, view = canvas(), colour = rose();
    if (view.width !== sheet.w || view.height !== sheet.h) Object.assign(view, { width: sheet.w, height: sheet.h });
    if (ink.width !== sheet.w || ink.height !== sheet.h) Object.assign(ink, { width: sheet.w, height: sheet.h });
    brush.putImageData(filled(sheet.alpha, sheet, colour), 0, 0);
    front().putImageData(filled(softened(sheet, Number($("#pt-feather").value)), sheet, colour), 0, 0);
    tell();
  };
  const tell = () => {
    const { sheet } = painter, share = percent(sheet.alpha), grown = SIDES.some(side => sheet.growth[side]);
    const after = { width: Math.round(sheet.width * (1 + sheet.growth.left + sheet.growth.right)), height: Math.round(sheet.height * (1 + sheet.growth.top + sheet.growth.bottom)) };
    const text = mode() === "expand" ? word("sizeAfter", after) : share ? word("share", { share }) : word("nothing");
    if ($("#pt-share").textContent !== text) $("#pt-share").textContent = text;
    $("#pt-handle").textContent = painter.isNew(sheet.handle) ? word("newPicture") : sheet.handle;
    $("#pt-handle").toggleAttribute("data-new", painter.isNew(sheet.handle));
    $("#pt-pixels").textContent = `${sheet.width}×${sheet.height}`;
    for (const [name, is] of [["undo", sheet.undo.length], ["redo", sheet.redo.length], ["clear", share], ["last", painter.offered()], ["reset", grown]]) $(`#pt [data-paint=${name}]`).disabled = !is;
    for (const input of all("#pt [data-side]")) if (input !== document.activeElement) input.value = String(Math.round(sheet.growth[input.dataset.side] * 1000) / 10);
    painter.layout();
    painter.note();
  };
  let quiet = 0;
  const whisper = text => {
    clearTimeout(quiet);
    $("#pt-said").textContent = text;
    quiet = setTimeout(hush, 8000);
  };
  const hush = () => { clearTimeout(quiet); $("#pt-said").textContent = ""; };
  const say = text => { const place = $("#pt-note"); place.hidden = !text; place.textContent = text; };

  // ---- changes, each of which can be undone
  const remember = () => { const { sheet } = painter; sheet.undo.push(sheet.alpha.slice()); if (sheet.undo.length > MOST_UNDOS) sheet.undo.shift(); sheet.redo = []; };
  const blank = () => { if (!isBlank()) { remember(); painter.sheet.alpha = new Uint8Array(painter.sheet.alpha.length); } };
  const commit = () => {
    const { sheet } = painter, share = percent(sheet.alpha);
    say("");
    if (share) sheet.growth = none();
    painter.putMask(share && { png: toPng(sheet), feather: Number($("#pt-feather").value) }, share);
    show();
  };
  const change = alpha => { remember(); painter.sheet.alpha = alpha; commit(); };
  const swap = (from, to) => { if (!from.length) return; to.push(painter.sheet.alpha); painter.sheet.alpha = from.pop(); commit(); };
  const setSlider = (name, value) => { const input = $(`#pt-${name}`); input.value = String(value); input.nextElementSibling.textContent = input.value; };
  const loadFile = async file => {
    const here = painter.sheet;
    let image;
    try { image = await createImageBitmap(file); } catch { say(word("notRead")); return; }
    if (painter.sheet !== here) return;
    const stretch = (image.width / image.height) / (here.width / here.height);
    if (stretch > TOLERANCE || stretch < 1 / TOLERANCE) { say(word("wrongShape", { mask_width: image.width, mask_height: image.height, width: here.width, height: here.height })); return; }
    const alpha = fromImage(image, here);
    if (!painted(alpha)) { say(word("emptyFile")); return; }
    change(alpha);
    whisper(word("loaded"));
  };
  const loadLast = async () => {
    const here = painter.sheet, value = painter.offered();
    if (!value) return;
    const { png, feather } = JSON.parse(value), image = await decoded(png);
    if (painter.sheet !== here) return;
    if (feather) setSlider("feather", feather);
    change(fromImage(image, here));
  };
  const recall = async () => {  // what lies in the draft for this picture, back onto the sheet
    const here = painter.sheet, draft = here && painter.drafted(here.handle);
    if (!draft || draft.conversation !== here.conversation) return;
    const { png, feather, ...growth } = JSON.parse(draft.value);
    if (draft.name === "expand") for (const side of SIDES) here.growth[side] = growth[side];
    else {
      const image = await decoded(png);
      if (painter.sheet !== here) return;
      if (feather) setSlider("feather", feather);
      here.alpha = fromImage(image, here);
    }
    if (isPainting()) show();
  };
  const wipe = () => {
    if (!painter.sheet) return;
    painter.sheet.growth = none();
    $("#pt-ratio").value = "";
    blank();
    if (isPainting()) show();
  };

  // ---- a stroke, by pointer or by key
  let tool = "brush";
  const widthOfBrush = () => Math.max(1, Number($("#pt-size").value) * longest() / 1024);
  const line = (context, from, to) => {
    context.globalCompositeOperation = tool === "eraser" ? "destination-out" : "source-over";
    Object.assign(context, { strokeStyle: hex(rose()), lineWidth: widthOfBrush(), lineCap: "round", lineJoin: "round" });
    // Half a pixel more: a canvas draws no line without length, and a dab is one.
    context.beginPath(); context.moveTo(...from); context.lineTo(to[0] + 0.5, to[1]); context.stroke();
    context.globalCompositeOperation = "source-over";
  };
  const both = draw => { draw(brush); draw(front()); };
  const begin = point => {
    const { w, h } = painter.sheet;
    hush();  // it lies over the picture
    painter.stroke = { from: point, last: point, isBox: tool === "box", shown: tool === "box" ? front().getImageData(0, 0, w, h) : null };
    if (tool !== "box") both(context => line(context, point, point));
  };
  const goOn = point => {
    const { from, last, shown } = painter.stroke;
    if (tool === "box") {
      brush.putImageData(filled(painter.sheet.alpha, painter.sheet, rose()), 0, 0);
      front().putImageData(shown, 0, 0);
      both(context => { context.fillStyle = hex(rose()); context.fillRect(from[0], from[1], point[0] - from[0], point[1] - from[1]); });
    } else both(context => line(context, last, point));
    painter.stroke.last = point;
  };
  const finish = () => {
    const { sheet } = painter, after = fromStrokes(brush.getImageData(0, 0, sheet.w, sheet.h));
    painter.stroke = null;
    if (isSame(sheet.alpha, after)) show(); else change(after);
  };
  const cancel = () => { if (painter.stroke) { painter.stroke = null; show(); } };

  // ---- expanding
  const grow = changes => {
    const most = Number($("#pt").dataset.growth);
    for (const [side, value] of Object.entries(changes)) painter.sheet.growth[side] = Math.round(clamp(Number.isFinite(value) ? value : 0, 0, most) * 10000) / 10000;
    tell();
  };
  const grown = () => {
    const { sheet } = painter, isGrown = SIDES.some(side => sheet.growth[side]);
    if (isGrown) blank();
    painter.putGrowth(isGrown && sheet.growth);
    show();
  };
  // Words that are sent while the picture is to be expanded, and by nothing yet, would paint a new one.
  const isUnset = () => {
    const is = isPainting() && mode() === "expand" && !SIDES.some(side => painter.sheet.growth[side]);
    if (is) { say(word("nothingGrows")); $("#pt-ratio").focus(); }
    return is;
  };
  const toRatio = ([across, down]) => {
    const wider = across / down / (painter.sheet.width / painter.sheet.height);
    return wider > 1 ? { ...none(), left: (wider - 1) / 2, right: (wider - 1) / 2 } : { ...none(), top: (1 / wider - 1) / 2, bottom: (1 / wider - 1) / 2 };
  };
  const ratioOf = option => option.textContent.split(":").map(Number);
  const offerRatios = () => { for (const option of $("#pt-ratio").options) if (option.textContent.includes(":")) option.disabled = Math.max(...Object.values(toRatio(ratioOf(option)))) > Number($("#pt").dataset.growth); };

  // ---- opening and leaving
  const setMode = name => {
    cancel();
    $("#pt").dataset.mode = name;
    for (const button of all("#pt [data-paint=mode]")) button.setAttribute("aria-pressed", String(button.dataset.mode === name));
    painter.fit();
    show();
  };
  const openOn = (picture, source, name) => {  // picture: {conversation, handle, width, height}; source: where its pixels are
    const isNew = painter.sheet?.conversation !== picture.conversation || painter.sheet?.handle !== picture.handle;
    if (isNew) { painter.sheet = { ...newSheet(picture), source }; painter.dropKey(); }
    $(".pt-pic img").src = source;
    root.setAttribute("data-painting", "");
    $("#pt-ratio").value = "";
    offerRatios();
    say("");
    setMode(name);
    if (isNew) recall();
    canvas().focus();
  };
  const leave = () => {
    if (!isPainting()) return;
    cancel();
    hush();
    root.removeAttribute("data-painting");
    // What is painted is for the next words, which are written beside it.
    root.removeAttribute("data-full");
  };
  const close = () => {
    leave();
    if (matchMedia("(max-width: 760px)").matches) root.removeAttribute("data-stage");
    (painter.draft || painter.isNew(painter.sheet.handle) ? $("#box textarea") : $("#canvas [data-paint=open]"))?.focus();
  };

  const acts = {
    open: button => { const picture = $("#canvas .cv-pic"); if (picture) openOn(picture.dataset, picture.querySelector("img").src, button.dataset.mode); },
    // From the thread: the picture is opened beside it first.
    over: button => {
      const handle = button.dataset.arg, until = performance.now() + 10000;
      root.setAttribute("data-stage", "");
      window.aivistaShell.act("page.view", { arg: handle });
      const open = () => {
        if ($("#canvas .cv-pic")?.dataset.handle === handle) acts.open({ dataset: { mode: "mask" } });
        else if (performance.now() < until) setTimeout(open, 50);
      };
      open();
    },
    close,
    mode: button => setMode(button.dataset.mode),
    tool: button => { tool = button.dataset.tool; for (const one of all("#pt [data-tool]")) one.setAttribute("aria-pressed", String(one === button)); },
    undo: () => swap(painter.sheet.undo, painter.sheet.redo),
    redo: () => swap(painter.sheet.redo, painter.sheet.undo),
    clear: () => { if (!isBlank()) change(new Uint8Array(painter.sheet.alpha.length)); },
    all: () => change(new Uint8Array(painter.sheet.alpha.length).fill(255)),
    invert: () => change(painter.sheet.alpha.map(value => 255 - value)),
    load: () => $("#pt-file").click(),
    last: loadLast,
    zoom: button => ({ zoom_in: () => painter.zoomBy(1.5), zoom_out: () => painter.zoomBy(1 / 1.5), fit: () => painter.fit() })[button.dataset.zoom](),
    reset: () => { $("#pt-ratio").value = ""; grow(none()); grown(); },
  };
  addEventListener("click", event => {
    const button = event.target.closest?.("[data-paint]");
    if (button) { acts[button.dataset.paint](button); return; }
    const other = event.target.closest?.("[data-act]")?.dataset;
    if (["view", "compare", "open", "new"].includes(other?.act)) leave();
    if (["open", "new"].includes(other?.act)) painter.forget();
    if (other?.act === "drop" && painter.drafted(other.arg)) painter.giveUp(other.arg);
  });
  addEventListener("input", event => {
    const { id, dataset } = event.target;
    if (id === "pt-size" || id === "pt-feather") event.target.nextElementSibling.textContent = event.target.value;
    if (id === "pt-feather") show();
    if (dataset?.side) { $("#pt-ratio").value = ""; grow({ [dataset.side]: Number(event.target.value) / 100 }); }
  });
  addEventListener("change", event => {
    const { id, dataset, files } = event.target;
    if (id === "pt-feather" && !isBlank()) commit();
    if (dataset?.side) { event.target.blur?.(); grown(); }
    if (id === "pt-ratio" && event.target.value) { grow(toRatio(ratioOf(event.target.selectedOptions[0]))); grown(); }
    if (id === "pt-file" && files.length) { loadFile(files[0]); event.target.value = ""; }
  });

  Object.assign(painter, { $, all, clamp, word, isPainting, mode, none, canvas, longest, widthOfBrush });
  Object.assign(painter, { isUnset, show, whisper, recall, wipe, begin, goOn, finish, cancel, grow, grown, setSlider, openOn, leave, close, acts });
})();
