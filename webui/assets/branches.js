// Under the person's words: a form to say them otherwise, and the way from version to version, which moves nothing.
(() => {
  const $ = (selector, from = document) => from.querySelector(selector);
  const HOLD_MS = 1500, REST_MS = 1500;
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
    const button = $("[type=submit]", form), area = $("textarea", form);
    if (button.disabled) return;
    // Refused, the form stays with the words; else the thread is drawn without it.
    button.disabled = true;
    setTimeout(() => { button.disabled = false; }, REST_MS);
    window.aivista.shell.act("page.say_otherwise", { turn: form.dataset.turn, text: area.value });
  };

  const copy = async button => {
    const name = button.getAttribute("aria-label");
    const isDone = await window.aivista.cards.copy_text($("textarea", button.closest(".said-tools, .told-tools")).defaultValue);
    const said = isDone ? button.dataset.done : button.dataset.failed;
    button.setAttribute("aria-label", said);
    button.title = said;
    button.classList.toggle("done", isDone);
    setTimeout(() => { button.setAttribute("aria-label", name); button.title = name; button.classList.remove("done"); }, 2000);
  };

  const copyCode = async button => {
    if (!await window.aivista.cards.copy_text(button.nextElementSibling.textContent)) return;
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
    window.aivista.shell.act("page.switch", { arg: turn });
    requestAnimationFrame(hold);
  };
  for (const kind of ["wheel", "touchstart", "pointerdown"]) addEventListener(kind, () => { held = null; }, { passive: true, capture: true });

  addEventListener("click", event => {
    const button = event.target.closest?.("[data-branch]");
    const code = event.target.closest?.(".copy-code");
    if (code) copyCode(code);
    if (!button) return;
    const act = button.dataset.branch;
    if (act === "copy") copy(button);
    else if (act === "edit") open(button.closest(".said-tools"));
    else if (act === "cancel") close(button.closest("form"));
    else if (act === "switch") go(button);
  });
  addEventListener("input", event => {
    const form = event.target.closest?.(".said-form");
    if (form) drafts.set(form.dataset.turn, event.target.value);
  });
  addEventListener("submit", event => {
    if (!event.target.matches?.(".said-form")) return;
    event.preventDefault();
    say(event.target);
  });
  document.addEventListener("keydown", event => {
    const form = event.target.closest?.(".said-form");
    if (!form) return;
    if (window.aivista.keys.is(event, "field.leave")) { event.preventDefault(); event.stopPropagation(); close(form); }
    else if (window.aivista.keys.is(event, "field.keep") && event.target.tagName === "TEXTAREA") { event.preventDefault(); say(form); }
  }, true);
})();
