// The thread: what Python tells of it is put into the page, a turn at work is followed by its stream, and the place where
// one reads stays. It follows what comes as long as one is at its end; whoever scrolls up stays where they are and is
// shown the way back. When it gets narrower or wider, what stood at its top stands there still.
{
  const shell = aivista.shell;
  const NEAR_PX = 48, FAR_PX = 240, HELD_MS = 2000, HANDS = ["wheel", "touchstart", "pointerdown", "keydown"];
  const LOOK_MS = 1000, AGAIN_MS = 5000, AWAY_AFTER = 3;
  const THINGS = ".md > *, .frame, .acts, .receipt, .card, .steps, .live";
  let box = null, isFollowing = true, anchor = null, width = 0, release = null, turns = 0, last = "", height = 0, at = 0;

  // ---- what Python tells: the newest turns in their order; those before them stay for as long as they join on
  const articles = () => all("#thread > .turn");
  let shown = "", newest = 0;
  const take = told => {
    const isSame = shown === told.conversation, list = $("#thread");
    // What came to the conversation meanwhile was told before: it shows what was sent as well.
    if (isSame && told.at < newest) { if (told.is_answer) $("#turn-now[data-sending]")?.remove(); return; }
    newest = told.at;
    shown = told.conversation;
    list.dataset.version = told.version;
    if (!isSame) opened();
    const there = articles(), first = isSame && told.earlier ? there.findIndex(one => one.id === told.turns[0]) : 0;
    const before = there.slice(0, Math.max(first, 0)), isSent = one => isSame && !told.is_answer && "sending" in one.dataset;
    for (const one of there) if (!told.turns.includes(one.id) && !before.includes(one) && !isSent(one)) one.remove();
    if (!before.length) { $("#earlier")?.remove(); list.insertAdjacentHTML("afterbegin", told.earlier); }
    // The turn that is followed is ahead of what is told of it here.
    const isFollowed = one => isOpen(told.conversation) && one.id === told.followed && document.getElementById(one.id);
    shell.take({ patches: told.patches.filter(one => !isFollowed(one)) });
    if (before.length) shell.act("thread.earlier", { before: name(told.turns[0]), until: name(before[0].id) });
    if (!told.followed) leave(); else if (!isOpen(told.conversation)) follow(told.conversation);
  };
  const name = id => id.slice("turn-".length);

  // ---- a turn at work: its stream comes back by itself where it is cut
  let stream = null, followed = "";
  const isOpen = conversation => followed === conversation && stream?.readyState === EventSource.OPEN;
  const leave = () => { stream?.close(); [stream, followed] = [null, ""]; };
  const refresh = () => shell.act("page.refresh");
  const follow = conversation => {
    leave();
    const mine = stream = new EventSource(`aivista/thread/${encodeURIComponent(conversation)}`);
    followed = conversation;
    // What is refused is not asked again by the browser.
    mine.onerror = () => {
      if (stream !== mine || mine.readyState !== EventSource.CLOSED) return;
      leave();
      setTimeout(refresh, AGAIN_MS);
    };
    mine.onmessage = event => {
      if (stream !== mine) return;
      const reply = JSON.parse(event.data);
      // What was sent a moment ago stays until its own turn stands there.
      const isSending = one => one.id === "turn-now" && !one.html && $("#turn-now[data-sending]");
      shell.take({ ...reply, patches: reply.patches.filter(one => !isSending(one)) });
    };
  };
  const ended = turn => shell.act("page.ended", { turn, kept: aivista.sending.kept() });
  addEventListener("aivista-turn-ended", event => ended(event.detail));
  addEventListener("aivista-turn-over", event => { leave(); ended(event.detail); });
  addEventListener("pagehide", leave);

  // ---- what came to the open conversation without this page: a picture after Stop, a turn of another tab or program.
  // Python tells with the thread which version it shows; a small question a second tells whether there is a newer one, and
  // whether the studio is there at all.
  let asked = "", misses = 0;
  const versionShown = () => ({ of: conversation(), version: $("#thread")?.dataset.version });
  const isBusy = () => Boolean(stream || live());
  const answered = isThere => {
    const wasAway = misses >= AWAY_AFTER;
    misses = isThere ? 0 : misses + 1;
    if (misses === AWAY_AFTER) shell.say(aivista.words.say("away"), { isProblem: true, stays: true });
    if (isThere && wasAway) shell.say(aivista.words.say("back"));
  };
  const askVersion = async () => {
    const { of, version } = versionShown();
    if (!version || document.hidden || (isBusy() && !misses && stream?.readyState === EventSource.OPEN)) return;
    let found;
    try {
      const answer = await fetch(`aivista/version/${encodeURIComponent(of)}`);
      answered(true);
      if (!answer.ok) return;
      found = `${of} ${(await answer.json()).version}`;
    } catch { answered(false); return; }
    const now = versionShown();
    if (isBusy() || now.of !== of || now.version !== version) return;
    if (found === `${of} ${version}` || found === asked) return;
    asked = found;
    refresh();
  };
  const askOn = async () => { await askVersion(); setTimeout(askOn, LOOK_MS); };
  setTimeout(askOn, LOOK_MS);
  document.addEventListener("visibilitychange", askVersion);

  // ---- the turns before those that are there come when one scrolls up to them
  const sights = new IntersectionObserver(entries => {
    if (entries.some(one => one.isIntersecting)) addEarlier();
  }, { rootMargin: "600px 0px 0px 0px" });
  let isAsking = false;
  const addEarlier = async () => {
    const first = articles()[0];
    if (!first || isAsking) return;
    isAsking = true;
    const height = box.scrollHeight, top = box.scrollTop;
    await shell.act("thread.earlier", { before: name(first.id) });
    // What is read stays where it is.
    if (!isFollowing) box.scrollTop = top + box.scrollHeight - height;
    isAsking = false;
  };
  on("click", "[data-thread=earlier]", addEarlier);

  // ---- where one is in it
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
    const rows = articles();
    for (const row of rows.slice(rowInSight(rows))) {
      const element = all(THINGS, row).find(one => from(one) >= 0);
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
    const rows = articles(), earlier = $("#earlier"), isNew = rows.length > turns && rows.at(-1).id !== last;
    if (earlier) { sights.disconnect(); sights.observe(earlier); }
    // Whoever says something wants to see what comes of it.
    if (isNew && !release) isFollowing = true;
    [turns, last] = [rows.length, rows.at(-1)?.id];
    // What changes without growing moves nothing.
    const isOther = box.scrollHeight !== height;
    height = box.scrollHeight;
    if (isFollowing && !release && isOther) toEnd();
    show();
  };
  const fitted = () => {
    const isOther = box.clientWidth !== width;
    width = box.clientWidth;
    if (isFollowing && !release) toEnd();
    else if (isOther && anchor?.element.isConnected) box.scrollTop += from(anchor.element) - anchor.from;
    height = box.scrollHeight;
    show();
  };
  const sizes = new ResizeObserver(fitted), comes = new MutationObserver(come);
  const watch = found => {
    if (box) { sizes.disconnect(); comes.disconnect(); box.removeEventListener("scroll", look); }
    [box, isFollowing, anchor, width, turns, height, at] = [found, true, null, found.clientWidth, 0, 0, 0];
    box.addEventListener("scroll", look, { passive: true });
    comes.observe(box, { childList: true, subtree: true, characterData: true });
    sizes.observe(box);
    sizes.observe($("#thread"));
    come();
  };
  const settle = () => {
    const found = $("#log");
    if (!found || found === box) return;
    found.setAttribute("aria-label", aivista.words.say("thread"));
    watch(found);
    if (!newest) shown = conversation() === "new" ? "" : conversation();
    if (!newest && "live" in $("#thread").dataset) follow(shown);
  };
  settle();
  new MutationObserver(settle).observe($("#chat"), { childList: true, subtree: true });

  // ---- the way back, and a conversation that is opened: its newest is what one comes for
  const opened = () => { isFollowing = true; anchor = null; [turns, height] = [0, 0]; };
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
  addEventListener("aivista-thread", event => take(event.detail));
  aivista.thread = { hold };
}
