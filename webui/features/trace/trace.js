// The trace: its turns are requested when they come into view, steps when their turn is opened, contents when a step
// is. While a turn runs, its steps are added below; what is open stays open, and what is being read stays where it is.
{
  const { act, removeElement } = aivista.shell;
  const EVERY_MS = 1000, NEAR_PX = 48, REST = 10;
  let asking = false, wasLive = false, rest = 0, start = null;

  const pane = () => $("#trc");
  const wait = () => $("#trace .trc-wait");
  const scroller = () => $("#trc .trc-scroll");
  const isOther = () => pane()?.dataset.conversation !== conversation();

  // ---- the newest turns, and what came since
  const show = async () => {
    if (asking || !isPaneShown("trace")) return;
    asking = true;
    const opened = conversation(), errors_only = Boolean(pane()?.hasAttribute("data-errors"));
    if (isOther()) removeElement("trc");
    delete wait().dataset.lost;
    const before = pane(), box = scroller(), top = box?.scrollTop;
    const wasAtEnd = box && box.scrollHeight - top - box.clientHeight < NEAR_PX;
    const since = all("#trc .trc-turn").at(-1)?.dataset.turn || "";
    const { patches = [] } = await act("trace.show", { since, errors_only });
    asking = false;
    if (isPaneShown("trace") && conversation() !== opened) { show(); return; }
    if (!patches.some(patch => patch.id !== "toast")) { wait().dataset.lost = opened; rest = REST; }
    if (pane() === before ? wasAtEnd && box.scrollTop === top && !$(".trc-step[open]", box) : scroller()) scroller().scrollTop = scroller().scrollHeight;
    watchStart();
  };

  // ---- earlier turns, when the user scrolls near the first
  const older = async mark => {
    const above = mark.parentElement, height = above.offsetHeight;
    const { patches = [] } = await act("trace.older", { turn: mark.dataset.before });
    if (!patches.some(patch => patch.id === mark.id)) return;
    scroller().scrollTop += above.offsetHeight - height;
    watchStart();
  };
  const watchStart = () => {
    start?.disconnect();
    const mark = $("#trc [data-before]");
    if (!mark) return;
    start = new IntersectionObserver(seen => { if (seen.some(one => one.isIntersecting)) { start.disconnect(); older(mark); } }, { root: scroller(), rootMargin: "400px 0px" });
    start.observe(mark);
  };

  // ---- contents are requested when opened, once; the step closes again when they do not come
  addEventListener("toggle", async event => {
    const one = event.target;
    if (!one.open || !one.matches?.("#trc :is(.trc-turn, .trc-step)") || $(":scope > div", one).hasChildNodes()) return;
    const { turn } = one.closest(".trc-turn").dataset, { number } = one.dataset;
    await act(number ? "trace.step" : "trace.turn", number ? { turn, number: Number(number) } : { turn });
    one.open = $(":scope > div", one).hasChildNodes();
  }, true);

  on("click", "[data-trace]", button => {
    if (button.dataset.trace === "again") show();
    if (button.dataset.trace === "errors") button.setAttribute("aria-pressed", String(pane().toggleAttribute("data-errors")));
  });

  // ---- refreshed when the pane is opened, and as long as a turn runs; after a failure not at once
  addEventListener("aivista-tab", event => { if (event.detail === "trace") show(); });
  setInterval(() => {
    if (!isPaneShown("trace") || document.hidden) return;
    const isLive = Boolean(liveLine()), isNew = isOther() && wait().dataset.lost !== conversation();
    if (isNew || ((isLive || wasLive) && --rest < 0)) show();
    // A turn that opened its conversation may have ended since, unseen.
    wasLive = isLive || isNew;
  }, EVERY_MS);
}
