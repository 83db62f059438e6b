"""(M.2) Auxiliary variables psi: what else is unknown besides theta."""

from typing import TYPE_CHECKING

from filtax.gathering import on_demand

if TYPE_CHECKING:
    from filtax.auxiliary import hazards
    from filtax.auxiliary.branching import Branching, change_locations, change_times, run_length_count
    from filtax.auxiliary.constant import Constant, change_probability
    from filtax.auxiliary.experts import Experts, experts
    from filtax.auxiliary.map_path import map_path
    from filtax.auxiliary.membership import Membership, membership, membership_vector
    from filtax.auxiliary.runlength import RunLength, run_length

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

on_demand(
    __name__,
    branching="Branching change_locations change_times run_length_count",
    constant="Constant change_probability",
    experts="Experts experts",
    map_path="map_path",
    membership="Membership membership membership_vector",
    runlength="RunLength run_length",
)
