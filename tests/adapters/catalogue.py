"""The models, their sizes and prices."""

from __future__ import annotations

from agent import IMAGE_ROLES, TEXT_ROLES, Catalogue, ModelEntry, ModelRole, catalogue_of
from agent.providers.catalogue import JsonMode, Prices, load_catalogue, override_variable
