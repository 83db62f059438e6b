"""What can be wrong with a checkpoint, each with one sentence for the user."""

__all__ = ["Busy", "Damaged", "Foreign", "Missing", "Unwritten"]


class Damaged(Exception):  # noqa: N818
    """A checkpoint that cannot be used: cut short, changed on disk, or not one of ours."""


class Foreign(Damaged):
    """A sound checkpoint of something else: another configuration, another shape, or a newer format."""


class Missing(Damaged):
    """No checkpoint where one was expected."""


class Busy(OSError):  # noqa: N818
    """Another process is writing here."""


class Unwritten(OSError):  # noqa: N818
    """Something that could not be written because its folder is not there, which is no missing input."""
