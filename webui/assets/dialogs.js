// Dialogs over the page: focus goes in, the rest is inert, Escape closes, focus goes back. One is open at a time.
(() => {
  const root = document.documentElement, keys = window.aivista.keys;
  const $ = selector => document.querySelector(selector);
  // By the attribute of <html> that shows it: the box, its title, and what has the focus first.
  const DIALOGS = {
    settings: ["#settings-box", "set-title", "#s-key"],
    styles: ["#styles-box", "sty-title", "#sty-find"],
    prompts: ["#prompts-box", "prm-title", "#prm-find"],
    shortcuts: ["#shortcuts-box", "keys-title", "#keys [data-act=shortcuts_close]"],
  };
  // Where it comes from when it is opened; those that are not here stand in the page.
  const fillers = new Map();
  let back = null;

  const opened = () => Object.keys(DIALOGS).find(name => root.hasAttribute(`data-${name}`)) || "";
  const turn = (name, on) => {
    const [place, title, first] = DIALOGS[name], box = $(place), shell = $("#shell");
    if (!box || !shell || on === root.hasAttribute(`data-${name}`)) return;
    root.toggleAttribute(`data-${name}`, on);
    for (const [key, value] of [["role", "dialog"], ["aria-modal", "true"], ["aria-labelledby", title], ["tabindex", "-1"]]) box.setAttribute(key, value);
    shell.inert = on;
    if (on) { back = document.activeElement; ($(first) || box).focus(); } else (back?.isConnected && back !== document.body ? back : $("#box textarea"))?.focus?.();
  };
  const fills = (name, fill) => fillers.set(name, fill);
  const open = async name => {
    await fillers.get(name)?.();
    const other = opened();
    if (other && other !== name) turn(other, false);
    turn(name, true);
  };
  for (const name of ["prompts", "shortcuts"]) fills(name, () => $(DIALOGS[name][0]) || window.aivista.shell.act(`${name}.open`));
  const close = name => turn(name, false);

  keys.closes("dialog", () => { const name = opened(); if (name) close(name); return Boolean(name); });
  // Whoever marks words in a box and lets go beside it has not clicked there, though the browser says so.
  let pressed = null;
  addEventListener("pointerdown", event => { pressed = event.target; }, true);
  addEventListener("click", event => { if (event.target.id in DIALOGS && pressed === event.target) close(event.target.id); });
  window.aivista.dialogs = { open, close, opened, fills };
})();
