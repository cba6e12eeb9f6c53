// Two pictures compared on the stage: a slider, side by side, their difference. `html[data-compare]` is the
// way chosen; it outlives what Python writes into the stage, and `settle` brings a fresh stage in line with it.
(() => {
  const root = document.documentElement, keys = window.aivista.keys;
  const $ = (selector, from = document) => from?.querySelector(selector) ?? null;
  const MODES = ["slider", "side", "difference"];
  const MOST_ZOOM = 16, STEP = 1.25, KEPT = 8;
  const stage = () => $("#canvas .cmp");
  const mode = () => root.dataset.compare || "slider";
  const set = (element, name, value) => { if (element && element.getAttribute(name) !== value) element.setAttribute(name, value); };
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

  // ---- which pictures
  const ask = (first, second) => window.aivista.shell.act("page.compare", { arg: `${first} ${second}` });
  const picked = () => [..."first second".split(" ")].map(name => $(`[data-cmp-pick=${name}]`, stage())?.value || "");

  // ---- the slider
  const divide = () => {
    const box = stage(), range = $(".cmp-range", box);
    if (!range) return;
    const at = `${range.value}%`;
    if ($(".cmp-frame", box).style.getPropertyValue("--at") !== at) $(".cmp-frame", box).style.setProperty("--at", at);
    set(range, "aria-valuetext", fill(box.dataset.share, { share: range.value }));
  };

  // ---- zoom and place, in shares of a frame, the same for both
  let seen = { zoom: 1, x: 0, y: 0 };
  const between = (low, value, high) => Math.min(high, Math.max(low, value));
  const look = (zoom, x, y) => {
    zoom = between(1, zoom, MOST_ZOOM);
    seen = { zoom, x: between(1 - zoom, x, 0), y: between(1 - zoom, y, 0) };
    paintView();
  };
  const zoomAt = (zoom, x, y) => {
    zoom = between(1, zoom, MOST_ZOOM);
    const by = zoom / seen.zoom;
    look(zoom, x - (x - seen.x) * by, y - (y - seen.y) * by);
  };
  const paintView = () => {
    const frame = $(".cmp-frame", stage());
    if (!frame) return;
    for (const [name, value] of [["--zoom", seen.zoom], ["--x", `${seen.x * 100}%`], ["--y", `${seen.y * 100}%`]])
      if (frame.style.getPropertyValue(name) !== String(value)) frame.style.setProperty(name, value);
    const output = $(".cmp-tools output", stage()), text = `${Math.round(seen.zoom * 100)} %`;
    if (output && output.textContent !== text) output.textContent = text;
  };
  const paneAt = event => {
    const pane = mode() === "side" ? event.target.closest?.(".cmp-pane") : null;
    if (!pane) return null;
    const box = pane.getBoundingClientRect();
    return { pane, box, x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height };
  };
  const fingers = new Map();
  const middle = () => {
    const [one, two] = [...fingers.values()], last = two || one;
    return { x: (one.x + last.x) / 2, y: (one.y + last.y) / 2, apart: Math.hypot(one.x - last.x, one.y - last.y) };
  };
  addEventListener("pointerdown", event => {
    const at = paneAt(event);
    if (!at || event.button !== 0 || fingers.size === 2) return;
    event.preventDefault();
    $(".cmp-frame", stage()).focus({ preventScroll: true });
    at.pane.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, { x: at.x, y: at.y, box: at.box });
  });
  addEventListener("pointermove", event => {
    const finger = fingers.get(event.pointerId);
    if (!finger) return;
    const before = middle();
    finger.x = (event.clientX - finger.box.left) / finger.box.width;
    finger.y = (event.clientY - finger.box.top) / finger.box.height;
    const now = middle();
    if (before.apart && now.apart) zoomAt(seen.zoom * now.apart / before.apart, now.x, now.y);
    look(seen.zoom, seen.x + now.x - before.x, seen.y + now.y - before.y);
  });
  for (const kind of ["pointerup", "pointercancel", "lostpointercapture"]) addEventListener(kind, event => fingers.delete(event.pointerId));
  addEventListener("wheel", event => {
    const at = paneAt(event);
    if (!at) return;
    event.preventDefault();
    zoomAt(seen.zoom * Math.exp(-event.deltaY / (event.deltaMode ? 12 : 400)), at.x, at.y);
  }, { passive: false });
  addEventListener("dblclick", event => {
    const at = paneAt(event);
    if (at) zoomAt(seen.zoom > 1 ? 1 : 3, at.x, at.y);
  });
  const MOVES = { left: [1, 0], right: [-1, 0], up: [0, 1], down: [0, -1] };
  const steer = event => {
    const move = MOVES[keys.find(event, "compare.move")], zoom = keys.find(event, "compare.zoom");
    if (move) look(seen.zoom, seen.x + move[0] * .15, seen.y + move[1] * .15);
    else if (zoom === "fit") look(1, 0, 0);
    else if (zoom) zoomAt(zoom === "closer" ? seen.zoom * STEP : seen.zoom / STEP, .5, .5);
    return Boolean(move || zoom);
  };

  // ---- the difference: a picture and its numbers, worked out by the server once for each pair
  const found = new Map();
  const EDGE = 1024;
  const percent = share => {
    const value = share * 100;
    if (value > 0 && value < .01) return "<0.01";
    if (value < 100 && value > 99.9) return ">99.9";
    return String(Number(value.toFixed(value < 10 ? 2 : 1)));
  };
  const sentence = (box, numbers) => {
    const compared = numbers.compared.join("×");
    if (!numbers.largest) return fill(box.dataset.same, { compared });
    const said = fill(box.dataset.numbers, { changed: percent(numbers.changed), clear: percent(numbers.clear), largest: numbers.largest });
    const isWhole = [numbers.first, numbers.second].every(size => size.join("×") === compared);
    return isWhole ? said : `${said} ${fill(box.dataset.compared, { compared })}`;
  };
  const fetchDifference = async address => {
    const answer = await fetch(`${address}?edge=${EDGE}`);
    if (!answer.ok) throw new Error(String(answer.status));
    return { url: URL.createObjectURL(await answer.blob()), numbers: JSON.parse(answer.headers.get("Aivista-Difference")) };
  };
  const forget = () => {
    for (const [address, one] of found) {
      if (found.size <= KEPT) return;
      found.delete(address);
      one.then(({ url }) => URL.revokeObjectURL(url), () => {});
    }
  };
  const say = (box, text) => { const place = $(".cmp-said", box); if (place && place.textContent !== text) place.textContent = text; };
  const showDifference = async () => {
    const box = stage(), address = box.dataset.difference;
    if (!found.has(address)) { found.set(address, fetchDifference(address)); forget(); say(box, box.dataset.computing); }
    const isStill = () => stage()?.dataset.difference === address && mode() === "difference";
    try {
      const { url, numbers } = await found.get(address);
      if (!isStill()) return;
      const image = $(".cmp-diff", stage());
      if (image.getAttribute("src") !== url) image.src = url;
      image.hidden = false;
      say(stage(), sentence(stage(), numbers));
    } catch {
      found.delete(address);  // asked again the next time
      if (isStill()) { failed = address; say(stage(), stage().dataset.failed); }
    }
  };
  let failed = "";

  // ---- the way to compare
  const choose = name => {
    root.dataset.compare = name;
    failed = "";
    settle();
  };
  let pair = "";
  const settle = () => {
    const box = stage();
    if (!box) { pair = ""; return; }
    if (pair !== box.dataset.pair) {
      pair = box.dataset.pair;
      seen = { zoom: 1, x: 0, y: 0 };
      const image = $(".cmp-diff", box), range = $(".cmp-range", box);
      image.hidden = true;
      range.value = "50";
      failed = "";
      for (const select of box.querySelectorAll("[data-cmp-pick]")) select.value = pair.split(" ")[select.dataset.cmpPick === "first" ? 0 : 1];
    }
    for (const button of box.querySelectorAll("[data-cmp-mode]")) {
      const isChosen = button.dataset.cmpMode === mode();
      set(button, "aria-checked", String(isChosen));
      set(button, "tabindex", isChosen ? "0" : "-1");
    }
    const frame = $(".cmp-frame", box);
    if (mode() === "side") set(frame, "tabindex", "0"); else frame.removeAttribute("tabindex");
    divide();
    paintView();
    if (mode() !== "difference") say(box, "");
    else if (failed !== box.dataset.difference) showDifference();
  };

  const acts = {
    swap: () => { const [first, second] = picked(); ask(second, first); },
    in: () => zoomAt(seen.zoom * STEP, .5, .5),
    out: () => zoomAt(seen.zoom / STEP, .5, .5),
    fit: () => look(1, 0, 0),
  };
  addEventListener("click", event => {
    const button = event.target.closest?.("[data-cmp], [data-cmp-mode]");
    if (button?.dataset.cmpMode) choose(button.dataset.cmpMode);
    else if (button) acts[button.dataset.cmp]?.();
  });
  addEventListener("input", event => { if (event.target.matches?.(".cmp-range")) divide(); });
  addEventListener("change", event => { if (event.target.matches?.("[data-cmp-pick]")) ask(...picked()); });
  const turnMode = (event, button) => {
    const to = keys.walk(event, "compare.mode", MODES, MODES.indexOf(button.dataset.cmpMode));
    if (to < 0) return false;
    const next = MODES[to];
    choose(next);
    $(`[data-cmp-mode=${next}]`, stage()).focus();
    return true;
  };
  addEventListener("keydown", event => {
    const button = event.target.closest?.("[data-cmp-mode]");
    const isDone = button ? turnMode(event, button) : event.target.matches?.(".cmp-frame") && mode() === "side" && steer(event);
    if (isDone) event.preventDefault();
  });

  Object.assign(window.aivista.cards, {
    compare: (button, send) => { root.setAttribute("data-stage", ""); send(button); },
  });

  let waiting = false;
  const observe = () => new MutationObserver(() => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; settle(); });
  }).observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["data-pair", "data-difference"] });
  if (document.body) observe(); else addEventListener("DOMContentLoaded", observe);
})();
