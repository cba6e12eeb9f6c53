// Models that the key cannot use: their choice in the settings is greyed, says why, and takes neither a click nor Enter. Python
// says which they are, in the note beneath the chips; what Gradio draws is marked here, whenever a menu is opened.
(() => {
  const $ = selector => document.querySelector(selector);
  const CHIPS = { text_model: "#text-model", image_model: "#image-model" };
  const REST_MS = 1200;
  let read = { from: null, limits: {} };

  const limits = () => {
    const written = $("#models-note .limits")?.dataset.limits || "";
    if (read.from !== written) {
      read = { from: written, limits: {} };
      try { read.limits = JSON.parse(written || "{}"); } catch { /* nothing is greyed, the studio still says why it failed */ }
    }
    return read.limits;
  };
  // The tick of the chosen one stands in the same element as the name.
  const nameOf = option => option.querySelector("b")?.textContent || option.getAttribute("aria-label") || option.textContent.replace("✓", "").trim();
  let isMarked = false;
  const mark = () => {
    const now = limits();
    if (!isMarked && !Object.keys(now).length) return;
    isMarked = true;
    for (const [chip, place] of Object.entries(CHIPS)) {
      const reasons = now[chip] || {};
      for (const option of document.querySelectorAll(`${place} li[role=option], .models [data-setting=${chip}]`)) {
        const why = reasons[nameOf(option)];
        if (Boolean(why) === (option.getAttribute("aria-disabled") === "true")) continue;
        if (why) { option.setAttribute("aria-disabled", "true"); option.title = why; } else { option.removeAttribute("aria-disabled"); option.removeAttribute("title"); }
      }
    }
  };
  const isOff = option => option?.getAttribute("aria-disabled") === "true";
  const halt = event => { event.preventDefault(); event.stopImmediatePropagation(); };
  for (const kind of ["mousedown", "pointerdown", "click"]) {
    addEventListener(kind, event => { if (isOff(event.target.closest?.("#setup :is(li[role=option], .models button)"))) halt(event); }, true);
  }
  // Enter takes what is seen to be active: Gradio's own idea of it runs ahead of the page, and outlives a closed menu.
  addEventListener("keydown", event => {
    const chip = event.target.closest?.("#text-model, #image-model");
    if (!chip || !window.aivista.keys.is(event, "menu.choose") || !Object.keys(limits()).length) return;
    halt(event);
    const active = chip.querySelector("li[role=option].active");
    if (active && !isOff(active)) active.dispatchEvent(new MouseEvent("mousedown", { bubbles: true, cancelable: true }));
  }, true);
  new MutationObserver(mark).observe(document, { childList: true, subtree: true });

  // Once the page stands and rests, what its key is offered is asked for: the first look at the page need not wait for it.
  const rest = window.requestIdleCallback || (work => setTimeout(work, 0));
  const ask = () => {
    if (!$("#top h1")) { setTimeout(ask, REST_MS); return; }
    if ($("#models-note [data-ask]")) rest(() => window.aivista.shell.act("page.models"));
  };
  addEventListener("load", () => setTimeout(ask, REST_MS));
})();
