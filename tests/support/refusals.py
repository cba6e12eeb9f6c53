"""Why something is refused, or fails."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest

from agent import AivistaError, ErrorCode, RequestRefused


async def refusal(attempt: Awaitable[object], kind: type[AivistaError] = RequestRefused) -> ErrorCode:
    """Return why an attempt is refused, by an error of this kind."""
    with pytest.raises(kind) as refused:
        await attempt
    return refused.value.code
