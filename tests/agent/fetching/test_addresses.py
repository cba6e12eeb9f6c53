from __future__ import annotations

from tests.adapters.fetcher import is_public
from tests.support.tables import table

EDGES_V4 = table("web_addresses")["edges_v4"]
EDGES_V6 = table("web_addresses")["edges_v6"]


def test_a_network_that_is_not_public_is_refused_from_its_first_address_to_its_last() -> None:
    networks = EDGES_V4 | EDGES_V6
    open_ones = {name: [is_public(address) for address in addresses] for name, addresses in networks.items()}
    assert {name: found for name, found in open_ones.items() if found != [False, False, True]} == {}


def test_what_leads_to_a_private_place_or_is_no_address_is_refused() -> None:
    addresses = table("web_addresses")["private"]
    assert [address for address in addresses if is_public(address)] == []


def test_what_a_cloud_tells_its_machines_is_out_of_reach() -> None:
    addresses = table("web_addresses")["clouds"]
    assert [cloud for cloud, address in addresses if is_public(address)] == []


def test_an_address_of_the_public_internet_passes() -> None:
    assert all(map(is_public, ("8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8")))
