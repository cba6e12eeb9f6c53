"""The prompt gallery: prompts in groups and a search; what the person sent and starred the browser alone knows."""

from __future__ import annotations

from webui.features.prompts.book import prompt_groups
from webui.shell.actions import Context, Feature
from webui.shell.patches import Reply

prompts = Feature("prompts")


@prompts.action
async def open(at: Context) -> Reply:
    """Show the gallery."""
    return Reply(patches=(at.fragment("prompts", "prompts/dialog.html", groups=prompt_groups(at.words.language)),))
