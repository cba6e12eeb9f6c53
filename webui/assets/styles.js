// The style library: its clicks, its search box and its form. studio.js opens and closes it like the other dialogs.
(() => {
  const root = document.documentElement;
  const $ = selector => document.querySelector(selector);
  const PAUSE_MS = 160, MOST_BYTES = 1048577;  // one more than the library takes, so that it says so itself
  let family = "", timer = 0, shownForm = null, atChip = false;

  const act = (name, more = {}) => window.aivistaStyles?.act({ act: name, ...more });
  const sought = () => ($("#sty-find")?.value || "").trim();
  const look = name => act(name, { query: sought(), family });
  const find = () => { clearTimeout(timer); timer = setTimeout(() => { timer = 0; look("find"); }, PAUSE_MS); };
  const choose = chosen => {
    family = chosen;
    for (const chip of document.querySelectorAll("#sty-list [data-style=family]")) chip.setAttribute("aria-pressed", String(chip.dataset.id === family));
  };
  const showMine = () => { const box = $("#sty-find"); if (box) box.value = ""; choose("mine"); look("find"); };
  const close = () => $("#sty-head [data-act=styles_close]")?.click();

  const acts = {
    family: button => { choose(button.dataset.id); clearTimeout(timer); look("find"); },
    try: button => { window.aivistaStyles?.paint({ act: "try", id: button.dataset.id }); close(); root.removeAttribute("data-stage"); },
  };
  addEventListener("click", event => {
    if (event.target.closest?.("[data-act=styles]")) { look("open"); return; }
    const button = event.target.closest?.("#styles [data-style]");
    if (button) atChip = button.dataset.style === "family";
    if (button) (acts[button.dataset.style] || (one => act(one.dataset.style, { id: one.dataset.id })))(button);
  });
  addEventListener("input", event => { if (event.target.id === "sty-find") find(); });
  addEventListener("submit", event => {
    if (event.target.id !== "sty-fields") return;
    event.preventDefault();
    act("save", { id: event.target.dataset.id, fields: Object.fromEntries(new FormData(event.target)) });
  }, true);
  addEventListener("change", async event => {
    if (event.target.id !== "sty-file" || !event.target.files.length) return;
    const text = await event.target.files[0].slice(0, MOST_BYTES).text();
    event.target.value = "";
    act("import", { text });
  });

  // ---- what follows from what Python rendered: focus, a file to save, an answer to words that were typed over
  const settle = () => {
    const file = $("#sty-note a.sty-save:not([data-saved])");
    if (file) { file.dataset.saved = ""; file.click(); }
    const form = $("#sty-fields");
    if (form !== shownForm) {
      if (form) form.querySelector("input")?.focus();
      else { if ($("#sty-note .ok")) showMine(); $("#sty-list .sty-cards")?.focus(); }
      shownForm = form;
    }
    const cards = $("#sty-list .sty-cards");
    if (root.hasAttribute("data-styles") && !form) {
      const chip = atChip && $("#sty-list [data-style=family][aria-pressed=true]");
      if ([$("#styles-box"), document.body].includes(document.activeElement)) (chip || $("#sty-find") || $("#styles-box")).focus();
      if (cards && !timer && cards.dataset.query !== sought()) find();
    }
  };
  const observe = () => {
    const library = $("#styles");
    if (!library) { setTimeout(observe, 200); return; }
    let waiting = false;
    new MutationObserver(() => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; settle(); });
    }).observe(library, { childList: true, subtree: true, attributes: true, attributeFilter: ["data-query", "data-id"] });
  };
  if (document.body) observe(); else addEventListener("DOMContentLoaded", observe);
})();
