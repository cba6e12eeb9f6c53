// What scripts say, in the visitor's language, and what Gradio says by itself put into it (shell/document.py).
{
  const NAMED = ["aria-label", "title"], LABELLED = "[aria-label], [title]", NOTICES = ".toast-body";
  const tables = Object.fromEntries(["script", "names", "parts"].map(name => [name, JSON.parse($("#words").dataset[name])]));
  const say = (key, values = {}) => filled(tables.script[key] ?? "", values);

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
    for (const element of all(LABELLED, from)) name(element);
    const around = from.closest(NOTICES);
    for (const element of around ? [around] : all(NOTICES, from)) notice(element);
  };
  new MutationObserver(records => {
    for (const { type, target, addedNodes } of records) {
      if (type === "attributes") name(target);
      else for (const node of addedNodes) if (node.nodeType === Node.ELEMENT_NODE && node.isConnected) settle(node);
    }
  }).observe(document.body, { childList: true, subtree: true, attributeFilter: ["aria-label"] });

  aivista.words = { say };
}

// The page is ready (`data-ready` on the root) once Gradio has drawn the box, and the conversation that was asked for is
// open. What is sent earlier would go into another one, and what is sent while files are on their way would go without
// them: a press of Send or of Enter is kept until then.
{
  const PATIENCE_MS = 10_000;
  const isShut = () => !root.hasAttribute("data-ready") || Boolean(aivista.uploads?.isBusy());
  let last = "", before = "", asked = "", isKept = false, timer = 0;

  const unlock = () => {
    clearTimeout(timer);
    asked = "";
    performance.mark("aivista-ready");
    root.setAttribute("data-ready", "");
  };
  const go = () => {
    if (!isKept || isShut()) return;
    isKept = false;
    $("#box .submit-button")?.click();
  };
  const look = () => {
    if (root.hasAttribute("data-ready")) return;
    last = stamp() || last;
    if (!$("#box textarea") || last === before || (asked && conversation() !== asked)) return;
    unlock();
    go();
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true, attributeFilter: ["data-opened"] });

  onSend(event => {
    if (!isShut()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    isKept = true;
    aivista.sending.show($("#box textarea")?.value || "");
  });
  const letGo = () => { if (isKept) aivista.sending.hide(); isKept = false; };

  // Another conversation is being opened: an answer that does not come must not keep the composer shut. What was to be sent
  // stays in the box then: where it would go is not known.
  aivista.opening = conversation => {
    aivista.drafts?.leave(conversation);
    before = stamp() || last;
    asked = conversation;
    letGo();
    root.removeAttribute("data-ready");
    clearTimeout(timer);
    timer = setTimeout(() => { letGo(); unlock(); aivista.drafts?.stay(); }, PATIENCE_MS);
  };
  addEventListener("aivista-uploaded", event => { if (event.detail.isWhole) go(); else letGo(); });
}

// A picture whose file cannot be shown: the studio is asked why, and its sentence stands in the picture's place. Where the
// studio cannot be reached nothing is said of the picture.
{
  const asked = new Map();  // by address: the studio's sentence, or nothing
  const reasonOf = address => {
    if (!asked.has(address)) asked.set(address, fetch(address).then(answer => (answer.ok ? "" : answer.text()), () => ""));
    return asked.get(address);
  };
  addEventListener("error", async event => {
    const image = event.target;
    if (image?.tagName !== "IMG" || !new URL(image.src, location.href).pathname.includes("/media/")) return;
    const reason = (await reasonOf(image.currentSrc || image.src)).slice(0, 300);
    if (!reason || image.naturalWidth) return;
    image.classList.add("lost");
    image.title = reason;
    image.parentElement?.setAttribute("data-lost", reason);
  }, true);
  addEventListener("load", event => {
    if (!event.target.classList?.contains("lost")) return;
    event.target.classList.remove("lost");
    event.target.removeAttribute("title");
    event.target.parentElement?.removeAttribute("data-lost");
  }, true);
}

// What the browser's tab says of a turn: that it is at work, and once nobody saw it end, how it did. Whoever turned the
// bell on is told by the system as well. Python writes how the newest turn of this tab ended next to the rail's stamp.
{
  const words = aivista.words;
  const KEY = "aivista-bell", NOTE_MS = 6000;
  const canTell = () => "Notification" in window;
  const isOn = () => canTell() && kept(KEY) === "on" && Notification.permission === "granted";
  const turn = isOn => { keep(KEY, isOn ? "on" : "off"); settle(); };
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
    if (live()) return words.say("title_working", { title }) || title;
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
    setAttribute(bell, "aria-checked", String(isOn()));
  };
  const ring = async () => {
    if (isOn()) { turn(false); note(words.say("bell_off")); return; }
    const answer = Notification.permission === "default" ? await Notification.requestPermission() : Notification.permission;
    turn(answer === "granted");
    note(answer === "granted" ? words.say("bell_on") : words.say("bell_blocked"));
  };
  on("click", "#bell", ring);

  aivista.told = { heading };
}
