// Pictures of the gallery chosen, by mouse, touch and keyboard, and what is done with them.
(() => {
  const $ = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const gallery = window.aivistaGallery, keys = window.aivistaKeys;
  const MOST_REFERENCES = 14;
  const chosen = new Set();
  let anchor = null, current = null;

  const cellOf = id => $(`.gal-cell[data-id="${id}"]`, gallery.grid());
  const picked = () => gallery.cells().filter(cell => chosen.has(cell.dataset.id));
  const idsOf = list => list.map(cell => Number(cell.dataset.id));
  const narrow = () => matchMedia("(max-width: 760px)").matches;

  // ---- choosing
  const paint = cell => {
    const isOn = chosen.has(cell.dataset.id);
    cell.classList.toggle("chosen", isOn);
    $(".gal-tick", cell).setAttribute("aria-checked", String(isOn));
  };
  const choose = (cell, isOn) => {
    if (isOn) chosen.add(cell.dataset.id); else chosen.delete(cell.dataset.id);
    paint(cell);
  };
  const toggle = cell => { choose(cell, !chosen.has(cell.dataset.id)); anchor = cell; bar(); };
  const reach = cell => {
    const list = gallery.cells(), from = list.indexOf(anchor), to = list.indexOf(cell);
    if (from < 0) { toggle(cell); return; }
    for (const one of list.slice(Math.min(from, to), Math.max(from, to) + 1)) choose(one, true);
    bar();
  };
  const drop = () => { const was = picked(); chosen.clear(); was.forEach(paint); anchor = null; bar(); };
  const settle = () => {
    const there = new Map(chosen.size ? gallery.cells().map(cell => [cell.dataset.id, cell]) : []);
    for (const id of [...chosen]) if (there.has(id)) paint(there.get(id)); else chosen.delete(id);
    if (!current?.isConnected) rove($(".gal-cell", gallery.grid()));
    bar();
  };

  // ---- the bar of what can be done
  const bar = () => {
    const place = $("#gallery .gal-bar");
    if (!place) return;
    const list = chosen.size ? picked() : [], had = !place.hidden && place.contains(document.activeElement);
    place.hidden = !list.length;
    place.closest(".gal").classList.toggle("choosing", Boolean(list.length));
    if (!list.length) {
      for (const pop of all("#gal-tags:popover-open, #gal-kinds:popover-open")) pop.hidePopover();
      if (had) (current?.isConnected ? $(".gal-pic", current) : $("#gal-find")).focus();
      return;
    }
    $("b", place).textContent = gallery.word("chosen").replace("#", list.length);
    const isPair = list.length === 2 && list[0].dataset.conversation === list[1].dataset.conversation;
    const isStarred = list.every(cell => cell.dataset.starred === "true");
    $("[data-gal=similar]", place).hidden = list.length !== 1;
    $("[data-gal=compare]", place).hidden = !isPair;
    const star = $("[data-gal=star]", place), label = gallery.word(isStarred ? "unstar" : "star");
    star.setAttribute("aria-pressed", String(isStarred));
    star.title = label;
    star.setAttribute("aria-label", label);
  };

  // ---- the open conversation and the stage show pictures of it as well
  const shownAnew = list => {
    if (list.some(cell => cell.dataset.conversation === gallery.open())) dispatchEvent(new CustomEvent("aivista-pictures"));
  };

  // ---- changes: shown at once where that is sure, taken back when it failed
  const change = async (act, list, tag = "") => {
    try {
      const done = await gallery.send("change", { act, ids: idsOf(list), tag });
      const there = new Map(gallery.cells().map(cell => [Number(cell.dataset.id), cell]));
      for (const one of done.items) if (there.has(one.id)) gallery.patch(there.get(one.id), one.is_starred, one.tags.join("\n"));
      if (act === "delete") shownAnew(list);
      gallery.facets();
      bar();
      return done;
    } catch (error) {
      gallery.tell(error.message, { isProblem: true });
      return null;
    }
  };
  const star = async list => {
    const isOn = !list.every(cell => cell.dataset.starred === "true"), before = list.map(cell => cell.dataset.starred === "true");
    list.forEach(cell => gallery.patch(cell, isOn, cell.dataset.tags));
    bar();
    if (!await change(isOn ? "star" : "unstar", list)) { list.forEach((cell, at) => gallery.patch(cell, before[at], cell.dataset.tags)); bar(); }
  };
  const remove = async list => {
    const done = await change("delete", list);
    if (!done) return;
    // From the last on: each one's neighbour is there again when it comes back before it.
    const gone = [...list].reverse().map(cell => ({ cell, after: gallery.after(cell) }));
    const rest = gallery.cells(), next = gone[0].after || rest[rest.indexOf(list[0]) - 1];
    for (const { cell } of gone) { chosen.delete(cell.dataset.id); cell.remove(); }
    gallery.tidy();
    anchor = null;
    gallery.settle();
    if (next?.isConnected) { rove(next); $(".gal-pic", next).focus({ preventScroll: true }); }
    gallery.tell(done.said, { label: gallery.word("undo"), run: () => restore(gone, idsOf(list)) });
  };
  const restore = async (gone, ids) => {
    let done;
    try { done = await gallery.send("change", { act: "undelete", ids }); } catch (error) {
      gallery.tell(error.message, { isProblem: true, stays: true, label: gallery.word("retry"), run: () => restore(gone, ids) });
      return;
    }
    const back = new Set(done.ids.map(String));
    shownAnew(gone.map(one => one.cell));
    for (const { cell, after } of gone) {
      if (!back.has(cell.dataset.id) || cellOf(cell.dataset.id)) continue;
      paint(cell);
      gallery.put(cell, after);
    }
    gallery.tidy();
    gallery.facets();
    gallery.settle();
    gallery.tell(done.said);
  };
  const save = address => {
    const link = Object.assign(document.createElement("a"), { href: address, download: "", hidden: true });
    document.body.append(link);
    link.click();
    link.remove();
  };
  const pack = async (list, isClean = false) => {
    if ($("#gal-kinds").matches(":popover-open")) $("#gal-kinds").hidePopover();
    if (list.length === 1) {
      const { conversation, handle } = list[0].dataset;
      save(`media/${encodeURIComponent(conversation)}/${encodeURIComponent(handle.replace("#", ""))}?download=1${isClean ? "&clean=1" : ""}`);
      return;
    }
    gallery.tell(gallery.word("zipping"), { stays: true });
    try {
      const ready = await gallery.send("zip", { ids: idsOf(list), clean: isClean });
      save(ready.address);
      gallery.tell(ready.said);
    } catch (error) { gallery.tell(error.message, { isProblem: true }); }
  };

  // ---- what the rest of the page does with them
  const act = (name, list) => window.aivistaGalleryBus?.act({ act: name, ids: idsOf(list) });
  const open = (cell, isByKey) => {
    const { conversation, handle } = cell.dataset;
    if (conversation === gallery.open()) window.aivista?.act({ act: "view", arg: handle }); else act("open", [cell]);
    window.aivistaTabs?.show("canvas", isByKey);
  };
  const compare = list => { act("compare", list); window.aivistaTabs?.show("canvas"); drop(); };
  const reference = list => {
    if (list.length > MOST_REFERENCES) { gallery.tell(gallery.word("most"), { isProblem: true }); return; }
    if (list.some(cell => cell.dataset.conversation !== gallery.open())) window.aivistaDrafts?.goAlong();
    act("reference", list);
    drop();
    if (narrow()) window.aivistaTabs?.show("chat");
    $("#box textarea")?.focus();
  };

  // ---- tags
  const tagsOf = cell => (cell.dataset.tags ? cell.dataset.tags.split("\n") : []);
  const showTags = () => {
    const list = picked(), names = new Map(gallery.tags());
    for (const cell of list) for (const name of tagsOf(cell)) if (!names.has(name)) names.set(name, 1);
    $("#gal-tags .gal-options").replaceChildren(...[...names].map(([name, count]) => {
      const button = gallery.option("tag", name, name, count), having = list.filter(cell => tagsOf(cell).includes(name)).length;
      button.dataset.gal = "tag_one";
      button.setAttribute("aria-pressed", having === list.length ? "true" : having ? "mixed" : "false");
      return button;
    }));
  };
  const tag = async (name, isOn) => {
    const done = await change(isOn ? "tag" : "untag", picked(), name);
    if (!done) return;
    await gallery.facets();
    const at = document.activeElement?.dataset?.value;
    showTags();
    if (at !== undefined) all("#gal-tags [data-gal=tag_one]").find(one => one.dataset.value === at)?.focus();
    gallery.tell(done.said);
  };
  addEventListener("submit", event => {
    const form = event.target.closest?.(".gal-tagging");
    if (!form) return;
    event.preventDefault();
    const field = form.elements.tag, name = field.value.trim();
    field.value = "";
    if (name) tag(name, true);
  }, true);
  addEventListener("toggle", event => {
    if (event.target.id === "gal-tags" && event.newState === "open") { showTags(); $("#gal-tags input").focus(); }
  }, true);

  // ---- hands
  const acts = {
    tick: (button, event) => (event.shiftKey ? reach : toggle)(button.parentElement),
    star_one: button => star([button.parentElement]),
    tag_one: button => tag(button.dataset.value, button.getAttribute("aria-pressed") !== "true"),
    open: (button, event) => {
      const cell = button.parentElement;
      if (event.shiftKey) reach(cell);
      else if (event.ctrlKey || event.metaKey) toggle(cell);
      else open(cell, event.detail === 0);
    },
    similar: () => { const [cell] = picked(); drop(); gallery.similarTo(cell.dataset.id, cell.dataset.handle); },
    compare: () => compare(picked()),
    reference: () => reference(picked()),
    zip: () => pack(picked()),
    zip_clean: () => pack(picked(), true),
    star: () => star(picked()),
    delete: () => remove(picked()),
    drop,
  };
  addEventListener("click", event => {
    const button = event.target.closest?.("#gallery [data-gal]");
    if (button) acts[button.dataset.gal]?.(button, event);
  });
  // Shift and a click would mark the words of the page.
  addEventListener("mousedown", event => { if (event.shiftKey && event.target.closest?.(".gal-cell")) event.preventDefault(); });

  const rove = cell => {
    if (current === cell) return;
    if (current) for (const one of current.children) one.tabIndex = -1;
    current = cell;
    if (current) for (const one of current.children) one.tabIndex = 0;
  };
  addEventListener("focusin", event => { const cell = event.target.closest?.(".gal-cell"); if (cell) rove(cell); });
  // The cell of the row above or below whose middle is nearest: rows hold more or fewer of them.
  const across = (list, at, step) => {
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
  const beside = (cell, way) => {
    const list = gallery.cells(), at = list.indexOf(cell), step = way === "up" ? -1 : 1;
    if (way === "up" || way === "down") return across(list, at, step) || cell;
    return list[{ left: at - 1, right: at + 1, first: 0, last: list.length - 1 }[way]] || cell;
  };
  const go = (cell, way, isReaching) => {
    const next = beside(cell, way);
    if (isReaching && !chosen.size) toggle(cell);
    $(".gal-pic", next).focus();
    next.scrollIntoView({ block: "nearest" });
    if (isReaching) reach(next);
  };
  const runOf = (event, cell) => {
    const way = keys.find(event, "gallery.walk"), reached = keys.find(event, "gallery.reach"), isPicture = event.target.classList.contains("gal-pic");
    if (way || reached) return () => go(cell, way || reached, Boolean(reached));
    if (keys.is(event, "gallery.all")) return () => { gallery.cells().forEach(one => choose(one, true)); anchor = cell; bar(); };
    if (keys.is(event, "gallery.delete")) return () => remove(chosen.size ? picked() : [cell]);
    // On the tick and the star beside it the space bar presses these.
    if (isPicture && keys.is(event, "gallery.choose")) return () => toggle(cell);
    return isPicture && keys.is(event, "gallery.star") ? () => star([cell]) : null;
  };
  keys.closes("mode", event => {
    const isHere = chosen.size && (event.target.closest?.("#gallery") || event.target === document.body);
    if (isHere) drop();
    return Boolean(isHere);
  });
  addEventListener("keydown", event => {
    if (!event.target.closest?.("#gallery") || keys.isTyping(event.target)) return;
    if (keys.is(event, "gallery.undo") && gallery.undo()) { event.preventDefault(); return; }
    const cell = event.target.closest(".gal-cell"), run = cell && runOf(event, cell);
    if (run) { event.preventDefault(); run(); }
  }, true);
  // Firefox presses a button when the space bar comes up again.
  addEventListener("keyup", event => { if (keys.lifts(event, "gallery.choose") && event.target.classList?.contains("gal-pic")) event.preventDefault(); });

  const only = ids => {
    const changed = gallery.cells().filter(cell => chosen.has(cell.dataset.id) !== ids.has(cell.dataset.id));
    for (const cell of changed) choose(cell, ids.has(cell.dataset.id));
    anchor = null;
    // It is asked with every move of the mouse.
    if (changed.length) bar();
  };
  gallery.chosen = { settle, bar, ids: () => new Set(chosen), only };
})();
