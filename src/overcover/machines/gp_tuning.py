"""Hyperparameters of a GP: how they are learned, and what was learned.

The half of `overcover.machines.GP` that does not depend on a subdomain. ``theta_`` has
a row for every group of outputs: the logs of the hyperparameters, the noise last.
"""

import numpy as np

from .. import kernels, tuning
from .._validation import (
    warn_of_bounds,
    warn_of_order,
    warn_of_outliers,
    warn_of_sequence,
)
from ..tuning.cost import TuningCost, searches_for, tuning_cost
from .calibration import MOST_LEARNED, CalibratedMachine
from .options import check_gp_groups, check_gp_options

# Outputs with less noise, relative to the signal, count alike in the common metric.
LITTLE_NOISE = 1e-3


class TunedGP(CalibratedMachine):
    """Learns kernel, length scales and noise; its parameters are those of `GP`."""

    def tune(
        self, X, Y, sample_weight, subdomain_size, random_state, n_jobs, groups=None
    ):
        """Learn kernel, length scales and noise; see `overcover.tuning`."""
        check_gp_options(self, X.shape[1])
        theta = self.fixed_theta(X.shape[1])
        share = "auto" if tuning.is_auto(self.per_output) else True
        options = theta, random_state, n_jobs, groups, share, self.robust
        is_each = self.per_output is True and Y.shape[1] > 1
        parts = [Y[:, [j]] for j in range(Y.shape[1])] if is_each else [Y]
        results = [
            tuning.tune(self.kernel, X, part, sample_weight, *options) for part in parts
        ]
        used = tuple(kernel for tuned in results for kernel in tuned.kernels)
        self.used_kernel_ = used[0] if used.count(used[0]) == len(used) else used
        self.theta_ = np.concatenate([tuned.theta for tuned in results])
        each = np.arange(Y.shape[1])
        self.output_groups_ = each if is_each else results[0].output_groups
        self.run_length_ = max(tuned.run_length for tuned in results)
        self.tuning_scores_ = [tuned.scores for tuned in results]
        self.n_learned_ = results[0].n_learned
        inflations = [t.inflation for t in results if t.inflation is not None]
        if inflations:  # measured, so that counting is not needed
            self.n_learned_ = 0
        inflation = np.clip(max(inflations, default=1.0), 1.0, MOST_LEARNED)
        self.variance_inflation_ = float(inflation)
        self.is_robust_ = any(tuned.is_robust for tuned in results)
        if self.run_length_ > 1:
            warn_of_sequence(self.run_length_)
        elif groups is None:
            warn_of_order(results[0].in_order)
        if self.is_robust_ and tuning.is_auto(self.robust):
            warn_of_outliers()
        ends = [tuned.at_bounds for tuned in results]
        unexplained = np.concatenate([end.unexplained for end in ends])
        outputs = np.flatnonzero(unexplained[self.output_groups_] & (Y.std(axis=0) > 0))
        columns = np.unique(np.concatenate([end.fast for end in ends]))
        warn_of_bounds(outputs, Y.shape[1], columns)

    def _kernel_of(self, group):
        """The kernel in use for a group of outputs."""
        used = getattr(self, "used_kernel_", self.kernel)
        return used[group] if isinstance(used, tuple) else used

    def tuning_cost(self, n_samples, n_features, n_outputs):
        """Of each output, unless all share; a kernel object is tuned on few rows."""
        if not self._is_free(n_features).any():
            return TuningCost()
        if kernels.is_object(self.kernel):
            n_samples = min(n_samples, tuning.FEW_ROWS)
        n_searches = n_outputs if self.per_output else 1.0
        if tuning.is_auto(self.per_output):
            n_searches = searches_for(n_outputs)
        cost = tuning_cost(n_samples, n_features)
        return cost._replace(flops=n_searches * cost.flops)

    def fixed_theta(self, n_features):
        """Log hyperparameters as the user fixed them, noise last; NaN for "auto"."""
        with np.errstate(divide="ignore"):  # noise=0 is -inf, and exp(-inf) is 0
            noise = np.nan if tuning.is_auto(self.noise) else np.log(self.noise)
        if kernels.is_object(self.kernel):
            return np.append(self.kernel.theta, noise)
        if tuning.is_auto(self.length_scale):
            return np.append(np.full(n_features, np.nan), noise)
        scales = np.broadcast_to(np.asarray(self.length_scale, float), n_features)
        return np.append(np.log(scales), noise)

    def _is_free(self, n_features):
        """Which log hyperparameters are learned; those of a kernel object are."""
        is_free = np.isnan(self.fixed_theta(n_features))
        if kernels.is_object(self.kernel):
            is_free[:-1] = True
        return is_free

    def check_options(self, n_features, n_outputs):
        check_gp_options(self, n_features)
        n_own = n_features
        if kernels.is_object(self.kernel):
            n_own = kernels.count_hyperparameters(self.kernel, n_features)
        if hasattr(self, "theta_"):
            check_gp_groups(self, n_outputs)
        return {"h": n_own + 1}

    @property
    def length_scale_(self):
        """Length scales, shape (n_features,), or (n_outputs, n_features)."""
        if kernels.is_object(self.kernel):
            raise AttributeError("A kernel object has no length_scale_: see kernel_.")
        return self._per_group(np.exp(self.theta_[:, :-1]))

    @property
    def noise_(self):
        """Relative noise variance; shape (n_outputs,) if outputs differ."""
        return self._per_group(np.exp(self.theta_[:, -1]))

    @property
    def kernel_(self):
        """The kernel with what was learned; a list of them if outputs differ."""
        groups = self._per_group(np.arange(len(self.theta_)))
        pairs = [(self._kernel_of(g), self.theta_[g]) for g in np.ravel(groups)]
        learned = [kernels.with_theta(*pair) for pair in pairs]
        return learned if np.ndim(groups) else learned[0]

    def _per_group(self, values):
        """Values of the groups for every output, or the one that all share."""
        if len(values) == 1 and self.per_output is not True:
            return values[0]
        return values[self._groups_of_outputs()]

    def _groups_of_outputs(self):
        """The group of every output, shape (n_outputs,)."""
        # Older stores have one group, or one for each output.
        return getattr(self, "output_groups_", np.arange(len(self.theta_)))

    @property
    def learns_metric(self):
        return tuning.is_auto(self.length_scale) and not kernels.is_object(self.kernel)

    def length_scales(self, X):
        """One metric for all outputs: the mean of their inverse squares.

        Outputs with less noise count more: their errors depend most on which rows are
        near a query.
        """
        if kernels.is_object(self.kernel):
            return super().length_scales(X)
        weights = 1.0 / (np.exp(self.theta_[:, -1]) + LITTLE_NOISE)
        inverse_sq = np.exp(-2.0 * self.theta_[:, :-1])
        precision = np.average(inverse_sq, axis=0, weights=weights)
        with np.errstate(divide="ignore"):  # no output uses the column
            return 1.0 / np.sqrt(precision)
