"""The models, their sizes and prices; what is asked of them and what their servers answer; models that say what a test
has written."""

from __future__ import annotations

from agent import IMAGE_ROLES, TEXT_ROLES, Catalogue, KeyDiagnosis, ModelEntry, ModelRole, catalogue_of
from agent.imaging.arguments import parse_arguments
from agent.imaging.checks import captions_in, refused_review
from agent.imaging.contract import NormalizedRequest, declaration, image_models, normalize
from agent.imaging.intents import expansion_note, holds_question, is_unsure, mask_note
from agent.imaging.references import (
    ResolvedReferences,
    build_image_messages,
    check_limits,
    merged_roles,
    read_roles,
    resolve_references,
)
from agent.providers.base import ChatOptions, Embedding, ImageRequest, PictureBytes, Provider, ToolDeclaration
from agent.providers.catalogue import JsonMode, Prices, load_catalogue, override_variable
from agent.providers.gemini import GeminiEmbedder, GeminiProvider, check_key
from agent.providers.gemini_connection import GeminiConnection, failure_of
from agent.providers.gemini_wire import DUMMY_SIGNATURE, AnswerReader, Wire, to_wire
from agent.providers.http_failures import Endpoint, ProviderCall
from agent.providers.key_status import KeyStatusCache
from agent.providers.openai_answer import TEXT_ENDS
from agent.providers.openai_compatible import OpenAIProvider, as_ours
from agent.providers.openai_wire import TagSplitter, read_calls
from agent.providers.pool import NO_KEY, ProviderPool
from agent.providers.scripted import Asked, Hold, Line, Painting, Script, ScriptedProvider, calls, finds, says
