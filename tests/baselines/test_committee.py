"""Committees: what one expert is, what their rules say, and how sure they are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from overcover import GP, CommitteeGP, TwinGP
from overcover.baselines.committee import RULES, combine

FIXED = {"length_scale": 1.5, "noise": 0.02}
each_rule = pytest.mark.parametrize("rule", RULES)


def committee(rule, **options):
    options = {"expert_size": 60, "random_state": 0} | options
    return CommitteeGP(GP(kernel="rbf", **FIXED), rule=rule, **options)


def full_gp(X, y, queries):
    """Mean and variance of an observation, by the textbook."""

    def kernel(A, B):
        dist_sq = np.sum((A[:, None] - B[None]) ** 2, axis=2)
        return np.exp(-0.5 * dist_sq / FIXED["length_scale"] ** 2)

    A = kernel(X, X) + FIXED["noise"] * np.eye(len(X))
    K_xq, mean = kernel(X, queries), y.mean()
    centred = y - mean
    amplitude_sq = centred @ np.linalg.solve(A, centred) / len(X)
    variance = 1.0 - np.sum(K_xq * np.linalg.solve(A, K_xq), axis=0) + FIXED["noise"]
    return mean + K_xq.T @ np.linalg.solve(A, centred), amplitude_sq * variance


@pytest.mark.parametrize("rule", ["poe", "gpoe", "bcm", "grbcm"])
def test_one_expert_is_the_full_gp(rule, surface, queries):
    mean, std = committee(rule, expert_size=300).fit(*surface).predict(queries, True)
    expected, variance = full_gp(*surface, queries)
    assert_allclose(mean, expected, atol=1e-8)
    assert_allclose(std**2, variance, rtol=1e-6)


def test_one_robust_expert_is_not(surface, queries):
    """Its weight is the information it has gained, not one."""
    mean = committee("rbcm", expert_size=300).fit(*surface).predict(queries)
    expected, _ = full_gp(*surface, queries)
    assert np.abs(mean - expected).max() > 1e-4


@each_rule
def test_the_amplitude_of_a_kernel_object_is_scaled_away(rule, surface, queries):
    """``c k`` with noise ``c nu`` is another name for ``k`` with noise ``nu``."""
    expected, *others = (
        CommitteeGP(
            GP(ConstantKernel(c, "fixed") * RBF(1.5, "fixed"), noise=0.02 * c),
            rule=rule,
            expert_size=60,
            random_state=0,
        )
        .fit(*surface)
        .predict(queries, return_std=True)
        for c in (1.0, 1e-20, 1e20)
    )
    for mean, std in others:
        assert_allclose(mean, expected[0], atol=1e-9)
        assert_allclose(std, expected[1], rtol=1e-6)


@each_rule
def test_a_committee_learns(rule, surface, queries):
    X, y = surface
    mean, std = committee(rule).fit(X, y).predict(queries, return_std=True)
    truth = np.sin(queries[:, 0]) * np.cos(queries[:, 1])
    error = np.sqrt(np.mean((mean - truth) ** 2))
    assert error < 0.5 * truth.std()
    assert np.isfinite(std).all() and (std > 0).all()


@each_rule
def test_rules_say_what_their_formulas_say(rule, rng):
    means, variances = rng.normal(size=(4, 6, 2)), rng.uniform(0.05, 0.9, (4, 6))
    mean, variance = combine(rule, means, variances, np.ones(6))
    for q in range(6):
        s, m, s_0, m_0 = variances[:, q], means[:, q], 1.0, np.zeros(2)
        if rule == "grbcm":
            s_0, m_0, s, m = s[0], m[0], s[1:], m[1:]
        gain = 0.5 * (np.log(s_0) - np.log(s))
        beta = {"poe": np.ones(4), "gpoe": np.full(4, 0.25), "bcm": np.ones(4)}
        beta = beta.get(rule, gain).copy()
        if rule == "grbcm":
            beta[0] = 1.0
        rest = 0.0 if rule in ("poe", "gpoe") else 1.0 - beta.sum()
        precision = sum(b / v for b, v in zip(beta, s)) + rest / s_0
        total = sum(b / v * a for b, v, a in zip(beta, s, m)) + rest / s_0 * m_0
        assert_allclose(variance[q], 1.0 / precision)
        assert_allclose(mean[q], total / precision)


def test_far_away_the_prior_returns_but_for_the_product_of_experts(surface):
    far = np.full((1, 2), 1e3)
    stds = {r: committee(r).fit(*surface).predict(far, True)[1][0] for r in RULES}
    prior = np.sqrt(committee("bcm").fit(*surface).amplitude_sq_[0] * 1.02)
    for rule in ("gpoe", "bcm", "rbcm"):
        assert_allclose(stds[rule], prior, rtol=1e-6)
    assert stds["poe"] < 0.6 * prior


@each_rule
def test_many_outputs_are_answered_together(rule, two_outputs, queries):
    X, Y = two_outputs
    mean, std = committee(rule).fit(X, Y).predict(queries, return_std=True)
    assert mean.shape == std.shape == (40, 2)
    for j in range(2):
        alone, alone_std = committee(rule).fit(X, Y[:, j]).predict(queries, True)
        assert_allclose(mean[:, j], alone, rtol=1e-9, atol=1e-9)
        assert_allclose(std[:, j], alone_std, rtol=1e-9)


@each_rule
def test_threads_change_nothing(rule, surface, queries):
    one, two = (committee(rule, n_jobs=n).fit(*surface) for n in (1, 2))
    assert_array_equal(one.predict(queries), two.predict(queries))


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_units_do_not_matter(scale, surface, queries):
    X, y = surface
    machine = GP(kernel="rbf", length_scale=1.5 * scale, noise=0.02)
    options = {"rule": "grbcm", "expert_size": 60, "random_state": 0}
    model = CommitteeGP(machine, **options).fit(X * scale, y * scale)
    plain = committee("grbcm").fit(X, y).predict(queries, return_std=True)
    for ours, theirs in zip(model.predict(queries * scale, return_std=True), plain):
        assert_allclose(ours, theirs * scale, rtol=1e-5, atol=1e-7 * scale)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "vote"}, "rule='vote' is not known"),
        ({"expert_size": 0}, "expert_size=0 must be an integer >= 1"),
        ({"machine": TwinGP()}, "must be a GP whose hyperparameters"),
        ({"machine": GP(per_output=True)}, "must be a GP whose hyperparameters"),
        ({"partition": "slices"}, "partition='slices' is not known"),
    ],
)
def test_bad_options_are_refused(options, message, surface):
    with pytest.raises(ValueError, match=message):
        CommitteeGP(**options).fit(*surface)
