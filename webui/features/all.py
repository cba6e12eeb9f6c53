"""All features of the page that have actions."""

from __future__ import annotations

from webui.features.conversations import conversations
from webui.features.files import files
from webui.features.gallery import gallery
from webui.features.page import page
from webui.features.presets import presets
from webui.features.prompts import prompts
from webui.features.recipes import recipes
from webui.features.settings import settings
from webui.features.shortcuts import shortcuts
from webui.features.styles import styles
from webui.features.suggestions import suggestions
from webui.features.thread.stream import thread
from webui.features.trace import trace
from webui.features.tree import tree
from webui.features.viewer.image_routes import image_routes
from webui.shell.actions import Feature

FEATURES = (
    *(styles, prompts, shortcuts, tree, suggestions, settings, conversations),
    *(trace, presets, files, gallery, thread, page, recipes),
    Feature("viewer", routes=lambda screen: image_routes(screen.studio, screen.sessions)),
)
