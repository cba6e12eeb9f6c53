// What a screen reader says of a turn: what the agent is at, now and then, and at the end the answer, once. The thread
// itself is no live region, since an answer that streams into one is read out from its first word again and again.
(() => {
  const REST_MS = 4000, LONGEST = 600;
  const $ = (selector, from = document) => from.querySelector(selector);
  let line = null, sentence = "", said = "", saidAt = 0, isLive = false, conversation = "";

  const say = text => {
    line ??= document.body.appendChild(Object.assign(document.createElement("div"), { id: "announce", role: "status" }));
    line.textContent = text;
    [said, saidAt] = [text, performance.now()];
  };
  const answer = () => {
    const rows = [...document.querySelectorAll("#thread > .turn:last-child > .bot :is(.md, .pic img, .card h3, .ask)")];
    const heard = rows.filter(one => !one.closest("details, [role=alert]")).map(one => (one.alt ?? one.textContent).trim());
    const text = [...new Set(heard)].filter(Boolean).join(" ");
    return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  };
  const look = () => {
    const live = $("#chat .live span"), open = $("#top h1")?.dataset.conversation || "";
    // A conversation that is opened is read by whoever opens it.
    if (open !== conversation && !(isLive && live)) { conversation = open; isLive = Boolean(live); return; }
    if (isLive && !live) say(answer());
    isLive = Boolean(live);
    sentence = live?.textContent.trim() || "";
    if (sentence && sentence !== said && performance.now() - saidAt > REST_MS) say(sentence);
  };
  setInterval(look, 500);
})();
