// Page behaviour that needs no round trip: theme, drawers, the dialog, words into the composer, the address.
(() => {
  const root = document.documentElement;
  const $ = (selector, from = document) => from.querySelector(selector);
  const narrow = () => matchMedia("(max-width: 1180px)").matches;

  // ---- theme: as the system, until someone chooses
  const THEMES = ["system", "light", "dark"];
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const kept = () => { try { return localStorage.getItem("aivista-theme") || "system"; } catch { return "system"; } };
  const applyTheme = () => {
    const chosen = kept(), dark = chosen === "dark" || (chosen === "system" && systemDark.matches);
    if (document.body.classList.contains("dark") !== dark) document.body.classList.toggle("dark", dark);
    const button = $("[data-act=theme]"), label = button?.getAttribute("data-" + chosen);
    if (label && button.title !== label) { button.title = label; button.setAttribute("aria-label", label); }
  };
  const nextTheme = () => {
    const now = THEMES[(THEMES.indexOf(kept()) + 1) % THEMES.length];
    try { localStorage.setItem("aivista-theme", now); } catch { /* private window: this page only */ }
    applyTheme();
  };
  systemDark.addEventListener("change", applyTheme);

  // ---- dialogs: focus goes in, the rest is inert, Escape closes, focus goes back
  let back = null;
  const DIALOGS = { settings: ["#settings-box", "set-title", "#s-key input"], styles: ["#styles-box", "sty-title", "#sty-find"] };
  const dialog = (name, on) => {
    const [place, title, first] = DIALOGS[name], box = $(place), shell = $("#shell");
    if (!box || !shell || on === root.hasAttribute(`data-${name}`)) return;
    root.toggleAttribute(`data-${name}`, on);
    for (const [key, value] of [["role", "dialog"], ["aria-modal", "true"], ["aria-labelledby", title], ["tabindex", "-1"]]) box.setAttribute(key, value);
    shell.inert = on;
    if (on) { back = document.activeElement; ($(first) || box).focus(); } else (back?.isConnected ? back : $("#box textarea"))?.focus?.();
  };

  // ---- words into the composer, so that Svelte sees them
  const say = text => {
    const area = $("#box textarea");
    if (!area) return;
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(area, text);
    area.dispatchEvent(new Event("input", { bubbles: true }));
    area.focus();
  };

  const DRAFT = "aivista-draft";
  const setLanguage = language => {
    // Inside of another site's page a cookie comes back only when it is marked for that.
    const site = window.top === window ? "samesite=lax" : "samesite=none; secure; partitioned";
    document.cookie = `aivista_lang=${language}; path=/; max-age=31536000; ${site}`;
    try { sessionStorage.setItem(DRAFT, $("#box textarea")?.value || ""); } catch { /* the draft is lost, nothing else */ }
    location.reload();
  };
  const restoreDraft = () => {
    let draft = "";
    try { draft = sessionStorage.getItem(DRAFT) || ""; sessionStorage.removeItem(DRAFT); } catch { return; }
    if (draft) say(draft);
  };

  const send = button => window.aivista?.act({ act: button.dataset.act, arg: button.dataset.arg || "" });
  const acts = {
    rail: () => root.toggleAttribute(narrow() ? "data-rail-open" : "data-rail-hidden"),
    stage: () => root.toggleAttribute("data-stage"),
    theme: nextTheme,
    language: button => setLanguage(button.dataset.arg),
    settings: button => { root.removeAttribute("data-rail-open"); dialog("settings", true); send(button); },
    settings_close: () => dialog("settings", false),
    styles: () => dialog("styles", true),
    styles_close: () => dialog("styles", false),
    say: button => say(button.dataset.arg),
    view: button => { root.setAttribute("data-stage", ""); send(button); },
    edit: button => { toComposer(); send(button); },
    reference: button => { toComposer(); send(button); },
    new: button => { root.removeAttribute("data-rail-open"); root.removeAttribute("data-stage"); send(button); $("#box textarea")?.focus(); },
    open: button => { root.removeAttribute("data-rail-open"); root.removeAttribute("data-stage"); send(button); },
    edit_words: button => { send(button); $("#box textarea")?.focus(); },
    ...window.aivistaCards,
  };
  const toComposer = () => {
    if (matchMedia("(max-width: 760px)").matches) root.removeAttribute("data-stage");
    $("#box textarea")?.focus();
  };

  addEventListener("click", event => {
    const button = event.target.closest?.("[data-act]");
    if (button) { (acts[button.dataset.act] || send)(button, send); return; }
    if (event.target.id in DIALOGS) { dialog(event.target.id, false); return; }
    if (root.hasAttribute("data-rail-open") && !event.target.closest?.("#rail")) root.removeAttribute("data-rail-open");
  });
  addEventListener("keydown", event => {
    if (event.key !== "Escape") return;
    const open = Object.keys(DIALOGS).find(name => root.hasAttribute(`data-${name}`));
    if (open) dialog(open, false);
    else if (root.hasAttribute("data-rail-open")) root.removeAttribute("data-rail-open");
    else if (root.hasAttribute("data-stage") && !event.target.closest?.("#box")) root.removeAttribute("data-stage");
  });

  // ---- what a reference is for
  addEventListener("change", event => {
    const select = event.target.closest?.("#ctx select[data-role]");
    if (select) window.aivista?.act({ act: "role", arg: JSON.stringify({ handle: select.dataset.role, role: select.value || null }) });
  });

  // ---- the seconds of a running turn go on between two updates
  let base = { element: null, from: 0, at: 0 };
  const tick = () => {
    const time = $(".live time");
    if (!time) { base = { element: null, from: 0, at: 0 }; return; }
    const from = Number(time.dataset.s);
    if (base.element === null || from > base.from + (performance.now() - base.at) / 1000) base = { element: time, from, at: performance.now() };
    const text = `${Math.floor(base.from + (performance.now() - base.at) / 1000)} s`;
    if (time.textContent !== text) time.textContent = text;
  };
  setInterval(tick, 250);

  // ---- what follows from what Python rendered: the address, the title, the language, names for screen readers
  let shown = null;
  const NAMES = { "#box .upload-button": "attach", "#box .submit-button": "send", "#box .stop-button": "stop" };
  const WORDS = {
    en: { attach: "Add pictures", send: "Send", stop: "Stop" },
    "zh-CN": { attach: "添加图片", send: "发送", stop: "停止" },
  };
  const settle = () => {
    const title = $("#top h1");
    if (title) {
      const { conversation, language } = title.dataset;
      if (root.lang !== language) root.lang = language;
      if (shown !== conversation) {
        const address = new URL(location.href);
        address.searchParams.set("c", conversation);
        history.replaceState(null, "", address);
        if (shown === null) restoreDraft();
        shown = conversation;
      }
      const heading = `${title.textContent} · Aivista`;
      if (document.title !== heading) document.title = heading;
      for (const [selector, name] of Object.entries(NAMES)) {
        const button = $(selector), label = WORDS[language]?.[name];
        if (button && label && button.getAttribute("aria-label") !== label) { button.setAttribute("aria-label", label); button.title = label; }
      }
    }
    const log = $("#chat [role=log]");
    if (log && log.tabIndex !== 0) log.tabIndex = 0;
    applyTheme();
  };
  let waiting = false;
  const observe = () => {
    applyTheme();
    new MutationObserver(() => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; settle(); });
    }).observe(document.body, { childList: true, subtree: true });
  };
  if (document.body) observe(); else addEventListener("DOMContentLoaded", observe);
})();
