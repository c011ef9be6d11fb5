"""The bases of the GP baselines, whose kernels are tuned as for a cover."""

from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state

from .. import combination, kernels, tuning
from .._linalg import add_to_diagonal, cholesky
from .._parallel import one_thread_per_worker, run_tasks
from .._validation import (
    all_or_nothing,
    check_choice,
    check_count,
    check_training_data,
)
from .._weights import evidence_of
from ..machines import GP, Prediction, Predictor, TakesMachine, make_machine


class Options:
    """How parameters are checked: the least of every count, and the words allowed."""

    counts: ClassVar[dict[str, int]] = {}
    choices: ClassVar[dict[str, tuple]] = {}

    def _check_options(self, n_features):
        for name, least in self.counts.items():
            advice = f"{getattr(type(self), name)} suits most data."
            check_count(name, getattr(self, name), least, advice)
        for name, allowed in self.choices.items():
            check_choice(name, getattr(self, name), allowed)


@dataclass(eq=False, repr=False)
class WithMachine(
    Options, TakesMachine, Predictor, MultiOutputMixin, RegressorMixin, BaseEstimator
):
    """Parameters that all baselines with a machine have."""

    machine: Any = None
    _: KW_ONLY
    n_jobs: Any = None
    random_state: Any = None


class GPBaseline(WithMachine):
    """A baseline that is made of GPs; a subclass gives `_fit`."""

    @all_or_nothing
    @one_thread_per_worker()
    def fit(self, X, y, sample_weight=None):
        """Tune the kernel and fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
            As in `overcover.GP.fit`: the noise of a row is divided by its weight.
        """
        X, Y, weights, *_ = check_training_data(self, X, y, sample_weight)
        self._check_options(X.shape[1])
        self._fit(X, Y, weights)
        return self

    def _tune(self, X, Y, weights, size):
        """Tune the kernel on samples of `size` rows: random state, and all weights."""
        rng = check_random_state(self.random_state)
        machine = shared_gp(self.machine)
        machine.tune(X, Y, weights, min(size, len(X)), rng, self.n_jobs)
        self.machine_ = machine
        self._Y_mean = np.average(Y, axis=0, weights=weights)
        return rng, np.ones(len(X)) if weights is None else weights


class SharedKernelGP(GPBaseline):
    """A baseline whose parts share the hyperparameters of one GP.

    A subclass gives `_answers`: for a chunk of queries the means, less the mean output,
    and the variances of the function before the amplitude, maybe of one column.
    """

    # Queries in a chunk.
    chunk = 2048

    def _predict_rows(self, X, return_std, noise=True):
        mean, latent = in_chunks(self._answers, X, self.chunk)
        if not return_std:
            return Prediction(mean + self._Y_mean, None)
        variance = latent + self._noise if noise else latent
        return Prediction(mean + self._Y_mean, np.sqrt(variance * self.amplitude_sq_))

    def _in_units(self, X, center):
        """The kernel, and rows in its units; only a named kernel allows a centre."""
        machine = self.machine_
        center = 0.0 if kernels.is_object(machine.used_kernel_) else center
        return kernels.in_units(machine.used_kernel_, machine.theta_[0], X - center)

    @property
    def _noise(self):
        return np.exp(self.machine_.theta_[0][-1])


def in_chunks(answer, X, size, n_jobs=1):
    """What `answer` returns, a tuple of arrays, for chunks of queries in float64."""
    chunks = ((X[i : i + size].astype(np.float64),) for i in range(0, len(X), size))
    parts = zip(*run_tasks(answer, chunks, n_jobs))
    return [None if part[0] is None else np.concatenate(part) for part in parts]


def shared_gp(machine) -> GP:
    """A new GP with the same hyperparameters everywhere; refuses other machines."""
    gp = make_machine(machine)
    if not isinstance(gp, GP) or gp.per_output is True or gp.per_subdomain:
        raise ValueError(
            f"machine={machine!r} must be a GP whose hyperparameters all rows and "
            "outputs share: GP(), GP(kernel='rbf'), GP(length_scale=2.0, noise=0.1), "
            "or None."
        )
    return gp.set_params(per_output=False)


# Numbers that the answers to a chunk of queries hold: 32 MB.
CHUNK_VALUES = 2**22


class PartsGP(GPBaseline):
    """GPs on some of the rows each: `states_` of one machine, mixed by `_shares`.

    Shares have the shape (n_queries, n_parts), and sum to one. As in a cover, errors of
    rows left out of their part calibrate all variances: one part is the full GP.
    """

    @property
    def errors_(self):
        """Distributed as the errors of rows that are left out of their part."""
        return self.machine_.errors_

    def _fit_parts(self, X, Y, parts):
        """States from the numbers, weights and theta of the rows of every part."""
        machine = self.machine_

        def fit_part(rows, weights, theta):
            own = copy(machine)
            own.theta_ = theta[None]
            groups = machine.groups_to_leave_out(None, rows)
            keep = machine.keeps_factors(len(parts), len(rows))
            return own.fit_state(X[rows], Y[rows], weights, keep=keep, groups=groups)

        self.states_ = list(run_tasks(fit_part, parts, self.n_jobs))
        groups = [machine.groups_to_leave_out(None, rows) for rows, *_ in parts]
        machine.calibrate(self.states_, groups)

    def _predict_rows(self, X, return_std, noise=True):
        step = max(1, CHUNK_VALUES // (2 * len(self.states_) * self.n_outputs_))
        mixed = in_chunks(lambda Q: self._mixed(Q, return_std, noise), X, step)
        return Prediction(*mixed)

    def _mixed(self, X, return_std, noise):
        """Predict a chunk of queries; each asks the parts that it has shares of."""
        shares = self._shares(X)
        means = np.zeros((*shares.shape, self.n_outputs_))
        variances = np.zeros_like(means) if return_std else None

        def ask(state, asked):
            return self.machine_.answer(state, X[asked], return_std)

        places = [np.flatnonzero(column) for column in shares.T]
        used = [k for k, asked in enumerate(places) if len(asked)]
        tasks = ((self.states_[k], places[k]) for k in used)
        for k, answer in zip(used, run_tasks(ask, tasks, self.n_jobs)):
            means[places[k], k] = answer.mean
            if variances is not None:
                spread = answer.variance if noise else answer.function
                variances[places[k], k] = spread
        return combination.mixture(shares[:, :, None], means, variances)


def factor_of(kernel, A, noises):
    """Cholesky factor of the kernel matrix of some rows, with their noise."""
    return cholesky(add_to_diagonal(kernels.gram_lower(kernel, A), noises))[0]


def log_evidence(L, amplitude_sq, weights, log_noise):
    """Log marginal likelihood of some rows at the best amplitudes, up to a constant."""
    n, n_outputs = evidence_of(weights).sum(), len(amplitude_sq)
    value = -0.5 * n * np.log(amplitude_sq).sum() - n_outputs * np.log(np.diag(L)).sum()
    if np.isfinite(log_noise):  # without noise, weights make no difference
        value -= 0.5 * n_outputs * (n - len(L)) * log_noise
    return value


def own_theta(machine, X, Y, weights):
    """Log hyperparameters of some rows: a few steps from those of all rows."""
    theta, fixed = machine.theta_[0], machine.fixed_theta(X.shape[1])
    return tuning.improve(machine.used_kernel_, X, Y, weights, theta, fixed)
