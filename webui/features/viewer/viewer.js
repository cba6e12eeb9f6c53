// Two pictures compared on the stage: by slider, side by side, or as their difference. `html[data-compare]` is the
// chosen way; it outlives what Python writes into the stage, and `update` applies it to new content.
{
  const keys = aivista.keys;
  const MODES = ["slider", "side", "difference"];
  const MOST_ZOOM = 16, STEP = 1.25, MOST_KEPT = 8;
  const comparison = () => $("#canvas .cmp");
  const mode = () => root.dataset.compare || "slider";

  // ---- which pictures
  const openPair = (first, second) => aivista.shell.act("page.compare", { arg: `${first} ${second}` });
  const picked = () => ["first", "second"].map(name => $(`[data-cmp-pick=${name}]`, comparison())?.value || "");

  // ---- the slider
  const divide = () => {
    const box = comparison(), range = $(".cmp-range", box);
    if (!range) return;
    const at = `${range.value}%`;
    if ($(".cmp-frame", box).style.getPropertyValue("--at") !== at) $(".cmp-frame", box).style.setProperty("--at", at);
    setAttribute(range, "aria-valuetext", formatText(box.dataset.share, { share: range.value }));
  };

  // ---- zoom and position, in shares of a frame, the same for both
  let view = { zoom: 1, x: 0, y: 0 };
  const setView = (zoom, x, y) => {
    zoom = clamp(zoom, 1, MOST_ZOOM);
    view = { zoom, x: clamp(x, 1 - zoom, 0), y: clamp(y, 1 - zoom, 0) };
    paintView();
  };
  const zoomAt = (zoom, x, y) => {
    zoom = clamp(zoom, 1, MOST_ZOOM);
    const by = zoom / view.zoom;
    setView(zoom, x - (x - view.x) * by, y - (y - view.y) * by);
  };
  const paintView = () => {
    const frame = $(".cmp-frame", comparison());
    if (!frame) return;
    for (const [name, value] of [["--zoom", view.zoom], ["--x", `${view.x * 100}%`], ["--y", `${view.y * 100}%`]])
      if (frame.style.getPropertyValue(name) !== String(value)) frame.style.setProperty(name, value);
    setText($(".cmp-tools output", comparison()), `${Math.round(view.zoom * 100)} %`);
  };
  const paneAt = event => {
    const pane = mode() === "side" ? event.target.closest?.(".cmp-pane") : null;
    if (!pane) return null;
    const box = pane.getBoundingClientRect();
    return { pane, box, x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height };
  };
  const fingers = new Map();
  addEventListener("pointerdown", event => {
    const at = paneAt(event);
    if (!at || event.button !== 0 || fingers.size === 2) return;
    event.preventDefault();
    $(".cmp-frame", comparison()).focus({ preventScroll: true });
    at.pane.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, { x: at.x, y: at.y, box: at.box });
  });
  addEventListener("pointermove", event => {
    const finger = fingers.get(event.pointerId);
    if (!finger) return;
    const before = pinch(fingers);
    finger.x = (event.clientX - finger.box.left) / finger.box.width;
    finger.y = (event.clientY - finger.box.top) / finger.box.height;
    const now = pinch(fingers);
    zoomAt(view.zoom * now.apart / before.apart, now.x, now.y);
    setView(view.zoom, view.x + now.x - before.x, view.y + now.y - before.y);
  });
  for (const kind of ["pointerup", "pointercancel", "lostpointercapture"]) addEventListener(kind, event => fingers.delete(event.pointerId));
  addEventListener("wheel", event => {
    const at = paneAt(event);
    if (!at) return;
    event.preventDefault();
    zoomAt(view.zoom * Math.exp(-event.deltaY / (event.deltaMode ? 12 : 400)), at.x, at.y);
  }, { passive: false });
  addEventListener("dblclick", event => {
    const at = paneAt(event);
    if (at) zoomAt(view.zoom > 1 ? 1 : 3, at.x, at.y);
  });
  const MOVES = { left: [1, 0], right: [-1, 0], up: [0, 1], down: [0, -1] };
  const moveByKey = event => {
    const move = MOVES[keys.find(event, "compare.move")], zoom = keys.find(event, "compare.zoom");
    if (move) setView(view.zoom, view.x + move[0] * .15, view.y + move[1] * .15);
    else if (zoom === "fit") setView(1, 0, 0);
    else if (zoom) zoomAt(zoom === "closer" ? view.zoom * STEP : view.zoom / STEP, .5, .5);
    return Boolean(move || zoom);
  };

  // ---- the difference: a picture and its numbers, computed by the server once for each pair
  const differences = new Map();
  const percent = share => {
    const value = share * 100;
    if (value > 0 && value < .01) return "<0.01";
    if (value < 100 && value > 99.9) return ">99.9";
    return String(Number(value.toFixed(value < 10 ? 2 : 1)));
  };
  const sentence = (box, numbers) => {
    const compared = numbers.compared.join("×");
    if (!numbers.largest) return formatText(box.dataset.same, { compared });
    const text = formatText(box.dataset.numbers, { changed: percent(numbers.changed), clear: percent(numbers.clear), largest: numbers.largest });
    const isWhole = [numbers.first, numbers.second].every(size => size.join("×") === compared);
    return isWhole ? text : `${text} ${formatText(box.dataset.compared, { compared })}`;
  };
  const fetchDifference = async address => {
    const answer = await fetch(`${address}?edge=1024`);
    if (!answer.ok) throw new Error(String(answer.status));
    return { url: URL.createObjectURL(await answer.blob()), numbers: JSON.parse(answer.headers.get("Aivista-Difference")) };
  };
  const dropOldest = () => {
    for (const [address, one] of differences) {
      if (differences.size <= MOST_KEPT) return;
      differences.delete(address);
      one.then(({ url }) => URL.revokeObjectURL(url), () => {});
    }
  };
  const showSentence = (box, text) => setText($(".cmp-said", box), text);
  const showDifference = async () => {
    const box = comparison(), address = box.dataset.difference;
    if (!differences.has(address)) { differences.set(address, fetchDifference(address)); dropOldest(); showSentence(box, box.dataset.computing); }
    const isStill = () => comparison()?.dataset.difference === address && mode() === "difference";
    try {
      const { url, numbers } = await differences.get(address);
      if (!isStill()) return;
      const image = $(".cmp-diff", comparison());
      if (image.getAttribute("src") !== url) image.src = url;
      image.hidden = false;
      showSentence(comparison(), sentence(comparison(), numbers));
    } catch {
      differences.delete(address);  // asked again the next time
      if (isStill()) { failedAddress = address; showSentence(comparison(), comparison().dataset.failed); }
    }
  };
  let failedAddress = "";

  // ---- the way to compare
  const choose = name => {
    root.dataset.compare = name;
    failedAddress = "";
    update();
  };
  let pair = "";
  const update = () => {
    const box = comparison();
    if (!box) { pair = ""; return; }
    if (pair !== box.dataset.pair) {
      pair = box.dataset.pair;
      view = { zoom: 1, x: 0, y: 0 };
      const image = $(".cmp-diff", box), range = $(".cmp-range", box);
      image.hidden = true;
      range.value = "50";
      failedAddress = "";
      for (const select of all("[data-cmp-pick]", box)) select.value = pair.split(" ")[select.dataset.cmpPick === "first" ? 0 : 1];
    }
    for (const button of all("[data-cmp-mode]", box)) {
      const isChosen = button.dataset.cmpMode === mode();
      setAttribute(button, "aria-checked", String(isChosen));
      setAttribute(button, "tabindex", isChosen ? "0" : "-1");
    }
    const frame = $(".cmp-frame", box);
    if (mode() === "side") setAttribute(frame, "tabindex", "0"); else frame.removeAttribute("tabindex");
    divide();
    paintView();
    if (mode() !== "difference") showSentence(box, "");
    else if (failedAddress !== box.dataset.difference) showDifference();
  };

  const acts = {
    swap: () => { const [first, second] = picked(); openPair(second, first); },
    in: () => zoomAt(view.zoom * STEP, .5, .5),
    out: () => zoomAt(view.zoom / STEP, .5, .5),
    fit: () => setView(1, 0, 0),
  };
  on("click", "[data-cmp-mode]", button => choose(button.dataset.cmpMode));
  on("click", "[data-cmp]", button => acts[button.dataset.cmp]?.());
  on("input", ".cmp-range", divide);
  on("change", "[data-cmp-pick]", () => openPair(...picked()));
  const turnMode = (event, button) => {
    const to = keys.walk(event, "compare.mode", MODES, MODES.indexOf(button.dataset.cmpMode));
    if (to < 0) return false;
    const next = MODES[to];
    choose(next);
    $(`[data-cmp-mode=${next}]`, comparison()).focus();
    return true;
  };
  addEventListener("keydown", event => {
    const button = event.target.closest?.("[data-cmp-mode]");
    const isDone = button ? turnMode(event, button) : event.target.matches?.(".cmp-frame") && mode() === "side" && moveByKey(event);
    if (isDone) event.preventDefault();
  });

  aivista.cards.compare = (button, send) => { root.setAttribute("data-stage", ""); send(button); };
  onPatched(update);
}

// The sliders of a panel, previewed on their picture in the thread and on the stage. Nothing is kept: the picture
// returns when all sliders are back, the panel is closed or applied, or "before" is held.
{
  const REST_MS = 60, BUSY_MS = 300;
  let panel = null, timer = 0, request = null, url = "", isBeforeHeld = false;

  const amountsOf = sliders => all("input[type=range]", sliders).map(input => [input.name, Number(input.value) - Number(input.defaultValue)]).filter(([, value]) => value);
  const isOpen = () => panel.isConnected && panel.open && panel.closest(".next-steps")?.open !== false;

  // ---- all elements that show a handle; `originals` holds the original URLs of those that show a preview
  const originals = new Map();
  const mediaOf = sliders => sliders.dataset.preview.replace(/^aivista\/preview\//, "media/");
  const places = sliders => all("#chat :is(.frame, .mini) > img, #canvas .cv-pic > img")
    .filter(image => addressOf(image).split("?")[0] === mediaOf(sliders));
  const isPreviewed = image => Boolean(image.getAttribute("src")?.startsWith("blob:"));
  const addressOf = image => (isPreviewed(image) ? originals.get(image) : image.getAttribute("src")) || "";
  const setSource = (image, address, label) => {
    // The sizes offered to the browser would win over the URL.
    const sizes = image.getAttribute("srcset"), isPreview = address.startsWith("blob:");
    if (isPreview && sizes) { image.dataset.sizes = sizes; image.removeAttribute("srcset"); }
    if (!isPreview && image.dataset.sizes) { image.setAttribute("srcset", image.dataset.sizes); delete image.dataset.sizes; }
    if (image.getAttribute("src") !== address) image.src = address;
    const frame = image.parentElement;
    if (label && frame) frame.dataset.previewing = label; else delete frame?.dataset.previewing;
  };
  const paint = () => {
    if (!url || !panel) return;
    const shown = places(panel);
    for (const image of originals.keys()) {
      // Python has put another picture into it.
      if (!shown.includes(image)) { delete image.parentElement?.dataset.previewing; originals.delete(image); }
    }
    for (const image of shown) {
      originals.set(image, addressOf(image));
      setSource(image, isBeforeHeld ? originals.get(image) : url, isBeforeHeld ? "" : panel.dataset.label);
    }
  };

  // ---- requesting a preview: the newest counts
  const showStatus = text => setText($(".previewed", panel), text);
  const show = address => {
    const old = url;
    url = address;
    paint();
    if (old) URL.revokeObjectURL(old);
  };
  const requestPreview = async () => {
    request?.abort();
    const controller = request = new AbortController(), from = panel;
    try {
      const answer = await fetch(`${from.dataset.preview}?${new URLSearchParams(amountsOf(from))}`, { signal: controller.signal });
      if (answer.status === 429) { if (request === controller) { clearTimeout(timer); timer = setTimeout(requestPreview, BUSY_MS); } return; }
      if (!answer.ok) throw new Error(String(answer.status));
      const made = URL.createObjectURL(await answer.blob());
      await Object.assign(new Image(), { src: made }).decode();
      if (request === controller && panel === from) { show(made); showStatus(from.dataset.shown); } else URL.revokeObjectURL(made);
    } catch (error) {
      if (error.name !== "AbortError" && request === controller) { stopPreview(); showStatus(from.dataset.failed); }
    }
  };
  const stopPreview = () => {
    clearTimeout(timer);
    request?.abort();
    request = null;
    isBeforeHeld = false;
    for (const image of originals.keys()) setSource(image, addressOf(image), "");
    originals.clear();
    if (url) URL.revokeObjectURL(url);
    url = "";
  };
  const leavePanel = () => { if (!panel) return; stopPreview(); showStatus(panel.dataset.idle); panel = null; };

  const slide = sliders => {
    const isMoved = amountsOf(sliders).length > 0;
    for (const button of all("[data-adjust]", sliders)) button.disabled = !isMoved;
    if (panel !== sliders) { leavePanel(); panel = sliders; }
    if (!isMoved) { leavePanel(); return; }
    clearTimeout(timer);
    timer = setTimeout(requestPreview, REST_MS);
  };
  const reset = sliders => {
    for (const input of all("input[type=range]", sliders)) {
      if (input.value === input.defaultValue) continue;
      input.value = input.defaultValue;
      input.dispatchEvent(new Event("input", { bubbles: true }));
    }
    $("input[type=range]", sliders)?.focus();
  };
  const holdBefore = on => { if (isBeforeHeld !== on && (url || !on)) { isBeforeHeld = on; paint(); } };

  on("input", ".sliders[data-preview] input[type=range]", input => slide(input.closest(".sliders")));
  on("click", "[data-adjust=reset]", button => reset(button.closest(".sliders")));
  on("click", "[data-act=panel_apply]", leavePanel);
  const atBefore = event => event.target.closest?.("[data-adjust=before]:enabled");
  addEventListener("pointerdown", event => {
    if (!atBefore(event) || event.button !== 0) return;
    atBefore(event).setPointerCapture(event.pointerId);
    holdBefore(true);
  });
  for (const kind of ["pointerup", "pointercancel", "lostpointercapture", "blur"]) addEventListener(kind, () => holdBefore(false));
  on("contextmenu", "[data-adjust=before]", (_, event) => event.preventDefault());
  const isHoldKey = event => atBefore(event) && aivista.keys.usesKey(event, "adjust.hold");
  addEventListener("keydown", event => { if (isHoldKey(event)) { event.preventDefault(); holdBefore(true); } });
  addEventListener("keyup", event => { if (isHoldKey(event)) holdBefore(false); });
  on("focusout", "[data-adjust=before]", () => holdBefore(false));
  // A closed panel restores its picture; opened again, its sliders and the preview are as before.
  addEventListener("toggle", event => {
    const sliders = event.target.matches?.(".sliders") ? event.target : event.target.matches?.(".next-steps") ? event.target.querySelector(".sliders[open]") : null;
    if (panel && !isOpen()) leavePanel();
    else if (!panel && sliders?.open && event.target.open && amountsOf(sliders).length) slide(sliders);
  }, true);

  // What Python writes anew, above all the stage, shows the preview too while there is one.
  onPatched(() => { if (panel && !isOpen()) leavePanel(); else paint(); });
}

// The picture of the stage over the whole window: `html[data-full]`; the painter and a comparison fill it as well.
// Setting or removing the attribute opens or closes it; this part carries out the effects, and zooms, moves and changes
// the picture. The view is kept in the stage's style, which Python never writes anew.
{
  const keys = aivista.keys;
  const MOST = 4, STEP = 1.25, PREVIEW_PX = 2048, SWIPE_PX = 48, MOVE_PX = 96;
  const isFull = () => root.hasAttribute("data-full"), isPainting = () => root.hasAttribute("data-painting");
  const picture = () => (isPainting() ? null : $("#canvas .cv-pic"));
  const canFill = () => isPaneShown("canvas") && (isPainting() || Boolean($("#canvas :is(.cv-pic, .cmp)")));
  const open = () => { if (canFill()) root.setAttribute("data-full", ""); };
  const close = () => root.removeAttribute("data-full");
  const isVisible = element => Boolean(element) && element !== document.body && element.checkVisibility({ visibilityProperty: true });
  const firstVisible = selector => all(selector).find(isVisible);

  // ---- the view: the zoom is 1 where the picture fits; x and y are the offset of its centre from the well's
  const FIT = { zoom: 1, x: 0, y: 0 };
  let view = FIT;
  // The zoom at which a pixel of the picture is one of the screen.
  const actual = pic => Number(pic.dataset.width) / (parseFloat(getComputedStyle(pic).width) * devicePixelRatio);
  const setView = (to, drawn = 0) => {
    const pic = picture(), well = pic?.parentElement;
    if (!isFull() || !pic?.offsetWidth) return;
    const across = Math.max(0, (pic.offsetWidth * to.zoom - well.clientWidth) / 2), down = Math.max(0, (pic.offsetHeight * to.zoom - well.clientHeight) / 2);
    view = { zoom: to.zoom, x: clamp(to.x, -across, across), y: clamp(to.y, -down, down) };
    const { style } = $("#stage");
    for (const [name, value] of [["x", `${view.x + drawn}px`], ["y", `${view.y}px`], ["zoom", view.zoom]]) style.setProperty(`--view-${name}`, value);
    setText($("#canvas [data-viewer=fit]"), `${Math.round(100 * view.zoom / actual(pic))} %`);
    sharpen(pic);
  };
  const zoomTo = (wanted, at) => {
    const pic = picture();
    if (!pic?.offsetWidth) return;
    const one = actual(pic), zoom = clamp(wanted, Math.min(1, one), Math.max(1, one * MOST)), grown = zoom / view.zoom;
    const box = pic.parentElement.getBoundingClientRect();
    const [x, y] = at ? [at.x - box.left - box.width / 2, at.y - box.top - box.height / 2] : [0, 0];
    setView({ zoom, x: x - (x - view.x) * grown, y: y - (y - view.y) * grown });
  };
  const toggleFit = at => { const pic = picture(); if (pic) zoomTo(view.zoom === 1 ? actual(pic) : 1, at); };
  const moveBy = (x, y) => setView({ ...view, x: view.x + x, y: view.y + y });

  // ---- larger than its preview, a picture is shown at full resolution
  let loading = "";
  const sharpen = pic => {
    const { original, width, height } = pic.dataset, image = $("img", pic), address = image.getAttribute("src");
    const shown = Math.max(pic.offsetWidth, pic.offsetHeight) * view.zoom * devicePixelRatio;
    if (Math.min(shown, Math.max(width, height)) <= PREVIEW_PX || [address, loading].includes(original) || address.startsWith("blob:")) return;
    loading = original;
    const whole = Object.assign(new Image(), { src: original });
    // If it does not load, the preview stays.
    whole.decode().then(() => { if (pic.dataset.original === original && image.getAttribute("src") === address) image.src = original; loading = ""; }, () => {});
  };

  // ---- pointers: one moves the picture, or swipes to the next when all of it is visible; two pinch
  const fingers = new Map();
  let start = null;
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
    if (start.isSwipe) { setView(view, event.clientX - start.x); return; }
    const before = pinch(fingers);
    Object.assign(finger, { x: event.clientX, y: event.clientY });
    const now = pinch(fingers);
    moveBy(now.x - before.x, now.y - before.y);
    if (fingers.size > 1) zoomTo(view.zoom * now.apart / before.apart, now);
  });
  for (const kind of ["pointerup", "pointercancel", "lostpointercapture"]) addEventListener(kind, event => {
    if (!fingers.delete(event.pointerId) || !start.isSwipe) return;
    start.isSwipe = false;
    setView(view);
    const [x, y] = [event.clientX - start.x, event.clientY - start.y];
    if (event.type === "pointerup" && Math.abs(x) > Math.max(SWIPE_PX, 2 * Math.abs(y))) step(x < 0 ? "next" : "previous");
  });
  addEventListener("dragstart", event => { if (wellAt(event)) event.preventDefault(); });
  addEventListener("wheel", event => {
    if (!wellAt(event)) return;
    event.preventDefault();
    const px = event.deltaMode ? 24 : 1;
    if (event.ctrlKey) zoomTo(view.zoom * Math.exp(-event.deltaY * px / 200), { x: event.clientX, y: event.clientY });
    else moveBy(-event.deltaX * px, -event.deltaY * px);
  }, { passive: false });
  // The first of the two clicks may have opened it.
  let isOpening = false;
  addEventListener("click", event => { if (event.detail === 1) isOpening = !isFull(); }, true);
  addEventListener("dblclick", event => { if (wellAt(event) && !isOpening) toggleFit({ x: event.clientX, y: event.clientY }); });

  // ---- buttons and keys
  const step = to => $(`#canvas .vw-steps .b:${to === "previous" ? "first" : "last"}-child`)?.click();
  const acts = {
    open,
    close,
    closer: () => zoomTo(view.zoom * STEP),
    further: () => zoomTo(view.zoom / STEP),
    fit: () => toggleFit(),
    details: () => root.setAttribute("data-full", root.dataset.full ? "" : "details"),
  };
  // A button that leads to the conversation or the list closes it before its own handler runs.
  addEventListener("keydown", event => { if (isFull() && (keys.is(event, "page.search") || keys.is(event, "page.new"))) close(); }, true);
  addEventListener("click", event => { if (isFull() && event.target.closest?.("[data-recipe], [data-act]:not([data-act=view], [data-act=compare])")) close(); }, true);
  addEventListener("aivista-leaving", close);
  addEventListener("click", event => {
    const button = event.target.closest?.("[data-viewer]");
    if (button) acts[button.dataset.viewer]();
    else if (!isFull() && event.target.closest?.("#canvas .cv-pic")) open();
  });
  const DIRECTIONS = { left: [1, 0], right: [-1, 0], up: [0, 1], down: [0, -1] };
  const commandOf = event => {
    if (keys.is(event, "viewer.full")) return isFull() ? close : canFill() ? open : null;
    if (!isFull() || !picture() || keys.isTyping(event.target)) return null;
    const to = keys.find(event, "viewer.walk"), way = DIRECTIONS[keys.find(event, "viewer.move")], zoom = keys.find(event, "viewer.zoom");
    if (to) return () => step(to);
    if (way) return () => moveBy(way[0] * MOVE_PX, way[1] * MOVE_PX);
    return zoom === "fit" ? () => setView(FIT) : acts[zoom];
  };
  addEventListener("keydown", event => {
    const act = event.defaultPrevented || aivista.dialogs.opened() ? null : commandOf(event);
    if (!act) return;
    event.preventDefault();
    act();
  });
  keys.onEscape("full", () => {
    const isClosing = isFull() && !aivista.painter.stroke;
    if (isClosing) close();
    return isClosing;
  });

  // ---- effects: the focus goes in and comes back, another picture is fitted, the neighbours are preloaded
  let wasFull = false, returnTo = null, shownPicture = "";
  const switchFull = () => {
    wasFull = isFull();
    const stage = $("#stage"), name = $("#stage [data-viewer=open]")?.ariaLabel || "";
    for (const [key, value] of [["role", "dialog"], ["aria-modal", "true"], ["aria-label", name]]) if (wasFull) stage.setAttribute(key, value); else stage.removeAttribute(key);
    const at = document.activeElement;
    if (wasFull) { returnTo = at; shownPicture = ""; } else fingers.clear();
    // A user who went on to something visible stays there.
    if (wasFull ? !isVisible(at) || !stage.contains(at) : !isVisible(at)) (wasFull ? firstVisible("[data-viewer=close]") : isVisible(returnTo) ? returnTo : firstVisible("[data-viewer=open]") || firstVisible("#box textarea"))?.focus({ preventScroll: true });
  };
  const update = () => {
    if (isFull() && !canFill()) close();
    if (isFull() !== wasFull) switchFull();
    const pic = isFull() && picture();
    if (!pic) return;
    const now = `${pic.dataset.conversation} ${pic.dataset.handle}`, bar = $("#canvas .cv-bar");
    if (shownPicture !== now) {
      shownPicture = now;
      view = FIT;
      for (const address of bar.dataset.ahead.split(" ").filter(Boolean)) new Image().src = address;
    }
    setAttribute($("[data-viewer=details]", bar), "aria-pressed", String(root.dataset.full === "details"));
    setView(view);
  };
  new MutationObserver(update).observe(root, { attributeFilter: ["data-full", "data-stage", "data-tab", "data-painting"] });
  new ResizeObserver(update).observe($("#canvas"));
  onPatched(update);
}
