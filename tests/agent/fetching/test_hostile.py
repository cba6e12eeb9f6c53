"""What tries to reach this machine, its network or its cloud through the fetcher; none of it is ever dialled."""

from __future__ import annotations

import pytest

from agent.errors import AivistaError, ErrorCode, NetworkFailure, ToolArgumentError
from tests.adapters.fetcher import Fetcher, Guard
from tests.support.cases import each_case
from tests.support.web import Names, Web, web

ADDRESSES = (
    *("http://127.0.0.1/", "http://localhost/", "http://LOCALHOST./", "http://127.1/", "http://127.0.1/"),
    *("http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://017700000001/"),
    *("http://0/", "http://0.0.0.0/", "http://127.127.127.127/", "http://[::1]/", "http://[::]/"),
    *("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[0:0:0:0:0:ffff:7f00:0001]/"),
    *("http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/"),
    *("http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", "http://[fe80::1%25lo]/", "http://[fe80::1%lo]/"),
    *("http://[fc00::1]/", "http://[fec0::1]/", "http://[ff02::1]/", "http://10.0.0.1/", "http://172.16.0.1/"),
    *("http://192.168.0.1/", "http://100.64.0.1/", "http://100.100.100.200/", "http://169.254.169.254/latest/"),
    *("http://[fd00:ec2::254]/", "http://2852039166/", "http://0xA9FEA9FE/", "http://metadata.google.internal/"),
    *("http://192.0.0.192/", "http://198.18.0.1/", "http://224.0.0.1/", "http://255.255.255.255/"),
    *("http://240.0.0.1/", "http://192.88.99.1/"),
    *("http://168.63.129.16/", "http://[fd20:ce::254]/", "http://192.80.8.124/", "http://161.26.0.10/"),
    *("http://metadata.platformequinix.com/metadata", "http://METADATA.tencentyun.com./latest/"),
    *("http://①②⑦.⓪.⓪.①/", "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", "http://127。0。0。1/", "http://127．0．0．1/", "http://127｡0｡0｡1/"),
    *("http://lоcalhost/", "http://ｌｏｃａｌｈｏｓｔ/"),
)
SPELLINGS = (
    *("http://site.test:22/", "http://site.test:7860/", "http://site.test:0/", "http://site.test:99999/"),
    *("http://user:pw@site.test/", "http://ok@127.0.0.1/", "http://127.0.0.1#@ok/"),
    *(
        "http://site.test\\@127.0.0.1/",
        "http://127.0.0.1\\@site.test/",
        "http:\\\\127.0.0.1\\",
        "http://site.test%40a/",
    ),
    *("file:///etc/passwd", "FILE:///etc/passwd", "gopher://site.test/", "ftp://site.test/", "data:text/html,hi"),
    *("javascript:alert(1)", "dict://site.test/", "unix:/var/run/docker.sock", "http:///etc", "//127.0.0.1/"),
    *("http:127.0.0.1", "http:/127.0.0.1", "http://a.localhost/", "http://printer.local/", "http://nas.lan/"),
    *("http://router.home.arpa/", "http://vault.internal./", "http://intranet/"),
    *(
        "http://site.test/\r\nHost: evil",
        "http://site.test/\r\n\r\nGET /",
        "http://site.test/a b",
        "http://site .test/",
    ),
    *("http://site.test/\u200b", "http://si\u00adte.test/", "http://site.test/\x00", "\thttp://site.test/"),
    *(f"http://{'a' * 70}.test/", f"http://{'a.' * 2000}test/", "", "http://", "http://./", "http://site..test/"),
    *("http://[::1", "http://::1/", "http://[site.test]/", "http://site.test:80:80/", "http://site.test:８０/"),
    *(
        "http://-site.test/",
        "http://[::ffff:127.0.0.1%25eth0]/",
        "http://1.2.3.4.5/",
        "http://1.2.3.08/",
        "http://a.0x/",
    ),
)
NAMES = {
    "private.test": ["10.1.2.3"],
    "loopback.test": ["127.0.0.1"],
    "metadata.test": ["169.254.169.254"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "nat64.test": ["64:ff9b::7f00:1"],
    "cgnat.test": ["100.64.0.1"],
    "oracle.test": ["192.0.0.192"],
    "azure.test": ["168.63.129.16"],
    "google.test": ["fd20:ce::254"],
    "six-to-four.test": ["2002:7f00:1::"],
    "link.test": ["fe80::1%eth0"],
    "mixed.test": ["93.184.216.34", "10.0.0.1"],
    "mixed-the-other-way.test": ["127.0.0.1", "93.184.216.34"],
    "half-in-v6.test": ["93.184.216.34", "fd00::1"],
}


async def refusal(url: str, names: Names) -> AivistaError | None:
    """Return how a fetcher with the policy as it is refuses an address, or nothing if it does not."""
    async with Fetcher(Guard(names)) as fetcher:
        try:
            await fetcher.fetch(url)
        except AivistaError as error:
            return error
    return None


async def test_an_address_that_hides_another_is_refused() -> None:
    wrong = []
    for url in (*ADDRESSES, *SPELLINGS):
        names = Names()
        error = await refusal(url, names)
        if error is None or error.code is not ErrorCode.ADDRESS_REFUSED or names.asked:
            wrong.append((url, error, names.asked))
    assert wrong == []


async def test_a_name_that_leads_anywhere_private_is_refused() -> None:
    wrong = []
    for name, addresses in NAMES.items():
        names = Names()
        names.lead(name, *addresses)
        error = await refusal(f"http://{name}/", names)
        if error is None or error.code is not ErrorCode.ADDRESS_REFUSED or names.asked != [name]:
            wrong.append((name, error, names.asked))
    assert wrong == []


@pytest.mark.parametrize("url", ["http://nowhere.test/", "https://lоcalhost.test/"])
async def test_a_name_that_nobody_knows_is_out_of_reach(url: str) -> None:
    error = await refusal(url, Names())
    assert isinstance(error, NetworkFailure)
    assert error.code is ErrorCode.PAGE_UNREACHABLE


@each_case(
    "location",
    [
        *("http://127.0.0.1/", "http://localhost/", "http://2130706433/", "http://[::1]/", "http://169.254.169.254/"),
        *("//127.1/", "file:///etc/passwd", "http://private.test/", "http://mixed.test/", "http://site.test:22/"),
        *("http://user:pw@site.test/", "gopher://site.test/", "http://100.100.100.200/", "\\\\127.0.0.1\\x"),
    ],
)
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


async def test_a_name_is_looked_up_once_and_what_was_checked_is_what_is_dialled() -> None:
    async with web() as served:
        served.names.lead("rebinding.test", "127.0.0.1")
        served.names.lead("rebinding.test", "10.0.0.1")
        served.page("/", b"<p>first")
        async with Fetcher(served.guard) as fetcher:
            assert (await fetcher.fetch("http://rebinding.test/")).content == "<p>first"
            assert served.names.asked == ["rebinding.test"]
            with pytest.raises(ToolArgumentError, match="not public"):
                await fetcher.fetch("http://rebinding.test/")


async def test_a_name_that_changes_between_two_hops_is_refused_at_the_second() -> None:
    async with web() as served:
        served.names.lead("rebinding.test", "127.0.0.1")
        served.names.lead("rebinding.test", "169.254.169.254")
        served.redirect("/", "/latest/meta-data")
        async with Fetcher(served.guard) as fetcher:
            with pytest.raises(ToolArgumentError):
                await fetcher.fetch("http://rebinding.test/")
        assert len(served.requests) == 1


def _know(served: Web) -> None:
    for name, addresses in NAMES.items():
        served.names.lead(name, *(address for address in addresses if address != "127.0.0.1"))
