"""What is said of an edit of a part: its mask, its growth, and what is kept of it."""

from __future__ import annotations

from agent.error_codes import Actor, ErrorCode
from agent.error_sentences.sentence import Sentence

EDITS: dict[ErrorCode, Sentence] = {
    ErrorCode.MASK_EMPTY: (Actor.YOU, False, "Paint over what shall change first."),
    ErrorCode.MASK_WRONG_SHAPE: (
        Actor.YOU,
        False,
        "The mask has another shape than {handle}. Please paint it over {handle} itself.",
    ),
    ErrorCode.MASK_UNREADABLE: (Actor.YOU, False, "The mask is not a picture that can be read. Please paint it again."),
    ErrorCode.MASK_TOO_LARGE: (Actor.YOU, False, "The mask has more than {limit} MB. Please send a smaller one."),
    ErrorCode.MASK_OF_ANOTHER_PICTURE: (
        Actor.YOU,
        False,
        "The mask belongs to {handle}, but another picture is marked to be changed. Please choose one of them.",
    ),
    ErrorCode.MASK_AND_EXPANSION: (
        Actor.YOU,
        False,
        "A picture is changed inside a mask or made larger, one at a time. Please clear one of the two.",
    ),
    ErrorCode.UPLOAD_MISSING: (
        Actor.YOU,
        False,
        "Picture {number} of this message was worked on, but is not in it. Please add it again, or clear that.",
    ),
    ErrorCode.EXPANSION_EMPTY: (Actor.YOU, False, "Please choose on which sides {handle} shall grow."),
    ErrorCode.EXPANSION_TOO_LARGE: (
        Actor.YOU,
        False,
        "{handle} would grow to {width}×{height}, more than can be worked with. Please let it grow by less.",
    ),
    ErrorCode.PART_NOT_SUPPORTED: (
        Actor.YOU,
        False,
        "{model} cannot change only a part of a picture. Please choose another image model.",
    ),
    ErrorCode.NOT_A_PART_EDIT: (
        Actor.YOU,
        False,
        "{handle} was not made by changing a part of a picture. Please choose one that was.",
    ),
    ErrorCode.NOTHING_TO_GROW: (
        Actor.YOU,
        False,
        "The change in {handle} stays within its mask. Please paint a larger mask to change more.",
    ),
    ErrorCode.NOT_COMPARABLE: (
        Actor.YOU,
        False,
        "{handle} shows too little of the picture it was made from to keep only a part. Please choose another picture.",
    ),
    ErrorCode.NOTHING_CHANGED: (
        Actor.YOU,
        False,
        "{handle} is the same as the picture it was made from. Please choose another picture.",
    ),
}
