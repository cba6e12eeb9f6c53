// The rail as a drawer over the page: what lies behind it is inert while it is open, and the focus goes in.
(() => {
  const root = document.documentElement, narrow = matchMedia("(max-width: 1180px)");
  const $ = selector => document.querySelector(selector);
  const settle = () => {
    const isOpen = root.hasAttribute("data-rail-open") && narrow.matches;
    const behind = [$("#center"), $("#stage")].filter(Boolean);
    if (behind.every(one => one.inert === isOpen)) return;
    for (const one of behind) one.inert = isOpen;
    // Once it is seen, unless something in it has the focus by then.
    if (isOpen) requestAnimationFrame(() => { if (!document.activeElement.closest("#rail")) $("#rail [data-act=rail]")?.focus(); });
  };
  new MutationObserver(settle).observe(root, { attributeFilter: ["data-rail-open"] });
  narrow.addEventListener("change", settle);
})();
