// Presets: their menu, a name that is typed in its line. A press of one has the page's own event take its settings up.
(() => {
  const keys = window.aivista.keys, shell = window.aivista.shell, aids = window.aivista.aids;
  const $ = (selector, from = document) => from.querySelector(selector);
  const menu = () => $("#presets");
  const opener = () => $("[data-aid=presets]");

  // What has come may be higher, and may have taken the focus with it. Whether it was done is the answer.
  const act = async (name, args = {}) => {
    const { patches = [] } = await shell.act(`presets.${name}`, args);
    if (menu()?.matches(":popover-open")) {
      aids.place(menu(), opener());
      if (!menu().contains(document.activeElement)) menu().focus();
    }
    return patches.some(patch => patch.id === "presets-rows") && !$("#presets .said.bad");
  };
  const show = async () => {
    if (menu()?.matches(":popover-open")) { menu().hidePopover(); return; }
    await act("show", { is_begun: Boolean(menu()) });
    if (!menu()) return;
    aids.open(menu(), opener());
    menu().focus();
  };
  const rename = (line, typed) => {
    if (!line || $("input", line)) return;
    const { id, name } = line.dataset, button = $("[data-preset=rename]", line);
    const input = Object.assign(document.createElement("input"), { value: typed, maxLength: 60, className: "renaming" });
    input.setAttribute("aria-label", button.title);
    line.prepend(input);
    input.focus();
    input.select();
    let isDone = false;
    const done = async isKept => {
      if (isDone) return;
      isDone = true;
      const text = input.value.trim();
      input.remove();
      if (!isKept || !text || text === name) button.focus();
      // A name that was refused can be typed on.
      else if (!await act("rename", { id, name: text })) rename($(`#presets [data-id="${CSS.escape(id)}"]`), text);
    };
    input.addEventListener("keydown", event => {
      const isKept = keys.is(event, "field.keep");
      if (!isKept && !keys.is(event, "field.leave")) return;
      event.preventDefault();
      event.stopPropagation();
      done(isKept);
    });
    // Not at once: where the list goes, nothing was left, and nothing of it may be removed meanwhile.
    input.addEventListener("blur", () => setTimeout(() => { if (input.isConnected) done(true); }));
  };
  addEventListener("submit", async event => {
    const form = event.target.closest?.("#presets form.save"), name = form?.elements.name.value.trim();
    if (!form) return;
    event.preventDefault();
    if (name && await act("save", { name, settings: window.aivista.chips.values })) form.reset();
  });
  const acts = {
    use: line => { window.aivista.shell.act("page.use_preset", { arg: line.dataset.id }); aids.shut(); $("#box textarea")?.focus(); },
    rename: line => rename(line, line.dataset.name),
    delete: line => act("delete", { id: line.dataset.id }),
    undo: (_, { args }) => act("restore", JSON.parse(args)),
  };
  addEventListener("click", event => {
    const button = event.target.closest?.("[data-preset]");
    if (button) acts[button.dataset.preset](button.closest("li"), button.dataset);
    else if (event.target.closest?.("[data-aid=presets]")) show();
  });
})();
