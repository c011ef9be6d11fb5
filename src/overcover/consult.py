"""Consultation: route queries, predict by subdomains, weight the predictions.

    X, Y -> metric -> partition -> cover -> machines -> [routing -> combination
    -> prediction]

Predictions, explanations, advice, reports and clusters all use this module, which calls
routing, machines and combination. The *answer* of a subdomain is its prediction.

One rule decides which subdomains answer, and with which weights:

1. The router gives `n_consulted` subdomains for every query, or, if certainty decides
   (`Router.certainty_decides`), candidates: at least `n_consulted`, often more.
2. Of candidates, all answer if they are weighed by "certainty"; else the `n_consulted`
   with the smallest posterior variances. A machine whose answers are expensive
   (`Machine.posterior_first`) gives the posterior variances of all candidates first,
   and only the `n_consulted` most certain ever answer.
3. The answers are weighed by the rule, see `overcover.combination`.

Queries are answered in rounds, so that memory does not grow with their number. Within a
round a subdomain answers all its queries at once.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs

from . import combination, routing
from ._parallel import one_thread_per_worker, run_tasks
from ._streams import FARTHEST, Rows
from .machines import Answer, Machine, Prediction, check_covariance_fits

# Values of the parameter `combine`; see `rule_of` for "auto".
CHOICES = ("auto", *combination.RULES)
# Bytes of the answers to a round. Where factors are kept, a round has at most so many
# queries for each subdomain, because more would gain little.
ROUND_BYTES, ROUND_QUERIES = 2**27, 512
# Queries of a task, enough to outweigh the start of a task; fewer if there would be
# less than this many tasks for each thread.
TASK_QUERIES, TASKS_EACH = 64, 8
# For fewer queries than this, threads take longer to start than to answer.
FEW_QUERIES = 9
BY_CERTAINTY = "distance: posterior standard deviation"


class Panel(NamedTuple):
    """The subdomains of a fitted model, and how queries consult them."""

    machine: Machine
    states: Sequence[Any]  # of the machine on every subdomain
    router: routing.Router
    length_scales: np.ndarray  # the machine's metric, shape (n_features,)
    rule: str  # one of `combination.RULES`
    n_consulted: int
    n_outputs: int
    subdomain_size: int
    n_jobs: int | None = None
    encoder: Any = None  # of tables, see `overcover.tables`; None for numbers

    @property
    def compares_first(self) -> bool:
        """Whether candidates give their posterior variances before any answers."""
        return self.router.certainty_decides and self.machine.posterior_first

    @property
    def rows_per_round(self) -> int:
        """How many queries are answered together."""
        n_listed = max(self.router.n_listed, self.n_consulted)
        all_answer = self.router.certainty_decides and not self.compares_first
        n_answers = n_listed if all_answer else self.n_consulted
        # Indices and distances of candidates; mean and variance of each answer, and
        # once more of their mixture.
        numbers = 4 * n_listed + (n_answers + 1) * 2 * self.n_outputs
        n_rows = max(1, ROUND_BYTES // (8 * numbers))
        # The same for a model that was loaded, so that it answers bit by bit the same.
        if self.machine.keeps_factors(len(self.states), self.subdomain_size):
            n_rows = min(n_rows, ROUND_QUERIES * len(self.states))
        return n_rows


class Consultation(NamedTuple):
    """Which subdomains answered some queries, their answers, and their weights."""

    route: routing.Route
    answers: Answer  # with an axis for the consulted, see `ask`
    weights: np.ndarray  # shares, shape (n_queries, n_consulted, 1 or n_outputs)
    measure: str  # what the distances of the route are

    @property
    def variances(self) -> np.ndarray | None:
        """Those of the function where they were wanted, else of observations."""
        function = self.answers.function
        return self.answers.variance if function is None else function

    def prediction(self) -> Prediction:
        """The answers as one; with a std where the answers have variances."""
        return combination.mixture(self.weights, self.answers.mean, self.variances)

    def homes(self) -> np.ndarray:
        """The subdomain with the largest weight, shape (n_queries,)."""
        best = np.argmax(self.weights.mean(axis=2), axis=1)[:, None]
        return np.take_along_axis(self.route.subdomains, best, axis=1)[:, 0]


def panel_of(model) -> Panel:
    """The subdomains of a fitted model, by its parameters as they are now."""
    check_consulted(model.n_consulted, model.n_subdomains_)
    check_rule(model.combine, model.machine_)
    return Panel(
        model.machine_,
        model.states_,
        model.router_,
        model.length_scales_,
        rule_of(model.combine, model.router_, model.n_consulted),
        model.n_consulted,
        model.n_outputs_,
        model.subdomain_size_,
        model.n_jobs,
        getattr(model, "encoder_", None),
    )


def rule_of(combine, router, n_consulted) -> str:
    """The rule that the parameter `combine` stands for.

    "auto" is "certainty" where certainty decides which one subdomain a query consults,
    else "inverse-distance".
    """
    if combine != "auto":
        return combine
    is_certainty = router.certainty_decides and n_consulted == 1
    return "certainty" if is_certainty else "inverse-distance"


def check_rule(combine, machine) -> None:
    """Refuse a rule that needs variances where the machine has none."""
    if combine in combination.NEED_VARIANCE and not machine.has_variance:
        raise ValueError(
            f"combine={combine!r} weighs answers by their variance, which {machine!r} "
            "does not have. Choose 'auto', 'inverse-distance' or 'nearest'."
        )


def check_consulted(n_consulted, n_subdomains) -> None:
    """Refuse to consult more subdomains than there are."""
    if n_consulted > n_subdomains:
        raise ValueError(
            f"n_consulted={n_consulted} is more than the number of subdomains, "
            f"{n_subdomains}. Give n_consulted={n_subdomains} or less, or cover the "
            "rows with more and smaller subdomains (subdomain_size)."
        )


def rounds(panel, X, variance, noise=True):
    """Yield a slice of the queries X and their `Consultation`, round by round.

    X may be float32 or float64; `variance` is whether answers should have variances,
    and `noise` whether these are of new observations, or of the function alone.
    """
    step = panel.rows_per_round
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        yield rows, consult(panel, X[rows], variance, noise)


def predict(panel, X, return_std, noise=True) -> Prediction:
    """One prediction for every query; parameters as in `rounds`."""
    parts = [round_.prediction() for _, round_ in rounds(panel, X, return_std, noise)]
    mean = np.concatenate([part.mean for part in parts])
    std = np.concatenate([part.std for part in parts]) if return_std else None
    return Prediction(mean, std)


def covariance(panel, X, noise) -> tuple[np.ndarray, np.ndarray]:
    r"""Means and covariances of queries, shapes (n, n_outputs) and (n_outputs, n, n).

    With :math:`a_k(q)` the weights, :math:`C_k` the covariance that subdomain k gives
    to the queries it answers, and :math:`d_k(q)` its mean minus that of the mixture,

    .. math:: C(p, q) = \sum_k \sqrt{a_k(p) \, a_k(q)} \, \bigl(C_k(p, q) + d_k(p) \,
        d_k(q)\bigr) .

    The diagonal is the variance of the mixture; every term is positive semidefinite, so
    the sum is. Queries with equal weights have the covariance of their subdomains;
    those that no subdomain answers both are independent.
    """
    check_covariance_fits(len(X), panel.n_outputs)
    found = consult(panel, X, True, noise)
    machine, states, X = panel.machine, panel.states, Rows(X)
    weights, mean, variances = found.weights, found.prediction().mean, found.variances
    assert variances is not None
    total = np.zeros((mean.shape[1], len(mean), len(mean)))

    def ask_one(k, where):
        has_weight = weights[where].any(axis=1)
        rows, places = (part[has_weight] for part in where)
        if not len(rows):
            return rows, (), ()
        root = np.sqrt(weights[rows, places])
        std = root * np.sqrt(variances[rows, places])
        off = root * (found.answers.mean[rows, places] - mean[rows])
        pairs = zip(machine.correlations(states[k], X[rows], noise), std.T)
        return rows, [r * np.outer(s, s) for r, s in pairs], off.T

    for rows, parts, off in ask_each(ask_one, found.route.subdomains, panel.n_jobs):
        for whole, part, d in zip(total, parts, off):
            whole[rows[:, None], rows] += part + np.outer(d, d)
    return mean, total


def gradient(panel, X) -> np.ndarray:
    """Slopes of the mean, weights held constant; (n, n_features, n_outputs)."""
    parts = [_slopes(panel, Rows(X[r]), found) for r, found in rounds(panel, X, False)]
    return np.concatenate(parts)


def _slopes(panel, X, found):
    """`gradient` of one round, from its `Consultation`."""
    slopes = np.zeros((*X.shape, panel.n_outputs))

    def ask_one(k, where):
        here = panel.machine.slopes(panel.states[k], X[where[0]])
        return where[0], found.weights[where][:, None] * here

    for rows, part in ask_each(ask_one, found.route.subdomains, panel.n_jobs):
        slopes[rows] += part
    return slopes


@one_thread_per_worker()
def consult(panel, X, variance, noise=True) -> Consultation:
    """Route, ask and weigh; parameters as in `rounds`, for the queries of one round."""
    machine, states, router, scales = panel[:4]
    queries, n_jobs = X, panel.n_jobs if len(X) >= FEW_QUERIES else 1
    Z = Rows(X, scales, bounds=(-FARTHEST, FARTHEST))
    X = Rows(X)
    route, measure = router.route(Z, panel.n_consulted, n_jobs), router.measure
    is_open = router.certainty_decides  # whether there are candidates to choose from
    if panel.compares_first:
        variances = ask_variances(machine, states, X, route, n_jobs)
        route, _ = routing.most_certain(route, variances, panel.n_consulted)
        is_open, measure = False, BY_CERTAINTY
    is_weighed = panel.rule in combination.NEED_VARIANCE and panel.n_consulted > 1
    variance = variance or is_open or is_weighed
    answers = ask(machine, states, X, route, variance, n_jobs, noise)
    if is_open and panel.rule != "certainty":
        route, kept = routing.most_certain(route, answers.posterior, panel.n_consulted)
        known = (a for a in answers if a is not None)
        answers = Answer(*(np.take_along_axis(a, kept, axis=1) for a in known))
        measure = BY_CERTAINTY
    weights = combination.weights_of(
        panel.rule, route.distances, answers.variance, answers.posterior
    )
    if panel.compares_first and answers.posterior is not None:
        # What was compared may be rounded, and an only candidate was not asked.
        route = route._replace(distances=np.sqrt(answers.posterior[..., 0]))
    if panel.encoder is not None and answers.variance is not None:
        rows = np.asarray(queries, dtype=np.float64)
        added = panel.encoder.unknown_variance(rows)[:, None]
        answers = answers._replace(variance=answers.variance + added)
        if answers.function is not None:
            answers = answers._replace(function=answers.function + added)
    return Consultation(route, answers, weights, measure)


def ask_variances(machine, states, X, route, n_jobs=None) -> np.ndarray:
    """Posterior variances of all candidates, shape (n_queries, n_candidates, 1).

    Infinite for no candidate; zero for a query's only candidate, which is not asked.
    """
    is_alone = (route.subdomains >= 0).sum(axis=1) == 1
    undecided = np.where(is_alone[:, None], -1, route.subdomains)
    variances = np.full((*undecided.shape, 1), np.inf)
    variances[is_alone, 0] = 0.0

    def ask_one(k, where):
        return where, machine.posterior_variance(states[k], X[where[0]])

    for where, variance in ask_each(ask_one, undecided, n_jobs):
        variances[where] = variance[:, None]
    return variances


def ask(machine, states, X, route, variance=False, n_jobs=None, noise=True) -> Answer:
    """Ask every subdomain on a route about all its queries at once.

    The `Answer` has an axis for the consulted: mean and variance have shape (n_queries,
    n_consulted, n_outputs), posterior has shape (n_queries, n_consulted, 1). They are
    infinite for no candidate. It has variances of the function only without `noise`.
    """
    shape = route.subdomains.shape
    wholes: list[np.ndarray] = []

    def ask_one(k, where):
        return where, machine.answer(states[k], X[where[0]], variance)

    for where, answer in ask_each(ask_one, route.subdomains, n_jobs):
        parts = [answer.mean]
        if variance:
            parts += [answer.variance, answer.posterior[:, None]]
            parts += [] if noise else [answer.function]
        if not wholes:
            wholes = [np.full((*shape, part.shape[1]), np.inf) for part in parts]
        for whole, part in zip(wholes, parts):
            whole[where] = part
    return Answer(*wholes) if variance else Answer(wholes[0], None, None)


def ask_each(ask_one, subdomains, n_jobs):
    """Yield ``ask_one(k, where)`` of `routing.grouped`, in order, several to a task."""
    n_questions = int(np.sum(subdomains >= 0))
    n_tasks = TASKS_EACH * effective_n_jobs(n_jobs)
    least = min(TASK_QUERIES, -(-n_questions // n_tasks))

    def ask_some(*groups):
        return [ask_one(*group) for group in groups]

    for answers in run_tasks(ask_some, tasks_of(subdomains, least), n_jobs):
        yield from answers


def tasks_of(subdomains, least):
    """Groups of `routing.grouped`, as many together as have `least` queries."""
    task, n_queries = [], 0
    for group in routing.grouped(subdomains):
        task.append(group)
        n_queries += len(group[1][0])
        if n_queries >= least:
            yield tuple(task)
            task, n_queries = [], 0
    if task:
        yield tuple(task)
