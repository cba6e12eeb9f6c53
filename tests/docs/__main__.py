"""`python -m tests.docs` writes the pages that are made from the code."""

from __future__ import annotations

from tests.docs import PAGES


def main() -> None:
    """Write every page, and say so where one is new."""
    for made in PAGES:
        text = made.page()
        is_new = not made.PAGE.exists() or made.PAGE.read_text(encoding="utf-8") != text
        made.PAGE.write_text(text, encoding="utf-8")
        print(f"{made.PAGE.name} {'is written anew' if is_new else 'was true already'}")


if __name__ == "__main__":
    main()
