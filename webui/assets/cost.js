// The price before Send follows what stands beside the words as well. Python tells for what it told a price; when that is
// no longer so, and has not changed between two looks, it is asked for another one. Typing alone asks for none.
(() => {
  const $ = selector => document.querySelector(selector);
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
      files: document.querySelectorAll("#box .thumbnail-item").length,
      marked: document.querySelectorAll("#ctx .ctx:not(.none)").length,
      masks: window.aivista.painter?.masks?.() || Number(Boolean($("#mask").value || $("#expand").value)),
    };
    const text = worded();
    if (text) beside.text = text;
    return Object.values(beside).some(Boolean) ? JSON.stringify(beside) : "";
  };
  let told = "";
  const ask = (beside = told) => {
    told = beside;
    window.aivista.shell.act("page.price", { beside }, { isNewest: true });
  };
  // The settings: once they have been still for a moment, their price is asked for.
  let timer = 0, settings = "";
  window.aivista.chips.onChange(values => {
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
})();
