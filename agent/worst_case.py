"""The maximum cost of one call: an upper bound for its input, and an output that the request itself limits.

Pure functions. A tokenizer makes at most one token per byte; for normal text it makes one token per three or four
characters. Here two ASCII characters count as one token, and so does every byte of non-ASCII text. The studio's own
texts are English prose, in which three characters count as one token. Output limits include thoughts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import date

from agent.messages import (
    ContentPart,
    ImagePart,
    PromptMessage,
    SignedPart,
    TextPart,
    TokenUsage,
    ToolCallPart,
    ToolResultPart,
)
from agent.providers.base import ChatOptions, ToolDeclaration
from agent.providers.catalogue import ModelEntry

# The limit for an image model's text and thoughts per picture. Recorded answers of Gemini have 180 to 1,190.
PICTURE_WORDS_TOKENS = 2000
# The maximum number of queries that a search is told to make, and the tokens of its results that count as input.
MOST_QUERIES = 4
_SEARCHED_TOKENS = 2000
SHOWN_PICTURE_TOKENS = 1120
_MESSAGE_TOKENS = 8
# A signature counts as its thoughts; its length in bytes does not matter.
_SIGNED_TOKENS = 100
_LEAST_OUTPUT_TOKENS = 256
_MOST_OUTPUT_TOKENS = 65_536


def text_tokens(text: str) -> int:
    """Return the maximum number of tokens of any text."""
    ascii_count = len(text.encode("ascii", "ignore"))
    return (ascii_count + 1) // 2 + len(text.encode("utf-8", "replace")) - ascii_count


def own_tokens(text: str) -> int:
    """Return the maximum number of tokens of a text written by the studio itself."""
    return -(-len(text) // 3)


def declared_tokens(system: str, tools: Iterable[ToolDeclaration]) -> int:
    """Return the maximum number of tokens of the system prompt and the declared functions."""
    return own_tokens(system) + sum(own_tokens(tool.model_dump_json()) + _MESSAGE_TOKENS for tool in tools)


def message_tokens(messages: Iterable[PromptMessage], picture: int = SHOWN_PICTURE_TOKENS) -> int:
    """Return the maximum number of tokens of messages; each picture in them counts as `picture` tokens."""
    return sum(_MESSAGE_TOKENS + sum(_part_tokens(part, picture) for part in message.parts) for message in messages)


def _part_tokens(part: ContentPart, picture: int) -> int:
    signed = _SIGNED_TOKENS if isinstance(part, SignedPart) and part.is_signed else 0
    match part:
        case TextPart():
            return signed + (0 if part.is_thought else text_tokens(part.text))
        case ImagePart():
            return picture
        case ToolCallPart():
            return signed + text_tokens(json.dumps(part.arguments, ensure_ascii=False)) + _MESSAGE_TOKENS
        case ToolResultPart():
            return text_tokens(json.dumps(part.content, ensure_ascii=False)) + picture * len(part.images)
        case _:
            return signed


def input_usage(
    messages: Sequence[PromptMessage], tools: Sequence[ToolDeclaration], options: ChatOptions
) -> TokenUsage:
    """Return the maximum input usage of a text call, without any output."""
    schema = own_tokens(json.dumps(options.response_schema)) if options.response_schema else 0
    return TokenUsage(
        prompt_tokens=declared_tokens(options.system, tools) + message_tokens(messages) + schema,
        tool_tokens=_SEARCHED_TOKENS if options.google_search else 0,
        search_queries=MOST_QUERIES if options.google_search else 0,
    )


def affordable_tokens(model: ModelEntry, left_usd: float, on: date) -> int:
    """Return how many output tokens `left_usd` can pay for, 0 when that is too few for an answer."""
    each_usd = model.price_usd(TokenUsage(output_tokens=1_000_000), on) / 1_000_000
    tokens = _MOST_OUTPUT_TOKENS if each_usd <= 0 else min(_MOST_OUTPUT_TOKENS, int(max(0.0, left_usd) / each_usd))
    return tokens if tokens >= _LEAST_OUTPUT_TOKENS else 0


def picture_limit(model: ModelEntry, resolution: str | None) -> int:
    """Return the output limit in tokens for a picture and the text and thoughts that come with it."""
    return model.tokens_of_picture(resolution) + PICTURE_WORDS_TOKENS


def worst_picture_usd(
    model: ModelEntry, resolution: str | None, prompt_tokens: int, on: date, *, is_grounded: bool = False
) -> float:
    """Return the maximum price of one picture, in US dollars."""
    usage = TokenUsage(
        prompt_tokens=prompt_tokens,
        tool_tokens=_SEARCHED_TOKENS if is_grounded else 0,
        output_tokens=PICTURE_WORDS_TOKENS,
        image_tokens=model.most_picture_tokens or model.tokens_of_picture(resolution),
        search_queries=MOST_QUERIES if is_grounded else 0,
    )
    return model.price_usd(usage, on)
