"""What a fit warns of is kept with the model, in memory and on the disk."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import overcover
from overcover import GP, ImportanceWeightedTwinGP, OverlappingCoverRegressor, store
from overcover._notes import keep_notes, noted, remember, warn
from overcover.planning import PoorCoverWarning

X = np.random.default_rng(0).uniform(-2, 2, (120, 2))
Y = np.sin(X[:, 0])
POOR = {"subdomain_size": 4, "overlap": 0.9, "random_state": 0}
FAR = {"X_target": X[:20] + 50.0}


def make_weighted():
    machine = ImportanceWeightedTwinGP(0.9, 0.9, 0.02, 0.02)
    return OverlappingCoverRegressor(
        machine, subdomain_size=40, overlap=0.5, random_state=0
    )


def test_a_fitted_model_keeps_what_it_warned_of():
    model = OverlappingCoverRegressor(GP(length_scale=1.0, noise=0.1), **POOR)
    with pytest.warns(PoorCoverWarning) as seen:
        model.fit(X, Y)
    assert model.notes_ == [str(warning.message) for warning in seen]
    assert {warning.filename for warning in seen} == {__file__}  # the caller's line
    assert "less than two rows" in model.notes_[0]
    model.set_params(subdomain_size=60, overlap=0.5).fit(X, Y)
    assert model.notes_ == []


def test_notes_are_kept_where_warnings_are_not_shown():
    model = OverlappingCoverRegressor(GP(length_scale=1.0, noise=0.1), **POOR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, Y)
    assert len(model.notes_) == 1


def test_a_machine_alone_keeps_notes_too():
    machine = make_weighted().machine
    assert machine.fit(X, Y).notes_ == []
    with pytest.warns(UserWarning, match="hardly overlap"):
        machine.fit(X, Y, **FAR)
    (note,) = machine.notes_
    assert note.startswith("Training and target rows hardly overlap")


def test_stored_models_have_their_notes(tmp_path):
    model = make_weighted()
    with pytest.warns(UserWarning, match="hardly overlap"):
        model.fit(X, Y, **FAR)
    model.save(tmp_path / "saved.ocm")
    with pytest.warns(UserWarning, match="hardly overlap"):
        fitted = store.fit_into(make_weighted(), X, Y, tmp_path / "fitted.ocm", **FAR)
    assert fitted.notes_ == model.notes_
    assert len(model.notes_) == 1
    for name in ("saved.ocm", "fitted.ocm"):
        assert overcover.load(tmp_path / name).notes_ == model.notes_
        assert store.inspect(tmp_path / name)["fit_notes"] == model.notes_
    # Returned as it is there, and nothing is done that could warn.
    again = store.fit_into(make_weighted(), X, Y, tmp_path / "fitted.ocm", **FAR)
    assert again.notes_ == model.notes_


def test_a_resumed_fit_has_the_notes_of_what_is_not_done_again(tmp_path, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("overcover.fitting.partition_rows", stop)
        with (
            pytest.warns(UserWarning, match="hardly overlap"),
            pytest.raises(KeyboardInterrupt),
        ):
            store.fit_into(make_weighted(), X, Y, tmp_path / "model.ocm", **FAR)
    resumed = store.fit_into(make_weighted(), X, Y, tmp_path / "model.ocm", **FAR)
    assert len(resumed.notes_) == 1
    assert overcover.load(tmp_path / "model.ocm").notes_ == resumed.notes_


def test_stores_of_before_have_no_notes():
    old = Path(__file__).parent / "fixtures" / "store-v1" / "model"
    assert overcover.load(old).notes_ == []
    assert store.inspect(old)["fit_notes"] == []


@pytest.mark.parametrize("notes", [None, "a", [1], {"a": "b"}])
def test_notes_that_are_no_texts_are_refused(notes, tmp_path):
    model = OverlappingCoverRegressor(GP(length_scale=1.0, noise=0.1))
    model.fit(X, Y).notes_ = notes
    model.save(tmp_path / "model.ocm")
    with pytest.raises(store.StoreError, match="notes of a fit"):
        overcover.load(tmp_path / "model.ocm")


def test_every_note_is_kept_once_and_by_the_innermost():
    remember(["not while anything is fitted"])

    class Estimator:
        @keep_notes
        def fit(self):
            with noted() as inner:
                remember(["inner"])
            assert inner == ["inner"]
            remember(["a", "b", "a"])
            remember(["b"])
            with pytest.warns(UserWarning, match="c"):
                warn("c")
            return self

    assert Estimator().fit().notes_ == ["a", "b", "c"]
