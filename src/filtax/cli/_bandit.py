"""`filtax bandit`: judge a policy by the log of another one."""

from pathlib import Path
from typing import Annotated

import typer

from filtax.cli._options import LARGEST_SEED
from filtax.cli._talk import print_table, start_jax, talk


def bandit(
    log: Annotated[Path, typer.Argument(help="CSV with the columns arm, reward, probability; others are the context.")],
    arms: Annotated[str | None, typer.Option(help="All arms, a,b,c; those of the log by default.")] = None,
    policy: Annotated[str, typer.Option(help="ts, ts-predictive, ucb, bayes-ucb, greedy or epsilon-greedy.")] = "ts",
    rewards: Annotated[str, typer.Option(help="binary, number, or auto to look.")] = "auto",
    rate: Annotated[float, typer.Option(help="Share of what was learned that a step keeps.")] = 0.999,
    context: Annotated[str | None, typer.Option(help="Context columns, x,y; all others by default.")] = None,
    uniform: Annotated[bool, typer.Option(help="Every arm was logged with the same probability.")] = False,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Another number, other draws.")] = 0,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
) -> None:
    """Estimate what a policy that learns would have earned a round, from the log of another policy.

    Prints the mean reward of the log, and the estimates by replay, IPS, SNIPS and doubly robust, each with an interval.
    """
    start_jax()
    from filtax.bandits.logged_evaluation import evaluate_named_policy, read_log

    try:
        found = read_log(log, arms=_split(arms), context=_split(context), uniform=uniform)
        judged = evaluate_named_policy(found, policy, rewards=rewards, rate=rate, seed=seed, level=level)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="'LOG'") from None
    talk(f"{len(found)} rows, {len(found.arms)} arms; {judged.method} with {policy}. Mean reward of a round:")
    print_table([("estimate", "value", "low", "high", "rows"), *judged.rows])


def _split(names: str | None) -> list[str] | None:
    """The names in a list such as "a,b"; None without one."""
    return None if names is None else [name for name in names.split(",") if name]
