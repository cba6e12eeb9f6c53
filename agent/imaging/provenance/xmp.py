"""XMP: the recipe and the properties that agencies and search engines read, next to the data of other programs.

An XMP packet is RDF in XML. Ours is a separate `rdf:Description`, so the rest of a packet stays unchanged. Documents
with a DTD are rejected, so no entity is ever expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Any

from agent.imaging.provenance.recipe import Recipe

MAX_PACKET_BYTES = 2 << 20

_NAMESPACES = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "xmp": "http://ns.adobe.com/xap/1.0/",
    "photoshop": "http://ns.adobe.com/photoshop/1.0/",
    "Iptc4xmpExt": "http://iptc.org/std/Iptc4xmpExt/2008-02-29/",
    "aivista": "urn:aivista:recipe:1#",
}
_RDF_SPACE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDF, _DESCRIPTION, _ABOUT = (f"{{{_RDF_SPACE}}}{name}" for name in ("RDF", "Description", "about"))
_RECIPE = f"{{{_NAMESPACES['aivista']}}}Recipe"
_SOURCE_TYPES = "http://cv.iptc.org/newscodes/digitalsourcetype/"
_PROMPT_CHARACTERS = 2000
_HEAD = '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>\n<x:xmpmeta xmlns:x="adobe:ns:meta/">\n'
_FRESH = f'{_HEAD}<rdf:RDF xmlns:rdf="{_RDF_SPACE}">\n</rdf:RDF>\n</x:xmpmeta>\n<?xpacket end="w"?>'.encode()
# Characters that XML cannot contain.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def written(existing: bytes, recipe: Recipe, text: str) -> bytes:
    """Return a packet with the recipe, and everything in the existing packet except an older recipe of ours.

    `text` is the recipe's JSON. A property that another program already set, such as the source type, is not repeated.
    An unreadable packet is replaced. Properties that another program moved into our description are removed with it.
    """
    from lxml import etree

    rdf = _rdf_of(existing)
    for one in _ours(rdf):
        rdf.remove(one)
    if rdf is None or not len(rdf):
        rdf = _rdf_of(_FRESH)
    others = rdf.findall(_DESCRIPTION)
    names = {name for one in others for name in (*one.attrib, *(part.tag for part in one))}
    about = next((found for one in others if (found := one.get(_ABOUT))), "")
    properties = "".join(
        f"<{name}>{value}</{name}>\n" for name, value in _properties(recipe, text) if _whole(name) not in names
    )
    spaces = "".join(f' xmlns:{prefix}="{space}"' for prefix, space in _NAMESPACES.items())
    head = f'<rdf:Description xmlns:rdf="{_RDF_SPACE}" rdf:about="{escape(about)}"{spaces}>\n'
    rdf.append(etree.fromstring(f"{head}{properties}</rdf:Description>"))
    rdf[-1].tail = "\n"
    packet: bytes = etree.tostring(rdf.getroottree(), encoding="utf-8")
    return packet


def _whole(name: str) -> str:
    """Return a prefixed name in the form `{namespace}name`."""
    prefix, _, own = name.partition(":")
    return f"{{{_NAMESPACES[prefix]}}}{own}"


def recipe_text(packet: bytes) -> bytes | None:
    """Return the JSON of the recipe in the packet, or None."""
    for one in _ours(_rdf_of(packet)):
        part = one.find(_RECIPE)
        return (one.get(_RECIPE) if part is None else "".join(part.itertext())).encode()
    return None


def _rdf_of(packet: bytes) -> Any:
    """Return the RDF of a packet; None when it is empty, too long, not XML, has no RDF, or has a document type."""
    # lxml is slow to import, and few files need it.
    from lxml import etree

    if not packet or len(packet) > MAX_PACKET_BYTES or b"<!DOCTYPE" in packet:
        return None
    parser = etree.XMLParser(encoding="utf-8", resolve_entities=False, no_network=True)
    try:
        return next(etree.fromstring(packet, parser).iter(_RDF), None)
    except etree.XMLSyntaxError:
        return None


def _ours(rdf: Any) -> list[Any]:
    """Return the descriptions that contain a recipe."""
    parts = [] if rdf is None else rdf.findall(_DESCRIPTION)
    return [one for one in parts if _RECIPE in one.attrib or one.find(_RECIPE) is not None]


def _properties(recipe: Recipe, text: str) -> Iterator[tuple[str, str]]:
    """Yield the properties as names and XML values, as defined by XMP, Dublin Core and IPTC 2025.1."""
    yield "xmp:CreatorTool", "Aivista"
    yield "xmp:CreateDate", recipe.created_at.isoformat(timespec="seconds")
    if recipe.words:
        words = _escaped(recipe.words[:_PROMPT_CHARACTERS])
        yield "dc:description", f'<rdf:Alt><rdf:li xml:lang="x-default">{words}</rdf:li></rdf:Alt>'
    sources = "; ".join(source.url for source in recipe.sources if source.url)
    if sources:
        yield "dc:source", _escaped(sources)
    if recipe.source_type is not None:
        yield "Iptc4xmpExt:DigitalSourceType", f"{_SOURCE_TYPES}{recipe.source_type.value}"
    if recipe.made_with_ai:
        yield "photoshop:Credit", f"Made with {_escaped(recipe.model_label or recipe.model or 'AI')}"
        if recipe.edit != "adjustment":
            yield "Iptc4xmpExt:AISystemUsed", _escaped(recipe.model_label or recipe.model)
            yield "Iptc4xmpExt:AIPromptInformation", _escaped((recipe.prompt or recipe.words)[:_PROMPT_CHARACTERS])
    yield "aivista:Recipe", _escaped(text)


def _escaped(text: str) -> str:
    return escape(_ILLEGAL.sub("", text), quote=False)
