// The settings: the key's form, the caps, the theme, what is asked for once they are open.
{
  const { act } = window.aivista.shell;
  const KEPT = "aivista-theme";

  const typed = () => ({ key: $("#s-key").value, keep: $("#set-key [name=keep]:checked")?.value || "session" });
  // A key is tried for some seconds.
  const test = () => {
    const line = Object.assign(document.createElement("p"), { className: "keyres", textContent: $("#s-testing").textContent });
    line.setAttribute("role", "status");
    $("#s-verdict").replaceChildren(line);
    return act("settings.test", typed());
  };
  const amount = name => { const { value } = $(`#s-cap-${name}`); return value === "" ? null : Number(value); };
  const theme = () => { try { return localStorage.getItem(KEPT) || "system"; } catch { return "system"; } };
  const markTheme = () => { for (const one of document.querySelectorAll("#settings [data-setting=theme]")) one.setAttribute("aria-pressed", String(one.dataset.value === theme())); };

  const acts = {
    test,
    remove: () => act("settings.remove"),
    back_up: () => act("settings.back_up"),
    open_folder: () => act("settings.open_folder"),
    defaults: button => act("settings.defaults", { are_kept: Boolean(button.dataset.value) }),
    theme: button => {
      try { localStorage.setItem(KEPT, button.dataset.value); } catch { /* private window: this page only */ }
      dispatchEvent(new CustomEvent("aivista-theme"));
      markTheme();
    },
  };
  addEventListener("click", event => {
    const button = event.target.closest?.("#settings [data-setting]");
    if (button) acts[button.dataset.setting](button);
  });
  // The trash stands in the list of conversations.
  addEventListener("click", event => {
    if (!event.target.closest?.("#settings [data-rail=trash]")) return;
    window.aivista.dialogs.close("settings");
    if (matchMedia("(max-width: 1180px)").matches) root.setAttribute("data-rail-open", "");
  }, true);
  addEventListener("submit", event => {
    if (!event.target.matches?.("#set-key, #set-caps")) return;
    event.preventDefault();
    if (event.target.id === "set-key") act("settings.save", typed());
    else act("settings.cap", { day: amount("day"), conversation: amount("conversation") });
  }, true);
  addEventListener("aivista-settings-opened", event => { markTheme(); if (event.detail) act("settings.size"); });
  addEventListener("aivista-settings-saved", test);
  // What the studio offers may be another now.
  addEventListener("aivista-served", () => window.aivista.shell.act("page.models"));
  window.aivista.dialogs.fills("settings", () => act("settings.open"));
}
