"""What is asked of an image model, and what the answer is held against."""

from __future__ import annotations

from agent.imaging.checks import captions_in, refused_review
from agent.imaging.contract import NormalizedRequest, declaration, image_models, normalize, parse_arguments
from agent.imaging.intents import action_of, expansion_note, holds_question, is_mask_note, is_unsure, mask_note
from agent.imaging.references import ResolvedReferences, build_image_messages, resolve_references
from agent.imaging.roles import check_limits, merged_roles, read_roles
