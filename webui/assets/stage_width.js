// How wide the stage is, by its edge: drawn with a pointer, moved with keys, kept over reloads. Without a choice the
// styles decide, and they keep the conversation readable whatever was chosen. `aivistaStage` is what is kept of the stage.
(() => {
  const root = document.documentElement, keys = window.aivistaKeys;
  const $ = selector => document.querySelector(selector);
  const KEY = "aivista-stage", STEP_PX = 32, LEAST_PX = 340, CHAT_PX = 420;

  // ---- kept: its width, whether it is open, the tab
  const kept = () => { try { const all = JSON.parse(localStorage.getItem(KEY)); return typeof all === "object" && all ? all : {}; } catch { return {}; } };
  const keep = changes => { try { localStorage.setItem(KEY, JSON.stringify({ ...kept(), ...changes })); } catch { /* full or private: this page only */ } };
  window.aivistaStage = { kept, keep };

  // ---- its width, within what leaves room for the conversation
  const edge = () => $("#tabs .stage-edge");
  const room = () => {
    const shell = $("#shell"), rail = parseFloat(getComputedStyle(shell).getPropertyValue("--rail")) || 0;
    return { all: shell.clientWidth, most: Math.max(LEAST_PX, shell.clientWidth - rail - CHAT_PX) };
  };
  const now = () => $("#stage").getBoundingClientRect().width;
  const tell = () => {
    const bar = edge();
    if (!bar || !root.hasAttribute("data-stage")) return;
    const { all, most } = room(), share = px => String(Math.round((px / all) * 100));
    for (const [name, px] of [["now", now()], ["min", LEAST_PX], ["max", most]]) bar.setAttribute(`aria-value${name}`, share(px));
  };
  const set = px => { root.style.setProperty("--stage-width", `${Math.round(Math.min(room().most, Math.max(LEAST_PX, px)))}px`); tell(); };
  const settle = () => { keep({ width: parseFloat(root.style.getPropertyValue("--stage-width")) || null }); };
  const reset = () => { root.style.removeProperty("--stage-width"); tell(); settle(); };
  const { width } = kept();
  if (Number.isFinite(width) && width > 0) root.style.setProperty("--stage-width", `${width}px`);

  // ---- by hand
  let from = null;
  const end = () => {
    if (!from) return;
    from = null;
    root.removeAttribute("data-sizing");
    settle();
  };
  addEventListener("pointerdown", event => {
    const bar = event.target.closest?.(".stage-edge");
    if (!bar || event.button) return;
    event.preventDefault();
    bar.focus();
    bar.setPointerCapture(event.pointerId);
    from = { x: event.clientX, px: now() };
    root.setAttribute("data-sizing", "");
  });
  addEventListener("pointermove", event => { if (from) set(from.px + from.x - event.clientX); });
  addEventListener("pointerup", end);
  addEventListener("pointercancel", end);
  addEventListener("dblclick", event => { if (event.target.closest?.(".stage-edge")) reset(); });

  // ---- by keys
  addEventListener("keydown", event => {
    const part = event.target.closest?.(".stage-edge") ? keys.find(event, "stage.width") : "";
    if (!part) return;
    event.preventDefault();
    if (part === "usual") { reset(); return; }
    set({ wider: now() + STEP_PX, narrower: now() - STEP_PX, widest: room().most, narrowest: LEAST_PX }[part]);
    settle();
  });
  addEventListener("focusin", event => { if (event.target.closest?.(".stage-edge")) tell(); });
  addEventListener("resize", tell);
})();
