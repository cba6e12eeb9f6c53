// The settings of a message: what is fixed, said on the button that opens them; their panel; ratios drawn as shapes.
(() => {
  const root = document.documentElement;
  const $ = selector => document.querySelector(selector);
  const all = selector => [...document.querySelectorAll(selector)];
  const EDGE_PX = 20, LEAST_PX = 4;
  const AUTOMATIC = { text_model: "flash", image_model: "auto", aspect_ratio: "auto", resolution: "auto", number_of_images: "auto", review: "on", confirm: false, negative_prompt: "", reference_mode: "auto" };
  const values = {}, listeners = [];

  const drawShapes = () => {
    for (const label of all("#aspect-ratio label")) {
      const [, width, height] = /^(\d+):(\d+)$/.exec(label.querySelector("input")?.value || "") || [];
      const longer = Math.max(width, height) || 0;
      label.toggleAttribute("data-shape", longer > 0);
      for (const [name, side] of longer ? [["--w", width], ["--h", height]] : []) label.style.setProperty(name, `${Math.max(LEAST_PX, Math.round(EDGE_PX * side / longer))}px`);
    }
  };
  // "Pro · 16:9 · 2K · 2": only what is not left to the agent.
  const summary = () => {
    const place = $(".setup-open");
    if (!place) return;
    let said = {};
    try { said = JSON.parse(place.dataset.said || "{}"); } catch { /* the values themselves say enough */ }
    const parts = Object.entries(AUTOMATIC).flatMap(([name, automatic]) => {
      const value = values[name];
      if (value === undefined || value === null || value === automatic) return [];
      return [said[`${name}:${value}`] || said[name]?.replace("{}", value) || String(value)];
    });
    const chip = place.querySelector("[data-aid=setup]"), text = parts.join(" · ") || place.dataset.auto, label = chip.querySelector("span");
    if (label.textContent !== text) label.textContent = text;
    chip.title = parts.length ? text : "";
    place.toggleAttribute("data-fixed", parts.length > 0);
    place.querySelector("[data-aid=reset]").hidden = !parts.length;
    for (const one of all(".models [data-value]")) one.setAttribute("aria-pressed", String(values[one.dataset.setting] === one.dataset.value));
  };

  // Gradio calls this with every setting's name and value whenever one of them has changed.
  window.aivista.chips = pairs => {
    Object.assign(values, Object.fromEntries(pairs));
    summary();
    for (const listener of listeners) listener(values);
  };
  Object.assign(window.aivista.chips, { values, onChange: listener => listeners.push(listener) });

  // What lies over the right end of the box takes its place from the words.
  const measure = () => {
    const opts = $("#opts");
    if (opts) $("#composer").style.setProperty("--av-opts", `${Math.ceil(opts.getBoundingClientRect().width)}px`);
  };
  const watch = () => {
    const opts = $("#opts"), setup = $("#setup");
    if (!opts || !setup || !$("#summary") || !$("#aspect-ratio")) { setTimeout(watch, 100); return; }
    setup.setAttribute("popover", "auto");
    setup.setAttribute("role", "dialog");
    setup.tabIndex = -1;
    new ResizeObserver(measure).observe(opts);
    const look = () => {
      summary();
      const note = $("#tpl-needs-key");
      setup.querySelector(":scope > .needs-key")?.remove();
      if (note) setup.prepend(note.content.firstElementChild.cloneNode(true));
      setup.setAttribute("aria-label", $("[data-aid=setup]")?.getAttribute("aria-label") || "");
    };
    look();
    drawShapes();
    // Python draws the button and the models without what is chosen.
    addEventListener("aivista-patched", look);
    new MutationObserver(drawShapes).observe($("#aspect-ratio"), { childList: true, subtree: true, attributeFilter: ["value"] });
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
