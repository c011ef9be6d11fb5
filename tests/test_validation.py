"""Input: every kind of numbers is taken alike; everything else is refused by place."""

import warnings
from decimal import Decimal

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from overcover import (
    GP,
    AnyRegressor,
    CommitteeGP,
    DomainDecompositionGP,
    EqualSizeKMeans,
    LocalProbabilisticRegression,
    MixtureGP,
    NeighborhoodRegressor,
    OverlappingCoverRegressor,
    PatchworkGP,
    RecursiveProjection,
    RelativeDensityRatio,
    SparseGP,
    StructuredNeighbors,
    TreeGP,
    TwinGP,
    TwoLevelKMeans,
    metrics,
)
from overcover._numbers import numbers_of
from overcover._validation import DataWarning, warn_of_codes

FIXED = {"length_scale": 1.5, "noise": 0.05}
REGRESSORS = [
    GP(**FIXED),
    TwinGP(1.2, 0.8, 0.02, 0.01),
    AnyRegressor(),
    OverlappingCoverRegressor(GP(**FIXED), subdomain_size=20, random_state=0),
    NeighborhoodRegressor(GP(**FIXED), n_neighbors=10),
    CommitteeGP(GP(**FIXED), expert_size=20, random_state=0),
    DomainDecompositionGP(GP(**FIXED), cell_size=20),
    PatchworkGP(GP(**FIXED), cell_size=20),
    SparseGP(GP(**FIXED), n_inducing=10, random_state=0),
    MixtureGP(GP(**FIXED), expert_size=20, random_state=0),
    TreeGP(GP(**FIXED), leaf_size=20, random_state=0),
    LocalProbabilisticRegression(GP(**FIXED), n_neighbors=20),
    StructuredNeighbors(random_state=0),
]
CLUSTERERS = [EqualSizeKMeans(2), RecursiveProjection(2), TwoLevelKMeans(2)]
each_regressor = pytest.mark.parametrize(
    "model", REGRESSORS, ids=lambda m: type(m).__name__
)
each_clusterer = pytest.mark.parametrize("model", CLUSTERERS, ids=str)

NOT_A_NUMBER = {
    "None": None,
    "float": float("nan"),
    "word": "nan",
    "bytes": b"nan",
    "Decimal": Decimal("NaN"),
}
WITHOUT_END = {"float": -np.inf, "word": "inf", "integer": 10**400}


@pytest.fixture
def table(surface):
    """40 rows of the surface."""
    X, y = surface
    return X[:40], y[:40]


def with_value(array, place, value):
    """The array as objects, one of them another."""
    changed = array.astype(object)
    changed[place] = value
    return changed


@each_regressor
@pytest.mark.parametrize("value", NOT_A_NUMBER.values(), ids=NOT_A_NUMBER.keys())
def test_a_missing_output_is_refused_whatever_it_comes_as(model, value, table):
    X, y = table
    message = (
        r"Input y contains NaN \(missing values\) in 1 of 40 places, first in row 5"
    )
    for broken in (with_value(y, 5, value), with_value(y, 5, value).tolist()):
        with pytest.raises(ValueError, match=message):
            clone(model).fit(X, broken)


@each_regressor
@pytest.mark.parametrize("value", WITHOUT_END.values(), ids=WITHOUT_END.keys())
def test_an_infinite_output_is_refused_whatever_it_comes_as(model, value, table):
    X, y = table
    message = r"Input y contains infinity, .* in 1 of 40 places, first in row 5"
    with pytest.raises(ValueError, match=message):
        clone(model).fit(X, with_value(y, 5, value))


@each_regressor
def test_missing_inputs_weights_and_queries_are_refused(model, table):
    X, y = table
    model, broken = clone(model), with_value(X, (3, 1), "nan")
    place = r"in 1 of 80 places, first in row 3, column 1 \(rows count from 0\)"
    with pytest.raises(ValueError, match=f"Input X contains NaN .* {place}"):
        model.fit(broken, y)
    with pytest.raises(ValueError, match=f"Input X contains NaN .* {place}"):
        model.fit(X, y).predict(broken)
    if has_fit_parameter(model, "sample_weight"):
        with pytest.raises(ValueError, match="Input sample_weight contains NaN"):
            model.fit(X, y, sample_weight=with_value(np.ones(40), 3, None))


@each_clusterer
def test_missing_rows_are_refused_by_clusterers(model, table):
    with pytest.raises(ValueError, match=r"Input X contains NaN .* row 3, column 1"):
        clone(model).fit(with_value(table[0], (3, 1), None))


def test_missing_rows_are_refused_by_the_density_ratio(table):
    X = table[0]
    with pytest.raises(ValueError, match=r"Input X_target contains NaN .* row 3"):
        RelativeDensityRatio().fit(X, with_value(X, (3, 1), "nan"))


def test_missing_values_are_refused_where_predictions_are_judged(table):
    X, y = table
    with pytest.raises(ValueError, match=r"Input y contains NaN .* row 5"):
        GP(**FIXED).fit(X, y).log_density(X, with_value(y, 5, None))
    with pytest.raises(ValueError, match=r"Input Y_true contains NaN .* row 5"):
        metrics.mean_angle_error(with_value(y, 5, "nan"), y)


@pytest.mark.parametrize(
    "model",
    [m for m in REGRESSORS if not isinstance(m, OverlappingCoverRegressor)],
    ids=lambda m: type(m).__name__,
)
def test_a_column_is_called_by_its_name(model, table):
    """A cover encodes words and gaps, see tests/tables; all others refuse them."""
    pandas = pytest.importorskip("pandas")
    X, y = table
    frame = pandas.DataFrame(X, columns=["wide", "high"])
    frame.loc[[3, 7], "high"] = np.nan
    message = r"NaN .* in 2 of 80 places, first in row 3, column 'high'"
    with pytest.raises(ValueError, match=message):
        clone(model).fit(frame, y)
    for values in (["a"] * 40, pandas.Categorical(["b"] * 40)):
        with pytest.raises(ValueError, match=r"to float.*Column 'word' of X, row 0"):
            clone(model).fit(pandas.DataFrame({"wide": y, "word": values}), y)
    dates = pandas.DataFrame({"wide": y, "day": pandas.date_range("2020", periods=40)})
    with pytest.raises(ValueError, match="Column 'day' of X holds dates or durations"):
        clone(model).fit(dates, y)


def test_types_of_pandas_are_numbers_or_missing(table):
    pandas = pytest.importorskip("pandas")
    y = np.arange(40) % 7
    for values in (
        pandas.Series(y, dtype="Int64"),
        pandas.Series(y, dtype="Float64"),
        pandas.Series(y).astype("category"),
        pandas.DataFrame({"y": pandas.Series(y, dtype="Int64")}),
        pandas.DataFrame({"y": y, "z": y > 3}),
    ):
        assert_array_equal(numbers_of(values, "y"), np.asarray(values, dtype=float))
    missing = pandas.Series(y, dtype="Int64")
    missing[5] = pandas.NA
    for values in (missing, missing.astype(object), pandas.DataFrame({"y": missing})):
        with pytest.raises(ValueError, match=r"contains NaN .* in 1 of 40 .* row 5"):
            numbers_of(values, "y")


def test_masked_values_are_not_numbers(table):
    X, y = table
    masked = np.ma.array(X, mask=X > 2.9)
    masked[4, 1] = np.ma.masked
    with pytest.raises(ValueError, match=r"Input X has masked values in \d+ of 80"):
        GP(**FIXED).fit(masked, y)
    assert_array_equal(numbers_of(np.ma.array(X), "X"), X)


def test_what_is_no_number_is_refused(table):
    X, y = table
    for dates in (y.astype("M8[s]"), np.arange(40).astype("m8[s]")):
        with pytest.raises(ValueError, match="y holds dates or durations"):
            GP(**FIXED).fit(X, dates)
    with pytest.raises(ValueError, match="Complex data not supported: y is of complex"):
        GP(**FIXED).fit(X, y + 0j)
    with pytest.raises(TypeError, match="Sparse data was passed for y"):
        GP(**FIXED).fit(X, csr_array(y[:, None]))
    with pytest.raises(TypeError, match=r"X is of .* not of numbers"):
        GP(**FIXED).fit(np.zeros(40, dtype=[("a", float), ("b", float)]), y)
    with pytest.raises(ValueError, match="y is no array of numbers"):
        GP(**FIXED).fit(X, [[1.0]] * 39 + [[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"could not convert .*'a' \(y, row 7\)"):
        GP(**FIXED).fit(X, with_value(y, 7, "a"))
    with pytest.raises(ValueError, match=r"y of shape \(40, 0\) has no columns"):
        GP(**FIXED).fit(X, np.empty((40, 0)))


def test_all_kinds_of_numbers_are_taken_alike(table, tmp_path):
    X, y = table
    X, y = X.round(2), (8 * y).round()  # exact in every type below
    np.save(tmp_path / "X.npy", X)
    expected = GP(**FIXED).fit(X, y).predict(X)
    read_only = X.copy()
    read_only.flags.writeable = False
    inputs = (
        X.astype(object),
        X.astype(str),
        X.astype(bytes),
        X.astype(np.longdouble),
        X.astype(">f8"),
        np.vectorize(lambda x: Decimal(str(x)))(X),
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        read_only,
        np.asfortranarray(X),
    )
    for other in inputs:
        assert_array_equal(GP(**FIXED).fit(other, y).predict(other), expected)
    for other in (np.float16, np.int8, object, str, np.longdouble):
        assert_array_equal(GP(**FIXED).fit(X, y.astype(other)).predict(X), expected)
    is_high = y > 0
    yes_or_no = GP(**FIXED).fit(X, is_high).predict(X)
    assert_array_equal(yes_or_no, GP(**FIXED).fit(X, 1.0 * is_high).predict(X))


# -- magnitudes ------------------------------------------------------------------------

TOO_LARGE = r"Input {} contains magnitudes above 1e\+120 in \d+ of \d+ places"
TOO_SMALL = r"values of .*{} differ by .* less than 1e-120"
SCALES = (1e-300, 1e-155, 1e-119, 1e-60, 1e60, 1e118, 1e155, 1e300)


def answers_of(model, queries):
    """Mean and, where there is one, the deviation."""
    has_std = getattr(getattr(model, "machine_", model), "has_variance", False)
    return (
        np.array(model.predict(queries, return_std=True))
        if has_std
        else (model.predict(queries)[None])
    )


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("model", [*REGRESSORS, GP()], ids=lambda m: type(m).__name__)
def test_any_magnitude_gives_finite_answers_or_a_clear_error(model, scale, table):
    X, y = table
    model = clone(model).fit(X, y)
    queries, is_refused = X[:5] * scale, None
    if scale > 1e120:
        with pytest.raises(ValueError, match=TOO_LARGE.format("X")):
            model.predict(queries)
        is_refused = TOO_LARGE
    else:
        assert np.isfinite(answers_of(model, queries)).all()
        is_refused = TOO_SMALL if scale < 1e-120 else None
    if is_refused:
        with pytest.raises(ValueError, match=is_refused.format("X")):
            model.fit(X * scale, y)
        with pytest.raises(ValueError, match=is_refused.format("y")):
            model.fit(X, y * scale)
        return
    expected = answers_of(model, X[:5])
    if not isinstance(model, TwinGP):  # whose output scale is given
        found = answers_of(model.fit(X, y * scale), X[:5]) / scale
        assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    model.fit(X * scale, y)
    # Queries of another magnitude than the rows, too.
    for other in (queries, X[:5], X[:5] / scale):
        assert np.isfinite(answers_of(model, other)).all()


@pytest.mark.parametrize("router", ["variance", "mahalanobis", "euclidean", "density"])
def test_every_router_finds_someone_for_a_far_query(router, table):
    X, y = table
    model = OverlappingCoverRegressor(
        GP(), subdomain_size=20, router=router, n_consulted=2, random_state=0
    )
    for queries in (X[:3] * 1e110, X[:3]):
        assert np.isfinite(answers_of(model.fit(X * 1e-110, y), queries)).all()


@pytest.mark.parametrize("scale", SCALES)
@each_clusterer
def test_clusters_have_no_unit(model, scale, table):
    X = table[0]
    if scale > 1e120:
        with pytest.raises(ValueError, match=TOO_LARGE.format("X")):
            clone(model).fit(X * scale)
    else:
        model = clone(model).set_params(random_state=0)
        scale = 2.0 ** np.round(np.log2(scale))
        expected = model.fit(X).labels_
        assert_array_equal(model.fit(X * scale).labels_, expected)


def test_a_column_that_hardly_varies_is_called_by_its_name(table):
    pandas = pytest.importorskip("pandas")
    X, y = table
    frame = pandas.DataFrame({"wide": X[:, 0], "thin": X[:, 1] * 1e-155})
    with pytest.raises(ValueError, match="values of column 'thin' of X differ by"):
        GP(**FIXED).fit(frame, y)
    frame["thin"] = 1e-155  # a constant column is ignored, whatever it holds
    assert np.isfinite(GP().fit(frame, y).predict(frame)).all()


@pytest.mark.parametrize("scale", [1e-290, 1e-12, 1e12, 1e290])
def test_weights_of_any_magnitude_give_finite_answers(scale, table):
    X, y = table
    weights = scale * (1.0 + np.arange(len(X)))
    for model in REGRESSORS:
        if has_fit_parameter(model, "sample_weight"):
            fitted = clone(model).fit(X, y, sample_weight=weights)
            assert np.isfinite(answers_of(fitted, X)).all()


# -- codes for missing values -------------------------------------------------------


def coded(share, code=-9999.0):
    """Rows whose first column has a code in place of some numbers, and outputs."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 2))
    y = np.sin(X[:, 1])
    X[: int(share * 60), 0] = code
    return X, y


@pytest.mark.parametrize("code", [-9999.0, 99.0])
@pytest.mark.parametrize("make", [GP, OverlappingCoverRegressor])
def test_a_code_for_missing_values_is_spoken_of(make, code):
    with pytest.warns(DataWarning, match=f"Column 0 .* holds {code:g} in 10 %"):
        make(random_state=0).fit(*coded(0.1, code))


def test_numbers_that_are_no_codes_are_not_spoken_of():
    """One outlier, a flag, an amount that is often zero, and skewed numbers."""
    rng = np.random.default_rng(0)
    skewed = np.exp(2 * rng.normal(size=60))
    amounts = np.where(rng.random(60) < 0.5, 0.0, skewed)
    flag = 1000.0 * (rng.random(60) < 0.1)
    X = np.column_stack([coded(1 / 60)[0], amounts, flag, skewed])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_codes(X)
