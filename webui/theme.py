"""The look in one place: colour, type and shape tokens, and a Gradio theme that only points at them.

Tokens become CSS custom properties (`--av-*`) for light and dark; the theme's own variables are set to `var(--av-*)`,
so that `.dark` on the body switches Gradio's components and our own HTML together.
"""

from __future__ import annotations

import gradio as gr

# name: (light, dark)
COLOURS: dict[str, tuple[str, str]] = {
    "bg": ("#FAFAF8", "#141413"),
    "rail": ("#F3F3F0", "#0F0F0E"),
    "surface": ("#FFFFFF", "#1D1D1B"),
    "sunken": ("#F0F0EC", "#232321"),
    "press": ("#E5E5E0", "#2E2E2B"),
    "lift": ("#FFFFFF", "#383835"),
    "stage": ("#E8E8E4", "#0B0B0A"),
    "line": ("#E2E2DD", "#2C2C29"),
    "edge": ("#8C8C85", "#6F6F69"),
    "text": ("#1B1B19", "#EDEDE9"),
    "text-2": ("#52524D", "#B7B7B0"),
    "text-3": ("#686862", "#96968F"),
    "ink": ("#1B1B19", "#EDEDE9"),
    "on-ink": ("#FFFFFF", "#161615"),
    "accent": ("#0A6B5D", "#4FCBB4"),
    "accent-soft": ("#DFF0EB", "#12312B"),
    "on-accent": ("#FFFFFF", "#06211C"),
    "mask": ("#FF2E63", "#FF4D79"),
    "ok": ("#1C6F3B", "#6FCF8E"),
    "warn": ("#7F5200", "#E6B455"),
    "warn-soft": ("#FBF2DE", "#2E2513"),
    "danger": ("#AE2530", "#FF8F88"),
    "danger-soft": ("#FBEBEA", "#341A19"),
}

SANS = (
    '-apple-system, BlinkMacSystemFont, "Segoe UI Variable Text", "Segoe UI", Roboto, Inter, "Noto Sans", '
    '"Liberation Sans", "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei UI", "Microsoft YaHei", '
    '"Noto Sans CJK SC", "Noto Sans SC", sans-serif'
)
MONO = 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", "Noto Sans CJK SC", monospace'

SHAPE: dict[str, str] = {
    "r-1": "6px",
    "r-2": "8px",
    "r-3": "12px",
    "r-4": "16px",
    "shadow-1": "0 1px 2px rgb(20 20 15/.05)",
    "shadow-2": "0 1px 2px rgb(20 20 15/.05), 0 4px 16px rgb(20 20 15/.06)",
    "shadow-3": "0 2px 6px rgb(20 20 15/.08), 0 16px 48px rgb(20 20 15/.18)",
    "fast": "120ms",
    "slow": "220ms",
    "ease": "cubic-bezier(.2,.7,.2,1)",
    "sans": SANS,
    "mono": MONO,
}


def tokens_css() -> str:
    """Return the tokens as custom properties, for light on the root and for `.dark`, which is for screens."""
    light = "".join(f"--av-{name}:{pair[0]};" for name, pair in COLOURS.items())
    dark = "".join(f"--av-{name}:{pair[1]};" for name, pair in COLOURS.items())
    shape = "".join(f"--av-{name}:{value};" for name, value in SHAPE.items())
    return f":root{{color-scheme:light;{light}{shape}}}\n@media not print{{.dark{{color-scheme:dark;{dark}}}}}\n"


# Of Gradio's variables those that its parts of the page use: one of our tokens, or a value of its own after "=".
_POINTERS: dict[str, str] = {
    "body_background_fill": "bg",
    "body_text_color": "text",
    "body_text_color_subdued": "text-2",
    "background_fill_primary": "surface",
    "background_fill_secondary": "bg",
    "border_color_primary": "line",
    "block_background_fill": "=transparent",
    "block_border_color": "line",
    "block_border_width": "=0px",
    "block_title_text_color": "text-2",
    "block_shadow": "=none",
    "input_background_fill": "surface",
    "input_background_fill_focus": "surface",
    "input_border_color_focus": "accent",
    "input_border_width": "=1px",
    "input_placeholder_color": "text-3",
    "input_shadow": "=none",
    "input_shadow_focus": "=0 0 0 3px color-mix(in srgb, var(--av-accent) 22%, transparent)",
    "button_primary_text_color": "on-ink",
    "button_secondary_background_fill": "surface",
    "button_secondary_background_fill_hover": "sunken",
    "checkbox_background_color_selected": "accent",
    "checkbox_border_color_selected": "accent",
    "checkbox_label_background_fill": "=transparent",
    "checkbox_label_background_fill_selected": "accent-soft",
    "checkbox_label_text_color_selected": "text",
    "checkbox_label_border_color": "line",
    "checkbox_label_border_color_selected": "accent",
}


def aivista_theme() -> gr.themes.Base:
    """Return the Gradio theme; every colour in it is one of our tokens."""
    theme = gr.themes.Base(
        primary_hue=gr.themes.colors.teal,
        neutral_hue=gr.themes.colors.stone,
        spacing_size=gr.themes.sizes.spacing_sm,
        radius_size=gr.themes.sizes.radius_md,
        text_size=gr.themes.sizes.text_sm,
        font=[SANS],
        font_mono=[MONO],
    )
    values: dict[str, str] = {}
    for name, pointer in _POINTERS.items():
        value = pointer[1:] if pointer.startswith("=") else f"var(--av-{pointer})"
        values[name] = values[f"{name}_dark"] = value
    theme.set(**values, block_radius="12px", input_radius="8px", container_radius="12px")
    return theme
