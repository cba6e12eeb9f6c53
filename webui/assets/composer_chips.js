// What the chips say, for the page's own scripts, and aspect ratios drawn beside their numbers: in the chip, and in its
// list, which Gradio makes anew whenever it is opened.
(() => {
  const root = document.documentElement;
  const $ = selector => document.querySelector(selector);
  const EDGE_PX = 14, LIST_EDGE_PX = 20, LEAST_PX = 4;
  const values = {}, listeners = [];

  const shape = (ratio, edge) => {
    const [, width, height] = /^(\d+):(\d+)$/.exec(ratio || "") || [];
    if (!(width > 0 && height > 0)) return null;
    const longer = Math.max(width, height);
    return [width, height].map(side => `${Math.max(LEAST_PX, Math.round(edge * side / longer))}px`);
  };
  const draw = (element, ratio, edge) => {
    const size = shape(ratio, edge);
    element.toggleAttribute("data-shape", Boolean(size));
    if (size) { element.style.setProperty("--w", size[0]); element.style.setProperty("--h", size[1]); }
  };
  const drawChip = () => { const chip = $("#aspect-ratio"); if (chip) draw(chip, values.aspect_ratio, EDGE_PX); };
  const drawList = () => {
    for (const option of document.querySelectorAll("#aspect-ratio [role=option]")) draw(option, option.getAttribute("aria-label"), LIST_EDGE_PX);
  };

  // What is fixed stays in sight, also where the rarer chips are folded away.
  const RARE = { avoid: "negative_prompt", "reference-mode": "reference_mode", "reference-count": "reference_count" };
  const markSet = () => {
    for (const [id, name] of Object.entries(RARE)) $(`#${id}`)?.toggleAttribute("data-set", !["", "auto", undefined, null].includes(values[name]));
  };

  // Gradio calls this with every chip's name and value whenever one of them has changed.
  window.aivistaChips = pairs => {
    Object.assign(values, Object.fromEntries(pairs));
    drawChip();
    markSet();
    for (const listener of listeners) listener(values);
  };
  Object.assign(window.aivistaChips, { values, onChange: listener => listeners.push(listener) });

  const watch = () => {
    const chip = $("#aspect-ratio");
    if (!chip) { setTimeout(watch, 200); return; }
    drawChip();
    new MutationObserver(drawList).observe(chip, { childList: true, subtree: true });
  };
  if (document.body) watch(); else addEventListener("DOMContentLoaded", watch);

  // ---- where a phone's keyboard covers the page instead of making it smaller, the page makes room for it itself
  const view = window.visualViewport;
  const keyboard = () => {
    const hidden = view.scale > 1.01 ? 0 : Math.max(0, innerHeight - view.height - view.offsetTop);
    const isThere = hidden > 120;
    root.toggleAttribute("data-keyboard", isThere);
    if (isThere) root.style.setProperty("--av-keyboard", `${Math.round(hidden)}px`);
  };
  for (const name of ["resize", "scroll"]) view?.addEventListener(name, keyboard);
})();
