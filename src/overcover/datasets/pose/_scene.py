"""A scene: who does what before which cameras; any frame can be generated alone."""

from typing import NamedTuple

import numpy as np

from ..._validation import check_choice
from ._camera import make_cameras
from ._motion import MOTIONS
from ._sequence import make_subject, perform
from ._silhouette import SIZE, draw_silhouettes, fit_to_image, image_seeds, limbs_seen
from ._skeleton import make_bodies


class Sequence(NamedTuple):
    """One performance."""

    subject: int
    motion: str
    take: int
    is_test: np.ndarray  # frames that are held out, shape (n_frames,)

    @property
    def key(self):
        """Integers for seeds, different for every sequence."""
        return self.subject, MOTIONS.index(self.motion), self.take


class Rows(NamedTuple):
    """Where the rows of one part of the data come from: arrays of shape (n_rows,)."""

    subject: np.ndarray
    motion: np.ndarray
    """Names of motions."""
    sequence: np.ndarray
    """Numbers, counted over subjects, motions and takes."""
    frame: np.ndarray
    """Numbers within the sequence."""


def _held_out(n_frames, n_test, n_blocks, at_end):
    """Frames of a sequence that are held out, a mask."""
    is_test = np.zeros(n_frames, dtype=bool)
    if n_blocks == 1:
        is_test[n_frames - n_test if at_end else 0 :][:n_test] = True
        return is_test
    # A block in the middle of each of n_blocks stretches.
    borders = np.arange(n_blocks + 1) * n_frames // n_blocks
    sizes = np.diff(np.arange(n_blocks + 1) * n_test // n_blocks)
    for start, stop, size in zip(borders, borders[1:], sizes):
        first = (start + stop - size) // 2
        is_test[first : first + size] = True
    return is_test


class Scene:
    """Subjects, cameras, sequences, and the `rows` of "train" and "test"."""

    def __init__(self, settings):
        self.settings = settings
        rng = np.random.default_rng([settings.random_state, 1])
        bodies = zip(*make_bodies(rng, settings.n_subjects))
        self.subjects = [make_subject(rng, *body) for body in bodies]
        self.cameras = make_cameras(settings.n_cameras)
        casts = [
            (subject, motion, take)
            for subject in range(settings.n_subjects)
            for motion in settings.motions
            for take in range(settings.n_takes)
        ]
        # Rounding cumulated counts makes the totals exact.
        shares = np.arange(len(casts) + 1) / len(casts)
        ends = np.round(shares * settings.n_frames).astype(int)
        tests = np.round(ends * settings.n_test / settings.n_frames).astype(int)
        sizes = zip(np.diff(ends), np.diff(tests))
        self.sequences = [
            Sequence(*cast, _held_out(*size, settings.n_blocks, s % 2 == 0))
            for s, (cast, size) in enumerate(zip(casts, sizes))
        ]
        self.rows = {"train": self._rows(False), "test": self._rows(True)}

    def _rows(self, of_test):
        frames = [np.flatnonzero(q.is_test == of_test) for q in self.sequences]
        sequence = np.repeat(np.arange(len(frames)), [len(f) for f in frames])
        subjects = np.array([q.subject for q in self.sequences])
        motions = np.array([q.motion for q in self.sequences])
        return Rows(
            subjects[sequence], motions[sequence], sequence, np.concatenate(frames)
        )

    def perform(self, s, frames):
        """Angles and joints of frames of sequence s, see `_sequence.perform`."""
        q, settings = self.sequences[s], self.settings
        return perform(
            self.subjects[q.subject],
            q.motion,
            np.random.default_rng([settings.random_state, 2, *q.key]),
            np.asarray(frames) * (settings.seconds / len(q.is_test)),
            settings.variation,
            settings.turn,
            settings.rounds,
        )

    def silhouettes(self, s, frames, joints=None):
        """Images (n_frames, n_cameras, SIZE, SIZE) of sequence s, uint8."""
        q, settings = self.sequences[s], self.settings
        subject = self.subjects[q.subject]
        if joints is None:
            joints = self.perform(s, frames)[1]
        images = np.empty((len(frames), len(self.cameras), SIZE, SIZE), np.uint8)
        for c, camera in enumerate(self.cameras):
            limbs = limbs_seen(joints, camera, subject.height, subject.girth)
            images[:, c] = draw_silhouettes(
                fit_to_image(limbs),
                image_seeds([settings.random_state, 3, *q.key, c], np.asarray(frames)),
                settings.occlusion,
                settings.segmentation_noise,
            )
        return images

    def for_rows(self, part, rows, make):
        """Stack ``make(sequence, frames)`` over chosen rows, in their order."""
        check_choice("part", part, ("train", "test"))
        where = self.rows[part]
        rows = np.atleast_1d(np.arange(len(where.frame))[rows])
        stack = None
        # Without rows, sequence 0 still gives the shape.
        for s in np.unique(where.sequence[rows]) if len(rows) else [0]:
            chosen = np.flatnonzero(where.sequence[rows] == s)
            values = make(s, where.frame[rows[chosen]])
            if stack is None:
                stack = np.empty((len(rows), *values.shape[1:]), values.dtype)
            stack[chosen] = values
        return stack
