// The picture of the stage over the whole window: `html[data-full]`, which the painter and a comparison fill as well.
// Whoever sets or takes the attribute opens or closes it; here is what follows from that, and how a picture is zoomed,
// moved and walked on from. The view is kept in the stage's style, which Python never writes anew.
(() => {
  const root = document.documentElement, keys = window.aivista.keys;
  const $ = selector => document.querySelector(selector);
  const clamp = (value, least, most) => Math.min(most, Math.max(least, value));
  const MOST = 4, STEP = 1.25, PREVIEW_PX = 2048, SWIPE_PX = 48, MOVE_PX = 96;
  const isFull = () => root.hasAttribute("data-full"), isPainting = () => root.hasAttribute("data-painting");
  const picture = () => (isPainting() ? null : $("#canvas .cv-pic"));
  const canFill = () => root.hasAttribute("data-stage") && root.dataset.tab === "canvas" && (isPainting() || Boolean($("#canvas :is(.cv-pic, .cmp)")));
  const open = () => { if (canFill()) root.setAttribute("data-full", ""); };
  const close = () => root.removeAttribute("data-full");
  const isSeen = element => Boolean(element) && element !== document.body && element.checkVisibility({ visibilityProperty: true });
  const seen = selector => [...document.querySelectorAll(selector)].find(isSeen);

  // ---- the view: the zoom is 1 where the picture fits; x and y say how far its middle lies from the well's
  const FIT = { zoom: 1, x: 0, y: 0 };
  let view = FIT;
  // The zoom at which a pixel of the picture is one of the screen.
  const actual = pic => Number(pic.dataset.width) / (parseFloat(getComputedStyle(pic).width) * devicePixelRatio);
  const look = (to, drawn = 0) => {
    const pic = picture(), well = pic?.parentElement;
    if (!isFull() || !pic?.offsetWidth) return;
    const across = Math.max(0, (pic.offsetWidth * to.zoom - well.clientWidth) / 2), down = Math.max(0, (pic.offsetHeight * to.zoom - well.clientHeight) / 2);
    view = { zoom: to.zoom, x: clamp(to.x, -across, across), y: clamp(to.y, -down, down) };
    const { style } = $("#stage"), fit = $("#canvas [data-viewer=fit]"), percent = `${Math.round(100 * view.zoom / actual(pic))} %`;
    for (const [name, value] of [["x", `${view.x + drawn}px`], ["y", `${view.y}px`], ["zoom", view.zoom]]) style.setProperty(`--view-${name}`, value);
    if (fit && fit.textContent !== percent) fit.textContent = percent;
    sharpen(pic);
  };
  const zoomTo = (wanted, at) => {
    const pic = picture();
    if (!pic?.offsetWidth) return;
    const one = actual(pic), zoom = clamp(wanted, Math.min(1, one), Math.max(1, one * MOST)), grown = zoom / view.zoom;
    const box = pic.parentElement.getBoundingClientRect();
    const [x, y] = at ? [at.x - box.left - box.width / 2, at.y - box.top - box.height / 2] : [0, 0];
    look({ zoom, x: x - (x - view.x) * grown, y: y - (y - view.y) * grown });
  };
  const turnFit = at => { const pic = picture(); if (pic) zoomTo(view.zoom === 1 ? actual(pic) : 1, at); };
  const move = (x, y) => look({ ...view, x: view.x + x, y: view.y + y });

  // ---- larger than its preview, a picture shows all its pixels
  let coming = "";
  const sharpen = pic => {
    const { original, width, height } = pic.dataset, image = pic.querySelector("img"), address = image.getAttribute("src");
    const shown = Math.max(pic.offsetWidth, pic.offsetHeight) * view.zoom * devicePixelRatio;
    if (Math.min(shown, Math.max(width, height)) <= PREVIEW_PX || [address, coming].includes(original) || address.startsWith("blob:")) return;
    coming = original;
    const whole = Object.assign(new Image(), { src: original });
    // One that does not come leaves the preview where it is.
    whole.decode().then(() => { if (pic.dataset.original === original && image.getAttribute("src") === address) image.src = original; coming = ""; }, () => {});
  };

  // ---- hands: one moves the picture, or goes on to the next where all of it is seen; two pinch
  const fingers = new Map();
  let start = null;
  const middle = () => {
    const [one, two = one] = [...fingers.values()];
    return { x: (one.x + two.x) / 2, y: (one.y + two.y) / 2, apart: Math.hypot(one.x - two.x, one.y - two.y) };
  };
  const wellAt = event => (isFull() && !isPainting() ? event.target.closest?.("#canvas .cv-well") : null);
  addEventListener("pointerdown", event => {
    const well = wellAt(event);
    if (!well || event.button || fingers.size === 2) return;
    well.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    const isSwipe = fingers.size === 1 && event.pointerType === "touch" && view.zoom <= 1;
    start = { x: event.clientX, y: event.clientY, isSwipe };
  });
  addEventListener("pointermove", event => {
    const finger = fingers.get(event.pointerId);
    if (!finger) return;
    if (start.isSwipe) { look(view, event.clientX - start.x); return; }
    const before = middle();
    Object.assign(finger, { x: event.clientX, y: event.clientY });
    const now = middle();
    move(now.x - before.x, now.y - before.y);
    if (before.apart && now.apart) zoomTo(view.zoom * now.apart / before.apart, now);
  });
  const lift = event => {
    if (!fingers.delete(event.pointerId) || !start.isSwipe) return;
    start.isSwipe = false;
    look(view);
    const [x, y] = [event.clientX - start.x, event.clientY - start.y];
    if (event.type === "pointerup" && Math.abs(x) > Math.max(SWIPE_PX, 2 * Math.abs(y))) step(x < 0 ? "next" : "previous");
  };
  for (const kind of ["pointerup", "pointercancel", "lostpointercapture"]) addEventListener(kind, lift);
  addEventListener("dragstart", event => { if (wellAt(event)) event.preventDefault(); });
  addEventListener("wheel", event => {
    if (!wellAt(event)) return;
    event.preventDefault();
    const px = event.deltaMode ? 24 : 1;
    if (event.ctrlKey) zoomTo(view.zoom * Math.exp(-event.deltaY * px / 200), { x: event.clientX, y: event.clientY });
    else move(-event.deltaX * px, -event.deltaY * px);
  }, { passive: false });
  // The first of the two clicks may have opened it.
  let isOpening = false;
  addEventListener("click", event => { if (event.detail === 1) isOpening = !isFull(); }, true);
  addEventListener("dblclick", event => { if (wellAt(event) && !isOpening) turnFit({ x: event.clientX, y: event.clientY }); });

  // ---- buttons and keys
  const step = to => $(`#canvas .vw-steps .b:${to === "previous" ? "first" : "last"}-child`)?.click();
  const acts = {
    open,
    close,
    closer: () => zoomTo(view.zoom * STEP),
    further: () => zoomTo(view.zoom / STEP),
    fit: () => turnFit(),
    details: () => root.setAttribute("data-full", root.dataset.full ? "" : "details"),
  };
  // What leads to the conversation or the list closes it, before it looks for what lies below.
  addEventListener("keydown", event => { if (isFull() && (keys.is(event, "page.search") || keys.is(event, "page.new"))) close(); }, true);
  addEventListener("click", event => { if (isFull() && event.target.closest?.("[data-recipe], [data-act]:not([data-act=view], [data-act=compare])")) close(); }, true);
  addEventListener("click", event => {
    const button = event.target.closest?.("[data-viewer]");
    if (button) acts[button.dataset.viewer]();
    else if (!isFull() && event.target.closest?.("#canvas .cv-pic")) open();
  });
  const WAYS = { left: [1, 0], right: [-1, 0], up: [0, 1], down: [0, -1] };
  const run = event => {
    if (keys.is(event, "viewer.full")) return isFull() ? close : canFill() ? open : null;
    if (!isFull() || !picture() || keys.isTyping(event.target)) return null;
    const to = keys.find(event, "viewer.walk"), way = WAYS[keys.find(event, "viewer.move")], zoom = keys.find(event, "viewer.zoom");
    if (to) return () => step(to);
    if (way) return () => move(way[0] * MOVE_PX, way[1] * MOVE_PX);
    return zoom === "fit" ? () => look(FIT) : acts[zoom];
  };
  addEventListener("keydown", event => {
    const act = event.defaultPrevented || window.aivista.dialogs.opened() ? null : run(event);
    if (!act) return;
    event.preventDefault();
    act();
  });
  keys.closes("full", () => {
    const isClosing = isFull() && !window.aivista.painter.stroke;
    if (isClosing) close();
    return isClosing;
  });

  // ---- what follows: the focus goes in and comes back, another picture is seen whole, the ones beside it are fetched
  let wasFull = false, back = null, shown = "";
  const turn = () => {
    wasFull = isFull();
    const stage = $("#stage"), name = $("#stage [data-viewer=open]").ariaLabel;
    for (const [key, value] of [["role", "dialog"], ["aria-modal", "true"], ["aria-label", name]]) if (wasFull) stage.setAttribute(key, value); else stage.removeAttribute(key);
    const at = document.activeElement;
    if (wasFull) { back = at; shown = ""; } else fingers.clear();
    // Whoever went on to something that is seen stays there.
    if (wasFull ? !isSeen(at) || !stage.contains(at) : !isSeen(at)) (wasFull ? seen("[data-viewer=close]") : isSeen(back) ? back : seen("[data-viewer=open]") || seen("#box textarea"))?.focus({ preventScroll: true });
  };
  const settle = () => {
    if (isFull() && !canFill()) close();
    if (isFull() !== wasFull) turn();
    const pic = isFull() && picture();
    if (!pic) return;
    const now = `${pic.dataset.conversation} ${pic.dataset.handle}`, bar = $("#canvas .cv-bar");
    if (shown !== now) {
      shown = now;
      view = FIT;
      for (const address of bar.dataset.ahead.split(" ").filter(Boolean)) new Image().src = address;
    }
    const details = bar.querySelector("[data-viewer=details]"), isOpen = String(root.dataset.full === "details");
    if (details.ariaPressed !== isOpen) details.ariaPressed = isOpen;
    look(view);
  };
  const watch = () => {
    const canvas = $("#canvas");
    if (!canvas) { setTimeout(watch, 200); return; }
    new MutationObserver(settle).observe(root, { attributeFilter: ["data-full", "data-stage", "data-tab", "data-painting"] });
    new MutationObserver(settle).observe(canvas, { childList: true, subtree: true, attributeFilter: ["data-handle", "src", "aria-pressed"] });
    new ResizeObserver(settle).observe(canvas);
  };
  if (document.body) watch(); else addEventListener("DOMContentLoaded", watch);
})();
