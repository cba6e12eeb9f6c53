"""What is kept out of records and reports, and what is not trusted."""

from __future__ import annotations

from agent import RedactingFilter, plain_text, secrets_of, urls_in
from agent.redaction import HIDDEN, TOO_DEEP, object_without_secrets, without_homes, without_secrets
from agent.tools.trust import MOST_CHARACTERS, Trust, comparable, framed, trust_before, trust_of, uses_of_tools
