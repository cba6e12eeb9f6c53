from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import ToolArgumentError
from tests.adapters.fetcher import MAX_URL_CHARACTERS, followed, normalized, web_url
from tests.support.cases import each_case
from tests.support.tables import table


@each_case(("written", "spelled"), table("web_addresses")["spellings"])
def test_an_address_has_one_spelling(written: str, spelled: str) -> None:
    assert normalized(written) == normalized(spelled) == spelled


def test_addresses_that_a_server_can_tell_apart_stay_apart_and_what_may_not_be_asked_for_has_no_spelling() -> None:
    different = ["http://a.org/a", "http://a.org/%61", "http://a.org/A", "http://a.org/a?", "http://a.org/a/"]
    assert len({normalized(url) for url in different}) == len(different)
    assert normalized("ftp://example.org/") == ""


def test_a_link_is_followed_from_where_it_stands_and_checked_as_an_address_is() -> None:
    start = web_url("http://example.org/b/a")
    assert [one for one in table("web_addresses")["followed"] if "b" not in str(followed(start, one))] == []
    for location in table("web_addresses")["not_followed"]:
        with pytest.raises(ToolArgumentError):
            followed(web_url("http://example.org/"), location)


def test_the_length_holds_for_what_is_sent() -> None:
    start = "http://a.org/"
    assert web_url(start + "a" * (MAX_URL_CHARACTERS - len(start)))
    for rest in ("a" * (MAX_URL_CHARACTERS - len(start) + 1), "狐" * 400):
        with pytest.raises(ToolArgumentError, match="more than 2048"):
            web_url(start + rest)


def test_every_port_but_zero_may_be_allowed() -> None:
    assert str(web_url("http://a.org:8443/", ports=None)) == "http://a.org:8443/"
    for port in (0, 65536, 99999):
        with pytest.raises(ToolArgumentError):
            web_url(f"http://a.org:{port}/", ports=None)


@given(st.text(max_size=80))
def test_any_text_is_an_address_in_ascii_or_refused(text: str) -> None:
    for url in (text, f"http://{text}", f"http://a.org/{text}"):
        spelled = normalized(url)
        assert spelled.isascii()
        assert normalized(spelled) == spelled
