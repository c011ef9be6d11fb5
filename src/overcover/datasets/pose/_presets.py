"""Settings of pose data: three presets, and checks of the options that replace them."""

from dataclasses import dataclass, replace
from numbers import Real

from ..._validation import check_choice, check_count
from ._motion import MOTIONS


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
    # Plain numbers, which JSON can write.
    return replace(
        settings,
        random_state=int(random_state),
        n_frames=int(settings.n_frames),
        n_subjects=int(settings.n_subjects),
        n_cameras=int(settings.n_cameras),
        occlusion=float(settings.occlusion),
        segmentation_noise=float(settings.segmentation_noise),
        n_test=round(settings.n_frames * base.n_test / base.n_frames),
    )
