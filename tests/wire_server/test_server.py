"""The server as a test uses it: brains, faults, holding, waiting, and clients that leave."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from tests.support.waiting import PATIENCE_S
from tests.wire_server import (
    Answer,
    Delay,
    DelayBetweenChunks,
    Finish,
    GeminiServer,
    Hold,
    Text,
    WireRequest,
)
from tests.wire_server.raw import FLASH, HI, Raw
from tests.wire_server.steps import Asked, Piece, Step


def test_the_queue_goes_before_the_brain_and_each_kind_has_its_own(server: GeminiServer, raw: Raw) -> None:
    server.on_text(lambda request: Text("from the brain"), Text("from the queue"))
    server.on_image(Finish("NO_IMAGE"))
    assert [raw.parts(HI)[0]["text"] for _ in range(2)] == ["from the queue", "from the brain"]
    assert server.remaining == 1


def test_a_brain_may_leave_an_answer_to_the_default(raw: Raw, server: GeminiServer) -> None:
    server.on_text(lambda request: None)
    assert raw.parts(HI)[0]["text"] == "Hello."


def test_a_failing_brain_is_a_500_and_fails_the_test() -> None:
    def failing(request: WireRequest) -> Answer:
        raise LookupError("no idea")

    with pytest.raises(LookupError, match="no idea"), GeminiServer(text=failing) as server:
        _assert_answers_500(server)


def _assert_answers_500(server: GeminiServer) -> None:
    url = f"{server.url}/v1beta/models/{FLASH}:generateContent"
    response = httpx2.post(url, json=HI, headers={"x-goog-api-key": "a-key"}, trust_env=False)
    assert response.status_code == 500
    assert server.violations == []


class HalfAnAnswer(Answer):
    """Says one word and fails."""

    def steps(self, asked: Asked) -> Iterator[Step]:
        yield Piece(({"text": "Well"},))
        raise LookupError("lost for words")


def test_an_answer_that_fails_halfway_breaks_off_and_fails_the_test(raw: Raw) -> None:
    with pytest.raises(LookupError, match="lost for words"), GeminiServer() as server:
        _assert_breaks_off(server, raw)


def _assert_breaks_off(server: GeminiServer, raw: Raw) -> None:
    server.on_text(HalfAnAnswer())
    url = f"{server.url}/v1beta/models/{FLASH}:streamGenerateContent?alt=sse"
    with pytest.raises(httpx2.RemoteProtocolError):
        raw.http.post(url, json=HI)


def test_a_delayed_answer_is_whole(server: GeminiServer, raw: Raw) -> None:
    server.on_text(Delay(0.01, DelayBetweenChunks(0.01, Text("one two three", chunks=3))))
    assert raw.parts(HI)[0]["text"] == "one two three"


def test_a_release_that_comes_before_the_request_lets_that_one_answer_pass(server: GeminiServer, raw: Raw) -> None:
    server.on_text(Hold(Text("early")), Hold(Text("late")))
    server.release()
    assert raw.parts(HI)[0]["text"] == "early"
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(raw.parts, HI)
        server.wait_for_held()
        server.release()
        assert coming.result(10)[0]["text"] == "late"


def test_a_client_that_leaves_in_the_middle_is_noticed(server: GeminiServer, raw: Raw) -> None:
    server.on_text(Hold(Text("a long story", chunks=5), after_chunks=2))
    url = f"{server.url}/v1beta/models/{FLASH}:streamGenerateContent?alt=sse"
    with raw.http.stream("POST", url, json=HI):
        server.wait_for_held()
    left = server.wait_for_disconnect()
    assert (left.model, left.method, left.chunks_sent) == (FLASH, "streamGenerateContent", 2)
    assert server.violations == []


def test_waiting_for_what_never_comes_ends() -> None:
    with GeminiServer() as server, pytest.raises(TimeoutError, match="still not so"):
        server.wait_for_disconnect(timeout_s=0.01)


def test_clearing_forgets_the_script_and_the_records(server: GeminiServer, raw: Raw) -> None:
    server.on_text(Text("one"), Text("two"))
    raw.post({"contents": []})
    server.clear()
    assert (server.requests, server.violations, server.remaining) == ([], [], 0)
    assert raw.parts(HI)[0]["text"] == "Hello."


def test_the_server_ends_with_an_answer_under_way() -> None:
    with ThreadPoolExecutor(1) as pool:
        with GeminiServer() as server:
            server.on_text(Hold(Text("never")))
            url = f"{server.url}/v1beta/models/{FLASH}:generateContent"
            coming = pool.submit(httpx2.post, url, json=HI, headers={"x-goog-api-key": "k"}, trust_env=False)
            server.wait_for_held()
        assert isinstance(coming.exception(PATIENCE_S), httpx2.TransportError)
        assert server.disconnects == []


def test_a_port_in_use_is_an_error_at_once(server: GeminiServer) -> None:
    port = int(server.url.rpartition(":")[2])
    with pytest.raises(OSError, match="in use"), GeminiServer(port=port):
        pass
