"""What is said of an archive that comes in or goes out."""

from __future__ import annotations

from agent.error_codes import Actor, ErrorCode
from agent.error_sentences.sentence import Sentence

ARCHIVES: dict[ErrorCode, Sentence] = {
    ErrorCode.ARCHIVE_UNREADABLE: (
        Actor.YOU,
        False,
        "This is no archive of Aivista's, or a broken one. Please export it again and send that.",
    ),
    ErrorCode.ARCHIVE_NEWER: (
        Actor.YOU,
        False,
        "This archive was made by a newer Aivista. Please update this one, then send it again.",
    ),
    ErrorCode.ARCHIVE_ENCRYPTED: (
        Actor.YOU,
        False,
        "This archive is locked with a password. Please send it without one.",
    ),
    ErrorCode.ARCHIVE_UNSAFE: (
        Actor.YOU,
        False,
        "The archive holds a file that does not belong there ({name}). Please send it as it was exported.",
    ),
    ErrorCode.ARCHIVE_TOO_LARGE: (
        Actor.YOU,
        False,
        "The archive, or a file in it, is larger than {limit} MB. Please send a smaller one.",
    ),
    ErrorCode.ARCHIVE_DAMAGED: (
        Actor.YOU,
        False,
        "The file {name} of the archive is missing or was changed. Please send it as it was exported.",
    ),
    ErrorCode.ARCHIVE_PICTURE_UNREADABLE: (
        Actor.YOU,
        False,
        "The file {name} of the archive is not a picture that can be read. Please send another archive.",
    ),
    ErrorCode.ARCHIVE_INCONSISTENT: (
        Actor.YOU,
        False,
        "The file {name} of the archive contradicts itself. Please send it as it was exported.",
    ),
    ErrorCode.EXPORT_TOO_LARGE: (
        Actor.YOU,
        False,
        "This is more than one archive may hold ({limit} MB). Please export conversations one by one.",
    ),
}
