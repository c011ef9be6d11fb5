"""Settings, and a scene: who does what before which cameras; any frame by itself."""

from dataclasses import dataclass, replace
from numbers import Real
from typing import NamedTuple

import numpy as np

from ..._validation import check_choice, check_count
from ._camera import make_cameras
from ._motion import MOTIONS, make_subject, perform
from ._silhouette import SIZE, draw_silhouettes, fit_to_image, image_seeds, limbs_seen
from ._skeleton import make_bodies


@dataclass(frozen=True)
class Settings:
    """All that a pose data set depends on; defaults are those of "humaneva"."""

    preset: str = "humaneva"
    n_frames: int = 9600
    n_subjects: int = 4
    n_cameras: int = 3
    motions: tuple[str, ...] = ("walk", "jog", "box", "gesture", "throw_catch")
    features: str = "hog"
    outputs: str = "positions"
    occlusion: float = 0.0
    segmentation_noise: float = 0.4
    random_state: int = 0
    n_cells: tuple[int, int] = (6, 5)  # rows and columns of the cells of "hog"
    seconds: float = 30.0  # length of a sequence
    n_takes: int = 1  # sequences of every subject and motion
    n_test: int = 4800  # rows held out, of `n_frames`
    n_blocks: int = 1  # held out of a sequence; one is at its end or its beginning
    variation: float = 0.8  # factor of all drifts
    turn: float = 20.0  # how far people who stay in their place turn, in degrees
    rounds: bool = True  # whether people who walk or jog go round


PRESETS = {
    "humaneva": Settings(),
    "poser": Settings(
        preset="poser",
        n_frames=2345,
        n_cameras=1,
        motions=MOTIONS,
        features="bosc",
        outputs="angles",
        segmentation_noise=0.5,
        seconds=20.0,
        n_test=418,
        n_blocks=3,
        variation=1.1,
        turn=75.0,
        rounds=False,
    ),
    "human36m": Settings(
        preset="human36m",
        n_frames=500_000,
        n_subjects=7,
        n_cameras=4,
        motions=MOTIONS,
        n_cells=(17, 5),
        seconds=120.0,
        n_takes=2,
        n_test=165_000,
        variation=1.0,
        turn=120.0,
    ),
}


def choose_settings(preset, random_state, options):
    """Settings of a preset, with the options that are not None."""
    check_choice("preset", preset, tuple(PRESETS))
    check_count("random_state", random_state, 0, "It is the seed of all data.")
    base = PRESETS[preset]
    values = {name: value for name, value in options.items() if value is not None}
    if "motions" in values:
        motions = values["motions"]
        motions = (motions,) if isinstance(motions, str) else tuple(motions)
        check_count("The number of motions", len(motions))
        for motion in motions:
            check_choice("motions", motion, MOTIONS)
        # In the order of the data and once each: equal sets are equal settings.
        values["motions"] = tuple(m for m in MOTIONS if m in motions)
    settings = replace(base, **values)
    check_count("n_subjects", settings.n_subjects)
    check_count("n_cameras", settings.n_cameras)
    check_choice("features", settings.features, ("hog", "bosc"))
    check_choice("outputs", settings.outputs, ("positions", "angles"))
    n_sequences = settings.n_subjects * len(settings.motions) * settings.n_takes
    advice = f"There are {n_sequences} sequences, and each needs two frames."
    check_count("n_frames", settings.n_frames, 2 * n_sequences, advice)
    for name, most in (("occlusion", 1.0), ("segmentation_noise", 2.0)):
        value = getattr(settings, name)
        if not isinstance(value, Real) or not 0 <= float(value) <= most:
            raise ValueError(f"{name}={value!r} must lie between 0 and {most:g}.")
    n_test = round(settings.n_frames * base.n_test / base.n_frames)
    # Plain numbers, which JSON can write: all have the type of the default.
    values |= {"random_state": random_state, "n_test": n_test}
    return replace(base, **{k: type(getattr(base, k))(v) for k, v in values.items()})


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
        frames, sequences = (
            np.atleast_1d(a[rows]) for a in (where.frame, where.sequence)
        )
        # Without rows, sequence 0 still gives the shape.
        found = np.unique(sequences) if len(sequences) else [0]
        stack = np.concatenate([make(s, frames[sequences == s]) for s in found])
        return stack[np.argsort(np.argsort(sequences, kind="stable"))]
