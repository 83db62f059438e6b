"""`filtax doctor`: whether filtax works here."""

import typer

from filtax.cli._outcome import guarded
from filtax.cli._talk import start_jax

__all__ = ["doctor"]


def doctor() -> None:
    """Print versions, device and cache, and learn a small series whose answer is known; exits 1 if it is not found."""
    with guarded():
        start_jax()
        from filtax.runs.health import checked

        well = True
        for name, found, good in checked():
            print(f"{'ok ' if good else 'BAD'}  {name:<12} {found}", flush=True)
            well = well and good
        if not well:
            raise typer.Exit(1)
