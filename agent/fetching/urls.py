"""Checks of web addresses before any request, and a canonical spelling for comparing them.

An explicit list decides which IP addresses are public: `ipaddress.is_global` accepts tunnels to loopback.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final
from urllib.parse import quote, urljoin

import idna

from agent.errors import ErrorCode, ToolArgumentError

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
# Addresses that look public, but answer only to machines inside a cloud, which the cloud trusts.
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
# The IPv6 metadata services of clouds are in fd00::/8 (AWS, Google, Oracle, Scaleway) and fe80::/10 (OpenStack, Azure),
# outside the public space, except Google's private endpoints of its services.
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
    """Return whether an IP address, as returned by a resolver, belongs to the public internet.

    An IPv4 address mapped into IPv6 is checked as IPv4. An address with a zone (`fe80::1%eth0`), and anything that is
    not an address in the usual spelling, is not public.
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


MAX_URL_CHARACTERS: Final = 2048
WEB_PORTS: Final = frozenset({80, 443})
_DEFAULT_PORT = {"http": 80, "https": 443}
_SHOWN_CHARACTERS = 200

_PARTS = re.compile(r"(https?)://([^/?#]*)([^?#]*)(\?[^#]*)?(?:#.*)?", re.ASCII | re.IGNORECASE | re.DOTALL)
# Some parsers read this as a path on the current host, others as a host.
_HALF_ABSOLUTE = re.compile(r"https?:(?!//[^/])", re.ASCII | re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]*\]|[^:\[\]@%]+)(?::([0-9]{0,5}))?", re.ASCII | re.IGNORECASE)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
# If the last label is a number, browsers parse the whole host as IPv4: 127.1, 2130706433, 0x7f.1, 0177.0.0.1.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"})
_OTHER_DOTS = frozenset("\u3002\uff0e\uff61")
# Names of the own machine, home network or cloud, whatever a resolver returns for them.
_LOCAL_ENDINGS = frozenset({"local", "internal", "localhost", "lan", "home.arpa"})
# Metadata services, which give a cloud machine data about itself, including keys; the names resolve only there.
_METADATA_HOSTS = frozenset(
    {
        "metadata.platformequinix.com",
        "metadata.packet.net",
        "metadata.tencentyun.com",
        "api.metadata.cloud.ibm.com",
        "api.service.softlayer.com",
    }
)
# Characters that are sent unescaped in path and query; the per cent sign too, because it marks existing escapes.
_SENT_AS_IS = "!\"$%&'()*+,/:;<=>?@[]^`{|}~"


@dataclass(frozen=True)
class WebUrl:
    """An allowed address in its canonical spelling.

    `host` is in lower case, in ASCII (IDNA) and without brackets; `target` is path and query as they are sent.
    """

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """The host and port as in a Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORT[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def web_url(url: str, ports: frozenset[int] | None = WEB_PORTS) -> WebUrl:
    """Return the address in its canonical spelling; when `ports` is None, every port but 0 is allowed.

    Anything that two parsers could read differently is refused: user names, backslashes, spaces, invisible characters,
    unusual spellings of an IP address, and host names that Unicode folds into another. Names of local networks and IP
    addresses that are not public are refused too; the addresses of other names are checked when they are dialled.

    Raises ToolArgumentError with a sentence that says what is wrong with the address.
    """
    if len(url) > MAX_URL_CHARACTERS:
        raise refused(url, f"it has more than {MAX_URL_CHARACTERS} characters")
    _refuse_unseen(url)
    parts = _PARTS.fullmatch(url)
    if parts is None:
        raise refused(url, "it does not begin with http:// or https:// and a host")
    scheme, authority, path, query = parts[1].lower(), parts[2], parts[3], parts[4] or ""
    if "@" in authority:
        raise refused(url, "it has a user name")
    split = _AUTHORITY.fullmatch(authority)
    if split is None:
        raise refused(url, "its host or port is malformed")
    # Not `int(...) or default`: port 0 must be refused, not replaced by the default.
    port = int(split[2]) if split[2] else _DEFAULT_PORT[scheme]
    if not (0 < port < 65536 if ports is None else port in ports):
        raise refused(url, f"port {port} may not be asked")
    checked = WebUrl(scheme, _host(split[1], url), port, quote((path or "/") + query, safe=_SENT_AS_IS))
    if len(str(checked)) > MAX_URL_CHARACTERS:
        raise refused(url, f"it has more than {MAX_URL_CHARACTERS} characters")
    return checked


def normalized(url: str) -> str:
    """Return the canonical spelling of an address, for comparing, or "" for an address that is not allowed.

    It has scheme, host, port, path and query, and no fragment. Escapes stay as written: if `%61` and `a` were treated
    as equal, each letter of an allowed address could carry a hidden bit to the server.
    """
    try:
        return str(web_url(url))
    except ToolArgumentError:
        return ""


def host_of(url: str) -> str:
    """Return the host of an address, or "" for an address that is not allowed."""
    try:
        return web_url(url).host
    except ToolArgumentError:
        return ""


def resolve_link(base: WebUrl, location: str) -> WebUrl:
    """Return the target of a link or redirect, checked like any address. Raises ToolArgumentError."""
    # `urljoin` silently drops tabs and line ends, so check for them before it.
    _refuse_unseen(location)
    if _HALF_ABSOLUTE.match(location):
        raise refused(location, "it is malformed")
    try:
        joined = urljoin(str(base), location)
    except ValueError:
        raise refused(location, "it is malformed") from None
    return web_url(joined)


def refused(url: str, problem: str) -> ToolArgumentError:
    """Return the error for an address that is not allowed."""
    return ToolArgumentError(ErrorCode.ADDRESS_REFUSED, name=url[:_SHOWN_CHARACTERS], problem=problem)


def _refuse_unseen(url: str) -> None:
    if "\\" in url or any(unicodedata.category(character) in _UNSEEN for character in url):
        raise refused(url, "it has a space, a backslash or a character that is not seen")


def _host(written: str, url: str) -> str:
    if written.startswith("["):
        return _public(written[1:-1], url)
    host = written.lower().removesuffix(".")
    if not host.isascii():
        composed = unicodedata.normalize("NFC", host)
        if len(host) > 253 or unicodedata.normalize("NFKC", host) != composed or _OTHER_DOTS & set(host):
            raise refused(url, "its host has characters that stand for others")
        try:
            host = idna.encode(composed).decode("ascii")
        except (idna.IDNAError, UnicodeError):
            raise refused(url, "its host is malformed") from None
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise refused(url, "its host is malformed")
    if _NUMBER.fullmatch(labels[-1]):
        return _public(host, url)
    if len(labels) == 1 or labels[-1] in _LOCAL_ENDINGS or ".".join(labels[-2:]) in _LOCAL_ENDINGS:
        raise refused(url, "its host is a name of a local network")
    if host in _METADATA_HOSTS:
        raise refused(url, "its host answers only to the machines of a cloud")
    return host


def _public(address: str, url: str) -> str:
    try:
        spelled = str(ipaddress.ip_address(address))
    except ValueError:
        raise refused(url, "its host is an IP address in an unusual spelling") from None
    if not is_public(spelled):
        raise refused(url, "its address is not public")
    return spelled
