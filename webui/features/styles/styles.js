// The style library: its search box, its form, and trying a style. Python renders the rest.
{
  const { act, removeElement } = aivista.shell;
  const PAUSE_MS = 160, MOST_BYTES = 1048577;  // one more than the library accepts, so that it says so itself
  let family = "", timer = 0;

  const look = () => ({ query: ($("#sty-find")?.value || "").trim(), family });
  const find = (more = {}) => { clearTimeout(timer); timer = 0; return act("styles.find", { ...look(), ...more }, { isNewest: true }); };
  // Without a picture to repaint, the style goes into the box.
  const paint = ({ id, words }) => {
    $("#sty-head [data-act=styles_close]")?.click();
    root.removeAttribute("data-stage");
    if ($("#chat :is(.pic .frame:not(.pending), .refs img)")) { aivista.shell.act("page.try_style", { arg: id }); return; }
    aivista.aids.insertText(`${$("#box textarea").value.trimEnd()} ${words}`.trim());
  };
  aivista.dialogs.loadWith("styles", () => act("styles.open", look()));

  const acts = {
    family: button => { family = button.dataset.id; find(); },
    try: button => paint(button.dataset),
    form: button => act("styles.form", { id: button.dataset.id || "" }),
    delete: button => act("styles.delete", { ...look(), id: button.dataset.id }),
    export: () => act("styles.export"),
    cancel: () => { removeElement("sty-form"); $("#sty-list .sty-cards")?.focus(); },
  };
  on("click", "#styles [data-style]", button => acts[button.dataset.style](button));
  on("input compositionend", "#sty-find", (_, event) => { clearTimeout(timer); if (!event.isComposing) timer = setTimeout(find, PAUSE_MS); });
  on("submit", "#sty-form", (form, event) => {
    event.preventDefault();
    act("styles.save", { id: form.dataset.id, fields: Object.fromEntries(new FormData(form)) });
  }, true);
  on("change", "#sty-file", async input => {
    if (!input.files.length) return;
    const text = await input.files[0].slice(0, MOST_BYTES).text();
    input.value = "";
    act("styles.take", { text });
  });
  // Matches by words were shown at once; matches by meaning take longer.
  addEventListener("aivista-styles-more", () => find({ patient: true }));
  addEventListener("aivista-styles-form", () => $("#sty-form input")?.focus());
  addEventListener("aivista-styles-done", event => {
    if (family !== event.detail) { family = event.detail; $("#sty-find").value = ""; }
    if (document.activeElement === document.body || document.activeElement === $("#styles-box")) $("#sty-list .sty-cards")?.focus();
  });
}
