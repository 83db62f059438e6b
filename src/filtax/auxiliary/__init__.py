"""(M.2) Auxiliary variables psi: what else is unknown besides theta."""

from typing import TYPE_CHECKING

from filtax import _lazy

if TYPE_CHECKING:
    from filtax.auxiliary import hazards
    from filtax.auxiliary._branching import Branching, change_locations, change_times, run_length_count
    from filtax.auxiliary._constant import Constant, change_probability
    from filtax.auxiliary._experts import Experts, experts, map_path
    from filtax.auxiliary._membership import Membership, membership, membership_vector
    from filtax.auxiliary._run_length import RunLength, run_length

__all__ = [
    "Branching",
    "Constant",
    "Experts",
    "Membership",
    "RunLength",
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
    _branching="Branching change_locations change_times run_length_count",
    _constant="Constant change_probability",
    _experts="Experts experts map_path",
    _membership="Membership membership membership_vector",
    _run_length="RunLength run_length",
)
