"""Which decisions wait for their reward, and what became of others: both are bounded."""

from typing import Any

__all__ = ["Ledger"]


class Ledger:
    """Decisions by their numbers: those that wait, with arm and context, and the fates of the last ones settled.

    >>> ledger = Ledger(limit=1)
    >>> ledger.enter(0, "a", None)
    >>> ledger.settle(0, "learned"), ledger.fate(0), ledger.fate(7)
    ('learned', 'repeated', 'forgotten')
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.waiting: dict[int, tuple[Any, Any]] = {}
        self.fates: dict[int, str] = {}

    def enter(self, id: int, arm: Any, x: Any) -> None:
        """Let a decision wait."""
        self.waiting[id] = (arm, x)

    def forsake(self, arm: Any) -> None:
        """The arm is gone: decisions for it wait on, but for no arm, also if one of its name comes back."""
        self.waiting = {id: (None if held == arm else held, x) for id, (held, x) in self.waiting.items()}

    def overdue(self) -> int | None:
        """The oldest decision, if more wait than may."""
        return next(iter(self.waiting)) if len(self.waiting) > self.limit else None

    def settle(self, id: int, fate: str) -> str:
        """Let a decision wait no more; fates beyond the limit are forgotten, the oldest first."""
        del self.waiting[id]
        self.fates[id] = fate
        while len(self.fates) > self.limit:
            del self.fates[next(iter(self.fates))]
        return fate

    def fate(self, id: int) -> str:
        """What is told of a reward for a decision that waits no more."""
        fate = self.fates.get(id, "forgotten")
        return "repeated" if fate == "learned" else fate

    def plain(self) -> dict[str, Any]:
        """All but the contexts, for JSON."""
        return {
            "limit": self.limit,
            "waiting": [[id, arm] for id, (arm, _) in self.waiting.items()],
            "fates": [[id, fate] for id, fate in self.fates.items()],
        }

    def recall(self, plain: dict[str, Any], contexts: list[Any]) -> None:
        """Take up what `plain` told, and a context or None for each decision that waits."""
        self.waiting = {int(id): (arm, x) for (id, arm), x in zip(plain["waiting"], contexts, strict=True)}
        self.fates = {int(id): fate for id, fate in plain["fates"]}
