"""The shell of a page in one file: no addresses, nothing fetched, readable on a phone."""

import html

__all__ = ["page"]


def page(title: str, style: str, body: str) -> str:
    """A whole page of HTML.

    Args:
        title: Of the window; escaped here.
        style: CSS.
        body: HTML; what users named in it is the caller's to escape.

    Returns:
        The text of the file.

    Example:
        >>> page("a < b", "p { color: #444; }", "<p>yes</p>").endswith("</head><body><p>yes</p></body></html>")
        True
    """
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{style}</style></head><body>{body}</body></html>"
    )
