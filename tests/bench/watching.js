// What a page is watched for: when its composer takes words, spinners in sight, keys, frames, long tasks.
(() => {
  const watch = window.watch = { usableMs: null, filledMs: null, spinners: 0, keys: [], frames: [], longTasks: [] };
  const isSeen = element => element.checkVisibility({ opacityProperty: true, visibilityProperty: true })
    && element.getBoundingClientRect().width > 0;
  const look = () => {
    const box = document.querySelector("#box textarea");
    // What costs a layout comes last.
    if (box && !box.disabled && !box.readOnly && isSeen(box)) watch.usableMs ??= performance.now();
    // A page of ours says by itself when Python has filled it; a bare one is filled with what it was built with.
    const isFilled = !document.querySelector("#shell") || document.documentElement.hasAttribute("data-ready");
    if (watch.usableMs !== null && isFilled) { watch.filledMs = performance.now(); return; }
    const trackers = [...document.querySelectorAll("[data-testid=status-tracker]")];
    const spinning = trackers.filter(one => one.querySelector("svg, .loading, .progress-text") && isSeen(one));
    watch.spinners = Math.max(watch.spinners, spinning.length);
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
  new PerformanceObserver(list => { for (const one of list.getEntries()) watch.longTasks.push(one.duration); })
    .observe({ type: "longtask" });
  let last = null;
  const frame = now => {
    if (last !== null) watch.frames.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  watch.taken = () => {
    const { keys, frames, longTasks } = watch;
    Object.assign(watch, { keys: [], frames: [], longTasks: [] });
    return { keys, frames, longTasks };
  };
})();
