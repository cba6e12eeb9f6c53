// Page behaviour that needs no round trip: theme, drawers, the title.
(() => {
  const root = document.documentElement, keys = window.aivista.keys, dialogs = window.aivista.dialogs;
  const $ = (selector, from = document) => from.querySelector(selector);
  const narrow = () => matchMedia("(max-width: 1180px)").matches;
  const phone = () => matchMedia("(max-width: 760px)").matches;

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
  addEventListener("aivista-theme", applyTheme);

  // Inside of another site's page a cookie comes back only when it is marked for that.
  const setCookie = (name, value) => {
    const site = window.top === window ? "samesite=lax" : "samesite=none; secure; partitioned";
    document.cookie = `${name}=${value}; path=${new URL(document.baseURI).pathname}; max-age=31536000; ${site}`;
    return document.cookie.includes(`${name}=${value}`);
  };
  const setLanguage = language => { setCookie("aivista_lang", language); location.reload(); };
  // A visitor is told by their cookie: where the browser keeps none, the first page says so.
  root.toggleAttribute("data-no-cookie", !setCookie("aivista_kept", "1"));

  const send = button => window.aivista.shell.act(`page.${button.dataset.act}`, { arg: button.dataset.arg || "" });
  const open = button => { root.removeAttribute("data-rail-open"); if (button.dataset.act === "new" || phone()) root.removeAttribute("data-stage"); window.aivista.opening(button.dataset.act === "new" ? "new" : button.dataset.arg); send(button); };
  const acts = {
    rail: () => root.toggleAttribute(narrow() ? "data-rail-open" : "data-rail-hidden"),
    stage: () => root.toggleAttribute("data-stage"),
    theme: nextTheme,
    language: button => setLanguage(button.dataset.arg),
    settings: () => { root.removeAttribute("data-rail-open"); dialogs.open("settings"); },
    sign_in: () => window.top === window ? location.assign("account/sign-in") : window.open("account/sign-in", "_blank", "noopener"),
    settings_close: () => dialogs.close("settings"),
    styles: () => dialogs.open("styles"),
    styles_close: () => dialogs.close("styles"),
    shortcuts: () => { root.removeAttribute("data-rail-open"); dialogs.open("shortcuts"); },
    shortcuts_close: () => dialogs.close("shortcuts"),
    say: button => window.aivista.aids.put(button.dataset.arg),
    view: button => { root.setAttribute("data-stage", ""); send(button); },
    edit: button => { toComposer(); send(button); },
    reference: button => { toComposer(); send(button); },
    new: button => { open(button); $("#box textarea")?.focus(); },
    open: button => open(button),
    edit_words: button => { send(button); $("#box textarea")?.focus(); },
    ...window.aivista.cards,
  };
  // Pictures of the open conversation were deleted or came back: the thread, the stage and the composer show them too.
  addEventListener("aivista-pictures", () => {
    const opened = [...document.querySelectorAll("#canvas .cv-pic[data-handle], #canvas .cmp[data-pair]")].map(one => one.dataset.handle || one.dataset.pair);
    window.aivista.thread?.hold();
    window.aivista.shell.act("page.changed", { arg: opened.join(" ") });
  });
  const toComposer = () => {
    if (phone()) root.removeAttribute("data-stage");
    $("#box textarea")?.focus();
  };

  addEventListener("click", event => {
    const button = event.target.closest?.("[data-act]");
    // What Python is asked for by two clicks is meant once.
    if (button && !acts[button.dataset.act] && event.detail > 1) return;
    if (button) { (acts[button.dataset.act] || send)(button, send); return; }
    if (root.hasAttribute("data-rail-open") && !event.target.closest?.("#rail")) root.removeAttribute("data-rail-open");
  });

  // ---- keys of the whole page; what Escape does is in keys.js
  keys.closes("drawer", () => {
    const isOpen = root.hasAttribute("data-rail-open");
    root.removeAttribute("data-rail-open");
    if (isOpen) [...document.querySelectorAll(".show-rail, #tabs .to-chats")].find(one => one.offsetParent)?.focus();
    return isOpen;
  });
  keys.closes("turn", () => { const stop = $("#chat .live") && $("#box .stop-button"); stop?.click(); return Boolean(stop); });
  // Whoever writes keeps the stage: the composer has nothing that is open but a turn.
  keys.closes("stage", event => {
    const isOpen = root.hasAttribute("data-stage") && !event.target.closest?.("#box");
    if (isOpen && event.target.closest?.("#stage")) toComposer();
    if (isOpen) root.removeAttribute("data-stage");
    return isOpen;
  });
  addEventListener("keydown", event => {
    const act = keys.is(event, "page.new") ? "new" : keys.is(event, "page.help") ? "shortcuts" : "";
    if (!act || dialogs.opened()) return;
    event.preventDefault();
    acts[act]({ dataset: { act } });
  });

  // ---- the seconds of a running turn go on between two updates
  const LATE = 1.5;
  let base = { element: null, from: 0, at: 0 };
  const tick = () => {
    const time = $(".live time");
    if (!time) { base = { element: null, from: 0, at: 0 }; return; }
    const from = Number(time.dataset.s);
    if (base.element === null || from > base.from + (performance.now() - base.at) / 1000) base = { element: time, from, at: performance.now() };
    const text = window.aivista.words.say("seconds", { count: Math.floor(base.from + (performance.now() - base.at) / 1000) });
    if (time.textContent !== text) time.textContent = text;
    const usual = $(".live [data-late]");
    if (usual && parseInt(text, 10) > usual.dataset.usual * LATE && usual.textContent !== usual.dataset.late) usual.textContent = usual.dataset.late;
  };
  setInterval(tick, 250);

  // ---- what follows from what Python rendered: the title, the language, names for screen readers
  const settle = () => {
    const title = $("#top h1");
    if (title) {
      const { language } = title.dataset;
      if (root.lang !== language) root.lang = language;
      const heading = window.aivista.told.heading(`${title.textContent} · Aivista`);
      if (document.title !== heading) document.title = heading;
      const area = $("#box textarea"), name = window.aivista.words.say("message");
      if (area && area.ariaLabel !== name) area.ariaLabel = name;
      // Gradio makes list items of them, in no list.
      for (const one of document.querySelectorAll("#box :is(.thumbnails:not([role]), [role=listitem])")) one.setAttribute("role", "group");
      for (const button of document.querySelectorAll("#box :is(.upload-button, .submit-button, .stop-button)")) if (button.title !== button.ariaLabel) button.title = button.ariaLabel;
    }
    applyTheme();
  };
  const SETTLE_MS = 16;
  let waiting = false;
  const observe = () => {
    applyTheme();
    new MutationObserver(() => {
      if (waiting) return;
      waiting = true;
      // Not with the next frame: a tab that nobody looks at draws none, and its title tells how the turn ended.
      setTimeout(() => { waiting = false; settle(); }, SETTLE_MS);
    }).observe(document.body, { childList: true, subtree: true });
  };
  if (document.body) observe(); else addEventListener("DOMContentLoaded", observe);
})();
