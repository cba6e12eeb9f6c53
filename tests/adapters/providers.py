"""The providers that speak to a server."""

from __future__ import annotations

from agent import KeyDiagnosis
from agent.providers.gemini import GeminiProvider
from agent.providers.gemini_answer import AnswerReader
from agent.providers.gemini_connection import GeminiConnection
from agent.providers.gemini_embeddings import GeminiEmbedder
from agent.providers.gemini_failures import failure_of
from agent.providers.gemini_key_check import check_key
from agent.providers.gemini_wire import DUMMY_SIGNATURE, Wire, to_wire
from agent.providers.http_failures import Asked, Endpoint
from agent.providers.key_status import KeyStatusCache
from agent.providers.openai_answer import TEXT_ENDS
from agent.providers.openai_compatible import OpenAIProvider
from agent.providers.openai_errors import as_ours
from agent.providers.openai_tags import TagSplitter, read_calls
from agent.providers.pool import NO_KEY, ProviderPool
