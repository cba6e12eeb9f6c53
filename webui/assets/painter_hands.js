// The painter's view and hands: how near the picture is and where, what the pointers do, and a brush of the keys.
(() => {
  const root = document.documentElement, painter = window.aivistaPainter, keys = window.aivistaKeys;
  const { $, all, clamp, isPainting, mode, none, canvas, longest } = painter;
  const MOST_ZOOM = 8, STEP_PX = 8;

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
    const { sheet } = painter, { clientWidth, clientHeight } = well(), ratio = sheet.width / sheet.height, room = mode() === "expand" ? 0.78 : 1;
    const { left, top, right, bottom } = mode() === "expand" ? sheet.growth : none();
    const width = still?.width ?? Math.max(16, Math.min((clientWidth - 32) * room / (1 + left + right), (clientHeight - 32) * room / (1 + top + bottom) * ratio)), height = width / ratio;
    const x = still?.x ?? (clientWidth - width * (1 + left + right)) / 2 + left * width, y = still?.y ?? (clientHeight - height * (1 + top + bottom)) / 2 + top * height;
    const place = (element, ...sizes) => Object.assign(element.style, Object.fromEntries(["left", "top", "width", "height"].map((name, at) => [name, `${sizes[at]}px`])));
    place($(".pt-pic"), x, y, width, height);
    for (const frame of all(".pt-frame")) place(frame, x - left * width, y - top * height, width * (1 + left + right), height * (1 + top + bottom));
    return { width, height, x, y };
  };
  const edgeTo = (drag, event) => {
    const { side, from, start } = drag, across = side === "left" || side === "right", sign = side === "left" || side === "top" ? -1 : 1;
    const moved = across ? (event.clientX - start.x) / still.width : (event.clientY - start.y) / still.height;
    painter.grow({ [side]: from + sign * moved / view.zoom });
  };

  // ---- pointers: one paints or drags an edge, two move and pinch; with Space or the middle button one moves
  const pointers = new Map();
  let drag = null, isSpace = false, key = null;
  const at = event => { const box = canvas().getBoundingClientRect(), { w, h } = painter.sheet; return [(event.clientX - box.left) * w / box.width, (event.clientY - box.top) * h / box.height]; };
  const ring = point => {
    const place = $(".pt-ring"), { w, h } = painter.sheet, size = 100 * painter.widthOfBrush() / w;
    Object.assign(place.style, point ? { left: `${100 * point[0] / w}%`, top: `${100 * point[1] / h}%`, width: `${size}%`, opacity: 1 } : { opacity: 0 });
  };
  const between = () => {
    const [one, two] = [...pointers.values()];
    return { x: (one.x + two.x) / 2, y: (one.y + two.y) / 2, apart: Math.hypot(one.x - two.x, one.y - two.y) || 1 };
  };
  const startDrag = event => {
    const start = { x: event.clientX, y: event.clientY }, side = event.target.dataset?.edge;
    if (pointers.size === 2) { painter.cancel(); still = null; return { kind: "pinch", ...between() }; }
    if (pointers.size > 2) return null;
    if (side) { still = layout(); return { kind: "edge", side, start, from: painter.sheet.growth[side] }; }
    if (isSpace || event.button === 1 || mode() === "expand") return { kind: "pan", ...start };
    if (event.button) return null;
    painter.begin(at(event));
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
    if (!isPainting() || !painter.sheet) return;
    if (event.target.closest?.(".pt-well") && mode() === "mask" && event.pointerType !== "touch") ring(drag?.kind === "pan" ? null : at(event));
    if (!pointers.has(event.pointerId) || !drag) return;
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (drag.kind === "stroke") for (const one of event.getCoalescedEvents?.() || [event]) painter.goOn(at(one));
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
    if (kind === "stroke" && painter.stroke) { if (event.type === "pointerup") painter.finish(); else painter.cancel(); }
    if (kind === "edge") { still = null; $("#pt-ratio").value = ""; painter.grown(); }
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
  const WAYS = { left: [-1, 0], right: [1, 0], up: [0, -1], down: [0, 1] };
  const wayOf = event => WAYS[keys.find(event, "painter.move") || keys.find(event, "painter.far")];
  const middle = () => ({ x: painter.sheet.w / 2, y: painter.sheet.h / 2 });
  const reveal = () => {  // a brush that leaves the well takes the view along
    const box = well().getBoundingClientRect(), place = $(".pt-ring").getBoundingClientRect(), x = place.left + place.width / 2, y = place.top + place.height / 2;
    pan(clamp(x, box.left + 24, box.right - 24) - x, clamp(y, box.top + 24, box.bottom - 24) - y);
  };
  const moveKey = ([x, y], isFar) => {
    key ??= middle();
    const step = STEP_PX * (isFar ? 5 : 1) * longest() / 1024;
    Object.assign(key, { x: clamp(key.x + x * step, 0, painter.sheet.w), y: clamp(key.y + y * step, 0, painter.sheet.h), hasMoved: true });
    ring([key.x, key.y]);
    reveal();
    if (painter.stroke) painter.goOn([key.x, key.y]);
  };
  const pressKey = () => {
    key ??= middle();
    ring([key.x, key.y]);
    if (painter.stroke) { painter.goOn([key.x, key.y]); painter.finish(); key.isDone = true; return; }  // the second corner of a box
    Object.assign(key, { hasMoved: false, isDone: false });
    painter.begin([key.x, key.y]);
  };
  const liftKey = () => {
    if (!painter.stroke || !key || key.isDone || (painter.stroke.isBox && !key.hasMoved)) return;
    painter.finish();
  };
  const resize = by => { painter.setSlider("size", Number($("#pt-size").value) + by); if (key) ring([key.x, key.y]); };
  const ZOOMS = { closer: () => zoomBy(1.5), further: () => zoomBy(1 / 1.5), fit: () => fit() };
  const shortcuts = event => {
    const { acts } = painter;
    if (keys.is(event, "painter.undo")) return acts.undo;
    if (keys.is(event, "painter.redo")) return acts.redo;
    const zoom = ZOOMS[keys.find(event, "painter.zoom")];
    if (zoom || mode() !== "mask") return zoom;
    const size = { smaller: -8, larger: 8 }[keys.find(event, "painter.size")], tool = keys.find(event, "painter.tool");
    if (size) return () => resize(size);
    if (tool) return () => $(`#pt [data-tool=${tool}]`).click();
    if (keys.is(event, "painter.all")) return acts.all;
    if (keys.is(event, "painter.invert")) return acts.invert;
    return keys.is(event, "painter.clear") ? acts.clear : null;
  };
  const panBy = ([x, y]) => () => pan(-48 * x, -48 * y);
  const onCanvas = event => {
    const way = wayOf(event), away = WAYS[keys.find(event, "painter.pan")], isPaint = keys.lifts(event, "painter.paint");
    if (away || (way && mode() === "expand")) return panBy(away || way);
    if (mode() === "expand") return null;
    if (way || (isPaint && key)) $("#pt").dataset.keys = "";
    if (way) return () => moveKey(way, Boolean(keys.find(event, "painter.far")));
    if (!isPaint) return null;
    // Whoever works with the mouse holds Space to move the picture; the brush of the keys wakes with the arrows.
    if (!key && hand() === "pointer") { isSpace = true; return () => {}; }
    return event.repeat ? () => {} : pressKey;
  };
  // Whether one works with a pointer or with keys: what Space does, and whether the help is shown, depend on it.
  const hand = to => { const place = $("#pt"); if (place && to) place.dataset.hand = to; return place?.dataset.hand; };
  addEventListener("pointerdown", () => hand("pointer"), true);
  addEventListener("keydown", event => {
    if (event.target.id !== "pt-canvas" || wayOf(event) || keys.find(event, "painter.pan")) hand("keys");
    if (!isAtWork() || !event.target.closest?.("#pt") || keys.isTyping(event.target)) return;
    const way = wayOf(event);
    const run = shortcuts(event) || (event.target.id === "pt-canvas" ? onCanvas(event) : way && event.target.closest(".pt-zoom") ? panBy(way) : null);
    if (run) { event.preventDefault(); run(); }
  }, true);
  const isAtWork = () => isPainting() && root.hasAttribute("data-stage") && (root.dataset.tab ?? "canvas") === "canvas";
  keys.closes("mode", event => {
    if (!isAtWork() || event.target.closest?.("#center, #rail")) return false;
    if (painter.stroke) painter.cancel(); else painter.close();
    return true;
  });
  addEventListener("keyup", event => {
    if (!keys.lifts(event, "painter.paint")) return;
    isSpace = false;
    if (event.target.id === "pt-canvas") liftKey();
  });
  addEventListener("blur", () => { isSpace = false; });

  const watch = () => {
    const place = well();
    if (!place) { setTimeout(watch, 200); return; }
    new ResizeObserver(() => { if (isPainting() && painter.sheet) { layout(); look(); } }).observe(place);
    new MutationObserver(() => { if (isPainting() && painter.sheet) painter.show(); }).observe(document.body, { attributeFilter: ["class"] });
  };
  if (document.body) watch(); else addEventListener("DOMContentLoaded", watch);

  Object.assign(painter, { layout, fit, zoomBy, dropKey: () => { key = null; } });
})();
