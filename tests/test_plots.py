"""Displays draw the numbers they hold, and these are the model's."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from overcover import GP, OverlappingCoverRegressor
from overcover._drawing import light_map
from overcover.plots import (
    CalibrationDisplay,
    CoverDisplay,
    OverlapDisplay,
    SkeletonDisplay,
)
from overcover.plots._cover import KINDS, similar_first, strongest_pairs

FIXED = GP(length_scale=[1.0, 2.0], noise=0.01)
BONES = [(0, 1), (1, 2)]


@pytest.fixture(autouse=True)
def on_no_screen():
    """Pictures go nowhere, and none is left open."""
    import matplotlib.pyplot as plt

    before = mpl.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


@pytest.fixture(scope="module")
def model(surface):
    return OverlappingCoverRegressor(FIXED, subdomain_size=60, random_state=0).fit(
        *surface
    )


@pytest.fixture
def ax():
    return Figure().subplots()


def drawn(scatter):
    return np.asarray(scatter.get_offsets())


def test_a_cover_is_drawn_over_the_features_asked_for(model, surface, ax):
    X, _ = surface
    display = CoverDisplay.from_estimator(model, X, features=(1, 0), subdomain=2, ax=ax)
    members, n_owned = model.cover_.members[2], model.cover_.n_owned[2]
    assert_array_equal(drawn(display.owned_), X[members[:n_owned]][:, ::-1])
    assert_array_equal(drawn(display.borrowed_), X[members[n_owned:]][:, ::-1])
    others = np.setdiff1d(np.arange(len(X)), members)
    assert_array_equal(drawn(display.rows_), X[others][:, ::-1])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x1", "x0")
    assert display.ax_ is ax
    assert display.figure_ is ax.figure


def test_without_features_it_is_drawn_over_principal_components(model, surface, ax):
    X, _ = surface
    display = CoverDisplay.from_estimator(model, X, subdomain=0, ax=ax)
    Z = X / model.length_scales_
    centred = Z - Z.mean(axis=0)
    _, scales, directions = np.linalg.svd(centred, full_matrices=False)
    expected = centred @ directions[:2].T
    signs = np.sign(np.sum(expected * display.points, axis=0))
    assert_allclose(display.points, expected * signs)
    members = model.cover_.members[0]
    n_owned = model.cover_.n_owned[0]
    assert_allclose(drawn(display.owned_), display.points[members[:n_owned]])
    share = scales[0] ** 2 / np.sum(scales**2)
    assert f"{share:.0%}" in ax.get_xlabel()


def test_shades_tell_owners_apart(model, surface, ax):
    display = CoverDisplay.from_estimator(model, surface[0], ax=ax)
    shades = display.rows_.get_array()
    owners = display.owners[display.shown]
    for k in np.unique(owners):
        assert len(np.unique(shades[owners == k])) == 1
    assert len(np.unique(shades)) == len(np.unique(owners))
    for k, (members, n) in enumerate(zip(*model.cover_)):
        assert (display.owners[members[:n]] == k).all()


def test_only_so_many_rows_are_drawn_but_the_subdomain_whole(model, surface, ax):
    display = CoverDisplay.from_estimator(model, surface[0], n_rows=50, ax=ax)
    assert len(drawn(display.rows_)) <= 50
    assert len(drawn(display.owned_)) + len(drawn(display.borrowed_)) == 60


def test_one_feature_is_drawn_against_its_owners(ax):
    x = np.linspace(0, 1, 200)[:, None]
    model = OverlappingCoverRegressor(GP("rbf", 0.3, 0.1), subdomain_size=40)
    model.set_params(random_state=0).fit(x, x[:, 0])
    display = CoverDisplay.from_estimator(model, x, ax=ax)
    assert_array_equal(display.points[:, 1], display.owners)
    assert "owns" in ax.get_ylabel()


def test_features_have_their_names(surface, ax):
    X, y = surface
    frame = pd.DataFrame(X, columns=["wide", "high"])
    model = OverlappingCoverRegressor(FIXED, subdomain_size=60).fit(frame, y)
    CoverDisplay.from_estimator(model, frame, features=("high", "wide"), ax=ax)
    assert ax.get_xlabel() == "high"
    CoverDisplay.from_estimator(model, frame, features=(-1, "wide"), ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("high", "wide")
    for missing in ("deep", 2):
        with pytest.raises(ValueError, match=f"no feature {missing!r}.* 'wide'"):
            CoverDisplay.from_estimator(model, frame, features=("high", missing), ax=ax)


def test_a_cover_needs_the_rows_it_was_made_of(model, surface, ax):
    with pytest.raises(ValueError, match="10 rows, the cover 300"):
        CoverDisplay.from_estimator(model, surface[0][:10], ax=ax)
    with pytest.raises(ValueError, match="subdomain=99"):
        CoverDisplay.from_estimator(model, surface[0], subdomain=99, ax=ax)
    with pytest.raises(ValueError, match="two columns"):
        CoverDisplay.from_estimator(model, surface[0], features=(0,), ax=ax)


def test_shared_rows_are_counted_as_sets_would(model, ax):
    display = OverlapDisplay.from_estimator(model, ax=ax)
    sets = [set(rows.tolist()) for rows in model.cover_.members]
    expected = [[len(a & b) for b in sets] for a in sets]
    assert_array_equal(display.shared.toarray(), expected)
    assert_array_equal(display.sizes, [len(a) for a in sets])
    held = [sum(i in a for a in sets) for i in range(300)]
    assert_array_equal(display.holders, held)


def test_the_matrix_shows_shares_in_an_order_that_loses_nobody(model, ax):
    display = OverlapDisplay.from_estimator(model, kind="matrix", ax=ax)
    order = display.order_
    assert_array_equal(np.sort(order), np.arange(model.n_subdomains_))
    share = display.shared.toarray() / display.sizes[:, None]
    assert_allclose(display.artist_.get_array(), share[np.ix_(order, order)])


def test_similar_subdomains_stand_side_by_side():
    share = np.eye(4)
    share[0, 2] = share[2, 0] = share[1, 3] = share[3, 1] = 0.9
    order = similar_first(share).tolist()
    assert abs(order.index(0) - order.index(2)) == 1
    assert abs(order.index(1) - order.index(3)) == 1


def test_the_graph_joins_those_who_share_most(model, ax):
    display = OverlapDisplay.from_estimator(model, kind="graph", ax=ax)
    pairs, share = strongest_pairs(display.shared, display.sizes, 3)
    shared = display.shared.toarray()
    assert_allclose(share, [shared[i, k] / 60 for i, k in pairs])
    np.fill_diagonal(shared, 0)
    for i, row in enumerate(shared):
        assert any(i in pair and row[pair].max() == row.max() for pair in pairs)
    assert len(display.artist_.get_segments()) == len(pairs)


def test_bars_count_every_row_once(model, ax):
    display = OverlapDisplay.from_estimator(model, kind="sizes", ax=ax)
    heights = [bar.get_height() for bar in display.artist_]
    assert sum(heights) == 300
    assert_array_equal(heights, np.bincount(display.holders)[1:])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [800, 299])
def test_one_or_two_subdomains_can_be_drawn(surface, kind, size, ax):
    model = OverlappingCoverRegressor(FIXED, subdomain_size=size, overlap=0.0)
    OverlapDisplay.from_estimator(model.fit(*surface), kind=kind, ax=ax)
    ax.figure.canvas.draw()


def test_a_kind_that_is_not_known_is_refused(model, ax):
    with pytest.raises(ValueError, match="'matrix', 'graph', 'sizes'"):
        OverlapDisplay.from_estimator(model, kind="pie", ax=ax)


def test_coverage_is_counted_by_hand(ax):
    # Errors of 0, 1, 2, 3 deviations: an interval holds those within its half width.
    y, mean, std = [0.0, 2.0, -4.0, 6.0], np.zeros(4), np.full(4, 2.0)
    levels = [0.1, norm.cdf(1.5) * 2 - 1, norm.cdf(2.5) * 2 - 1]
    display = CalibrationDisplay.from_predictions(y, mean, std, levels=levels, ax=ax)
    assert_array_equal(display.observed[:, 0], [0.25, 0.5, 0.75])
    assert_array_equal(display.line_.get_xydata().T, [levels, [0.25, 0.5, 0.75]])


def test_a_models_curve_is_that_of_its_intervals(two_outputs, ax):
    X, Y = two_outputs
    model = OverlappingCoverRegressor(FIXED, subdomain_size=60, random_state=0)
    model.fit(X[:200], Y[:200])
    display = CalibrationDisplay.from_estimator(
        model, X[200:], Y[200:], levels=[0.3, 0.8], per_output=True, ax=ax
    )
    for level, observed in zip(display.nominal, display.observed):
        low, high = model.predict_interval(X[200:], coverage=level)
        assert_allclose(observed, np.mean((low <= Y[200:]) & (Y[200:] <= high), axis=0))


def test_the_band_holds_honest_intervals_and_no_dishonest_ones(ax):
    rng = np.random.default_rng(0)
    y, zero, one = rng.normal(size=500), np.zeros(500), np.ones(500)
    honest = CalibrationDisplay.from_predictions(y, zero, one, ax=ax)
    inside = (honest.low <= honest.observed[:, 0]) & (
        honest.observed[:, 0] <= honest.high
    )
    assert inside.mean() > 0.8
    narrow = CalibrationDisplay.from_predictions(y, zero, 0.5 * one, ax=ax)
    assert (narrow.observed[3:, 0] < narrow.low[3:]).all()


@pytest.mark.parametrize("levels", [[0.5, 1.0], [-0.1], [[0.5]]])
def test_levels_are_probabilities(levels, ax):
    with pytest.raises(ValueError, match="between 0 and 1"):
        CalibrationDisplay.from_predictions([1.0], [1.0], [1.0], levels=levels, ax=ax)


def test_skeletons_join_the_joints_of_bones():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(9, 3, 3))
    P = Y + 0.1
    display = SkeletonDisplay.from_predictions(
        Y.reshape(9, 9), P, bones=BONES, frames=[4, 7], up="y"
    )
    assert len(display.ax_) == 2
    assert_allclose(display.errors, 0.1 * np.sqrt(3))
    for i, frame in enumerate([4, 7]):
        for lines, poses in ((display.true_, Y), (display.predicted_, P)):
            for line, bone in zip(lines[i], BONES):
                # The y axis of the data is the vertical one of the picture.
                expected = poses[frame][list(bone)][:, [2, 0, 1]]
                assert_allclose(np.array(line.get_data_3d()).T, expected)
        assert f"row {frame}" in display.ax_[i].get_title()
    styles = [display.true_[0][0], display.predicted_[0][0]]
    assert len({line.get_linestyle() for line in styles}) == 2
    assert len({line.get_marker() for line in styles}) == 2


def test_frames_are_spread_over_the_rows_and_fit_given_axes():
    Y = np.random.default_rng(0).normal(size=(10, 3, 3))
    axes = Figure().subplots(1, 3, subplot_kw={"projection": "3d"})
    display = SkeletonDisplay.from_predictions(Y, bones=BONES, n_frames=3, ax=axes)
    assert_array_equal(display.frames, [0, 4, 9])
    assert display.errors is None
    assert display.figure_ is axes[0].figure
    display.figure_.canvas.draw()
    with pytest.raises(ValueError, match="3 axes for 4 frames"):
        SkeletonDisplay.from_predictions(Y, bones=BONES, ax=axes)


def test_poses_that_are_none_are_refused():
    Y = np.zeros((2, 3, 3))
    with pytest.raises(ValueError, match="3 \\* n_joints"):
        SkeletonDisplay.from_predictions(np.zeros((2, 8)), bones=BONES)
    with pytest.raises(ValueError, match="joints 0 to 3, but there are 3"):
        SkeletonDisplay.from_predictions(Y, bones=[(0, 3)])
    with pytest.raises(ValueError, match="Shapes differ"):
        SkeletonDisplay.from_predictions(Y, Y[:1], bones=BONES)
    with pytest.raises(ValueError, match="up='w'"):
        SkeletonDisplay.from_predictions(Y, bones=BONES, up="w")


def test_shades_stay_in_order_on_a_grey_printer():
    red, green, blue = light_map()(np.linspace(0, 1, 50))[:, :3].T
    grey = 0.299 * red + 0.587 * green + 0.114 * blue
    assert (np.diff(grey) > 0).all()
    assert grey[0] > 0.35


def test_drawing_on_given_axes_leaves_pyplot_alone(model, surface, ax):
    import matplotlib.pyplot as plt

    settings = mpl.rcParams.copy()
    CoverDisplay.from_estimator(model, surface[0], ax=ax)
    OverlapDisplay.from_estimator(model, ax=ax)
    CalibrationDisplay.from_estimator(model, *surface, ax=ax)
    assert plt.get_fignums() == []
    assert mpl.rcParams == settings
    display = CalibrationDisplay.from_estimator(model, *surface)
    assert len(plt.get_fignums()) == 1
    assert display.plot().figure_ is not ax.figure


def test_without_matplotlib_the_error_names_the_extra():
    code = """
import sys
sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
from overcover.plots import CalibrationDisplay, SkeletonDisplay
import numpy as np
for draw in (
    lambda: CalibrationDisplay.from_predictions([1.0], [1.0], [1.0]),
    lambda: SkeletonDisplay.from_predictions(np.zeros((1, 2, 3)), bones=[(0, 1)]),
):
    try:
        draw()
    except ImportError as error:
        assert "overcover[plot]" in str(error), error
    else:
        raise AssertionError("no error")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
