// A contact sheet: one picture is at hand, its words stand beneath. The arrow keys go from picture to picture.
(() => {
  const keys = window.aivista.keys;
  const frames = sheet => [...sheet.querySelectorAll(":scope > figure > .frame:not(.pending)")];
  const take = (sheet, frame) => {
    for (const one of frames(sheet)) {
      const isNow = one === frame;
      one.parentElement.classList.toggle("now", isNow);
      if (isNow) one.removeAttribute("tabindex"); else one.tabIndex = -1;
    }
  };
  const columns = sheet => getComputedStyle(sheet).gridTemplateColumns.split(" ").length;
  const target = (sheet, frame, way) => {
    const all = frames(sheet), at = all.indexOf(frame), across = columns(sheet);
    const to = { left: at - 1, right: at + 1, up: at - across, down: at + across, first: 0, last: all.length - 1 }[way];
    return to === undefined ? undefined : all[to] || frame;
  };
  addEventListener("focusin", event => {
    const frame = event.target.closest?.(".sheet > figure > .frame");
    if (frame) take(frame.closest(".sheet"), frame);
  });
  addEventListener("click", event => {
    // Safari gives a button that is clicked no focus.
    const frame = event.target.closest?.(".sheet > figure > .frame");
    if (frame) take(frame.closest(".sheet"), frame);
  });
  addEventListener("keydown", event => {
    const frame = event.target.closest?.(".sheet > figure > .frame");
    if (!frame) return;
    const next = target(frame.closest(".sheet"), frame, keys.find(event, "sheet.walk"));
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
})();
