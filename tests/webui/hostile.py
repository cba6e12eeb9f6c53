"""What somebody does who speaks to Gradio's part of the page without the page."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import httpx

# What no stranger may read.
SECRET = "canary-of-the-victim-5d1c"


@dataclass
class Stranger:
    """A browser of its own, with a cookie unless it wants none, that holds a session of Gradio's."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    has_cookie: bool = True
    session: str = field(default_factory=lambda: secrets.token_hex(6))

    @cached_property
    def http(self) -> httpx.Client:
        """The client; the page has been opened once."""
        client = httpx.Client(base_url=self.url, headers=dict(self.headers), timeout=60)
        if self.has_cookie:
            assert client.get("/").status_code == 200
        return client

    @cached_property
    def config(self) -> dict[str, Any]:
        """The page as Gradio describes it to everybody."""
        found: dict[str, Any] = self.http.get("/config").json()
        return found

    @cached_property
    def names(self) -> dict[int, str]:
        """The ids of the parts' elements, by number."""
        return {one["id"]: one["props"].get("elem_id") or "" for one in self.config["components"]}

    @cached_property
    def events(self) -> dict[int, list[str]]:
        """The kinds of the inputs of every event, by its number; private ones too."""
        kinds = {one["id"]: one["type"] for one in self.config["components"]}
        return {
            one["id"]: [kinds[name] for name in one["inputs"]]
            for one in self.config["dependencies"]
            if one["backend_fn"]
        }

    def close(self) -> None:
        """Leave."""
        self.http.close()

    def number(self, api_name: str) -> int:
        """Return the number of an event by its name."""
        return next(int(one["id"]) for one in self.config["dependencies"] if one["api_name"] == api_name)

    def plain(self, number: int) -> list[Any]:
        """Return values for an event that the page could send."""
        values = {"state": None, "checkbox": False, "number": None, "multimodaltextbox": {"text": "", "files": []}}
        starts = {one["id"]: one["props"].get("value") for one in self.config["components"]}
        inputs = next(one["inputs"] for one in self.config["dependencies"] if one["id"] == number)
        return [
            values[kind] if kind in values else starts[name] or ""
            for name, kind in zip(inputs, self.events[number], strict=True)
        ]

    def path(self, number: int) -> str:
        """Return where an event is asked for: those of programs wait in Gradio's queue."""
        return "/gradio_api/queue/join" if number == self.number("chat") else "/gradio_api/run/predict"

    def join(self, number: int, data: Any, **more: Any) -> httpx.Response:
        """Ask for an event by its number."""
        body = {"fn_index": number, "data": data, "session_hash": self.session, "event_data": None, **more}
        return self.http.post(self.path(number), json=body)

    def heard(self, answer: httpx.Response) -> str:
        """Return all that is told of an event that was let in."""
        told = answer.json()
        return str(self.told(told["event_id"]) if "event_id" in told else told)

    def told(self, *event_ids: str) -> list[dict[str, Any]]:
        """Return all that is told of events until each is done; the last says how one of them ended.

        All that a session has open is named: Gradio drops what is open once nobody listens.
        """
        path, found = f"/gradio_api/queue/data?session_hash={self.session}", list[dict[str, Any]]()
        going_on = set(event_ids)
        with self.http.stream("GET", path) as answer:
            for line in answer.iter_lines():
                message = json.loads(line.removeprefix("data:")) if line.startswith("data:") else {}
                if message.get("event_id") in event_ids:
                    found.append(message)
                    if message["msg"] == "process_completed":
                        going_on.discard(message["event_id"])
                if not going_on:
                    return found
        raise AssertionError("the stream ended before the event")

    def act(self, name: str, at: str = "", /, **args: Any) -> dict[str, str | None]:
        """Have the page ask for an action, with a conversation open; return the HTML that it changed by element's id.

        What goes has None. What a script does with the reply stands there as JSON under `events`.
        """
        asked = {"args": args, "state": {"conversation": at}}
        reply = self.http.post(f"/aivista/act/{name}", json=asked).json()
        changed = {patch["id"]: patch.get("html") for patch in reply["patches"]}
        return changed | ({"events": json.dumps(reply["events"])} if reply["events"] else {})

    def upload(self, name: str, data: bytes, **headers: str) -> httpx.Response:
        """Send a file as the composer does."""
        return self.http.post("/gradio_api/upload", files={"files": (name, data, "image/png")}, headers=headers)
