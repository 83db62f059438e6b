"""(M.2) Auxiliary variables psi: what else is unknown besides theta."""

from typing import TYPE_CHECKING

from filtax import _lazy

if TYPE_CHECKING:
    from filtax.auxiliary import hazards
    from filtax.auxiliary._changes import change_locations, change_times, run_length, run_length_count
    from filtax.auxiliary._constant import Constant, change_probability
    from filtax.auxiliary._experts import experts, map_path
    from filtax.auxiliary._membership import membership, membership_vector

__all__ = [
    "Constant",
    "change_locations",
    "change_probability",
    "change_times",
    "experts",
    "hazards",
    "map_path",
    "membership",
    "membership_vector",
    "run_length",
    "run_length_count",
]

__getattr__, __dir__ = _lazy(
    __name__,
    __all__,
    _changes="change_locations change_times run_length run_length_count",
    _constant="Constant change_probability",
    _experts="experts map_path",
    _membership="membership membership_vector",
)
