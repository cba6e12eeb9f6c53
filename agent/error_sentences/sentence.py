"""What is on record of a code: who must act, whether the very same again can help, and the sentence in English."""

from __future__ import annotations

from agent.error_codes import Actor

Sentence = tuple[Actor, bool, str]
"""Who must act; whether sending the very same again can help; the sentence, with `{parameters}`."""
