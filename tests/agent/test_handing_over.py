"""What a visitor made and chose comes along to the account they sign in with."""

from __future__ import annotations

from pathlib import Path

from agent import ErrorCode, GalleryQuery, Preferences, Settings, Studio, TurnRequest, TurnSettings
from tests.support.refusals import refusal

VISITOR, ACCOUNT = "visitor-0001", "account-ann"


async def test_all_that_a_visitor_has_is_the_accounts_which_keeps_its_own(tmp_path: Path) -> None:
    wide, tall = (TurnSettings(aspect_ratio=ratio) for ratio in ("16:9", "9:16"))
    async with Studio(Settings(home=tmp_path)) as studio:
        kept, deleted, others = [
            (await studio.conversations.create(owner)).id for owner in (VISITOR, VISITOR, "visitor-0002")
        ]
        said = {kept: ("draw a fox", VISITOR), deleted: ("hello", VISITOR), others: ("hello", "visitor-0002")}
        for conversation, (text, owner) in said.items():
            async for _ in studio.run_turn(conversation, TurnRequest(text=text), owner=owner):
                pass
        await studio.conversations.delete(deleted, VISITOR)
        [picture] = (await studio.gallery.page(VISITOR, GalleryQuery())).items
        await studio.gallery.tag(VISITOR, [picture.id], "best")
        for owner, name in ((VISITOR, "Mine"), (VISITOR, "Both"), (ACCOUNT, "both")):
            await studio.styles.add({"name": {"en": name}, "phrases": [f"light of {owner}"]}, owner)
            await studio.preferences.presets.save(owner, name, tall if owner == ACCOUNT else wide)
        await studio.preferences.keep(VISITOR, Preferences(cap_day_usd=2))
        await studio.preferences.keep_defaults(VISITOR, wide)
        await studio.preferences.keep_defaults(ACCOUNT, tall)

        await studio.hand_over(VISITOR, ACCOUNT)

        assert [one.id for one in await studio.conversations.list(ACCOUNT)] == [kept]
        assert [one.id for one in await studio.conversations.trash(ACCOUNT)] == [deleted]
        assert [one.tags for one in (await studio.gallery.page(ACCOUNT, GalleryQuery())).items] == [("best",)]
        own = {one.title: one.phrases for one in await studio.styles.all(ACCOUNT) if one.is_own}
        assert own == {"both": (f"light of {ACCOUNT}",), "Mine": (f"light of {VISITOR}",)}
        assert [one.title for one in await studio.styles.all(VISITOR) if one.is_own] == ["Both"]
        presets = [(one.name, one.settings) for one in await studio.preferences.presets.of(ACCOUNT)]
        assert presets == [("both", tall), ("Mine", wide)]
        assert (await studio.preferences.of(ACCOUNT)).cap_day_usd == 2
        assert await studio.preferences.defaults(ACCOUNT) == tall
        assert [one.id for one in await studio.conversations.list("visitor-0002")] == [others]
        assert await refusal(studio.conversations.get(kept, VISITOR)) is ErrorCode.CONVERSATION_NOT_FOUND
