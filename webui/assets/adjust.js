// The sliders of a panel, shown at once on the picture they are for, in the thread and on the stage. Nothing is kept:
// the picture is as it was when all sliders stand where they stood, the panel is closed or applied, or "before" is held.
(() => {
  const REST_MS = 60, BUSY_MS = 300;
  let panel = null, timer = 0, asked = null, url = "", held = false;

  const amountsOf = sliders => [...sliders.querySelectorAll("input[type=range]")].map(input => [input.name, Number(input.value) - Number(input.defaultValue)]).filter(([, value]) => value);
  const isOpen = () => panel.isConnected && panel.open && panel.closest(".next-steps")?.open !== false;

  // ---- the pictures of a handle, wherever they are shown; `kept` holds the addresses of those that show a preview
  const kept = new Map();
  const mediaOf = sliders => sliders.dataset.preview.replace(/^aivista\/preview\//, "media/");
  const places = sliders => [...document.querySelectorAll("#chat :is(.frame, .mini) > img, #canvas .cv-pic > img")]
    .filter(image => addressOf(image).split("?")[0] === mediaOf(sliders));
  const isPreviewed = image => Boolean(image.getAttribute("src")?.startsWith("blob:"));
  const addressOf = image => (isPreviewed(image) ? kept.get(image) : image.getAttribute("src")) || "";
  const put = (image, address, label) => {
    // The sizes that the browser is offered would win over the address.
    const sizes = image.getAttribute("srcset"), isPreview = address.startsWith("blob:");
    if (isPreview && sizes) { image.dataset.sizes = sizes; image.removeAttribute("srcset"); }
    if (!isPreview && image.dataset.sizes) { image.setAttribute("srcset", image.dataset.sizes); delete image.dataset.sizes; }
    if (image.getAttribute("src") !== address) image.src = address;
    const frame = image.parentElement;
    if (label && frame) frame.dataset.previewing = label; else delete frame?.dataset.previewing;
  };
  const giveBack = () => {
    for (const image of kept.keys()) put(image, addressOf(image), "");
    kept.clear();
  };
  const paint = () => {
    if (!url || !panel) return;
    const shown = places(panel);
    for (const image of kept.keys()) {
      // Python has put another picture into it.
      if (!shown.includes(image)) { delete image.parentElement?.dataset.previewing; kept.delete(image); }
    }
    for (const image of shown) {
      kept.set(image, addressOf(image));
      put(image, held ? kept.get(image) : url, held ? "" : panel.dataset.label);
    }
  };

  // ---- asking for a preview: the newest counts
  const say = text => { const place = panel?.querySelector(".previewed"); if (place && place.textContent !== text) place.textContent = text; };
  const ready = address => { const image = new Image(); image.src = address; return image.decode(); };
  const show = address => {
    const old = url;
    url = address;
    paint();
    if (old) URL.revokeObjectURL(old);
  };
  const ask = async () => {
    asked?.abort();
    const own = asked = new AbortController(), from = panel;
    const query = new URLSearchParams(amountsOf(from));
    try {
      const answer = await fetch(`${from.dataset.preview}?${query}`, { signal: own.signal });
      if (answer.status === 429) { if (asked === own) { clearTimeout(timer); timer = setTimeout(ask, BUSY_MS); } return; }
      if (!answer.ok) throw new Error(String(answer.status));
      const made = URL.createObjectURL(await answer.blob());
      await ready(made);
      if (asked === own && panel === from) { show(made); say(from.dataset.shown); } else URL.revokeObjectURL(made);
    } catch (error) {
      if (error.name !== "AbortError" && asked === own) { restore(); say(from.dataset.failed); }
    }
  };
  const restore = () => {
    clearTimeout(timer);
    asked?.abort();
    asked = null;
    held = false;
    giveBack();
    if (url) URL.revokeObjectURL(url);
    url = "";
  };
  const end = () => { if (!panel) return; restore(); say(panel.dataset.idle); panel = null; };

  const enable = (sliders, on) => { for (const button of sliders.querySelectorAll("[data-adjust]")) button.disabled = !on; };
  const slide = sliders => {
    const isMoved = amountsOf(sliders).length > 0;
    enable(sliders, isMoved);
    if (panel !== sliders) { end(); panel = sliders; }
    if (!isMoved) { end(); return; }
    clearTimeout(timer);
    timer = setTimeout(ask, REST_MS);
  };
  const reset = sliders => {
    for (const input of sliders.querySelectorAll("input[type=range]")) {
      if (input.value === input.defaultValue) continue;
      input.value = input.defaultValue;
      input.dispatchEvent(new Event("input", { bubbles: true }));
    }
    sliders.querySelector("input[type=range]")?.focus();
  };
  const hold = on => { if (held !== on && (url || !on)) { held = on; paint(); } };

  addEventListener("input", event => {
    if (event.target.matches?.(".sliders[data-preview] input[type=range]")) slide(event.target.closest(".sliders"));
  });
  addEventListener("click", event => {
    if (event.target.closest?.("[data-adjust=reset]")) reset(event.target.closest(".sliders"));
    else if (event.target.closest?.("[data-act=panel_apply]")) end();
  });
  const atBefore = event => event.target.closest?.("[data-adjust=before]:enabled");
  addEventListener("pointerdown", event => {
    if (!atBefore(event) || event.button !== 0) return;
    atBefore(event).setPointerCapture(event.pointerId);
    hold(true);
  });
  for (const kind of ["pointerup", "pointercancel", "lostpointercapture", "blur"]) addEventListener(kind, () => hold(false));
  addEventListener("contextmenu", event => { if (event.target.closest?.("[data-adjust=before]")) event.preventDefault(); });
  const isKey = event => atBefore(event) && window.aivista.keys.lifts(event, "adjust.hold");
  addEventListener("keydown", event => { if (isKey(event)) { event.preventDefault(); hold(true); } });
  addEventListener("keyup", event => { if (isKey(event)) hold(false); });
  addEventListener("focusout", event => { if (event.target.closest?.("[data-adjust=before]")) hold(false); });
  // A panel that is closed puts its picture back; opened again, its sliders stand where they stood, and so does it.
  addEventListener("toggle", event => {
    const sliders = event.target.matches?.(".sliders") ? event.target : event.target.matches?.(".next-steps") ? event.target.querySelector(".sliders[open]") : null;
    if (panel && !isOpen()) end();
    else if (!panel && sliders?.open && event.target.open && amountsOf(sliders).length) slide(sliders);
  }, true);

  // What Python writes anew, the stage above all, shows the preview, too, while there is one.
  let waiting = false;
  const observe = () => new MutationObserver(() => {
    if (waiting || !panel) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      if (panel && !isOpen()) end(); else paint();
    });
  }).observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["src"] });
  if (document.body) observe(); else addEventListener("DOMContentLoaded", observe);
})();
