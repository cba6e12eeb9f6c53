"""Every code of failure: who must act, whether the same again can help, and its sentence in English."""

from __future__ import annotations

from enum import StrEnum


class Actor(StrEnum):
    """Who must act so that it works next time."""

    MODEL = "model"
    YOU = "you"
    KEY = "key"
    POLICY = "policy"
    PROVIDER = "provider"
    NETWORK = "network"
    OPERATOR = "operator"
    US = "us"


class ErrorCode(StrEnum):
    """One code for each sentence a person may read."""

    # the model
    UNKNOWN_HANDLE = "unknown_handle"
    UNKNOWN_TOOL = "unknown_tool"
    BAD_TOOL_ARGUMENTS = "bad_tool_arguments"
    # you
    NOTHING_SENT = "nothing_sent"
    TEXT_TOO_LONG = "text_too_long"
    TOO_MANY_PICTURES = "too_many_pictures"
    PICTURE_TOO_LARGE = "picture_too_large"
    PICTURE_TOO_MANY_PIXELS = "picture_too_many_pixels"
    PICTURE_BAD_SHAPE = "picture_bad_shape"
    PICTURE_UNREADABLE = "picture_unreadable"
    PICTURE_TRUNCATED = "picture_truncated"
    PICTURE_IS_SVG = "picture_is_svg"
    TOO_MANY_REFERENCES = "too_many_references"
    TOO_MANY_FACES = "too_many_faces"
    TOO_MANY_OBJECTS = "too_many_objects"
    ONE_PAINTER_ONLY = "one_painter_only"
    SETTING_NOT_SUPPORTED = "setting_not_supported"
    CONVERSATION_NOT_FOUND = "conversation_not_found"
    PICTURE_NOT_FOUND = "picture_not_found"
    QUEUE_FULL = "queue_full"
    CONVERSATION_BUSY = "conversation_busy"
    TURN_NOT_FOUND = "turn_not_found"
    TITLE_EMPTY = "title_empty"
    TITLE_TOO_LONG = "title_too_long"
    PLAN_GONE = "plan_gone"
    CANNOT_GO_ON = "cannot_go_on"
    BUDGET_USED_UP = "budget_used_up"
    CONVERSATION_BUDGET_USED_UP = "conversation_budget_used_up"
    STYLE_NOT_FOUND = "style_not_found"
    STYLE_NAME_TAKEN = "style_name_taken"
    STYLES_REFUSED = "styles_refused"
    TOO_MANY_STYLES = "too_many_styles"
    MASK_EMPTY = "mask_empty"
    MASK_WRONG_SHAPE = "mask_wrong_shape"
    MASK_UNREADABLE = "mask_unreadable"
    MASK_TOO_LARGE = "mask_too_large"
    MASK_OF_ANOTHER_PICTURE = "mask_of_another_picture"
    MASK_AND_EXPANSION = "mask_and_expansion"
    UPLOAD_MISSING = "upload_missing"
    EXPANSION_EMPTY = "expansion_empty"
    EXPANSION_TOO_LARGE = "expansion_too_large"
    PART_NOT_SUPPORTED = "part_not_supported"
    NOT_A_PART_EDIT = "not_a_part_edit"
    NOTHING_TO_GROW = "nothing_to_grow"
    NOT_COMPARABLE = "not_comparable"
    NOTHING_CHANGED = "nothing_changed"
    ARCHIVE_UNREADABLE = "archive_unreadable"
    ARCHIVE_NEWER = "archive_newer"
    ARCHIVE_ENCRYPTED = "archive_encrypted"
    ARCHIVE_UNSAFE = "archive_unsafe"
    ARCHIVE_TOO_LARGE = "archive_too_large"
    ARCHIVE_DAMAGED = "archive_damaged"
    ARCHIVE_PICTURE_UNREADABLE = "archive_picture_unreadable"
    ARCHIVE_INCONSISTENT = "archive_inconsistent"
    EXPORT_TOO_LARGE = "export_too_large"
    # key
    KEY_INVALID = "key_invalid"
    KEY_MISSING = "key_missing"
    KEY_FORBIDDEN = "key_forbidden"
    REGION_UNSUPPORTED = "region_unsupported"
    BILLING_REQUIRED = "billing_required"
    QUOTA_EXHAUSTED = "quota_exhausted"
    # policy
    PROMPT_BLOCKED = "prompt_blocked"
    ANSWER_BLOCKED = "answer_blocked"
    PICTURE_BLOCKED = "picture_blocked"
    PICTURE_RECITATION = "picture_recitation"
    LANGUAGE_UNSUPPORTED = "language_unsupported"
    # provider
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    PROVIDER_ERROR = "provider_error"
    PROVIDER_TIMEOUT = "provider_timeout"
    MODEL_NOT_FOUND = "model_not_found"
    REQUEST_REJECTED = "request_rejected"
    SIGNATURE_REJECTED = "signature_rejected"
    EMPTY_ANSWER = "empty_answer"
    ANSWER_UNREADABLE = "answer_unreadable"
    TEXT_INSTEAD_OF_PICTURE = "text_instead_of_picture"
    NO_PICTURE = "no_picture"
    MALFORMED_CALL = "malformed_call"
    ANSWER_TOO_LONG = "answer_too_long"
    BROKEN_PICTURE = "broken_picture"
    SEARCH_UNREADABLE = "search_unreadable"
    TOO_MANY_STEPS = "too_many_steps"
    NODE_TIMEOUT = "node_timeout"
    CALL_UNKNOWN = "call_unknown"
    # network
    CONNECTION_FAILED = "connection_failed"
    STREAM_CUT = "stream_cut"
    # operator
    DISK_FULL = "disk_full"
    STORAGE_BROKEN = "storage_broken"
    BAD_SETTING = "bad_setting"
    # us
    DESIGN_RULE_BROKEN = "design_rule_broken"
    INTERNAL = "internal"


# code: (who must act, whether sending the very same again can help, English sentence with {parameters})
TABLE: dict[ErrorCode, tuple[Actor, bool, str]] = {
    ErrorCode.UNKNOWN_HANDLE: (
        Actor.MODEL,
        False,
        "There is no picture {handle} in this conversation. Known pictures: {known}.",
    ),
    ErrorCode.UNKNOWN_TOOL: (Actor.MODEL, False, "There is no tool named {name}. Tools: {known}."),
    ErrorCode.BAD_TOOL_ARGUMENTS: (Actor.MODEL, False, "The arguments of {name} do not fit: {problem}."),
    ErrorCode.NOTHING_SENT: (Actor.YOU, False, "Write what you would like to see, or add a picture."),
    ErrorCode.TEXT_TOO_LONG: (
        Actor.YOU,
        False,
        "That is {length} characters; at most {limit} fit into one message. Please shorten it.",
    ),
    ErrorCode.TOO_MANY_PICTURES: (
        Actor.YOU,
        False,
        "You added {count} pictures; at most {limit} fit into one message. Please remove some.",
    ),
    ErrorCode.PICTURE_TOO_LARGE: (
        Actor.YOU,
        False,
        "{name} has {megabytes} MB; at most {limit} MB can be read. Please send a smaller file.",
    ),
    ErrorCode.PICTURE_TOO_MANY_PIXELS: (
        Actor.YOU,
        False,
        "{name} has {megapixels} megapixels; at most {limit} can be read. Please send a smaller picture.",
    ),
    ErrorCode.PICTURE_BAD_SHAPE: (
        Actor.YOU,
        False,
        "{name} is {width}×{height}, too long and thin to work with. Please crop it.",
    ),
    ErrorCode.PICTURE_UNREADABLE: (
        Actor.YOU,
        False,
        "{name} is not a picture that can be read. Please send PNG, JPEG, WebP, GIF, HEIC or AVIF.",
    ),
    ErrorCode.PICTURE_TRUNCATED: (
        Actor.YOU,
        False,
        "{name} is damaged or was cut off on its way. Please send it again.",
    ),
    ErrorCode.PICTURE_IS_SVG: (
        Actor.YOU,
        False,
        "{name} is a vector drawing (SVG). Please export it as PNG and send that.",
    ),
    ErrorCode.TOO_MANY_REFERENCES: (
        Actor.YOU,
        False,
        "{model} takes at most {limit} reference pictures; {count} were given. Please remove some.",
    ),
    ErrorCode.TOO_MANY_FACES: (
        Actor.YOU,
        False,
        "{model} keeps at most {limit} people alike in one picture; {count} references are marked as faces. Please "
        "choose another role for some.",
    ),
    ErrorCode.TOO_MANY_OBJECTS: (
        Actor.YOU,
        False,
        "{model} keeps at most {limit} things alike in one picture; {count} references are marked as subjects or "
        "products. Please choose another role for some.",
    ),
    ErrorCode.ONE_PAINTER_ONLY: (
        Actor.YOU,
        False,
        "Here {model} paints alone, so there is nothing to set beside it. Please choose another image model setting.",
    ),
    ErrorCode.SETTING_NOT_SUPPORTED: (
        Actor.YOU,
        False,
        "{model} does not offer {setting} {value}. Please choose one of {choices}.",
    ),
    ErrorCode.CONVERSATION_NOT_FOUND: (Actor.YOU, False, "This conversation no longer exists. Please start a new one."),
    ErrorCode.PICTURE_NOT_FOUND: (Actor.YOU, False, "The file of picture {handle} is gone. Please add it again."),
    ErrorCode.QUEUE_FULL: (
        Actor.YOU,
        True,
        "This conversation still works on {count} earlier messages. Please wait for one to finish.",
    ),
    ErrorCode.CONVERSATION_BUSY: (
        Actor.YOU,
        True,
        "This conversation still works on a message. Please wait for it to finish, or stop it.",
    ),
    ErrorCode.TURN_NOT_FOUND: (
        Actor.YOU,
        False,
        "This message is not in the conversation as it is shown. Please open the conversation again.",
    ),
    ErrorCode.TITLE_EMPTY: (Actor.YOU, False, "A conversation needs a name. Please write one."),
    ErrorCode.TITLE_TOO_LONG: (
        Actor.YOU,
        False,
        "That name has {length} characters; at most {limit} fit. Please shorten it.",
    ),
    ErrorCode.PLAN_GONE: (Actor.YOU, False, "This plan no longer waits for an answer. Please send your wish again."),
    ErrorCode.BUDGET_USED_UP: (
        Actor.YOU,
        True,
        "Your cap of ${cap} for today is used up (${spent} spent). Press Try again to send this message all the same, or raise the cap in Settings.",
    ),
    ErrorCode.CONVERSATION_BUDGET_USED_UP: (
        Actor.YOU,
        True,
        "Your cap of ${cap} for this conversation is used up (${spent} spent). Press Try again to send this message all the same, or raise the cap in Settings.",
    ),
    ErrorCode.CANNOT_GO_ON: (Actor.YOU, False, "The conversation has gone on since. Please send the message again."),
    ErrorCode.STYLE_NOT_FOUND: (Actor.YOU, False, "This style is not one of yours, or no longer exists."),
    ErrorCode.STYLE_NAME_TAKEN: (
        Actor.YOU,
        False,
        "You already have a style called {name}. Please choose another name.",
    ),
    ErrorCode.STYLES_REFUSED: (
        Actor.YOU,
        False,
        "This cannot be kept as a style ({problem}). Please mend that and try again.",
    ),
    ErrorCode.TOO_MANY_STYLES: (Actor.YOU, False, "A library holds at most {limit} styles of your own."),
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
    ErrorCode.KEY_INVALID: (
        Actor.KEY,
        False,
        "{service} does not accept this API key. Please check it in {console} and enter it again.",
    ),
    ErrorCode.KEY_MISSING: (Actor.KEY, False, "This model needs a Gemini API key. Please add one in Settings."),
    ErrorCode.KEY_FORBIDDEN: (
        Actor.KEY,
        False,
        "Your API key may not use {model}. Please give it access in {console}.",
    ),
    ErrorCode.REGION_UNSUPPORTED: (
        Actor.KEY,
        False,
        "Google does not offer the Gemini API where this studio runs. Please run it from another region.",
    ),
    ErrorCode.BILLING_REQUIRED: (
        Actor.KEY,
        False,
        "Your key has no quota for {model}. Please turn on billing in {console}.",
    ),
    ErrorCode.QUOTA_EXHAUSTED: (
        Actor.KEY,
        False,
        "Today's quota of your key for {model} is used up. It comes back at midnight Pacific time.",
    ),
    ErrorCode.PROMPT_BLOCKED: (
        Actor.POLICY,
        False,
        "{service}'s policy declined the request before an answer ({reason}). Please say it another way.",
    ),
    ErrorCode.ANSWER_BLOCKED: (
        Actor.POLICY,
        True,
        "{service}'s policy stopped the answer ({reason}). Please say it another way, or try again.",
    ),
    ErrorCode.PICTURE_BLOCKED: (
        Actor.POLICY,
        True,
        "{service}'s policy declined the picture ({reason}). Please say it another way.",
    ),
    ErrorCode.PICTURE_RECITATION: (
        Actor.POLICY,
        True,
        "The picture came too close to an existing work ({reason}). Please ask for something of your own.",
    ),
    ErrorCode.LANGUAGE_UNSUPPORTED: (
        Actor.POLICY,
        False,
        "The model does not support this language. Please write in another one.",
    ),
    ErrorCode.RATE_LIMITED: (Actor.PROVIDER, True, "{service} asks us to slow down. Please try again in {seconds} s."),
    ErrorCode.OVERLOADED: (Actor.PROVIDER, True, "{model} is overloaded at {service}. Please try again in a moment."),
    ErrorCode.PROVIDER_ERROR: (
        Actor.PROVIDER,
        True,
        "{service} had an internal error (HTTP {status}). Please try again; the call may have been charged.",
    ),
    ErrorCode.PROVIDER_TIMEOUT: (
        Actor.PROVIDER,
        True,
        "{model} did not answer within {seconds} s. Please try again; the call may have been charged.",
    ),
    ErrorCode.MODEL_NOT_FOUND: (
        Actor.OPERATOR,
        False,
        "{service} does not know the model {model}. Please set {variable} to one that your key can use.",
    ),
    ErrorCode.REQUEST_REJECTED: (
        Actor.US,
        False,
        "{service} rejected the request ({detail}). Please send us the debug report.",
    ),
    ErrorCode.SIGNATURE_REJECTED: (
        Actor.PROVIDER,
        True,
        "Google no longer accepts the memory of an earlier picture. Please try again with the picture attached.",
    ),
    ErrorCode.EMPTY_ANSWER: (Actor.PROVIDER, True, "The model gave an empty answer. Please try again."),
    ErrorCode.ANSWER_UNREADABLE: (
        Actor.PROVIDER,
        True,
        "What came back cannot be read as an answer. Please try again; the call may have been charged.",
    ),
    ErrorCode.TEXT_INSTEAD_OF_PICTURE: (
        Actor.PROVIDER,
        True,
        "The model answered in words instead of a picture: {text}",
    ),
    ErrorCode.NO_PICTURE: (
        Actor.PROVIDER,
        True,
        "The model made no picture ({reason}). Please try again or say more of what it should show.",
    ),
    ErrorCode.MALFORMED_CALL: (Actor.PROVIDER, True, "The model garbled its own instructions. Please try again."),
    ErrorCode.ANSWER_TOO_LONG: (
        Actor.PROVIDER,
        True,
        "The answer was cut at the model's length limit. Please ask for less at once.",
    ),
    ErrorCode.BROKEN_PICTURE: (Actor.PROVIDER, True, "The picture arrived damaged. Please try again."),
    ErrorCode.SEARCH_UNREADABLE: (
        Actor.PROVIDER,
        True,
        "The web search brought nothing readable. Please try again, or turn the search off.",
    ),
    ErrorCode.TOO_MANY_STEPS: (
        Actor.PROVIDER,
        True,
        "The agent went round in circles and was stopped after {steps} steps. Please say it more plainly.",
    ),
    ErrorCode.NODE_TIMEOUT: (
        Actor.PROVIDER,
        True,
        "Nothing came for {seconds} seconds, so the wait was ended. Please try again.",
    ),
    ErrorCode.CALL_UNKNOWN: (
        Actor.PROVIDER,
        True,
        "The studio was cut off after asking {model} and never got the answer. The call may have been charged; nothing "
        "is asked again unless you say so.",
    ),
    ErrorCode.CONNECTION_FAILED: (
        Actor.NETWORK,
        True,
        "{service} cannot be reached. Please check the network connection and try again.",
    ),
    ErrorCode.STREAM_CUT: (
        Actor.NETWORK,
        True,
        "The connection broke in the middle of the answer. What had arrived is kept; please try again.",
    ),
    ErrorCode.DISK_FULL: (
        Actor.OPERATOR,
        False,
        "The disk of the studio's machine is full. Please free some space; nothing was lost.",
    ),
    ErrorCode.STORAGE_BROKEN: (Actor.OPERATOR, False, "The studio's records cannot be read or written ({detail})."),
    ErrorCode.BAD_SETTING: (Actor.OPERATOR, False, "{name} is {value!r}: {problem}."),
    ErrorCode.DESIGN_RULE_BROKEN: (
        Actor.US,
        False,
        "The studio stopped itself: {rule}. Please send us the debug report.",
    ),
    ErrorCode.INTERNAL: (
        Actor.US,
        True,
        "Something in the studio failed. Your words and pictures are kept; please try again.",
    ),
}
