// Pictures that were attached and not sent stay with their conversation: they leave the box when another one is opened,
// and stand in it again when their own comes back, for as long as the page is open.
(() => {
  const $ = selector => document.querySelector(selector);
  const STEP_MS = 20, MOST_STEPS = 200;
  const shelf = new Map();  // by conversation: the addresses of its pictures
  const thumbnails = () => [...document.querySelectorAll("#box .thumbnail-item")];
  let moves = 0;

  // One at a time: the list is drawn anew after each.
  const clear = (left = MOST_STEPS) => {
    const button = $("#box .thumbnail-item .delete-button");
    if (!button || !left) return;
    button.click();
    setTimeout(clear, STEP_MS, left - 1);
  };
  const leave = conversation => {
    moves += 1;
    const addresses = thumbnails().map(one => one.querySelector("img")?.src).filter(Boolean);
    if (addresses.length) shelf.set(conversation, addresses); else shelf.delete(conversation);
    clear();
  };

  // Under the names they had: a part that was painted over is found by its picture's name.
  const fetched = async (address, called = "") => {
    try {
      const answer = await fetch(address), data = await answer.blob();
      const name = called || decodeURIComponent(new URL(address).pathname.split("/").at(-1));
      return answer.ok ? [new File([data], name, { type: data.type })] : [];
    } catch { return []; }
  };
  const arrive = async conversation => {
    const addresses = shelf.get(conversation), move = moves;
    if (!addresses) return;
    const files = (await Promise.all(addresses.map(one => fetched(one)))).flat();
    // Another conversation may have been opened meanwhile.
    if (move !== moves) return;
    shelf.delete(conversation);
    window.aivista.drops.hand(files);
  };
  // Pictures of other conversations come as files.
  addEventListener("aivista-attach", async event => {
    const files = await Promise.all(event.detail.map(one => fetched(one.url, one.name)));
    window.aivista.drops.hand(files.flat());
  });
  window.aivista.attached = { leave, arrive, clear };
})();
