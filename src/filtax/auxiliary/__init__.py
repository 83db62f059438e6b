"""(M.2) Auxiliary variables psi: what else is unknown besides theta."""

from filtax.auxiliary.constant import Constant

__all__ = ["Constant"]
