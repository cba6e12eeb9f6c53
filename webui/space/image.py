"""The Dockerfile of a Space with Docker's SDK: the steps that Gradio's SDK takes by itself, without its extras."""

from __future__ import annotations

from webui.space.spacefile import Spacefile

_PACKAGES = """\
COPY packages.txt ./
RUN apt-get update && xargs -a packages.txt apt-get install -y --no-install-recommends && rm -rf /var/lib/apt/lists/*
"""


def dockerfile(spacefile: Spacefile) -> str:
    """Return the Dockerfile. The Space runs it as user 1000 and waits for port 7860."""
    return f"""\
FROM python:{spacefile.runs_on.python}-slim-bookworm
RUN useradd --create-home --uid 1000 user && install -d -o user -g user /home/user/app
WORKDIR /home/user/app
{_PACKAGES if spacefile.runs_on.packages else ""}USER user
ENV HOME=/home/user PATH=/home/user/.local/bin:$PATH PYTHONUNBUFFERED=1
COPY --chown=user requirements.txt ./
RUN pip install --no-cache-dir --user -r requirements.txt
COPY --chown=user . .
EXPOSE 7860
CMD ["python", "app.py"]
"""
