"""The proxy variables of the process, mended before anything reads them.

Gradio makes HTTP clients while it is imported, and a client raises at a proxy that it cannot read, or whose library is
missing: no program would start.
"""

from __future__ import annotations

from collections.abc import MutableMapping

_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_EXCEPTIONS = "no_proxy"


def mend_proxies(environ: MutableMapping[str, str]) -> list[str]:
    """Take out what the HTTP libraries cannot read; return a sentence for each proxy that is not used therefore.

    The sentences name the variable only: the address may hold a password. Entries of `NO_PROXY` that nobody can read
    are left out without a word, as curl does.
    """
    # Upper or lower case: the libraries read both.
    named = [name for name, value in environ.items() if value and name.lower() in (*_PROXIES, _EXCEPTIONS)]
    sentences = []
    for name in named:
        if name.lower() == _EXCEPTIONS:
            entries = (_readable_entry(one.strip()) for one in environ[name].split(","))
            environ[name] = ",".join(one for one in entries if one)
            continue
        if environ[name].lower().startswith("socks://"):
            # As desktops write it for SOCKS 5.
            environ[name] = f"socks5{environ[name][len('socks') :]}"
        if problem := _problem(environ[name]):
            del environ[name]
            sentences.append(f"{name} is not used: {problem}")
    return sentences


def _problem(address: str) -> str | None:
    import httpx
    import httpx2

    address = address if "://" in address else f"http://{address}"
    try:
        httpx.HTTPTransport(proxy=address, verify=False).close()
        httpx2.HTTPTransport(proxy=address, verify=False).close()
    except ImportError:
        return "for a SOCKS proxy the package socksio is missing; install it with pip install socksio."
    except (ValueError, httpx.InvalidURL, httpx2.InvalidURL):
        return "it is not the address of an HTTP or SOCKS 5 proxy."
    return None


def _readable_entry(entry: str) -> str | None:
    """Return an entry of `NO_PROXY` as it can be read, without brackets or `:*` where need be, or None."""
    without_port = entry.removesuffix(":*")
    return next((one for one in (entry, without_port, without_port.strip("[]")) if one and _is_readable(one)), None)


def _is_readable(entry: str) -> bool:
    import httpx

    if entry == "*":
        return True
    is_ipv6 = entry.count(":") > 1 and "://" not in entry
    pattern = entry if "://" in entry else f"all://[{entry}]" if is_ipv6 else f"all://*{entry}"
    try:
        httpx.Client(mounts={pattern: None}, transport=httpx.BaseTransport(), trust_env=False)
    except (ValueError, httpx.InvalidURL):
        return False
    return True
