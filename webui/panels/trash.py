"""The trash, in the place of the rail's list: deleted conversations, to be brought back or to go for good."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from html import escape

from agent import DeletedConversation
from webui.cards import button
from webui.words import Words


def trash_html(
    words: Words, deleted: Sequence[DeletedConversation], *, has_more: bool, now: datetime | None = None
) -> str:
    """Return the trash: what was deleted last comes first, each with how many days are left."""
    now = now or datetime.now(UTC)
    rows = "".join(_row(words, one, now) for one in deleted)
    listed = f"<ul>{rows}</ul>" if rows else f'<p class="none">{escape(words("trash.none"))}</p>'
    lead = f'<p class="none">{escape(words("trash.lead"))}</p>' if rows else ""
    more = f'<button type="button" class="b wide" data-rail="more">{escape(words("rail.more"))}</button>'
    return (
        f'<nav class="rail-list rail-trash" aria-label="{escape(words("trash.title"))}"><div class="trash-top">'
        f"{_press('list', words('trash.back'), 'arrow-left', 'icon', bare=True)}<h3>{escape(words('trash.title'))}</h3>"
        f"{_sure('empty', words('trash.empty'), words('trash.sure'), '') if rows else ''}</div>"
        f"{lead}{listed}{more if has_more else ''}</nav>"
    )


def _row(words: Words, one: DeletedConversation, now: datetime) -> str:
    title = one.title or words("top.untitled")
    # A clock that was set back makes no more days of them.
    days = min((one.kept_until - one.deleted_at).days, max(0, math.ceil((one.kept_until - now) / timedelta(days=1))))
    told = f"{_when(words, one.deleted_at, now)} · {words.counted('trash.left', days)}"
    return (
        f'<li><b title="{escape(title)}">{escape(title)}</b><small>{escape(told)}</small><div>'
        f"{_press('restore', words('trash.restore'), 'undo-2', 'line', one.id)}"
        f"{_sure('forget', words('trash.forget'), words('trash.sure'), one.id)}</div></li>"
    )


def _when(words: Words, moment: datetime, now: datetime) -> str:
    days = (now.astimezone().date() - moment.astimezone().date()).days
    if days <= 0:
        return words("trash.today")
    return words("trash.yesterday") if days == 1 else words.counted("trash.ago", days)


def _press(do: str, label: str, icon_name: str, kind: str, key: str = "", *, bare: bool = False) -> str:
    plain = button("x", label, icon_name, kind, bare=bare)
    return plain.replace(' data-act="x"', f' data-rail="{do}" data-id="{escape(key)}"', 1)


def _sure(do: str, label: str, sure: str, key: str) -> str:
    """Return a button that has to be pressed twice: the first time it asks."""
    plain = _press(do, label, "", "ghost danger", key)
    return plain.replace("<button ", f'<button data-sure="{escape(sure)}" ', 1)
