"""Corrects the proxy variables of the process before anything reads them.

Gradio creates HTTP clients while it is imported, and a client raises an exception for a proxy that is invalid or whose
library is missing: no program would start.
"""

from __future__ import annotations

from collections.abc import MutableMapping

_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_EXCEPTIONS = "no_proxy"


def mend_proxies(environ: MutableMapping[str, str]) -> list[str]:
    """Remove values that the HTTP libraries cannot read; return a sentence for each proxy that is therefore not used.

    The sentences name only the variable, because the address may contain a password. Invalid entries of `NO_PROXY` are
    removed silently, as in curl.
    """
    # The libraries read both upper-case and lower-case names.
    named = [name for name, value in environ.items() if value and name.lower() in (*_PROXIES, _EXCEPTIONS)]
    sentences = []
    for name in named:
        if name.lower() == _EXCEPTIONS:
            entries = (_readable_entry(one.strip()) for one in environ[name].split(","))
            environ[name] = ",".join(one for one in entries if one)
            continue
        if environ[name].lower().startswith("socks://"):
            # Desktop environments write SOCKS 5 like this.
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
    """Return an entry of `NO_PROXY` in a valid form, if necessary without brackets or `:*`; None if there is none."""
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
