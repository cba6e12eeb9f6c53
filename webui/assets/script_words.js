// What scripts say, in the visitor's language, and what Gradio says by itself put into it (script_words.py).
(() => {
  const NAMED = ["aria-label", "title"], LABELLED = "[aria-label], [title]", NOTICES = ".toast-body";
  let source = null, tables = { script: {}, names: {}, parts: {} };
  const read = () => {
    const element = source?.isConnected ? source : document.querySelector("#words");
    if (!element || element === source) return false;
    source = element;
    tables = Object.fromEntries(Object.keys(tables).map(name => [name, JSON.parse(element.dataset[name])]));
    return true;
  };
  const say = (key, values = {}) => {
    read();
    return Object.entries(values).reduce((text, [name, value]) => text.replaceAll(`{${name}}`, () => value), tables.script[key] ?? "");
  };

  // ---- Gradio's own: names of its parts by the whole text, notices also by a part of it
  const ours = text => tables.names[text.trim()];
  const ourNotice = text => ours(text) ?? tables.parts[Object.keys(tables.parts).find(part => text.includes(part))];
  const name = element => {
    for (const attribute of NAMED) {
      const text = element.getAttribute(attribute), mine = text && ours(text);
      if (mine && mine !== text) element.setAttribute(attribute, mine);
      // The source of a message, in the place of the message itself.
      else if (text?.includes("'s message: ")) element.removeAttribute(attribute);
    }
  };
  const notice = element => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const { data } = walker.currentNode, mine = data.trim() && ourNotice(data);
      if (mine && mine !== data) walker.currentNode.data = mine;
    }
  };
  // Only what has come is looked at: a thread may be long, and an answer streams.
  const settle = from => {
    if (from.matches(LABELLED)) name(from);
    for (const element of from.querySelectorAll(LABELLED)) name(element);
    const around = from.closest(NOTICES);
    for (const element of around ? [around] : from.querySelectorAll(NOTICES)) notice(element);
  };
  const observe = () => {
    if (read()) settle(document.body);
    new MutationObserver(records => {
      if (read()) { settle(document.body); return; }
      if (!source) return;
      for (const { type, target, addedNodes } of records) {
        if (type === "attributes") name(target);
        else for (const node of addedNodes) if (node.nodeType === Node.ELEMENT_NODE && node.isConnected) settle(node);
      }
    }).observe(document.body, { childList: true, subtree: true, attributeFilter: ["aria-label"] });
  };
  if (document.body) observe(); else addEventListener("DOMContentLoaded", observe);

  window.aivista.words = { say };
})();
