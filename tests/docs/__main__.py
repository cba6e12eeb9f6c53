"""`python -m tests.docs` writes the pages that are made from the code."""

from __future__ import annotations

from tests.docs.turn_graph import PAGE, page


def main() -> None:
    """Write every page, and say so where one is new."""
    text = page()
    is_new = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text
    PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE.name} {'is written anew' if is_new else 'was true already'}")


if __name__ == "__main__":
    main()
