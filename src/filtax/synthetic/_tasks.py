"""Streams of tasks made of labelled images, for continual learning: permuted pixels, turned images, sets of classes.

A task is a way to see the images; each has images of its own to learn from and to test on, and one task follows the
other. Axes: N tasks, T images to learn from in each, M to test on, D pixels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from scipy import ndimage

from filtax import _validation as checks
from filtax.datasets import Images
from filtax.synthetic._stream import Stream, generator

BYTE = 255.0
View = Callable[[np.ndarray], np.ndarray]  # images (M, H, H) to pixels (M, D)


@dataclass(frozen=True, eq=False)
class TaskStream:
    """Tasks in the order in which they are learned.

    Attributes:
        X: Images to learn from, (N, T, D), pixels in [0, 1].
        y: Their labels, (N, T).
        X_test: Images to test on, (N, M, D).
        y_test: Their labels, (N, M).
        names: What each task is called.

    Example:
        >>> import numpy as np
        >>> from filtax.synthetic import TaskStream
        >>> X, y = np.zeros((2, 3, 4)), np.zeros((2, 3))
        >>> TaskStream(X, y, X, y, ("first", "second")).flat.changes
        (3,)
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.y)

    @property
    def flat(self) -> Stream:
        """One task after the other, (N T, D); `changes` are the steps at which a task begins, without the first."""
        y = self.y.reshape(-1)
        begins = tuple(range(self.y.shape[1], y.size, self.y.shape[1]))
        return Stream(np.arange(y.size), self.X.reshape(y.size, -1), y, y, changes=begins)


def permuted_tasks(
    images: Images, tasks: int = 5, steps: int = 300, tests: int = 200, *, key: int | jax.Array, side: int = 7
) -> TaskStream:
    """Permute the pixels of each task in an order of its own, the first as they are (Goodfellow et al. 2013).

    Args:
        images: From `filtax.datasets.read_images`, or any arrays of that form.
        tasks: Number of tasks N.
        steps: Images to learn from in each task, T.
        tests: Images to test on in each task, M.
        key: Whole number or JAX key.
        side: Images are made this small by means over squares; it divides the side that they have.

    Returns:
        The tasks; no image is used twice.

    Example:
        >>> import numpy as np
        >>> from filtax.datasets import Images
        >>> from filtax.synthetic import permuted_tasks
        >>> X, y = np.arange(8 * 4, dtype=np.uint8).reshape(8, 2, 2), np.arange(8) % 2
        >>> made = permuted_tasks(Images(X, y, X, y), 2, 3, 4, key=0, side=2)
        >>> made.X.shape, made.X_test.shape
        ((2, 3, 4), (2, 4, 4))
    """
    rng = _checked("permuted_tasks", images, tasks, steps, tests, side, key)
    orders = [np.arange(side**2), *(rng.permutation(side**2) for _ in range(tasks - 1))]
    views = [partial(_permuted, side=side, order=order) for order in orders]
    return _deal("permuted_tasks", rng, images, steps, tests, views, tuple(f"order {i + 1}" for i in range(tasks)))


def rotated_tasks(
    images: Images,
    tasks: int = 5,
    steps: int = 300,
    tests: int = 200,
    *,
    key: int | jax.Array,
    side: int = 7,
    turn: float = 180.0,
) -> TaskStream:
    """Turn the images of each task by `turn` / N degrees more (Lopez-Paz and Ranzato 2017).

    The other arguments are those of `permuted_tasks`; images are turned, counter-clockwise, before they are made small.

    Example:
        >>> import numpy as np
        >>> from filtax.datasets import Images
        >>> from filtax.synthetic import rotated_tasks
        >>> X, y = np.zeros((4, 2, 2), np.uint8), np.zeros(4)
        >>> rotated_tasks(Images(X, y, X, y), 2, 2, 2, key=0, side=2).names
        ('0°', '90°')
    """
    rng = _checked("rotated_tasks", images, tasks, steps, tests, side, key)
    angles = [turn * i / tasks for i in range(tasks)]
    views = [partial(_turned, side=side, degrees=angle) for angle in angles]
    return _deal("rotated_tasks", rng, images, steps, tests, views, tuple(f"{angle:g}°" for angle in angles))


def split_tasks(
    images: Images,
    tasks: int = 5,
    steps: int = 300,
    tests: int = 200,
    *,
    key: int | jax.Array,
    side: int = 7,
    relabel: bool = True,
) -> TaskStream:
    """Give each task the same number of classes of its own, at random (Zenke et al. 2017).

    The other arguments are those of `permuted_tasks`. Classes that cannot be dealt out evenly are not used. With
    `relabel` the classes of each task are counted from 0, so that tasks share their labels (domain-incremental, van de
    Ven and Tolias 2019); if not, labels stay what they are (class-incremental).

    Example:
        >>> import numpy as np
        >>> from filtax.datasets import Images
        >>> from filtax.synthetic import split_tasks
        >>> X, y = np.zeros((8, 2, 2), np.uint8), np.repeat(np.arange(4), 2)
        >>> made = split_tasks(Images(X, y, X, y), 2, 3, 3, key=0, side=2)
        >>> sorted(set(made.y.ravel().tolist()))
        [0.0, 1.0]
    """
    rng = _checked("split_tasks", images, tasks, steps, tests, side, key)
    classes = rng.permutation(np.unique(images.y))
    most = len(classes) // 2 if relabel else len(classes)
    if tasks > most:
        more = ", or give relabel=False" if most < tasks <= len(classes) else ""
        raise ValueError(f"split_tasks(tasks={tasks}): there are {len(classes)} classes; ask for at most {most}{more}.")
    groups = np.sort(classes[: len(classes) // tasks * tasks].reshape(tasks, -1), axis=1)
    names = tuple(" ".join(f"{label:g}" for label in group) for group in groups)
    views = [partial(_shrunk, side=side)] * tasks
    made = _deal("split_tasks", rng, images, steps, tests, views, names, groups)
    if not relabel:
        return made
    y, y_test = (
        np.stack([np.searchsorted(group, row) for group, row in zip(groups, rows, strict=True)]).astype(float)
        for rows in (made.y, made.y_test)
    )
    return TaskStream(made.X, y, made.X_test, y_test, names)


def _checked(
    call: str, images: Images, tasks: int, steps: int, tests: int, side: int, key: int | jax.Array
) -> np.random.Generator:
    for word, value in (("tasks", tasks), ("steps", steps), ("tests", tests), ("side", side)):
        checks.whole(f"{call}({word}=...)", value, least=1)
    height, width = images.X.shape[1:3]
    if height != width or height % side:
        raise ValueError(
            f"{call}(side={side}): the images are {height} x {width}; give a side that divides that of square images."
        )
    return generator(key)


def _deal(
    call: str,
    rng: np.random.Generator,
    images: Images,
    steps: int,
    tests: int,
    views: Sequence[View],
    names: tuple[str, ...],
    groups: np.ndarray | None = None,
) -> TaskStream:
    """Deal out images to the tasks, of its group of classes to each, and let each see its own."""
    parts = []
    for pixels, labels, count in ((images.X, images.y, steps), (images.X_test, images.y_test, tests)):
        free, X, y = rng.permutation(len(labels)), [], []
        for i, view in enumerate(views):
            fit = free if groups is None else free[np.isin(labels[free], groups[i])]
            if len(fit) < count:
                raise ValueError(
                    f"{call}: task {i + 1} needs {count} images, but {len(fit)} remain; ask for fewer steps, tests or "
                    "tasks."
                )
            X.append(view(pixels[fit[:count]].astype(np.float64) / BYTE))
            y.append(labels[fit[:count]].astype(np.float64))
            free = free[~np.isin(free, fit[:count])]
        parts.append((np.stack(X), np.stack(y)))
    (X, y), (X_test, y_test) = parts
    return TaskStream(X, y, X_test, y_test, names)


def _shrunk(X: np.ndarray, side: int) -> np.ndarray:
    """Means over squares, (M, H, H) to (M, side²)."""
    pool = X.shape[1] // side
    return X.reshape(len(X), side, pool, side, pool).mean((2, 4)).reshape(len(X), -1)


def _permuted(X: np.ndarray, side: int, order: np.ndarray) -> np.ndarray:
    return _shrunk(X, side)[:, order]


def _turned(X: np.ndarray, side: int, degrees: float) -> np.ndarray:
    """Turn images (M, H, H) about their centre by bilinear interpolation, zero outside, and shrink them."""
    return _shrunk(ndimage.rotate(X, degrees, axes=(1, 2), reshape=False, order=1, mode="grid-constant"), side)
