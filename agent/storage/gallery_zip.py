"""Chosen pictures as a ZIP in a private file, written picture by picture. Blocks: run it on a thread."""

from __future__ import annotations

import os
import re
import secrets
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from agent.errors import ErrorCode, RequestRefused
from agent.library import GalleryItem, ZippedPictures
from agent.pictures import Picture
from agent.storage.private_files import make_private_folder, storage_failure

FOLDER = "temporary"
_PRIVATE_FILE = 0o100600 << 16
_EARLIEST_YEAR = 1980


def zip_pictures(
    home: Path, items: Iterable[GalleryItem], read: Callable[[GalleryItem], bytes], name_of: Callable[[Picture], str]
) -> ZippedPictures:
    """Return a new file below `<home>/temporary` with the pictures, stored as they are; two of a name are numbered.

    `read` raises RequestRefused for a picture that cannot be taken along: it is left out. Raises RequestRefused when
    none is left, StorageFailure when the disk fails; then nothing is left behind.
    """
    path = home / FOLDER / f"{secrets.token_hex(16)}.zip"
    names: set[str] = set()
    left_out: list[str] = []
    try:
        make_private_folder(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w+b") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for item in items:
                picture = item.picture
                try:
                    data = read(item)
                except RequestRefused:
                    left_out.append(picture.handle)
                    continue
                entry = zipfile.ZipInfo(_free_name(name_of(picture), names), _moment(picture))
                entry.external_attr = _PRIVATE_FILE
                archive.writestr(entry, data)
        if not names:
            if left_out:
                raise RequestRefused(ErrorCode.PICTURE_FILE_MISSING, handle=", ".join(left_out))
            raise RequestRefused(ErrorCode.PICTURE_GONE)
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise storage_failure(error) from error
        raise
    return ZippedPictures(path=str(path), count=len(names), left_out=tuple(left_out))


def _moment(picture: Picture) -> tuple[int, int, int, int, int, int]:
    at = picture.created_at
    # The first moment that a ZIP can name.
    return (
        (at.year, at.month, at.day, at.hour, at.minute, at.second)
        if at.year >= _EARLIEST_YEAR
        else (1980, 1, 1, 0, 0, 0)
    )


def _free_name(wanted: str, names: set[str]) -> str:
    """Return the name, numbered when there is one like it: some systems do not tell large letters from small ones."""
    plain = PurePosixPath(re.sub(r"[\\/\x00-\x1f:]", "-", wanted).lstrip(".") or "picture")
    name, number = plain.name, 1
    while name.casefold() in names:
        number += 1
        name = f"{plain.stem}-{number}{plain.suffix}"
    names.add(name.casefold())
    return name
