// The controls in sight that a finger cannot surely hit: each with its size. A control counts with its label, and with
// what its own ::before or ::after adds around it; links within a line of words may be as high as the words.
least => {
  const CONTROLS = "a[href], button, input:not([type=hidden], [type=file]), select, textarea, summary, [role=button], [role=tab], [role=option], [role=menuitem], [role=menuitemradio], [role=switch], [role=checkbox], [role=slider], [role=separator][tabindex]";
  const owner = (control, at) => at && (control.contains(at) || [...(control.labels || [])].some(label => label.contains(at)) || at.closest("label, button, a, summary, [role=tab]") === control);
  const hits = (control, x, y) => owner(control, document.elementFromPoint(x, y));
  const wide = innerWidth, high = innerHeight;
  const small = [];
  for (const control of document.querySelectorAll(CONTROLS)) {
    if (!control.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true }) || control.disabled || control.closest("[inert], [aria-hidden=true]")) continue;
    const boxes = [control, ...(control.labels || [])].map(one => one.getBoundingClientRect()).filter(box => box.width && box.height);
    if (!boxes.length) continue;
    const box = { left: Math.min(...boxes.map(one => one.left)), top: Math.min(...boxes.map(one => one.top)), right: Math.max(...boxes.map(one => one.right)), bottom: Math.max(...boxes.map(one => one.bottom)) };
    const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    // Scrolled out of sight, in part or wholly, or behind something else.
    if (x - least / 2 < 0 || y - least / 2 < 0 || x + least / 2 > wide || y + least / 2 > high || !hits(control, x, y)) continue;
    if (control.matches("a, button.sourced") && control.closest("p, li, dd, td") && getComputedStyle(control).display === "inline") continue;
    const [width, height] = [box.right - box.left, box.bottom - box.top], half = least / 2 - .5;
    const isWide = width >= least - .5 || (hits(control, x - half, y) && hits(control, x + half, y));
    const isHigh = height >= least - .5 || (hits(control, x, y - half) && hits(control, x, y + half));
    if (isWide && isHigh) continue;
    const name = control.getAttribute("aria-label") || control.title || control.textContent.trim().slice(0, 30) || control.id || control.className;
    const place = control.closest("[id]")?.id || "";
    small.push(`#${place} ${control.tagName.toLowerCase()} “${name}” ${Math.round(width)}×${Math.round(height)}`);
  }
  return small;
}
