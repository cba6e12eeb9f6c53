// Pictures dropped or pasted anywhere on the page go into the message; while they are dragged, a target says where they
// would end. The stage has drops of its own: the painter takes pictures (features/viewer/mask.js), the Files tab takes
// any file (features/files). Whatever takes no file does not let the browser leave the page for it either.
//
// Before they go on, files that cannot be added are told of in the composer instead of failing one by one later. This
// script comes before those that listen for the same drops, and hands on what it lets through as a drop on the box.
(() => {
  const root = document.documentElement;
  const $ = selector => document.querySelector(selector);
  const hasFiles = event => [...(event.dataTransfer?.types || [])].includes("Files");
  const isBlocked = () => Boolean(window.aivista.dialogs?.opened()) || Boolean($("dialog[open]"));
  const ours = new WeakSet();

  // ---- in
  const admitted = files => files.filter(window.aivista.uploads.admits);
  const hand = files => {
    const area = $("#box textarea"), dataTransfer = new DataTransfer();
    if (!area || !files.length) return;
    for (const file of files) dataTransfer.items.add(file);
    const drop = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
    ours.add(drop);
    area.dispatchEvent(drop);
  };
  const take = files => {
    if (matchMedia("(max-width: 760px)").matches) root.removeAttribute("data-stage");
    hand(admitted(files));
    $("#box textarea")?.focus();
  };

  window.aivista.drops = { hand };

  // ---- where a drop would end
  const zoneOf = target => {
    if (isBlocked()) return { name: "" };
    const stage = target?.closest?.("#stage");
    if (!stage) return { name: "message", place: $("#center") };
    // The Files tab marks its own folders.
    return target.closest("#files") ? { name: "files" } : { name: "paint", place: stage };
  };
  // What is dragged is known by its kinds alone, and by some browsers not even those.
  const areOthers = event => {
    const items = [...(event.dataTransfer?.items || [])].filter(item => item.kind === "file");
    return items.length > 0 && items.every(item => item.type && !item.type.startsWith("image/"));
  };

  // ---- the target
  let target = null, leaving = 0;
  const element = () => {
    if (target?.isConnected) return target;
    target = $("#tpl-drop")?.content.firstElementChild.cloneNode(true) || null;
    if (target) document.body.append(target);
    return target;
  };
  const hide = () => { clearTimeout(leaving); root.removeAttribute("data-dragging"); target?.remove(); target = null; };
  const show = event => {
    const { name, place } = zoneOf(event.target), shown = place && element();
    if (!shown) { hide(); return; }
    const box = place.getBoundingClientRect(), zone = areOthers(event) ? "nothing" : name;
    Object.assign(shown.style, { left: `${box.left}px`, top: `${box.top}px`, width: `${box.width}px`, height: `${box.height}px` });
    if (shown.dataset.zone !== zone) shown.dataset.zone = zone;
    root.setAttribute("data-dragging", "");
    // A drag that ends outside of the window says nothing: without news for a moment it is over.
    clearTimeout(leaving);
    leaving = setTimeout(hide, 1200);
  };
  for (const name of ["dragenter", "dragover"]) addEventListener(name, event => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    if (event.dataTransfer) event.dataTransfer.dropEffect = isBlocked() ? "none" : "copy";
    show(event);
  }, true);
  addEventListener("dragleave", event => { if (!event.relatedTarget) hide(); }, true);
  addEventListener("dragend", hide, true);
  addEventListener("drop", event => {
    hide();
    if (ours.has(event) || !hasFiles(event)) return;
    const { name } = zoneOf(event.target);
    if (name === "paint" || name === "files") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (name === "message") take([...event.dataTransfer.files]);
  }, true);

  // ---- pasted where nobody types; in the box itself Gradio takes it
  addEventListener("paste", event => {
    const files = [...(event.clipboardData?.files || [])];
    if (!files.length || isBlocked() || event.target.closest?.("#box, #files, .cm-editor")) return;
    if (event.target.closest?.("input, textarea, [contenteditable=true]") && event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    take(files);
  });
})();
