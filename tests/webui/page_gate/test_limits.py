"""How much strangers may ask: each of them, all behind one address, and all whose address is not known."""

from __future__ import annotations

import contextlib

from webui.page_gate.comers import Comer
from webui.page_gate.limits import AtWork, Rate
from webui.words import load_words


def comer(name: str, address: str | None = "93.184.216.1") -> Comer:
    return Comer(name, address, load_words("en"))


def test_a_fresh_cookie_for_each_question_does_not_help_and_unknown_addresses_share_a_larger_bucket() -> None:
    for address, most, other in (("93.184.216.1", 10, "93.184.216.2"), (None, 40, "93.184.216.1")):
        rate = Rate.of(2)
        waits = [rate.wait_s(comer(f"fresh {number}", address)) for number in range(most + 1)]
        assert (waits[:most], waits[-1] > 0) == ([0.0] * most, True)
        assert rate.wait_s(comer("other", other)) == 0


def test_one_is_at_work_of_a_visitor_and_a_few_of_an_address_and_what_failed_is_no_more() -> None:
    at_work = AtWork()
    crowd = [at_work.one(comer(f"fresh {number}")) for number in range(5)]
    assert [one.__enter__() for one in crowd] == [0] * 5
    for other, is_let in (comer("fresh 0", None), False), (comer("another"), False), (comer("one", "8.8.8.8"), True):
        with at_work.one(other) as wait_s:
            assert (wait_s == 0) == is_let
    crowd[0].__exit__(None, None, None)
    for name in ("fresh 0", "another", *["ann"] * 9):
        with contextlib.suppress(ValueError), at_work.one(comer(name)) as wait_s:
            assert wait_s == 0
            raise ValueError
