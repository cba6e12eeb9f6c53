// What shows nothing where the focus is: no outline, no shadow, no other border or ground, on it or right around it.
() => {
  const wanted = "a[href], button, input, select, textarea, summary, [tabindex='0']", held = document.activeElement;
  const look = one => {
    const { outlineStyle, outlineWidth, boxShadow, borderColor, backgroundColor } = getComputedStyle(one);
    return [outlineStyle === "none" ? "" : outlineWidth, boxShadow, borderColor, backgroundColor].join();
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
    if (document.activeElement === one && around.map(look).join("|") === before) found.push(one.outerHTML.slice(0, 120));
  }
  held.focus({ preventScroll: true });
  return found;
}
