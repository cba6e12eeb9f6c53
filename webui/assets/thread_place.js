// The thread's place. It follows what comes as long as one is at its end; whoever scrolls up stays where they are and is
// shown the way back. When the thread gets narrower or wider, what stood at its top stands there still.
(() => {
  const root = document.documentElement;
  const $ = selector => document.querySelector(selector);
  const NEAR_PX = 48, FAR_PX = 240, HELD_MS = 2000, HANDS = ["wheel", "touchstart", "pointerdown", "keydown"];
  const THINGS = ".md > *, .frame, .acts, .receipt, .card, .steps, .live";
  let box = null, isFollowing = true, anchor = null, width = 0, release = null, turns = 0, at = 0;

  const left = () => box.scrollHeight - box.scrollTop - box.clientHeight;
  const toEnd = () => { box.scrollTop = box.scrollHeight; at = box.scrollTop; };
  const show = () => root.toggleAttribute("data-behind", !isFollowing && left() > FAR_PX);

  // ---- where one is: at the end, or at the first thing that begins in sight
  const from = element => element.getBoundingClientRect().top - box.getBoundingClientRect().top;
  // By rows first: to ask where a thing in one of the far rows is would have it laid out, at every step of the wheel.
  const rowInSight = rows => {
    let [low, high] = [0, rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle].getBoundingClientRect().bottom < box.getBoundingClientRect().top) low = middle + 1; else high = middle;
    }
    return low;
  };
  const place = () => {
    const rows = [...box.querySelectorAll(".message-row")];
    for (const row of rows.slice(rowInSight(rows))) {
      const element = [...row.querySelectorAll(THINGS)].find(one => from(one) >= 0);
      if (element) return { element, from: from(element) };
    }
    return null;
  };
  const look = () => {
    // A change of the width moves what is read: that is put right in `fitted`, and is nobody's scrolling.
    if (box.clientWidth !== width) return;
    // Nor does one scroll up where the thread has only grown below: rows are laid out when they first come into sight.
    const isUp = box.scrollTop < at;
    at = box.scrollTop;
    isFollowing = left() < NEAR_PX || (isFollowing && !isUp);
    anchor = isFollowing ? null : place();
    show();
  };

  // ---- what has come, and what has become of the width
  const come = () => {
    const said = box.querySelectorAll(".user-row").length;
    // Whoever says something wants to see what comes of it.
    if (said > turns && !release) isFollowing = true;
    turns = said;
    if (isFollowing && !release) toEnd();
    show();
  };
  const fitted = () => {
    const isOther = box.clientWidth !== width;
    width = box.clientWidth;
    if (isFollowing && !release) toEnd();
    else if (isOther && anchor?.element.isConnected) box.scrollTop += from(anchor.element) - anchor.from;
    show();
  };
  const sizes = new ResizeObserver(fitted), comes = new MutationObserver(come);
  const take = found => {
    if (box) { sizes.disconnect(); comes.disconnect(); box.removeEventListener("scroll", look); }
    [box, isFollowing, anchor, width, turns, at] = [found, true, null, found.clientWidth, 0, 0];
    box.addEventListener("scroll", look, { passive: true });
    comes.observe(box, { childList: true, subtree: true, characterData: true });
    sizes.observe(box);
    const inside = box.querySelector(".message-wrap");
    if (inside) sizes.observe(inside);
    come();
  };
  const settle = () => {
    const found = $("#chat [role=log]");
    if (found && found !== box) take(found);
  };
  const observe = () => { settle(); new MutationObserver(settle).observe($("#chat") || document.body, { childList: true, subtree: true }); };
  if (document.body) observe(); else addEventListener("DOMContentLoaded", observe);

  // ---- the way back, and a conversation that is opened: its newest is what one comes for
  const opened = () => { isFollowing = true; anchor = null; turns = 0; };
  addEventListener("click", event => {
    if (["open", "new"].includes(event.target.closest?.("[data-act]")?.dataset.act)) opened();
    if (!box || !event.target.closest?.("[data-thread=newest]")) return;
    opened();
    box.scrollTo({ top: box.scrollHeight, behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    box.focus({ preventScroll: true });
    root.removeAttribute("data-behind");
  }, true);

  // ---- what is unfolded is seen, above the composer; a turn that is drawn unfolded moves nothing
  let unfolding = null;
  addEventListener("click", event => { unfolding = event.target.closest?.("summary")?.parentElement || null; }, true);
  addEventListener("toggle", event => {
    const details = event.target;
    if (details !== unfolding || !details.open) return;
    unfolding = null;
    if (box?.contains(details)) isFollowing = false;
    const room = details.closest("[role=log], .cv-scroll")?.clientHeight ?? innerHeight;
    details.scrollIntoView({ block: details.offsetHeight < room ? "nearest" : "start" });
  }, true);

  // ---- held still while the thread is drawn anew for something that was done elsewhere on the page; a hand goes before
  const hold = () => {
    release?.();
    if (!box) return;
    const held = box, at = box.scrollTop, back = () => { if (held.scrollTop !== at) held.scrollTop = at; };
    const letGo = () => {
      clearTimeout(ending);
      held.removeEventListener("scroll", back);
      for (const hand of HANDS) held.removeEventListener(hand, letGo);
      release = null;
    };
    const ending = setTimeout(letGo, HELD_MS);
    held.addEventListener("scroll", back);
    for (const hand of HANDS) held.addEventListener(hand, letGo, { passive: true });
    release = letGo;
  };
  window.aivistaThread = { hold };
})();
