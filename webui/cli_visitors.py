"""The flags that decide about people who come by a public link, or by an address that is not this machine's own."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from secrets import token_urlsafe
from typing import TYPE_CHECKING

from webui.root_path import ROOT_PATH

if TYPE_CHECKING:
    from agent import Settings
    from webui.space.place import Place


def add_flags(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """Add the flags; what `environ` says counts where a flag is not given."""
    visitors = parser.add_argument_group("where others come")
    passwords = visitors.add_mutually_exclusive_group()
    passwords.add_argument(
        "--password",
        metavar="WORD",
        default=environ.get("AIVISTA_PASSWORD") or None,
        help="what everybody must know who comes in (default: with --share one is made up)",
    )
    passwords.add_argument(
        "--no-password", action="store_true", help="let in everybody who has the public link, without a password"
    )
    visitors.add_argument(
        "--visitors-spend",
        type=_dollars,
        metavar="USD",
        default=environ.get("AIVISTA_VISITORS_SPEND") or None,
        help="let visitors use your key, up to so many dollars a day for all of them (default: they bring their own)",
    )
    visitors.add_argument(
        "--domain",
        type=_host_names,
        metavar="NAME",
        default=environ.get("AIVISTA_DOMAINS", ""),
        help="the host name that leads here, by a proxy for instance; several with commas between them",
    )
    visitors.add_argument(
        "--root-path",
        type=_root_path,
        metavar="PATH",
        default=environ.get("AIVISTA_ROOT_PATH", ""),
        help="the path below which a proxy shows the studio, such as /studio (default: the root of its host)",
    )
    visitors.add_argument(
        "--single-user",
        action="store_true",
        default=environ.get("AIVISTA_SINGLE_USER", "").strip().lower() in ("1", "true", "yes", "on"),
        help="everybody who reaches the page is you, and sees all that is yours",
    )


def place_of(flags: argparse.Namespace, settings: Settings) -> Place | None:
    """Return the place where others come, None where whoever comes is the operator."""
    from webui.space.place import place_of_visitors

    return place_of_visitors(
        flags.host,
        is_public=flags.share or settings.is_public,
        is_single_user=flags.single_user,
        visitors_spend_usd=flags.visitors_spend,
        names=flags.domain,
    )


def names_of(flags: argparse.Namespace) -> frozenset[str]:
    """Return the host names that lead to a studio where everybody is the operator: none unless that was said."""
    return frozenset(flags.domain if flags.single_user else ())


def password_of(flags: argparse.Namespace) -> str:
    """Return the password that is asked for, nothing for none; a public link gets one unless it shall have none."""
    if flags.no_password:
        return ""
    return flags.password or (token_urlsafe(9) if flags.share else "")


def _dollars(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not 0 < amount < 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount: use dollars, such as 2.50")
    return amount


def _root_path(text: str) -> str:
    path = text.strip().rstrip("/")
    if path and not ROOT_PATH.fullmatch(path):
        raise argparse.ArgumentTypeError(f"{text!r} is no path: use one such as /studio")
    return path


def _host_names(text: str) -> list[str]:
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    for name in names:
        if not re.fullmatch(r"[a-z0-9.-]{1,253}", name):
            raise argparse.ArgumentTypeError(f"{name!r} is no host name: use one such as studio.example.org")
    return names
