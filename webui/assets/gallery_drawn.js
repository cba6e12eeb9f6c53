// A rectangle drawn by the mouse from an empty place of the gallery selects the pictures that it touches.
(() => {
  const gallery = window.aivistaGallery, keys = window.aivistaKeys;
  const BEGIN_PX = 5, EDGE_PX = 40, FASTEST_PX = 16;
  const clamp = (value, least, most) => Math.min(most, Math.max(least, value));
  let drawing = null;

  const emptyPlace = event => {
    const box = event.target.closest?.("#gallery .gal-scroll");
    if (!box || event.target.closest(".gal-cell, .empty")) return null;
    // The scrollbar is the box's own, too.
    return event.clientX < box.getBoundingClientRect().left + box.clientWidth ? box : null;
  };
  const stop = () => {
    if (!drawing) return;
    cancelAnimationFrame(drawing.frame);
    drawing.mark.remove();
    drawing = null;
  };
  const draw = () => {
    if (!drawing) return;
    const { box, mark, from, at, kept } = drawing, frame = box.getBoundingClientRect(), was = box.scrollTop;
    drawing.frame = 0;
    const below = at.y - frame.bottom + EDGE_PX, above = frame.top + EDGE_PX - at.y;
    if (mark.isConnected && (below > 0 || above > 0)) box.scrollTop += below > 0 ? Math.min(below, FASTEST_PX) : -Math.min(above, FASTEST_PX);
    const to = { x: clamp(at.x - frame.left, 0, box.clientWidth), y: clamp(at.y - frame.top, 0, box.clientHeight) + box.scrollTop };
    if (!mark.isConnected && Math.hypot(to.x - from.x, to.y - from.y) < BEGIN_PX) return;
    const [left, right] = [from.x, to.x].sort((one, other) => one - other), [top, bottom] = [from.y, to.y].sort((one, other) => one - other);
    Object.assign(mark.style, { left: `${left}px`, top: `${top}px`, width: `${right - left}px`, height: `${bottom - top}px` });
    if (!mark.isConnected) box.append(mark);
    const [across, down] = [frame.left, frame.top - box.scrollTop];
    const isTouched = cell => {
      const own = cell.getBoundingClientRect();
      return own.left < right + across && own.right > left + across && own.top < bottom + down && own.bottom > top + down;
    };
    gallery.chosen.only(new Set([...kept, ...gallery.cells().filter(isTouched).map(cell => cell.dataset.id)]));
    if (box.scrollTop !== was) ask();
  };
  const ask = () => { drawing.frame ||= requestAnimationFrame(draw); };

  addEventListener("pointerdown", event => {
    const box = event.pointerType === "mouse" && event.button === 0 ? emptyPlace(event) : null;
    if (!box) return;
    const frame = box.getBoundingClientRect(), mark = document.createElement("div"), before = gallery.chosen.ids();
    mark.className = "gal-drawn";
    const from = { x: event.clientX - frame.left, y: event.clientY - frame.top + box.scrollTop };
    drawing = { box, mark, from, before, at: { x: event.clientX, y: event.clientY }, frame: 0, kept: event.shiftKey || event.ctrlKey || event.metaKey ? before : new Set() };
    box.setPointerCapture(event.pointerId);
  });
  addEventListener("pointermove", event => {
    if (!drawing) return;
    drawing.at = { x: event.clientX, y: event.clientY };
    ask();
  });
  // The last move may not be drawn yet.
  addEventListener("pointerup", () => { if (drawing) { draw(); stop(); } });
  for (const kind of ["pointercancel", "lostpointercapture"]) addEventListener(kind, stop);
  addEventListener("keydown", event => {
    if (!drawing?.mark.isConnected || !keys.is(event, "page.escape")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const { before } = drawing;
    stop();
    gallery.chosen.only(before);
  }, true);
})();
