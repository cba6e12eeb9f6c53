// What the painter gives to the next message: two hidden fields of the composer, `mask` and `expand`, which Send takes
// along and Python empties, or fills again after a failure; the mark of the picture; and the last mask of each.
(() => {
  const painter = window.aivistaPainter;
  const { $, all, word } = painter;

  // ---- the hidden fields, written so that Svelte sees them
  const field = name => $(`#${name} :is(textarea, input)`);
  const read = name => field(name)?.value || "";
  const write = (name, value) => {
    const input = field(name);
    if (!input || input.value === value) return;
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(input), "value").set.call(input, value);
    input.dispatchEvent(new Event("input", { bubbles: true }));
  };

  // ---- the last mask of each picture, for as long as the tab is open
  const shelf = ({ conversation, handle }) => `aivista-mask ${conversation} ${handle}`;
  const keep = (picture, value) => { try { sessionStorage.setItem(shelf(picture), value); } catch { /* no room: the mask is in the field, only not kept for later */ } };
  const kept = () => { try { return sessionStorage.getItem(shelf(painter.sheet)) || ""; } catch { return ""; } };
  const offered = () => kept() && kept() !== painter.draft?.value ? kept() : "";

  // ---- the draft: what lies in a field for the next message, and the mark of its picture in the composer
  painter.draft = null;
  let taken = null, claimed = "", marked = "", released = "";
  const chip = () => $("#ctx .ctx[data-handle]");
  const act = (name, handle) => window.aivista?.act({ act: name, arg: handle });
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
    const { conversation, handle } = painter.sheet, value = body ? JSON.stringify({ handle: painter.wired(handle), ...body }) : "";
    write(name === "mask" ? "expand" : "mask", "");
    write(name, value);
    painter.draft = value ? { name, value, share, conversation, handle } : null;
    if (value) locate(painter.draft);
    taken = null;
    if (value && name === "mask" && !painter.isNew(handle)) keep(painter.sheet, value);
    if (value) claim(handle);
    else if (marked === handle) { marked = claimed = ""; act("drop", handle); }
    note();
  };
  const putMask = (body, share) => { if (body || painter.draft?.name === "mask") put("mask", body, share); };
  const putGrowth = growth => { if (growth || painter.draft?.name === "expand") put("expand", growth); };
  const forget = () => {
    painter.draft = taken = null;
    claimed = marked = released = "";
    write("mask", "");
    write("expand", "");
    painter.wipe();
  };
  const note = () => {
    const { draft } = painter, place = chip(), label = place?.previousElementSibling, own = draft && place?.dataset.handle === draft.handle;
    painter.noteNew();
    if (!place) return;
    const text = own && draft.name === "mask" ? `· ${word("maskNote", { share: draft.share })}` : "";
    if (place.querySelector("small").textContent !== text) place.querySelector("small").textContent = text;
    const verb = own && draft.name === "expand" ? label.dataset.expanding : label.dataset.editing;
    if (label.textContent !== verb) label.textContent = verb;
  };

  // ---- a new picture's draft: its place among the files may change, and it may have to wait for them
  const restamp = handle => {
    const { draft } = painter;
    if (draft?.handle !== handle) return;
    draft.value = JSON.stringify({ ...JSON.parse(draft.value), handle: painter.wired(handle) });
    draft.isHeld = false;
    write(draft.name, draft.value);
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
    taken = draft;
    painter.draft = null;
    marked = "";
    painter.wipe();
    if (painter.isNew(draft.handle) && painter.sheet?.handle === draft.handle) painter.leave();
  };
  const cameBack = () => {  // the turn failed
    painter.draft = taken;
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
    } else if (draft.conversation !== where || (editing && editing !== draft.handle && !claimed)) forget();
    else if (!editing) claim(draft.handle);  // the end of an earlier turn took the mark away
  };
  const settle = () => {
    const editing = chip()?.dataset.handle || "", { draft } = painter;
    if (editing && editing === claimed) claimed = "";
    if (editing !== released) released = "";
    if (draft && !draft.isHeld && !read(draft.name)) sentOff(draft);
    else if (draft) stays(draft, editing);
    else if (taken && read(taken.name) === taken.value) cameBack();
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

  Object.assign(painter, { offered, putMask, putGrowth, forget, note, restamp, isTaken: handle => taken?.handle === handle });
})();
