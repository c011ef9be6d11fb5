"""Errors about data name the column and the row that are at fault."""

import numpy as np
import pandas as pd
import pytest

from overcover import GP, OverlappingCoverRegressor, RelativeDensityRatio

MODELS = [
    GP(length_scale=1.0, noise=0.1),
    OverlappingCoverRegressor(GP(length_scale=1.0, noise=0.1), subdomain_size=20),
]
each_model = pytest.mark.parametrize("model", MODELS, ids=["machine", "cover"])
FAULTS = {
    "word": ("red", r"'red' in row 3 .*, not a number: encode it"),
    "nan": (np.nan, r"a missing value in row 3 "),
    "none": (None, r"a missing value in row 3 "),
    "inf": (-np.inf, r"an infinite value in row 3 "),
}
each_fault = pytest.mark.parametrize(
    ("value", "words"), FAULTS.values(), ids=FAULTS.keys()
)


@pytest.fixture
def frame(rng):
    """30 rows of the columns a, b and c, as objects, so that anything can be put in."""
    return pd.DataFrame(rng.normal(size=(30, 3)), columns=list("abc")).astype(object)


@each_model
@each_fault
def test_the_column_of_a_data_frame_is_named(model, value, words, frame):
    y = frame["a"].astype(float)
    broken = frame.copy()
    broken.loc[3, "b"] = value
    with pytest.raises(ValueError, match=rf"Column 'b' of X holds {words}"):
        model.fit(broken, y)
    model.fit(frame, y)
    with pytest.raises(ValueError, match=rf"Column 'b' of X holds {words}"):
        model.predict(broken)


@each_fault
def test_the_column_of_an_array_is_counted(value, words, frame):
    rows = frame.to_numpy(copy=True)
    rows[3, 1] = value
    with pytest.raises(ValueError, match=rf"Column 1 of X holds {words}"):
        MODELS[0].fit(rows, np.zeros(30))


def test_columns_of_outputs_and_weights_are_named(frame):
    model, X = MODELS[0], frame[["a"]].astype(float)
    Y = frame[["b", "c"]].astype(float)
    Y.loc[5, "c"] = np.nan
    with pytest.raises(ValueError, match="Column 'c' of y holds a missing value"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="y holds a missing value in row 5"):
        model.fit(X, Y["c"])
    with pytest.raises(ValueError, match="y holds 'red' in row 0"):
        model.fit(X, np.full(30, "red"))
    with pytest.raises(ValueError, match="sample_weight holds a missing value"):
        model.fit(X, Y["b"], sample_weight=Y["c"])


def test_rows_of_two_samples_are_told_apart(rng):
    good = rng.normal(size=(30, 2))
    bad = np.where(np.arange(30)[:, None] == 4, np.inf, good)
    with pytest.raises(ValueError, match="Column 0 of X_target holds an infinite"):
        RelativeDensityRatio().fit(good, bad)


def test_other_errors_stay_as_they_are(rng):
    model = MODELS[0].fit(rng.normal(size=(30, 2)), np.zeros(30))
    with pytest.raises(ValueError, match=r"expecting 2 features as input\.$"):
        model.predict(rng.normal(size=(30, 3)))
