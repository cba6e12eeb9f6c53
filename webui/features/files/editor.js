// The editor of the files panel: Gradio's own, CodeMirror 6 inside. Each file keeps a state of its own in it (its text,
// cursor and undo history), so that undo never brings one file's words into another; no key goes to the server.
//
// How Gradio 6.31 lays it out, measured: the view hangs on the element `.cm-content` as `cmTile`; its state's
// `config.base` is all that makes the editor (keys, language, listeners), from which a state with another text is made.
// Gradio replaces that base when the language has changed, a moment later, since languages are fetched one by one.
(() => {
  const $ = (selector, from = document) => from.querySelector(selector);
  const WAIT_MS = 50;
  let heard = null, queued = false;

  const view = () => $("#fi-code .cm-content")?.cmTile?.root?.view || null;
  const tell = props => window.aivista.shell.set({ "fi-code": props });
  // ---- it comes when it is first needed: its code is larger than the rest of the page
  let coming = null;
  const ready = () => coming ||= new Promise(resolve => {
    // Gradio draws it among the inputs of the composer.
    const look = () => { if (view()) { $("#files").append($("#fi-code")); begin(); resolve(view()); } else setTimeout(look, WAIT_MS); };
    tell({ visible: true });
    look();
  });
  const begin = () => {
    const changed = () => { queued = false; heard?.(); };
    new MutationObserver(() => { if (!queued) { queued = true; requestAnimationFrame(changed); } })
      .observe(view().contentDOM, { childList: true, subtree: true, characterData: true });
    recolour();
    new MutationObserver(recolour).observe(document.head, { childList: true, subtree: true });
  };

  // ---- its colours: by what they stand for, so that they are ours in the light and in the dark, and can be read
  const ROLES = {
    key: ["#5e81ac", "#fda331", "#81a1c1"],
    string: ["#d08770", "#b5bd68", "#8abeb7"],
    number: ["#88c0d0", "#a54543"],
    type: ["#ebcb8b", "#6fb3d2", "#fc6d24"],
    sign: ["#a3be8c", "#cc99cc", "#8fbcbb", "#bf616a"],
    tag: ["#b48ead", "#6987af"],
    comment: ["#434c5e", "#808080"],
    text: ["#3b4252", "#dddddd", "#b9d2ff"],
    wrong: ["#d30102"],
  };
  const hex = colour => `#${(colour.match(/\d+/g) || []).slice(0, 3).map(part => Number(part).toString(16).padStart(2, "0")).join("")}`;
  const roleOf = Object.fromEntries(Object.entries(ROLES).flatMap(([role, colours]) => colours.map(colour => [colour, role])));
  const recolour = () => {
    for (const sheet of document.styleSheets) {
      if (sheet.href || !sheet.ownerNode?.textContent.includes("\u037c")) continue;
      for (const rule of sheet.cssRules) {
        // The colours of words alone: a class by itself, made of the sign that CodeMirror begins its names with.
        const role = /^\.\u037c\w+$/.test(rule.selectorText || "") && roleOf[hex(rule.style.color)];
        if (role) rule.style.color = `var(--code-${role})`;
      }
    }
  };

  // ---- texts
  const make = text => {
    const { state } = view();
    return state.constructor.create({ doc: text, extensions: state.config.base });
  };
  const show = (state, language, label) => {
    const box = view();
    box.setState(state);
    box.contentDOM.setAttribute("aria-label", label);
    box.contentDOM.setAttribute("aria-describedby", "fi-help");
    tell({ language: language || null });
    box.requestMeasure();
  };
  // Another text in the place of one, changed where they differ alone: the cursor stays, and undo brings the first back.
  const turned = (state, text) => {
    const before = state.doc.toString(), most = Math.min(before.length, text.length);
    let from = 0, end = 0;
    while (from < most && before[from] === text[from]) from++;
    while (end < most - from && before[before.length - 1 - end] === text[text.length - 1 - end]) end++;
    return state.update({ changes: { from, to: before.length - end, insert: text.slice(from, text.length - end) }, userEvent: "reload" });
  };
  const goTo = line => {
    const box = view(), { doc } = box.state, place = doc.line(Math.max(1, Math.min(line, doc.lines)));
    box.dispatch({ selection: { anchor: place.from, head: place.to }, scrollIntoView: true });
    box.focus();
  };

  window.aivista.editor = {
    ready, view, make, show, turned, goTo,
    listen: then => { heard = then; },
    focus: () => view()?.focus(),
  };
})();
