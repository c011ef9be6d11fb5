"""Tables as they are: what columns become, and that outputs do not leak into them."""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from overcover import GP, OverlappingCoverRegressor, TableEncoder, load, store
from overcover.advice import advise
from overcover.distributed import fit as fit_on_cluster
from overcover.report import write_report
from overcover.tables import needs_encoding
from overcover.tables._effects import effects_of, folds_of

FIXED = GP(length_scale=2.0, noise=0.05)
# Three soils, the effect of a well, wet, its gaps, when, deep.
SCALES = np.array([2.0, 2.0, 2.0, 3.0, 3.0, 2.0, 1000.0, 5.0])


def make_table(n_rows, seed=0, n_levels=40):
    """Words of few and of many levels, a date, a number with gaps; and outputs."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, n_levels, n_rows)
    soil, wet = rng.choice(["clay", "sand", "rock"], n_rows), rng.normal(size=n_rows)
    day = rng.integers(0, 300, n_rows)
    effect = np.random.default_rng(1).normal(size=n_levels)
    y = effect[level] + (soil == "rock") + wet + 0.1 * rng.normal(size=n_rows)
    table = pd.DataFrame(
        {
            "soil": soil,
            "well": [f"w{i}" for i in level],
            "wet": np.where(rng.random(n_rows) < 0.1, np.nan, wet),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(day, unit="D"),
            "deep": rng.random(n_rows) < 0.5,
        }
    )
    return table, y


@pytest.fixture(scope="module")
def fitted():
    table, y = make_table(400)
    machine = GP(length_scale=SCALES, noise=0.05)
    model = OverlappingCoverRegressor(machine, subdomain_size=100, random_state=0)
    return model.fit(table, y), table, y


# -- columns ---------------------------------------------------------------------------


def test_a_column_becomes_what_its_kind_says():
    table, y = make_table(300)
    encoder = TableEncoder()
    encoder.learn(table, y)
    made = encoder.encode(table)
    assert list(made) == encoder.inputs
    assert_array_equal(made["soil=clay"], table["soil"] == "clay")
    gaps = table["wet"].isna()
    assert_array_equal(made["wet is missing"], gaps)
    assert_array_equal(made["wet"], table["wet"].fillna(table["wet"].median()))
    assert_array_equal(made["when"], (table["when"] - pd.Timestamp(0)).dt.days)
    assert_array_equal(made["deep"], table["deep"])
    assert made.groupby(table["well"])["well (effect)"].nunique().eq(1).all()


@pytest.mark.parametrize("kind", ["category", "string", object])
def test_words_may_come_as_any_type(kind):
    table, y = make_table(100)
    expected = TableEncoder().learn(table, y)
    made = TableEncoder().learn(table.astype({"soil": kind, "well": kind}), y)
    pd.testing.assert_frame_equal(made, expected)


def test_dates_may_be_text_and_have_cycles():
    table, y = make_table(60)
    text = table.assign(when=table["when"].astype(str))
    encoder = TableEncoder(cycles=["week"])
    pd.testing.assert_frame_equal(
        encoder.learn(text, y), clone(encoder).learn(table, y)
    )
    made = encoder.encode(table)
    later = encoder.encode(table.assign(when=table["when"] + pd.Timedelta(days=7)))
    waves = ["when (week, sin)", "when (week, cos)"]
    assert_allclose(made[waves], later[waves], atol=1e-9)
    assert_allclose(later["when"] - made["when"], 7)


def test_numbers_are_words_if_the_caller_says_so():
    table = pd.DataFrame({"zip": [1, 2, 1, 2], "x": [0.0, 1.0, 2.0, 3.0]})
    encoder = TableEncoder(words=["zip"])
    assert list(encoder.learn(table, np.arange(4.0))) == ["zip=1", "zip=2", "x"]
    later = encoder.encode(table.assign(zip=[1.0, 2.0, np.nan, 3.0]))
    assert_array_equal(later["zip=1"], [1, 0, 0.5, 0.5])
    model = OverlappingCoverRegressor(FIXED, encoder=encoder)
    with pytest.warns(UserWarning, match="few"):
        assert model.fit(table, np.arange(4.0)).encoder_.inputs[0] == "zip=1"


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (
            [1.0, 2.0, "many", 4.0],
            "'a' holds 'many' in row 2.*not a number .bad cells: 1 of 4",
        ),
        ([None, None, None, None], "column 'a' is empty"),
        (["NA", "?", "", None], "column 'a' is empty"),
        ([1.0, np.inf, None, 2.0], "'a' holds an infinite value in row 1"),
        (["1,5", "2,5", "x", "1"], "'a' holds '1,5' in row 0.*a decimal comma"),
        (["1,5", "x", "y", "1"], None),
    ],
)
def test_a_column_that_cannot_be_used_is_named(column, words):
    table = pd.DataFrame({"a": pd.Series(column, dtype=object)})
    if words is None:
        assert len(TableEncoder().learn(table, np.arange(4.0)).columns) == 4
        return
    with pytest.raises(ValueError, match=words):
        OverlappingCoverRegressor(FIXED).fit(table, np.arange(4.0))


def test_all_columns_that_cannot_be_used_are_named_at_once():
    table = pd.DataFrame({"a": ["1", "2", "x"], "b": np.nan, "c": ["3,5", "1,5", "2"]})
    said = "'a' holds 'x' in row 2.*'b' is empty; .*'c' holds '3,5' in row 0"
    with pytest.raises(ValueError, match=said + r".*words=\['a', 'c'\]"):
        TableEncoder().learn(table, np.arange(3.0))


def test_columns_are_found_by_name():
    table = pd.DataFrame({0: [1.0, 2.0, 3.0], 1: [4.0, 5.0, 6.0], "c": ["u", "v", "u"]})
    encoder = TableEncoder(words=[1])
    encoder.learn(table, np.arange(3.0))
    expected = encoder.encode(table)
    assert list(expected) == ["0", "1=4", "1=5", "1=6", "c=u", "c=v"]
    other = table[["c", 1, 0]].assign(more=1)
    pd.testing.assert_frame_equal(encoder.encode(other), expected)
    with pytest.raises(ValueError, match=r"lacks '1', 'c'. There are: '0'"):
        encoder.encode(table[[0]])
    with pytest.raises(ValueError, match="the table has two columns called '0'"):
        encoder.encode(table.assign(**{"0": 1.0}))


def test_an_encoder_takes_only_tables_and_has_to_learn_first():
    table = pd.DataFrame({"a": ["u", "v"]})
    with pytest.raises(NotFittedError, match="call learn"):
        TableEncoder().encode(table)
    with pytest.raises(TypeError, match=r"type ndarray. Give a pandas DataFrame"):
        TableEncoder().learn(table.to_numpy(), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"\[2, 3\]"):
        TableEncoder().learn(table, [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"words": ["b"]}, "words='b' is not known"),
        ({"cycles": ["month"]}, "cycles='month' is not known.*'year', 'week', 'day'"),
        ({"words": "soil"}, r"words='soil' must be a list: \['soil'\]"),
        ({"cycles": "year"}, r"cycles='year' must be a list: \['year'\]"),
        ({"one_hot": -1}, "one_hot=-1 must be an integer >= 0"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        TableEncoder(**options).learn(pd.DataFrame({"a": [1, 2]}), [1.0, 2.0])


def test_two_inputs_of_one_name_are_refused():
    table = pd.DataFrame({"hue": ["red", "blue"], "hue=red": [1, 2]})
    with pytest.raises(
        ValueError, match="encoded table has two columns called 'hue=red'"
    ):
        TableEncoder().learn(table, [1.0, 2.0])


# -- effects ---------------------------------------------------------------------------


def test_the_output_of_a_row_does_not_reach_its_own_code():
    table, y = make_table(200)
    before = TableEncoder().learn(table, y)["well (effect)"]
    changed = y.copy()
    changed[17] += 50.0
    after = TableEncoder().learn(table, changed)["well (effect)"]
    # The unit of effects, the outputs' deviation, is common to all rows.
    assert_allclose(after[17] * changed.std(), before[17] * y.std())
    mates = np.flatnonzero((table["well"] == table["well"][17]) & (table.index != 17))
    folds = folds_of(len(y))
    mates = mates[folds[mates] != folds[17]]
    assert (np.abs(after[mates] * changed.std() - before[mates] * y.std()) > 0.1).all()


def test_codes_of_words_that_mean_nothing_tell_nothing_of_the_outputs():
    """In-sample means of 300 levels would follow 600 outputs of pure noise."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": [f"i{i}" for i in rng.integers(0, 300, 600)]})
    y = rng.normal(size=600)
    codes = TableEncoder().learn(table, y)["id (effect)"]
    assert abs(np.corrcoef(codes, y)[0, 1]) < 0.15 or codes.std() == 0
    means = pd.Series(y).groupby(table["id"]).transform("mean")
    assert np.corrcoef(means, y)[0, 1] > 0.6


def test_a_level_is_not_blamed_for_other_columns():
    """Wells differ by 1, and the wet ones happen to be in the first well."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 2, 2000)
    other = (rng.random(2000) < np.where(level == 0, 0.9, 0.1)).astype(int)
    Y = (level + 3.0 * other + 0.1 * rng.normal(size=2000))[:, None]
    first, second = effects_of([(level, 2), (other, 2)], Y, np.ones(2000))
    assert_allclose(np.diff(first.means[:, 0]), 1.0, atol=0.1)
    assert_allclose(np.diff(second.means[:, 0]), 3.0, atol=0.1)


def test_rows_of_weight_zero_count_for_nothing():
    rng = np.random.default_rng(0)
    levels, Y = rng.integers(0, 5, 60), rng.normal(size=(60, 2))
    Y[:, 0] += levels
    weights = rng.integers(0, 3, 60).astype(float)
    (all_rows,) = effects_of([(levels, 5)], Y, weights)
    used = weights > 0
    (some_rows,) = effects_of([(levels[used], 5)], Y[used], weights[used])
    assert_allclose(all_rows.means, some_rows.means)
    assert np.abs(all_rows.means).max() > 0.5


def test_rows_of_a_group_are_left_out_together():
    groups = np.repeat(np.arange(20), 5)
    folds = folds_of(100, groups).reshape(20, 5)
    assert (folds == folds[:, :1]).all()
    assert len(np.unique(folds)) > 1


def test_several_outputs_share_a_few_codes():
    table, y = make_table(300)
    Y = np.column_stack([y, -y, 2 * y, y + 1, np.sin(y)])
    made = TableEncoder().learn(table, Y)
    assert sum(name.startswith("well (effect") for name in made) == 3


# -- models ----------------------------------------------------------------------------


def test_a_table_goes_straight_into_a_model(fitted):
    model, table, _ = fitted
    assert list(model.feature_names_in_) == list(table)
    assert model.n_features_in_ == 5 and len(model.length_scales_) == 8
    others, observed = make_table(300, seed=2)
    error = observed - model.predict(others)
    assert np.sqrt(np.mean(error**2)) < 0.5 * observed.std()
    encoded = model.encoder_.encode(others).to_numpy()
    assert_array_equal(model.predict(encoded), model.predict(others))
    assert model.explain(others.iloc[0]).names == model.encoder_.inputs


def test_unknown_cells_are_answered_with_more_variance(fitted):
    model, table, _ = fitted
    _, std = model.predict(table, return_std=True)
    for column, value in [
        ("soil", "peat"),
        ("well", "w99"),
        ("soil", None),
        ("when", None),
    ]:
        asked = table.astype({"soil": object}).assign(**{column: value})
        other, wide = model.predict(asked, return_std=True)
        assert np.isfinite(other).all()
        encoder = model.encoder_
        assert (encoder.unknown_variance(encoder.encode(asked).to_numpy()) > 0).all()
        # The outputs do not depend on dates.
        assert column == "when" or (wide > std).mean() > 0.95, column
        assert model.encoder_.unknown(asked)[column] == len(table)
    assert model.encoder_.unknown(table) == {}


def test_intervals_hold_for_words_that_training_did_not_know(fitted):
    model, _, _ = fitted
    table, y = make_table(400, seed=3, n_levels=80)
    asked = ~table["well"].isin(model.encoder_.columns_[1]["levels"])
    low, high = model.predict_interval(table[asked])
    held = np.mean((low <= y[asked]) & (y[asked] <= high))
    assert held > 0.85


def test_numbers_need_no_encoder_and_answers_are_the_same():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.normal(size=80)
    frame = pd.DataFrame(X, columns=list("abc"))
    model = OverlappingCoverRegressor(FIXED, subdomain_size=40, random_state=0)
    expected = clone(model).fit(X, y).predict(X)
    for table in (frame, frame.astype({"a": object}), frame.astype({"b": "Float64"})):
        assert not needs_encoding(table)
        named = clone(model).fit(table, y)
        assert not hasattr(named, "encoder_")
        assert_array_equal(named.predict(table), expected)
    named.fit(frame.assign(a=np.where(X[:, 0] > 1, np.nan, X[:, 0])), y)
    assert hasattr(named, "encoder_")
    assert not hasattr(named.fit(frame, y), "encoder_")
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(np.where(X > 1, np.nan, X), y)


def test_a_store_keeps_the_encoder(fitted, tmp_path):
    model, table, y = fitted
    others = make_table(50, seed=5, n_levels=60)[0]
    expected = model.predict(others, return_std=True)
    model.save(tmp_path / "a.ocm")
    options = {"subdomain_size": 100, "random_state": 0}
    again = OverlappingCoverRegressor(clone(model.machine), **options)
    store.fit_into(again, table, y, tmp_path / "b.ocm")
    for kept in (load(tmp_path / "a.ocm"), again, load(tmp_path / "b.ocm")):
        assert_array_equal(kept.predict(others, return_std=True), expected)
    other = table.assign(soil=table["soil"].replace("clay", "loam"))
    files = (
        store.fingerprint_of(again, t, y, None, None, None) for t in (table, other)
    )
    assert len(set(files)) == 2


def test_an_encoder_that_does_not_fit_is_refused(fitted, tmp_path):
    _, table, y = fitted
    damaged = OverlappingCoverRegressor(FIXED, subdomain_size=100, random_state=0)
    damaged.fit(table, y).encoder_.columns_[1]["codes"] = np.zeros((3, 1))
    damaged.save(tmp_path / "a.ocm")
    with pytest.raises(store.StoreError, match="column 'well' cannot be encoded"):
        load(tmp_path / "a.ocm")


def test_reports_and_advice_take_tables_and_tell_how_they_are_encoded(fitted, tmp_path):
    model, table, y = fitted
    tests = make_table(60, seed=6)
    advise(model, table, y, *tests)
    path = write_report(model, tmp_path / "a.html", table, y, *tests)
    text = path.read_text(encoding="utf-8")
    for column, how in model.encoder_.describe():
        assert re.search(f"{column}</th><td>{re.escape(how)}", text), column
    assert "2024-" in text  # dates are shown as such


def test_what_takes_only_numbers_names_the_column_and_the_remedy(fitted, tmp_path):
    model, table, y = fitted
    with pytest.raises(ValueError, match=r"'soil'.*OverlappingCoverRegressor"):
        GP().fit(table, y)
    with pytest.raises(ValueError, match=r"columns of .*datetime64.*TableEncoder"):
        fit_on_cluster(OverlappingCoverRegressor(), table, y, tmp_path / "a")
    with pytest.raises(ValueError, match=r"soil, well, wet, .*: give a DataFrame"):
        model.predict(np.zeros((2, 5)))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table[list(table)[::-1]])


def test_unknown_cells_widen_all_that_tells_of_certainty(fitted):
    model, table, _ = fitted
    asked = pd.concat([table[:4], table[:4].assign(well="w99")])
    _, std = model.predict(asked, return_std=True)
    _, covariance = model.predict(asked, return_cov=True)
    assert_allclose(np.sqrt(np.diag(covariance)), std)
    _, of_function = model.predict(asked, return_std=True, noise=False)
    low, high = model.predict_quantile(asked, [0.05, 0.95]).T
    for width in (std, of_function, high - low):
        assert (width[4:] > width[:4]).all()
