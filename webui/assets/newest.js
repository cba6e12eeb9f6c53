// An open page shows what came to its conversation without it: a picture after Stop, a turn of another tab or program.
// Python writes next to the title which version is shown; a small question a second tells whether there is a newer one.
(() => {
  const LOOK_MS = 1000;
  const $ = selector => document.querySelector(selector);
  // A turn that this tab shows tells of itself.
  const isBusy = () => Boolean($("#chat .live"));
  let asked = "";
  const look = async () => {
    const shown = $("#top h1[data-version]")?.dataset;
    if (!shown || document.hidden || isBusy()) return;
    const { conversation, version } = shown;
    let newest;
    try {
      const answer = await fetch(`aivista/version/${encodeURIComponent(conversation)}`);
      if (!answer.ok) return;
      newest = `${conversation} ${(await answer.json()).version}`;
    } catch { return; /* the studio is away: it is asked again */ }
    const now = $("#top h1[data-version]")?.dataset;
    if (isBusy() || now?.conversation !== conversation || now.version !== version) return;
    if (newest === `${conversation} ${version}` || newest === asked) return;
    asked = newest;
    window.aivista?.act({ act: "refresh", arg: conversation });
  };
  const lookOn = async () => { await look(); setTimeout(lookOn, LOOK_MS); };
  setTimeout(lookOn, LOOK_MS);
  document.addEventListener("visibilitychange", look);
})();
