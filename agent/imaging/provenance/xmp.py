"""XMP: the recipe and what agencies and search engines read of it, beside whatever another program wrote there.

An XMP packet is RDF in XML. Ours is one `rdf:Description` of its own that can be cut out again by bytes, so that the
rest of a packet stays as it was. Documents with a DTD are refused, hence no entity is ever expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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
_FRESH = f'{_HEAD}<rdf:RDF xmlns:rdf="{_RDF_SPACE}">\n</rdf:RDF>\n</x:xmpmeta>\n<?xpacket end="w"?>'.encode()
_TAG_END = re.compile(rb"""(?:[^"'>]|"[^"]*"|'[^']*')*+>""")


def written(existing: bytes, recipe: Recipe, text: str) -> bytes:
    """Return a packet that tells the recipe, `text` being its JSON, and all that the existing one told but for an older
    recipe of ours.

    What another program said already, such as its own source type, is not said again. A packet that cannot be read is
    replaced. Words that another program moved into our part go with it.
    """
    kept, packet = existing, _read(existing)
    for start, end in reversed(packet.ours if packet else ()):
        kept = kept[:start] + kept[end:]
    packet = _read(kept) if packet and packet.has_others else None
    if packet is None:
        kept, packet = _FRESH, _Packet(_FRESH)
    told = "".join(
        f"<{name}>{value}</{name}>\n"
        for name, value in _properties(recipe, text)
        if " ".join((_NAMESPACES[name.partition(":")[0]], name.partition(":")[2])) not in packet.others
    )
    spaces = "".join(f' xmlns:{prefix}="{space}"' for prefix, space in _NAMESPACES.items())
    head = f'<rdf:Description xmlns:rdf="{_RDF_SPACE}" rdf:about="{escape(packet.about)}"{spaces}>\n'
    ours = f"{head}{told}</rdf:Description>\n".encode()
    return kept[: packet.end_of_rdf] + ours + kept[packet.end_of_rdf :]


def recipe_text(packet: bytes) -> bytes | None:
    """Return the JSON of the recipe that the packet tells, or None."""
    found = _read(packet)
    return None if found is None or found.recipe is None else found.recipe.encode()


def _read(packet: bytes) -> _Packet | None:
    """Return what is in a packet; None for one that is empty or too long, no XML, no RDF, or has a type of its own."""
    if not packet or len(packet) > MAX_PACKET_BYTES:
        return None
    try:
        return _Packet(packet)
    except ExpatError:
        return None


class _Packet:
    """What a walk through a packet finds, by the parser's events; places are bytes from its start. Raises ExpatError.

    `ours` are the parts that tell a recipe, `others` the properties that stand in other parts.
    """

    def __init__(self, packet: bytes) -> None:
        self.end_of_rdf = -1
        self.about = ""
        self.recipe: str | None = None
        self.ours: list[tuple[int, int]] = []
        self.others: set[str] = set()
        self.has_others = False
        self._packet = packet
        self._path: list[str] = []
        self._start = 0
        self._properties: set[str] = set()
        self._text: list[str] | None = None
        self._parser = parser = ParserCreate("UTF-8", " ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler = self._opened
        parser.EndElementHandler = self._closed
        parser.CharacterDataHandler = self._said
        parser.Parse(packet, True)
        if self.end_of_rdf < 0:
            raise ExpatError("no RDF")

    def _refuse(self, *_: object) -> None:
        raise ExpatError("a document type")

    def _opened(self, name: str, attributes: dict[str, str]) -> None:
        inside = self._path[-2:]
        self._path.append(name)
        if inside[-1:] == [_RDF] and name == _DESCRIPTION:
            self._start, self._properties = self._parser.CurrentByteIndex, set(attributes) - {_ABOUT}
            self.about = self.about or attributes.get(_ABOUT, "")
            self._told(attributes.get(_RECIPE))
        elif inside[-1:] == [_RDF]:
            self.has_others = True
        elif inside == [_RDF, _DESCRIPTION]:
            self._properties.add(name)
            self._text = [] if name == _RECIPE else None

    def _told(self, text: str | None) -> None:
        if self.recipe is None:
            self.recipe = text

    def _said(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _closed(self, name: str) -> None:
        self._path.pop()
        place = self._parser.CurrentByteIndex
        if name == _RECIPE and self._text is not None:
            self._told("".join(self._text))
            self._text = None
        elif self._path[-1:] == [_RDF] and name == _DESCRIPTION:
            if _RECIPE in self._properties:
                self.ours.append((self._start, self._end_of_tag(place)))
            else:
                self.has_others = True
                self.others |= self._properties
        elif name == _RDF and self.end_of_rdf < 0 and self._packet[place : place + 2] == b"</":
            self.end_of_rdf = place

    def _end_of_tag(self, place: int) -> int:
        end = _TAG_END.match(self._packet, place)
        if end is None:
            raise ExpatError("a tag without an end")
        return end.end() + (self._packet[end.end() : end.end() + 1] == b"\n")


def _properties(recipe: Recipe, text: str) -> Iterator[tuple[str, str]]:
    """Yield what is told, as XML, by the names of the standards: XMP, Dublin Core and IPTC 2025.1."""
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
