// What shows nothing where the focus is: no outline, no shadow, no other border or ground, on it or right around it; and
// what has an outline that something around it cuts off.
() => {
  const wanted = "a[href], button, input, select, textarea, summary, [tabindex='0']", held = document.activeElement;
  const look = one => {
    const { outlineStyle, outlineWidth, boxShadow, borderColor, backgroundColor } = getComputedStyle(one);
    return [outlineStyle === "none" ? "" : outlineWidth, boxShadow, borderColor, backgroundColor].join();
  };
  const isCut = one => {
    const { outlineStyle, outlineWidth, outlineOffset } = getComputedStyle(one);
    if (outlineStyle === "none") return false;
    const box = one.getBoundingClientRect(), wide = parseFloat(outlineWidth) + parseFloat(outlineOffset) - 1;
    // What is out of sight itself was scrolled there.
    const isNear = gap => gap > -1 && gap < wide;
    for (let at = one.parentElement; at && at !== document.body; at = at.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(at), edge = at.getBoundingClientRect();
      const across = overflowX !== "visible" && at.scrollWidth <= at.clientWidth + 1;
      const down = overflowY !== "visible" && at.scrollHeight <= at.clientHeight + 1;
      if (across && [box.left - edge.left, edge.right - box.right].some(isNear)) return true;
      if (down && [box.top - edge.top, edge.bottom - box.bottom].some(isNear)) return true;
    }
    return false;
  };
  const isOut = one => one.disabled || one.tabIndex < 0 || one.closest("[inert], .wire");
  const isSeen = one => one.checkVisibility({ visibilityProperty: true });
  const found = [];
  for (const one of document.querySelectorAll(wanted)) {
    if (isOut(one) || !isSeen(one)) continue;
    const around = [one];
    // What has no box of its own is not around anything.
    for (let at = one.parentElement; around.length < 9 && at; at = at.parentElement) if (getComputedStyle(at).display !== "contents") around.push(at);
    document.activeElement.blur();
    const before = around.map(look).join("|");
    one.focus({ preventScroll: true });
    if (document.activeElement === one && (isCut(one) || around.map(look).join("|") === before)) found.push(one.outerHTML.slice(0, 120));
  }
  held.focus({ preventScroll: true });
  return found;
}
