# The studio for everyone who runs containers; a Hugging Face Space has its own (docs/space.md).
#   docker build -t aivista .
#   docker run --rm -p 127.0.0.1:7860:7860 -v aivista:/data aivista
# Each browser that reaches the port has a space of its own there. For yourself alone: -e AIVISTA_SINGLE_USER=1
FROM python:3.11.13-slim-bookworm AS build
WORKDIR /source
COPY requirements.image.lock ./
# Every package by the digest of its file. To make the list anew after `requirements.lock`:
#   uv pip compile --universal --python-version 3.11 --generate-hashes -c requirements.lock pyproject.toml \
#     -o requirements.image.lock
RUN python -m venv /opt/aivista && \
    /opt/aivista/bin/pip install --no-cache-dir --no-deps --require-hashes -r requirements.image.lock
COPY pyproject.toml README.md LICENSE ./
COPY agent agent
COPY webui webui
RUN /opt/aivista/bin/pip install --no-cache-dir --no-deps .

FROM python:3.11.13-slim-bookworm
RUN useradd --create-home --uid 1000 aivista && install -d -m 700 -o aivista -g aivista /data
COPY --from=build /opt/aivista /opt/aivista
ENV PATH=/opt/aivista/bin:$PATH AIVISTA_HOME=/data AIVISTA_SHUTDOWN_GRACE_S=7 PYTHONUNBUFFERED=1
USER aivista
VOLUME /data
EXPOSE 7860
HEALTHCHECK --start-period=60s --interval=30s --timeout=5s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:7860/healthz', timeout=4)"]
# Docker ends it with SIGTERM: turns at work may end, and what is left is put on record. After ten seconds Docker would
# kill it; with a longer `--stop-timeout` give a longer grace as well.
CMD ["aivista", "--host", "0.0.0.0", "--port", "7860"]
