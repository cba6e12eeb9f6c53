// What the cards of the thread do by themselves: the fields of a plan, the sliders of a panel, reports, a countdown.
// `window.aivista.cards` are acts of buttons; studio.js calls them with the button and the way to send it to Python.
(() => {
  const REST_MS = 1500;

  // A button that lets a turn begin rests for a moment: pressed twice it must not begin two.
  const once = (button, send, arg = button.dataset.arg) => {
    if (button.disabled) return;
    button.disabled = true;
    setTimeout(() => { if (button.isConnected) button.disabled = false; }, REST_MS);
    send({ dataset: { act: button.dataset.act, arg } });
  };

  // ---- a plan: its fields are read when it is run; a model leaves only the values it obeys
  const fieldsOf = request => Object.fromEntries([...request.querySelectorAll("[name]")].map(field => [field.name, field.value]));
  const editOf = request => {
    const { number_of_images, ...values } = fieldsOf(request);
    return { call: Number(request.dataset.call), ...values, ...(number_of_images && { number_of_images: Number(number_of_images) }) };
  };
  const runPlan = (button, send) => {
    const card = button.closest(".plan"), fields = [...card.querySelectorAll("textarea")];
    for (const field of fields) if (!field.value.trim()) field.value = "";
    if (!fields.every(field => field.reportValidity())) return;
    once(button, send, JSON.stringify({ turn: button.dataset.arg, edits: [...card.querySelectorAll("[data-call]")].map(editOf) }));
  };
  const narrowPlan = request => {
    const model = request.querySelector("[name=model]")?.value;
    if (!model) return;
    const asked = model === "both" ? ["flash", "pro"] : [model];
    for (const select of request.querySelectorAll("select")) {
      for (const option of select.options) option.disabled = option.hidden = Boolean(option.dataset.for) && !asked.every(one => option.dataset.for.split(" ").includes(one));
      const chosen = select.selectedOptions[0];
      if (chosen?.disabled) select.value = [...select.options].find(option => !option.disabled)?.value ?? "";
    }
  };
  const isChanged = field => [...(field.options || [])].some(option => option.selected !== option.defaultSelected);
  const settlePlan = card => {
    for (const request of card.querySelectorAll("[data-call]")) narrowPlan(request);
    const planned = card.querySelector(".planned");
    if (planned) planned.hidden = ![...card.querySelectorAll("select")].some(isChanged);
  };

  // ---- a panel: what its sliders say
  const sliders = panel => [...panel.querySelectorAll("input[type=range]")];
  const slide = input => {
    const value = Number(input.value), panel = input.closest(".sliders"), apply = panel.querySelector("[data-act=panel_apply]");
    const shown = value > 0 ? `+${value}` : value < 0 ? `−${-value}` : "0";
    if (input.nextElementSibling) input.nextElementSibling.textContent = shown;
    apply.disabled = sliders(panel).every(one => one.value === one.defaultValue);
  };
  const applyPanel = (button, send) => {
    const amounts = sliders(button.closest(".sliders")).map(input => [input.name, Number(input.value) - Number(input.defaultValue)]);
    once(button, send, JSON.stringify({ handle: button.dataset.arg, ...Object.fromEntries(amounts) }));
  };

  // ---- a report: copied as text
  const copyText = async text => {
    if (navigator.clipboard?.writeText) {
      try { await navigator.clipboard.writeText(text); return true; } catch { /* not allowed here: the old way */ }
    }
    const area = Object.assign(document.createElement("textarea"), { value: text, readOnly: true });
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
    const number = document.querySelector(".live .down");
    if (!number) return;
    const key = `${number.dataset.at} ${number.dataset.down}`;
    if (wait.key !== key) wait = { key, until: performance.now() + Number(number.dataset.down) * 1000 };
    const left = String(Math.max(0, Math.ceil((wait.until - performance.now()) / 1000)));
    if (number.textContent !== left) number.textContent = left;
  };
  setInterval(tick, 250);

  addEventListener("input", event => { if (event.target.matches?.(".sliders input[type=range]")) slide(event.target); });
  addEventListener("change", event => { const card = event.target.closest?.(".plan"); if (card) settlePlan(card); });
  // The values of another model are hidden before they are first seen.
  addEventListener("focusin", event => { const card = event.target.closest?.(".plan"); if (card) settlePlan(card); });

  // ---- a picture's menu: light and colour are changed in the panel beneath it, which is folded away until then
  const panelOf = handle => [...document.querySelectorAll("#chat .next-steps")].filter(one => one.dataset.handle === handle).pop();
  const adjust = button => {
    const panel = panelOf(button.dataset.arg);
    if (!panel) return;
    if (matchMedia("(max-width: 760px)").matches) document.documentElement.removeAttribute("data-stage");
    const sliders = panel.querySelector("details.sliders"), summary = panel.querySelector("summary");
    if (sliders) sliders.open = true;
    // By a click the thread keeps what is unfolded in sight.
    if (!panel.open) summary.click();
    summary.focus({ preventScroll: true });
  };
  addEventListener("toggle", event => {
    if (!event.target.matches?.("details.more[open]")) return;
    for (const item of event.target.querySelectorAll("[data-act=adjust]")) item.hidden = !panelOf(item.dataset.arg);
  }, true);

  window.aivista.cards = {
    adjust,
    run_plan: runPlan,
    drop_plan: once,
    allow_calls: once,
    refuse_calls: once,
    retry: once,
    panel: once,
    panel_apply: applyPanel,
    copy_report: copyReport,
    copy_text: copyText,
  };
})();
