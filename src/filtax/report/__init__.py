"""What a run looks like: figures, progress, the catalogue. Matplotlib and rich are imported when used, not before."""

from filtax.report.catalogue import catalogue, describe, published
from filtax.report.figure import Track, draw_stream
from filtax.report.influence import draw_influence
from filtax.report.progress import progress
from filtax.report.segments import draw_segments, run_length_image

__all__ = [
    "Track",
    "catalogue",
    "describe",
    "draw_influence",
    "draw_segments",
    "draw_stream",
    "progress",
    "published",
    "run_length_image",
]
