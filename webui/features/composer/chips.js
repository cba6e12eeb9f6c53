// The settings of a message: what is fixed, said on the button that opens them; their panel; ratios drawn as shapes.
{
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
    const chip = $("[data-aid=setup]", place), text = parts.join(" · ") || place.dataset.auto;
    setText($("span", chip), text);
    chip.title = parts.length ? text : "";
    place.toggleAttribute("data-fixed", parts.length > 0);
    place.querySelector("[data-aid=reset]").hidden = !parts.length;
    for (const one of all(".models [data-value]")) one.setAttribute("aria-pressed", String(values[one.dataset.setting] === one.dataset.value));
  };

  // Gradio calls this with every setting's name and value whenever one of them has changed.
  aivista.chips = pairs => {
    Object.assign(values, Object.fromEntries(pairs));
    summary();
    for (const listener of listeners) listener(values);
  };
  Object.assign(aivista.chips, { values, onChange: listener => listeners.push(listener) });

  // What lies over the right end of the box takes its place from the words.
  const measure = () => {
    const opts = $("#opts");
    if (opts) $("#composer").style.setProperty("--av-opts", `${Math.ceil(opts.getBoundingClientRect().width)}px`);
  };
  const watch = () => {
    const opts = $("#opts"), setup = $("#setup");
    // Gradio has not drawn them yet.
    if (!opts || !setup || !$("#summary")) { setTimeout(watch, 100); return; }
    setup.setAttribute("popover", "auto");
    setup.setAttribute("role", "dialog");
    setup.tabIndex = -1;
    new ResizeObserver(measure).observe(opts);
    const look = () => {
      summary();
      const note = $("#tpl-needs-key");
      setup.querySelector(":scope > .needs-key")?.remove();
      if (note) setup.prepend(cloned(note));
      setup.setAttribute("aria-label", $("[data-aid=setup]")?.getAttribute("aria-label") || "");
    };
    look();
    // Python draws the button and the models without what is chosen.
    addEventListener("aivista-patched", look);
    new MutationObserver(drawShapes).observe(setup, { childList: true, subtree: true, attributeFilter: ["value"] });
    rest(() => aivista.shell.set());
  };
  watch();

  // ---- where a phone's keyboard covers the page instead of making it smaller, the page makes room for it itself
  const view = window.visualViewport;
  const keyboard = () => {
    const hidden = view.scale > 1.01 ? 0 : Math.max(0, innerHeight - view.height - view.offsetTop);
    const isThere = hidden > 120;
    root.toggleAttribute("data-keyboard", isThere);
    if (isThere) root.style.setProperty("--av-keyboard", `${Math.round(hidden)}px`);
  };
  for (const name of ["resize", "scroll"]) view?.addEventListener(name, keyboard);
}

// Models that the key cannot use: their choice in the settings is greyed, says why, and takes neither a click nor Enter. Python
// says which they are, in the note beneath the chips; what Gradio draws is marked here, whenever a menu is opened.
{
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
      for (const option of all(`${place} li[role=option], .models [data-setting=${chip}]`)) {
        const why = reasons[nameOf(option)];
        if (Boolean(why) === (option.getAttribute("aria-disabled") === "true")) continue;
        if (why) { option.setAttribute("aria-disabled", "true"); option.title = why; } else { option.removeAttribute("aria-disabled"); option.removeAttribute("title"); }
      }
    }
  };
  const isOff = option => option?.getAttribute("aria-disabled") === "true";
  const halt = event => { event.preventDefault(); event.stopImmediatePropagation(); };
  on("mousedown pointerdown click", "#setup :is(li[role=option], .models button)", (option, event) => { if (isOff(option)) halt(event); }, true);
  // Enter takes what is seen to be active: Gradio's own idea of it runs ahead of the page, and outlives a closed menu.
  on("keydown", "#text-model, #image-model", (chip, event) => {
    if (!aivista.keys.is(event, "menu.choose") || !Object.keys(limits()).length) return;
    halt(event);
    const active = $("li[role=option].active", chip);
    if (active && !isOff(active)) active.dispatchEvent(new MouseEvent("mousedown", { bubbles: true, cancelable: true }));
  }, true);
  follow(mark);

  // Once the page stands and rests, what its key is offered is asked for: the first look at the page need not wait for it.
  addEventListener("load", () => setTimeout(() => { if ($("#models-note [data-ask]")) rest(() => aivista.shell.act("page.models")); }, REST_MS));
}

// The price before Send follows what stands beside the words as well. Python tells for what it told a price; when that is
// no longer so, and has not changed between two looks, it is asked for another one. Typing alone asks for none.
{
  const LOOK_MS = 350, STILL_MS = 120, STEP_CHARACTERS = 500;
  let seen = "", asked = null;

  // Words that may change the price are told: how many pictures, lettering that is looked at, a page to read.
  const HINT = /[\d"\u201c\u201d\u2018\u2019\u300c\u300d\u300e\u300f\u300a\u300b«»]|https?:|\b(two|three|four|both|couple|pair|twice|thrice|text|words?|wording|letter(s|ing)?|(head)?line|titles?|captions?|slogans?|labels?|signs?|write|says?|saying|reads?|fonts?|logos?|names?|posters?|banners?)\b|[\u4e8c\u4e09\u56db\u4e24\u4fe9\u4ee8\u5b57\u6807\u9898\u5e45\u8bed\u724c\u7b7e\u6b3e\u4e66\u5199\u5370\u523b\u7ee3\u6848]/i;
  const worded = () => {
    const text = $("#box textarea")?.value || "";
    return HINT.test(text) ? text.slice(0, 1000) : "";
  };
  const now = () => {
    const beside = {
      characters: Math.floor(($("#box textarea")?.value.length || 0) / STEP_CHARACTERS) * STEP_CHARACTERS,
      files: all("#box .thumbnail-item").length,
      marked: all("#ctx .ctx:not(.none)").length,
      masks: aivista.painter?.masks?.() || Number(Boolean($("#mask").value || $("#expand").value)),
    };
    const text = worded();
    if (text) beside.text = text;
    return Object.values(beside).some(Boolean) ? JSON.stringify(beside) : "";
  };
  let told = "";
  const ask = (beside = told) => {
    told = beside;
    aivista.shell.act("page.price", { beside }, { isNewest: true });
  };
  // The settings: once they have been still for a moment, their price is asked for.
  let timer = 0, settings = "";
  aivista.chips.onChange(values => {
    const now = JSON.stringify(values);
    if (now === settings) return;
    settings = now;
    clearTimeout(timer);
    timer = setTimeout(ask, STILL_MS);
  });
  setInterval(() => {
    const shown = $("#cost .price[data-beside]"), beside = now(), isStill = beside === seen;
    seen = beside;
    // One question for one price: an answer that never comes is not asked for again and again.
    if (!shown || !isStill || shown.dataset.beside === beside || (asked?.shown === shown && asked.beside === beside)) return;
    asked = { shown, beside };
    ask(beside);
  }, LOOK_MS);
}
