// An event that was accepted after Gradio's stream of answers had ended, but before Gradio read of that, would never be
// answered (page_gate/answer_streams.py): it is handed on once Gradio has read of every end. One that was not accepted is
// told to the page as well.
(() => {
  const STEP_MS = 10, STEPS = 500;
  const plain = window.fetch;
  let read = 0;
  const hasRead = async count => { for (let left = STEPS; read < count && left; left -= 1) await new Promise(done => setTimeout(done, STEP_MS)); };
  const refused = why => dispatchEvent(new CustomEvent("aivista-refused", { detail: why }));
  window.fetch = async (resource, init) => {
    const { pathname } = new URL(resource.url ?? resource, location.href);
    // Gradio leaves a stream as soon as it has read of its end.
    if (pathname.endsWith("/gradio_api/queue/data")) resource.signal?.addEventListener("abort", () => { read += 1; });
    if (!pathname.endsWith("/gradio_api/queue/join")) return plain(resource, init);
    const [marked, taken] = window.aivistaSending.marked(init);
    try {
      const answer = await plain(resource, marked);
      if (answer.ok) taken();
      else refused({ status: answer.status, ...await answer.clone().json().catch(() => ({})) });
      await hasRead(Number(answer.headers.get("x-ended-streams")));
      return answer;
    } catch (error) {
      refused({ status: 0 });
      throw error;
    }
  };
})();
