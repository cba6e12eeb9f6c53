// What a page is watched for: when it can be used, keys, frames.
(() => {
  const watch = window.watch = { usableMs: null, keys: [], frames: [] };
  const isSeen = element => element.checkVisibility({ opacityProperty: true, visibilityProperty: true })
    && element.getBoundingClientRect().width > 0;
  const look = () => {
    const box = document.querySelector("#box textarea");
    // A page of ours says by itself when Python has filled it; a bare one is filled with what it was built with.
    const isFilled = !document.querySelector("#shell") || document.documentElement.hasAttribute("data-ready");
    // What costs a layout comes last.
    if (box && isFilled && !box.disabled && !box.readOnly && isSeen(box)) { watch.usableMs = performance.now(); return; }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);

  // From the press of a key to the end of the frame that shows it.
  addEventListener("keydown", event => {
    requestAnimationFrame(() => {
      const after = new MessageChannel();
      after.port1.onmessage = () => watch.keys.push(performance.now() - event.timeStamp);
      after.port2.postMessage(0);
    });
  }, true);
  let last = null;
  const frame = now => {
    if (last !== null) watch.frames.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  watch.taken = () => {
    const { keys, frames } = watch;
    Object.assign(watch, { keys: [], frames: [] });
    return { keys, frames };
  };
})();
