"""What is said of the files of a conversation's workspace."""

from __future__ import annotations

from agent.error_codes import Actor, ErrorCode
from agent.error_sentences.sentence import Sentence

FILES: dict[ErrorCode, Sentence] = {
    ErrorCode.FILE_NAME_INVALID: (
        Actor.YOU,
        False,
        "{name} cannot be the name of a file here. Please use at most {limit} letters, digits, spaces and . - _ and / "
        "between folders.",
    ),
    ErrorCode.FILE_NAME_TAKEN: (
        Actor.YOU,
        False,
        "There is already a file or a folder called {name}. Please choose another name.",
    ),
    ErrorCode.FILE_NOT_FOUND: (
        Actor.YOU,
        False,
        "There is no file {name} in this conversation. Please look at the list of files.",
    ),
    ErrorCode.FILE_NOT_TEXT: (Actor.YOU, False, "{name} is not a text file. Please choose one that is."),
    ErrorCode.FILE_CHANGED: (
        Actor.YOU,
        False,
        "{name} was changed or deleted meanwhile. Please look at it as it is now, then save again.",
    ),
    ErrorCode.FILE_TOO_LARGE: (
        Actor.YOU,
        False,
        "{name} is larger than {limit} MB. Please make it smaller, or split it.",
    ),
    ErrorCode.TOO_MANY_FILES: (
        Actor.YOU,
        False,
        "A conversation holds at most {limit} files. Please delete some first.",
    ),
    ErrorCode.WORKSPACE_FULL: (
        Actor.YOU,
        False,
        "The files of a conversation may have {limit} MB together. Please delete some first.",
    ),
}
