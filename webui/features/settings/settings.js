// The settings: the form of the key, the caps, the theme, and what is requested once they are open.
{
  const { act } = aivista.shell;
  const KEPT = "aivista-theme";

  const typed = () => ({ key: $("#s-key").value, keep: $("#set-key [name=keep]:checked")?.value || "session" });
  // Testing a key takes some seconds.
  const test = () => {
    $("#s-verdict").replaceChildren(createElement("p", { className: "keyres", role: "status" }, $("#s-testing").textContent));
    return act("settings.test", typed());
  };
  const amount = name => { const { value } = $(`#s-cap-${name}`); return value === "" ? null : Number(value); };
  const markTheme = () => { for (const one of all("#settings [data-setting=theme]")) one.setAttribute("aria-pressed", String(one.dataset.value === (readStored(KEPT) || "system"))); };

  const acts = {
    test,
    remove: () => act("settings.remove"),
    back_up: () => act("settings.back_up"),
    open_folder: () => act("settings.open_folder"),
    defaults: button => act("settings.defaults", { are_kept: Boolean(button.dataset.value) }),
    theme: button => {
      store(KEPT, button.dataset.value);
      emit("theme");
      markTheme();
    },
  };
  on("click", "#settings [data-setting]", button => acts[button.dataset.setting](button));
  // The trash is part of the list of conversations.
  on("click", "#settings [data-rail=trash]", () => {
    aivista.dialogs.close("settings");
    if (isNarrow()) root.setAttribute("data-rail-open", "");
  }, true);
  on("submit", "#set-key, #set-caps", (form, event) => {
    event.preventDefault();
    if (form.id === "set-key") act("settings.save", typed());
    else act("settings.cap", { day: amount("day"), conversation: amount("conversation") });
  }, true);
  addEventListener("aivista-settings-opened", event => { markTheme(); if (event.detail) act("settings.size"); });
  addEventListener("aivista-settings-saved", test);
  // The studio may offer other models now.
  addEventListener("aivista-served", () => aivista.shell.act("page.models"));
  aivista.dialogs.loadWith("settings", () => act("settings.open"));
}
