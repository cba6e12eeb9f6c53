// The composer's aids: a wish written out, the panel of settings, and how menus stand over the composer.
(() => {
  const $ = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const area = () => $("#box textarea"), keys = window.aivista.keys;
  const isPhone = () => matchMedia("(max-width: 760px)").matches;

  // ---- words into the box as if they were typed, so that the browser's own undo brings back what they replace
  const put = (text, range) => {
    const field = area();
    if (!field) return;
    field.focus();
    field.select();
    const isTyped = document.activeElement === field && document.execCommand(text ? "insertText" : "delete", false, text);
    if (!isTyped || field.value !== text) {
      Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(field, text);
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
    field.setSelectionRange(...(range || [text.length, text.length]));
  };

  addEventListener("aivista-words", event => put(event.detail));

  // ---- a wish written out: asked for, shown, taken, undone; only the newest question's answer is looked at
  let ticket = "", before = null, asked = "";
  // What is said aloud has a place of its own from the start: a region that comes together with its words is passed over.
  const line = Object.assign(document.createElement("div"), { id: "fuller-heard", role: "status", className: "heard" });
  const say = text => { line.textContent = text || ""; };
  const panel = () => $("#fuller .fuller");
  const waiting = () => $("#composer .fuller-wait");
  const show = state => $("#fuller")?.setAttribute("data-state", state);
  const settled = () => { waiting()?.remove(); for (const button of all("[data-aid=expand]")) button.removeAttribute("aria-busy"); };
  const drop = () => { ticket = ""; before = null; settled(); show(""); say(""); };
  const expand = () => {
    const field = area(), text = field?.value || "";
    if (!text.trim()) { field?.focus(); return; }
    if (waiting()) return;
    drop();
    ticket = `${Date.now()}-${Math.random().toString(36).slice(2, 8)}`;
    asked = text;
    const wait = $("#tpl-working")?.content.firstElementChild.cloneNode(true);
    if (wait) $("#fuller").after(wait);
    for (const button of all("[data-aid=expand]")) button.setAttribute("aria-busy", "true");
    window.aivista.shell.act("page.expand", { ticket, text, files: all("#box .thumbnail-item").length, is_painted: Boolean($("#mask").value || $("#expand").value) });
  };
  const answered = () => {
    const found = panel();
    if (!found || !ticket || found.dataset.ticket !== ticket || $("#fuller").dataset.state) return;
    settled();
    show("shown");
    say(found.dataset.heard);
    if (found.dataset.text) $(".words", found)?.scrollTo(0, 0);
  };
  const take = () => {
    const found = panel();
    if (!found?.dataset.text) return;
    before = area()?.value ?? asked;
    put(found.dataset.text);
    show("taken");
    say($(".took span", found)?.textContent);
  };
  const undo = () => { const text = before; drop(); if (text !== null) put(text); };
  const sent = () => drop();
  addEventListener("keydown", event => {
    if (event.target.matches?.("#box textarea") && keys.is(event, "composer.send")) sent();
  }, true);
  addEventListener("click", event => { if (event.target.closest?.("#box .submit-button")) sent(); }, true);
  // What came from the wish of one conversation says nothing in another.
  let where = "", opened = "";
  const moved = () => {
    const { conversation: here = "", opened: now = opened } = $("#top h1")?.dataset || {};
    // A new one that gets its name is not opened for that, and stays the same.
    if (where && here !== where && !(where === "new" && now === opened)) drop();
    [where, opened] = [here, now];
  };

  // ---- menus over the composer: native popovers, placed above their opener; on a phone a sheet from below
  const place = (menu, opener) => {
    menu.style.cssText = "";
    if (isPhone() || !opener) return;
    const at = opener.getBoundingClientRect();
    const width = menu.offsetWidth, left = Math.min(Math.max(8, at.right - width), innerWidth - width - 8);
    menu.style.cssText = `left: ${left}px; bottom: ${innerHeight - at.top + 6}px; max-height: ${Math.max(160, at.top - 16)}px`;
  };
  const open = (menu, opener) => {
    if (menu.matches(":popover-open")) { menu.hidePopover(); return; }
    menu.showPopover({ source: opener });
    opener?.setAttribute("aria-expanded", "true");
    place(menu, opener);
  };
  const MENUS = "#setup, #presets";
  const shut = () => { for (const menu of all(MENUS)) if (menu.matches(":popover-open")) menu.hidePopover(); };
  addEventListener("toggle", event => {
    if (!event.target.matches?.(MENUS) || event.newState !== "closed") return;
    const opener = $(`[data-aid=${event.target.id}]`);
    opener?.setAttribute("aria-expanded", "false");
  }, true);
  const setup = button => {
    open($("#setup"), button);
    if ($("#setup").matches(":popover-open")) $("#setup").focus();
  };
  // Gradio gives each choice a name of its own, so that the browser does not take them for one group.
  addEventListener("keydown", event => {
    const choices = event.target.closest?.("#setup fieldset") ? all("input[type=radio]", event.target.closest("fieldset")) : [];
    const to = choices.length ? keys.walk(event, "setup.walk", choices, choices.indexOf(event.target)) : -1;
    if (to < 0) return;
    event.preventDefault();
    choices[to].focus();
    choices[to].click();
  });
  // An open list is closed first.
  addEventListener("keydown", event => {
    if (keys.is(event, "page.escape") && event.target.closest?.("#setup") && $("#setup [role=combobox][aria-expanded=true]")) event.preventDefault();
  }, true);
  addEventListener("resize", () => { if ($("#setup")?.matches(":popover-open")) place($("#setup"), $("[data-aid=setup]")); });

  const acts = {
    expand: () => { shut(); expand(); },
    setup,
    set: button => window.aivista.shell.act("page.set", { arg: `${button.dataset.setting} ${button.dataset.value}` }),
    reset: () => { window.aivista.shell.act("page.reset"); area()?.focus(); },
    prompts: () => { shut(); window.aivista.prompts?.open(); },
    take_wish: take,
    keep_wish: () => { drop(); area()?.focus(); },
    undo_wish: undo,
    stop_wish: () => { drop(); area()?.focus(); },
  };
  addEventListener("click", event => {
    const button = event.target.closest?.("[data-aid]");
    if (button) acts[button.dataset.aid]?.(button);
  });

  // The price of a wish goes by the text model that is chosen.
  const priced = values => {
    for (const button of all("[data-aid=expand][data-flash]")) {
      const told = button.dataset[values.text_model] || button.dataset.flash, title = `${button.dataset.label} · ${told}`;
      if (button.title !== title) button.title = title;
    }
  };
  window.aivista.chips.onChange(priced);

  const watch = () => {
    if (!$("#fuller") || !$("#top") ) { setTimeout(watch, 200); return; }
    document.body.append(line);
    new MutationObserver(answered).observe($("#fuller"), { childList: true, subtree: true });
    new MutationObserver(moved).observe($("#top"), { childList: true, subtree: true, attributeFilter: ["data-conversation"] });
  };
  if (document.body) watch(); else addEventListener("DOMContentLoaded", watch);
  window.aivista.aids = { put, open, place, shut };
})();
