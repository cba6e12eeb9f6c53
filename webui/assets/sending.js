// What is sent is seen at once, and is one turn however often it is pressed: it stands in the thread before Python has
// heard of it, and a press that was not taken yet has the same id as the one before.
(() => {
  const $ = selector => document.querySelector(selector);
  const LONGEST_MS = 60_000, MOST_KEPT = 20, LOOK_MS = 200;
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
      : event.target.matches?.("#box textarea") && window.aivista.keys.is(event, "composer.send");
    if (!isSend || !(text().trim() || files())) return;
    if (window.aivista.painter?.isUnset()) { event.preventDefault(); event.stopImmediatePropagation(); return; }
    const isSame = press && press.text === text() && press.files === files();
    const seen = [...document.querySelectorAll("#thread > .turn:not(#turn-now)")].at(-1)?.id.slice("turn-".length) || "";
    press = { id: isSame ? press.id : window.aivista.shell.newId(), text: text(), files: files(), seen };
    show(press.text);
  };
  addEventListener("keydown", pressed, true);
  addEventListener("click", pressed, true);

  // All that goes along with the words. Python takes what it was sent under one name once, begins one new conversation for
  // all that is said in it, and holds words back that were said to a conversation which has gone on elsewhere.
  const page = window.aivista.shell.newId();
  const composed = () => JSON.stringify({
    ...window.aivista.shell.place(), mask: $("#mask").value, expand: $("#expand").value, request: press?.id || "", seen: press?.seen || "",
    begun: `${page} ${$("#top h1")?.dataset.opened || ""}`, price: $("#cost .price")?.dataset.told || "",
  });

  // ---- taken: what was sent leaves the composer, and is kept until its turn is over; words that were typed behind it
  // meanwhile stay, and so does a file that came
  let kept = [];
  const paint = fields => dispatchEvent(new CustomEvent("aivista-painted", { detail: fields }));
  const taken = (mine, [message, fields]) => {
    if (press?.id !== mine.id) return;
    press = null;
    const { mask, expand, editing, references } = JSON.parse(fields);
    kept = [...kept, { id: mine.id, message, mask, expand, editing, references }].slice(-MOST_KEPT);
    // The mask before its file: a file that goes by itself takes the mask along.
    if ((mask || expand) && $("#mask").value === mask && $("#expand").value === expand) paint({ mask: "", expand: "" });
    if (text().startsWith(mine.text)) window.aivista.drafts.put(text().slice(mine.text.length));
    left = mine.text;
    if (mine.files && files() === mine.files) window.aivista.shell.set({ box: { value: { text: text(), files: [] } } });
  };
  // ---- over: what was sent for nothing comes back, unless something else stands there by now
  const back = ({ message: { text: words, files: paths }, mask, expand }) => {
    const there = text(), isFree = (!there && !files()) || (there === words && document.querySelectorAll("#box .thumbnail-item").length === paths.length);
    const isUnpainted = ["", mask].includes($("#mask").value) && ["", expand].includes($("#expand").value);
    if (isUnpainted && (mask || expand)) paint({ mask, expand });
    if (isFree && (words || paths.length)) window.aivista.shell.set({ box: { value: { text: words, files: paths.map(one => ({ ...one, url: new URL(`gradio_api/file=${one.path}`, document.baseURI).href })) } } });
  };
  const over = (request, how) => {
    const mine = kept.find(one => one.id === request);
    if (!mine) return;
    kept = kept.filter(one => one !== mine);
    const place = window.aivista.shell.place(), isMarked = place.editing === mine.editing && place.references.join() === mine.references.join();
    if (how === "failed") back(mine);
    else if (how === "refused") back({ ...mine, mask: "", expand: "" });
    else if (how === "unused" && (mine.mask || mine.expand)) back({ ...mine, message: { text: "", files: [] } });
    else if (isMarked) window.aivista.shell.take({ patches: [{ id: "ctx", html: "" }] });
  };
  addEventListener("aivista-over", ({ detail }) => Object.entries(detail).forEach(one => over(...one)));

  // Gradio says to nobody that an event was not answered, or answered with a failure.
  const failed = told => {
    hide();
    const why = told.error || told.detail;
    window.aivista.shell.say(typeof why === "string" ? why : window.aivista.words.say("cut"), { isProblem: true });
  };
  const plain = window.fetch;
  window.fetch = async (resource, init) => {
    if (!new URL(resource.url ?? resource, location.href).pathname.endsWith("/gradio_api/run/predict")) return plain(resource, init);
    const mine = press && String(init?.body).includes(press.id) ? press : null;
    try {
      const answer = await plain(resource, init);
      if (!answer.ok) failed(await answer.clone().json().catch(() => ({})));
      else if (mine) taken(mine, JSON.parse(init.body).data);
      return answer;
    } catch (error) {
      failed({});
      throw error;
    }
  };
  window.aivista.sending = { show, hide, composed, kept: () => kept.map(one => one.id) };
})();
