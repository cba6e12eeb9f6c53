// Actions: the page asks Python by name and carries out the reply (webui/shell/actions.py). A reply changes HTML by the
// ids of its elements, says a sentence, and names what only a script can do: that comes as an event `aivista-<name>`.
{
  const TOAST_MS = 8000;

  // A browser offers `crypto.randomUUID` to pages of this machine and of HTTPS alone.
  const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, "0")).join("");
  // What the page shows is what the composer works on: the marked pictures, each reference with its field.
  const place = () => {
    const open = conversation(), fields = all("#ctx select[data-role]");
    return {
      conversation: open === "new" ? "" : open,
      editing: $("#ctx .ctx.none") ? "none" : $("#ctx .ctx[data-handle]")?.dataset.handle || "",
      references: fields.map(one => one.dataset.role),
      roles: Object.fromEntries(fields.filter(one => one.value).map(one => [one.dataset.role, one.value])),
      chips: aivista.chips?.values || {},
    };
  };

  // ---- an element takes the place of the one that is there: what is scrolled there and has the focus stays so
  const signOf = element => {
    if (element.id) return `#${CSS.escape(element.id)}`;
    const signs = [...element.attributes].filter(one => one.name.startsWith("data-"));
    return signs.length ? signs.map(one => `[${one.name}="${CSS.escape(one.value)}"]`).join("") : "";
  };
  // What says data-merge is not replaced: only what is other in it is, found by its id or its place. Pictures do not
  // flash, what is open stays open, what says data-keep stays as it is.
  const merge = (have, now) => {
    if (have.nodeType !== Node.ELEMENT_NODE) { if (have.data !== now.data) have.data = now.data; return; }
    if (have.isEqualNode(now) || have.hasAttribute("data-keep")) return;
    for (const name of have.getAttributeNames()) if (name !== "open" && !now.hasAttribute(name)) have.removeAttribute(name);
    for (const { name, value } of now.attributes) if (name !== "open" && have.getAttribute(name) !== value) {
      have.setAttribute(name, value);
      if (name === "value" && have.matches("input")) have.value = value;
    }
    const before = [...have.childNodes], named = new Map(before.filter(one => one.id).map(one => [one.id, one]));
    const kept = [...now.childNodes].map((one, at) => {
      const same = one.id ? named.get(one.id) : before[at];
      if (same?.nodeName !== one.nodeName || (same.id || "") !== (one.id || "")) return one;
      merge(same, one);
      return same;
    });
    // What stays is not moved for what goes: an element that is moved loses the focus.
    const staying = new Set(kept);
    for (const one of before) if (!staying.has(one)) one.remove();
    kept.forEach((one, at) => { if (have.childNodes[at] !== one) have.insertBefore(one, have.childNodes[at] ?? null); });
  };
  // Moments are said in the reader's own time zone.
  const sayMoments = from => {
    for (const one of all("[data-moment]", from)) one.textContent = new Date(one.dataset.moment).toLocaleString(document.documentElement.lang || undefined, { dateStyle: "medium", timeStyle: "short" });
  };
  // A box stays: only what is other in it is changed. In one of Gradio's two frames lie around that.
  const fill = (box, html) => {
    const frame = $(":scope > .html-container", box) || box, inside = frame === box ? box : $(":scope > .flat", frame) || frame.appendChild(made("div", { className: "flat" }));
    const now = inside.cloneNode(false);
    now.innerHTML = html;
    sayMoments(now);
    merge(inside, now);
  };
  const put = ({ id, html = null, parent = "", before: next = "" }) => {
    const before = document.getElementById(id);
    if (before?.classList.contains("flat")) { fill(before, html); return; }
    const place = parent ? document.getElementById(parent) : document.body;
    // What holds a part that changes is not what it was.
    (before || place)?.closest(`[data-is]:not([id="${CSS.escape(id)}"])`)?.removeAttribute("data-is");
    if (html === null) { before?.remove(); return; }
    const { content } = made("template", { innerHTML: html });
    sayMoments(content);
    const now = content.firstElementChild;
    if (!before) { place?.insertBefore(now, next ? document.getElementById(next) : null); return; }
    if (now.dataset.is && now.dataset.is === before.dataset.is) return;
    if (before.hasAttribute("data-merge")) { merge(before, now); return; }
    const focused = before.contains(document.activeElement) ? signOf(document.activeElement) : "";
    const scrolls = from => [from, ...all("[data-scroll]", from)].filter(one => one.matches("[data-scroll]"));
    const tops = scrolls(before).map(one => one.scrollTop);
    before.replaceWith(now);
    scrolls(now).forEach((one, at) => { one.scrollTop = tops[at] ?? 0; });
    if (focused) $(focused, now)?.focus({ preventScroll: true });
  };

  // ---- the sentence: a problem stays until something else is said, anything else for a while
  let waiting = 0;
  const hush = () => { clearTimeout(waiting); $("#toast")?.remove(); };
  const wait = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { if ($("#toast:is(:hover, :focus-within)")) wait(); else hush(); }, TOAST_MS);
  };
  const say = (text, { isProblem = false, stays = false } = {}) => {
    const line = made("div", { id: "toast", className: isProblem ? "toast bad" : "toast", role: isProblem ? "alert" : "status" }, made("span", {}, text));
    hush();
    document.body.append(line);
    if (!stays) wait();
  };

  // ---- a reply is carried out
  // The composer's fields come first: what the patches say of the page, such as which conversation is open, holds for
  // them then. A mask goes before its file does: a file that goes by itself takes the mask along. While Gradio changes its
  // fields, another reply may open another conversation.
  const take = async (reply, isLate = () => false) => {
    const { patches = [], events: { inputs: changed, painted, ...events } = {} } = reply;
    if (painted) dispatchEvent(new CustomEvent("aivista-painted", { detail: painted }));
    if (changed) await set(changed);
    if (isLate()) return {};
    for (const patch of patches) put(patch);
    if (patches.some(patch => patch.id === "toast") && !$("#toast.bad")) wait();
    if (patches.length) dispatchEvent(new CustomEvent("aivista-patched"));
    for (const [event, detail] of Object.entries(events)) dispatchEvent(new CustomEvent(`aivista-${event}`, { detail }));
    return reply;
  };

  // ---- `isNewest` drops the reply when the same action was asked for again meanwhile; of the conversations that are to be
  // opened, the newest is. What was asked about one that is not the open one any more would be shown in the other one.
  const OPENING = ["page.new", "page.open", "gallery.open", "gallery.compare", "gallery.reference"];
  const newest = {};
  const act = async (name, args = {}, { isNewest = false } = {}) => {
    const isOpening = OPENING.includes(name), asked = isOpening ? "opening" : name;
    const mine = newest[asked] = {}, here = place();
    let reply;
    try {
      const answer = await fetch(`aivista/act/${name}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ args, place: here }) });
      reply = await answer.json();
    } catch {
      say(aivista.words.say("cut"), { isProblem: true });
      return {};
    }
    const isLeft = () => name.startsWith("page.") && !isOpening && place().conversation !== here.conversation;
    const isLate = () => isLeft() || ((isNewest || isOpening) && newest[asked] !== mine);
    if (isLate()) return {};
    if (reply.error) { say(reply.error, { isProblem: true }); return {}; }
    return take(reply, isLate);
  };
  // ---- Gradio's inputs are changed by Gradio: its event asks for what is other about them, and says when it is done
  const SET_MS = 2000;
  let others = {}, settled = [];
  // What the panel holds comes the first time that anything is changed.
  const set = (told = {}) => new Promise(done => {
    const { later = "{}" } = $("#composer").dataset;
    delete $("#composer").dataset.later;
    for (const [name, other] of [JSON.parse(later), told].flatMap(Object.entries)) others[name] = { ...others[name], ...other };
    settled.push(done);
    setTimeout(done, SET_MS);
    dispatchEvent(new CustomEvent("aivista-set-inputs"));
  });
  const inputs = names => {
    const now = others;
    others = {};
    return names.map(name => now[name] && { __type__: "update", ...now[name] });
  };
  const areSet = () => { for (const done of settled.splice(0)) done(); };
  // What nobody sees at first waits in a template.
  const unfold = box => { const folded = $(":scope > template", box); folded?.replaceWith(folded.content); };
  const remove = id => { document.getElementById(id)?.remove(); dispatchEvent(new CustomEvent("aivista-patched")); };

  on("click", "[data-toast]", button => {
    const { toast, action, args } = button.dataset;
    hush();
    if (toast === "undo") act(action, JSON.parse(args));
  });
  addEventListener("aivista-save", event => {
    const { name, text } = event.detail, address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    download(address, name);
    setTimeout(() => URL.revokeObjectURL(address), TOAST_MS);
  });
  aivista.shell = { act, say, hush, take, remove, unfold, set, inputs, areSet, newId, place };
}

// Dialogs over the page: focus goes in, the rest is inert, Escape closes, focus goes back. One is open at a time.
{
  const keys = aivista.keys;
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
  for (const name of ["prompts", "shortcuts"]) fills(name, () => $(DIALOGS[name][0]) || aivista.shell.act(`${name}.open`));
  const close = name => turn(name, false);

  keys.closes("dialog", () => { const name = opened(); if (name) close(name); return Boolean(name); });
  // Whoever marks words in a box and lets go beside it has not clicked there, though the browser says so.
  let pressed = null;
  addEventListener("pointerdown", event => { pressed = event.target; }, true);
  addEventListener("click", event => { if (event.target.id in DIALOGS && pressed === event.target) close(event.target.id); });
  aivista.dialogs = { open, close, opened, fills };
}

// Menus, of what can be done with one thing: beside what opened them, on a phone a sheet from below. They are walked by
// keys; whoever leaves one is where they were.
{
  const keys = aivista.keys;
  let opener = null, back = null;
  const items = menu => all("[role=menuitem]:not([hidden])", menu);
  const open = (menu, by, row = by) => {
    [opener, back] = [by, row];
    menu.style.cssText = "";
    menu.showPopover({ source: by });
    by.setAttribute("aria-expanded", "true");
    if (!isPhone()) {
      const at = by.getBoundingClientRect(), { width, height } = menu.getBoundingClientRect(), isBelow = at.bottom + height + 12 <= innerHeight;
      const left = at.left + width > innerWidth - 8 ? at.right - width : at.left;
      menu.style.cssText = `top: ${isBelow ? at.bottom + 4 : Math.max(8, at.top - 4 - height)}px; left: ${Math.max(8, left)}px`;
    }
    items(menu)[0]?.focus();
  };
  const close = () => { $(".menu:popover-open")?.hidePopover(); back?.focus({ preventScroll: true }); };
  addEventListener("toggle", event => { if (event.target.matches?.(".menu") && event.newState === "closed") opener?.setAttribute("aria-expanded", "false"); }, true);
  on("keydown", ".menu", (menu, event) => {
    const list = items(menu), to = keys.walk(event, "menu.walk", list, list.indexOf(document.activeElement));
    if (to >= 0) list[to].focus(); else if (keys.is(event, "menu.leave")) close(); else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
  aivista.menus = { open, close };
}

// The rail as a drawer over the page: what lies behind it is inert while it is open, and the focus goes in.
{
  const settle = () => {
    const isOpen = root.hasAttribute("data-rail-open") && isNarrow(), behind = [$("#center"), $("#stage")];
    if (behind.every(one => one.inert === isOpen)) return;
    for (const one of behind) one.inert = isOpen;
    // Once it is seen, unless something in it has the focus by then.
    if (isOpen) requestAnimationFrame(() => { if (!document.activeElement.closest("#rail")) $("#rail [data-act=rail]")?.focus(); });
  };
  new MutationObserver(settle).observe(root, { attributeFilter: ["data-rail-open"] });
  addEventListener("resize", settle);
}

// What a screen reader says of a turn: what the agent is at, now and then, and at the end the answer, once. The thread
// itself is no live region, since an answer that streams into one is read out from its first word again and again.
{
  const REST_MS = 4000, LONGEST = 600;
  let line = null, sentence = "", said = "", saidAt = 0, isLive = false, heard = "";

  const say = text => {
    line ??= document.body.appendChild(made("div", { id: "announce", role: "status" }));
    line.textContent = text;
    [said, saidAt] = [text, performance.now()];
  };
  const answer = () => {
    const rows = all("#thread > .turn:last-child > .bot :is(.md, .pic img, .card h3, .ask)");
    const parts = rows.filter(one => !one.closest("details, [role=alert]")).map(one => (one.alt ?? one.textContent).trim());
    const text = [...new Set(parts)].filter(Boolean).join(" ");
    return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  };
  const look = () => {
    const told = $("span", live()), open = conversation();
    // A conversation that is opened is read by whoever opens it.
    if (open !== heard && !(isLive && told)) { heard = open; isLive = Boolean(told); return; }
    if (isLive && !told) say(answer());
    isLive = Boolean(told);
    sentence = told?.textContent.trim() || "";
    if (sentence && sentence !== said && performance.now() - saidAt > REST_MS) say(sentence);
  };
  setInterval(look, 500);
}
