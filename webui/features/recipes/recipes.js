// Recipes: what a file says about itself before it is sent, the buttons of receipts, and the folded kinds of downloads.
{
  const MOST_BYTES = 20 * 1024 * 1024, GONE_MS = 1200;
  // Files without any recipe are not sent for it: every file that has one contains one of these.
  const SIGNS = ["aivista", "parameters", "prompt\0", "workflow\0", "UNICODE\0", "ASCII\0\0\0"];
  let foundRecipe = "", lookups = 0, emptySince = 0;

  const act = (name, args) => aivista.shell.act(`recipes.${name}`, args);
  const recipeArgs = () => ({ told: foundRecipe, is_written: Boolean($("#box textarea")?.value.trim()) });
  // A single file that was dropped for its recipe leaves the message.
  addEventListener("aivista-recipe-taken", () => {
    if (all("#box .thumbnail-item").length === 1) aivista.attached.clear();
  });
  const hide = () => { foundRecipe = ""; root.removeAttribute("data-recipe"); };

  // ---- a file is added to the message
  const readCandidate = async file => {
    if (file.size > MOST_BYTES || !/\.(png|jpe?g|webp)$|^image\/(png|jpeg|webp)$/i.test(file.type || file.name)) return null;
    const bytes = await file.arrayBuffer();
    const text = new TextDecoder("latin1").decode(bytes);
    return SIGNS.some(sign => text.includes(sign)) ? bytes : null;
  };
  const findRecipe = async files => {
    const lookup = ++lookups;
    for (const file of files) {
      let found = "";
      try {
        const bytes = await readCandidate(file);
        if (!bytes) continue;
        const answer = await fetch("aivista/recipe", { method: "POST", body: bytes, headers: { "Content-Type": "application/octet-stream" } });
        if (answer.status === 200) found = await answer.text();
      } catch { /* what it says stays unknown; the picture itself goes its way */ }
      if (lookup !== lookups) return;
      if (!found) continue;
      foundRecipe = found;
      emptySince = 0;
      root.setAttribute("data-recipe", "");
      act("found", recipeArgs());
      return;
    }
  };
  on("change", "#box input[type=file]", input => { if (input.files.length) findRecipe([...input.files]); }, true);
  // A file dropped on the stage passes here as well: the painter hands it on to the box.
  on("drop paste", "#composer", (_, event) => {
    const files = [...((event.dataTransfer || event.clipboardData)?.files || [])];
    if (files.length) findRecipe(files);
  }, true);
  // The card goes with its file: when it is sent, or removed from the message.
  setInterval(() => {
    if (!root.hasAttribute("data-recipe")) return;
    if ($("#box .thumbnail-item, #box .file-icon, #box .loader")) { emptySince = 0; return; }
    emptySince ||= performance.now();
    if (performance.now() - emptySince > GONE_MS) hide();
  }, 250);

  // ---- buttons
  const acts = {
    close: () => { hide(); $("#box textarea")?.focus(); },
    read: () => { act("read", recipeArgs()); aivista.tabs?.show("canvas"); },
    restore: () => { act("restore", recipeArgs()); hide(); focusComposer(); },
    take_prompt: () => { act("take_prompt", recipeArgs()); hide(); focusComposer(); },
    branch: () => { act("branch", recipeArgs()); hide(); focusComposer(); },
    reuse: button => { act("reuse", { arg: button.dataset.arg }); focusComposer(); },
    other_model: button => once(button, () => { act("other_model", { arg: button.dataset.arg }); focusComposer(); }),
    upscale: button => once(button, () => { act("upscale", { arg: button.dataset.arg }); focusComposer(); }),
    keep: button => { button.closest(".shortfall").hidden = true; act("keep", { arg: button.dataset.arg }); },
  };
  addEventListener("click", event => {
    const button = event.target.closest?.("[data-recipe]");
    if (button) acts[button.dataset.recipe]?.(button);
    // Folded downloads close when the focus leaves them, or after a choice.
    for (const more of all("details.more[open]")) {
      if (!more.contains(event.target) || event.target.closest("a, button")) more.open = false;
    }
  });
  addEventListener("keydown", event => {
    const more = aivista.keys.is(event, "page.escape") && document.activeElement?.closest?.("details.more[open]");
    if (!more) return;
    event.stopImmediatePropagation();
    more.open = false;
    $("summary", more).focus();
  }, true);
  // Near the edge of its pane the list opens to the other side.
  addEventListener("toggle", event => {
    const more = event.target;
    if (!more.matches?.("details.more") || !more.open) return;
    const list = $("div", more), pane = more.closest("#log, .cv-scroll")?.getBoundingClientRect();
    list.classList.remove("up");
    if (pane && list.getBoundingClientRect().bottom > pane.bottom) list.classList.add("up");
  }, true);
}
