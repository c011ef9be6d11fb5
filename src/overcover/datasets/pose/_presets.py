"""Settings of pose data: three presets, and what is allowed in their place."""

from dataclasses import dataclass, replace
from numbers import Real

from ..._validation import check_choice, check_count
from ._motion import MOTIONS


@dataclass(frozen=True)
class Settings:
    """What a pose data set depends on; the key of its cache."""

    preset: str
    n_frames: int
    n_subjects: int
    n_cameras: int
    motions: tuple[str, ...]
    features: str
    outputs: str
    occlusion: float
    segmentation_noise: float
    random_state: int
    n_cells: tuple[int, int]
    """Rows and columns of the cells of "hog"."""
    seconds: float
    """Length of a sequence."""
    n_takes: int
    """Sequences of every subject and motion."""
    n_test: int
    """Rows held out, of `n_frames`."""
    n_blocks: int
    """Blocks of a sequence that are held out; one is at its end or its beginning."""
    variation: float
    """Factor of all drifts."""
    turn: float
    """How far people who stay in their place turn, in degrees."""
    rounds: bool
    """Whether people who walk or jog go round."""


_HUMANEVA = Settings(
    preset="humaneva",
    n_frames=9600,
    n_subjects=4,
    n_cameras=3,
    motions=("walk", "jog", "box", "gesture", "throw_catch"),
    features="hog",
    outputs="positions",
    occlusion=0.0,
    segmentation_noise=0.4,
    random_state=0,
    n_cells=(6, 5),
    seconds=30.0,
    n_takes=1,
    n_test=4800,
    n_blocks=1,
    variation=0.8,
    turn=20.0,
    rounds=True,
)
PRESETS = {
    "humaneva": _HUMANEVA,
    "poser": replace(
        _HUMANEVA,
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
    "human36m": replace(
        _HUMANEVA,
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
    """Settings of a preset, with other options in place of its own."""
    check_choice("preset", preset, tuple(PRESETS))
    base = PRESETS[preset]
    options = {name: value for name, value in options.items() if value is not None}
    if "motions" in options:
        motions = options["motions"]
        motions = (motions,) if isinstance(motions, str) else tuple(motions)
        for motion in motions:
            check_choice("motions", motion, MOTIONS)
        # In the order of the data and once each: equal sets are equal settings.
        options["motions"] = tuple(m for m in MOTIONS if m in motions)
        check_count("The number of motions", len(motions))
    check_count("random_state", random_state, 0, "It is the seed of all data.")
    settings = replace(base, random_state=int(random_state), **options)
    check_count("n_subjects", settings.n_subjects)
    check_count("n_cameras", settings.n_cameras)
    check_choice("features", settings.features, ("hog", "bosc"))
    check_choice("outputs", settings.outputs, ("positions", "angles"))
    n_sequences = settings.n_subjects * len(settings.motions) * settings.n_takes
    least = 2 * n_sequences
    advice = f"There are {n_sequences} sequences, and each needs two frames."
    check_count("n_frames", settings.n_frames, least, advice)
    for name, most in (("occlusion", 1.0), ("segmentation_noise", 2.0)):
        value = getattr(settings, name)
        if not isinstance(value, Real) or not 0 <= float(value) <= most:
            raise ValueError(f"{name}={value!r} must lie between 0 and {most:g}.")
    return replace(
        settings,
        n_frames=int(settings.n_frames),
        n_subjects=int(settings.n_subjects),
        n_cameras=int(settings.n_cameras),
        occlusion=float(settings.occlusion),
        segmentation_noise=float(settings.segmentation_noise),
        n_test=round(settings.n_frames * base.n_test / base.n_frames),
    )
