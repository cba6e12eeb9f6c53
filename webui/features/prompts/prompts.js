// The prompt gallery: search, groups, one's own; a click puts the words into the box and marks what is to be changed.
(() => {
  const $ = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const SENT = "aivista-sent", STARRED = "aivista-starred", MINE = "mine";
  const MOST_RECENT = 20, MOST_STARRED = 60, LONGEST = 8000;

  // ---- one's own: what was sent lately, and what was starred, on this device alone
  const read = key => {
    try {
      const kept = JSON.parse(localStorage.getItem(key) || "[]");
      return Array.isArray(kept) ? kept.filter(one => typeof one === "string" && one.trim()) : [];
    } catch { return []; }
  };
  const write = (key, list) => { try { localStorage.setItem(key, JSON.stringify(list)); } catch { /* full or private: not kept */ } };
  const fillMine = () => {
    const section = $(`#prompts section[data-group=${MINE}]`);
    if (!section) return;
    const starred = read(STARRED), recent = read(SENT).reverse().filter(one => !starred.includes(one));
    const rows = [...starred, ...[...new Set(recent)].slice(0, MOST_RECENT)].map(text => {
      const row = $("template", section).content.firstElementChild.cloneNode(true), star = $("[data-aid=star_prompt]", row);
      $(".prm", row).dataset.text = text;
      $(".prm span", row).textContent = text;
      star.setAttribute("aria-pressed", String(starred.includes(text)));
      return row;
    });
    $(".prm-grid", section).replaceChildren(...rows);
    $(".prm-own-none", section).hidden = rows.length > 0;
  };
  const star = button => {
    const text = $(".prm", button.parentElement).dataset.text.slice(0, LONGEST), starred = read(STARRED);
    const isOn = starred.includes(text);
    write(STARRED, isOn ? starred.filter(one => one !== text) : [text, ...starred].slice(0, MOST_STARRED));
    button.setAttribute("aria-pressed", String(!isOn));
  };

  // ---- what is shown: a group, or in all of them what has every word
  let group = "";
  const sift = () => {
    const words = ($("#prm-find")?.value || "").toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const section of all("#prompts section[data-group]")) {
      const isMine = section.dataset.group === MINE;
      const isWanted = group ? section.dataset.group === group : !isMine || words.length > 0;
      let shown = 0;
      for (const card of all(".prm-grid > *", section)) {
        const text = card.textContent.toLowerCase();
        card.hidden = !isWanted || !words.every(word => text.includes(word));
        shown += !card.hidden;
      }
      section.hidden = !(isWanted && (shown || (isMine && group === MINE && !words.length)));
      found += section.hidden ? 0 : Math.max(shown, isMine ? 1 : 0);
    }
    const none = $("#prompts .prm-none");
    if (none) none.hidden = found > 0;
    for (const chip of all("#prompts [data-aid=prompt_group]")) chip.setAttribute("aria-pressed", String(chip.dataset.group === group));
  };
  // Half a word of an input method is none that could be found.
  addEventListener("input", event => { if (event.target.id === "prm-find" && !event.isComposing) sift(); });
  addEventListener("compositionend", event => { if (event.target.id === "prm-find") sift(); });

  const open = async () => { await window.aivista.dialogs.open("prompts"); fillMine(); sift(); $("#prompts .prm-cards")?.scrollTo(0, 0); };
  const close = () => window.aivista.dialogs?.close("prompts");
  const acts = {
    close_prompts: close,
    prompt_group: button => { group = button.dataset.group; sift(); $("#prompts .prm-cards")?.scrollTo(0, 0); },
    use_prompt: button => {
      close();
      const blank = button.dataset.blank?.split(",").map(Number);
      window.aivista.aids?.put(button.dataset.text, blank);
    },
    star_prompt: star,
  };
  addEventListener("click", event => {
    const button = event.target.closest?.("#prompts [data-aid]");
    if (button) acts[button.dataset.aid]?.(button);
  });
  window.aivista.prompts = { open };
})();
