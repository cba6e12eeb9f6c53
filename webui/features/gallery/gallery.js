// The gallery: what is looked for is asked anew and merged into what is there, further pages join it while one scrolls.
// Choosing pictures, and what is done with them, is choosing.js's; both meet in window.aivista.gallery.
(() => {
  const root = document.documentElement, keys = window.aivista.keys, { act, hush } = window.aivista.shell;
  const $ = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const PAUSE_MS = 250, READ_AGAIN_MS = 2500, SETTLE_MS = 600, COUNTED_MS = 5500, TOP_PX = 40, KEY = "aivista-gallery-groups";
  const PAGE = 60, MOST_AGAIN = 300, MOST = 5000;
  const kept = () => { try { return localStorage.getItem(KEY) === "conversation"; } catch { return false; } };
  let look = { is_by_conversation: kept(), zone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC" };
  let asked = null, lost = null, next = null, isOther = false, isFilled = false, isStale = false, typed = 0, again = 0, counting = 0, seen = "", end = null;

  const pane = () => $("#gal");
  const grid = () => $("#gal-grid");
  const scroller = () => $("#gal .gal-scroll");
  const cells = () => all("#gal-grid .gal-cell");
  const open = () => $("#top h1")?.dataset.conversation || "";
  const isShown = () => root.dataset.tab === "gallery" && root.hasAttribute("data-stage");
  const isBelow = () => scroller().scrollTop > TOP_PX && !isOther;

  // ---- pictures are asked for; whoever has the focus on one keeps it, or goes on at its place
  const ask = async more => {
    const mine = asked = {}, before = cells(), had = document.activeElement?.closest?.(".gal-cell");
    if (!more.after) grid().setAttribute("aria-busy", "true");
    const { events } = await act("gallery.show", { ...look, ...more }, { isNewest: true });
    if (asked !== mine) return;
    asked = null;
    lost = events?.gallery ? null : more;
    pane().toggleAttribute("data-lost", Boolean(lost));
    if (lost) { grid().removeAttribute("aria-busy"); return; }
    const box = scroller(), find = $("#gal-find");
    if (isOther) box.scrollTop = 0;
    isOther = false;
    // The grid ends where the box above it does, whatever a scrollbar takes here.
    $("#gallery").style.setProperty("--gal-end", `${Math.max(2, parseFloat(getComputedStyle(box).paddingLeft) - box.offsetWidth + box.clientWidth)}px`);
    if (!typed && find.value.trim() !== find.dataset.words) find.value = find.dataset.words;
    for (const one of all("#gal-more [data-day]")) if (one.value !== one.getAttribute("value")) one.value = one.getAttribute("value");
    if (had && document.activeElement === document.body) $(".gal-pic", had.isConnected ? had : cells()[Math.min(before.indexOf(had), cells().length - 1)])?.focus({ preventScroll: true });
    next = events.gallery.next;
    clearTimeout(again);
    again = events.gallery.is_whole ? 0 : setTimeout(freshen, READ_AGAIN_MS);
    watchEnd();
  };
  const turn = change => {
    clearTimeout(typed);
    typed = 0;
    look = { ...look, ...change };
    isOther = isFilled = true;
    isStale = false;
    return ask({});
  };
  const similarTo = (id, handle) => turn({ ...JSON.parse($("#gal-clear").dataset.look), similar_to: Number(id), similar_handle: handle });
  const watchEnd = () => {
    // An observer speaks only when something changes: after a page the end may still be in sight.
    end?.disconnect();
    end = new IntersectionObserver(entries => {
      if (!next || asked || !entries.some(one => one.isIntersecting)) return;
      ask({ after: next, there: all("#gal-grid .gal-group").map(one => one.dataset.group) });
    }, { root: scroller(), rootMargin: "1400px 0px" });
    end.observe($("#gal-end"));
  };

  // ---- what has come meanwhile; further down what one looks at stays where it is, until one is at the top again
  const read = () => {
    if (!pane()) return;
    if (!isFilled) { turn({}); return; }
    isStale = isBelow();
    if (isStale) act("gallery.count", look); else ask({ count: isOther ? PAGE : Math.min(Math.max(cells().length, PAGE), MOST_AGAIN) });
  };
  const freshen = () => {
    // The counts may be some seconds old, and a conversation is shown a moment before its pictures are kept.
    clearTimeout(counting);
    counting = setTimeout(read, COUNTED_MS);
    read();
  };
  addEventListener("aivista-gallery-back", event => ask({ count: Math.min(Math.max(cells().length + event.detail, PAGE), MOST) }));
  addEventListener("aivista-tab", event => { if (event.detail === "gallery") freshen(); });
  addEventListener("scroll", event => { if (isStale && event.target === scroller() && !isBelow()) freshen(); }, true);
  let looking = 0;  // one look at the page for many changes of it
  const watch = () => {
    looking = 0;
    const now = `${open()} ${all("#chat .pic .frame:not(.pending), #chat .refs img").length}`;
    if (now === seen) return;
    const isElsewhere = now.split(" ")[0] !== seen.split(" ")[0];
    seen = now;
    if (!isFilled) return;
    if (!isShown()) { isStale = true; return; }
    if (isElsewhere && look.here) turn({}); else freshen();
  };
  const observe = () => {
    const shell = $("#center"), place = $("#gallery");
    if (!shell || !place) { setTimeout(observe, 200); return; }
    new MutationObserver(() => { looking ||= setTimeout(watch, SETTLE_MS); }).observe(shell, { childList: true, subtree: true, attributeFilter: ["data-conversation"] });
    // The tab may have been chosen before its words were there.
    new MutationObserver((_, watcher) => { if (pane()) { watcher.disconnect(); if (isShown()) freshen(); } }).observe(place, { childList: true, subtree: true });
  };
  if (document.body) observe(); else addEventListener("DOMContentLoaded", observe);

  // ---- filters: each says what it changes of what is looked for
  addEventListener("click", async event => {
    if (event.target.closest?.("#gal [data-gal=again]")) { hush(); ask(lost || {}); return; }
    const button = event.target.closest?.("#gal [data-look]"), change = button && JSON.parse(button.dataset.look);
    if (!change) return;
    if (button.closest("#gal-dates")) $("#gal-dates").hidePopover();
    if ("is_by_conversation" in change) try { localStorage.setItem(KEY, change.is_by_conversation ? "conversation" : "day"); } catch { /* private window: this page only */ }
    if (change.words === "") $("#gal-find").value = "";
    await turn(change);
    if (!button.isConnected && document.activeElement === document.body) $("#gal-on button, #gal-find").focus();
  });
  const typing = event => {
    if (event.target.id !== "gal-find" || event.isComposing) return;
    clearTimeout(typed);
    typed = setTimeout(() => { typed = 0; const words = event.target.value.trim(); if (words !== (look.words || "")) turn({ words }); }, PAUSE_MS);
  };
  addEventListener("input", typing);
  addEventListener("compositionend", typing);
  addEventListener("change", event => {
    const day = event.target.closest?.("#gal-more [data-day]")?.dataset.day;
    if (day) turn({ when: "", [day]: event.target.value || null });
  });
  addEventListener("keydown", event => {
    const box = event.target.id === "gal-find" ? event.target : null;
    if (box && keys.is(event, "field.leave") && box.value) {
      event.preventDefault();
      event.stopPropagation();
      box.value = "";
      turn({ words: "" });
    } else if (box && keys.is(event, "field.keep")) turn({ words: box.value.trim() });
    const item = event.target.closest?.("#gal-dates [role=menuitemradio]"), items = item ? all("#gal-dates [role=menuitemradio]").filter(one => one.checkVisibility()) : [];
    const to = item ? keys.walk(event, "menu.walk", items, items.indexOf(item)) : -1;
    if (to >= 0) { event.preventDefault(); items[to].focus(); }
  }, true);

  // ---- popovers stand where their button is; on a phone they are sheets, by CSS
  addEventListener("beforetoggle", event => {
    const box = event.target, button = box.classList?.contains("gal-pop") && event.newState === "open" && $(`#gal [popovertarget=${box.id}]:not(.solid)`);
    if (!button) return;
    const place = button.getBoundingClientRect(), frame = pane().getBoundingClientRect(), isAbove = place.top > innerHeight / 2;
    const right = `${innerWidth - frame.right + 12}px`, { style } = $("#gallery");
    style.setProperty("--gal-pop", isAbove ? `auto ${right} ${innerHeight - place.top + 8}px auto` : `${place.bottom + 6}px ${right} auto auto`);
    style.setProperty("--gal-pop-high", `${(isAbove ? place.top : innerHeight - place.bottom) - 24}px`);
  }, true);
  addEventListener("toggle", event => {
    if (event.target.id === "gal-dates" && event.newState === "open") $("#gal-dates [id^=gal-time][aria-checked=true], #gal-months [aria-checked=true], #gal-time-0").focus();
  }, true);

  window.aivista.gallery = { cells, open, similarTo, look: () => look, scroller };
})();
