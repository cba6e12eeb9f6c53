// What the cards of the thread do by themselves: the fields of a plan, the sliders of a panel, reports, a countdown.
// `aivista.cards` holds the actions of buttons; studio.js calls them with the button and a function that sends it to
// Python.
{
  const sendOnce = (button, send, arg = button.dataset.arg) => once(button, () => send({ dataset: { act: button.dataset.act, arg } }));

  // ---- a plan: its fields are read when it is run; choosing a model leaves only the values that it accepts
  const editOf = request => {
    const { number_of_images, ...values } = Object.fromEntries(all("[name]", request).map(field => [field.name, field.value]));
    return { call: Number(request.dataset.call), ...values, ...(number_of_images && { number_of_images: Number(number_of_images) }) };
  };
  const runPlan = (button, send) => {
    const card = button.closest(".plan"), fields = all("textarea", card);
    for (const field of fields) if (!field.value.trim()) field.value = "";
    if (!fields.every(field => field.reportValidity())) return;
    sendOnce(button, send, JSON.stringify({ turn: button.dataset.arg, edits: all("[data-call]", card).map(editOf) }));
  };
  const narrowPlan = request => {
    const model = $("[name=model]", request)?.value;
    if (!model) return;
    const models = model === "both" ? ["flash", "pro"] : [model];
    for (const select of all("select", request)) {
      for (const option of select.options) option.disabled = option.hidden = Boolean(option.dataset.for) && !models.every(one => option.dataset.for.split(" ").includes(one));
      const chosen = select.selectedOptions[0];
      if (chosen?.disabled) select.value = [...select.options].find(option => !option.disabled)?.value ?? "";
    }
  };
  const isChanged = field => [...(field.options || [])].some(option => option.selected !== option.defaultSelected);
  const settlePlan = card => {
    for (const request of all("[data-call]", card)) narrowPlan(request);
    const planned = $(".planned", card);
    if (planned) planned.hidden = !all("select", card).some(isChanged);
  };

  // ---- a panel: the values of its sliders
  const sliders = panel => all("input[type=range]", panel);
  on("input", ".sliders input[type=range]", input => {
    const value = Number(input.value), panel = input.closest(".sliders"), apply = $("[data-act=panel_apply]", panel);
    setText(input.nextElementSibling, value > 0 ? `+${value}` : value < 0 ? `−${-value}` : "0");
    apply.disabled = sliders(panel).every(one => one.value === one.defaultValue);
  });
  const applyPanel = (button, send) => {
    const amounts = sliders(button.closest(".sliders")).map(input => [input.name, Number(input.value) - Number(input.defaultValue)]);
    sendOnce(button, send, JSON.stringify({ handle: button.dataset.arg, ...Object.fromEntries(amounts) }));
  };

  // ---- a report: copied as text
  const copyText = async text => {
    if (navigator.clipboard?.writeText) {
      try { await navigator.clipboard.writeText(text); return true; } catch { /* not allowed here: the old way */ }
    }
    const area = createElement("textarea", { value: text, readOnly: true });
    area.style.cssText = "position:fixed;opacity:0";
    const back = document.activeElement;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    back?.focus?.();
    return done;
  };
  const copyReport = async button => {
    const label = button.querySelector("span"), name = label.textContent;
    if (button.disabled) return;
    button.disabled = true;
    let done = false;
    try {
      const answer = await fetch(button.dataset.arg);
      done = answer.ok && await copyText(await answer.text());
    } catch { /* no connection: said below */ }
    label.textContent = done ? button.dataset.done : button.dataset.failed;
    setTimeout(() => { label.textContent = name; button.disabled = false; }, 2000);
  };

  // ---- the seconds until the next try count down between two updates
  let countdown = { key: "", until: 0 };
  setInterval(() => {
    const number = $(".down", liveLine());
    if (!number) return;
    const key = `${number.dataset.at} ${number.dataset.down}`;
    if (countdown.key !== key) countdown = { key, until: performance.now() + Number(number.dataset.down) * 1000 };
    setText(number, String(Math.max(0, Math.ceil((countdown.until - performance.now()) / 1000))));
  }, 250);

  // Values of other models are hidden before they are first seen.
  on("change focusin", ".plan", settlePlan);

  // ---- a picture's menu: light and colour are changed in the panel beneath it, which is folded until then
  const panelOf = handle => all("#chat .next-steps").filter(one => one.dataset.handle === handle).pop();
  const adjust = button => {
    const panel = panelOf(button.dataset.arg);
    if (!panel) return;
    if (isPhone()) root.removeAttribute("data-stage");
    const folded = $("details.sliders", panel), summary = $("summary", panel);
    if (folded) folded.open = true;
    // On a click, the thread keeps what is unfolded in view.
    if (!panel.open) summary.click();
    summary.focus({ preventScroll: true });
  };
  addEventListener("toggle", event => {
    if (!event.target.matches?.("details.more[open]")) return;
    for (const item of all("[data-act=adjust]", event.target)) item.hidden = !panelOf(item.dataset.arg);
  }, true);

  aivista.cards = {
    adjust,
    run_plan: runPlan,
    drop_plan: sendOnce,
    allow_calls: sendOnce,
    refuse_calls: sendOnce,
    retry: sendOnce,
    panel: sendOnce,
    panel_apply: applyPanel,
    copy_report: copyReport,
    copy_text: copyText,
  };
}

// A card that asks for consent: Allow is disabled until the end of all arguments has been in view.
{
  const readCards = new Set();
  const updateCard = card => {
    const isRead = readCards.has(card.dataset.card), allow = $("[data-act=allow_calls]", card);
    card.toggleAttribute("data-unread", card.hasAttribute("data-ready") && !isRead);
    if (allow && card.hasAttribute("data-ready") && isRead) allow.disabled = false;
  };
  const endObserver = new IntersectionObserver(entries => {
    for (const { target, isIntersecting } of entries) {
      const card = target.closest(".consent[data-card]");
      if (!card) continue;
      if (isIntersecting) { readCards.add(card.dataset.card); endObserver.unobserve(target); }
      updateCard(card);
    }
  });
  // Whenever Python redraws a card, its end must be seen again, unless it was read before.
  const watched = new WeakSet();
  onPatched(() => {
    for (const end of all(".consent[data-card] .asks-end")) {
      const card = end.closest(".consent");
      if (readCards.has(card.dataset.card)) updateCard(card);
      else if (!watched.has(end)) { watched.add(end); endObserver.observe(end); }
    }
  });
}

// Under the user's message: a form to edit it, and buttons to switch versions without moving the view.
{
  const HOLD_MS = 1500;
  // Unsent edits, by turn: the thread may be redrawn meanwhile.
  const drafts = new Map();

  const open = from => {
    const form = $(".said-form", from), area = $("textarea", form);
    area.value = drafts.get(form.dataset.turn) ?? area.defaultValue;
    form.hidden = false;
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
    form.scrollIntoView({ block: "nearest" });
  };
  const close = form => {
    drafts.delete(form.dataset.turn);
    form.hidden = true;
    $("[data-branch=edit]", form.closest(".said-tools"))?.focus({ preventScroll: true });
  };
  const submitEdit = form => {
    // After a refusal the form keeps the text; otherwise the thread is drawn without it.
    once($("[type=submit]", form), () => aivista.shell.act("page.edit_message", { turn: form.dataset.turn, text: $("textarea", form).value }));
  };

  const copy = async button => {
    const name = button.getAttribute("aria-label");
    const isDone = await aivista.cards.copy_text($("textarea", button.closest(".said-tools, .answer-tools")).defaultValue);
    const label = isDone ? button.dataset.done : button.dataset.failed;
    button.setAttribute("aria-label", label);
    button.title = label;
    button.classList.toggle("done", isDone);
    setTimeout(() => { button.setAttribute("aria-label", name); button.title = name; button.classList.remove("done"); }, 2000);
  };

  on("click", ".copy-code", async button => {
    if (!await aivista.cards.copy_text(button.nextElementSibling.textContent)) return;
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 2000);
  });

  // ---- another version: its message appears where the previous one was
  let heldView = null;
  const holdView = () => {
    if (!heldView || performance.now() >= heldView.until) { heldView = null; return; }
    const now = $(`#chat .said-tools[data-turn="${CSS.escape(heldView.turn)}"]`), box = $("#log");
    if (now && box) {
      const bubble = now.closest(".user") || now;
      box.scrollTop += bubble.getBoundingClientRect().top - heldView.top;
      const button = $(`[data-branch=switch]:not(:disabled)[aria-label="${CSS.escape(heldView.name)}"]`, now) || $("[data-branch=switch]:not(:disabled)", now);
      if (heldView.isNew && button) { heldView.isNew = false; button.focus({ preventScroll: true }); }
    }
    requestAnimationFrame(holdView);
  };
  const switchVersion = button => {
    const turn = button.dataset.turn, row = button.closest(".user") || button;
    heldView = { turn, name: button.getAttribute("aria-label"), top: row.getBoundingClientRect().top, until: performance.now() + HOLD_MS, isNew: true };
    aivista.shell.act("page.switch", { arg: turn });
    requestAnimationFrame(holdView);
  };
  for (const kind of ["wheel", "touchstart", "pointerdown"]) addEventListener(kind, () => { heldView = null; }, { passive: true, capture: true });

  const acts = { copy, edit: button => open(button.closest(".said-tools")), cancel: button => close(button.closest("form")), switch: switchVersion };
  on("click", "[data-branch]", button => acts[button.dataset.branch](button));
  on("input", ".said-form", (form, event) => drafts.set(form.dataset.turn, event.target.value));
  on("submit", ".said-form", (form, event) => { event.preventDefault(); submitEdit(form); });
  on("keydown", ".said-form", (form, event) => {
    if (aivista.keys.is(event, "field.leave")) { event.preventDefault(); event.stopPropagation(); close(form); }
    else if (aivista.keys.is(event, "field.keep") && event.target.tagName === "TEXTAREA") { event.preventDefault(); submitEdit(form); }
  }, true);
}

// The thread: Python's updates are put into the page, a running turn is followed by its stream, and the scroll position
// is kept. The view follows new content as long as it is at the end; a user who scrolls up stays there and gets a
// button back. When the width changes, the first visible content stays at the top.
{
  const shell = aivista.shell;
  const NEAR_PX = 48, FAR_PX = 240, HELD_MS = 2000, USER_EVENTS = ["wheel", "touchstart", "pointerdown", "keydown"];
  const LOOK_MS = 1000, RETRY_MS = 5000, AWAY_AFTER = 3;
  const ANCHORS = ".md > *, .frame, .acts, .receipt, .card, .steps, .live";
  const box = $("#log"), list = $("#thread");
  let isFollowing = true, anchor = null, width = box.clientWidth, releasePosition = null, turns = 0, lastId = "", height = 0, lastTop = 0;

  // ---- Python's update: the newest turns in order; earlier ones stay as long as they join on
  const articles = () => all("#thread > .turn");
  let shown = conversation() === "new" ? "" : conversation(), newest = 0;
  const applyThread = update => {
    const isSame = shown === update.conversation;
    // Changes of the conversation were shown before: the update includes the sent message.
    if (isSame && update.at < newest) { if (update.is_answer) $("#turn-now[data-sending]")?.remove(); return; }
    newest = update.at;
    shown = update.conversation;
    list.dataset.version = update.version;
    if (!isSame) conversationOpened();
    const present = articles(), first = isSame && update.earlier ? present.findIndex(one => one.id === update.turns[0]) : 0;
    const before = present.slice(0, Math.max(first, 0)), isSent = one => isSame && !update.is_answer && "sending" in one.dataset;
    const removed = present.filter(one => !update.turns.includes(one.id) && !before.includes(one) && !isSent(one)).map(({ id }) => ({ id }));
    const earlier = before.length ? [] : [{ id: "earlier", html: update.earlier || null, parent: "thread", before: update.turns[0] }];
    // The followed turn is ahead of this update.
    const isFollowed = one => isOpen(update.conversation) && one.id === update.followed && document.getElementById(one.id);
    shell.applyReply({ patches: [...removed, ...update.patches.filter(one => !isFollowed(one)), ...earlier] });
    if (before.length) shell.act("thread.earlier", { before: turnId(update.turns[0]), until: turnId(before[0].id) });
    if (!update.followed) closeStream(); else if (!isOpen(update.conversation)) openStream(update.conversation);
  };
  const turnId = id => id.slice("turn-".length);

  // ---- a running turn: the browser reconnects its stream when it is cut
  let stream = null, followed = "";
  const isOpen = conversation => followed === conversation && stream?.readyState === EventSource.OPEN;
  const closeStream = () => { stream?.close(); [stream, followed] = [null, ""]; };
  const refresh = () => shell.act("page.refresh");
  const openStream = conversation => {
    closeStream();
    const opened = stream = new EventSource(`aivista/thread/${encodeURIComponent(conversation)}`);
    followed = conversation;
    // The browser does not repeat a refused request.
    opened.onerror = () => {
      if (stream !== opened || opened.readyState !== EventSource.CLOSED) return;
      closeStream();
      setTimeout(refresh, RETRY_MS);
    };
    opened.onmessage = event => {
      if (stream !== opened) return;
      const reply = JSON.parse(event.data);
      // A message that was just sent stays until its own turn is shown.
      const isSending = one => one.id === "turn-now" && !one.html && $("#turn-now[data-sending]");
      shell.applyReply({ ...reply, patches: reply.patches.filter(one => !isSending(one)) });
    };
  };
  const turnEnded = turn => shell.act("page.ended", { turn, kept: aivista.sending.unfinished() });
  addEventListener("aivista-turn-ended", event => turnEnded(event.detail));
  addEventListener("aivista-turn-over", event => { closeStream(); turnEnded(event.detail); });
  addEventListener("pagehide", closeStream);

  // ---- changes made elsewhere: a picture after Stop, a turn of another tab or program. Python sends the shown version
  // with the thread; a small request a second tells whether there is a newer one, and whether the studio is reachable
  // at all.
  let askedVersion = "", misses = 0;
  const versionShown = () => ({ of: conversation(), version: list.dataset.version });
  const isBusy = () => Boolean(stream || $("#turn-now[data-sending]"));
  const updateReachability = isThere => {
    const wasAway = misses >= AWAY_AFTER;
    misses = isThere ? 0 : misses + 1;
    if (misses === AWAY_AFTER) shell.showToast(aivista.translate("away"), { isProblem: true, stays: true });
    if (isThere && wasAway) shell.showToast(aivista.translate("back"));
  };
  const askVersion = async () => {
    const { of, version } = versionShown();
    if (!version || document.hidden || (!misses && stream?.readyState === EventSource.OPEN)) return;
    let found;
    try {
      const answer = await fetch(`aivista/version/${encodeURIComponent(of)}`);
      updateReachability(true);
      if (!answer.ok) return;
      found = `${of} ${(await answer.json()).version}`;
    } catch { updateReachability(false); return; }
    const now = versionShown();
    if (isBusy() || now.of !== of || now.version !== version) return;
    if (found === `${of} ${version}` || found === askedVersion) return;
    askedVersion = found;
    refresh();
  };
  const pollVersion = async () => { await askVersion(); setTimeout(pollVersion, LOOK_MS); };
  setTimeout(pollVersion, LOOK_MS);
  document.addEventListener("visibilitychange", askVersion);

  // ---- earlier turns are loaded when the user scrolls up to them
  const earlierObserver = new IntersectionObserver(entries => {
    if (entries.some(one => one.isIntersecting)) addEarlier();
  }, { rootMargin: "600px 0px 0px 0px" });
  let isAsking = false;
  const addEarlier = async () => {
    const first = articles()[0];
    if (!first || isAsking) return;
    isAsking = true;
    const height = box.scrollHeight, top = box.scrollTop;
    await shell.act("thread.earlier", { before: turnId(first.id) });
    // What is being read stays where it is.
    if (!isFollowing) box.scrollTop = top + box.scrollHeight - height;
    isAsking = false;
  };
  on("click", "[data-thread=earlier]", addEarlier);

  // ---- the scroll position
  const distanceToEnd = () => box.scrollHeight - box.scrollTop - box.clientHeight;
  const scrollToEnd = () => { box.scrollTop = box.scrollHeight; lastTop = box.scrollTop; };
  const updateBehind = () => root.toggleAttribute("data-behind", !isFollowing && distanceToEnd() > FAR_PX);

  // ---- the anchor: the end, or the first element that begins in view
  const offsetInLog = element => element.getBoundingClientRect().top - box.getBoundingClientRect().top;
  // Rows first: measuring an element in a distant row would lay it out, at every step of the wheel.
  const firstVisibleRow = rows => {
    let [low, high] = [0, rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle].getBoundingClientRect().bottom < box.getBoundingClientRect().top) low = middle + 1; else high = middle;
    }
    return low;
  };
  const findAnchor = () => {
    const rows = articles();
    for (const row of rows.slice(firstVisibleRow(rows))) {
      const element = all(ANCHORS, row).find(one => offsetInLog(one) >= 0);
      if (element) return { element, from: offsetInLog(element) };
    }
    return null;
  };
  box.addEventListener("scroll", () => {
    // A change of the width moves the content: `sizeObserver` corrects that, and it is no scrolling by the user.
    if (box.clientWidth !== width) return;
    // Nor is it scrolling up when the thread only grew below: rows are laid out when they first come into view.
    const isUp = box.scrollTop < lastTop;
    lastTop = box.scrollTop;
    isFollowing = distanceToEnd() < NEAR_PX || (isFollowing && !isUp);
    anchor = isFollowing ? null : findAnchor();
    updateBehind();
  }, { passive: true });

  // ---- new content, and changes of the width
  const contentChanged = () => {
    const rows = articles(), earlier = $("#earlier"), isNew = rows.length > turns && rows.at(-1).id !== lastId;
    if (earlier) { earlierObserver.disconnect(); earlierObserver.observe(earlier); }
    // After sending, the user wants to see the answer.
    if (isNew && !releasePosition) isFollowing = true;
    [turns, lastId] = [rows.length, rows.at(-1)?.id];
    // A change without growth moves nothing.
    const isOther = box.scrollHeight !== height;
    height = box.scrollHeight;
    if (isFollowing && !releasePosition && isOther) scrollToEnd();
    updateBehind();
  };
  const sizeObserver = new ResizeObserver(() => {
    const isOther = box.clientWidth !== width;
    width = box.clientWidth;
    if (isFollowing && !releasePosition) scrollToEnd();
    else if (isOther && anchor?.element.isConnected) box.scrollTop += offsetInLog(anchor.element) - anchor.from;
    height = box.scrollHeight;
    updateBehind();
  });
  box.setAttribute("aria-label", aivista.translate("thread"));
  for (const one of [box, list]) sizeObserver.observe(one);
  onPatched(contentChanged);
  if ("live" in list.dataset) openStream(shown);

  // ---- the button back to the end, and an opened conversation: it shows its newest turn
  const conversationOpened = () => { isFollowing = true; anchor = null; [turns, height] = [0, 0]; };
  addEventListener("aivista-leaving", conversationOpened);
  on("click", "[data-thread=newest]", () => {
    conversationOpened();
    box.scrollTo({ top: box.scrollHeight, behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    box.focus({ preventScroll: true });
    root.removeAttribute("data-behind");
  });

  // ---- unfolded content is scrolled into view, above the composer; a turn that is drawn unfolded moves nothing
  let unfolding = null;
  addEventListener("click", event => { unfolding = event.target.closest?.("summary")?.parentElement || null; }, true);
  addEventListener("toggle", event => {
    const details = event.target;
    if (details !== unfolding || !details.open) return;
    unfolding = null;
    if (box.contains(details)) isFollowing = false;
    const room = details.closest("[role=log], .cv-scroll")?.clientHeight ?? innerHeight;
    details.scrollIntoView({ block: details.offsetHeight < room ? "nearest" : "start" });
  }, true);

  // ---- the position is held while the thread is redrawn for an action elsewhere on the page; the user's own scrolling
  // wins
  const holdPosition = () => {
    releasePosition?.();
    const at = box.scrollTop, held = new AbortController(), { signal } = held;
    const end = () => { clearTimeout(ending); held.abort(); releasePosition = null; };
    const ending = setTimeout(end, HELD_MS);
    box.addEventListener("scroll", () => { if (box.scrollTop !== at) box.scrollTop = at; }, { signal });
    for (const kind of USER_EVENTS) box.addEventListener(kind, end, { passive: true, signal });
    releasePosition = end;
  };
  addEventListener("aivista-thread", event => applyThread(event.detail));
  aivista.thread = { holdPosition };
}
