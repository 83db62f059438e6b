"""What a run looks like: figures, progress, the catalogue. Matplotlib and rich are imported when used, not before."""

from filtax.report.catalogue import catalogue, describe, published
from filtax.report.figure import draw_segments, draw_stream, run_length_image
from filtax.report.progress import progress

__all__ = [
    "catalogue",
    "describe",
    "draw_segments",
    "draw_stream",
    "progress",
    "published",
    "run_length_image",
]
