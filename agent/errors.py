"""All failures of the studio, by who must act.

    AivistaError
    ├── ToolArgumentError      the model corrects its call (unknown handle, illegal value, unknown tool)
    ├── RequestRefused         the user changes the request (bad picture, too long, too many)
    ├── KeyProblem             the user checks the key, its billing or its region
    ├── ContentBlocked         the provider's policy refused the text or the picture
    ├── ProviderFailure        the provider failed; some kinds are temporary
    │   └── RateLimited        ... and this one says when to retry
    ├── NetworkFailure         the connection failed or was cut
    ├── StorageFailure         the machine that runs the studio: disk full, database unreadable
    ├── SettingsError          the operator; names the variable or flag
    └── DesignRuleBroken       the developers: the program was about to break one of its own design rules

An exception is made from an `ErrorCode` and its parameters; `info` is the same as a frozen value, which events, chunks
and records contain. Its message is in `agent/locales` in every language; an exception's own text is English.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.locales import sentences


class Actor(StrEnum):
    """Who must act so that the next attempt works."""

    MODEL = "model"
    YOU = "you"
    KEY = "key"
    POLICY = "policy"
    PROVIDER = "provider"
    NETWORK = "network"
    OPERATOR = "operator"
    US = "us"


class Charge(StrEnum):
    """Whether the provider charges for the call that failed."""

    NO = "no"
    """Nothing was sent, or the provider did no work."""
    YES = "yes"
    """The call was answered: its usage is included in the recorded spending."""
    MAYBE = "maybe"
    """The end of the answer never arrived: the provider may charge an amount that the studio does not know."""


class AivistaError(Exception):
    """The base class of all failures. `info` is the failure as a value; `str()` is its English message."""

    def __init__(self, code: ErrorCode, *, provider_detail: str = "", **parameters: str | int | float) -> None:
        self.info = ErrorInfo(code=code, parameters=parameters, provider_detail=provider_detail)
        super().__init__(self.info.message)

    @property
    def code(self) -> ErrorCode:
        """The code of the failure."""
        return self.info.code


class ToolArgumentError(AivistaError):
    """The model called a tool wrongly and receives the message as the tool's result."""


class RequestRefused(AivistaError):
    """The user's request cannot be carried out as it is."""


class KeyProblem(AivistaError):
    """A problem with the key, its billing, its quota or its region."""


class ContentBlocked(AivistaError):
    """The provider's policy blocked the content."""


class ProviderFailure(AivistaError):
    """The provider answered with a failure, or with nothing usable."""


class RateLimited(ProviderFailure):
    """Too many requests; `retry_after_s` is the provider's own hint, if it sent one."""

    @property
    def retry_after_s(self) -> float | None:
        """The seconds after which the provider accepts requests again, if it says so."""
        return self.info.retry_after_s


class NetworkFailure(AivistaError):
    """The connection failed or was cut."""


class StorageFailure(AivistaError):
    """A failure of the machine that runs the studio: disk or database."""


class SettingsError(AivistaError):
    """An invalid flag or environment variable of the operator."""

    def __init__(self, name: str, value: object, problem: str) -> None:
        super().__init__(ErrorCode.BAD_SETTING, name=name, value=str(value), problem=problem)


class DesignRuleBroken(AivistaError):
    """A rule of the design was about to be broken; nothing was sent."""


_KINDS: dict[Actor, type[AivistaError]] = {
    Actor.MODEL: ToolArgumentError,
    Actor.YOU: RequestRefused,
    Actor.KEY: KeyProblem,
    Actor.POLICY: ContentBlocked,
    Actor.PROVIDER: ProviderFailure,
    Actor.NETWORK: NetworkFailure,
    Actor.OPERATOR: StorageFailure,
    Actor.US: AivistaError,
}


class ErrorCode(StrEnum):
    """One code for each error message that a user may read."""

    # A new code needs a row here and a sentence in each file of `agent/locales`.

    _value_: str
    actor: Actor
    """Who must act."""
    http_status: int
    """The status of the HTTP API's response."""
    can_retry: bool
    """Whether sending the same request again can help."""
    charge: Charge
    """Whether the call was charged, unless the failure itself says otherwise."""
    kind: type[AivistaError]
    """The exception class; a row names it only if it does not follow from `actor`."""

    def __new__(
        cls,
        value: str,
        actor: Actor,
        http_status: int,
        can_retry: bool = False,
        charge: Charge = Charge.NO,
        kind: type[AivistaError] | None = None,
    ) -> ErrorCode:
        code = str.__new__(cls, value)
        code._value_ = value
        code.actor, code.http_status, code.can_retry, code.charge = actor, http_status, can_retry, charge
        code.kind = kind or _KINDS[actor]
        return code

    # the model
    UNKNOWN_HANDLE = "unknown_handle", Actor.MODEL, 422
    NO_PICTURE_TO_CHANGE = "no_picture_to_change", Actor.MODEL, 422
    UNKNOWN_TOOL = "unknown_tool", Actor.MODEL, 422
    BAD_TOOL_ARGUMENTS = "bad_tool_arguments", Actor.MODEL, 422
    ADDRESS_REFUSED = "address_refused", Actor.MODEL, 422
    PAGE_UNREADABLE = "page_unreadable", Actor.MODEL, 422
    PAGE_REFUSED = "page_refused", Actor.MODEL, 422
    # you
    NOTHING_SENT = "nothing_sent", Actor.YOU, 422
    TEXT_TOO_LONG = "text_too_long", Actor.YOU, 413
    WISH_TOO_LONG = "wish_too_long", Actor.YOU, 422
    TOO_MANY_PICTURES = "too_many_pictures", Actor.YOU, 422
    PICTURE_TOO_LARGE = "picture_too_large", Actor.YOU, 413
    PICTURES_TOO_LARGE = "pictures_too_large", Actor.YOU, 422
    PICTURE_TOO_MANY_PIXELS = "picture_too_many_pixels", Actor.YOU, 413
    PICTURE_BAD_SHAPE = "picture_bad_shape", Actor.YOU, 422
    PICTURE_UNREADABLE = "picture_unreadable", Actor.YOU, 422
    PICTURE_TRUNCATED = "picture_truncated", Actor.YOU, 422
    PICTURE_IS_SVG = "picture_is_svg", Actor.YOU, 422
    TOO_MANY_REFERENCES = "too_many_references", Actor.YOU, 422
    TOO_MANY_FACES = "too_many_faces", Actor.YOU, 422
    TOO_MANY_OBJECTS = "too_many_objects", Actor.YOU, 422
    ONE_PAINTER_ONLY = "one_painter_only", Actor.YOU, 422
    SETTING_NOT_SUPPORTED = "setting_not_supported", Actor.YOU, 422
    CONVERSATION_NOT_FOUND = "conversation_not_found", Actor.YOU, 404
    PICTURE_NOT_FOUND = "picture_not_found", Actor.YOU, 404
    PICTURE_FILE_MISSING = "picture_file_missing", Actor.YOU, 404
    PICTURE_GONE = "picture_gone", Actor.YOU, 404
    PICTURE_DELETED = "picture_deleted", Actor.YOU, 404
    VISITOR_QUOTA_USED_UP = "visitor_quota_used_up", Actor.YOU, 413, True
    QUEUE_FULL = "queue_full", Actor.YOU, 429, True
    TOO_MANY_TURNS = "too_many_turns", Actor.YOU, 422, True
    STUDIO_BUSY = "studio_busy", Actor.YOU, 422, True
    STUDIO_CLOSING = "studio_closing", Actor.YOU, 503, True
    CONVERSATION_BUSY = "conversation_busy", Actor.YOU, 409, True
    TURN_NOT_FOUND = "turn_not_found", Actor.YOU, 404
    TITLE_EMPTY = "title_empty", Actor.YOU, 422
    TITLE_TOO_LONG = "title_too_long", Actor.YOU, 422
    PLAN_GONE = "plan_gone", Actor.YOU, 409
    CANNOT_GO_ON = "cannot_go_on", Actor.YOU, 409
    BUDGET_USED_UP = "budget_used_up", Actor.YOU, 402, True
    CONVERSATION_BUDGET_USED_UP = "conversation_budget_used_up", Actor.YOU, 402, True
    STYLE_NOT_FOUND = "style_not_found", Actor.YOU, 404
    STYLE_NAME_TAKEN = "style_name_taken", Actor.YOU, 409
    STYLES_REFUSED = "styles_refused", Actor.YOU, 422
    TOO_MANY_STYLES = "too_many_styles", Actor.YOU, 422
    PRESET_NOT_FOUND = "preset_not_found", Actor.YOU, 422
    PRESET_NAME_INVALID = "preset_name_invalid", Actor.YOU, 422
    PRESET_NAME_TAKEN = "preset_name_taken", Actor.YOU, 422
    TOO_MANY_PRESETS = "too_many_presets", Actor.YOU, 422
    DAY_CAP_USED_UP = "day_cap_used_up", Actor.YOU, 422
    TURN_TOO_DEAR = "turn_too_dear", Actor.YOU, 402
    MAXIMUM_REACHED = "maximum_reached", Actor.YOU, 402, True
    MASK_EMPTY = "mask_empty", Actor.YOU, 422
    MASK_WRONG_SHAPE = "mask_wrong_shape", Actor.YOU, 422
    MASK_UNREADABLE = "mask_unreadable", Actor.YOU, 422
    MASK_TOO_LARGE = "mask_too_large", Actor.YOU, 413
    MASK_OF_ANOTHER_PICTURE = "mask_of_another_picture", Actor.YOU, 422
    MASKED_TWICE = "masked_twice", Actor.YOU, 422
    MASK_AND_EXPANSION = "mask_and_expansion", Actor.YOU, 422
    UPLOAD_MISSING = "upload_missing", Actor.YOU, 422
    EXPANSION_EMPTY = "expansion_empty", Actor.YOU, 422
    EXPANSION_TOO_LARGE = "expansion_too_large", Actor.YOU, 422
    PART_NOT_SUPPORTED = "part_not_supported", Actor.YOU, 422
    NOT_A_PART_EDIT = "not_a_part_edit", Actor.YOU, 422
    NOTHING_TO_GROW = "nothing_to_grow", Actor.YOU, 422
    NOT_COMPARABLE = "not_comparable", Actor.YOU, 422
    NOTHING_CHANGED = "nothing_changed", Actor.YOU, 422
    NO_TRANSPARENCY_LOST = "no_transparency_lost", Actor.YOU, 422
    ARCHIVE_UNREADABLE = "archive_unreadable", Actor.YOU, 422
    ARCHIVE_NEWER = "archive_newer", Actor.YOU, 422
    ARCHIVE_ENCRYPTED = "archive_encrypted", Actor.YOU, 422
    ARCHIVE_UNSAFE = "archive_unsafe", Actor.YOU, 422
    ARCHIVE_TOO_LARGE = "archive_too_large", Actor.YOU, 413
    ARCHIVE_DAMAGED = "archive_damaged", Actor.YOU, 422
    ARCHIVE_PICTURE_UNREADABLE = "archive_picture_unreadable", Actor.YOU, 422
    ARCHIVE_INCONSISTENT = "archive_inconsistent", Actor.YOU, 422
    EXPORT_TOO_LARGE = "export_too_large", Actor.YOU, 413
    FILE_NAME_INVALID = "file_name_invalid", Actor.YOU, 422
    FILE_NAME_TAKEN = "file_name_taken", Actor.YOU, 409
    FILE_NOT_FOUND = "file_not_found", Actor.YOU, 404
    FILE_NOT_TEXT = "file_not_text", Actor.YOU, 422
    FILE_CHANGED = "file_changed", Actor.YOU, 409
    FILE_TOO_LARGE = "file_too_large", Actor.YOU, 413
    TOO_MANY_FILES = "too_many_files", Actor.YOU, 422
    WORKSPACE_FULL = "workspace_full", Actor.YOU, 413
    LANGUAGE_UNSUPPORTED = "language_unsupported", Actor.YOU, 422, False, Charge.YES
    CONTEXT_TOO_LONG = "context_too_long", Actor.YOU, 413
    REQUEST_TOO_LARGE = "request_too_large", Actor.YOU, 413
    PICTURE_REJECTED = "picture_rejected", Actor.YOU, 422, True
    # key
    KEY_INVALID = "key_invalid", Actor.KEY, 403
    KEY_MISSING = "key_missing", Actor.KEY, 403
    OWNER_CAP_USED_UP = "owner_cap_used_up", Actor.KEY, 403
    KEY_FORBIDDEN = "key_forbidden", Actor.KEY, 403
    REGION_UNSUPPORTED = "region_unsupported", Actor.KEY, 403
    BILLING_REQUIRED = "billing_required", Actor.KEY, 403
    QUOTA_EXHAUSTED = "quota_exhausted", Actor.KEY, 429
    KEY_EXPIRED = "key_expired", Actor.KEY, 403
    KEY_LEAKED = "key_leaked", Actor.KEY, 403
    KEY_SUSPENDED = "key_suspended", Actor.KEY, 403
    KEY_RESTRICTED = "key_restricted", Actor.KEY, 403
    KEY_WITHOUT_API = "key_without_api", Actor.KEY, 403
    API_DISABLED = "api_disabled", Actor.KEY, 403
    CREDITS_USED_UP = "credits_used_up", Actor.KEY, 403
    MODEL_NOT_OFFERED = "model_not_offered", Actor.KEY, 403
    ACCOUNT_LIMITED = "account_limited", Actor.KEY, 403
    # policy
    PROMPT_BLOCKED = "prompt_blocked", Actor.POLICY, 422, False, Charge.YES
    ANSWER_BLOCKED = "answer_blocked", Actor.POLICY, 422, False, Charge.YES
    PICTURE_BLOCKED = "picture_blocked", Actor.POLICY, 422, False, Charge.YES
    PICTURE_RECITATION = "picture_recitation", Actor.POLICY, 422, False, Charge.YES
    # provider
    RATE_LIMITED = "rate_limited", Actor.PROVIDER, 429, True, Charge.NO, RateLimited
    SLOW_DOWN = "slow_down", Actor.PROVIDER, 429, True, Charge.NO, RateLimited
    OVERLOADED = "overloaded", Actor.PROVIDER, 503, True
    MODEL_PAUSED = "model_paused", Actor.PROVIDER, 503, True
    PROVIDER_ERROR = "provider_error", Actor.PROVIDER, 502, True, Charge.MAYBE
    PROVIDER_TIMEOUT = "provider_timeout", Actor.PROVIDER, 504, True, Charge.MAYBE
    PROVIDER_GAVE_UP = "provider_gave_up", Actor.PROVIDER, 504, True, Charge.MAYBE
    ANSWER_TOO_SLOW = "answer_too_slow", Actor.PROVIDER, 504, True, Charge.MAYBE
    ANSWER_UNFINISHED = "answer_unfinished", Actor.PROVIDER, 502, True, Charge.MAYBE
    UNKNOWN_REASON = "unknown_reason", Actor.PROVIDER, 502, True, Charge.YES
    TOOL_LOOP = "tool_loop", Actor.PROVIDER, 502, True, Charge.YES
    REQUEST_REJECTED = "request_rejected", Actor.US, 500, False, Charge.NO, ProviderFailure
    SIGNATURE_REJECTED = "signature_rejected", Actor.PROVIDER, 502, True
    EMPTY_ANSWER = "empty_answer", Actor.PROVIDER, 502, True, Charge.YES
    ANSWER_UNREADABLE = "answer_unreadable", Actor.PROVIDER, 502, True, Charge.MAYBE
    TEXT_INSTEAD_OF_PICTURE = "text_instead_of_picture", Actor.PROVIDER, 502, True, Charge.YES
    NO_PICTURE = "no_picture", Actor.PROVIDER, 502, True, Charge.YES
    MALFORMED_CALL = "malformed_call", Actor.PROVIDER, 502, True, Charge.YES
    ANSWER_TOO_LONG = "answer_too_long", Actor.PROVIDER, 502, True, Charge.YES
    BROKEN_PICTURE = "broken_picture", Actor.PROVIDER, 502, True, Charge.YES
    SEARCH_UNREADABLE = "search_unreadable", Actor.PROVIDER, 502, True, Charge.YES
    TOO_MANY_STEPS = "too_many_steps", Actor.PROVIDER, 502, True, Charge.YES
    NODE_TIMEOUT = "node_timeout", Actor.PROVIDER, 504, True, Charge.MAYBE
    CALL_UNKNOWN = "call_unknown", Actor.PROVIDER, 502, True, Charge.MAYBE
    # network
    PAGE_UNREACHABLE = "page_unreachable", Actor.NETWORK, 502, True
    PAGE_TOO_SLOW = "page_too_slow", Actor.NETWORK, 502, True
    CONNECTION_FAILED = "connection_failed", Actor.NETWORK, 502, True
    SENDING_FAILED = "sending_failed", Actor.NETWORK, 502, True
    STREAM_CUT = "stream_cut", Actor.NETWORK, 502, True, Charge.MAYBE
    PROXY_FAILED = "proxy_failed", Actor.NETWORK, 502
    CERTIFICATE_FAILED = "certificate_failed", Actor.NETWORK, 502
    TLS_FAILED = "tls_failed", Actor.NETWORK, 502
    # operator
    DISK_FULL = "disk_full", Actor.OPERATOR, 507, True
    NO_ROOM_TO_PAINT = "no_room_to_paint", Actor.OPERATOR, 500, True
    PICTURE_NOT_SAVED = "picture_not_saved", Actor.OPERATOR, 500, False, Charge.YES
    PICTURE_NOT_RECORDED = "picture_not_recorded", Actor.OPERATOR, 500, False, Charge.YES
    STORAGE_BROKEN = "storage_broken", Actor.OPERATOR, 500
    BAD_SETTING = "bad_setting", Actor.OPERATOR, 500, False, Charge.NO, SettingsError
    MODEL_NOT_FOUND = "model_not_found", Actor.OPERATOR, 500, False, Charge.NO, ProviderFailure
    MODEL_UNFIT = "model_unfit", Actor.OPERATOR, 500, False, Charge.NO, ProviderFailure
    WRONG_ADDRESS = "wrong_address", Actor.OPERATOR, 500, False, Charge.NO, ProviderFailure
    WRONG_PATH = "wrong_path", Actor.OPERATOR, 500, False, Charge.NO, ProviderFailure
    REDIRECTED = "redirected", Actor.OPERATOR, 500, False, Charge.NO, ProviderFailure
    # us
    DESIGN_RULE_BROKEN = "design_rule_broken", Actor.US, 500, False, Charge.NO, DesignRuleBroken
    NOT_SENT = "not_sent", Actor.US, 500, True
    INTERNAL = "internal", Actor.US, 500, True, Charge.MAYBE


# `service` is the called provider, `console` the place where its keys are managed.
_GOOGLE: dict[str, str | int | float] = {"service": "Google", "console": "Google AI Studio"}


def error_sentences(language: str = "en") -> Mapping[str, str]:
    """Return the error messages of a language by code, with `{parameters}`."""
    return sentences("errors", language)


class ErrorInfo(BaseModel):
    """A failure as a value: its code, the message's parameters, and the provider's own description.

    `charge` is set when this failure was charged differently from what its code says.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: ErrorCode
    parameters: dict[str, str | int | float] = Field(default_factory=dict)
    provider_detail: str = ""
    charge: Charge | None = None

    @property
    def actor(self) -> Actor:
        """Who must act."""
        return self.code.actor

    @property
    def can_retry(self) -> bool:
        """Whether sending the same request again can help."""
        return self.code.can_retry

    @property
    def charged(self) -> Charge:
        """Whether the provider charges for the call that failed."""
        return self.charge or self.code.charge

    @property
    def retry_after_s(self) -> float | None:
        """The seconds after which to retry, if the studio or the provider is too busy and the time is known."""
        seconds = self.parameters.get("seconds")
        return seconds if self.code.http_status in (429, 503) and isinstance(seconds, int | float) else None

    @property
    def refused(self) -> Literal["input", "output"] | None:
        """Whether a policy refused the input or the output; None when no policy refused anything."""
        if self.actor is not Actor.POLICY:
            return None
        return "input" if self.code is ErrorCode.PROMPT_BLOCKED else "output"

    @property
    def message(self) -> str:
        """The message in English."""
        return self.sentence("en")

    def sentence(self, language: str) -> str:
        """Return the message in one of the page's languages."""
        # A missing parameter becomes a question mark instead of a KeyError.
        filled = defaultdict(lambda: "?", self.sentence_parameters)
        return error_sentences(language)[self.code.value].format_map(filled)

    @property
    def sentence_parameters(self) -> dict[str, str | int | float]:
        """The parameters of the message: the failure's own, with Google as the default service."""
        return _GOOGLE | self.parameters


def error_from_info(info: ErrorInfo) -> AivistaError:
    """Return the exception for a failure that a chunk or a record contains."""
    error = info.code.kind.__new__(info.code.kind)
    Exception.__init__(error, info.message)
    error.info = info
    return error
