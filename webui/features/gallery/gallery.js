// The gallery: each query's answer is merged into what is shown, and further pages are appended while scrolling.
// Selecting pictures, and the actions on them, are below; both share aivista.gallery.
{
  const keys = aivista.keys, { act, hideToast } = aivista.shell;
  const PAUSE_MS = 250, READ_AGAIN_MS = 2500, SETTLE_MS = 600, COUNTED_MS = 5500, TOP_PX = 40, KEY = "aivista-gallery-groups";
  const PAGE = 60, MOST_AGAIN = 300, MOST = 5000;
  let query = { is_by_conversation: readStored(KEY) === "conversation", zone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC" };
  let pending = null, failedRequest = null, next = null, isOther = false, isFilled = false, isStale = false, typingTimer = 0, retryTimer = 0, countTimer = 0, lastSeen = "", endObserver = null;

  const pane = () => $("#gal");
  const grid = () => $("#gal-grid");
  const scroller = () => $("#gal .gal-scroll");
  const cells = () => all("#gal-grid .gal-cell");
  const isBelow = () => scroller().scrollTop > TOP_PX && !isOther;

  // ---- requests; the focus stays on its picture, or at its place
  const load = async more => {
    const request = pending = {}, before = cells(), focusedCell = document.activeElement?.closest?.(".gal-cell");
    if (!more.after) grid().setAttribute("aria-busy", "true");
    const { events } = await act("gallery.show", { ...query, ...more }, { isNewest: true });
    if (pending !== request) return;
    pending = null;
    failedRequest = events?.gallery ? null : more;
    pane().toggleAttribute("data-lost", Boolean(failedRequest));
    if (failedRequest) { grid().removeAttribute("aria-busy"); return; }
    const box = scroller(), find = $("#gal-find");
    if (isOther) box.scrollTop = 0;
    isOther = false;
    // The grid ends where the box above it does, whatever width a scrollbar takes.
    $("#gallery").style.setProperty("--gal-end", `${Math.max(2, parseFloat(getComputedStyle(box).paddingLeft) - box.offsetWidth + box.clientWidth)}px`);
    if (!typingTimer && find.value.trim() !== find.dataset.words) find.value = find.dataset.words;
    for (const one of all("#gal-more [data-day]")) if (one.value !== one.getAttribute("value")) one.value = one.getAttribute("value");
    if (focusedCell && document.activeElement === document.body) $(".gal-pic", focusedCell.isConnected ? focusedCell : cells()[Math.min(before.indexOf(focusedCell), cells().length - 1)])?.focus({ preventScroll: true });
    next = events.gallery.next;
    clearTimeout(retryTimer);
    retryTimer = events.gallery.is_whole ? 0 : setTimeout(refreshTwice, READ_AGAIN_MS);
    watchEnd();
  };
  const changeQuery = change => {
    clearTimeout(typingTimer);
    typingTimer = 0;
    query = { ...query, ...change };
    isOther = isFilled = true;
    isStale = false;
    return load({});
  };
  const similarTo = (id, handle) => changeQuery({ ...JSON.parse($("#gal-clear").dataset.look), similar_to: Number(id), similar_handle: handle });
  const watchEnd = () => {
    // An observer fires only when something changes: after a page, the end may still be in view.
    endObserver?.disconnect();
    endObserver = new IntersectionObserver(entries => {
      if (!next || pending || !entries.some(one => one.isIntersecting)) return;
      load({ after: next, there: all("#gal-grid .gal-group").map(one => one.dataset.group) });
    }, { root: scroller(), rootMargin: "1400px 0px" });
    endObserver.observe($("#gal-end"));
  };

  // ---- new pictures; while scrolled down, the view stays, until the top is reached again
  const refresh = () => {
    if (!pane()) return;
    if (!isFilled) { changeQuery({}); return; }
    isStale = isBelow();
    if (isStale) act("gallery.count", query); else load({ count: isOther ? PAGE : Math.min(Math.max(cells().length, PAGE), MOST_AGAIN) });
  };
  const refreshTwice = () => {
    // The counts may be some seconds old, and a conversation is shown a moment before its pictures are stored.
    clearTimeout(countTimer);
    countTimer = setTimeout(refresh, COUNTED_MS);
    refresh();
  };
  addEventListener("aivista-gallery-back", event => load({ count: Math.min(Math.max(cells().length + event.detail, PAGE), MOST) }));
  addEventListener("aivista-tab", event => { if (event.detail === "gallery") refreshTwice(); });
  addEventListener("scroll", event => { if (isStale && event.target === scroller() && !isBelow()) refreshTwice(); }, true);
  const checkThread = () => {
    const now = `${conversation()} ${all("#chat .pic .frame:not(.pending), #chat .refs img").length}`;
    if (now === lastSeen) return;
    const isElsewhere = now.split(" ")[0] !== lastSeen.split(" ")[0];
    lastSeen = now;
    if (!isFilled) return;
    if (!isPaneShown("gallery")) { isStale = true; return; }
    if (isElsewhere && query.here) changeQuery({}); else refreshTwice();
  };
  // One check for many changes of the page.
  let checkTimer = 0;
  onPatched(() => { checkTimer ||= setTimeout(() => { checkTimer = 0; checkThread(); }, SETTLE_MS); });

  // ---- filters: each says how it changes the query
  addEventListener("click", async event => {
    if (event.target.closest?.("#gal [data-gal=again]")) { hideToast(); load(failedRequest || {}); return; }
    const button = event.target.closest?.("#gal [data-look]"), change = button && JSON.parse(button.dataset.look);
    if (!change) return;
    if (button.closest("#gal-dates")) $("#gal-dates").hidePopover();
    if ("is_by_conversation" in change) store(KEY, change.is_by_conversation ? "conversation" : "day");
    if (change.words === "") $("#gal-find").value = "";
    await changeQuery(change);
    if (!button.isConnected && document.activeElement === document.body) $("#gal-on button, #gal-find").focus();
  });
  on("input compositionend", "#gal-find", (box, event) => {
    if (event.isComposing) return;
    clearTimeout(typingTimer);
    typingTimer = setTimeout(() => { typingTimer = 0; const words = box.value.trim(); if (words !== (query.words || "")) changeQuery({ words }); }, PAUSE_MS);
  });
  on("change", "#gal-more [data-day]", input => changeQuery({ when: "", [input.dataset.day]: input.value || null }));
  on("keydown", "#gal-find", (box, event) => {
    if (keys.is(event, "field.leave") && box.value) {
      event.preventDefault();
      event.stopPropagation();
      box.value = "";
      changeQuery({ words: "" });
    } else if (keys.is(event, "field.keep")) changeQuery({ words: box.value.trim() });
  }, true);
  on("keydown", "#gal-dates [role=menuitemradio]", (item, event) => {
    const items = all("#gal-dates [role=menuitemradio]").filter(one => one.checkVisibility()), to = keys.walk(event, "menu.walk", items, items.indexOf(item));
    if (to >= 0) { event.preventDefault(); items[to].focus(); }
  }, true);

  // ---- popovers are placed at their button; on a phone CSS makes them sheets
  addEventListener("beforetoggle", event => {
    const box = event.target, button = box.classList?.contains("gal-pop") && event.newState === "open" && $(`#gal [popovertarget=${box.id}]:not(.solid)`);
    if (!button) return;
    const place = button.getBoundingClientRect(), frame = pane().getBoundingClientRect(), isAbove = place.top > innerHeight / 2;
    const right = `${innerWidth - frame.right + 12}px`, { style } = $("#gallery");
    style.setProperty("--gal-pop", isAbove ? `auto ${right} ${innerHeight - place.top + 8}px auto` : `${place.bottom + 6}px ${right} auto auto`);
    style.setProperty("--gal-pop-high", `${(isAbove ? place.top : innerHeight - place.bottom) - 24}px`);
  }, true);
  addEventListener("toggle", event => {
    if (event.target.id === "gal-dates" && event.newState === "open") $("#gal-dates [id^=gal-time][aria-checked=true], #gal-months [aria-checked=true], #gal-time-0").focus();
  }, true);

  aivista.gallery = { cells, similarTo, query: () => query };
}

// Pictures of the gallery selected by mouse, touch, keyboard and a rectangle, and the actions on them.
{
  const gallery = aivista.gallery, keys = aivista.keys, shell = aivista.shell, { cells } = gallery;
  const MOST_REFERENCES = 14, BEGIN_PX = 5, EDGE_PX = 40, FASTEST_PX = 16;
  const selectedIds = new Set();
  let anchor = "", current = null;

  const selectedCells = () => cells().filter(cell => selectedIds.has(cell.dataset.id));
  const idsOf = list => list.map(cell => Number(cell.dataset.id));
  const star = cell => $(".gal-star", cell);
  const isStarred = cell => star(cell).getAttribute("aria-pressed") === "true";

  // ---- selecting
  const drawSelected = cell => {
    const isOn = selectedIds.has(cell.dataset.id);
    cell.classList.toggle("chosen", isOn);
    $(".gal-tick", cell).setAttribute("aria-checked", String(isOn));
  };
  const select = (cell, isOn) => {
    if (isOn) selectedIds.add(cell.dataset.id); else selectedIds.delete(cell.dataset.id);
    drawSelected(cell);
  };
  const toggle = cell => { select(cell, !selectedIds.has(cell.dataset.id)); anchor = cell.dataset.id; drawBar(); };
  const selectTo = cell => {
    const list = cells(), from = list.findIndex(one => one.dataset.id === anchor), to = list.indexOf(cell);
    if (from < 0) { toggle(cell); return; }
    for (const one of list.slice(Math.min(from, to), Math.max(from, to) + 1)) select(one, true);
    drawBar();
  };
  const selectOnly = ids => {
    const changed = cells().filter(cell => selectedIds.has(cell.dataset.id) !== ids.has(cell.dataset.id));
    for (const cell of changed) select(cell, ids.has(cell.dataset.id));
    anchor = "";
    // Called with every move of the mouse.
    if (changed.length) drawBar();
  };
  const clearSelection = () => selectOnly(new Set());
  // One cell is in the Tab order.
  const makeTabbable = cell => {
    if (current && current !== cell) for (const one of all("button", current)) one.tabIndex = -1;
    current = cell;
    if (current) for (const one of all("button", current)) one.tabIndex = 0;
  };
  // The server knows neither the selection nor the focus.
  addEventListener("aivista-patched", () => {
    const presentIds = new Set();
    for (const cell of selectedIds.size ? selectedCells() : []) { presentIds.add(cell.dataset.id); drawSelected(cell); }
    for (const id of [...selectedIds]) if (!presentIds.has(id)) selectedIds.delete(id);
    makeTabbable(current?.isConnected ? current : $("#gal-grid .gal-cell"));
    drawBar();
  });

  // ---- the bar of actions
  const drawBar = () => {
    const place = $("#gal-bar");
    if (!place) return;
    const list = selectedIds.size ? selectedCells() : [], hadFocus = !place.hidden && place.contains(document.activeElement);
    place.hidden = !list.length;
    if (!list.length) {
      for (const pop of all("#gal-tags:popover-open, #gal-kinds:popover-open")) pop.hidePopover();
      if (hadFocus) (current?.isConnected ? $(".gal-pic", current) : $("#gal-find")).focus();
      return;
    }
    $("b", place).textContent = place.dataset.chosen.replace("#", list.length);
    $("[data-gal=similar]", place).hidden = list.length !== 1;
    $("[data-gal=compare]", place).hidden = list.length !== 2 || list[0].dataset.conversation !== list[1].dataset.conversation;
    const button = $("[data-gal=star]", place), isOn = list.every(isStarred);
    button.setAttribute("aria-pressed", String(isOn));
    button.title = isOn ? place.dataset.unstar : place.dataset.star;
    button.setAttribute("aria-label", button.title);
  };

  // ---- changes; those that cannot be refused are shown at once, and reverted on failure
  const change = async (name, list, more = {}) => {
    const { patches = [] } = await shell.act(`gallery.${name}`, { ...gallery.query(), ids: idsOf(list), ...more });
    return patches.some(patch => patch.id !== "toast");
  };
  const setStars = async list => {
    const is_on = !list.every(isStarred), before = list.map(isStarred);
    const show = is => { list.forEach((cell, at) => star(cell).setAttribute("aria-pressed", String(is(at)))); drawBar(); };
    show(() => is_on);
    if (!await change("star", list, { is_on })) show(at => before[at]);
  };
  const remove = async list => {
    const every = cells(), removed = new Set(list), last = every.indexOf(list.at(-1));
    const beside = every.slice(last).find(one => !removed.has(one)) || every.slice(0, last).findLast(one => !removed.has(one));
    if (!await change("delete", list)) return;
    $("#gal-count").textContent = "";
    if (!beside?.isConnected) return;
    makeTabbable(beside);
    $(".gal-pic", beside).focus({ preventScroll: true });
  };
  addEventListener("aivista-gallery-packed", event => download(event.detail));
  const pack = (list, clean = false) => {
    if ($("#gal-kinds").matches(":popover-open")) $("#gal-kinds").hidePopover();
    const { conversation, handle } = list[0].dataset;
    if (list.length === 1) { download(`media/${encodeURIComponent(conversation)}/${encodeURIComponent(handle.replace("#", ""))}?download=1${clean ? "&clean=1" : ""}`); return; }
    shell.showToast($("#gal-bar").dataset.zipping, { stays: true });
    shell.act("gallery.pack", { ids: idsOf(list), clean });
  };

  // ---- actions that the rest of the page carries out
  const callWith = (act, list) => shell.act(`gallery.${act}`, { ids: idsOf(list) });
  // What is opened from here may belong to another conversation.
  const isHere = cell => cell.dataset.conversation === conversation();
  const toCanvas = (cell, opening, isByKey = false) => {
    if (!isHere(cell)) aivista.opening(cell.dataset.conversation, opening);
    aivista.tabs?.show("canvas", isByKey);
  };
  const open = (cell, isByKey) => toCanvas(cell, isHere(cell) ? shell.act("page.view", { arg: cell.dataset.handle }) : callWith("open", [cell]), isByKey);
  const reference = list => {
    if (list.length > MOST_REFERENCES) { shell.showToast($("#gal-bar").dataset.most, { isProblem: true }); return; }
    if (!list.every(isHere)) aivista.drafts?.carryAlong();
    callWith("reference", list);
    clearSelection();
    focusComposer();
  };

  // ---- tags
  on("submit", ".gal-tagging", (form, event) => {
    event.preventDefault();
    const field = form.elements.tag, name = field.value.trim();
    field.value = "";
    if (name) change("tag", selectedCells(), { name, is_on: true });
  }, true);
  addEventListener("toggle", event => {
    if (event.target.id !== "gal-tags" || event.newState !== "open") return;
    $("#gal-tag-options").replaceChildren();
    shell.act("gallery.tags", { ids: idsOf(selectedCells()) }, { isNewest: true });
    $("#gal-tags input").focus();
  }, true);

  // ---- pointers
  const acts = {
    tick: (button, event) => (event.shiftKey ? selectTo : toggle)(button.parentElement),
    star_one: button => setStars([button.parentElement]),
    tag_one: button => change("tag", selectedCells(), { name: button.dataset.value, is_on: button.getAttribute("aria-pressed") !== "true" }),
    open: (button, event) => {
      const cell = button.parentElement;
      if (event.shiftKey) selectTo(cell);
      else if (event.ctrlKey || event.metaKey) toggle(cell);
      else open(cell, event.detail === 0);
    },
    similar: () => { const [{ dataset }] = selectedCells(); clearSelection(); gallery.similarTo(dataset.id, dataset.handle); },
    compare: () => { const list = selectedCells(); toCanvas(list[0], callWith("compare", list)); clearSelection(); },
    reference: () => reference(selectedCells()),
    pack: () => pack(selectedCells()),
    pack_clean: () => pack(selectedCells(), true),
    star: () => setStars(selectedCells()),
    delete: () => remove(selectedCells()),
    drop: clearSelection,
  };
  on("click", "#gal [data-gal]", (button, event) => acts[button.dataset.gal]?.(button, event));
  // Shift and a click would select the text of the page.
  on("mousedown", ".gal-cell", (_, event) => { if (event.shiftKey) event.preventDefault(); });

  // ---- keys
  on("focusin", ".gal-cell", makeTabbable);
  // The cell of the row above or below whose middle is nearest: rows hold different numbers of cells.
  const verticalNeighbour = (list, at, step) => {
    const here = list[at].getBoundingClientRect(), far = box => Math.abs(box.left + box.right - here.left - here.right);
    let best = null, row = 0;
    for (let to = at + step; list[to]; to += step) {
      const box = list[to].getBoundingClientRect();
      if (step * (box.top - here.top) < 2) continue;
      if (best && Math.abs(box.top - row) > 1) break;
      if (!best || far(box) < best.far) best = { cell: list[to], far: far(box) };
      row = box.top;
    }
    return best?.cell;
  };
  const neighbour = (cell, way) => {
    const list = cells(), at = list.indexOf(cell);
    if (way === "up" || way === "down") return verticalNeighbour(list, at, way === "up" ? -1 : 1) || cell;
    return list[{ left: at - 1, right: at + 1, first: 0, last: list.length - 1 }[way]] || cell;
  };
  const moveTo = (cell, way, isReaching) => {
    const next = neighbour(cell, way);
    if (isReaching && !selectedIds.size) toggle(cell);
    $(".gal-pic", next).focus();
    next.scrollIntoView({ block: "nearest" });
    if (isReaching) selectTo(next);
  };
  const commandOf = (event, cell) => {
    const way = keys.find(event, "gallery.walk"), reached = keys.find(event, "gallery.reach"), isPicture = event.target.classList.contains("gal-pic");
    if (way || reached) return () => moveTo(cell, way || reached, Boolean(reached));
    if (keys.is(event, "gallery.all")) return () => { cells().forEach(one => select(one, true)); anchor = cell.dataset.id; drawBar(); };
    if (keys.is(event, "gallery.delete")) return () => remove(selectedIds.size ? selectedCells() : [cell]);
    // On the tick and the star beside it, Space presses these.
    if (isPicture && keys.is(event, "gallery.choose")) return () => toggle(cell);
    return isPicture && keys.is(event, "gallery.star") ? () => setStars([cell]) : null;
  };
  keys.onEscape("mode", event => {
    const isHere = selectedIds.size && (event.target.closest?.("#gallery") || event.target === document.body);
    if (isHere) clearSelection();
    return Boolean(isHere);
  });
  on("keydown", "#gallery", (_, event) => {
    if (keys.isTyping(event.target)) return;
    const undo = keys.is(event, "gallery.undo") && $("#toast [data-action='gallery.undelete']");
    if (undo) { event.preventDefault(); undo.click(); return; }
    const cell = event.target.closest(".gal-cell"), run = cell && commandOf(event, cell);
    if (run) { event.preventDefault(); run(); }
  }, true);
  // Firefox presses a button when Space is released.
  addEventListener("keyup", event => { if (keys.usesKey(event, "gallery.choose") && event.target.classList?.contains("gal-pic")) event.preventDefault(); });

  // ---- a rectangle drawn from an empty place selects the pictures that it touches
  let marquee = null;
  const emptyPlace = event => {
    const box = event.target.closest?.("#gal .gal-scroll");
    if (!box || event.target.closest(".gal-cell, .empty")) return null;
    // The scrollbar belongs to the box, too.
    return event.clientX < box.getBoundingClientRect().left + box.clientWidth ? box : null;
  };
  const endMarquee = () => {
    if (!marquee) return;
    cancelAnimationFrame(marquee.frame);
    marquee.mark.remove();
    marquee = null;
  };
  const drawMarquee = () => {
    if (!marquee) return;
    const { box, mark, from, at, kept } = marquee, frame = box.getBoundingClientRect(), was = box.scrollTop;
    marquee.frame = 0;
    const below = at.y - frame.bottom + EDGE_PX, above = frame.top + EDGE_PX - at.y;
    if (marquee.hasBegun && (below > 0 || above > 0)) box.scrollTop += below > 0 ? Math.min(below, FASTEST_PX) : -Math.min(above, FASTEST_PX);
    const to = { x: clamp(at.x - frame.left, 0, box.clientWidth), y: clamp(at.y - frame.top, 0, box.clientHeight) + box.scrollTop };
    if (!marquee.hasBegun && Math.hypot(to.x - from.x, to.y - from.y) < BEGIN_PX) return;
    const [left, right] = [from.x, to.x].sort((one, other) => one - other), [top, bottom] = [from.y, to.y].sort((one, other) => one - other);
    Object.assign(mark.style, { left: `${left}px`, top: `${top}px`, width: `${right - left}px`, height: `${bottom - top}px` });
    marquee.hasBegun = true;
    // New pictures take it out of its box.
    if (!mark.isConnected) box.append(mark);
    const [aside, down] = [frame.left, frame.top - box.scrollTop];
    const isTouched = cell => {
      const rect = cell.getBoundingClientRect();
      return rect.left < right + aside && rect.right > left + aside && rect.top < bottom + down && rect.bottom > top + down;
    };
    selectOnly(new Set([...kept, ...cells().filter(isTouched).map(cell => cell.dataset.id)]));
    if (box.scrollTop !== was) drawMarqueeSoon();
  };
  const drawMarqueeSoon = () => { marquee.frame ||= requestAnimationFrame(drawMarquee); };
  addEventListener("pointerdown", event => {
    const box = event.pointerType === "mouse" && event.button === 0 ? emptyPlace(event) : null;
    if (!box) return;
    const frame = box.getBoundingClientRect(), before = new Set(selectedIds);
    const mark = createElement("div", { className: "gal-drawn" });
    const from = { x: event.clientX - frame.left, y: event.clientY - frame.top + box.scrollTop };
    marquee = { box, mark, from, before, at: { x: event.clientX, y: event.clientY }, frame: 0, kept: event.shiftKey || event.ctrlKey || event.metaKey ? before : new Set() };
    box.setPointerCapture(event.pointerId);
  });
  addEventListener("pointermove", event => {
    if (!marquee) return;
    marquee.at = { x: event.clientX, y: event.clientY };
    drawMarqueeSoon();
  });
  addEventListener("selectstart", event => { if (marquee) event.preventDefault(); });  // Safari selects text elsewhere
  addEventListener("aivista-patched", () => { if (marquee?.hasBegun) drawMarqueeSoon(); });
  // The last move may not be drawn yet.
  addEventListener("pointerup", () => { if (marquee) { drawMarquee(); endMarquee(); } });
  for (const kind of ["pointercancel", "lostpointercapture"]) addEventListener(kind, endMarquee);
  addEventListener("keydown", event => {
    if (!marquee?.hasBegun || !keys.is(event, "page.escape")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const { before } = marquee;
    endMarquee();
    selectOnly(before);
  }, true);
}
