// The rail: search, more rows, a menu and a name for each conversation, undo, export and import. Python renders the
// rows; only this page knows what is typed and open, so it requests them whenever they may have changed.
{
  const keys = aivista.keys;
  const TYPING_MS = 200, NEW_ROW_MS = 1500, MORE_MS = 5000, ROWS_AT_ONCE = 50;
  const shell = aivista.shell;
  // What is shown: the number of rows besides the pinned ones, the results of a search, or the trash.
  const WHOLE_LIST = { shown: ROWS_AT_ONCE, query: "", is_trash: false };
  let view = WHOLE_LIST;
  const showList = (to = view) => { view = to; return shell.act("conversations.look", view, { isNewest: true }); };
  const change = (act, args = {}) => shell.act(`conversations.${act}`, { ...view, ...args });

  // ---- the list follows events, except while a name is being typed in it
  let isStale = false;
  const refresh = () => { if (naming) { isStale = true; return; } isStale = false; showList(); };

  // ---- search
  const field = () => $("#rail-find");
  let typingTimer = 0, searched = "";
  const search = (text, at = TYPING_MS) => {
    clearTimeout(typingTimer);
    typingTimer = setTimeout(() => { if (text.trim() !== searched) { searched = text.trim(); showList({ ...WHOLE_LIST, query: searched }); } }, at);
  };
  const toSearch = () => {
    if (aivista.dialogs.opened()) return;
    root.removeAttribute("data-rail-hidden");
    if (isNarrow()) root.setAttribute("data-rail-open", "");
    const take = () => { field()?.focus(); field()?.select(); return document.activeElement === field(); };
    // A drawer that slides in cannot take the focus before it is visible. Taken too late, the focus would select what
    // was typed meanwhile, and the next key would replace it.
    if (!take()) requestAnimationFrame(take);
  };
  on("input compositionend", "#rail-find", (box, event) => { if (!event.isComposing) search(box.value); });

  // ---- menus: one for all conversations, filled when it is opened
  let menuTarget = null;
  const openMenu = opener => {
    shell.expandTemplate($("#rail-menus"));
    const menu = $(`#menu-${opener.dataset.menu}`), { id = "", title = "", pinned = "false" } = opener.dataset;
    menuTarget = { id, title, isPinned: pinned === "true", inTop: Boolean(opener.closest("#top")) };
    const pin = $("[data-rail=pin]", menu);
    if (pin) $("span", pin).textContent = menuTarget.isPinned ? pin.dataset.unpin : pin.dataset.pin;
    for (const link of all("[data-kind]", menu)) {
      link.href = link.dataset.kind ? `export/${encodeURIComponent(id)}?kind=${link.dataset.kind}` : "export";
    }
    aivista.menus.open(menu, opener);
  };

  // ---- renaming in place
  let naming = null;
  const placeOf = (id, inTop) => inTop ? $("#top h1") : $(`#rail-rows [data-act=open][data-arg="${CSS.escape(id)}"] span`);
  const rename = ({ id, title, inTop }) => {
    const place = placeOf(id, inTop);
    if (!place) return;
    const box = place.getBoundingClientRect();
    const input = createElement("input", { className: "field naming", value: title, maxLength: 120, ariaLabel: $("#menu-conversation").dataset.name });
    const edge = inTop ? Math.min(420, innerWidth - box.left - 16) : place.closest("li").getBoundingClientRect().right - box.left - 6;
    input.style.cssText = `top: ${box.top + box.height / 2 - 16}px; left: ${box.left - 8}px; width: ${edge}px`;
    document.body.append(input);
    const end = editName(input, text => {
      naming = null;
      if (text && text !== title) {
        if (place.isConnected) place.textContent = text;
        change("rename", { id, text });
      } else if (isStale) refresh();
    });
    naming = { place, end };
  };
  addEventListener("scroll", event => { if (naming && event.target.contains?.(naming.place)) naming.end(true); }, true);
  addEventListener("resize", () => naming?.end(true));

  // ---- the effect of a change on the open conversation, and the conversation to open after it
  addEventListener("aivista-conversation", event => {
    const { id, title, pinned, version } = event.detail, heading = $("#top h1");
    if (heading.dataset.conversation !== id) return;
    $("#thread").dataset.version = version;
    if (title && heading.textContent !== title) heading.textContent = title;
    Object.assign($("#top [data-menu=conversation]")?.dataset || {}, { title, pinned: String(pinned) });
  });
  addEventListener("aivista-open", event => openConversation(event.detail));

  // ---- files: export through an iframe, where a refusal can be read; import as the body of a request
  const messages = () => { shell.expandTemplate($("#rail-menus")); return $("#menu-library").dataset; };
  on("change", "#import-file", async input => {
    const [file] = input.files;
    input.value = "";
    if (!file) return;
    shell.showToast(messages().importing, { stays: true });
    let answer = null;
    try {
      const sent = await fetch("import", { method: "POST", body: file, headers: { "Content-Type": "application/zip" } });
      answer = await sent.json();
    } catch { shell.showToast(messages().cut, { isProblem: true }); return; }
    shell.showToast(answer.text, { isProblem: !answer.isDone });
    refresh();
    if (answer.conversation) openConversation(answer.conversation);
  });
  addEventListener("load", event => {
    if (event.target.id !== "aivista-save") return;
    // A file is saved and leaves the iframe unchanged; content in it is the reason why there is no file.
    let text = "";
    try { text = event.target.contentDocument?.body?.textContent?.trim() || ""; } catch { return; }
    if (text) shell.showToast(text, { isProblem: true });
  }, true);

  // ---- the trash: permanent deletion needs two presses, and the first one asks
  const confirmTwice = (button, act) => {
    const label = $("span", button) || button;
    if (button.hasAttribute("data-asked")) { act(); return; }
    const plain = label.textContent;
    button.setAttribute("data-asked", "");
    label.textContent = button.dataset.sure;
    button.focus();  // Safari leaves the focus where it was
    button.addEventListener("blur", () => { button.removeAttribute("data-asked"); label.textContent = plain; }, { once: true });
  };

  const acts = {
    // Scrolled into view and pressed at once, it asks once.
    more: () => {
      if (sinceMore) return;
      sinceMore = all("#rail-rows li").length;
      setTimeout(() => { sinceMore = 0; }, MORE_MS);
      showList({ ...view, shown: view.shown + ROWS_AT_ONCE });
    },
    rename: () => rename(menuTarget),
    pin: () => change(menuTarget.isPinned ? "unpin" : "pin", { id: menuTarget.id }),
    duplicate: () => change("duplicate", { id: menuTarget.id }),
    delete: () => { change("delete", { id: menuTarget.id }); field()?.focus({ preventScroll: true }); },
    trash: () => { const box = field(); if (box) box.value = ""; searched = ""; root.removeAttribute("data-rail-hidden"); showList({ ...WHOLE_LIST, is_trash: true }); },
    list: () => { showList(WHOLE_LIST); $("[data-menu=library]")?.focus({ preventScroll: true }); },
    restore: button => change("restore", { id: button.dataset.id }),
    forget: button => confirmTwice(button, () => change("forget", { id: button.dataset.id })),
    empty: button => confirmTwice(button, () => change("empty")),
    import: () => $("#import-file")?.click(),
  };
  // Runs before the page's own handler: to that one, a menu lies outside the drawer it was opened from.
  document.addEventListener("click", event => {
    const at = event.target;
    const opener = at.closest?.("[data-menu]");
    if (opener) { event.stopPropagation(); openMenu(opener); return; }
    if (at.closest?.("#rail-menus, .naming, #import-file")) event.stopPropagation();
    const link = at.closest?.(".menu a[data-kind]");
    if (link) { shell.showToast(messages().exporting); aivista.menus.close(); return; }
    const button = at.closest?.("[data-rail]");
    if (!button) return;
    event.stopPropagation();
    if (button.closest(".menu")) aivista.menus.close();
    acts[button.dataset.rail]?.(button);
  }, true);

  // ---- keys
  const searchKey = event => {
    if (keys.is(event, "field.leave") && event.target.value) {
      event.preventDefault();
      event.stopPropagation();
      event.target.value = "";
      search("", 0);
    } else if (keys.is(event, "field.keep")) search(event.target.value, 0);
    else if (keys.find(event, "rail.walk") === "next") { event.preventDefault(); $("#rail-rows [data-act=open]")?.focus(); }
  };
  const rowKey = event => {
    const list = all("#rail-rows [data-act=open]"), at = list.indexOf(event.target);
    const to = { next: at + 1, previous: at - 1 }[keys.find(event, "rail.walk")];
    if (to === undefined) return;
    event.preventDefault();
    if (to < 0) field()?.focus(); else list[to]?.focus();
  };
  document.addEventListener("keydown", event => {
    const at = event.target;
    if (keys.is(event, "page.search")) { event.preventDefault(); toSearch(); return; }
    if (at.id === "rail-find") searchKey(event);
    else if (at.matches?.("#rail-rows [data-act=open]")) rowKey(event);
  }, true);

  // ---- effects of what Python rendered
  let shownConversation = null, sinceMore = 0, watched = null;
  const nearEnd = new IntersectionObserver(seen => {
    if (seen.some(one => one.isIntersecting) && $("#rail-rows .rail-list")?.scrollTop > 0) acts.more();
  });
  onPatched(() => {
    const open = conversation();
    setText($(".rail-find kbd"), keys.isMac ? "⌘K" : "Ctrl K");
    if (open && open !== shownConversation) {
      shownConversation = open;
      if (open !== "new") setTimeout(() => { if (conversation() === open && !placeOf(open, false)) refresh(); }, NEW_ROW_MS);
    }
    for (const row of all("#rail-rows [data-act=open]")) {
      if (row.dataset.arg === open) setAttribute(row, "aria-current", "page"); else row.removeAttribute("aria-current");
    }
    const rows = all("#rail-rows li"), more = $("#rail-rows [data-rail=more]");
    if (sinceMore && rows.length > sinceMore) {
      if (document.activeElement === document.body || document.activeElement === more) $("[data-act=open]", rows[sinceMore])?.focus({ preventScroll: true });
      sinceMore = 0;
    }
    if (more !== watched) { nearEnd.disconnect(); watched = more; if (more) nearEnd.observe(more); }
  });
  addEventListener("aivista-listed", refresh);
}
