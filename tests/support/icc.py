"""Small ICC profiles: RGB by primaries and gamma, or grey by gamma."""

from __future__ import annotations

import struct

# Adobe RGB (1998), adapted to D50 as profiles want it.
ADOBE = ((0.60974, 0.31111, 0.01947), (0.20528, 0.62567, 0.06087), (0.14919, 0.06322, 0.74457))
_D50 = (0.9642, 1.0, 0.8249)


def rgb_profile(primaries: tuple[tuple[float, float, float], ...] = ADOBE, gamma: float = 2.2) -> bytes:
    """Return a display profile with these primaries (XYZ at D50 of red, green and blue)."""
    curve = _gamma(gamma)
    named = zip((b"rXYZ", b"gXYZ", b"bXYZ"), primaries, strict=True)
    return _profile(b"RGB ", [*((name, _xyz(at)) for name, at in named), *((b"%cTRC" % c, curve) for c in b"rgb")])


def grey_profile(gamma: float = 1.8) -> bytes:
    """Return a grey profile."""
    return _profile(b"GRAY", [(b"kTRC", _gamma(gamma))])


def _profile(model: bytes, tags: list[tuple[bytes, bytes]]) -> bytes:
    name = b"test\0"
    described = b"desc" + bytes(4) + struct.pack(">I", len(name)) + name + bytes(78)
    tags = [(b"desc", described), (b"cprt", b"text" + bytes(4) + b"none\0"), (b"wtpt", _xyz(_D50)), *tags]
    table, body = struct.pack(">I", len(tags)), b""
    start = 128 + 4 + 12 * len(tags)
    for kind, data in tags:
        table += kind + struct.pack(">II", start + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    size = start + len(body)
    header = struct.pack(">I4sI4s4s4s", size, b"none", 0x02100000, b"mntr", model, b"XYZ ") + bytes(12)
    header += b"acsp" + bytes(28) + struct.pack(">3i", *(round(part * 65536) for part in _D50))
    return header + bytes(128 - len(header)) + table + body


def _gamma(gamma: float) -> bytes:
    return b"curv" + bytes(4) + struct.pack(">IH", 1, round(gamma * 256))


def _xyz(at: tuple[float, float, float]) -> bytes:
    return b"XYZ " + bytes(4) + struct.pack(">3i", *(round(part * 65536) for part in at))
