// The trace: turns come from Python when they are looked at, steps when their turn is opened, what they hold when they
// are. While a turn runs its steps come in below; nothing that is open is closed, nothing that is read moves.
(() => {
  const root = document.documentElement;
  const $ = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const EVERY_MS = 1000, NEAR_PX = 48;
  let shownOf = null, hasMore = false, isAsking = false, wasLive = false, older = null;

  const pane = () => $("#trace .trc");
  const list = () => $("#trace .trc-turns");
  const scroller = () => $("#trace .trc-scroll");
  const turns = () => all(":scope > .trc-turn", list());
  const turnOf = id => turns().find(one => one.dataset.turn === id);
  const conversation = () => { const open = $("#top h1")?.dataset.conversation || ""; return open === "new" ? "" : open; };
  const isShown = () => root.dataset.tab === "trace" && root.hasAttribute("data-stage") && Boolean(pane());
  const isLive = () => Boolean($("#chat .live"));
  const address = (...parts) => ["aivista/trace", ...parts.map(encodeURIComponent)].join("/");

  // ---- Python is asked; whatever goes wrong is one sentence
  const ask = async path => {
    const answer = await fetch(path).catch(() => null), body = await answer?.json().catch(() => null);
    if (!answer?.ok || !body) throw new Error(body?.error || pane().dataset.failed);
    return body;
  };
  const tell = text => { $("#trace .trc-note").textContent = text; };
  const elements = html => { const box = document.createElement("template"); box.innerHTML = html; sayMoments(box.content); return [...box.content.children]; };
  const sayMoments = from => {
    for (const one of all("[data-moment]", from)) one.textContent = new Date(one.dataset.moment).toLocaleString(root.lang || undefined, { dateStyle: "medium", timeStyle: "short" });
  };

  // ---- what is there stays as it is; only what has changed is put in its place
  const settleSteps = (have, fresh) => {
    have.style.cssText = fresh.style.cssText;
    let last = null;
    for (const one of [...fresh.children]) {
      const same = $(`:scope > [data-number="${one.dataset.number}"]`, have);
      if (same && same.tagName === one.tagName) {
        const [line, now] = [$(".trc-line", same), $(".trc-line", one)];
        if (line.innerHTML !== now.innerHTML) line.innerHTML = now.innerHTML;
        same.className = one.className;
        last = same;
        continue;
      }
      if (same) same.replaceWith(one); else if (last) last.after(one); else have.prepend(one);
      last = one;
    }
  };
  const settleTurn = (have, fresh) => {
    have.className = fresh.className;
    const [head, now] = [$(".trc-head", have), $(".trc-head", fresh)];
    if (head.innerHTML !== now.innerHTML) head.innerHTML = now.innerHTML;
    if (have.hasAttribute("data-lazy")) return;
    const [steps, more] = [$(".trc-steps", have), $(".trc-steps", fresh)];
    if (!more) { if (!steps && fresh.hasAttribute("data-lazy")) fill(have); return; }
    if (!steps) { $(".trc-in", have).replaceChildren(...$(".trc-in", fresh).children); return; }
    $(".trc-sums", have).innerHTML = $(".trc-sums", fresh).innerHTML;
    settleSteps(steps, more);
  };
  const settle = () => {
    const isEmpty = !turns().length;
    $("#trace .empty").hidden = !isEmpty;
    $("#trace .trc-bar").hidden = isEmpty;
    $("#trace .trc-none").hidden = isEmpty || !pane().hasAttribute("data-errors") || turns().some(one => one.matches(".trouble"));
    const save = $("#trace [data-trace=save]");
    if (shownOf) save.href = `${address(shownOf)}.json`;
  };

  // ---- a page of turns, those before them, and what has come since
  const load = async () => {
    const mine = conversation();
    if (isAsking) return;
    if (!mine) { shownOf = ""; list().replaceChildren(); hasMore = false; tell(""); settle(); return; }
    isAsking = true;
    const isOther = shownOf !== mine, since = isOther ? "" : turns().at(-1)?.dataset.turn || "";
    if (isOther) { list().replaceChildren(); tell(pane().dataset.loading); }
    try {
      const page = await ask(`${address(mine)}${since ? `?since=${encodeURIComponent(since)}` : ""}`);
      if (mine !== conversation()) return;
      const box = scroller(), wasAtEnd = isOther || box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
      const fresh = page.turns.flatMap(turn => elements(turn.html)), ids = new Set(page.turns.map(turn => turn.id));
      // Another branch is shown now: the turns that it has not go.
      const stale = !isOther && since && !ids.has(since);
      if (stale) list().replaceChildren();
      for (const one of fresh) { const have = turnOf(one.dataset.turn); if (have) settleTurn(have, one); else list().append(one); }
      if (isOther || !since || stale) hasMore = page.has_more;
      shownOf = mine;
      tell("");
      settle();
      watchStart();
      if (wasAtEnd && !$(".trc-step[open]", list())) box.scrollTop = box.scrollHeight;
    } catch (error) { tell(error.message); } finally { isAsking = false; }
    if (isShown() && conversation() !== shownOf) load();
  };
  const loadOlder = async () => {
    const first = turns()[0];
    if (isAsking || !hasMore || !first) return;
    isAsking = true;
    try {
      const page = await ask(`${address(shownOf)}?before=${encodeURIComponent(first.dataset.turn)}`);
      const box = scroller(), below = box.scrollHeight - box.scrollTop;
      list().prepend(...page.turns.flatMap(turn => elements(turn.html)));
      box.scrollTop = box.scrollHeight - below;
      hasMore = page.has_more;
      settle();
      watchStart();
    } catch (error) { tell(error.message); } finally { isAsking = false; }
  };
  const watchStart = () => {
    older?.disconnect();
    if (!hasMore) return;
    older = new IntersectionObserver(entries => { if (entries.some(one => one.isIntersecting)) loadOlder(); }, { root: scroller(), rootMargin: "400px 0px" });
    older.observe($("#trace .trc-start"));
  };

  // ---- what is opened is fetched then, once
  const put = async (place, path) => {
    place.textContent = pane().dataset.loading;
    place.setAttribute("aria-busy", "true");
    try {
      const { html } = await ask(path);
      place.replaceChildren(...elements(html));
      place.dataset.full = "";
    } catch (error) { place.textContent = error.message; } finally { place.removeAttribute("aria-busy"); }
  };
  const fill = async turn => {
    turn.removeAttribute("data-lazy");
    const place = $(".trc-in", turn);
    await put(place, address(shownOf, turn.dataset.turn));
    if (!("full" in place.dataset)) turn.setAttribute("data-lazy", "");
  };
  addEventListener("toggle", event => {
    const one = event.target;
    if (!one.open || !one.closest?.("#trace")) return;
    if (one.matches(".trc-turn[data-lazy]")) fill(one);
    const body = one.matches(".trc-step") ? $(":scope > .trc-body", one) : null;
    if (body && !("full" in body.dataset)) put(body, address(shownOf, one.closest(".trc-turn").dataset.turn, one.dataset.number));
  }, true);

  addEventListener("click", event => {
    const button = event.target.closest?.("[data-trace=errors]");
    if (!button) return;
    const isOn = pane().toggleAttribute("data-errors");
    button.setAttribute("aria-pressed", String(isOn));
    settle();
  });

  // ---- shown anew when one comes to it, and as long as a turn runs
  addEventListener("aivista-tab", event => { if (event.detail === "trace") load(); });
  setInterval(() => {
    if (!isShown() || document.hidden) return;
    const live = isLive();
    if (live || wasLive || conversation() !== shownOf) load();
    wasLive = live;
  }, EVERY_MS);
})();
