"""Which addresses are public, by an explicit list: `ipaddress.is_global` lets tunnels to loopback through."""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

# Python 3.11's `is_global` is True for 64:ff9b::7f00:1, 2002:7f00:1::, fec0::1 and 192.0.0.192, among others.
_DENIED_V4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
# Addresses that look public, but that a cloud answers only to its own machines: who asks from there is trusted.
_OF_CLOUDS_V4 = tuple(
    IPv4Network(network)
    for network in (
        "168.63.129.16/32",  # Azure: the platform itself (WireServer, DNS, health)
        "161.26.0.0/16",  # IBM Cloud: services of its infrastructure
        "166.8.0.0/14",  # IBM Cloud: private endpoints of its services
        "199.36.153.4/30",  # Google Cloud: restricted.googleapis.com
        "199.36.153.8/30",  # Google Cloud: private.googleapis.com
        "34.126.0.0/18",  # Google Cloud: the same, further addresses
        "192.80.8.124/32",  # Equinix Metal: metadata
    )
)
_PUBLIC_V6 = IPv6Network("2000::/3")
# What clouds tell their machines over IPv6 stands below fd00::/8 (AWS, Google, Oracle, Scaleway) and fe80::/10
# (OpenStack, Azure), outside of the public space, but for Google's private ways to its services.
_DENIED_V6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "2620:4f:8000::/48",
        "3fff::/20",
        "2600:2d00:2:1000::/56",
        "2600:2d00:2:2000::/56",
    )
)


def is_public(address: str) -> bool:
    """Return whether an IP address, as a resolver gives it, is one of the public internet.

    An IPv4 address mapped into IPv6 counts as itself. A zone (`fe80::1%eth0`), and whatever is not an address in its
    usual spelling, is not public.
    """
    if "%" in address:
        return False
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    match parsed:
        case IPv4Address():
            return _is_public_v4(parsed)
        case IPv6Address(ipv4_mapped=IPv4Address() as mapped):
            return _is_public_v4(mapped)
        case _:
            return parsed in _PUBLIC_V6 and not any(parsed in network for network in _DENIED_V6)


def _is_public_v4(address: IPv4Address) -> bool:
    return not any(address in network for network in (*_DENIED_V4, *_OF_CLOUDS_V4))
