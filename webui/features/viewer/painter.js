// The painter over the stage: a mask on a canvas of at most 1024 px, or a picture's edges drawn outwards. First the
// sheet that is painted on, its view, pointers and keys; below, what of it goes along with the next message.
{
  const keys = aivista.keys;
  const MOST_UNDOS = 30, MOST_ZOOM = 8, STEP_PX = 8, PAN_PX = 48, WHITE_FROM = 128, FAINTEST = 0.35, TOLERANCE = 1.02, WHISPER_MS = 8000;
  const SIDES = ["left", "top", "right", "bottom"], UNGROWN = { left: 0, top: 0, right: 0, bottom: 0 };
  // The sheet: one picture, its mask (`alpha`, one byte a pixel of the canvas, 0 or 255), and how far it grows.
  const painter = aivista.painter = { sheet: null, stroke: null };

  // It is in a template until it is first opened.
  let inputMethod = "";
  const panel = () => {
    const folded = $("#pt-folded");
    if (folded) {
      folded.replaceWith(folded.content);
      $("#pt").dataset.hand = inputMethod;
      new ResizeObserver(applyView).observe(well());
    }
    return $("#pt");
  };
  const message = (name, values = {}) => formatText(panel().dataset[name], values);
  const isPainting = () => root.hasAttribute("data-painting");
  const mode = () => panel().dataset.mode;
  const canvas = () => $("#pt-canvas");
  const isGrown = () => SIDES.some(side => painter.sheet.growth[side]);
  const longest = () => Math.max(painter.sheet.w, painter.sheet.h);
  const feather = () => Number($("#pt-feather").value);
  const setSlider = (name, value) => { const input = $(`#pt-${name}`); input.value = String(value); input.nextElementSibling.textContent = input.value; };

  // ---- messages: temporary ones over the stage or the composer, and ones that last until they no longer apply
  const timers = {};
  const showBriefly = (selector, text) => {
    clearTimeout(timers[selector]);
    $(selector).textContent = text;
    timers[selector] = setTimeout(() => { $(selector).textContent = ""; }, WHISPER_MS);
  };
  const showNote = text => { const place = $("#pt-note"); place.hidden = !text; place.textContent = text; };

  // ---- pixels: `maskCanvas` holds the mask in white on black, the canvas shows it with its soft edge
  const maskCanvas = document.createElement("canvas");
  const contexts = () => [maskCanvas, canvas()].map(one => one.getContext("2d", { willReadFrequently: true }));
  const colour = () => getComputedStyle(document.body).getPropertyValue("--av-mask");
  const percent = alpha => {
    const share = 100 * alpha.reduce((count, value) => count + (value && 1), 0) / alpha.length;
    return share === 0 ? "" : share < 0.1 ? "< 0.1" : share < 1 || (share > 99 && share < 100) ? share.toFixed(1) : String(Math.round(share));
  };
  const softEdge = ({ alpha, w, h }) => {  // the edge fades inwards as far as the change will, but stays visible
    // How deep in the mask each pixel lies, in thirds of a pixel. A frame of one pixel around everything, which is no
    // part of it, has the maximum depth: the picture's edge is no border of the mask.
    const row = w + 2, depth = new Uint16Array(row * (h + 2)).fill(60000), width = 3 * feather() * longest() / 1024;
    const index = (x, y) => (y + 1) * row + x + 1;
    const reach = (at, step) => {
      depth[at] = Math.min(depth[at], depth[at + step] + 3, depth[at + step * row] + 3, depth[at + step * (row + 1)] + 4, depth[at + step * (row - 1)] + 4);
    };
    for (let y = 0; y < h; y++) for (let x = 0; x < w; x++) if (alpha[y * w + x]) reach(index(x, y), -1); else depth[index(x, y)] = 0;
    for (let y = h - 1; y >= 0; y--) for (let x = w - 1; x >= 0; x--) reach(index(x, y), 1);
    return alpha.map((value, at) => {
      const part = Math.min(1, depth[index(at % w, Math.floor(at / w))] / width);
      return value && 255 * Math.max(FAINTEST, part * part * (3 - 2 * part));
    });
  };
  const draw = () => {
    const { sheet } = painter, { w, h } = sheet, [hard, soft] = contexts();
    sheet.share = percent(sheet.alpha);
    for (const [context, alpha, operation, fillStyle] of [[hard, sheet.alpha, "destination-over", "#000"], [soft, softEdge(sheet), "source-in", colour()]]) {
      const image = new ImageData(new Uint8ClampedArray(4 * w * h).fill(255), w, h);
      alpha.forEach((value, at) => { image.data[4 * at + 3] = value; });
      Object.assign(context.canvas, { width: w, height: h });
      context.putImageData(image, 0, 0);
      Object.assign(context, { globalCompositeOperation: operation, fillStyle });
      context.fillRect(0, 0, w, h);
    }
  };
  const fromImage = (image, { w, h }) => {  // white, and nothing darker or transparent, is what changes
    const context = Object.assign(document.createElement("canvas"), { width: w, height: h }).getContext("2d");
    context.drawImage(image, 0, 0, w, h);
    const { data } = context.getImageData(0, 0, w, h);
    const light = at => (0.299 * data[at] + 0.587 * data[at + 1] + 0.114 * data[at + 2]) * data[at + 3] / 255;
    return new Uint8Array(w * h).map((_, at) => light(4 * at) >= WHITE_FROM ? 255 : 0);
  };

  // ---- what is shown
  const show = () => { draw(); updateControls(); };
  const updateControls = () => {
    const { sheet } = painter, { share, growth: { left, top, right, bottom } } = sheet, isNew = painter.isNew(sheet.handle);
    const after = { width: Math.round(sheet.width * (1 + left + right)), height: Math.round(sheet.height * (1 + top + bottom)) };
    setText($("#pt-share"), mode() === "expand" ? message("sizeAfter", after) : share ? message("share", { share }) : message("nothing"));
    setText($("#pt-handle"), isNew ? message("newPicture") : sheet.handle);
    $("#pt-handle").toggleAttribute("data-new", isNew);
    setText($("#pt-pixels"), `${sheet.width}×${sheet.height}`);
    const can = { undo: sheet.undo.length, redo: sheet.redo.length, clear: share, last: painter.lastMask(), reset: isGrown() };
    for (const [name, is] of Object.entries(can)) $(`#pt [data-paint=${name}]`).disabled = !is;
    for (const input of all("#pt [data-side]")) if (input !== document.activeElement) input.value = String(Math.round(sheet.growth[input.dataset.side] * 1000) / 10);
    layout();
    painter.drawNotes();
  };

  // ---- changes that can be undone; a button without effect is disabled
  const emptyMask = () => new Uint8Array(painter.sheet.alpha.length);
  const setMask = alpha => { const { sheet } = painter; sheet.undo = [...sheet.undo, sheet.alpha].slice(-MOST_UNDOS); Object.assign(sheet, { alpha, redo: [] }); };
  const clearMask = () => { if (percent(painter.sheet.alpha)) setMask(emptyMask()); };
  const saveMask = () => {
    const { sheet } = painter;
    showNote("");
    draw();
    if (sheet.share) sheet.growth = UNGROWN;
    painter.putDraft("mask", sheet.share && { png: maskCanvas.toDataURL("image/png").split(",")[1], feather: feather() });
    updateControls();
  };
  const changeMask = alpha => { setMask(alpha); saveMask(); };
  const swapHistory = (from, to) => { to.push(painter.sheet.alpha); painter.sheet.alpha = from.pop(); saveMask(); };
  const loadFile = async file => {
    const sheet = painter.sheet, { width, height } = sheet;
    let image;
    try { image = await createImageBitmap(file); } catch { showNote(message("notRead")); return; }
    if (painter.sheet !== sheet) return;
    const stretch = (image.width / image.height) / (width / height), alpha = fromImage(image, sheet);
    if (stretch > TOLERANCE || stretch < 1 / TOLERANCE) showNote(message("wrongShape", { mask_width: image.width, mask_height: image.height, width, height }));
    else if (!percent(alpha)) showNote(message("emptyFile"));
    else { changeMask(alpha); showBriefly("#pt-said", message("loaded")); }
  };
  const restoreDraft = () => {  // the draft of this picture, back onto the sheet
    const { sheet } = painter, draft = sheet && painter.draftOf(sheet.handle);
    if (!draft || draft.conversation !== sheet.conversation) return;
    Object.assign(sheet, { alpha: draft.alpha, growth: draft.growth });
    if (draft.name === "mask") setSlider("feather", draft.body.feather);
    if (isPainting()) show();
  };
  const clearSheet = () => {
    if (!painter.sheet) return;
    painter.sheet.growth = UNGROWN;
    $("#pt-ratio").value = "";
    clearMask();
    if (isPainting()) show();
  };

  // ---- a stroke, by pointer or by keys
  let tool = "brush";
  const brushWidth = () => Math.max(1, Number($("#pt-size").value) * longest() / 1024);
  const beginStroke = point => {
    showBriefly("#pt-said", "");  // true while it lies over the picture
    const { w, h } = painter.sheet, before = tool === "box" ? contexts().map(context => context.getImageData(0, 0, w, h)) : [];
    painter.stroke = { tool, from: point, last: point, before, colours: [tool === "eraser" ? "#000" : "#fff", colour()] };
    continueStroke(point);
  };
  const continueStroke = point => {
    const { stroke } = painter, { from, last } = stroke;
    contexts().forEach((context, at) => {
      context.globalCompositeOperation = context.canvas !== maskCanvas && stroke.tool === "eraser" ? "destination-out" : "source-over";
      context.fillStyle = context.strokeStyle = stroke.colours[at];
      if (stroke.tool === "box") { context.putImageData(stroke.before[at], 0, 0); context.fillRect(...from, point[0] - from[0], point[1] - from[1]); return; }
      Object.assign(context, { lineWidth: brushWidth(), lineCap: "round" });
      // Half a pixel more: a canvas draws no line of length zero, and a dab is one.
      context.beginPath(); context.moveTo(...last); context.lineTo(point[0] + 0.5, point[1]); context.stroke();
    });
    stroke.last = point;
  };
  const finishStroke = () => {
    const { sheet } = painter, alpha = fromImage(maskCanvas, sheet);
    painter.stroke = null;
    if (alpha.every((value, at) => value === sheet.alpha[at])) show(); else changeMask(alpha);
  };
  const cancelStroke = () => { if (painter.stroke) { painter.stroke = null; show(); } };

  // ---- expanding
  const setGrowth = growth => {
    const most = Number(panel().dataset.growth), { sheet } = painter;
    const round = value => Math.round(clamp(value || 0, 0, most) * 10000) / 10000;
    sheet.growth = Object.fromEntries(SIDES.map(side => [side, round(growth[side] ?? sheet.growth[side])]));
    updateControls();
  };
  const saveGrowth = () => {
    if (isGrown()) clearMask();
    painter.putDraft("expand", isGrown() && painter.sheet.growth);
    show();
  };
  // A message sent while an expansion is open but empty would paint a new picture.
  const isUnset = () => {
    if (!isPainting() || mode() !== "expand" || isGrown()) return false;
    showNote(message("nothingGrows"));
    $("#pt-ratio").focus();
    return true;
  };
  const growthForRatio = option => {
    const [across, down] = option.text.split(":"), wider = across / down / (painter.sheet.width / painter.sheet.height);
    const [x, y] = [Math.max(0, wider - 1) / 2, Math.max(0, 1 / wider - 1) / 2];
    return { left: x, top: y, right: x, bottom: y };
  };

  // ---- opening and leaving
  const setMode = name => {
    cancelStroke();
    panel().dataset.mode = name;
    for (const button of all("#pt [data-paint=mode]")) button.setAttribute("aria-pressed", String(button.dataset.mode === name));
    ZOOMS.fit();
    show();
  };
  const openOn = ({ conversation, handle, width, height }, source, name) => {  // source: where the picture's pixels are
    const isOther = painter.sheet?.conversation !== conversation || painter.sheet.handle !== handle, most = panel().dataset;
    if (isOther) {
      const scale = Math.min(1, most.longest / Math.max(width, height)), w = Math.max(1, Math.round(width * scale)), h = Math.max(1, Math.round(height * scale));
      painter.sheet = { conversation, handle, source, width: Number(width), height: Number(height), w, h, alpha: new Uint8Array(w * h), undo: [], redo: [], growth: UNGROWN };
      key = null;
      restoreDraft();
    }
    $(".pt-pic img").src = source;
    root.setAttribute("data-painting", "");
    $("#pt-ratio").value = "";
    for (const option of $("#pt-ratio").options) option.disabled = Math.max(...Object.values(growthForRatio(option))) > most.growth;  // "Free" is no number
    showNote("");
    setMode(name);
    canvas().focus();
  };
  const leave = () => {
    if (!isPainting()) return;
    cancelStroke();
    showBriefly("#pt-said", "");
    root.removeAttribute("data-painting");
    // The mask is for the next prompt, which is written beside it.
    root.removeAttribute("data-full");
  };
  const close = () => {
    leave();
    if (isPhone()) root.removeAttribute("data-stage");
    (painter.draft || painter.isNew(painter.sheet.handle) ? $("#box textarea") : $("#canvas [data-paint=open]"))?.focus();
  };

  const ZOOMS = { closer: () => zoomBy(1.5), further: () => zoomBy(1 / 1.5), fit: () => { view = { zoom: 1, x: 0, y: 0 }; applyView(); } };
  const acts = {
    open: button => { const picture = $("#canvas .cv-pic"); if (picture) openOn(picture.dataset, $("img", picture).src, button.dataset.mode); },
    // From the thread: the picture is opened beside it first.
    over: async button => {
      root.setAttribute("data-stage", "");
      await aivista.shell.act("page.view", { arg: button.dataset.arg });
      if ($("#canvas .cv-pic")?.dataset.handle === button.dataset.arg) acts.open({ dataset: { mode: "mask" } });
    },
    close,
    mode: button => setMode(button.dataset.mode),
    tool: button => { tool = button.dataset.tool; for (const one of all("#pt [data-tool]")) one.setAttribute("aria-pressed", String(one === button)); },
    undo: () => swapHistory(painter.sheet.undo, painter.sheet.redo),
    redo: () => swapHistory(painter.sheet.redo, painter.sheet.undo),
    clear: () => changeMask(emptyMask()),
    invert: () => changeMask(painter.sheet.alpha.map(value => 255 - value)),
    load: () => $("#pt-file").click(),
    last: async () => {
      const sheet = painter.sheet, mask = painter.lastMask(), file = await fetch(`data:image/png;base64,${mask.png}`), image = await createImageBitmap(await file.blob());
      if (painter.sheet !== sheet) return;
      setSlider("feather", mask.feather);
      changeMask(fromImage(image, sheet));
    },
    zoom: button => ZOOMS[button.dataset.zoom](),
    reset: () => { $("#pt-ratio").value = ""; setGrowth(UNGROWN); saveGrowth(); },
  };
  addEventListener("click", event => {
    const button = event.target.closest?.("[data-paint]"), other = event.target.closest?.("[data-act]")?.dataset.act;
    if (button) acts[button.dataset.paint](button);
    else if (other === "view" || other === "compare") leave();
  });
  addEventListener("aivista-leaving", leave);
  addEventListener("input", event => {
    const { id, dataset, value } = event.target;
    if (id === "pt-size" || id === "pt-feather") event.target.nextElementSibling.textContent = value;
    if (id === "pt-feather") show();
    if (dataset?.side) { $("#pt-ratio").value = ""; setGrowth({ [dataset.side]: Number(value) / 100 }); }
  });
  addEventListener("change", event => {
    const { id, dataset, files } = event.target;
    if (id === "pt-feather" && painter.sheet.share) saveMask();
    if (dataset?.side) { event.target.blur(); saveGrowth(); }
    if (id === "pt-ratio" && event.target.value) { setGrowth(growthForRatio(event.target.selectedOptions[0])); saveGrowth(); }
    if (id === "pt-file" && files.length) { loadFile(files[0]); event.target.value = ""; }
  });

  // ---- the view: zoom and position
  let view = { zoom: 1, x: 0, y: 0 };
  const well = () => $(".pt-well");
  const applyView = () => {
    const reach = size => size * (view.zoom - 0.5) / 2, across = reach(well().clientWidth), down = reach(well().clientHeight);
    view = { ...view, x: clamp(view.x, -across, across), y: clamp(view.y, -down, down) };
    $(".pt-view").style.transform = `translate(${view.x}px, ${view.y}px) scale(${view.zoom})`;
  };
  const pan = (x, y) => { view = { ...view, x: view.x + x, y: view.y + y }; applyView(); };
  const zoomBy = (factor, clientX, clientY) => {  // this point stays where it is; without one, the middle
    const box = well().getBoundingClientRect(), middle = { x: box.left + box.width / 2, y: box.top + box.height / 2 };
    const zoom = clamp(view.zoom * factor, 0.5, MOST_ZOOM), grown = zoom / view.zoom, x = (clientX ?? middle.x) - middle.x, y = (clientY ?? middle.y) - middle.y;
    view = { zoom, x: x - (x - view.x) * grown, y: y - (y - view.y) * grown };
    applyView();
  };
  // CSS fits the picture into the well, or with room around it for its edges. While an edge is dragged nothing else
  // moves.
  const layout = () => {
    const { width, height, growth } = painter.sheet, shown = mode() === "expand" ? growth : UNGROWN;
    well().style.setProperty("--ratio", width / height);
    for (const side of SIDES) {
      for (const frame of all(".pt-frame")) frame.style.setProperty(`--${side}`, shown[side]);
      if (drag?.kind !== "edge") well().style.setProperty(`--${side}`, shown[side]);
    }
  };

  // ---- pointers: one paints or drags an edge, two move and pinch; Space or the middle button moves
  const pointers = new Map();
  let drag = null, isSpaceHeld = false, key = null;  // key: the position of the keys' brush, once they have moved it
  const pointAt = event => {
    const box = canvas().getBoundingClientRect(), { w, h } = painter.sheet;
    return [(event.clientX - box.left) * w / box.width, (event.clientY - box.top) * h / box.height];
  };
  const showBrush = point => {
    const { w, h } = painter.sheet, shown = point && { left: `${100 * point[0] / w}%`, top: `${100 * point[1] / h}%`, width: `${100 * brushWidth() / w}%`, opacity: 1 };
    Object.assign($(".pt-ring").style, shown ?? { opacity: 0 });
  };
  addEventListener("pointerdown", event => {
    const box = event.target.closest?.(".pt-well");
    if (!box || event.target.closest(".pt-zoom")) return;
    event.preventDefault();
    key = null;
    canvas().focus({ preventScroll: true });
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    try { box.setPointerCapture(event.pointerId); } catch { /* the pointer is gone already */ }
    const side = event.target.dataset.edge, isMove = isSpaceHeld || event.button === 1 || mode() === "expand";
    drag = null;
    if (pointers.size === 2) cancelStroke();
    if (pointers.size === 2 || (pointers.size === 1 && !side && isMove)) drag = { kind: "move", ...pinch(pointers) };
    else if (pointers.size === 1 && side) drag = { kind: "edge", side, x: event.clientX, y: event.clientY, from: painter.sheet.growth[side] };
    else if (pointers.size === 1 && !event.button) { drag = { kind: "stroke" }; beginStroke(pointAt(event)); }
  });
  addEventListener("pointermove", event => {
    if (!isPainting()) return;
    if (event.target.closest?.(".pt-well") && mode() === "mask" && event.pointerType !== "touch") showBrush(drag?.kind === "move" ? null : pointAt(event));
    if (!pointers.has(event.pointerId) || !drag) return;
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (drag.kind === "stroke") for (const one of event.getCoalescedEvents?.() || [event]) continueStroke(pointAt(one));
    if (drag.kind === "edge") {
      const { side, from, x, y } = drag, across = (event.clientX - x) / $(".pt-pic").offsetWidth, down = (event.clientY - y) / $(".pt-pic").offsetHeight;
      setGrowth({ [side]: from + { left: -across, right: across, top: -down, bottom: down }[side] / view.zoom });
    }
    if (drag.kind === "move") {
      const now = pinch(pointers);
      pan(now.x - drag.x, now.y - drag.y);
      zoomBy(now.apart / drag.apart, now.x, now.y);
      Object.assign(drag, now);
    }
  });
  for (const name of ["pointerup", "pointercancel"]) addEventListener(name, event => {
    if (!pointers.delete(event.pointerId) || !drag) return;
    const { kind } = drag;
    drag = null;
    if (kind === "stroke" && painter.stroke) { if (name === "pointerup") finishStroke(); else cancelStroke(); }
    if (kind === "edge") { $("#pt-ratio").value = ""; saveGrowth(); }
  });
  addEventListener("pointerout", event => { if (event.target.closest?.(".pt-well") && !well().contains(event.relatedTarget) && !key) showBrush(null); });
  addEventListener("wheel", event => {
    if (!event.target.closest?.(".pt-well")) return;
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX, event.clientY);
  }, { passive: false });

  // ---- keys: a brush of its own that the arrows move
  const DIRECTIONS = { left: [-1, 0], right: [1, 0], up: [0, -1], down: [0, 1] };
  const middle = () => [painter.sheet.w / 2, painter.sheet.h / 2];
  const moveBrush = ([x, y], isFar) => {
    const { w, h } = painter.sheet, step = STEP_PX * (isFar ? 5 : 1) * longest() / 1024, [fromX, fromY] = key ?? middle();
    key = [clamp(fromX + x * step, 0, w), clamp(fromY + y * step, 0, h)];
    showBrush(key);
    // A brush that leaves the well takes the view along.
    const box = well().getBoundingClientRect(), place = $(".pt-ring").getBoundingClientRect(), across = place.left + place.width / 2, down = place.top + place.height / 2;
    pan(clamp(across, box.left + 24, box.right - 24) - across, clamp(down, box.top + 24, box.bottom - 24) - down);
    if (painter.stroke) continueStroke(key);
  };
  const pressBrush = () => {  // a box takes two presses, unless it is drawn while the key is held
    showBrush(key ??= middle());
    if (painter.stroke) finishStroke(); else beginStroke(key);
  };
  const panBy = ([x, y]) => () => pan(-PAN_PX * x, -PAN_PX * y);
  const clickPart = part => () => $(`#pt ${part}`).click();  // a disabled button does nothing
  const shortcutCommand = event => {
    const zoom = keys.find(event, "painter.zoom"), size = { smaller: -8, larger: 8 }[keys.find(event, "painter.size")], name = keys.find(event, "painter.tool");
    if (keys.is(event, "painter.undo")) return clickPart("[data-paint=undo]");
    if (keys.is(event, "painter.redo")) return clickPart("[data-paint=redo]");
    if (zoom) return ZOOMS[zoom];
    if (mode() !== "mask") return null;
    if (size) return () => { setSlider("size", Number($("#pt-size").value) + size); if (key) showBrush(key); };
    if (name) return clickPart(`[data-tool=${name}]`);
    if (keys.is(event, "painter.all")) return () => changeMask(emptyMask().fill(255));
    if (keys.is(event, "painter.invert")) return clickPart("[data-paint=invert]");
    return keys.is(event, "painter.clear") ? clickPart("[data-paint=clear]") : null;
  };
  const canvasCommand = (event, way) => {
    const away = DIRECTIONS[keys.find(event, "painter.pan")], isPaint = keys.usesKey(event, "painter.paint");
    if (away || (way && mode() === "expand")) return panBy(away || way);
    if (mode() === "expand") return null;
    if (way || (isPaint && key)) panel().dataset.keys = "";
    if (way) return () => moveBrush(way, Boolean(keys.find(event, "painter.far")));
    if (!isPaint) return null;
    // For mouse users, holding Space moves the picture; the arrows switch to the brush of the keys.
    if (!key && panel().dataset.hand === "pointer") { isSpaceHeld = true; return () => {}; }
    return event.repeat ? () => {} : pressBrush;
  };
  const isActive = () => isPainting() && isPaneShown("canvas");
  // What Space does, and whether the help is shown, depends on whether the user works with a pointer or with keys.
  const setInputMethod = way => { inputMethod = way; const place = $("#pt"); if (place) place.dataset.hand = inputMethod; };
  addEventListener("pointerdown", () => setInputMethod("pointer"), true);
  addEventListener("keydown", event => {
    const isCanvas = event.target.id === "pt-canvas", way = DIRECTIONS[keys.find(event, "painter.move") || keys.find(event, "painter.far")];
    if (!isCanvas || way || keys.find(event, "painter.pan")) setInputMethod("keys");
    if (!isActive() || !event.target.closest?.("#pt") || keys.isTyping(event.target)) return;
    const run = shortcutCommand(event) || (isCanvas ? canvasCommand(event, way) : way && event.target.closest(".pt-zoom") && panBy(way));
    if (run) { event.preventDefault(); run(); }
  }, true);
  keys.onEscape("mode", event => {
    if (!isActive() || event.target.closest?.("#center, #rail")) return false;
    if (painter.stroke) cancelStroke(); else close();
    return true;
  });
  addEventListener("keyup", event => {
    if (!keys.usesKey(event, "painter.paint")) return;
    isSpaceHeld = false;
    const { stroke } = painter;
    if (stroke && key && event.target.id === "pt-canvas" && !(stroke.tool === "box" && stroke.last === stroke.from)) finishStroke();
  });
  addEventListener("blur", () => { isSpaceHeld = false; });
  // Another theme has another colour for the mask.
  new MutationObserver(() => { if (isPainting()) show(); }).observe(document.body, { attributeFilter: ["class"] });

  Object.assign(painter, { message, showBriefly, isUnset, restoreDraft, clearSheet, openOn, leave, acts });
}

// What the painter adds to the next message: two hidden fields, `mask` and `expand`, which Send takes along and Python
// empties, or fills again after a failure; the mark of the picture; the last mask of each picture; and new pictures,
// dropped onto the stage or chosen there, which are attached and have no handle until they are sent.
//
// A mask of a new picture names it as the Nth of the composer's files, `upload:N`. How Gradio 6.31 orders them, as
// measured: a MultimodalTextbox holds its files in one list and appends to it when an upload is done, the files of one
// drop in the order of the drop; of two uploads at once the one that ends first comes first. A removal closes the gap.
// The thumbnails in #box show the list in that order. They are reused by position, so an element does not identify its
// file: the URL of its image does, which ends in the file's name. Hence a file that may be painted over gets a name of
// its own, which it still has when a failed turn returns it.
{
  const painter = aivista.painter;
  const { message, showBriefly } = painter;
  // How long a new picture's file may be missing: when no upload is running, and after a failed turn.
  const UPLOAD_MS = 2000, RETURN_MS = 5000;
  const records = new Map();  // by a handle of ours: {handle, mark, url, width, height, place, ahead, until}
  const isNew = handle => records.has(handle);

  // ---- the drafts: the fields' content for the next message. The last one is being edited; an expansion and a new
  // picture's mask go alone, masks of other pictures of the conversation go together.
  let drafts = [], sentDraft = null;  // sentDraft: what Python has accepted; it returns when the turn fails
  Object.defineProperty(painter, "draft", { get: () => drafts.at(-1) });
  const draftOf = handle => drafts.find(one => one.handle === handle);
  const isAlone = ({ name, handle }) => name === "expand" || isNew(handle);
  const serialized = ({ handle, body }) => JSON.stringify({ handle: isNew(handle) ? `upload:${records.get(handle).place}` : handle, ...body });
  const fields = () => {
    const { draft } = painter, several = drafts.length > 1 ? `[${drafts.map(serialized).reverse()}]` : "";  // Python marks the first
    return { mask: "", expand: "", ...(draft && !draft.isHeld && { [draft.name]: several || serialized(draft) }) };
  };
  const writeFields = values => { for (const [name, value] of Object.entries(values)) $(`#${name}`).value = value; };
  const changed = () => {
    writeFields(fields());
    if (painter.draft) markTarget(painter.draft.handle);
    else if (markedHandle) { aivista.shell.act("page.drop", { arg: markedHandle }); markedHandle = ""; }
    drawNotes();
  };
  const putDraft = (name, body) => {  // without a body: the picture is left as it is
    const { conversation, handle, source, alpha, growth, share } = painter.sheet, draft = { name, body, conversation, handle, source, alpha, growth, share };
    if (!body && draftOf(handle)?.name !== name) return;
    drafts = isAlone(draft) ? [] : drafts.filter(one => one.handle !== handle && !isAlone(one));
    sentDraft = null;
    if (body) drafts.push(draft);
    if (body && name === "mask" && !isNew(handle)) storeMask(draft, body);
    changed();
  };
  const discardDraft = handle => {
    if (painter.sheet?.handle === handle) painter.clearSheet();
    if (markedHandle === handle) markedHandle = "";  // its × removed the mark
    drafts = drafts.filter(one => one.handle !== handle);
    changed();
  };
  const discardAll = () => {
    drafts = [];
    sentDraft = markRequest = null;
    markedHandle = "";
    writeFields(fields());
    painter.clearSheet();
  };

  // ---- the last mask of each picture, as long as the tab is open
  const maskKey = ({ conversation, handle }) => `aivista-mask ${conversation} ${handle}`;
  const storeMask = (picture, mask) => { try { sessionStorage.setItem(maskKey(picture), JSON.stringify(mask)); } catch { /* no room: the mask is in the field, only not kept for later */ } };
  const lastMask = () => {  // of the picture on the sheet, unless it is there already
    let stored = null;
    try { stored = JSON.parse(sessionStorage.getItem(maskKey(painter.sheet))); } catch { /* a private window keeps nothing */ }
    return stored?.png === draftOf(painter.sheet.handle)?.body.png ? null : stored;
  };

  // ---- the mark: Python marks the picture to change, one at a time; a new one takes the mark from another
  let markedHandle = "", markRequest = null;  // marked for a draft; requested, and not shown by Python yet
  const targetChip = () => $("#ctx .ctx[data-handle]");
  const markTarget = handle => {
    const shown = targetChip()?.dataset.handle ?? "", to = isNew(handle) ? "" : handle, from = markRequest?.to ?? shown;
    if (from === to) return;
    markRequest = { shown, to };
    markedHandle = to;
    aivista.shell.act(to ? "page.edit" : "page.drop", { arg: to || from });
  };
  const syncMark = () => {
    const { draft } = painter, shown = targetChip()?.dataset.handle ?? "";
    if (markRequest && shown !== markRequest.shown) markRequest = null;
    else if (!markRequest && shown !== markedHandle) markedHandle = "";
    if (!draft) return;
    if (!isNew(draft.handle) && draft.conversation !== conversation()) discardAll();
    else if (markRequest) return;
    else if (!shown) markTarget(draft.handle);  // the end of an earlier turn removed the mark
    else if (shown !== draft.handle) {  // another is marked: one that was painted over before, or none of these
      const other = draftOf(shown);
      if (!other) { discardAll(); return; }
      drafts = [...drafts.filter(one => one !== other), other];
      writeFields(fields());
    }
  };

  // ---- sent, and returned after a failure
  addEventListener("aivista-painted", ({ detail }) => {
    const { draft } = painter;
    writeFields(detail);
    if (draft && !draft.isHeld && !detail[draft.name]) draftSent(draft);
    else if (!draft && detail.mask === sentDraft?.fields.mask && detail.expand === sentDraft.fields.expand) draftReturned();
  });
  const draftSent = ({ name, handle }) => {
    // A new picture's mask is kept under the handle that the thread shows for it, in the order of the files.
    const place = name === "mask" && records.get(handle)?.place;
    sentDraft = { drafts, handle, fields: fields(), place, files: thumbnails().length, known: all("#chat .ref").map(one => one.dataset.arg) };
    drafts = [];
    markedHandle = "";
    painter.clearSheet();
    if (isNew(handle) && painter.sheet?.handle === handle) painter.leave();
  };
  const nameSent = () => {
    const { place, files, known, drafts: [draft] } = sentDraft, shown = [...(all("#chat .refs").at(-1)?.querySelectorAll("[data-arg]") ?? [])].slice(-files);
    const handle = shown[place - 1]?.dataset.arg;
    if (shown.length < files || conversation() === "new" || known.includes(handle)) return;
    storeMask({ conversation: conversation(), handle }, draft.body);
    sentDraft.place = 0;
  };
  const draftReturned = () => {
    ({ drafts } = sentDraft);
    sentDraft = null;
    const record = records.get(painter.draft.handle);
    // Its file returns a moment later; until then the field would name a picture that is not there.
    if (record) { painter.draft.isHeld = true; Object.assign(record, { place: 0, until: performance.now() + RETURN_MS }); writeFields(fields()); }
    painter.restoreDraft();
  };

  // ---- the position of a new picture's file among those of the message
  const thumbnails = () => all("#box .thumbnail-item");
  const syncFile = record => {
    const found = 1 + thumbnails().findIndex(one => $("img", one)?.src.includes(`-${record.mark}.`)), now = performance.now();
    const isHeld = draftOf(record.handle)?.isHeld;
    if (found) record.until = 0;
    else if (record.until && aivista.uploads.isBusy()) record.until = now + UPLOAD_MS;
    if (!found && record.until <= now) { if (discardNew(record)) showBriefly("#ctx-said", message("newGone")); return; }
    const number = found || (isHeld ? 0 : thumbnails().length + 1 + record.ahead);
    if (record.place === number) return;
    record.place = number;
    if (painter.draft?.handle !== record.handle) return;
    painter.draft.isHeld = !number;
    writeFields(fields());
  };
  const discardNew = ({ handle, url }) => {
    const isDraft = painter.draft?.handle === handle;
    records.delete(handle);
    URL.revokeObjectURL(url);
    if (painter.sheet?.handle === handle) { painter.leave(); painter.sheet = null; }
    if (isDraft) discardAll();
    return isDraft;
  };

  // ---- what the composer shows of them
  const shownNew = () => records.get(painter.draft?.handle) ?? [...records.values()].filter(one => one.place && one.handle !== sentDraft?.handle).at(-1);
  const share = draft => draft?.name === "mask" ? `· ${message("maskNote", { share: draft.share })}` : "";
  const verb = draft => draft?.name === "expand" ? "expanding" : "editing";
  // Chips beside Python's own, redrawn when they change; their line exists only while there are any.
  const drawChips = (name, chips) => {
    const template = $(`#${name}-line`).content, now = JSON.stringify(chips);
    if (!chips.length) $(`#${name}`)?.remove();
    else if (!$(`#${name}`)) $("#context").prepend(template.cloneNode(true));
    const place = $(`#${name}`);
    if (!place || place.dataset.shown === now) return place;
    place.dataset.shown = now;
    for (const old of all(".ctx", place)) old.remove();
    for (const { handle, source, text } of chips) {
      const one = $(".ctx", template).cloneNode(true), drop = $(":scope > button:last-child", one);
      $("img", one).src = source;
      $("b", one).textContent = handle;
      $("small", one).textContent = text;
      drop.dataset.arg = handle;
      drop.title = drop.ariaLabel = formatText(drop.title, { handle });
      place.append(one);
    }
    return place;
  };
  const drawNotes = () => {
    const { draft } = painter, chip = targetChip(), record = shownNew(), isDraft = record && draft?.handle === record.handle;
    if (chip) {
      const about = draft?.handle === chip.dataset.handle ? draft : null, label = chip.previousElementSibling;
      setText(label, label.dataset[verb(about)]);
      setText($("small", chip), share(about));
    }
    drawChips("ctx-more", drafts.slice(0, -1).map(one => ({ handle: one.handle, source: one.source, text: share(one) })));
    const place = drawChips("ctx-new", record ? [{ handle: message("newPicture"), source: record.url, text: isDraft ? share(draft) : `· ${message("newPaint")}` }] : []);
    if (place) setText(place.firstElementChild, isDraft ? place.firstElementChild.dataset[verb(draft)] : "");
  };
  const sync = () => {
    syncMark();
    for (const record of records.values()) if (record.handle !== sentDraft?.handle) syncFile(record);
    if (sentDraft?.place) nameSent();
    drawNotes();
  };
  onInputsChanged(sync);
  setInterval(sync, 250);

  // ---- in: by a drop onto the stage or by its button
  const measure = async file => {  // its URL and its size, upright as its EXIF says; null where the browser cannot show it
    const image = new Image(), url = URL.createObjectURL(file);
    image.src = url;
    const isShown = file.type !== "image/svg+xml" && await image.decode().then(() => true, () => false);
    if (isShown) return { url, width: image.naturalWidth || 1, height: image.naturalHeight || 1 };
    URL.revokeObjectURL(url);
    return null;
  };
  const openNew = record => {
    root.setAttribute("data-stage", "");
    aivista.tabs?.show("canvas");
    painter.openOn({ conversation: "", ...record }, record.url, draftOf(record.handle)?.name ?? "mask");
  };
  const takeFiles = async files => {  // the first one that the browser can show is painted over
    const images = files.filter(aivista.uploads.isPicture).filter(aivista.uploads.accepts);
    let size = null, ahead = -1;
    while (!size && ++ahead < images.length) size = await measure(images[ahead]);
    if (!images.length) return;
    const mark = Math.random().toString(36).slice(2, 6).padEnd(4, "0"), handle = `new${mark}`, file = images[ahead];
    if (size) {
      const [, stem, ending = `.${file.type.split("/")[1] || "img"}`] = file.name.match(/^(.*?)(\.[A-Za-z0-9]{1,5})?$/s);
      images[ahead] = new File([file], `${stem.slice(0, 60)}-${mark}${ending}`, { type: file.type });
      records.set(handle, { ...size, handle, mark, ahead, until: performance.now() + UPLOAD_MS });
    }
    if (size) syncFile(records.get(handle));
    aivista.drops.addToBox(images);
    if (size) openNew(records.get(handle));
    showBriefly("#pt-said", message(size ? "added" : "attached"));
  };
  addEventListener("drop", event => {
    if (!event.target.closest?.("#stage") || !event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    takeFiles([...event.dataTransfer.files]);
  });
  on("change", "#pt-photo", input => {
    if (input.files.length) takeFiles([...input.files]);
    input.value = "";
  });
  addEventListener("click", event => {
    const { act, arg } = event.target.closest?.("[data-act]")?.dataset ?? {};
    if (act === "drop" && draftOf(arg)) discardDraft(arg);
  });
  addEventListener("aivista-leaving", discardAll);
  Object.assign(painter.acts, {
    choose: () => $("#pt-photo").click(),
    again: () => openNew(shownNew()),
    unpaint: () => {
      discardNew(shownNew());
      drawNotes();
      $("#box textarea")?.focus();
    },
    unpaint_one: button => discardDraft(button.dataset.arg),
  });

  Object.assign(painter, { isNew, draftOf, putDraft, lastMask, drawNotes, masks: () => drafts.filter(one => one.name === "mask").length });
}
