// A card that asks for the person's click: Allow stays off until the end of all arguments has been in sight.
(() => {
  const read = new Set();
  const settle = card => {
    const isRead = read.has(card.dataset.card), allow = card.querySelector("[data-act=allow_calls]");
    card.toggleAttribute("data-unread", card.hasAttribute("data-ready") && !isRead);
    if (allow && card.hasAttribute("data-ready") && isRead) allow.disabled = false;
  };
  const seen = new IntersectionObserver(entries => {
    for (const { target, isIntersecting } of entries) {
      const card = target.closest(".consent[data-card]");
      if (!card) continue;
      if (isIntersecting) { read.add(card.dataset.card); seen.unobserve(target); }
      settle(card);
    }
  });
  // Whenever Python draws a card anew, its end is looked for anew, unless it was read before.
  const watched = new WeakSet();
  const look = () => {
    for (const end of document.querySelectorAll(".consent[data-card] .asks-end")) {
      const card = end.closest(".consent");
      if (read.has(card.dataset.card)) settle(card);
      else if (!watched.has(end)) { watched.add(end); seen.observe(end); }
    }
  };
  const observe = () => { new MutationObserver(look).observe(document.body, { childList: true, subtree: true }); look(); };
  if (document.body) observe(); else addEventListener("DOMContentLoaded", observe);
})();
