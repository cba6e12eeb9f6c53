// What is sent is seen at once, and is one turn however often it is pressed: it stands in the thread before Python has
// heard of it, and a press that was not taken yet has the same id as the one before.
(() => {
  const $ = selector => document.querySelector(selector);
  const LONGEST_MS = 60_000, FILES_MS = 5000, LOOK_MS = 200;
  const text = () => $("#box textarea")?.value || "";
  const files = () => [...document.querySelectorAll("#box .thumbnail-item img")].map(one => one.src).join(" ");
  let press = null;  // what was pressed last and is not taken yet
  let left = "";  // what was taken out of the box last
  let unwatch = () => {};

  const made = (tag, attributes, ...inside) => {
    const element = Object.assign(document.createElement(tag), attributes);
    element.append(...inside);
    return element;
  };
  const hide = () => { unwatch(); $("#turn-now[data-sending]")?.remove(); };
  const show = words => {
    hide();
    const list = $("#thread"), pictures = [...document.querySelectorAll("#box .thumbnail-item img")].map(one => made("img", { src: one.src, alt: "" }));
    if (!list || !(words.trim() || pictures.length)) return;
    const said = words.trim() ? [made("div", { className: "md" }, made("p", { className: "own", dir: "auto", textContent: words }))] : [];
    const files = pictures.length ? [made("div", { className: "sent-files" }, ...pictures)] : [];
    $("#turn-now")?.remove();
    const turn = made("article", { id: "turn-now", className: "turn" }, made("div", { id: "turn-now-said", className: "user" }, ...files, ...said), made("div", { id: "turn-now-told", className: "bot" }));
    Object.assign(turn.dataset, { sending: "", merge: "" });
    list.append(turn);
    // Nothing comes of a turn that fails before it stands there: its words come back into the box.
    left = "";
    const look = setInterval(() => { if (left === words && text() === words) hide(); }, LOOK_MS);
    const last = setTimeout(hide, LONGEST_MS);
    unwatch = () => { clearInterval(look); clearTimeout(last); };
  };
  const pressed = event => {
    const isSend = event.type === "click"
      ? event.target.closest?.("#box .submit-button")
      : event.target.matches?.("#box textarea") && window.aivistaKeys.is(event, "composer.send");
    if (!isSend || !(text().trim() || files())) return;
    if (window.aivistaPainter?.isUnset()) { event.preventDefault(); event.stopImmediatePropagation(); return; }
    const isSame = press && press.text === text() && press.files === files();
    const seen = [...document.querySelectorAll("#thread > .turn:not(#turn-now)")].at(-1)?.id.slice("turn-".length) || "";
    press = { id: isSame ? press.id : window.aivistaShell.newId(), text: text(), files: files(), seen, due: (isSame ? press.due : 0) + 1 };
    show(press.text);
  };
  addEventListener("keydown", pressed, true);
  addEventListener("click", pressed, true);
  addEventListener("aivista-refused", hide);

  // Gradio asks for the turn right after the press, with the box and all that is chosen: that request says which press it
  // is. What asks for the box alone wants to put something back into it.
  const isTurn = body => {
    try {
      const { data } = JSON.parse(body);
      return data.length > 2 && data.some(one => one && typeof one === "object" && "text" in one && "files" in one);
    } catch { return false; }
  };
  const marked = init => {
    if (!press?.due || !isTurn(init?.body)) return [init, () => {}];
    // Pressed twice, it may be asked for twice after that.
    const mine = press;
    mine.due -= 1;
    const headers = new Headers(init.headers);
    headers.set("x-aivista-request", mine.id);
    headers.set("x-aivista-tab", window.aivistaShell.tab);
    // Python holds words back that were said to a conversation which has gone on elsewhere.
    if (mine.seen) headers.set("x-aivista-seen", mine.seen);
    // Taken: what was sent leaves the box; words that were typed behind it meanwhile stay, and so does a file that came.
    const taken = () => {
      if (press?.id !== mine.id) return;
      press = null;
      if (text().startsWith(mine.text)) window.aivistaDrafts.put(text().slice(mine.text.length));
      left = mine.text;
      // Python takes the pictures out; where that got lost they would go with the next words as well.
      if (mine.files) setTimeout(() => { if (!text() && files() === mine.files) window.aivistaAttached.clear(); }, FILES_MS);
    };
    return [{ ...init, headers }, taken];
  };
  window.aivistaSending = { show, hide, marked };
})();
