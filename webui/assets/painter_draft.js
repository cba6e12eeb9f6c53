// What the painter gives to the next message: two hidden fields of the page, `mask` and `expand`, which Send takes along
// and Python empties, or fills again after a failure; the mark of the picture; and the last mask of each. The
// draft is what was painted last; masks of `others`, pictures of this conversation painted before, go along with it.
(() => {
  const painter = window.aivistaPainter;
  const { $, all, word } = painter;

  // ---- the hidden fields
  const read = name => $(`#${name}`).value;
  const write = (name, value) => { $(`#${name}`).value = value; };
  addEventListener("aivista-painted", event => { for (const [name, value] of Object.entries(event.detail)) write(name, value); });

  // ---- the last mask of each picture, for as long as the tab is open
  const shelf = ({ conversation, handle }) => `aivista-mask ${conversation} ${handle}`;
  const keep = (picture, value) => { try { sessionStorage.setItem(shelf(picture), value); } catch { /* no room: the mask is in the field, only not kept for later */ } };
  const kept = () => { try { return sessionStorage.getItem(shelf(painter.sheet)) || ""; } catch { return ""; } };
  const offered = () => kept() && kept() !== drafted(painter.sheet.handle)?.value ? kept() : "";

  // ---- the draft: what lies in a field for the next message, and the mark of its picture in the composer
  painter.draft = null;
  let others = [], taken = null, claimed = "", marked = "", released = "";
  const drafted = handle => [painter.draft, ...others].find(one => one?.handle === handle) || null;
  const wired = ({ value }) => others.length ? `[${[value, ...others.map(one => one.value)].join()}]` : value;
  const wire = draft => write(draft.name, wired(draft));
  const chip = () => $("#ctx .ctx[data-handle]");
  const act = (name, handle) => window.aivistaShell.act(`page.${name}`, { arg: handle });
  const claim = handle => {
    if (painter.isNew(handle)) { release(); return; }
    if (claimed === handle || chip()?.dataset.handle === handle) return;
    claimed = marked = handle;
    act("edit", handle);
  };
  const release = () => {  // one picture is changed at a time: a new one takes the mark from another
    const editing = chip()?.dataset.handle;
    claimed = marked = "";
    if (!editing || editing === released) return;
    released = editing;
    act("drop", editing);
  };
  // Where a new picture stands among the files, and what the thread shows before it: by them it is found in the thread.
  const locate = draft => {
    if (painter.isNew(draft.handle)) Object.assign(draft, painter.files(draft.handle), { known: all("#chat .ref").map(one => one.dataset.arg) });
  };
  const put = (name, body, share = "") => {
    const { conversation, handle, source } = painter.sheet, value = body ? JSON.stringify({ handle: painter.wired(handle), ...body }) : "";
    const stay = [...others, painter.draft].filter(one => one?.name === "mask" && one.handle !== handle && !painter.isNew(one.handle));
    others = name === "mask" && !painter.isNew(handle) ? stay : [];
    painter.draft = value ? { name, value, share, conversation, handle, source } : null;
    taken = null;
    if (!value) { settleOn(others.at(-1), handle); return; }
    write(name === "mask" ? "expand" : "mask", "");
    wire(painter.draft);
    locate(painter.draft);
    if (name === "mask" && !painter.isNew(handle)) keep(painter.sheet, value);
    claim(handle);
    note();
  };
  // What was painted over a picture is given up: what was painted before it, if anything was, is the draft again.
  const settleOn = (draft, left) => {
    others = others.filter(one => one !== draft);
    painter.draft = draft || null;
    if (draft) { wire(draft); claim(draft.handle); } else for (const name of ["mask", "expand"]) write(name, "");
    if (!draft && marked === left) { marked = claimed = ""; act("drop", left); }
    note();
  };
  const giveUp = handle => {
    if (painter.sheet?.handle === handle) painter.wipe();
    if (painter.draft?.handle === handle) { marked = ""; settleOn(others.at(-1), handle); return; }
    others = others.filter(one => one.handle !== handle);
    if (painter.draft) wire(painter.draft);
    note();
  };
  const putMask = (body, share) => { if (body || drafted(painter.sheet.handle)?.name === "mask") put("mask", body, share); };
  const putGrowth = growth => { if (growth || painter.draft?.name === "expand") put("expand", growth); };
  const forget = () => {
    painter.draft = taken = null;
    others = [];
    claimed = marked = released = "";
    write("mask", "");
    write("expand", "");
    painter.wipe();
  };
  const note = () => {
    const { draft } = painter, place = chip(), label = place?.previousElementSibling, own = draft && place?.dataset.handle === draft.handle;
    painter.noteNew();
    noteOthers();
    if (!place) return;
    const text = own && draft.name === "mask" ? `· ${word("maskNote", { share: draft.share })}` : "";
    if (place.querySelector("small").textContent !== text) place.querySelector("small").textContent = text;
    const verb = own && draft.name === "expand" ? label.dataset.expanding : label.dataset.editing;
    if (label.textContent !== verb) label.textContent = verb;
  };

  // ---- the line of the other pictures: beside Python's own, which is rendered anew after every turn
  let line = null, told = "";
  const noteOthers = () => {
    const template = $("#pt-also"), context = $("#context"), now = JSON.stringify(others.map(({ handle, share }) => [handle, share]));
    if (!others.length || !template || !context) { line?.remove(); return; }
    if (!line?.isConnected) context.prepend(line ??= template.content.firstElementChild.cloneNode(true));
    if (told === now) return;
    told = now;
    for (const old of [...line.children].slice(1)) old.remove();
    for (const { handle, share, source } of others) {
      const chip = template.content.querySelector(".ctx").cloneNode(true), drop = chip.querySelector("button");
      chip.querySelector("img").src = source;
      chip.querySelector("b").textContent = handle;
      chip.querySelector("small").textContent = `· ${word("maskNote", { share })}`;
      drop.dataset.arg = handle;
      drop.title = drop.title.replace("{handle}", handle);
      drop.setAttribute("aria-label", drop.title);
      line.append(chip);
    }
  };

  // ---- a new picture's draft: its place among the files may change, and it may have to wait for them
  const restamp = handle => {
    const { draft } = painter;
    if (draft?.handle !== handle) return;
    draft.value = JSON.stringify({ ...JSON.parse(draft.value), handle: painter.wired(handle) });
    draft.isHeld = false;
    wire(draft);
  };
  const shelve = () => {  // once it was sent, the thread says which handle it got, in the order of the files
    if (!taken?.files || taken.name !== "mask") return;
    const shown = [...(all("#chat .refs").at(-1)?.querySelectorAll("[data-arg]") || [])].slice(-taken.files);
    const handle = shown[taken.place - 1]?.dataset.arg, conversation = $("#top h1")?.dataset.conversation;
    if (shown.length < taken.files || !conversation || conversation === "new" || taken.known.includes(handle)) return;
    keep({ conversation, handle }, JSON.stringify({ ...JSON.parse(taken.value), handle }));
    taken.files = 0;
  };

  // ---- what Python changed: the composer's line, the fields
  const sentOff = draft => {
    taken = { ...draft, others, field: wired(draft) };
    painter.draft = null;
    others = [];
    marked = "";
    painter.wipe();
    if (painter.isNew(draft.handle) && painter.sheet?.handle === draft.handle) painter.leave();
  };
  const cameBack = () => {  // the turn failed
    painter.draft = taken;
    others = taken.others;
    taken = null;
    // Its file comes back a moment later; until then the field would name a picture that is not there.
    if (painter.isNew(painter.draft.handle)) { painter.draft.isHeld = true; write(painter.draft.name, ""); painter.awaitFile(painter.draft.handle); }
    painter.recall();
  };
  const stays = (draft, editing) => {
    const where = $("#top h1")?.dataset.conversation;
    if (painter.isNew(draft.handle)) {
      if (editing && editing !== released) { forget(); return; }
      locate(draft);
    } else if (draft.conversation !== where) forget();
    else if (editing && editing !== draft.handle && !claimed) {  // another picture is marked: one that was painted over before, or none of these
      const other = drafted(editing);
      if (!other) { forget(); return; }
      others = [...others.filter(one => one !== other), draft];
      painter.draft = other;
      wire(other);
    }
    else if (!editing) claim(draft.handle);  // the end of an earlier turn took the mark away
  };
  const settle = () => {
    const editing = chip()?.dataset.handle || "", { draft } = painter;
    if (editing && editing === claimed) claimed = "";
    if (editing !== released) released = "";
    if (draft && !draft.isHeld && !read(draft.name)) sentOff(draft);
    else if (draft) stays(draft, editing);
    else if (taken && read(taken.name) === taken.field) cameBack();
    painter.placeNew();
    shelve();
    note();
  };
  const watch = () => {
    const line = $("#ctx"), box = $("#box");
    if (!line || !box) { setTimeout(watch, 200); return; }
    new MutationObserver(settle).observe(line, { childList: true, subtree: true, characterData: true });
    new MutationObserver(settle).observe(box, { childList: true, subtree: true, attributeFilter: ["src"] });
    setInterval(settle, 250);
  };
  if (document.body) watch(); else addEventListener("DOMContentLoaded", watch);

  painter.acts.unpaint_one = button => giveUp(button.dataset.arg);

  Object.assign(painter, { drafted, giveUp, masks: () => (painter.draft?.name === "mask") + others.length, offered, putMask, putGrowth, forget, note, restamp, isTaken: handle => taken?.handle === handle });
})();
