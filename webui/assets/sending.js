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
    press = { id: isSame ? press.id : window.aivistaShell.newId(), text: text(), files: files(), seen };
    show(press.text);
  };
  addEventListener("keydown", pressed, true);
  addEventListener("click", pressed, true);

  // All that goes along with the words. Python takes what it was sent under one name once, and holds words back that were
  // said to a conversation which has gone on elsewhere.
  const composed = () => JSON.stringify({ ...window.aivistaShell.place(), mask: $("#mask").value, expand: $("#expand").value, request: press?.id || "", seen: press?.seen || "" });
  // Taken: what was sent leaves the box; words that were typed behind it meanwhile stay, and so does a file that came.
  const taken = mine => {
    if (press?.id !== mine.id) return;
    press = null;
    if (text().startsWith(mine.text)) window.aivistaDrafts.put(text().slice(mine.text.length));
    left = mine.text;
    // Python takes the pictures out; where that got lost they would go with the next words as well.
    if (mine.files) setTimeout(() => { if (!text() && files() === mine.files) window.aivistaAttached.clear(); }, FILES_MS);
  };
  // Gradio says to nobody that an event was not answered, or answered with a failure.
  const failed = told => {
    hide();
    const why = told.error || told.detail;
    window.aivistaShell.say(typeof why === "string" ? why : window.aivistaWords.say("cut"), { isProblem: true });
  };
  const plain = window.fetch;
  window.fetch = async (resource, init) => {
    if (!new URL(resource.url ?? resource, location.href).pathname.endsWith("/gradio_api/run/predict")) return plain(resource, init);
    const mine = press && String(init?.body).includes(press.id) ? press : null;
    try {
      const answer = await plain(resource, init);
      if (!answer.ok) failed(await answer.clone().json().catch(() => ({})));
      else if (mine) taken(mine);
      return answer;
    } catch (error) {
      failed({});
      throw error;
    }
  };
  window.aivistaSending = { show, hide, composed };
})();
