"""The models, their sizes and prices, and models that say what a test has written."""

from __future__ import annotations

from agent import IMAGE_ROLES, TEXT_ROLES, Catalogue, ModelEntry, ModelRole, catalogue_of
from agent.providers.base import ChatOptions, Embedding, ImageRequest, PictureBytes, Provider, ToolDeclaration
from agent.providers.catalogue import JsonMode, Prices, load_catalogue, override_variable
from agent.providers.scripted import Asked, Hold, Line, Painting, Script, ScriptedProvider, calls, finds, says
