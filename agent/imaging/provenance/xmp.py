"""XMP: the recipe and what agencies and search engines read of it, beside whatever another program wrote there.

An XMP packet is RDF in XML. Ours is one `rdf:Description` of its own that can be cut out again by bytes, so that the
rest of a packet stays as it was. Documents with a DTD are refused, hence no entity is ever expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from xml.parsers.expat import ExpatError, ParserCreate

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
_RDF, _DESCRIPTION, _ABOUT = f"{_RDF_SPACE} RDF", f"{_RDF_SPACE} Description", f"{_RDF_SPACE} about"
_RECIPE = f"{_NAMESPACES['aivista']} Recipe"
_SOURCE_TYPES = "http://cv.iptc.org/newscodes/digitalsourcetype/"
_PROMPT_CHARACTERS = 2000
_HEAD = '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>\n<x:xmpmeta xmlns:x="adobe:ns:meta/">\n'
_FRESH = f'{_HEAD}<rdf:RDF xmlns:rdf="{_RDF_SPACE}">\n</rdf:RDF>\n</x:xmpmeta>\n<?xpacket end="w"?>'
_TAG_END = re.compile(rb"""(?:[^"'>]|"[^"]*"|'[^']*')*+>""")


class _Unreadable(ValueError):
    """A packet that is not read: no XML, no RDF, or a document with a type of its own."""


@dataclass
class _Packet:
    """What a walk through a packet found; places are bytes from its start."""

    end_of_rdf: int = -1
    about: str = ""
    recipe: str | None = None
    ours: list[tuple[int, int]] = field(default_factory=list)
    others: set[str] = field(default_factory=set)
    has_others: bool = False


def written(existing: bytes, recipe: Recipe, text: str) -> bytes:
    """Return a packet that tells the recipe, `text` being its JSON, and all that the existing one told but for an older
    recipe of ours.

    What another program said already, such as its own source type, is not said again. A packet that cannot be read is
    replaced.
    """
    kept = without_recipe(existing) or _FRESH.encode()
    try:
        packet = _walked(kept)
    except _Unreadable:
        kept = _FRESH.encode()
        packet = _walked(kept)
    ours = _description(packet, recipe, text).encode()
    return kept[: packet.end_of_rdf] + ours + kept[packet.end_of_rdf :]


def without_recipe(existing: bytes) -> bytes:
    """Return the packet without our part; nothing when nothing else is in it, all of it when it cannot be read.

    Another program may have moved its own words into our part: those go with it.
    """
    try:
        packet = _walked(existing)
    except _Unreadable:
        return existing
    if not packet.has_others:
        return b""
    for start, end in reversed(packet.ours):
        existing = existing[:start] + existing[end:]
    return existing


def recipe_text(packet: bytes) -> bytes | None:
    """Return the JSON of the recipe that the packet tells, or None."""
    try:
        text = _walked(packet).recipe
    except _Unreadable:
        return None
    return None if text is None else text.encode()


def _walked(packet: bytes) -> _Packet:
    if not packet or len(packet) > MAX_PACKET_BYTES:
        raise _Unreadable("too long or empty")
    walk = _Walk(packet)
    try:
        walk.parser.Parse(packet, True)
    except ExpatError as error:
        raise _Unreadable(str(error)) from None
    if walk.found.end_of_rdf < 0:
        raise _Unreadable("no RDF")
    return walk.found


class _Walk:
    """One walk through a packet, by the parser's events."""

    def __init__(self, packet: bytes) -> None:
        self.found = _Packet()
        self._packet = packet
        self._path: list[str] = []
        self._start = 0
        self._is_ours = False
        self._properties: set[str] = set()
        self._text: list[str] | None = None
        self.parser = parser = ParserCreate("UTF-8", " ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse
        parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler = self._opened
        parser.EndElementHandler = self._closed
        parser.CharacterDataHandler = self._said

    def _refuse(self, *_: object) -> None:
        raise _Unreadable("a document type")

    def _opened(self, name: str, attributes: dict[str, str]) -> None:
        inside = self._path[-2:]
        self._path.append(name)
        if inside[-1:] == [_RDF] and name == _DESCRIPTION:
            self._start, self._is_ours, self._properties = self.parser.CurrentByteIndex, False, set()
            self.found.about = self.found.about or attributes.get(_ABOUT, "")
            self._noted(set(attributes) - {_ABOUT})
            self._told(attributes.get(_RECIPE))
        elif inside[-1:] == [_RDF]:
            self.found.has_others = True
        elif inside == [_RDF, _DESCRIPTION]:
            self._noted({name})
            self._text = [] if name == _RECIPE else None

    def _noted(self, properties: set[str]) -> None:
        self._properties |= properties
        self._is_ours = self._is_ours or _RECIPE in properties

    def _told(self, text: str | None) -> None:
        if self.found.recipe is None:
            self.found.recipe = text

    def _said(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _closed(self, name: str) -> None:
        self._path.pop()
        place = self.parser.CurrentByteIndex
        if name == _RECIPE and self._text is not None:
            self._told("".join(self._text))
            self._text = None
        elif self._path[-1:] == [_RDF] and name == _DESCRIPTION:
            if self._is_ours:
                self.found.ours.append((self._start, self._end_of_tag(place)))
            else:
                self.found.has_others = True
                self.found.others |= self._properties
        elif name == _RDF and self.found.end_of_rdf < 0 and self._packet[place : place + 2] == b"</":
            self.found.end_of_rdf = place

    def _end_of_tag(self, place: int) -> int:
        end = _TAG_END.match(self._packet, place)
        if end is None:
            raise _Unreadable("a tag without an end")
        after = end.end()
        return after + 1 if self._packet[after : after + 1] == b"\n" else after


def _description(packet: _Packet, recipe: Recipe, text: str) -> str:
    told = [
        f"<{name}>{value}</{name}>\n"
        for name, value in _properties(recipe, text)
        if _expanded(name) not in packet.others
    ]
    spaces = "".join(f' xmlns:{prefix}="{space}"' for prefix, space in _NAMESPACES.items())
    head = f'<rdf:Description xmlns:rdf="{_RDF_SPACE}" rdf:about="{escape(packet.about)}"{spaces}>\n'
    return f"{head}{''.join(told)}</rdf:Description>\n"


def _expanded(name: str) -> str:
    prefix, _, local = name.partition(":")
    return f"{_NAMESPACES[prefix]} {local}"


def _properties(recipe: Recipe, text: str) -> Iterator[tuple[str, str]]:
    """Return what is told, as XML, by the names of the standards: XMP, Dublin Core and IPTC 2025.1."""
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
    return escape(text, quote=False)
