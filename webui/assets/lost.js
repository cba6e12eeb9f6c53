// A picture whose file cannot be shown: the studio is asked why, and its sentence stands in the picture's place. Where the
// studio cannot be reached nothing is said of the picture.
(() => {
  const asked = new Map();  // by address: the studio's sentence, or nothing
  const reasonOf = address => {
    if (!asked.has(address)) asked.set(address, fetch(address).then(answer => (answer.ok ? "" : answer.text()), () => ""));
    return asked.get(address);
  };
  addEventListener("error", async event => {
    const image = event.target;
    if (image?.tagName !== "IMG" || !new URL(image.src, location.href).pathname.includes("/media/")) return;
    const reason = (await reasonOf(image.currentSrc || image.src)).slice(0, 300);
    if (!reason || image.naturalWidth) return;
    image.classList.add("lost");
    image.title = reason;
    image.parentElement?.setAttribute("data-lost", reason);
  }, true);
  addEventListener("load", event => {
    if (!event.target.classList?.contains("lost")) return;
    event.target.classList.remove("lost");
    event.target.removeAttribute("title");
    event.target.parentElement?.removeAttribute("data-lost");
  }, true);
})();
