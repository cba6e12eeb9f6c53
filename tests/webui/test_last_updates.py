"""What a handler said last is sent once more when it ends, by when the person may have gone on: it must be nothing."""

from __future__ import annotations

from tests.page import PageProcess
from tests.support.cases import each_case
from tests.support.tables import filled, table
from tests.webui.hostile import Stranger

_PLAIN = {"__type__": "update"}
# The second is how Gradio says it to an HTML component, whose props are its own.
NOTHING = (_PLAIN, {**_PLAIN, "props": _PLAIN})


@each_case(("elem_id", "event", "data"), filled(table("page_requests")["last_updates"], {}))
def test_the_last_update_changes_nothing(
    own: PageProcess, elem_id: str | None, event: str, data: dict[str, str] | None
) -> None:
    tab = Stranger(own.url)
    parts = {one["id"]: one["props"] for one in tab.config["components"]}
    handler = next(
        one
        for one in tab.config["dependencies"]
        for target, name in one["targets"]
        if (name, parts.get(target, {}).get("elem_id")) == (event, elem_id) and one["types"]["generator"]
    )
    inputs = [parts[one].get("value") for one in handler["inputs"]]
    told = [one for one in tab.done(handler["id"], inputs, event_data=data) if "output" in one]
    tab.close()
    assert all(one["success"] for one in told)
    assert len(told) > 1
    assert [update for update in told[-1]["output"]["data"] if update not in NOTHING] == []
