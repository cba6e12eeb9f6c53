"""How much strangers may ask: each of them, all behind one address, and all whose address is not known."""

from __future__ import annotations

from webui.page_gate.comers import Comer
from webui.page_gate.limits import AtWork, Rate
from webui.words import load_words


def comer(name: str, address: str | None = "93.184.216.1") -> Comer:
    return Comer(name, address, load_words("en"))


def test_a_fresh_cookie_for_each_question_does_not_help() -> None:
    rate = Rate.of(2)
    waits = [rate.wait_s(comer(f"fresh {number}")) for number in range(11)]
    assert waits[:10] == [0.0] * 10
    assert waits[-1] > 0
    assert rate.wait_s(comer("other", "93.184.216.2")) == 0


def test_those_whose_address_is_not_known_share_a_larger_bucket() -> None:
    rate = Rate.of(2)
    waits = [rate.wait_s(comer(f"fresh {number}", None)) for number in range(41)]
    assert waits[:40] == [0.0] * 40
    assert waits[-1] > 0
    assert rate.wait_s(comer("other")) == 0


def test_one_is_at_work_of_a_visitor_and_a_few_of_an_address() -> None:
    at_work = AtWork()
    crowd = [at_work.one(comer(f"fresh {number}")) for number in range(5)]
    assert [one.__enter__() for one in crowd] == [0] * 5
    for other, is_let in (comer("fresh 0", None), False), (comer("another"), False), (comer("one", "8.8.8.8"), True):
        with at_work.one(other) as wait_s:
            assert (wait_s == 0) == is_let
    crowd[0].__exit__(None, None, None)
    for name in ("fresh 0", "another"):
        with at_work.one(comer(name)) as wait_s:
            assert wait_s == 0


def test_what_failed_is_at_work_no_more() -> None:
    at_work = AtWork()
    for _ in range(9):
        try:
            with at_work.one(comer("ann")) as wait_s:
                assert wait_s == 0
                raise ValueError
        except ValueError:
            continue
