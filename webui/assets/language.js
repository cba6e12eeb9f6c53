// Gradio takes the language of its own words from the browser, before the page is drawn. Ours follows what the visitor
// chose, else what the operator fixed, else the browser (words.py): Gradio is told the same, and so are screen readers.
(() => {
  const chosen = document.cookie.match(/(?:^|; )aivista_lang=(en|zh-CN)(?:;|$)/)?.[1];
  const fixed = document.querySelector("meta[name=aivista-language]")?.content;
  const asked = [...(navigator.languages || [])].map(tag => (/^zh/i.test(tag) ? "zh-CN" : /^en/i.test(tag) ? "en" : "")).find(Boolean);
  const language = chosen || fixed || asked || "en";
  document.documentElement.lang = language;
  Object.defineProperty(navigator, "language", { configurable: true, get: () => language });
})();
