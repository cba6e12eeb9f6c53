// What the cards of the thread do by themselves: the fields of a plan, the sliders of a panel, reports, a countdown.
// `aivista.cards` are acts of buttons; studio.js calls them with the button and the way to send it to Python.
{
  const sendOnce = (button, send, arg = button.dataset.arg) => once(button, () => send({ dataset: { act: button.dataset.act, arg } }));

  // ---- a plan: its fields are read when it is run; a model leaves only the values it obeys
  const fieldsOf = request => Object.fromEntries(all("[name]", request).map(field => [field.name, field.value]));
  const editOf = request => {
    const { number_of_images, ...values } = fieldsOf(request);
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
    const asked = model === "both" ? ["flash", "pro"] : [model];
    for (const select of all("select", request)) {
      for (const option of select.options) option.disabled = option.hidden = Boolean(option.dataset.for) && !asked.every(one => option.dataset.for.split(" ").includes(one));
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

  // ---- a panel: what its sliders say
  const sliders = panel => all("input[type=range]", panel);
  const slide = input => {
    const value = Number(input.value), panel = input.closest(".sliders"), apply = $("[data-act=panel_apply]", panel);
    setText(input.nextElementSibling, value > 0 ? `+${value}` : value < 0 ? `−${-value}` : "0");
    apply.disabled = sliders(panel).every(one => one.value === one.defaultValue);
  };
  const applyPanel = (button, send) => {
    const amounts = sliders(button.closest(".sliders")).map(input => [input.name, Number(input.value) - Number(input.defaultValue)]);
    sendOnce(button, send, JSON.stringify({ handle: button.dataset.arg, ...Object.fromEntries(amounts) }));
  };

  // ---- a report: copied as text
  const copyText = async text => {
    if (navigator.clipboard?.writeText) {
      try { await navigator.clipboard.writeText(text); return true; } catch { /* not allowed here: the old way */ }
    }
    const area = made("textarea", { value: text, readOnly: true });
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

  // ---- the seconds until another try tick down between two updates
  let wait = { key: "", until: 0 };
  const tick = () => {
    const number = $(".down", live());
    if (!number) return;
    const key = `${number.dataset.at} ${number.dataset.down}`;
    if (wait.key !== key) wait = { key, until: performance.now() + Number(number.dataset.down) * 1000 };
    setText(number, String(Math.max(0, Math.ceil((wait.until - performance.now()) / 1000))));
  };
  setInterval(tick, 250);

  on("input", ".sliders input[type=range]", slide);
  // The values of another model are hidden before they are first seen.
  on("change focusin", ".plan", settlePlan);

  // ---- a picture's menu: light and colour are changed in the panel beneath it, which is folded away until then
  const panelOf = handle => all("#chat .next-steps").filter(one => one.dataset.handle === handle).pop();
  const adjust = button => {
    const panel = panelOf(button.dataset.arg);
    if (!panel) return;
    if (isPhone()) root.removeAttribute("data-stage");
    const folded = $("details.sliders", panel), summary = $("summary", panel);
    if (folded) folded.open = true;
    // By a click the thread keeps what is unfolded in sight.
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

// A card that asks for the person's click: Allow stays off until the end of all arguments has been in sight.
{
  const read = new Set();
  const settle = card => {
    const isRead = read.has(card.dataset.card), allow = $("[data-act=allow_calls]", card);
    card.toggleAttribute("data-unread", card.hasAttribute("data-ready") && !isRead);
    if (allow && card.hasAttribute("data-ready") && isRead) allow.disabled = false;
  };
  const seen = new IntersectionObserver(entries => {
    for (const { target, isIntersecting } of entries) {
      const card = target.closest(".consent[data-card]");
      if (!card) continue;
      if (isIntersecting) { read.add(card.dataset.card); seen.unobserve(target); }
      settle(card);
    }
  });
  // Whenever Python draws a card anew, its end is looked for anew, unless it was read before.
  const watched = new WeakSet();
  follow(() => {
    for (const end of all(".consent[data-card] .asks-end")) {
      const card = end.closest(".consent");
      if (read.has(card.dataset.card)) settle(card);
      else if (!watched.has(end)) { watched.add(end); seen.observe(end); }
    }
  });
}

// Under the person's words: a form to say them otherwise, and the way from version to version, which moves nothing.
{
  const HOLD_MS = 1500;
  // What is typed and not sent, by turn: the page may draw the thread anew meanwhile.
  const drafts = new Map();

  const tools = turn => $(`#chat .said-tools[data-turn="${CSS.escape(turn)}"]`);
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
  const say = form => {
    // Refused, the form stays with the words; else the thread is drawn without it.
    once($("[type=submit]", form), () => aivista.shell.act("page.say_otherwise", { turn: form.dataset.turn, text: $("textarea", form).value }));
  };

  const copy = async button => {
    const name = button.getAttribute("aria-label");
    const isDone = await aivista.cards.copy_text($("textarea", button.closest(".said-tools, .told-tools")).defaultValue);
    const said = isDone ? button.dataset.done : button.dataset.failed;
    button.setAttribute("aria-label", said);
    button.title = said;
    button.classList.toggle("done", isDone);
    setTimeout(() => { button.setAttribute("aria-label", name); button.title = name; button.classList.remove("done"); }, 2000);
  };

  const copyCode = async button => {
    if (!await aivista.cards.copy_text(button.nextElementSibling.textContent)) return;
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 2000);
  };

  // ---- another version: its words stay where those before it stood
  let held = null;
  const isHeld = () => held && performance.now() < held.until;
  const hold = () => {
    if (!isHeld()) { held = null; return; }
    const now = tools(held.turn), box = $("#log");
    if (now && box) {
      const bubble = now.closest(".user") || now;
      box.scrollTop += bubble.getBoundingClientRect().top - held.top;
      const button = $(`[data-branch=switch]:not(:disabled)[aria-label="${CSS.escape(held.name)}"]`, now) || $("[data-branch=switch]:not(:disabled)", now);
      if (held.isNew && button) { held.isNew = false; button.focus({ preventScroll: true }); }
    }
    requestAnimationFrame(hold);
  };
  const go = button => {
    const turn = button.dataset.turn, row = button.closest(".user") || button;
    held = { turn, name: button.getAttribute("aria-label"), top: row.getBoundingClientRect().top, until: performance.now() + HOLD_MS, isNew: true };
    aivista.shell.act("page.switch", { arg: turn });
    requestAnimationFrame(hold);
  };
  for (const kind of ["wheel", "touchstart", "pointerdown"]) addEventListener(kind, () => { held = null; }, { passive: true, capture: true });

  const acts = { copy, edit: button => open(button.closest(".said-tools")), cancel: button => close(button.closest("form")), switch: go };
  on("click", "[data-branch]", button => acts[button.dataset.branch](button));
  on("click", ".copy-code", copyCode);
  on("input", ".said-form", (form, event) => drafts.set(form.dataset.turn, event.target.value));
  on("submit", ".said-form", (form, event) => { event.preventDefault(); say(form); });
  on("keydown", ".said-form", (form, event) => {
    if (aivista.keys.is(event, "field.leave")) { event.preventDefault(); event.stopPropagation(); close(form); }
    else if (aivista.keys.is(event, "field.keep") && event.target.tagName === "TEXTAREA") { event.preventDefault(); say(form); }
  }, true);
}
