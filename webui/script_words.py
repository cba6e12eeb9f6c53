"""The words that scripts write, and those that Gradio writes by itself, in the visitor's language.

A script asks for `aivista.words.say("key")`, a key of the section [script]. What Gradio names in English alone is
replaced on the page: an exact text by the sentence for it, a text about a file or a queue by what it must hold.
"""

from __future__ import annotations

import json
from html import escape

from agent import MAX_UPLOAD_MEGABYTES
from webui.words import Words

# Gradio 6.31's own English, by what it is called here: names of parts, and what its notices say.
NAMES: dict[str, str] = {
    "Upload a file": "builtin.attach",
    "File thumbnail": "builtin.thumbnail",
    "Remove file": "builtin.remove",
    "Uploading": "builtin.uploading",
    "Uploaded files": "builtin.uploaded",
    "Multimedia input field": "builtin.message",
    "Click to upload or drop files": "builtin.attach",
    "File upload": "builtin.attach",
    "Submit": "builtin.send",
    "Stop": "builtin.stop",
    "Close": "action.close",
    "Error": "builtin.error",
    "Warning": "builtin.warning",
    "Info": "builtin.info",
    "Connection Lost": "builtin.lost",
    "Connection to the server was lost. Attempting reconnection...": "builtin.lost_text",
    "Connection errored out.": "script.cut",
    "This application is currently busy. Please try again.": "builtin.busy",
}
# A notice that holds these words, whatever else it says.
PARTS: dict[str, str] = {
    "Invalid file type": "builtin.wrong_type",
    "maximum allowed size": "builtin.too_large",
    "Queue is full": "builtin.busy",
    "Failed to fetch": "script.cut",
    "NetworkError": "script.cut",
    "Could not parse server response": "script.cut",
}


def script_words_html(words: Words) -> str:
    """Return a hidden element with all of it, for the page's script to read."""
    script = {key.removeprefix("script."): text for key, text in words.table.items() if key.startswith("script.")}
    names = {theirs: words(key) for theirs, key in NAMES.items()}
    parts = {theirs: words(key, limit=MAX_UPLOAD_MEGABYTES) for theirs, key in PARTS.items()}
    told = {"script": script, "names": names, "parts": parts}
    data = "".join(f' data-{name}="{escape(json.dumps(table, ensure_ascii=False))}"' for name, table in told.items())
    return f'<i id="words" hidden{data}></i>'
