// The settings of a message: the fixed ones named on the button that opens them, their panel, and ratios drawn as
// shapes.
{
  const EDGE_PX = 20, LEAST_PX = 4;
  const AUTOMATIC = { text_model: "flash", image_model: "auto", aspect_ratio: "auto", resolution: "auto", number_of_images: "auto", review: "on", confirm: false, negative_prompt: "", reference_mode: "auto" };
  const values = {}, listeners = [];

  const drawShapes = () => {
    for (const label of all("#aspect-ratio label")) {
      const [, width, height] = /^(\d+):(\d+)$/.exec(label.querySelector("input")?.value || "") || [];
      const longer = Math.max(width, height) || 0;
      label.toggleAttribute("data-shape", longer > 0);
      for (const [name, side] of longer ? [["--w", width], ["--h", height]] : []) label.style.setProperty(name, `${Math.max(LEAST_PX, Math.round(EDGE_PX * side / longer))}px`);
    }
  };
  // "Pro · 16:9 · 2K · 2": only settings that are not left to the agent.
  const summary = () => {
    const place = $(".setup-open");
    if (!place) return;
    let labels = {};
    try { labels = JSON.parse(place.dataset.said || "{}"); } catch { /* the values themselves say enough */ }
    const parts = Object.entries(AUTOMATIC).flatMap(([name, automatic]) => {
      const value = values[name];
      if (value === undefined || value === null || value === automatic) return [];
      return [labels[`${name}:${value}`] || labels[name]?.replace("{}", value) || String(value)];
    });
    const chip = $("[data-aid=setup]", place), text = parts.join(" · ") || place.dataset.auto;
    setText($("span", chip), text);
    chip.title = parts.length ? text : "";
    place.toggleAttribute("data-fixed", parts.length > 0);
    place.querySelector("[data-aid=reset]").hidden = !parts.length;
    for (const one of all(".models [data-value]")) one.setAttribute("aria-pressed", String(values[one.dataset.setting] === one.dataset.value));
  };

  // Gradio calls this with the names and values of all settings whenever one has changed.
  aivista.chips = pairs => {
    Object.assign(values, Object.fromEntries(pairs));
    summary();
    for (const listener of listeners) listener(values);
  };
  Object.assign(aivista.chips, { values, onChange: listener => listeners.push(listener) });

  // The controls over the right end of the box must not cover the text: padding keeps it clear.
  const measure = () => {
    const opts = $("#opts");
    if (opts) $("#composer").style.setProperty("--av-opts", `${Math.ceil(opts.getBoundingClientRect().width)}px`);
  };
  const watch = () => {
    const opts = $("#opts"), setup = $("#setup");
    // Gradio has not drawn them yet.
    if (!opts || !setup || !$("#summary")) { setTimeout(watch, 100); return; }
    setup.setAttribute("popover", "auto");
    setup.setAttribute("role", "dialog");
    setup.tabIndex = -1;
    new ResizeObserver(measure).observe(opts);
    const look = () => {
      summary();
      const note = $("#tpl-needs-key");
      setup.querySelector(":scope > .needs-key")?.remove();
      if (note) setup.prepend(cloneTemplate(note));
      setup.setAttribute("aria-label", $("[data-aid=setup]")?.getAttribute("aria-label") || "");
    };
    look();
    // Python renders the button and the models without the current choice.
    addEventListener("aivista-patched", look);
    new MutationObserver(drawShapes).observe(setup, { childList: true, subtree: true, attributeFilter: ["value"] });
    whenIdle(() => aivista.shell.setInputs());
  };
  watch();

  // ---- where a phone's keyboard covers the page instead of shrinking it, the page makes room by itself
  const view = window.visualViewport;
  const keyboard = () => {
    const hidden = view.scale > 1.01 ? 0 : Math.max(0, innerHeight - view.height - view.offsetTop);
    const isThere = hidden > 120;
    root.toggleAttribute("data-keyboard", isThere);
    if (isThere) root.style.setProperty("--av-keyboard", `${Math.round(hidden)}px`);
  };
  for (const name of ["resize", "scroll"]) view?.addEventListener(name, keyboard);
}

// Models that the key cannot use: their choice is greyed, says why, and ignores clicks and Enter. Python names them in
// the note beneath the chips; Gradio's menu is marked here whenever it is opened.
{
  const CHIPS = { text_model: "#text-model", image_model: "#image-model" };
  const REST_MS = 1200;
  let parsedLimits = { from: null, limits: {} };

  const limits = () => {
    const written = $("#models-note .limits")?.dataset.limits || "";
    if (parsedLimits.from !== written) {
      parsedLimits = { from: written, limits: {} };
      try { parsedLimits.limits = JSON.parse(written || "{}"); } catch { /* nothing is greyed, the studio still says why it failed */ }
    }
    return parsedLimits.limits;
  };
  // The tick of the chosen option is in the same element as its name.
  const optionName = option => option.querySelector("b")?.textContent || option.getAttribute("aria-label") || option.textContent.replace("✓", "").trim();
  const isDisabled = option => option?.getAttribute("aria-disabled") === "true";
  let hasLimits = false;
  const markLimits = () => {
    const now = limits();
    if (!hasLimits && !Object.keys(now).length) return;
    hasLimits = true;
    for (const [chip, place] of Object.entries(CHIPS)) {
      const reasons = now[chip] || {};
      for (const option of all(`${place} li[role=option], .models [data-setting=${chip}]`)) {
        const why = reasons[optionName(option)];
        if (Boolean(why) === isDisabled(option)) continue;
        if (why) { option.setAttribute("aria-disabled", "true"); option.title = why; } else { option.removeAttribute("aria-disabled"); option.removeAttribute("title"); }
      }
    }
  };
  const stopEvent = event => { event.preventDefault(); event.stopImmediatePropagation(); };
  on("mousedown pointerdown click", "#setup :is(li[role=option], .models button)", (option, event) => { if (isDisabled(option)) stopEvent(event); }, true);
  // Enter takes the option that looks active: Gradio's own state runs ahead of the page, and outlives a closed menu.
  on("keydown", "#text-model, #image-model", (chip, event) => {
    if (!aivista.keys.is(event, "menu.choose") || !Object.keys(limits()).length) return;
    stopEvent(event);
    const active = $("li[role=option].active", chip);
    if (active && !isDisabled(active)) active.dispatchEvent(new MouseEvent("mousedown", { bubbles: true, cancelable: true }));
  }, true);
  onInputsChanged(markLimits);

  // Once the page is idle, the models of its key are requested: the first paint need not wait for them.
  addEventListener("load", () => setTimeout(() => { if ($("#models-note [data-ask]")) whenIdle(() => aivista.shell.act("page.models")); }, REST_MS));
}

// The price before Send also depends on what stands beside the text. Python says for which facts a price was computed;
// when they have changed and are stable between two looks, a new price is requested. Typing alone requests none.
{
  const LOOK_MS = 350, STILL_MS = 120, STEP_CHARACTERS = 500, SHORT_CHARACTERS = 120;
  let lastFacts = "", requested = null;

  // Text that may change the price is included: a number of pictures, lettering that is reviewed, a page to read.
  const HINT = /[\d"\u201c\u201d\u2018\u2019\u300c\u300d\u300e\u300f\u300a\u300b«»]|https?:|\b(two|three|four|both|couple|pair|twice|thrice|text|words?|wording|letter(s|ing)?|(head)?line|titles?|captions?|slogans?|labels?|signs?|write|says?|saying|reads?|fonts?|logos?|names?|posters?|banners?)\b|[\u4e8c\u4e09\u56db\u4e24\u4fe9\u4ee8\u5b57\u6807\u9898\u5e45\u8bed\u724c\u7b7e\u6b3e\u4e66\u5199\u5370\u523b\u7ee3\u6848]/i;
  // So is a short text about one picture: an exact adjustment of it is free.
  const pictureKind = ({ files, marked, masks }) => {
    if (files + marked > 1 || masks > 1 || $("#expand").value) return "";
    const target = $("#ctx .ctx[data-handle]") || (!$("#ctx .ctx") && $("#ctx-next .ctx"));
    return !(files || target) ? "" : masks ? "part" : files ? "picture" : "target";
  };
  const priceFacts = () => {
    const text = $("#box textarea")?.value || "";
    const beside = {
      characters: Math.floor(text.length / STEP_CHARACTERS) * STEP_CHARACTERS,
      files: all("#box .thumbnail-item").length,
      marked: all("#ctx .ctx:not(.none)").length,
      masks: aivista.painter?.masks?.() || Number(Boolean($("#mask").value || $("#expand").value)),
    };
    const one = text.trim() && text.length <= SHORT_CHARACTERS ? pictureKind(beside) : "";
    if (one) beside.about = one;
    if (one || HINT.test(text)) beside.text = text.slice(0, 1000);
    return Object.values(beside).some(Boolean) ? JSON.stringify(beside) : "";
  };
  let sentFacts = "";
  const requestPrice = (beside = sentFacts) => {
    sentFacts = beside;
    aivista.shell.act("page.price", { beside }, { isNewest: true });
  };
  // When the settings have not changed for a moment, their price is requested.
  let timer = 0, settings = "";
  aivista.chips.onChange(values => {
    const now = JSON.stringify(values);
    if (now === settings) return;
    settings = now;
    clearTimeout(timer);
    timer = setTimeout(requestPrice, STILL_MS);
  });
  setInterval(() => {
    const shown = $("#cost .price[data-beside]"), beside = priceFacts(), isStill = beside === lastFacts;
    lastFacts = beside;
    // One request for one price: a request without an answer is not repeated.
    if (!shown || !isStill || shown.dataset.beside === beside || (requested?.shown === shown && requested.beside === beside)) return;
    requested = { shown, beside };
    requestPrice(beside);
  }, LOOK_MS);
}

// Helpers of the composer: prompt expansion, the settings panel, and the position of menus over the composer.
{
  const area = () => $("#box textarea"), keys = aivista.keys;

  // ---- insert text as if it were typed, so that the browser's own undo restores what it replaces
  const insertText = (text, range) => {
    const field = area();
    if (!field) return;
    field.focus();
    field.select();
    const isTyped = document.activeElement === field && document.execCommand(text ? "insertText" : "delete", false, text);
    if (!isTyped || field.value !== text) setTextareaValue(field, text);
    field.setSelectionRange(...(range || [text.length, text.length]));
  };

  addEventListener("aivista-words", event => insertText(event.detail));

  // ---- prompt expansion: requested, shown, accepted, undone; only the answer to the newest request counts
  let pendingExpansion = null, textBefore = null;
  // The live region exists from the start: screen readers skip a region that appears together with its text.
  const liveRegion = document.body.appendChild(createElement("div", { id: "expanded-heard", role: "status", className: "sr" }));
  const announce = text => { liveRegion.textContent = text || ""; };
  const panel = () => $("#expanded .expanded");
  const waiting = () => $("#composer .expanded-wait");
  const setState = state => $("#expanded")?.setAttribute("data-state", state);
  const expansionDone = () => { waiting()?.remove(); for (const button of all("[data-aid=expand]")) button.removeAttribute("aria-busy"); };
  const closeExpansion = () => { pendingExpansion = textBefore = null; expansionDone(); setState(""); announce(""); };
  const expand = async () => {
    const field = area(), text = field?.value || "";
    if (!text.trim()) { field?.focus(); return; }
    if (waiting()) return;
    closeExpansion();
    const request = pendingExpansion = {};
    $("#expanded").after(cloneTemplate($("#tpl-working")));
    for (const button of all("[data-aid=expand]")) button.setAttribute("aria-busy", "true");
    const args = { text, files: all("#box .thumbnail-item").length, is_painted: Boolean($("#mask").value || $("#expand").value) };
    const { patches } = await aivista.shell.act("page.expand", args, { isNewest: true });
    if (pendingExpansion !== request) return;
    expansionDone();
    if (!patches?.some(one => one.id === "expanded")) return;
    setState("shown");
    announce(panel().dataset.heard);
    $(".words", panel())?.scrollTo(0, 0);
  };
  onSend(closeExpansion);
  // The expansion belongs to one conversation.
  addEventListener("aivista-opened", event => { if (event.detail.isOther) closeExpansion(); });

  // ---- menus over the composer: native popovers above their button; on a phone a sheet from below
  const placeMenu = (menu, opener) => {
    menu.style.cssText = "";
    if (isPhone() || !opener) return;
    const at = opener.getBoundingClientRect();
    const width = menu.offsetWidth, left = Math.min(Math.max(8, at.right - width), innerWidth - width - 8);
    menu.style.cssText = `left: ${left}px; bottom: ${innerHeight - at.top + 6}px; max-height: ${Math.max(160, at.top - 16)}px`;
  };
  const openMenu = (menu, opener) => {
    if (menu.matches(":popover-open")) { menu.hidePopover(); return; }
    // Gradio may have drawn it a moment ago.
    menu.popover ??= "auto";
    menu.showPopover({ source: opener });
    opener?.setAttribute("aria-expanded", "true");
    placeMenu(menu, opener);
  };
  const MENUS = "#setup, #presets";
  const closeMenus = () => { for (const menu of all(MENUS)) if (menu.matches(":popover-open")) menu.hidePopover(); };
  addEventListener("toggle", event => {
    if (event.target.matches?.(MENUS) && event.newState === "closed") $(`[data-aid=${event.target.id}]`)?.setAttribute("aria-expanded", "false");
  }, true);
  // Each group of choices gets its own name, so that the browser does not treat them as one radio group.
  on("keydown", "#setup fieldset", (group, event) => {
    const choices = all("input[type=radio]", group), to = choices.length ? keys.walk(event, "setup.walk", choices, choices.indexOf(event.target)) : -1;
    if (to < 0) return;
    event.preventDefault();
    choices[to].focus();
    choices[to].click();
  });
  // An open list is closed first.
  on("keydown", "#setup", (_, event) => { if (keys.is(event, "page.escape") && $("#setup [role=combobox][aria-expanded=true]")) event.preventDefault(); }, true);
  addEventListener("resize", () => { if ($("#setup")?.matches(":popover-open")) placeMenu($("#setup"), $("[data-aid=setup]")); });

  const acts = {
    expand: () => { closeMenus(); expand(); },
    setup: button => { openMenu($("#setup"), button); if ($("#setup").matches(":popover-open")) $("#setup").focus(); },
    set: button => aivista.shell.act("page.set", { arg: `${button.dataset.setting} ${button.dataset.value}` }),
    reset: () => { aivista.shell.act("page.reset"); area()?.focus(); },
    prompts: () => { closeMenus(); aivista.prompts?.open(); },
    take_expanded: () => {
      const found = panel();
      textBefore = area().value;
      insertText(found.dataset.text);
      setState("taken");
      announce($(".took span", found)?.textContent);
    },
    close_expanded: () => { closeExpansion(); area()?.focus(); },
    undo_expanded: () => { const text = textBefore; closeExpansion(); if (text !== null) insertText(text); },
  };
  on("click", "[data-aid]", button => acts[button.dataset.aid]?.(button));

  // The price of expanding a prompt depends on the chosen text model.
  aivista.chips.onChange(values => {
    for (const button of all("[data-aid=expand][data-flash]")) {
      setAttribute(button, "title", `${button.dataset.label} · ${button.dataset[values.text_model] || button.dataset.flash}`);
    }
  });

  aivista.aids = { insertText, openMenu, placeMenu, closeMenus };
}

// Presets: their menu, and a name that is typed in its row. Pressing one calls the page's own action, which applies it.
{
  const shell = aivista.shell, aids = aivista.aids;
  const menu = () => $("#presets");
  const opener = () => $("[data-aid=presets]");

  // The new content may be taller, and may have lost the focus. Returns whether it was done.
  const act = async (name, args = {}) => {
    const { patches = [] } = await shell.act(`presets.${name}`, args);
    if (menu()?.matches(":popover-open")) {
      aids.placeMenu(menu(), opener());
      if (!menu().contains(document.activeElement)) menu().focus();
    }
    return patches.some(patch => patch.id === "presets-rows") && !$("#presets .said.bad");
  };
  on("click", "[data-aid=presets]", async () => {
    if (menu()?.matches(":popover-open")) { menu().hidePopover(); return; }
    await act("show", { is_begun: Boolean(menu()) });
    if (!menu()) return;
    aids.openMenu(menu(), opener());
    menu().focus();
  });
  const rename = (line, typed) => {
    if (!line || $("input", line)) return;
    const { id, name } = line.dataset, button = $("[data-preset=rename]", line);
    const input = createElement("input", { value: typed, maxLength: 60, className: "field renaming" });
    input.setAttribute("aria-label", button.title);
    line.prepend(input);
    editName(input, async text => {
      if (!text || text === name) button.focus();
      // A refused name can be edited further.
      else if (!await act("rename", { id, name: text })) rename($(`#presets [data-id="${CSS.escape(id)}"]`), text);
    });
  };
  on("submit", "#presets form.save", async (form, event) => {
    const name = form.elements.name.value.trim();
    event.preventDefault();
    if (name && await act("save", { name, settings: aivista.chips.values })) form.reset();
  });
  const acts = {
    use: line => { shell.act("page.use_preset", { arg: line.dataset.id }); aids.closeMenus(); $("#box textarea")?.focus(); },
    rename: line => rename(line, line.dataset.name),
    delete: line => act("delete", { id: line.dataset.id }),
    undo: (_, { args }) => act("restore", JSON.parse(args)),
  };
  on("click", "[data-preset]", button => acts[button.dataset.preset](button.closest("li"), button.dataset));
}

// The prompt gallery: search, groups, and the user's own prompts; a click puts a prompt into the box and selects its
// placeholder.
{
  const SENT = "aivista-sent", STARRED = "aivista-starred", MINE = "mine";
  const MOST_RECENT = 20, MOST_STARRED = 60, LONGEST = 8000;

  // ---- the user's own prompts: recently sent and starred ones, stored on this device only
  const fillMine = () => {
    const section = $(`#prompts section[data-group=${MINE}]`);
    if (!section) return;
    const starred = readStoredTexts(STARRED), recent = readStoredTexts(SENT).reverse().filter(one => !starred.includes(one));
    const rows = [...starred, ...[...new Set(recent)].slice(0, MOST_RECENT)].map(text => {
      const row = cloneTemplate($("template", section)), star = $("[data-aid=star_prompt]", row);
      $(".prm", row).dataset.text = text;
      $(".prm span", row).textContent = text;
      star.setAttribute("aria-pressed", String(starred.includes(text)));
      return row;
    });
    $(".prm-grid", section).replaceChildren(...rows);
    $(".prm-own-none", section).hidden = rows.length > 0;
  };

  // ---- what is shown: a group, or all prompts that contain every word
  let group = "";
  const filterPrompts = () => {
    const words = ($("#prm-find")?.value || "").toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const section of all("#prompts section[data-group]")) {
      const isMine = section.dataset.group === MINE;
      const isWanted = group ? section.dataset.group === group : !isMine || words.length > 0;
      let shown = 0;
      for (const card of all(".prm-grid > *", section)) {
        const text = card.textContent.toLowerCase();
        card.hidden = !isWanted || !words.every(word => text.includes(word));
        shown += !card.hidden;
      }
      section.hidden = !(isWanted && (shown || (isMine && group === MINE && !words.length)));
      found += section.hidden ? 0 : Math.max(shown, isMine ? 1 : 0);
    }
    const none = $("#prompts .prm-none");
    if (none) none.hidden = found > 0;
    for (const chip of all("#prompts [data-aid=prompt_group]")) chip.setAttribute("aria-pressed", String(chip.dataset.group === group));
  };
  // Half a word of an input method cannot be found.
  on("input compositionend", "#prm-find", (_, event) => { if (!event.isComposing) filterPrompts(); });

  const open = async () => { await aivista.dialogs.open("prompts"); fillMine(); filterPrompts(); $("#prompts .prm-cards")?.scrollTo(0, 0); };
  const close = () => aivista.dialogs?.close("prompts");
  const acts = {
    close_prompts: close,
    prompt_group: button => { group = button.dataset.group; filterPrompts(); $("#prompts .prm-cards")?.scrollTo(0, 0); },
    use_prompt: button => {
      close();
      const blank = button.dataset.blank?.split(",").map(Number);
      aivista.aids?.insertText(button.dataset.text, blank);
    },
    star_prompt: button => {
      const text = $(".prm", button.parentElement).dataset.text.slice(0, LONGEST), starred = readStoredTexts(STARRED);
      const isOn = starred.includes(text);
      store(STARRED, JSON.stringify(isOn ? starred.filter(one => one !== text) : [text, ...starred].slice(0, MOST_STARRED)));
      button.setAttribute("aria-pressed", String(!isOn));
    },
  };
  on("click", "#prompts [data-aid]", button => acts[button.dataset.aid]?.(button));
  aivista.prompts = { open };
}

// The list above the box while the user types: after # or @ pictures of the conversation, after / prompts and styles.
{
  const { act, removeElement } = aivista.shell, keys = aivista.keys;
  const field = () => $("#box textarea");
  // A slash within an address or a fraction opens no list, nor does an @ within an e-mail address.
  const SIGN = /(?:(?:^|[\s(（，。])([/／])|(?:^|[^\w/&])([#＃@＠])(?![#＃]))([^\s/／#＃@＠]{0,40})$/u;
  const MOST_PROMPTS = 5, SHOWN = 200, GAP_PX = 8, WIDE_PX = 420;
  // `dismissed` is the text whose list Escape has closed: its answer may still come.
  let requested = "", dismissed = "", offeredPrompts = [];

  const list = () => $("#suggestions");
  const options = () => all("#suggestions [role=option]");
  const chosen = () => $("#suggestions [aria-selected=true]");
  const closeList = () => {
    requested = "";
    const box = field();
    for (const name of ["aria-activedescendant", "aria-controls", "aria-autocomplete"]) box?.removeAttribute(name);
    if (list()) removeElement("suggestions");
  };
  const choose = option => {
    for (const one of options()) one.setAttribute("aria-selected", String(one === option));
    field().setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  };

  // The elements around the box clip anything that is not position: fixed.
  const place = () => {
    const shown = list(), box = $("#composer").getBoundingClientRect();
    Object.assign(shown.style, { left: `${box.left + GAP_PX}px`, width: `${Math.min(WIDE_PX, box.width - 2 * GAP_PX)}px`, bottom: `${innerHeight - box.top + GAP_PX}px` });
  };
  const prompts = query => readStoredTexts("aivista-starred").filter(one => one.toLowerCase().includes(query)).slice(0, MOST_PROMPTS);
  const update = async () => {
    const box = field();
    const signed = box && document.activeElement === box && box.selectionStart === box.selectionEnd ? SIGN.exec(box.value.slice(0, box.selectionStart)) : null;
    if (!signed) { if (requested) closeList(); return; }
    const [, slash, , query] = signed, kind = slash ? "styles" : "pictures", wanted = `${kind} ${query}`;
    if (wanted === requested) return;
    requested = wanted;
    dismissed = "";
    offeredPrompts = slash ? prompts(query.toLowerCase()) : [];
    await act(`suggestions.${kind}`, { query, prompts: offeredPrompts.map(one => one.slice(0, SHOWN)) }, { isNewest: true });
    // A newer request decides.
    if (requested && requested !== wanted) return;
    // The list was closed meanwhile, or the whole name is typed already.
    const found = options(), isWhole = found.length === 1 && found[0].dataset.insert === `#${query}`;
    if (!requested || isWhole || wanted === dismissed || document.activeElement !== field()) { if (list()) removeElement("suggestions"); return; }
    if (!found.length) return;
    place();
    for (const [name, value] of [["aria-autocomplete", "list"], ["aria-controls", "suggestions"]]) field().setAttribute(name, value);
    // Enter after a picture's name sends the message, unless the user chose from the list.
    if (slash) choose(found[0]);
  };
  const insertOption = option => {
    const box = field(), at = box.selectionStart, found = SIGN.exec(box.value.slice(0, at));
    if (!found) { closeList(); return; }
    const [, slash, sign, query] = found, begin = at - query.length - (slash || sign).length;
    const text = option.dataset.insert || offeredPrompts[options().indexOf(option)], end = begin + text.length + 1;
    const after = box.value.slice(at);
    closeList();
    aivista.aids.insertText(`${box.value.slice(0, begin)}${text} ${after.replace(/^ /, "")}`, [end, end]);
  };

  let timer = 0;
  const updateSoon = () => { clearTimeout(timer); timer = setTimeout(update); };
  addEventListener("input", event => { if (event.target === field() && !event.isComposing) updateSoon(); });
  document.addEventListener("selectionchange", () => { if (requested && document.activeElement === field()) updateSoon(); });
  addEventListener("resize", () => { if (list()) place(); });
  addEventListener("focusout", event => { if (event.target === field()) closeList(); });
  // The box keeps the focus.
  on("pointerdown", "#suggestions", (_, event) => event.preventDefault());
  on("click", "#suggestions [role=option]", insertOption);
  // Listens before everything else that handles keys in the box: it sends on Enter, and recalls earlier prompts with
  // arrows.
  addEventListener("keydown", event => {
    if (event.target !== field() || !list()) return;
    const found = options(), to = keys.walk(event, "suggestions.walk", found, chosen() ? found.indexOf(chosen()) : -1);
    if (to >= 0) choose(found[to]);
    else if (keys.is(event, "suggestions.take") && chosen()) insertOption(chosen());
    else if (keys.is(event, "suggestions.complete")) insertOption(chosen() || found[0]);
    else if (keys.is(event, "suggestions.leave")) { const text = requested; closeList(); requested = dismissed = text; }
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
}

// Up and Down in the composer recall earlier messages, across reloads. The draft is kept, and so are changes to
// recalled messages. Within several lines the keys move the caret first, and an input method has precedence. Another
// conversation starts anew: a draft kept on the way belongs to the conversation before.
{
  const KEY = "aivista-sent", MOST = 100, LONGEST = 8000, keys = aivista.keys;
  const sentMessages = () => readStoredTexts(KEY).slice(-MOST);
  let recall = null;  // { where, sent, at, texts }: texts holds the draft and what was changed, by their place

  onSend(() => {
    recall = null;
    const words = $("#box textarea").value.slice(0, LONGEST);
    if (words.trim()) store(KEY, JSON.stringify([...sentMessages().filter((one, at, sent) => at < sent.length - 1 || one !== words), words].slice(-MOST)));
  });

  // The caret's wrapped line: no property tells it, so a copy of the field is measured.
  const caretLines = area => {
    const style = getComputedStyle(area), mirror = document.createElement("div"), caret = document.createElement("span");
    const same = ["font", "letterSpacing", "wordSpacing", "lineHeight", "tabSize", "padding", "borderWidth", "boxSizing", "textIndent"];
    for (const name of same) mirror.style[name] = style[name];
    Object.assign(mirror.style, { position: "absolute", visibility: "hidden", whiteSpace: "pre-wrap", overflowWrap: "break-word", width: `${area.clientWidth}px`, borderStyle: "solid" });
    caret.textContent = "\u200b";
    const begin = caret.cloneNode(true), end = caret.cloneNode(true);
    mirror.append(begin, area.value.slice(0, area.selectionStart), caret, area.value.slice(area.selectionStart), end);
    document.body.append(mirror);
    const place = { first: caret.offsetTop <= begin.offsetTop + 2, last: caret.offsetTop >= end.offsetTop - 2 };
    mirror.remove();
    return place;
  };

  const recallStep = (area, by) => {
    if (recall === null) { const sent = sentMessages(); recall = { where: conversation(), sent, at: sent.length, texts: new Map() }; }
    const to = recall.at + by;
    if (to < 0 || to > recall.sent.length) return false;
    recall.texts.set(recall.at, area.value);
    recall.at = to;
    setTextareaValue(area, recall.texts.get(to) ?? recall.sent[to] ?? "");
    area.setSelectionRange(area.value.length, area.value.length);
    return true;
  };

  on("keydown", "#box textarea", (area, event) => {
    const by = { earlier: -1, later: 1 }[keys.find(event, "composer.recall")];
    if (!by || area.selectionStart !== area.selectionEnd) return;
    if (recall?.where !== conversation()) recall = null;
    if (by > 0 && recall === null) return;
    const { first, last } = caretLines(area);
    if ((by < 0 ? first : last) && recallStep(area, by)) event.preventDefault();
  }, true);
}
