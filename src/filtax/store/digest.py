"""One text for one value: canonical JSON, and its SHA-256."""

import hashlib
import json
from typing import Any

__all__ = ["canonical", "digest"]


def canonical(value: Any) -> bytes:
    """Write a value of dicts, lists, texts and numbers as JSON, always in the same way.

    >>> canonical({"b": 1, "a": [0.1, None]})
    b'{"a":[0.1,null],"b":1}'
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise ValueError(
            f"what is stored beside a state must be plain JSON ({problem}); give dicts, lists, texts, finite numbers."
        ) from None
    return text.encode("ascii")


def digest(value: Any) -> str:
    """SHA-256 of a value, 64 hexadecimal digits; equal for equal values.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(canonical(value)).hexdigest()
