// The thread's place while it is drawn anew for something that was done elsewhere on the page: near its end Gradio would
// run to the end, as it does for an answer that streams. A hand on it goes before.
(() => {
  const HELD_MS = 2000, HANDS = ["wheel", "touchstart", "pointerdown", "keydown"];
  let release = null;

  const hold = () => {
    const box = document.querySelector("#chat [role=log]");
    release?.();
    if (!box) return;
    const place = box.scrollTop, back = () => { if (box.scrollTop !== place) box.scrollTop = place; };
    const letGo = () => {
      clearTimeout(ending);
      box.removeEventListener("scroll", back);
      for (const hand of HANDS) box.removeEventListener(hand, letGo);
      release = null;
    };
    const ending = setTimeout(letGo, HELD_MS);
    box.addEventListener("scroll", back);
    for (const hand of HANDS) box.addEventListener(hand, letGo, { passive: true });
    release = letGo;
  };
  window.aivistaThread = { hold };
})();
