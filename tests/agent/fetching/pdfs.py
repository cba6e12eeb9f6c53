"""Small PDFs, written by hand: what each page says, and where it links to."""

from __future__ import annotations

import io

from pypdf import PdfReader, PdfWriter


def pdf(*pages: str, title: str = "", link: str = "", locked: str = "", packed: bytes = b"") -> bytes:
    """Return a PDF with a line of text a page, a `link` on its first page, and `locked` as its password.

    Where something is `packed`, it is what every page draws.
    """
    numbers = [6 + 2 * number for number in range(len(pages))]
    objects: dict[int, bytes] = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: f"<< /Type /Pages /Kids [{' '.join(f'{n} 0 R' for n in numbers)}] /Count {len(pages)} >>".encode(),
        3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        4: f"<< /Title ({title}) >>".encode(),
        5: f"<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A << /S /URI /URI ({link}) >> >>".encode(),
    }
    for number, text in zip(numbers, pages, strict=True):
        drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode("cp1252")
        annotations = "/Annots [5 0 R]" if link and number == numbers[0] else ""
        objects[number] = (
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
            f"{annotations} /Contents {number + 1} 0 R >>"
        ).encode()
        drawn, filtered = (packed, b"/Filter /FlateDecode") if packed else (drawn, b"")
        objects[number + 1] = b"<< /Length %d %b >>\nstream\n%b\nendstream" % (len(drawn), filtered, drawn)
    written = _written(objects)
    return _locked(written, locked) if locked else written


def _written(objects: dict[int, bytes]) -> bytes:
    file = bytearray(b"%PDF-1.7\n")
    places: dict[int, int] = {}
    for number in sorted(objects):
        places[number] = len(file)
        file += b"%d 0 obj\n%b\nendobj\n" % (number, objects[number])
    start = len(file)
    file += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    file += b"".join(b"%010d 00000 n \n" % places[number] for number in sorted(objects))
    file += b"trailer << /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)
    return bytes(file)


def _locked(written: bytes, password: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(written)))
    writer.encrypt(password, algorithm="RC4-128")
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()
