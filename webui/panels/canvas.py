"""The stage: one picture as large as fits, its neighbours, its receipt."""

from __future__ import annotations

from html import escape

import gradio as gr

from agent import MODEL_COPY_SIDE_PX, Conversation, Picture, PixelSize, fitted_size
from webui.cards import THUMB_EDGE_PX, View, button, picture_actions, picture_alt
from webui.icons import icon
from webui.panels.flat import flat
from webui.panels.painter import choose_button_html, stage_buttons_html
from webui.panels.viewer import viewer_bar
from webui.picture_notes import blank_mark, review_badge, review_rows, size_text
from webui.receipts import whole_receipt
from webui.words import Words

STAGE_EDGE_PX = 2048


def build_canvas() -> gr.HTML:
    """Return the empty stage; the page lays it and the painter into one column."""
    return flat("canvas")


def empty_canvas_html(words: Words) -> str:
    """Return the stage before a picture is opened."""
    return (
        f'<div class="empty"><div class="empty-art">{icon("image", 26)}</div>'
        f"<h3>{escape(words('stage.empty'))}</h3><p>{escape(words('stage.empty_text'))}</p>"
        f"<div>{choose_button_html(words)}{example_button(words)}</div></div>"
    )


def opened_canvas_html(view: View, conversation: Conversation | None) -> str:
    """Return the stage of a conversation that was just opened: the picture that the next words change."""
    if conversation is None or not conversation.pictures:
        return empty_canvas_html(view.words)
    target = conversation.edit_target
    return canvas_html(view, conversation, conversation.picture(target) if target else conversation.pictures[-1])


def canvas_html(view: View, conversation: Conversation, picture: Picture) -> str:
    """Return the stage with a picture open."""
    words, image = view.words, picture.image
    width, height = image.width or 1, image.height or 1
    original = escape(words("action.original"))
    receipt = whole_receipt(view, picture) or "".join(f"<p>{escape(one)}</p>" for one in _uploaded(words, picture))
    return (
        f"{viewer_bar(view, conversation, picture, STAGE_EDGE_PX)}"
        f'<div class="cv-scroll"><div class="cv-well" style="--ar:{width / height:.4f}"><div class="cv-pic" '
        f'data-conversation="{escape(view.conversation_id)}" data-handle="{escape(picture.handle)}" '
        f'data-width="{width}" data-height="{height}" data-original="{view.url(picture.handle)}">'
        f'<img src="{view.url(picture.handle, STAGE_EDGE_PX)}" alt="{escape(picture_alt(words, picture))}" '
        f'loading="lazy">{blank_mark(words, picture)}</div>'
        f'{_strip(view, conversation, picture.handle)}<div class="cv-info"><span>{_size(words, picture)}</span>'
        f'<span class="grow"></span><a href="{view.url(picture.handle)}" target="_blank" rel="noopener">{original}</a>'
        f'</div></div><div class="cv-paint">{stage_buttons_html(words, picture.handle)}</div>'
        f"{picture_actions(view, picture, is_on_stage=True)}"
        f'<div class="cv-about">{_review(words, picture)}<section class="receipt whole">'
        f"<h3>{escape(words('receipt.title'))}</h3>{receipt}</section></div></div>"
    )


def _size(words: Words, picture: Picture) -> str:
    """Return the pixels of the picture, and its bits where they are more than usual."""
    image = picture.image
    told = f"{image.width or 1}×{image.height or 1}"
    return f"{told} · {escape(words('stage.bits', bits=image.bit_depth))}" if image.bit_depth > 8 else told


def _uploaded(words: Words, picture: Picture) -> list[str]:
    """Return what is known of an upload: as what it is kept, and what models see of it where that is less."""
    image, file = picture.image, picture.original
    if file is None:
        return [words("receipt.uploaded")]
    size = PixelSize(width=image.width or 0, height=image.height or 0, bit_depth=image.bit_depth)
    kept = size_text(words, size)
    is_flatter = file.bit_depth > image.bit_depth and image.bit_depth == 8
    bits = {"file_bits": file.bit_depth, "bits": image.bit_depth}
    told = words("receipt.kept_flatter", size=kept, **bits) if is_flatter else words("receipt.kept", size=kept)
    width, height = fitted_size(size.width, size.height, MODEL_COPY_SIDE_PX)
    if (width, height, 8) == (size.width, size.height, size.bit_depth):
        return [told]
    used = PixelSize(width=width, height=height)
    return [told, words("receipt.model_copy", used=size_text(words, used))]


def _review(words: Words, picture: Picture) -> str:
    if picture.review is None:
        return ""
    head = f"{escape(words('review.title'))} {review_badge(words, picture.review)}"
    rows = review_rows(words, picture.review)
    found = f'<div class="found">{rows}</div>' if rows else ""
    return f'<section class="review whole"><h3>{head}</h3>{found}</section>'


def example_button(words: Words) -> str:
    """Return a button that puts an example of a wish into the composer; nothing is sent."""
    return button("say", words("stage.example"), "paintbrush", "line", arg=words("stage.example_text"))


def _strip(view: View, conversation: Conversation, current: str) -> str:
    if len(conversation.pictures) < 2:
        return ""
    cells = "".join(
        f'<button type="button" data-act="view" data-arg="{escape(one.handle)}" aria-label="{escape(one.handle)}"'
        f"{' aria-current=true' if one.handle == current else ''}>"
        f'<img src="{view.url(one.handle, THUMB_EDGE_PX)}" alt="" loading="lazy">'
        f'<span class="tag on-pic">{escape(one.handle)}</span></button>'
        for one in conversation.pictures[-12:]
    )
    return f'<div class="strip">{cells}</div>'
