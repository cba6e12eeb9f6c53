// What the painter gives to the next message: two hidden fields of the page, `mask` and `expand`, which Send takes along
// and Python empties, or fills again after a failure; the mark of the picture; the last mask of each picture; and new
// pictures, dropped onto the stage or chosen there, which go into the message and have no handle before they are sent.
//
// What is painted over a new picture names it as the Nth of the composer's files, `upload:N`. How Gradio 6.31 orders
// them, measured: a MultimodalTextbox holds its files in one list and appends to it when an upload is done, the files of
// one drop in the order of the drop; of two uploads at once the one that ends first comes first. A removal closes the
// gap. The thumbnails in #box show the list in that order. They are reused by position, so an element says nothing about
// its file: the address of its image does, which ends in the file's name. Hence a file that may be painted over gets a
// name of its own, which it still has when a failed turn gives it back.
{
  const painter = aivista.painter;
  const { word, whisper } = painter;
  // How long a new picture's file may be missing: when no upload is at work, and after a failed turn.
  const UPLOAD_MS = 2000, RETURN_MS = 5000;
  const records = new Map();  // by a handle of ours: {handle, mark, url, width, height, place, ahead, until}
  const isNew = handle => records.has(handle);

  // ---- the drafts: what lies in a field for the next message. The last is the one that is worked on; an expansion and a
  // new picture's go alone, masks of other pictures of the conversation go along.
  let drafts = [], sent = null;  // sent: what Python has taken, which comes back when the turn fails
  Object.defineProperty(painter, "draft", { get: () => drafts.at(-1) });
  const drafted = handle => drafts.find(one => one.handle === handle);
  const isAlone = ({ name, handle }) => name === "expand" || isNew(handle);
  const written = ({ handle, body }) => JSON.stringify({ handle: isNew(handle) ? `upload:${records.get(handle).place}` : handle, ...body });
  const fields = () => {
    const { draft } = painter, several = drafts.length > 1 ? `[${drafts.map(written).reverse()}]` : "";  // Python marks the first
    return { mask: "", expand: "", ...(draft && !draft.isHeld && { [draft.name]: several || written(draft) }) };
  };
  const write = values => { for (const [name, value] of Object.entries(values)) $(`#${name}`).value = value; };
  const changed = () => {
    write(fields());
    if (painter.draft) mark(painter.draft.handle);
    else if (marked) { aivista.shell.act("page.drop", { arg: marked }); marked = ""; }
    note();
  };
  const put = (name, body) => {  // without a body: the picture is left as it is
    const { conversation, handle, source, alpha, growth, share } = painter.sheet, draft = { name, body, conversation, handle, source, alpha, growth, share };
    if (!body && drafted(handle)?.name !== name) return;
    drafts = isAlone(draft) ? [] : drafts.filter(one => one.handle !== handle && !isAlone(one));
    sent = null;
    if (body) drafts.push(draft);
    if (body && name === "mask" && !isNew(handle)) shelve(draft, body);
    changed();
  };
  const giveUp = handle => {
    if (painter.sheet?.handle === handle) painter.wipe();
    if (marked === handle) marked = "";  // its cross has taken the mark away
    drafts = drafts.filter(one => one.handle !== handle);
    changed();
  };
  const forget = () => {
    drafts = [];
    sent = asked = null;
    marked = "";
    write(fields());
    painter.wipe();
  };

  // ---- the last mask of each picture, for as long as the tab is open
  const shelf = ({ conversation, handle }) => `aivista-mask ${conversation} ${handle}`;
  const shelve = (picture, mask) => { try { sessionStorage.setItem(shelf(picture), JSON.stringify(mask)); } catch { /* no room: the mask is in the field, only not kept for later */ } };
  const lastMask = () => {  // of the picture on the sheet, unless it lies there already
    let kept = null;
    try { kept = JSON.parse(sessionStorage.getItem(shelf(painter.sheet))); } catch { /* a private window keeps nothing */ }
    return kept?.png === drafted(painter.sheet.handle)?.body.png ? null : kept;
  };

  // ---- the mark: Python marks the picture that is changed, one at a time; a new one takes the mark from another
  let marked = "", asked = null;  // marked: which was marked for a draft; asked: what Python does not show yet
  const chip = () => $("#ctx .ctx[data-handle]");
  const mark = handle => {
    const shown = chip()?.dataset.handle ?? "", to = isNew(handle) ? "" : handle, from = asked?.to ?? shown;
    if (from === to) return;
    asked = { shown, to };
    marked = to;
    aivista.shell.act(to ? "page.edit" : "page.drop", { arg: to || from });
  };
  const settleMark = () => {
    const { draft } = painter, shown = chip()?.dataset.handle ?? "";
    if (asked && shown !== asked.shown) asked = null;
    else if (!asked && shown !== marked) marked = "";
    if (!draft) return;
    if (!isNew(draft.handle) && draft.conversation !== conversation()) forget();
    else if (asked) return;
    else if (!shown) mark(draft.handle);  // the end of an earlier turn took the mark away
    else if (shown !== draft.handle) {  // another is marked: one that was painted over before, or none of these
      const other = drafted(shown);
      if (!other) { forget(); return; }
      drafts = [...drafts.filter(one => one !== other), other];
      write(fields());
    }
  };

  // ---- sent, and back after a failure
  addEventListener("aivista-painted", ({ detail }) => {
    const { draft } = painter;
    write(detail);
    if (draft && !draft.isHeld && !detail[draft.name]) sentOff(draft);
    else if (!draft && detail.mask === sent?.fields.mask && detail.expand === sent.fields.expand) cameBack();
  });
  const sentOff = ({ name, handle }) => {
    // A new picture's mask is kept under the handle that the thread says it got, in the order of the files.
    const place = name === "mask" && records.get(handle)?.place;
    sent = { drafts, handle, fields: fields(), place, files: thumbnails().length, known: all("#chat .ref").map(one => one.dataset.arg) };
    drafts = [];
    marked = "";
    painter.wipe();
    if (isNew(handle) && painter.sheet?.handle === handle) painter.leave();
  };
  const nameSent = () => {
    const { place, files, known, drafts: [draft] } = sent, shown = [...(all("#chat .refs").at(-1)?.querySelectorAll("[data-arg]") ?? [])].slice(-files);
    const handle = shown[place - 1]?.dataset.arg;
    if (shown.length < files || conversation() === "new" || known.includes(handle)) return;
    shelve({ conversation: conversation(), handle }, draft.body);
    sent.place = 0;
  };
  const cameBack = () => {
    ({ drafts } = sent);
    sent = null;
    const record = records.get(painter.draft.handle);
    // Its file comes back a moment later; until then the field would name a picture that is not there.
    if (record) { painter.draft.isHeld = true; Object.assign(record, { place: 0, until: performance.now() + RETURN_MS }); write(fields()); }
    painter.recall();
  };

  // ---- where a new picture's file is among those of the message
  const thumbnails = () => all("#box .thumbnail-item");
  const settleFile = record => {
    const found = 1 + thumbnails().findIndex(one => $("img", one)?.src.includes(`-${record.mark}.`)), now = performance.now();
    const isHeld = drafted(record.handle)?.isHeld;
    if (found) record.until = 0;
    else if (record.until && aivista.uploads.isBusy()) record.until = now + UPLOAD_MS;
    if (!found && record.until <= now) { if (leaveAlone(record)) whisper("#ctx-said", word("newGone")); return; }
    const number = found || (isHeld ? 0 : thumbnails().length + 1 + record.ahead);
    if (record.place === number) return;
    record.place = number;
    if (painter.draft?.handle !== record.handle) return;
    painter.draft.isHeld = !number;
    write(fields());
  };
  const leaveAlone = ({ handle, url }) => {
    const isDraft = painter.draft?.handle === handle;
    records.delete(handle);
    URL.revokeObjectURL(url);
    if (painter.sheet?.handle === handle) { painter.leave(); painter.sheet = null; }
    if (isDraft) forget();
    return isDraft;
  };

  // ---- what the composer says of them
  const shownNew = () => records.get(painter.draft?.handle) ?? [...records.values()].filter(one => one.place && one.handle !== sent?.handle).at(-1);
  const share = draft => draft?.name === "mask" ? `· ${word("maskNote", { share: draft.share })}` : "";
  const verb = draft => draft?.name === "expand" ? "expanding" : "editing";
  // Chips beside Python's own, made anew when they say something else; their line is there only while there are any.
  const line = (name, chips) => {
    const template = $(`#${name}-line`).content, now = JSON.stringify(chips);
    if (!chips.length) $(`#${name}`)?.remove();
    else if (!$(`#${name}`)) $("#context").prepend(template.cloneNode(true));
    const place = $(`#${name}`);
    if (!place || place.dataset.shown === now) return place;
    place.dataset.shown = now;
    for (const old of all(".ctx", place)) old.remove();
    for (const { handle, source, text } of chips) {
      const one = $(".ctx", template).cloneNode(true), drop = $(":scope > button:last-child", one);
      $("img", one).src = source;
      $("b", one).textContent = handle;
      $("small", one).textContent = text;
      drop.dataset.arg = handle;
      drop.title = drop.ariaLabel = filled(drop.title, { handle });
      place.append(one);
    }
    return place;
  };
  const note = () => {
    const { draft } = painter, own = chip(), record = shownNew(), isDraft = record && draft?.handle === record.handle;
    if (own) {
      const about = draft?.handle === own.dataset.handle ? draft : null, label = own.previousElementSibling;
      setText(label, label.dataset[verb(about)]);
      setText($("small", own), share(about));
    }
    line("ctx-more", drafts.slice(0, -1).map(one => ({ handle: one.handle, source: one.source, text: share(one) })));
    const place = line("ctx-new", record ? [{ handle: word("newPicture"), source: record.url, text: isDraft ? share(draft) : `· ${word("newPaint")}` }] : []);
    if (place) setText(place.firstElementChild, isDraft ? place.firstElementChild.dataset[verb(draft)] : "");
  };
  const settle = () => {
    settleMark();
    for (const record of records.values()) if (record.handle !== sent?.handle) settleFile(record);
    if (sent?.place) nameSent();
    note();
  };
  new MutationObserver(settle).observe($("#composer"), { childList: true, subtree: true, characterData: true, attributeFilter: ["src"] });
  setInterval(settle, 250);

  // ---- in: by a drop onto the stage or by its button
  const measured = async file => {  // its address and its size, upright as its EXIF says; nothing where the browser cannot show it
    const image = new Image(), url = URL.createObjectURL(file);
    image.src = url;
    const isShown = file.type !== "image/svg+xml" && await image.decode().then(() => true, () => false);
    if (isShown) return { url, width: image.naturalWidth || 1, height: image.naturalHeight || 1 };
    URL.revokeObjectURL(url);
    return null;
  };
  const openNew = record => {
    root.setAttribute("data-stage", "");
    aivista.tabs?.show("canvas");
    painter.openOn({ conversation: "", ...record }, record.url, drafted(record.handle)?.name ?? "mask");
  };
  const take = async files => {  // the first that the browser can show is painted over
    const images = files.filter(aivista.uploads.isPicture).filter(aivista.uploads.admits);
    let size = null, ahead = -1;
    while (!size && ++ahead < images.length) size = await measured(images[ahead]);
    if (!images.length) return;
    const mark = Math.random().toString(36).slice(2, 6).padEnd(4, "0"), handle = `new${mark}`, file = images[ahead];
    if (size) {
      const [, stem, ending = `.${file.type.split("/")[1] || "img"}`] = file.name.match(/^(.*?)(\.[A-Za-z0-9]{1,5})?$/s);
      images[ahead] = new File([file], `${stem.slice(0, 60)}-${mark}${ending}`, { type: file.type });
      records.set(handle, { ...size, handle, mark, ahead, until: performance.now() + UPLOAD_MS });
    }
    if (size) settleFile(records.get(handle));
    aivista.drops.hand(images);
    if (size) openNew(records.get(handle));
    whisper("#pt-said", word(size ? "added" : "attached"));
  };
  addEventListener("drop", event => {
    if (!event.target.closest?.("#stage") || !event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    take([...event.dataTransfer.files]);
  });
  on("change", "#pt-photo", input => {
    if (input.files.length) take([...input.files]);
    input.value = "";
  });
  addEventListener("click", event => {
    const { act, arg } = event.target.closest?.("[data-act]")?.dataset ?? {};
    if (act === "open" || act === "new") forget();
    if (act === "drop" && drafted(arg)) giveUp(arg);
  });
  Object.assign(painter.acts, {
    choose: () => $("#pt-photo").click(),
    again: () => openNew(shownNew()),
    unpaint: () => {
      leaveAlone(shownNew());
      note();
      $("#box textarea")?.focus();
    },
    unpaint_one: button => giveUp(button.dataset.arg),
  });

  Object.assign(painter, { isNew, drafted, put, lastMask, note, masks: () => drafts.filter(one => one.name === "mask").length });
}
