r"""Parts: GPs on some of the rows each, with hyperparameters of their own, mixed.

The base of `MixtureGP` and `TreeGP`. Every part is a state of one and the same GP. From
the hyperparameters that suit all rows, a part takes a few steps up its own marginal
likelihood. A query mixes the answers of parts by their shares :math:`a_k(q)`,

.. math:: \mu = \sum_k a_k \mu_k, \qquad
    \sigma^2 = \sum_k a_k \bigl(\sigma_k^2 + (\mu_k - \mu)^2\bigr) .

Errors of rows left out of their part calibrate the variances of all parts, as in a
cover. So a single part is the full GP, in its standard deviations and intervals too.
"""

from copy import copy

import numpy as np

from .. import combination, tuning
from .._parallel import run_tasks
from ..machines import Prediction
from ._shared import GPBaseline

# Numbers that the answers to a chunk of queries hold: 32 MB.
CHUNK_VALUES = 2**22


class PartsGP(GPBaseline):
    """A baseline with `states_`, of which queries mix some by their `_shares`."""

    def _shares(self, X):
        """What every part has to say at queries, rows that sum to one; (n, n_parts)."""
        raise NotImplementedError

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
        chunks = (X[i : i + step].astype(np.float64) for i in range(0, len(X), step))
        mixed = [self._mixed(chunk, return_std, noise) for chunk in chunks]
        mean = np.concatenate([part.mean for part in mixed])
        std = np.concatenate([part.std for part in mixed]) if return_std else None
        return Prediction(mean, std)

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


def own_theta(machine, X, Y, weights):
    """Log hyperparameters of some rows: a few steps from those of all rows."""
    theta, fixed = machine.theta_[0], machine.fixed_theta(X.shape[1])
    return tuning.improve(machine.used_kernel_, X, Y, weights, theta, fixed)
