// The tree: loaded when its tab is shown, walked by keys, moved by pointer, zoomed; a menu for each picture.
{
  const keys = aivista.keys, shell = aivista.shell;
  const ZOOMS = [0.4, 0.5, 0.65, 0.8, 1, 1.25, 1.6], DRAG_PX = 4;
  let zoom = 1, scrollState = { conversation: "", left: 0, top: 0 }, focused = "", hadFocus = false, menuOf = "", dragged = false;

  const openedHandle = () => $("#canvas .cv-pic")?.dataset.handle || $("#canvas .cmp")?.dataset.pair.split(" ")[1] || $("#ctx .ctx[data-handle]")?.dataset.handle || "";
  const act = (name, more = {}) => shell.act(`tree.${name}`, { opened: openedHandle(), ...more });
  const scroller = () => $("#tr-pane .tr-scroll");
  const nodes = () => all("#tr-pane .tr-node");
  const node = handle => nodes().find(one => one.dataset.handle === handle);

  // ---- refreshed when the tab is opened, when a turn has ended, when another conversation is opened
  const show = () => { if (isPaneShown("tree")) act("show", { is_begun: Boolean($("#tr-head")) }); };
  addEventListener("aivista-tab", event => { if (event.detail === "tree") show(); });
  let wasLive = false, shownOf = "";
  onPatched(() => {
    const isLive = Boolean(liveLine()), now = conversation();
    if ((wasLive && !isLive) || (shownOf && shownOf !== now)) show();
    wasLive = isLive;
    shownOf = now;
  });

  // ---- its scroll position and zoom last from one update to the next
  const saveScroll = () => {
    const pane = scroller();
    if (pane?.dataset.conversation === scrollState.conversation) Object.assign(scrollState, { left: pane.scrollLeft, top: pane.scrollTop });
  };
  const setZoom = (next, at) => {
    const pane = scroller(), plane = pane && $(".tr-plane", pane);
    zoom = next;
    if (!plane) return;
    const box = pane.getBoundingClientRect(), before = Number(plane.style.zoom) || 1;
    const [x, y] = at ? [at.clientX - box.left, at.clientY - box.top] : [box.width / 2, box.height / 2];
    const [left, top] = [(pane.scrollLeft + x) / before, (pane.scrollTop + y) / before];
    plane.style.zoom = zoom;
    pane.scrollTo(left * zoom - x, top * zoom - y);
    saveScroll();
  };
  const step = (way, at) => {
    const next = way > 0 ? ZOOMS.find(one => one > zoom + 0.01) : ZOOMS.findLast(one => one < zoom - 0.01);
    if (next) setZoom(next, at);
  };
  const fit = () => {
    const pane = scroller(), plane = pane && $(".tr-plane", pane);
    if (!plane) return;
    const { width, height } = plane.dataset;
    setZoom(Math.min(1, Math.max(ZOOMS[0], Math.min(pane.clientWidth / width, pane.clientHeight / height))));
  };
  let currentPane = null;
  const update = () => {
    const pane = scroller();
    if (!pane || pane === currentPane) return;
    currentPane = pane;
    const plane = $(".tr-plane", pane), isOther = pane.dataset.conversation !== scrollState.conversation;
    if (isOther) { scrollState = { conversation: pane.dataset.conversation, left: 0, top: 0 }; focused = ""; zoom = 1; cancelPick(); }
    if (plane) plane.style.zoom = zoom;
    pane.scrollTo(scrollState.left, scrollState.top);
    if (isOther) $(".tr-node.now", pane)?.scrollIntoView({ block: "center", inline: "center" });
    pane.addEventListener("scroll", saveScroll, { passive: true });
    markPick();
    const stays = node(focused);
    if (stays) makeTabbable(stays);
    if (hadFocus && document.activeElement === document.body) ($(".tr-open", stays || $('.tr-node:has([tabindex="0"])', pane)))?.focus();
  };

  // ---- one picture is in the Tab order; the arrows go to its relatives
  const makeTabbable = to => {
    for (const one of all("#tr-pane .tr-node > [tabindex='0']")) one.tabIndex = -1;
    for (const button of to.querySelectorAll("button")) button.tabIndex = 0;
    focused = to.dataset.handle;
  };
  const parents = one => one.dataset.parents.split(" ").filter(Boolean);
  const nearest = (found, one) => found.sort((a, b) => Math.abs(a.dataset.column - one.dataset.column) - Math.abs(b.dataset.column - one.dataset.column))[0];
  const relatives = {
    parent: one => parents(one).map(node).find(Boolean),
    child: one => nodes().find(other => parents(other)[0] === one.dataset.handle) || nodes().find(other => parents(other).includes(one.dataset.handle)),
    left: one => nearest(nodes().filter(other => other.dataset.row === one.dataset.row && Number(other.dataset.column) < Number(one.dataset.column)), one),
    right: one => nearest(nodes().filter(other => other.dataset.row === one.dataset.row && Number(other.dataset.column) > Number(one.dataset.column)), one),
    first: () => nodes()[0],
    last: () => nodes().at(-1),
  };
  const walk = (event, one) => {
    const way = keys.find(event, "tree.walk"), to = relatives[way]?.(one);
    if (!way) return;
    event.preventDefault();
    if (!to) return;
    makeTabbable(to);
    const button = $(".tr-open", to);
    (button.disabled ? to : button).focus({ preventScroll: true });
    to.scrollIntoView({ block: "nearest", inline: "nearest" });
  };

  // ---- the menu of a picture
  const openMenu = one => {
    const button = $(".tr-more", one);
    if (!button) return;
    makeTabbable(one);
    menuOf = one.dataset.handle;
    $("#tr-menu").setAttribute("aria-label", button.getAttribute("aria-label"));
    aivista.menus.open($("#tr-menu"), button);
  };

  // ---- a second picture to compare with
  const pickedHandle = () => root.dataset.treePick || "";
  const markPick = () => {
    for (const one of nodes()) one.classList.toggle("picked", one.dataset.handle === pickedHandle());
    const line = $(".tr-pick");
    if (line && pickedHandle()) $("span", line).textContent = formatText(line.dataset.pick, { handle: pickedHandle() });
  };
  const cancelPick = () => { delete root.dataset.treePick; markPick(); };
  const pick = handle => { root.dataset.treePick = handle; markPick(); const one = node(handle); if (one) { makeTabbable(one); $(".tr-open", one).focus(); } };

  const toCanvas = (name, arg) => { shell.act(`page.${name}`, { arg }); aivista.tabs?.show("canvas"); };
  const view = handle => {
    const first = pickedHandle();
    if (!first) { toCanvas("view", handle); return; }
    if (first === handle) return;
    cancelPick();
    toCanvas("compare", `${first} ${handle}`);
  };
  const ask = async handle => { await act("ask", { handle }); $("#tr-note button")?.focus(); };
  const edit = handle => { shell.act("page.edit", { arg: handle }); focusComposer(); };
  const menuActs = { open: view, edit, compare: pick, delete: ask };
  const acts = {
    open: button => view(button.closest(".tr-node").dataset.handle),
    menu: button => openMenu(button.closest(".tr-node")),
    in: () => step(1), out: () => step(-1), fit,
    cancel: cancelPick,
    sure: button => { hadFocus = true; aivista.thread?.holdPosition(); act("delete", { handle: button.dataset.arg }); },
    keep: () => { shell.removeElement("tr-note"); node(focused)?.querySelector(".tr-open")?.focus(); },
  };
  on("click", "[data-tree]", button => {
    if (dragged) { dragged = false; return; }
    if (button.closest("#tr-menu")) { aivista.menus.close(); menuActs[button.dataset.tree](menuOf); return; }
    if (button.closest(".tr-node")) makeTabbable(button.closest(".tr-node"));
    acts[button.dataset.tree]?.(button);
  });
  aivista.menus.onContext(".tr-node:has(.tr-more)", openMenu);
  addEventListener("focusin", event => { hadFocus = Boolean(event.target.closest?.("#tree")); if (event.target.closest?.(".tr-node")) focused = event.target.closest(".tr-node").dataset.handle; });
  addEventListener("keydown", event => {
    const one = event.target.closest?.(".tr-node");
    if (!one) return;
    const zoom = keys.find(event, "tree.zoom");
    if (keys.is(event, "tree.menu")) { event.preventDefault(); openMenu(one); }
    else if (keys.is(event, "tree.delete")) ask(one.dataset.handle);
    else if (zoom) step(zoom === "closer" ? 1 : -1);
    else walk(event, one);
  }, true);
  keys.onEscape("mode", event => {
    const isAsked = event.target.closest?.(".tr-say"), isPicking = !isAsked && pickedHandle() && isPaneShown("tree");
    if (isAsked) acts.keep(); else if (isPicking) cancelPick();
    return Boolean(isAsked || isPicking);
  });

  // ---- dragged by the mouse like a map; a finger scrolls it natively
  let panning = null;
  addEventListener("pointerdown", event => {
    dragged = false;
    const pane = event.target.closest?.(".tr-scroll");
    if (pane && event.pointerType === "mouse" && event.button === 0) panning = { pane, x: event.clientX, y: event.clientY, left: pane.scrollLeft, top: pane.scrollTop };
  });
  addEventListener("pointermove", event => {
    if (!panning) return;
    const [dx, dy] = [event.clientX - panning.x, event.clientY - panning.y];
    if (!dragged && Math.hypot(dx, dy) < DRAG_PX) return;
    dragged = true;
    panning.pane.classList.add("held");
    panning.pane.scrollTo(panning.left - dx, panning.top - dy);
  });
  addEventListener("pointerup", () => { panning?.pane.classList.remove("held"); panning = null; });
  addEventListener("wheel", event => {
    if (!event.ctrlKey || !event.target.closest?.(".tr-scroll")) return;
    event.preventDefault();
    step(-event.deltaY, event);
  }, { passive: false });

  addEventListener("aivista-patched", update);
}
