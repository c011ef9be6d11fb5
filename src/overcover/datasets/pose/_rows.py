"""All rows of a pose data set, chunk by chunk.

    skeleton -> motion -> camera -> silhouette -> features -> [rows]

Memory beyond the arrays that are filled: `CHUNK` frames for each worker.
"""

import numpy as np

from ..._parallel import run_tasks
from ..._progress import open_bar
from ._features import N_ORIENTATIONS, hog
from ._shape_contexts import N_WORDS, bag_of_shape_contexts, learn_codebook
from ._silhouette import SIZE
from ._skeleton import BONES, JOINTS

CHUNK = 256
"""Frames that each worker generates at once."""

CODEBOOK_FRAMES = 400
"""Training frames from which a codebook is learned, at most."""


def shapes_of(scene):
    """Shapes of all arrays, by their names."""
    settings = scene.settings
    rows, columns = settings.n_cells
    width = rows * columns * N_ORIENTATIONS if settings.features == "hog" else N_WORDS
    n_outputs = 3 * (len(JOINTS) if settings.outputs == "angles" else len(BONES))
    shapes = {}
    for part, where in scene.rows.items():
        shapes[f"X_{part}"] = (len(where.frame), settings.n_cameras * width)
        shapes[f"Y_{part}"] = (len(where.frame), n_outputs)
    return shapes


def _encoder(scene):
    """A function from silhouettes to features."""
    settings = scene.settings
    if settings.features == "hog":
        return lambda images: hog(images, *settings.n_cells)
    n_train = settings.n_frames - settings.n_test
    rows = np.unique(np.linspace(0, n_train - 1, CODEBOOK_FRAMES).astype(int))
    images = scene.for_rows("train", rows, scene.silhouettes).reshape(-1, SIZE, SIZE)
    words, width = learn_codebook(images, settings.random_state)
    return lambda images: bag_of_shape_contexts(images, words, width)


def fill_rows(scene, arrays, n_jobs, verbose):
    """Write all rows into arrays, chunk by chunk."""
    encode = _encoder(scene)
    chunks = [
        (part, start, min(start + CHUNK, len(scene.rows[part].frame)))
        for part in ("train", "test")
        for start in range(0, len(scene.rows[part].frame), CHUNK)
    ]

    def make(part, start, stop):
        X, Y = arrays[f"X_{part}"], arrays[f"Y_{part}"]
        where = scene.rows[part]
        sequence = where.sequence[start:stop]
        for s in np.unique(sequence):
            inside = start + np.flatnonzero(sequence == s)
            rows = slice(inside[0], inside[-1] + 1)
            frames = where.frame[rows]
            angles, joints = scene.perform(s, frames)
            images = scene.silhouettes(s, frames, joints)
            X[rows] = encode(images.reshape(-1, SIZE, SIZE)).reshape(len(frames), -1)
            if scene.settings.outputs == "angles":
                Y[rows] = angles.reshape(len(frames), -1)
            else:
                Y[rows] = (joints[:, 1:] - joints[:, :1]).reshape(len(frames), -1)

    bar = open_bar("frames", len(chunks)) if verbose else None
    try:
        for _ in run_tasks(make, chunks, n_jobs):
            if bar is not None:
                bar.advance()
    finally:
        if bar is not None:
            bar.close()
