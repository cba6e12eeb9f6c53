"""What every code of failure says in English, who must act, and whether the same again can help; a file a concern."""

from __future__ import annotations

from agent.error_codes import ErrorCode
from agent.error_sentences.archives import ARCHIVES
from agent.error_sentences.edits import EDITS
from agent.error_sentences.files import FILES
from agent.error_sentences.pages import PAGES
from agent.error_sentences.requests import REQUESTS
from agent.error_sentences.sentence import Sentence
from agent.error_sentences.services import SERVICES
from agent.error_sentences.studio import STUDIO

TABLE: dict[ErrorCode, Sentence] = REQUESTS | EDITS | ARCHIVES | FILES | PAGES | SERVICES | STUDIO
