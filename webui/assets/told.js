// What the browser's tab says of a turn: that it is at work, and once nobody saw it end, how it did. Whoever turned the
// bell on is told by the system as well. Python writes how the newest turn of this tab ended next to the rail's stamp.
(() => {
  const words = window.aivista.words;
  const $ = selector => document.querySelector(selector);
  const KEY = "aivista-bell", NOTE_MS = 6000;
  const canTell = () => "Notification" in window;
  const isOn = () => { try { return canTell() && localStorage.getItem(KEY) === "on" && Notification.permission === "granted"; } catch { return false; } };
  const turn = on => { try { localStorage.setItem(KEY, on ? "on" : "off"); } catch { /* private window: it stays off */ } settle(); };
  const isAway = () => document.hidden || !document.hasFocus();

  // ---- the title
  let unseen = "";
  const MARKS = {
    done: title => words.say("title_done", { title }),
    failed: title => words.say("title_failed", { title }),
    waiting: title => words.say("title_waiting", { title }),
  };
  const heading = title => {
    settle();
    if ($("#chat .live")) return words.say("title_working", { title }) || title;
    return MARKS[unseen]?.(title) || title;
  };
  const seen = () => {
    if (isAway() || !unseen) return;
    unseen = "";
    document.title = heading(`${$("#top h1").textContent} · Aivista`);
  };
  addEventListener("focus", seen);
  document.addEventListener("visibilitychange", seen);

  // ---- the end of a turn
  const SENTENCES = {
    done: () => words.say("told_done"),
    failed: () => words.say("told_failed"),
    waiting: () => words.say("told_waiting"),
  };
  const ended = how => {
    if (!isAway() || !(how in SENTENCES)) return;
    unseen = how;
    if (!isOn()) return;
    try {
      const told = new Notification($("#top h1").textContent, { body: SENTENCES[how](), tag: "aivista-turn" });
      told.onclick = () => { window.focus(); told.close(); };
    } catch { /* this browser tells through service workers alone: the title says it */ }
  };
  addEventListener("aivista-listed", event => ended(event.detail.ended));

  // ---- the bell
  let noting = 0;
  const note = text => {
    const place = $("#bell-note");
    if (!place) return;
    place.textContent = text;
    clearTimeout(noting);
    noting = setTimeout(() => { place.textContent = ""; }, NOTE_MS);
  };
  const settle = () => {
    const bell = $("#bell");
    if (!bell) return;
    bell.hidden = !canTell();
    const on = String(isOn());
    if (bell.getAttribute("aria-checked") !== on) bell.setAttribute("aria-checked", on);
  };
  const ring = async () => {
    if (isOn()) { turn(false); note(words.say("bell_off")); return; }
    const answer = Notification.permission === "default" ? await Notification.requestPermission() : Notification.permission;
    turn(answer === "granted");
    note(answer === "granted" ? words.say("bell_on") : words.say("bell_blocked"));
  };
  addEventListener("click", event => { if (event.target.closest?.("#bell")) ring(); });

  window.aivista.told = { heading };
})();
