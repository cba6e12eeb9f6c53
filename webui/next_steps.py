"""Where a person goes on after a failure that lies with their key: the address, as a link that can be read as words."""

from __future__ import annotations

from html import escape

from agent import ErrorCode

_KEYS = "aistudio.google.com/apikey"
_BILLING = "ai.studio/projects"
_CREDENTIALS = "console.cloud.google.com/apis/credentials"
_PLACES = {
    ErrorCode.KEY_INVALID: _KEYS,
    ErrorCode.KEY_MISSING: _KEYS,
    ErrorCode.KEY_EXPIRED: _KEYS,
    ErrorCode.KEY_LEAKED: _KEYS,
    ErrorCode.KEY_SUSPENDED: _KEYS,
    ErrorCode.ACCOUNT_LIMITED: _KEYS,
    ErrorCode.KEY_FORBIDDEN: _KEYS,
    ErrorCode.BILLING_REQUIRED: _BILLING,
    ErrorCode.CREDITS_USED_UP: _BILLING,
    ErrorCode.QUOTA_EXHAUSTED: "ai.dev/rate-limit",
    ErrorCode.KEY_RESTRICTED: _CREDENTIALS,
    ErrorCode.KEY_WITHOUT_API: _CREDENTIALS,
    ErrorCode.API_DISABLED: "console.cloud.google.com/apis/library/generativelanguage.googleapis.com",
    ErrorCode.REGION_UNSUPPORTED: "ai.google.dev/gemini-api/docs/available-regions",
    ErrorCode.MODEL_NOT_OFFERED: "ai.google.dev/gemini-api/docs/models",
}
KEYS_PAGE = _KEYS


def next_step(code: ErrorCode) -> str:
    """Return a link to where the person can act, its address as its words; nothing where there is no such place."""
    return place_link(_PLACES[code]) if code in _PLACES else ""


def place_link(place: str) -> str:
    """Return a link to an address that is written without its scheme."""
    shown = escape(place)
    return f'<a href="https://{shown}" target="_blank" rel="noopener noreferrer">{shown}</a>'
