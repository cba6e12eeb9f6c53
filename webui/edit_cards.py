"""What came of an edit, under its picture: what did not change, whether it was pasted, what can be done about it."""

from __future__ import annotations

from html import escape

from agent import DriftRecord, EditRecord, Picture, PixelSize, Reduction, ReductionKind
from webui.cards import View, button
from webui.icons import icon
from webui.words import Words

# Below these an edit is called true to its original: less is not seen, and within what can be measured.
_SHIFT_PX = 0.5
_ZOOM = 0.005
# Beyond it, pixels of the two pictures cannot be laid over each other.
_SAME_SHAPE = 0.03


def edit_lines(view: View, picture: Picture) -> str:
    """Return the lines under a picture: what came of an edit, and where less than a picture's own size or bit depth
    was used; empty where there is nothing to say.
    """
    words, receipt = view.words, picture.receipt
    told = "".join(_reduction(words, picture.handle, one) for one in (receipt.reductions if receipt else ()))
    if picture.edit is not None:
        return _edit(words, picture.handle, picture.edit, has_numbers=bool(told)) + _framed(told)
    return (_drift(words, picture.handle, picture.drift) if picture.drift is not None else "") + _framed(told)


def _reduction(words: Words, handle: str, reduction: Reduction) -> str:
    back = ""
    if reduction.kind is ReductionKind.TRANSPARENCY:
        back = button("keep_transparency", words("edit.keep_transparency"), "undo-2", "line", arg=handle)
    return _line("short", "scaling", reduction_text(words, reduction), back)


def reduction_text(words: Words, reduction: Reduction) -> str:
    """Return in a sentence where less than all of a picture was used."""
    full, used = size_text(words, reduction.full), size_text(words, reduction.used)
    if reduction.kind is ReductionKind.SHAPE:
        full, used = (f"{one.width}×{one.height}" for one in (reduction.full, reduction.used))
    return words(f"reduction.{reduction.kind}", handle=reduction.handle, full=full, used=used)


def size_text(words: Words, size: PixelSize) -> str:
    """Return pixels and bits as a person reads them."""
    return words("reduction.size", width=size.width, height=size.height, bits=size.bit_depth)


def _framed(lines: str) -> str:
    return f'<div class="edit">{lines}</div>' if lines else ""


def notice_lines(words: Words, codes: tuple[str, ...]) -> str:
    """Return what should be known before a masked edit is paid for, a line each."""
    return "".join(_line("short", "triangle-alert", words(f"notice.{code}")) for code in codes)


def _edit(words: Words, handle: str, edit: EditRecord, *, has_numbers: bool) -> str:
    """Return the lines of an edit of a part; `has_numbers` when it is told elsewhere how much softer that is."""
    lines = [_verdict(words, handle, edit)]
    if edit.spill_px and edit.grown_mask is not None and not edit.is_set_aside:
        grow = button("grow_mask", words("edit.grow"), "expand", "line", arg=handle)
        lines.append(_line("short", "triangle-alert", words("edit.spills", pixels=edit.spill_px), grow))
    # The spill has a line of its own, with its number and what to do.
    told_elsewhere = {"spills", *(("softer",) if has_numbers else ())}
    told = [notice.code for notice in edit.notices if notice.code not in told_elsewhere]
    return f'<div class="edit">{"".join(lines)}{notice_lines(words, tuple(told))}</div>'


def _verdict(words: Words, handle: str, edit: EditRecord) -> str:
    if edit.is_kept is False:
        back = button("keep_edit", words("edit.keep_after_all"), "undo-2", "line", arg=handle)
        return _line("unseen", "ban", words("edit.discarded"), back)
    if edit.verdict == "refused":
        return _line("short", "triangle-alert", words("edit.refused"))
    counted = words("edit.exact", changed=f"{edit.changed_outside:,}", outside=f"{edit.outside:,}")
    exact = _line("passed" if not edit.changed_outside else "short", "shield-check", counted) if edit.outside else ""
    if edit.verdict == "unsure" and edit.is_kept is None:
        choice = button("compare", words("edit.look"), "git-compare", "line", arg=handle)
        choice += button("keep_edit", words("edit.keep"), "check", "line", arg=handle)
        choice += button("discard_edit", words("edit.discard"), "trash", "line", arg=handle)
        return exact + _line("short", "triangle-alert", words("edit.unsure"), choice)
    return exact


def _drift(words: Words, handle: str, drift: DriftRecord) -> str:
    if not drift.is_comparable:
        return f'<div class="edit">{_line("short", "triangle-alert", words("edit.another", handle=drift.base))}</div>'
    if abs(drift.ratio_change - 1) > _SAME_SHAPE:
        reshaped = words("edit.reshaped", handle=drift.base)
        return f'<div class="edit">{_line("unseen", "git-compare", reshaped)}</div>'
    told = words("edit.changed", share=f"{drift.changed_share:.0%}", handle=drift.base)
    shift = max(abs(drift.shift_px[0]), abs(drift.shift_px[1]))
    if shift >= _SHIFT_PX or abs(drift.scale - 1) >= _ZOOM:
        told += " " + words("edit.drifted", pixels=f"{shift:.1f}", zoom=f"{drift.scale:.3f}")
    keep = button("keep_only", words("edit.keep_only"), "crop", "line", arg=handle) if drift.changed_share else ""
    return f'<div class="edit">{_line("unseen", "git-compare", told, keep)}</div>'


def _line(tone: str, icon_name: str, text: str, buttons: str = "") -> str:
    return f'<p class="edit-line {tone}">{icon(icon_name, 14)}<span>{escape(text)}</span>{buttons}</p>'
