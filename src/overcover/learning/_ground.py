"""The rows and subdomains of a model while they change, called its ground."""

from copy import copy
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .._neighbors import nearest_centers
from .._parallel import run_tasks
from .._progress import LOGGER
from .._records import finite, not_negative, record, whole
from .._streams import FARTHEST, Rows, center_of, without_far_cells
from ..cover import CEILING_GUARD, Cover, CoverShape, extend_clusters
from ..partition import partition_rows

# How many times its size a subdomain may have, and its share of rows a cluster: halves
# of what is split own 0.7 of their share, so that clusters own about theirs on average.
GROWN, CROWDED = 1.5, 1.4
# A row as far away as the farthest, but for rounding, is no farther.
ROUNDING = 1.0 + 1e-9


@record(
    centers=finite("K d"),
    lenders=whole("K b", -1, "K"),
    reaches=not_negative("K b"),
)
class Borders(NamedTuple):
    """Which new rows join which subdomains; all in the machine's metric."""

    centers: np.ndarray
    """Of the clusters when they were made, shape (n_subdomains, n_features)."""

    lenders: np.ndarray
    """Clusters that each subdomain borrows from, -1 for none, (n_subdomains, b)."""

    reaches: np.ndarray
    """Distance from its centre of the farthest row borrowed there, same shape."""


# What a ground has for each subdomain.
LISTS = ("members", "n_owned", "origin", "centers", "reaches")


class Ground:
    """The rows and subdomains of a fitted model, while they change.

    Rows are called by their positions here: those of the model by ascending number,
    then new ones; those that have left keep theirs. `origin[k]` is
    the state that subdomain k has, None if it is to be fitted. `model` is a copy of the
    model before the changes.
    """

    def __init__(self, model):
        self.model, self.n_jobs = copy(model), model.n_jobs
        if isinstance(model.states_, list):
            self.model.states_ = list(model.states_)
        numbers = model.cover_.rows()
        self.members = list(model.cover_.compact().members)
        self.n_owned = [int(n) for n in model.cover_.n_owned]
        self.origin: list[int | None] = list(range(len(self.members)))
        # Where the outputs of a row can be had.
        self.known = self.clusters()
        self.labels = np.empty(len(numbers), dtype=np.intp)
        X = np.empty((len(numbers), len(model.length_scales_)))
        weights = np.ones(len(numbers))
        for k, own in enumerate(self.known):
            recalled = model.machine_.recall(model.states_[k])
            if recalled is None:
                raise ValueError(
                    f"{model.machine_!r} keeps no rows, so it cannot learn from more "
                    "of them. Fit it again, with all rows."
                )
            X[own], self.labels[own] = recalled.X[: len(own)], k
            if recalled.weights is not None:
                weights[own] = recalled.weights[: len(own)]
        self.groups = getattr(model, "groups_", None)
        self.numbers, self.X, self.weights = numbers, X, weights
        # Not a number until they are recalled.
        self.Y = np.full((len(X), model.n_outputs_), np.nan)
        self.Z = self._in_metric(X)
        borders = getattr(model, "borders_", None)
        if borders is None:
            self.centers = [center_of(self.Z[own]) for own in self.known]
            self.reaches = [self._reaches_of(k) for k in range(len(self.members))]
        else:
            self.centers = list(borders.centers)
            pairs = zip(borders.lenders.tolist(), borders.reaches.tolist())
            self.reaches = [{j: r for j, r in zip(*p) if j >= 0} for p in pairs]

    def continued(self):
        """The same ground, to change it further."""
        other = copy(self)
        for name in (*LISTS, "labels"):
            setattr(other, name, copy(getattr(self, name)))
        return other

    @property
    def is_spent(self):
        """Whether states have been let go, so that `model` cannot answer any more."""
        states = self.model.states_
        return isinstance(states, list) and any(state is None for state in states)

    def rows(self):
        """Rows that have not left, ascending."""
        is_there = np.zeros(len(self.X), dtype=bool)
        is_there[np.concatenate(self.clusters())] = True
        return np.flatnonzero(is_there)

    def _in_metric(self, X):
        rows = Rows(X, self.model.length_scales_, bounds=(-FARTHEST, FARTHEST))
        return np.asarray(without_far_cells(rows[:]))

    def _distances(self, k, rows):
        return np.sqrt(np.sum((self.Z[rows] - self.centers[k]) ** 2, axis=1))

    def _reaches_of(self, k):
        """The farthest row that subdomain k has borrowed, by lender."""
        borrowed = self.members[k][self.n_owned[k] :]
        lenders, which = np.unique(self.labels[borrowed], return_inverse=True)
        farthest = np.zeros(len(lenders))
        np.maximum.at(farthest, which.ravel(), self._distances(k, borrowed))
        return dict(zip(lenders.tolist(), farthest))

    def borders(self) -> Borders:
        """The borders as arrays."""
        width = max(map(len, self.reaches))
        lenders = np.full((len(self.reaches), width), -1)
        reaches = np.zeros(lenders.shape)
        for k, reach_of in enumerate(self.reaches):
            lenders[k, : len(reach_of)] = list(reach_of)
            reaches[k, : len(reach_of)] = list(reach_of.values())
        return Borders(np.array(self.centers), lenders, reaches)

    def clusters(self):
        """Rows that each subdomain owns."""
        return [members[:n] for members, n in zip(self.members, self.n_owned)]

    def cover(self) -> Cover:
        """The subdomains, by positions here."""
        return Cover(self.members, np.array(self.n_owned))

    def shape(self, model) -> CoverShape:
        """Sizes that a cover of so many rows is to have."""
        n_rows = sum(self.n_owned)
        if hasattr(model, "budget_choice_"):
            size, overlap = model.budget_choice_
            return CoverShape.at(n_rows, size, overlap, model.spread)
        return CoverShape.of(model, n_rows, len(self.Y.T))

    def set_members(self, k, own, borrowed):
        """Give subdomain k other rows; its state is to be fitted."""
        self.members[k] = np.concatenate([own, borrowed])
        self.n_owned[k], self.origin[k] = len(own), None

    def add(self, batch):
        """Let the rows of a batch join clusters, and subdomains that reach them."""
        new = np.arange(len(self.X), len(self.X) + len(batch.X))
        Z, centers = self._in_metric(batch.X), np.array(self.centers)
        owners = nearest_centers(Z, centers, 1, self.n_jobs)[0][:, 0].astype(np.intp)
        added = batch._asdict() | {"Z": Z, "labels": owners}
        for name in ("numbers", "X", "Y", "Z", "weights", "groups", "labels"):
            if getattr(self, name) is not None:  # groups may be
                setattr(self, name, np.concatenate([getattr(self, name), added[name]]))
        reach_of, receivers = np.full(len(self.members), -1.0), set(owners.tolist())
        for k, reaches in enumerate(self.reaches):
            if k not in receivers and receivers.isdisjoint(reaches):
                continue
            reach_of[list(reaches)] = list(reaches.values())
            reach = reach_of[owners]
            reach_of[list(reaches)] = -1.0
            near = np.flatnonzero(reach >= 0)
            is_reached = self._distances(k, new[near]) <= ROUNDING * reach[near]
            joins = new[near[is_reached]]
            owned = new[owners == k]
            if len(owned) or len(joins):
                own, borrowed = np.split(self.members[k], [self.n_owned[k]])
                own = np.concatenate([own, owned])
                self.set_members(k, own, np.concatenate([borrowed, joins]))

    def drop(self, rows):
        """Let rows leave; subdomains that own none any more end."""
        is_gone = np.zeros(len(self.X), dtype=bool)
        is_gone[rows] = True
        for k, members in enumerate(self.members):
            if is_gone[members].any():
                parts = np.split(members, [self.n_owned[k]])
                self.set_members(k, *(part[~is_gone[part]] for part in parts))
        left = [k for k, n in enumerate(self.n_owned) if n]
        place = {k: i for i, k in enumerate(left)}
        for name in LISTS:
            setattr(self, name, [getattr(self, name)[k] for k in left])
        for k, (own, old) in enumerate(zip(self.clusters(), self.reaches)):
            self.reaches[k] = {place[j]: r for j, r in old.items() if j in place}
            self.labels[own] = k

    def reshape(self, model):
        """Split what has grown too large, and cover it and its borrowers again."""
        shape, anew = self.shape(model), set()
        share = max(1.0, (1.0 - shape.overlap) * shape.size)
        n_before = len(self.members)
        for k in self.changed():
            n_owned, n_members = self.n_owned[k], len(self.members[k])
            is_crowded = n_before > 1 and n_owned > CROWDED * share
            if n_members > GROWN * shape.size or is_crowded:
                anew |= {k, *self._split(k, n_owned / share)}
                anew |= {i for i in range(n_before) if k in self.reaches[i]}
            elif GROWN * n_members < shape.size and shape.overlap > 0:
                anew.add(k)
        if anew:
            self._cover_again(np.array(sorted(anew)), shape)

    def _split(self, k, n_shares):
        """Cut cluster k into equal ones of about its share; numbers of the others."""
        own = self.members[k][: self.n_owned[k]]
        n_parts = min(len(own), max(2, int(np.ceil(n_shares - CEILING_GUARD))))
        partition = partition_rows(self.Z[own], n_parts, "kmeans", self.n_jobs, 0)
        parts = [own[part] for part in partition.clusters()]
        others = range(len(self.members), len(self.members) + len(parts) - 1)
        for i, part in zip([k, *others], parts):
            self.labels[part] = i
            if i != k:
                self.members.append(part)
                self.n_owned.append(len(part))
                self.origin.append(None)
                self.centers.append(self.centers[k])
                self.reaches.append({})
            self.set_members(i, part, part[:0])
            self.centers[i] = center_of(self.Z[part])
        return others

    def _cover_again(self, which, shape):
        """Choose the rows that subdomains borrow, by the rule of the cover."""
        own = self.clusters()
        options = shape.size, shape.overlap, shape.spread, which, self.n_jobs
        extended = extend_clusters(self.Z, own, np.array(self.centers), *options)
        for k, members in zip(which, extended):
            self.set_members(k, own[k], members[len(own[k]) :])
            self.reaches[k] = self._reaches_of(k)

    # -- what follows ----------------------------------------------------------------

    def outputs(self, rows):
        """Outputs of all rows, recalled for `rows`, each from its owner."""
        model, is_needed = self.model, np.zeros(len(self.X), dtype=bool)
        is_needed[rows] = np.isnan(self.Y[rows, 0])

        def recall(k):
            places = np.flatnonzero(is_needed[self.known[k]])
            recalled = model.machine_.recall(model.states_[k])
            return self.known[k][places], recalled.outputs(places)

        owners = ((k,) for k, own in enumerate(self.known) if is_needed[own].any())
        for places, values in run_tasks(recall, owners, self.n_jobs):
            self.Y[places] = values
        return self.Y

    def weights_of(self, rows):
        """Weights as machines take them: None where all rows of the model are alike."""
        return None if np.all(self.weights == 1.0) else self.weights[rows]

    def fit_states(self, changed):
        """States of the subdomains that changed, in order."""
        machine = self.model.machine_
        if not changed:  # a subdomain has ended that lent no rows
            return []
        Y = self.outputs(np.concatenate([self.members[k] for k in changed]))
        self._let_go()
        size = max(map(len, self.members))
        keep = machine.keeps_factors(len(self.members), size)

        def fit(k):
            rows, n_owned = self.members[k], self.n_owned[k]
            known = self.X[rows], Y[rows], self.weights_of(rows)
            return machine.fit_state(*known, n_owned, keep, self.left_out(rows))

        return list(run_tasks(fit, ((k,) for k in changed), self.n_jobs))

    def left_out(self, rows):
        """Groups that these rows are left out in; None if alone."""
        groups = None if self.groups is None else self.groups[rows]
        return self.model.machine_.groups_to_leave_out(groups, self.numbers[rows])

    def _let_go(self):
        """Forget states that will be replaced: their rows are known now."""
        states = self.model.states_
        if isinstance(states, list):
            for k in set(range(len(states))) - set(self.origin):
                states[k] = None

    def changed(self):
        """Subdomains whose states are to be fitted."""
        return [k for k, state in enumerate(self.origin) if state is None]

    def settle(self, model):
        """Fit what has changed, and give the model all that follows."""
        started, settled, changed = perf_counter(), self.model, self.changed()
        n_subdomains, shape = len(self.members), self.shape(model)
        places: list[Any] = list(self.origin)
        means = np.array([settled.router_.means[k or 0] for k in places])
        for k, state in zip(changed, self.fit_states(changed)):
            places[k], means[k] = state, self.Z[self.members[k]].mean(axis=0)
        left, whole = self.rows(), self.cover()
        if len(left) < len(self.X):
            whole = whole.compact()
        known = self.Z[left], whole, self.labels[left], means
        router = type(settled.router_).summarize(*known, self.n_jobs)
        # States in a store stay there.
        before, is_stored = settled.states_, hasattr(settled.states_, "replaced")
        states = (
            before.replaced(places)
            if is_stored
            else [before[p] if isinstance(p, int) else p for p in places]
        )
        machine = copy(settled.machine_)
        machine.calibrate(states, list(map(self.left_out, self.clusters())))
        model.states_, model.machine_, model.router_ = states, machine, router
        model.cover_ = whole.renumbered(self.numbers[left])
        model.borders_ = self.borders()
        model.n_subdomains_, model.subdomain_size_ = n_subdomains, shape.size
        model.n_lenders_ = shape._replace(n_subdomains=n_subdomains).n_lenders
        if self.groups is not None:
            model.groups_ = self.groups[left]
        took(model, started, f"fitting {len(changed)} subdomains again")


def took(model, started, what):
    """Count and log seconds that a model has learned."""
    seconds = perf_counter() - started
    spent = model.timings_.get("learning", 0.0) + seconds
    model.timings_ = {**model.timings_, "learning": spent}
    LOGGER.info("%s took %.2f s", what, seconds)
