"""What tries to reach this machine, its network or its cloud through the fetcher; none of it is ever dialled."""

from __future__ import annotations

import pytest

from agent import AivistaError, ErrorCode, NetworkFailure, ToolArgumentError
from tests.adapters.fetcher import Fetcher, Guard
from tests.support.cases import each_case
from tests.support.tables import table
from tests.support.web import Names, Web, web

ADDRESSES = table("web_addresses")["hiding"]
SPELLINGS = table("web_addresses")["misspelled"]
NAMES = table("web_addresses")["names"]


async def refusal(url: str, names: Names) -> AivistaError | None:
    """Return how a fetcher with the policy as it is refuses an address, or nothing if it does not."""
    async with Fetcher(Guard(names)) as fetcher:
        try:
            await fetcher.fetch(url)
        except AivistaError as error:
            return error
    return None


async def test_an_address_that_hides_another_and_a_name_that_leads_anywhere_private_are_refused() -> None:
    wrong = []
    for url, leads_to in {**dict.fromkeys((*ADDRESSES, *SPELLINGS)), **NAMES}.items():
        names = Names()
        if leads_to:
            names.lead(url, *leads_to)
        error = await refusal(f"http://{url}/" if leads_to else url, names)
        if error is None or error.code is not ErrorCode.ADDRESS_REFUSED or names.asked != ([url] if leads_to else []):
            wrong.append((url, error, names.asked))
    assert wrong == []


@pytest.mark.parametrize("url", ["http://nowhere.test/", "https://lоcalhost.test/"])
async def test_a_name_that_nobody_knows_is_out_of_reach(url: str) -> None:
    error = await refusal(url, Names())
    assert isinstance(error, NetworkFailure)
    assert error.code is ErrorCode.PAGE_UNREACHABLE


@each_case("location", table("web_addresses")["redirects"])
async def test_a_redirect_is_checked_as_the_first_address_is(location: str) -> None:
    async with web() as served:
        _know(served)
        served.redirect("/", location)
        async with Fetcher(served.guard) as fetcher:
            with pytest.raises(ToolArgumentError) as caught:
                await fetcher.fetch("http://site.test/")
        assert caught.value.code is ErrorCode.ADDRESS_REFUSED
        assert len(served.requests) == 1
        # What the page wrote is not repeated: it would be outside text in a sentence of ours.
        assert "site.test" in str(caught.value)
        assert "127" not in str(caught.value)


async def test_a_name_is_looked_up_once_for_each_hop_and_what_was_checked_is_what_is_dialled() -> None:
    for place, said in (("10.0.0.1", "not public"), ("169.254.169.254", "leads on to an address that is none")):
        async with web() as served:
            served.names.lead("rebinding.test", "127.0.0.1")
            served.names.lead("rebinding.test", place)
            served.page("/", b"<p>first")
            served.redirect("/hop", "/latest/meta-data")
            async with Fetcher(served.guard) as fetcher:
                if place == "10.0.0.1":
                    assert (await fetcher.fetch("http://rebinding.test/")).content == "<p>first"
                    assert served.names.asked == ["rebinding.test"]
                with pytest.raises(ToolArgumentError, match=said):
                    await fetcher.fetch("http://rebinding.test/hop")
            assert len(served.requests) == 1


def _know(served: Web) -> None:
    for name, addresses in NAMES.items():
        served.names.lead(name, *(address for address in addresses if address != "127.0.0.1"))
