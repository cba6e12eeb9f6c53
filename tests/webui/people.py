"""A visitor of a studio who has conversations there, and speaks to it over HTTP as the page does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.golden.reading import elements, read
from tests.webui.hostile import Stranger

# The inputs of the settings, by element's id.
_SETTINGS = {
    "text_model": "text_model",
    "image_model": "image_model",
    "aspect_ratio": "aspect_ratio",
    "resolution": "resolution",
    "count": "number_of_images",
    "search": "allow_search",
    "policy": "search_policy",
    "review": "review",
    "confirm": "confirm",
    "avoid": "negative_prompt",
    "reference_mode": "reference_mode",
    "reference_count": "reference_count",
}


def words(html: Any) -> str:
    """Return what is read of a part of the page."""
    return "\n".join(read(str(html)))


def _place(html: dict[str, Any]) -> dict[str, Any]:
    """Return which conversation and which pictures the page is about by what it shows of them."""
    found = dict[str, Any]()
    if html.get("top"):
        [title] = elements(html["top"], "//h1")
        found["conversation"] = title.get("data-conversation").replace("new", "")
    if "ctx" in html:
        context = html["ctx"] or "<i></i>"
        edited = elements(context, "//*[@data-handle or @class='ctx none']")
        found |= {"editing": edited[0].get("data-handle") or "none" if edited else "", "references": [], "roles": {}}
        for field in elements(context, "//select[@data-role]"):
            found["references"].append(field.get("data-role"))
            for role in field.xpath("./option[@selected]/@value"):
                found["roles"][field.get("data-role")] = role
    return found


class Person(Stranger):
    """Somebody with a cookie and conversations of their own."""

    def says(self, *words: str, conversation: str = "", files: Sequence[bytes] = (), **on_page: Any) -> str:
        """Send words, one after the other, in a new conversation unless one is given; return its id.

        `files` are pictures beside the words, `on_page` what else goes along with them.
        """
        for text in words:
            self.send(text, files, conversation=conversation, **on_page)
            conversation = conversation or self.rows()[0]
        return conversation

    def send(self, text: str, files: Sequence[bytes] = (), **on_page: Any) -> str:
        """Send words as they stand in the composer, and return all that the page is told."""
        sent = [{"path": self.upload("a.png", one).json()[0], "meta": {"_type": "gradio.FileData"}} for one in files]
        composed = json.dumps(self._place(on_page.pop("conversation", ""), on_page))
        changed = self._replied("send", [{"text": text, "files": sent}, composed])
        return (json.dumps(changed) + json.dumps(self._followed(changed))).replace('\\"', '"')

    def press(self, act: str, arg: str = "", conversation: str = "", **at: Any) -> dict[str, Any]:
        """Press a button of the page, and follow the turn that begins; return all that was changed.

        `at` is what else stands there: what is marked, and settings by their names.
        """
        return self.ask(f"page.{act}", conversation, at, **({"arg": arg} if arg else {}))

    def ask(self, action: str, open_: str = "", at: dict[str, Any] | None = None, /, **args: Any) -> dict[str, Any]:
        """Ask for an action, and follow the turn that begins; return all that was changed, by element's id."""
        answer = self.http.post(f"/aivista/act/{action}", json={"args": args, "state": self._place(open_, at or {})})
        changed = self.changed(answer.json())
        return changed | self._followed(changed)

    def _place(self, conversation: str, at: dict[str, Any]) -> dict[str, Any]:
        """Return where the page stands: what is no setting is marked there."""
        chips = {_SETTINGS[one]: value for one, value in at.items() if one in _SETTINGS}
        marked = {one: value for one, value in at.items() if one not in _SETTINGS}
        return {"conversation": conversation, "chips": chips, **marked}

    def chooses(self, **settings: Any) -> dict[str, Any]:
        """Choose a setting that others follow from; return what was changed."""
        narrow = self.number("narrow")
        data = self.plain(narrow)
        inputs = next(one["inputs"] for one in self.config["dependencies"] if one["id"] == narrow)
        names = [self.names[one] for one in inputs]
        for name, value in settings.items():
            data[names.index(name.replace("_", "-"))] = value
        return self._replied("narrow", data)

    def _replied(self, event: str, data: list[Any]) -> dict[str, Any]:
        """Return what the reply to an event of Gradio's changes."""
        answer = self.join(self.number(event), data)
        assert answer.status_code == 200, answer.text
        return self.changed(json.loads(answer.json()["data"][0]))

    def changed(self, reply: dict[str, Any]) -> dict[str, Any]:
        """Return what a reply changes: HTML and values by element's id, the events of its scripts by name, and what the
        page is about then."""
        html = {patch["id"]: patch.get("html") for patch in reply["patches"]}
        inputs = reply["events"].pop("inputs", {})
        values = {name: one["value"] for name, one in inputs.items() if "value" in one}
        return {**html, **values, **reply["events"], **_place(html)}

    def _followed(self, changed: dict[str, Any]) -> dict[str, Any]:
        """Follow the turn that is at work by what the page was told, and return what its end changed."""
        thread = changed.get("thread") or {}
        if not thread.get("followed"):
            return {}
        return self.ask("page.ended", thread["conversation"], turn=self.follow(thread["conversation"]))

    def follow(self, conversation: str) -> str:
        """Read the stream of a conversation's turns until none is at work; return the id of the last one."""
        with self.http.stream("GET", f"/aivista/thread/{conversation}") as answer:
            for line in answer.iter_lines():
                reply = json.loads(line.removeprefix("data: ")) if line.startswith("data:") else {"events": {}}
                if "turn-over" in reply["events"]:
                    return str(reply["events"]["turn-over"])
        raise AssertionError("the stream ended before the turn")

    def look(self, query: str = "", **more: Any) -> str:
        """Return the list of conversations, whole or found."""
        return str(self.act("conversations.look", query=query, **more)["rail-list"])

    def rows(self, query: str = "", **more: Any) -> list[str]:
        """Return the ids of the conversations that are listed."""
        listed = (one.get("data-id") for one in elements(self.look(query, **more), "//*[@data-id]"))
        return list(dict.fromkeys(one for one in listed if one))

    def changes(self, act: str, key: str, current: str = "", **more: Any) -> dict[str, Any]:
        """Return what a change of a conversation changed on the page, with what was opened for it."""
        changed: dict[str, Any] = {**self.act(f"conversations.{act}", current, id=key, **more)}
        opened = json.loads(changed.get("events") or "{}").get("open")
        if opened is None:
            return changed
        return changed | self.press("open", opened, current)

    def shown(self, conversation: str) -> str:
        """Return the page as it comes for a conversation."""
        return self.http.get(f"/?c={conversation}").text

    def tree(self, conversation: str, act: str = "show", **args: Any) -> dict[str, Any]:
        return self.act(f"tree.{act}", conversation, **args)

    def gallery(self, act: str, at: str = "", **args: Any) -> dict[str, Any]:
        """Ask for an action of the gallery; return what it changed, by element's id, and what the script is told."""
        changed = self.act(f"gallery.{act}", at, **args)
        events = json.loads(changed.pop("events", None) or "{}")
        return {**changed, **events}

    def trace(self, conversation: str, act: str = "show", **args: Any) -> str:
        """Return what the page shows of a trace: its turns, those before one, a turn's steps or all of a step."""
        changed = self.act(f"trace.{act}", conversation, **args)
        return "".join(html or "" for name, html in changed.items() if name.startswith("trc"))

    def preset(self, act: str, **args: Any) -> str:
        """Return the menu of presets, as it is after something was done in it."""
        return str(self.act(f"presets.{act}", **args)["presets-rows"])

    def file(self, conversation: str, act: str, **args: Any) -> dict[str, Any]:
        """Ask for an action of the files; return what it changed, by element's id, and what the script is told."""
        taken = {"open": "key name", "create": "key name", "save": "key name text version", "run": "key name"}
        taken |= {"compare": "key name text", "rename": "name new_name is_folder", "delete": "name is_folder"}
        wanted = {*taken.get(act, "token").split(), "docs"}
        given = {name: value for name, value in ({"key": "fi-1"} | args).items() if name in wanted}
        changed = self.act(f"files.{act}", conversation, conversation=conversation, **given)
        return {**changed, **json.loads(changed.pop("events", None) or "{}")}

    def begins_a_file(self, name: str) -> str:
        """Begin a file before anything was said; return the conversation that was begun with it."""
        return str(self.file("", "create", name=name)["begun"])

    def presets(self) -> list[str]:
        return [one.get("data-id") for one in elements(self.preset("show", is_begun=True), "//li[@data-id]")]
