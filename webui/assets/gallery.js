// The gallery: finding pictures and leafing through them. Cells come from Python page by page and are appended, never
// drawn twice. What is chosen, and what is done with it, is gallery_chosen.js's; both meet in window.aivistaGallery.
(() => {
  const root = document.documentElement, keys = window.aivistaKeys;
  const $ = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const PAUSE_MS = 250, READ_AGAIN_MS = 2500, SETTLE_MS = 600, SAID_MS = 8000, COUNTED_MS = 5500, KEY = "aivista-gallery-groups";
  const PLAIN = { words: "", here: false, source: "", starred: false, model: "", shape: "", tag: "", kept: "", when: "", day_from: "", day_to: "", similar: null };
  const kept = () => { try { return localStorage.getItem(KEY) === "conversation" ? "conversation" : "day"; } catch { return "day"; } };
  let groups = kept(), state = { ...PLAIN }, next = null, asking = null, typed = 0, again = 0, counting = 0, isFilled = false, isStale = false, known = null, knownText = "", seen = "";

  const pane = () => $("#gallery .gal");
  const grid = () => $("#gallery .gal-grid");
  const cells = () => all(".gal-cell", grid());
  const word = name => pane()?.getAttribute(`data-${name}`) || "";
  const open = () => $("#top h1")?.dataset.conversation || "";
  const isShown = () => root.dataset.tab === "gallery" && root.hasAttribute("data-stage");
  const isSearch = () => Boolean(state.words || state.similar);
  const isFiltered = () => Object.keys(PLAIN).some(name => name !== "words" && state[name] !== PLAIN[name]);

  // ---- one sentence at the foot, with at most one button; it goes by itself unless somebody is at it
  let said = { timer: 0, action: null };
  const hush = () => { clearTimeout(said.timer); said = { timer: 0, action: null }; $("#gallery .gal-said")?.replaceChildren(); };
  const wait = () => { clearTimeout(said.timer); said.timer = setTimeout(hush, SAID_MS); };
  const tell = (text, { label = "", run = null, isProblem = false, stays = false } = {}) => {
    const place = $("#gallery .gal-said");
    hush();
    if (!place || !text) return;
    const line = document.createElement("p"), words = document.createElement("span");
    words.textContent = text;
    line.className = isProblem ? "bad" : "ok";
    if (isProblem) line.setAttribute("role", "alert");
    line.append(words);
    if (run) {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "b line", textContent: label });
      button.addEventListener("click", () => { hush(); run(); });
      line.append(button);
      said.action = run;
    }
    line.addEventListener("pointerenter", () => clearTimeout(said.timer));
    line.addEventListener("focusin", () => clearTimeout(said.timer));
    if (!stays) { line.addEventListener("pointerleave", wait); line.addEventListener("focusout", wait); }
    place.append(line);
    if (!stays) wait();
  };
  const undo = () => { const { action } = said; if (action) { hush(); action(); } return Boolean(action); };

  // ---- Python is asked; whatever goes wrong is one sentence
  const ask = async (path, options = {}) => {
    const answer = await fetch(`aivista/gallery/${path}`, options).catch(error => { throw options.signal?.aborted ? error : new Error(word("failed")); });
    const body = await answer.json().catch(() => null);
    if (!answer.ok || !body) throw new Error(body?.error || word("failed"));
    return body;
  };
  const send = (path, body) => ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const query = after => {
    const { words, here, source, starred, model, shape, tag, kept, day_from, day_to, similar } = state;
    const asked = { words, source, model, shape, tag, kept, groups, day_from, day_to, conversation: here ? open() || "-" : "", starred: starred ? "1" : "", similar: similar?.id || "", after: after || "" };
    return new URLSearchParams(Object.entries(asked).filter(([, value]) => value));
  };

  // ---- cells stand in groups, of a day or of a conversation; what a search found is one, without a name
  const parsed = html => { const box = document.createElement("template"); box.innerHTML = html; return [...box.content.children]; };
  const idsOf = list => list.map(cell => cell.dataset.id).join();
  const groupOf = cell => (isSearch() ? "" : groups === "conversation" ? cell.dataset.conversation : new Date(cell.dataset.at).toDateString());
  const nameOf = cell => {
    if (groups === "conversation") return cell.dataset.title;
    const at = new Date(cell.dataset.at), now = new Date(), before = new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1);
    const near = { [now.toDateString()]: "today", [before.toDateString()]: "yesterday" }[at.toDateString()];
    const form = { weekday: "long", day: "numeric", month: "long", ...(at.getFullYear() === now.getFullYear() ? {} : { year: "numeric" }) };
    return near ? word(near) : new Intl.DateTimeFormat(word("language"), form).format(at);
  };
  const begun = (cell, group) => {
    const section = document.createElement("section"), row = document.createElement("div");
    section.className = "gal-group";
    section.dataset.group = group;
    row.className = "gal-row";
    row.setAttribute("role", "list");
    row.setAttribute("aria-label", group ? nameOf(cell) : word("label"));
    if (group) section.append(Object.assign(document.createElement("h3"), { textContent: nameOf(cell), dir: "auto" }));
    section.append(row);
    return section;
  };
  const put = (cell, next = null) => {
    const group = groupOf(cell), last = grid().lastElementChild, isLast = last?.dataset.group === group;
    let section = isLast ? last : all(".gal-group", grid()).find(one => one.dataset.group === group);
    if (!section) grid().insertBefore(section = begun(cell, group), next?.isConnected ? next.closest(".gal-group") : null);
    const row = section.lastElementChild;
    row.insertBefore(cell, next?.parentElement === row ? next : null);
  };
  // A conversation is named a moment after its first picture, and renamed at any time.
  const rename = cell => {
    const heading = groups === "conversation" && $("h3", cell.closest(".gal-group"));
    if (heading && heading.textContent !== cell.dataset.title) { heading.textContent = cell.dataset.title; heading.nextElementSibling.setAttribute("aria-label", cell.dataset.title); }
  };
  const tidy = () => { for (const one of all(".gal-group", grid())) if (!$(".gal-cell", one)) one.remove(); };
  const after = cell => cell.nextElementSibling || $(".gal-cell", cell.closest(".gal-group").nextElementSibling || document.createElement("i"));

  // ---- pages
  const settle = (page, isMore = false) => {
    next = page.next;
    const count = page.found, isEmpty = !$(".gal-cell", grid());
    $("#gallery .gal-count").textContent = [count === null ? "" : count === 1 ? word("found-one") : word("found").replace("#", count), page.is_whole ? "" : word("reading")].filter(Boolean).join(" · ");
    $("#gallery .gal-none").hidden = !isEmpty || isFiltered() || Boolean(state.words);
    $("#gallery .gal-nothing").hidden = !isEmpty || !(isFiltered() || state.words);
    clearTimeout(again);
    again = page.is_whole ? 0 : setTimeout(freshen, READ_AGAIN_MS);
    // A further page changes nothing of what is there: its work must not grow with the pages before it.
    if (!isMore) window.aivistaGallery.chosen?.settle();
    watchEnd();
  };
  const show = page => {
    const box = $("#gallery .gal-scroll");
    grid().replaceChildren();
    for (const cell of parsed(page.cells)) put(cell);
    box.scrollTop = 0;
    // The grid ends where the box above it does, whatever a scrollbar takes here.
    box.style.paddingRight = `${Math.max(2, parseFloat(getComputedStyle(box).paddingLeft) - box.offsetWidth + box.clientWidth)}px`;
    settle(page);
  };
  const fetching = async (after, use) => {
    asking?.abort();
    const mine = asking = new AbortController();
    if (!after) grid().setAttribute("aria-busy", "true");
    try {
      const page = await ask(`page?${query(after)}`, { signal: mine.signal });
      if (asking !== mine) return;
      asking = null;
      use(page);
    } catch (error) {
      if (mine.signal.aborted) return;
      asking = null;
      tell(error.message, { isProblem: true, stays: true, label: word("retry"), run: () => fetching(after, use) });
    } finally {
      if (!asking) grid().removeAttribute("aria-busy");
      // What came while this was asked is not in its answer.
      if (!asking && isStale && isShown() && $("#gallery .gal-scroll").scrollTop <= 40) read();
    }
  };
  const reload = () => { clearTimeout(typed); typed = 0; isStale = false; mark(); return fetching(null, show); };
  const more = () => {
    if (!next || asking) return;
    fetching(next, page => {
      // A conversation that goes on moves to the front: what follows it may be here already.
      const there = new Set(cells().map(cell => cell.dataset.id));
      for (const cell of parsed(page.cells)) if (!there.has(cell.dataset.id)) put(cell);
      settle(page, true);
    });
  };
  let end = null;
  const watchEnd = () => {
    const place = $("#gallery .gal-end");
    // An observer speaks only when something changes: after a page the end may still be in sight.
    end?.disconnect();
    end = new IntersectionObserver(entries => { if (entries.some(one => one.isIntersecting)) more(); }, { root: $("#gallery .gal-scroll"), rootMargin: "1400px 0px" });
    end.observe(place);
  };

  // ---- what has come meanwhile is put in its place; every cell that is there already stays
  const merge = page => {
    const fresh = parsed(page.cells), own = cells(), there = new Map(own.map(cell => [cell.dataset.id, cell]));
    const last = fresh.findLastIndex(cell => there.has(cell.dataset.id));
    for (const cell of fresh) {
      const same = there.get(cell.dataset.id);
      if (same) { same.dataset.title = cell.dataset.title; rename(same); }
    }
    if (last < 0 || page.found !== null || groups === "conversation") {
      const isMore = own.length > fresh.length;
      if (idsOf(own.slice(0, fresh.length)) !== idsOf(fresh) || (isMore && !page.next)) show(page); else settle(isMore ? { ...page, next } : page);
      return;
    }
    const end = own.indexOf(there.get(fresh[last].dataset.id)), isLast = end === own.length - 1;
    const front = fresh.slice(0, isLast ? fresh.length : last + 1).map(cell => {
      const same = there.get(cell.dataset.id);
      if (same) patch(same, cell.dataset.starred === "true", cell.dataset.tags);
      return same || cell;
    });
    const wanted = new Set(front);
    for (const cell of own.slice(0, end + 1)) if (!wanted.has(cell)) cell.remove();
    front.reduceRight((next, cell) => { if (!cell.isConnected) put(cell, next); return cell; }, own[end + 1] || null);
    tidy();
    settle(isLast ? page : { ...page, next });
  };
  const freshen = () => {
    // The counts may be some seconds old, and a conversation is shown a moment before its pictures are kept.
    clearTimeout(counting);
    counting = setTimeout(read, COUNTED_MS);
    read();
  };
  const read = () => {
    if (!pane()) return;
    facets();
    if (!isFilled) { isFilled = true; reload(); return; }
    if (asking || $("#gallery .gal-scroll").scrollTop > 40) { isStale = true; return; }
    isStale = false;
    fetching(null, merge);
  };
  const patch = (cell, isStarred, tags) => {
    cell.dataset.starred = String(isStarred);
    cell.dataset.tags = tags;
    $(".gal-star", cell).setAttribute("aria-pressed", String(isStarred));
  };

  // ---- what there is to choose from
  const option = (name, value, label, count) => {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "chip toggle" }), number = document.createElement("small");
    Object.assign(button.dataset, { gal: "option", facet: name, value });
    number.textContent = count;
    button.append(label, " ", number);
    return button;
  };
  const monthName = month => new Intl.DateTimeFormat(word("language"), { year: "numeric", month: "long", timeZone: "UTC" }).format(new Date(`${month}-15T00:00:00Z`));
  const fill = () => {
    const counts = { all: known.total, here: known.here, uploaded: known.sources.uploaded || 0, edited: known.sources.edited || 0, starred: known.starred };
    for (const [name, count] of Object.entries(counts)) $(`#gallery [data-gal=chip][data-value=${name}] small`).textContent = count;
    for (const [name, values] of Object.entries({ model: known.models, shape: known.shapes, tag: known.tags })) {
      const section = $(`#gal-more [data-facet=${name}]`), entries = Object.entries(values);
      section.hidden = !entries.length;
      $(".gal-options", section).replaceChildren(...entries.map(([value, count]) => option(name, value, known.names[value] ?? value, count)));
    }
    $("#gal-dates .gal-months").replaceChildren(...Object.entries(known.months).map(([month, count]) => {
      const item = Object.assign(document.createElement("button"), { type: "button", tabIndex: -1 }), label = document.createElement("span"), number = document.createElement("small");
      item.setAttribute("role", "menuitemradio");
      Object.assign(item.dataset, { gal: "when", value: month });
      label.textContent = monthName(month);
      number.textContent = count;
      item.append(label, number);
      return item;
    }));
    mark();
  };
  const facets = async () => {
    try {
      const found = await ask(`facets?${new URLSearchParams({ conversation: open() })}`), text = JSON.stringify(found);
      if (text === knownText) return;
      [known, knownText] = [found, text];
      fill();
    } catch { /* the pictures are there without it, and what fails with them says so */ }
  };

  // ---- filters: what is asked, and how the page shows it
  const dayText = day => new Intl.DateTimeFormat(word("language"), { dateStyle: "medium", timeZone: "UTC" }).format(new Date(`${day}T12:00:00Z`));
  const dateText = () => {
    const { when, day_from: first, day_to: last } = state;
    if (when) return $(`#gal-dates [data-value="${when}"] span`)?.textContent || when;
    if (first && last) return word("between").replace("*", dayText(first)).replace("*", dayText(last));
    return first ? word("since").replace("*", dayText(first)) : last ? word("until").replace("*", dayText(last)) : "";
  };
  const mark = () => {
    const { here, source, starred, similar, when } = state, dates = dateText();
    const pressed = { all: !isFiltered(), here, uploaded: source === "uploaded", edited: source === "edited", starred };
    for (const chip of all("#gallery [data-gal=chip]")) chip.setAttribute("aria-pressed", String(pressed[chip.dataset.value]));
    for (const one of all("#gal-more [data-gal=option]")) one.setAttribute("aria-pressed", String(state[one.dataset.facet] === one.dataset.value));
    for (const one of all("#gal-dates [data-gal=when]")) one.setAttribute("aria-checked", String(one.dataset.value === when && (Boolean(when) || !dates)));
    for (const one of all("#gal-more [data-day]")) { const day = state[`day_${one.dataset.day}`]; if (one.value !== day) one.value = day; }
    for (const one of all("#gal-dates [data-gal=group]")) one.setAttribute("aria-checked", String(one.dataset.value === groups));
    $("#gal-dates .gal-groups").hidden = isSearch();
    const on = { similar: similar ? word("similar").replace("*", similar.handle) : "", model: known?.names[state.model] ?? state.model, shape: state.shape, tag: state.tag, kept: state.kept && word("kept"), dates };
    const row = $("#gallery .gal-on"), shown = Object.entries(on).filter(([, label]) => label);
    row.hidden = !shown.length;
    row.replaceChildren(...shown.map(([name, label]) => {
      const chip = Object.assign(document.createElement("button"), { type: "button", className: "chip toggle", title: word("remove").replace("*", label) });
      Object.assign(chip.dataset, { gal: "off", value: name });
      chip.setAttribute("aria-pressed", "true");
      chip.setAttribute("aria-label", chip.title);
      const name_ = document.createElement("span");
      name_.textContent = label;
      chip.append(name_, $("#gallery .gal-drop .i").cloneNode(true));
      return chip;
    }));
    const hidden = [state.model, state.shape, state.tag, state.kept].filter(Boolean).length;
    $("#gallery .gal-sift small").textContent = hidden || "";
    const order = isSearch() ? word("best") : word("newest");
    $("#gallery .gal-order span").textContent = dates || order;
  };
  const turn = change => { state = { ...state, ...change }; reload(); };
  const clear = () => { const box = $("#gal-find"); if (box) box.value = ""; state = { ...PLAIN }; reload(); };
  const dayOf = moment => moment.toISOString().slice(0, 10);
  const within = value => {
    if (!value) return { when: "", day_from: "", day_to: "" };
    if (value.includes("-")) {
      const [year, month] = value.split("-").map(Number);
      return { when: value, day_from: `${value}-01`, day_to: dayOf(new Date(Date.UTC(year, month, 0))) };
    }
    // Days are told in UTC: the day on which the person's own day began there, so that none of theirs is missing.
    const start = new Date();
    start.setHours(0, 0, 0, 0);
    start.setDate(start.getDate() - Number(value) + 1);
    return { when: value, day_from: dayOf(start), day_to: "" };
  };
  const CHIPS = {
    all: () => ({ ...PLAIN, words: state.words }),
    here: () => ({ here: !state.here }),
    uploaded: () => ({ source: state.source === "uploaded" ? "" : "uploaded" }),
    edited: () => ({ source: state.source === "edited" ? "" : "edited" }),
    starred: () => ({ starred: !state.starred }),
  };
  const acts = {
    chip: button => turn(CHIPS[button.dataset.value]()),
    option: button => { const { facet, value } = button.dataset; turn({ [facet]: state[facet] === value ? "" : value }); },
    when: button => { $("#gal-dates").hidePopover(); turn(within(button.dataset.value)); },
    group: button => {
      $("#gal-dates").hidePopover();
      groups = button.dataset.value;
      try { localStorage.setItem(KEY, groups); } catch { /* private window: this page only */ }
      reload();
    },
    off: button => { const name = button.dataset.value; turn(name === "dates" ? within("") : { [name]: PLAIN[name] }); $("#gallery .gal-on button, #gal-find").focus(); },
    clear,
  };

  addEventListener("click", event => {
    const button = event.target.closest?.("#gallery [data-gal]");
    if (button) acts[button.dataset.gal]?.(button);
  });
  const typing = event => {
    if (event.target.id !== "gal-find" || event.isComposing) return;
    clearTimeout(typed);
    typed = setTimeout(() => { typed = 0; const words = event.target.value.trim(); if (words !== state.words) turn({ words }); }, PAUSE_MS);
  };
  addEventListener("input", typing);
  addEventListener("compositionend", typing);
  addEventListener("change", event => {
    const day = event.target.closest?.("#gal-more [data-day]")?.dataset.day;
    if (day) turn({ when: "", [`day_${day}`]: event.target.value });
  });
  addEventListener("keydown", event => {
    const box = event.target.id === "gal-find" ? event.target : null;
    if (box && keys.is(event, "field.leave") && box.value) {
      event.preventDefault();
      event.stopPropagation();
      box.value = "";
      turn({ words: "" });
    } else if (box && keys.is(event, "field.keep")) { clearTimeout(typed); turn({ words: box.value.trim() }); }
    const item = event.target.closest?.("#gal-dates [role=menuitemradio]"), items = item ? all("#gal-dates [role=menuitemradio]").filter(one => one.checkVisibility()) : [];
    const to = item ? keys.walk(event, "menu.walk", items, items.indexOf(item)) : -1;
    if (to >= 0) { event.preventDefault(); items[to].focus(); }
  }, true);

  // ---- popovers stand where their button is; on a phone they are sheets, by CSS
  addEventListener("beforetoggle", event => {
    const box = event.target, button = box.classList?.contains("gal-pop") && $(`#gallery [popovertarget=${box.id}]:not(.solid)`);
    if (!button) return;
    button.setAttribute("aria-expanded", String(event.newState === "open"));
    const place = button.getBoundingClientRect(), frame = pane().getBoundingClientRect(), isAbove = place.top > innerHeight / 2;
    box.style.inset = isAbove ? `auto ${innerWidth - frame.right + 12}px ${innerHeight - place.top + 8}px auto` : `${place.bottom + 6}px ${innerWidth - frame.right + 12}px auto auto`;
    box.style.maxHeight = `${(isAbove ? place.top : innerHeight - place.bottom) - 24}px`;
  }, true);
  addEventListener("toggle", event => {
    if (event.target.id === "gal-dates" && event.newState === "open") $("#gal-dates [data-gal=when][aria-checked=true], #gal-dates [data-gal=when]").focus();
  }, true);

  // ---- when it is looked at, when another conversation is opened, when a picture has come
  addEventListener("aivista-tab", event => { if (event.detail === "gallery") freshen(); });
  addEventListener("scroll", event => {
    if (isStale && event.target.classList?.contains("gal-scroll") && event.target.scrollTop <= 40) freshen();
  }, true);
  let looking = 0;  // one look at the page for many changes of it
  const look = () => {
    looking = 0;
    const now = `${open()} ${all("#chat .pic .frame:not(.pending), #chat .refs img").length}`;
    if (now === seen) return;
    const isOther = now.split(" ")[0] !== seen.split(" ")[0];
    seen = now;
    window.aivistaGallery.chosen?.bar();
    if (!isFilled) return;
    if (!isShown()) { isStale = true; return; }
    if (isOther && state.here) { facets(); reload(); } else freshen();
  };
  const observe = () => {
    const shell = $("#center"), place = $("#gallery");
    if (!shell || !place) { setTimeout(observe, 200); return; }
    new MutationObserver(() => { looking ||= setTimeout(look, SETTLE_MS); }).observe(shell, { childList: true, subtree: true, attributeFilter: ["data-conversation"] });
    // The tab may have been chosen before its words were there.
    new MutationObserver((_, watcher) => { if (pane()) { watcher.disconnect(); if (isShown()) freshen(); } }).observe(place, { childList: true, subtree: true });
  };
  if (document.body) observe(); else addEventListener("DOMContentLoaded", observe);

  window.aivistaGallery = {
    send, tell, hush, undo, word, open, grid, cells, patch, facets, tidy, after, put, settle: () => settle({ next, found: null, is_whole: true }),
    tags: () => Object.entries(known?.tags || {}),
    similarTo: (id, handle) => { const box = $("#gal-find"); if (box) box.value = ""; state = { ...PLAIN, similar: { id, handle } }; reload(); },
    option,
  };
})();
