"""Problems, tuned machines and models that the experiments share."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from _common import load as load_file
from _common import output_units
from overcover import GP, OverlappingCoverRegressor, TwinGP
from overcover.combination import mixture, weights_of
from overcover.consult import ask
from overcover.datasets import make_pose
from overcover.machines import Machine
from overcover.metrics import mean_angle_error, mean_joint_error

from .definitions import DATA_SEED, PAPER, SEED, Scale


class Problem(NamedTuple):
    """One data set with its error measure."""

    name: str
    X_train: np.ndarray
    Y_train: np.ndarray
    X_test: np.ndarray
    Y_test: np.ndarray
    unit: str
    error: Callable[[np.ndarray, np.ndarray], float]
    """From true and predicted outputs to the error in that unit."""

    def some_rows(self, n_rows):
        """The indices of `n_rows` test rows, evenly spread."""
        n_all = len(self.X_test)
        return np.unique(np.linspace(0, n_all - 1, min(n_rows, n_all)).astype(int))

    def some(self, n_rows):
        """The problem with `some_rows` as its test rows."""
        rows = self.some_rows(n_rows)
        return self._replace(X_test=self.X_test[rows], Y_test=self.Y_test[rows])


def load(name, scale: Scale) -> Problem:
    """The data set called "poser", "humaneva", "human36m" or "poserlike"."""
    return _load(name, getattr(scale.frames, name, None))


@cache
def _load(name, n_frames):
    if name == "poserlike":
        return _poserlike()
    data = make_pose(name, n_frames=n_frames, random_state=DATA_SEED, n_jobs=2)
    parts = (data.X_train, data.Y_train, data.X_test, data.Y_test)
    arrays = [np.asarray(part, np.float64) for part in parts]
    if name == "poser":
        return Problem(name, *arrays, "degrees", mean_angle_error)
    return Problem(name, *arrays, "mm", mean_joint_error)


def _poserlike():
    """Real motions, in place of Poser."""
    data, unit = load_file("poserlike"), output_units("poserlike")
    arrays = data.X_train, data.Y_train * unit, data.X_test, data.Y_test * unit
    return Problem("poserlike", *arrays, "degrees", mean_angle_error)


@cache
def _tuned(name, n_frames, kind, size):
    problem = _load(name, n_frames)
    metric = "angle" if problem.unit == "degrees" else "joint"
    machine: Any = GP(per_output=False) if kind == "gp" else TwinGP(metric=metric)
    rng = np.random.RandomState(SEED)
    machine.tune(problem.X_train, problem.Y_train, None, size, rng, 2)
    return machine


def tuned(problem, scale, kind, machine_class=None) -> Machine:
    """A machine with fixed hyperparameters, learned from training rows.

    They are learned once for each data set, at the subdomain size of most tables, so
    that compared models differ in nothing else.

    Parameters
    ----------
    problem : Problem
    scale : Scale
    kind : {"gp", "tgp"} or the name of a variant
    machine_class : class or None
        A variant of the Twin GP, with the hyperparameters of the Twin GP.
    """
    n_frames = getattr(scale.frames, problem.name, None)
    kind = kind if machine_class is None else "tgp"
    best = _tuned(problem.name, n_frames, kind, scale.size)
    if kind == "gp":
        return GP(best.used_kernel_, best.length_scale_, float(best.noise_))
    return (machine_class or TwinGP)(
        input_length_scale=best.input_length_scale_,
        output_length_scale=best.output_length_scale_,
        input_noise=best.input_noise_,
        output_noise=best.output_noise_,
    )


def cover_of(machine, size, n_jobs=2, **options):
    """A cover with the paper's router and weights, unless `options` differ."""
    return OverlappingCoverRegressor(
        machine,
        **{
            "subdomain_size": size,
            "spread": 1.0,
            "random_state": SEED,
            "n_jobs": n_jobs,
            **PAPER,
            **options,
        },
    )


def means_by_consulted(model, X, counts):
    """Predictions with each K' of `counts`, at the cost of the largest.

    Parameters
    ----------
    model : OverlappingCoverRegressor
        Fitted, and not routed by variance.
    X : ndarray of shape (n_queries, n_features)
    counts : sequence of int

    Returns
    -------
    dict from count to ndarray of shape (n_queries, n_outputs)
    """
    most = min(max(counts), model.n_subdomains_)
    route = model.router_.route(X / model.length_scales_, most, model.n_jobs)
    answers = ask(model.machine_, model.states_, X, route, False, model.n_jobs)
    return {
        k: mixture(
            weights_of(model.combine, route.distances[:, :k]), answers.mean[:, :k]
        ).mean
        for k in counts
        if k <= most
    }
