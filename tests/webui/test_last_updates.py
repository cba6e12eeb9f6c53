"""What a handler said last is sent once more when it ends, by when the person may have gone on: it must be nothing."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.page import PageProcess

_PLAIN = {"__type__": "update"}
# The second is how Gradio says it to an HTML component, whose props are its own.
NOTHING = (_PLAIN, {**_PLAIN, "props": _PLAIN})


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageProcess]:
    with PageProcess(home=tmp_path_factory.mktemp("home")) as page:
        yield page


class Tab:
    """An open tab without a browser: it joins the queue and reads what comes."""

    def __init__(self, studio: PageProcess) -> None:
        self._api = f"{studio.url}/gradio_api/queue"
        with urllib.request.urlopen(studio.url) as answer:
            cookie = answer.headers["set-cookie"]
        self._headers = {"Content-Type": "application/json", **({"Cookie": cookie.partition(";")[0]} if cookie else {})}
        self.config = self._read(urllib.request.Request(f"{studio.url}/config", headers=self._headers))
        self.components = {one["id"]: one for one in self.config["components"]}

    def handler(self, elem_id: str | None, event: str) -> dict[str, Any]:
        """Return the handler of a component's event that streams; None is the page itself."""
        for one in self.config["dependencies"]:
            for target, name in one["targets"]:
                found = self.components.get(target, {}).get("props", {}).get("elem_id")
                if name == event and found == elem_id and one["types"]["generator"]:
                    return dict(one)
        raise LookupError(f"nothing streams at {event} of {elem_id}")

    def run(self, handler: dict[str, Any], event_data: object = None) -> list[list[Any]]:
        """Run a handler with every input as the page begins with it; return its updates in the order they came."""
        inputs = [self.components[one]["props"].get("value") for one in handler["inputs"]]
        call = {"data": inputs, "fn_index": handler["id"], "session_hash": "tab", "event_data": event_data}
        self._read(urllib.request.Request(f"{self._api}/join", json.dumps(call).encode(), self._headers))
        told: list[list[Any]] = []
        stream = urllib.request.Request(f"{self._api}/data?session_hash=tab", headers=self._headers)
        with urllib.request.urlopen(stream, timeout=60) as answer:
            for line in answer:
                message = json.loads(line.decode().removeprefix("data: ")) if line.strip() else {}
                if message.get("msg") in ("process_generating", "process_completed"):
                    assert message["success"], message
                    told.append(message["output"]["data"])
        return told

    def _read(self, request: urllib.request.Request) -> Any:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


@pytest.mark.parametrize(
    ("elem_id", "event", "data"),
    [
        (None, "load", None),
        ("bus", "click", {"act": "new"}),
        ("bus", "click", {"act": "settings"}),
        ("bus", "click", {"act": "nothing we know"}),
        ("branch-bus", "click", {"act": "switch", "turn": "t1"}),
        ("box", "submit", None),
    ],
)
def test_the_last_update_changes_nothing(
    studio: PageProcess, elem_id: str | None, event: str, data: dict[str, str] | None
) -> None:
    tab = Tab(studio)
    told = tab.run(tab.handler(elem_id, event), data)
    assert len(told) > 1
    assert [update for update in told[-1] if update not in NOTHING] == []
