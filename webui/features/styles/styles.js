// The style library: its search box, its form, and a style that is tried. What it shows, Python renders.
{
  const { act, remove } = window.aivista.shell;
  const PAUSE_MS = 160, MOST_BYTES = 1048577;  // one more than the library takes, so that it says so itself
  let family = "", timer = 0;

  const look = () => ({ query: ($("#sty-find")?.value || "").trim(), family });
  const find = (more = {}) => { clearTimeout(timer); timer = 0; return act("styles.find", { ...look(), ...more }, { isNewest: true }); };
  const close = () => $("#sty-head [data-act=styles_close]")?.click();
  const leave = () => { remove("sty-form"); $("#sty-list .sty-cards")?.focus(); };
  // Where there is no picture to paint anew, the style goes into the box.
  const paint = ({ id, words }) => {
    close();
    root.removeAttribute("data-stage");
    if ($("#chat :is(.pic .frame:not(.pending), .refs img)")) { window.aivista.shell.act("page.try_style", { arg: id }); return; }
    window.aivista.aids.put(`${$("#box textarea").value.trimEnd()} ${words}`.trim());
  };
  window.aivista.dialogs.fills("styles", () => act("styles.open", look()));

  const acts = {
    family: button => { family = button.dataset.id; find(); },
    try: button => paint(button.dataset),
    form: button => act("styles.form", { id: button.dataset.id || "" }),
    delete: button => act("styles.delete", { ...look(), id: button.dataset.id }),
    export: () => act("styles.export"),
    cancel: leave,
  };
  addEventListener("click", event => {
    const button = event.target.closest?.("#styles [data-style]");
    if (button) acts[button.dataset.style](button);
  });
  addEventListener("input", event => { if (event.target.id === "sty-find") { clearTimeout(timer); timer = setTimeout(find, PAUSE_MS); } });
  addEventListener("submit", event => {
    if (event.target.id !== "sty-form") return;
    event.preventDefault();
    act("styles.save", { id: event.target.dataset.id, fields: Object.fromEntries(new FormData(event.target)) });
  }, true);
  addEventListener("change", async event => {
    if (event.target.id !== "sty-file" || !event.target.files.length) return;
    const text = await event.target.files[0].slice(0, MOST_BYTES).text();
    event.target.value = "";
    act("styles.take", { text });
  });
  // What was found by its words alone was shown at once; what means the same takes longer.
  addEventListener("aivista-styles-more", () => find({ patient: true }));
  addEventListener("aivista-styles-form", () => $("#sty-form input")?.focus());
  addEventListener("aivista-styles-done", event => {
    if (family !== event.detail) { family = event.detail; $("#sty-find").value = ""; }
    if (document.activeElement === document.body || document.activeElement === $("#styles-box")) $("#sty-list .sty-cards")?.focus();
  });
}
