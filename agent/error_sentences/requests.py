"""What is said of a request: of its words, its pictures, its settings, and of the model's own calls."""

from __future__ import annotations

from agent.error_codes import Actor, ErrorCode
from agent.error_sentences.sentence import Sentence

REQUESTS: dict[ErrorCode, Sentence] = {
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
    ErrorCode.WISH_TOO_LONG: (
        Actor.YOU,
        False,
        "A wish of more than {limit} characters is not written out. You can send it as it is.",
    ),
    ErrorCode.TOO_MANY_PICTURES: (
        Actor.YOU,
        False,
        "You added {count} pictures; at most {limit} fit into one message. Please remove some.",
    ),
    ErrorCode.PICTURE_TOO_LARGE: (
        Actor.YOU,
        False,
        "{name} is {megabytes} MB; at most {limit} MB can be read. Please send a smaller file.",
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
    ErrorCode.TOO_MANY_TURNS: (
        Actor.YOU,
        True,
        "You sent {count} messages in ten minutes, and this studio takes no more from one visitor. "
        "Please try again in {seconds} s.",
    ),
    ErrorCode.STUDIO_BUSY: (
        Actor.YOU,
        True,
        "This studio has {count} messages of its visitors to work on, and takes no more at once. Please try again soon.",
    ),
    ErrorCode.STUDIO_CLOSING: (
        Actor.YOU,
        True,
        "The studio is closing. Your message is kept; please send it again in a moment.",
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
    ErrorCode.PRESET_NOT_FOUND: (Actor.YOU, False, "This preset is not there any more."),
    ErrorCode.PRESET_NAME_INVALID: (Actor.YOU, False, "A preset needs a name of 1 to {limit} characters."),
    ErrorCode.PRESET_NAME_TAKEN: (
        Actor.YOU,
        False,
        "You have a preset called “{name}” already. Please choose another name.",
    ),
    ErrorCode.TOO_MANY_PRESETS: (Actor.YOU, False, "At most {limit} presets are kept. Please delete one first."),
    ErrorCode.DAY_CAP_USED_UP: (
        Actor.YOU,
        False,
        "Your cap of ${cap} for today is used up (${spent} spent). You can raise it in Settings.",
    ),
    ErrorCode.TURN_TOO_DEAR: (
        Actor.YOU,
        False,
        "This message would cost about ${price}, and the owner of this studio pays up to ${cap} for one. Please ask for fewer or smaller pictures, or add your own Gemini API key in Settings.",
    ),
}
