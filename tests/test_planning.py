"""A plan counts what a fit will make, keeps to budgets, and says when M or p are poor.

No test measures time: seconds come from rates that are given.
"""

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge

import overcover
from overcover import GP, OverlappingCoverRegressor, TwinGP, plan, store
from overcover.cover import SIZES, CoverShape, count_subdomains
from overcover.machines import base
from overcover.partition import MANY_CLUSTERS
from overcover.partition.shards import count_shards
from overcover.planning import (
    Budget,
    Line,
    PoorCoverWarning,
    Rates,
    auto_size,
    choice,
    measure,
)
from overcover.planning import rates as timing
from overcover.planning.rates import bytes_of

RATES = Rates(
    tuning=2e-11,
    partition=2e-11,
    cover=2e-11,
    machine=Line(1e-3, 5e-11),
    visit=1e-4,
    question=Line(1e-6, 1e-11),
    byte=1e-9,
    file=1e-3,
)
FIXED = GP(length_scale=1.5, noise=0.05, keep_factors=True, factor_dtype="float64")
LEAN = GP(length_scale=1.5, noise=0.05, keep_factors=False)
TWIN = TwinGP(1.5, 1.5, 0.05, 0.05, keep_factors=True)
ROWS = st.integers(1, 10**9)


def planned(n_samples, n_features=5, n_outputs=1, budget=None, **options):
    shape = n_samples, n_features, n_outputs
    return plan(*shape, budget, **{"rates": RATES, **options})


def rows_of(n, d, d_y):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    Y = np.sin(X @ rng.normal(size=(d, d_y)) / np.sqrt(d))
    return X, Y + 0.1 * rng.normal(size=Y.shape)


# -- what grows ------------------------------------------------------------------------


def n_shards_of(result):
    """In how many parts the rows of a plan are partitioned."""
    if result.n_subdomains <= MANY_CLUSTERS:
        return 1
    return count_shards(
        "auto", result.n_samples, result.n_features, result.n_subdomains
    )


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 10**8), more=st.integers(1, 10**8), size=st.sampled_from(SIZES))
def test_more_rows_never_take_less(n, more, size):
    options = {"subdomain_size": size, "overlap": 0.9, "n_queries": 100}
    for machine in (FIXED, LEAN):
        less = planned(n, machine=machine, **options)
        most = planned(n + more, machine=machine, **options)
        assert most.n_subdomains >= less.n_subdomains
        names, stages = ["disk", "disk_while_fitting"], ["tuning", "cover", "queries"]
        # Just past a border, rows in more shards are partitioned in less.
        if n_shards_of(most) == n_shards_of(less):
            names += ["memory", "memory_into_store"]
            stages += ["partition"]
        for name in names:
            assert getattr(most, name) >= 0.999 * getattr(less, name), name
        for stage in stages:
            assert most.seconds[stage] >= 0.999 * less.seconds[stage], stage
        if n > size:  # one subdomain of all rows may be a larger one
            assert most.seconds["machines"] >= 0.999 * less.seconds["machines"]


def test_the_machines_take_d_n_m_squared():
    """Past the size at which entries of a kernel matrix cost more than its factor."""
    few, more = (
        planned(10**9, subdomain_size=size, machine=LEAN).seconds["machines"]
        for size in (10**5, 2 * 10**5)
    )
    assert_allclose(more / few, 4, rtol=0.02)
    assert_allclose(few, 10 * 10**9 * 1e10 * RATES.machine.each, rtol=0.02)


def test_the_number_of_subdomains_is_that_of_the_cover():
    result = planned(30_000, subdomain_size=300, overlap=0.75)
    assert result.n_subdomains == count_subdomains(30_000, 300, 0.75) == 400


def test_threads_share_the_work():
    alone, four = (planned(10**5, n_jobs=n, n_queries=1000) for n in (1, 4))
    assert four.n_jobs == 4
    assert 0.25 < four.total_seconds / alone.total_seconds < 1
    assert four.seconds["machines"] < 0.4 * alone.seconds["machines"]


def test_writing_a_store_takes_its_time():
    options = {"subdomain_size": 400, "machine": FIXED}
    held, written = (planned(10**5, into_store=s, **options) for s in (False, True))
    slower = written.seconds["machines"] - held.seconds["machines"]
    n_bytes = RATES.byte * written.disk
    assert_allclose(slower, n_bytes + RATES.file * written.n_subdomains, rtol=0.05)


@pytest.mark.parametrize("machine", [FIXED, TWIN, KernelRidge()])
def test_known_hyperparameters_need_no_tuning(machine):
    assert planned(10**5, machine=machine).seconds["tuning"] == 0


def test_tuning_depends_on_what_is_tuned_and_on_rows_up_to_a_bound():
    few, more, many, most = (
        planned(n).seconds["tuning"] for n in (5_000, 20_000, 10**6, 10**7)
    )
    assert 1 < more / few < 2 and many == most < 20 * few  # neighbours are sought
    each = planned(5_000, 5, 3, machine=GP(per_output=True)).seconds["tuning"]
    assert_allclose(each, 3 * few)
    assert planned(500).seconds["tuning"] < few
    small, large = (
        planned(5_000, machine="tgp", subdomain_size=size).seconds["tuning"]
        for size in (200, 800)
    )
    assert small < large


# -- bytes are those of real models ----------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "d_y", "tolerance"),
    [(FIXED, 1, 0.03), (LEAN, 3, 0.03), (TWIN, 2, 0.2)]
    + [(clone(FIXED).set_params(per_output=True), 2, 0.03)]
    + [(clone(FIXED).set_params(factor_dtype=t), 1, 0.03) for t in ("float32", "auto")],
)
def test_bytes_on_disk_and_of_states_are_those_of_a_model(
    machine, d_y, tolerance, tmp_path
):
    X, Y = rows_of(1200, 4, d_y)
    result = planned(1200, 4, d_y, machine=machine, subdomain_size=150, overlap=0.8)
    model = OverlappingCoverRegressor(
        machine, subdomain_size=150, overlap=0.8, random_state=0
    ).fit(X, Y)
    assert result.n_subdomains == model.n_subdomains_
    model.save(tmp_path / "model.ocm")
    files = [f for f in (tmp_path / "model.ocm").rglob("*") if f.is_file()]
    assert_allclose(result.disk, sum(f.stat().st_size for f in files), rtol=0.2)
    states = sum(bytes_of(state) for state in model.states_)
    overhead = 8 * model.n_subdomains_ * 150 + 2632 * model.n_subdomains_
    assert_allclose(result.disk - overhead, states, rtol=tolerance)


def test_factors_are_planned_in_the_precision_that_they_will_have():
    """Single, but for machines that own all their rows: see `GP.factor_dtype`."""
    for overlap, same_as in ((0.9, "float32"), (0.0, "float64")):
        options = {"subdomain_size": 400, "overlap": overlap}
        result, known = (
            planned(10**5, machine=clone(FIXED).set_params(factor_dtype=t), **options)
            for t in ("auto", same_as)
        )
        assert result.memory == known.memory and result.disk == known.disk
    alone = {"subdomain_size": 400, "machine": clone(FIXED)}
    alone["machine"].set_params(factor_dtype="auto")
    assert planned(400, **alone).disk == planned(400, overlap=0.0, **alone).disk


@pytest.mark.parametrize("machine", [FIXED, LEAN])
def test_a_fit_takes_about_the_memory_that_was_planned(machine):
    X, Y = rows_of(3000, 20, 1)
    options = {"subdomain_size": 200, "overlap": 0.9}
    model = OverlappingCoverRegressor(machine, random_state=0, **options)
    model.fit(X[:400], Y[:400])  # loads what is compiled
    tracemalloc.start()
    try:
        model.fit(X, Y)
        peak = tracemalloc.get_traced_memory()[1] + X.nbytes + Y.nbytes
    finally:
        tracemalloc.stop()
    result = planned(3000, 20, machine=machine, **options)
    assert 0.6 < result.memory / peak < 1.6
    assert result.memory_into_store < result.memory


def test_a_store_holds_states_that_memory_need_not():
    result = planned(10**6, machine=FIXED, subdomain_size=800, overlap=0.9)
    assert result.memory > result.disk > 30e9
    assert result.memory_into_store < 1e9
    assert result.disk_while_fitting > result.disk


def test_large_factors_are_not_kept(monkeypatch):
    monkeypatch.setattr(base, "memory_of_computer", lambda: 64e9)
    assert planned(50_000, subdomain_size=800).keeps_factors
    large = planned(10**6, subdomain_size=800)
    assert not large.keeps_factors
    assert large.memory < 5e9
    with_queries = planned(10**6, subdomain_size=800, n_queries=10)
    kept = planned(10**6, subdomain_size=800, n_queries=10, machine=FIXED)
    assert with_queries.seconds["queries"] > kept.seconds["queries"]


# -- budgets ---------------------------------------------------------------------------


LIMIT = st.floats(1, 1e7)
BUDGETS = st.builds(
    Budget,
    seconds=LIMIT | st.just(np.inf),
    memory=LIMIT.map(lambda b: 1e5 * b) | st.just(np.inf),
    disk=LIMIT.map(lambda b: 1e6 * b) | st.just(np.inf),
)


@settings(max_examples=60, deadline=None)
@given(n=ROWS, budget=BUDGETS, into_store=st.booleans())
def test_what_is_chosen_is_within_the_budget_or_says_what_is_not(n, budget, into_store):
    result = planned(n, budget=budget, into_store=into_store, machine=FIXED)
    assert 1 <= result.subdomain_size <= n
    assert result.overlap in (0.9, 0.75, 0.5)
    above = [
        name
        for name in Budget._fields
        if getattr(result.needs, name) > getattr(budget, name)
    ]
    assert result.fits == (not above)
    if not result.fits:
        assert result.binding == ", ".join(above)
        assert "Does not fit" in str(result)


@settings(max_examples=60, deadline=None)
@given(
    n=ROWS,
    budget=BUDGETS,
    factors=st.tuples(*[st.floats(1, 100)] * 3),
    machine=st.sampled_from([FIXED, LEAN]),
)
def test_a_larger_budget_never_chooses_less(n, budget, factors, machine):
    larger = Budget(*(limit * factor for limit, factor in zip(budget, factors)))
    less, more = (planned(n, budget=b, machine=machine) for b in (budget, larger))
    assert more.subdomain_size >= less.subdomain_size
    assert more.overlap >= less.overlap
    assert more.fits >= less.fits


def test_the_limit_that_keeps_m_back_is_named():
    by_time = planned(10**5, budget={"seconds": 90, "memory": "1TB"})
    assert by_time.fits and by_time.binding == "seconds"
    by_memory = planned(10**5, machine=FIXED, budget={"seconds": "1d", "memory": "1GB"})
    assert by_memory.fits and by_memory.binding == "memory"
    assert "more would exceed the memory" in str(by_memory)
    by_disk = planned(10**5, machine=FIXED, budget={"disk": "1GB"}, into_store=True)
    assert by_disk.fits and by_disk.binding == "disk"
    ample = planned(10**5, machine=FIXED, budget={"seconds": "10d", "memory": "1TB"})
    assert (ample.subdomain_size, ample.overlap, ample.binding) == (1600, 0.9, "")


def test_the_next_larger_size_would_not_fit():
    budget = Budget(seconds=90.0)
    result = planned(10**5, budget=budget)
    larger = SIZES[SIZES.index(result.subdomain_size) + 1]
    next_one = planned(10**5, subdomain_size=larger, overlap=0.9, budget=budget)
    assert result.fits and not next_one.fits


def test_overlap_is_given_up_last():
    enough = planned(10**6, budget=10**7).seconds
    result = planned(10**6, machine=FIXED, budget={"memory": 1.5e9})
    assert result.overlap < 0.9
    assert enough["machines"] > result.seconds["machines"]


def test_nothing_fits_and_what_is_needed_is_said():
    result = planned(10**6, machine=FIXED, budget={"seconds": 1, "memory": "10MB"})
    assert not result.fits
    assert result.binding == "seconds, memory"
    text = str(result)
    assert "fit needs" in text and "of memory" in text and "fit_into" in text
    enough = {
        "seconds": 1.01 * result.needs.seconds,
        "memory": 1.01 * result.needs.memory,
    }
    assert planned(10**6, machine=FIXED, budget=enough).fits


def test_a_plan_can_be_read():
    text = str(planned(10**5, 10, 2, n_queries=500, machine="tgp"))
    for words in ("100,000 x 10 rows, 2 outputs, TwinGP", "800 rows, 90 % borrowed"):
        assert words in text
    for stage in ("tuning", "partition", "cover", "machines", "queries", "all of it"):
        assert stage in text


def test_times_and_sizes_are_understood():
    for time, seconds in ((90, 90), ("90", 90), ("1.5m", 90), ("1h30m", 5400)):
        assert Budget.of(time) == Budget.of({"seconds": time}) == Budget(seconds)
    sizes = {"2 GB": 2e9, "2G": 2e9, 2e9: 2e9, "1GiB": 2**30, "1 KiB": 1024, 512: 512}
    for size, n_bytes in sizes.items():
        limits = Budget.of({"memory": size, "disk": size})
        assert limits == Budget(memory=n_bytes, disk=n_bytes)
    assert Budget.of("1h") == Budget(seconds=3600) == Budget.of(Budget(seconds=3600))
    assert Budget.of(None) == Budget()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": "soon"}, "is no time"),
        ({"budget": 0}, "too little"),
        ({"budget": {"memory": "much"}}, "is no size"),
        ({"budget": {"hours": 2}}, "seconds, memory and disk"),
        ({"budget": [1, 2]}, "seconds, memory and disk"),
        ({"n_samples": 0}, "n_samples=0 must be an integer >= 1"),
        ({"n_samples": 1.5}, "n_samples=1.5 must be an integer"),
        ({"n_features": -1}, "n_features=-1"),
        ({"n_queries": -1}, "n_queries=-1"),
        ({"subdomain_size": "large"}, "or 'auto'"),
        ({"subdomain_size": 0}, "subdomain_size=0 must be an integer >= 1"),
        ({"overlap": 1.0}, "overlap=1.0 must be at least 0 and below 1"),
    ],
)
def test_what_makes_no_sense_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        planned(**{"n_samples": 100, **options})


# -- "auto" ----------------------------------------------------------------------------


@given(n=ROWS, p=st.floats(0, 0.95), d_y=st.integers(1, 50), per_output=st.booleans())
def test_auto_keeps_its_promises(n, p, d_y, per_output):
    size = auto_size(n, d_y, p, GP(per_output=per_output))
    assert 1 <= size <= n
    members = n * (d_y if per_output else 1) / (1 - p)
    if size < n:
        assert 2 * size <= n
        assert members * size**2 <= 1e12 or size <= 400
        assert 4 * members * size <= 4 * 2**30 or size <= 400
    else:
        assert n**3 <= 1.001 * n * 800**2 / (1 - p)
    must = auto_size(n, d_y, p, GP(per_output=per_output, keep_factors=True))
    assert 4 * members * must <= 4 * 2**30 or must <= 100 or must == n


def test_auto_is_the_same_number_given_by_hand():
    X, y = rows_of(1500, 3, 1)
    machine = GP(length_scale=2.0, noise=0.05)
    options = {"overlap": 0.5, "random_state": 0}
    auto = OverlappingCoverRegressor(machine, subdomain_size="auto", **options)
    auto.fit(X, y[:, 0])
    assert auto.subdomain_size == "auto"
    assert auto.subdomain_size_ == auto_size(1500, 1, 0.5) == 600
    given = OverlappingCoverRegressor(machine, subdomain_size=600, **options)
    assert_array_equal(auto.predict(X), given.fit(X, y[:, 0]).predict(X))
    assert given.subdomain_size_ == 600
    assert planned(1500, 3, overlap=0.5, subdomain_size="auto").subdomain_size == 600


@pytest.mark.parametrize("n", [500, 1500, 20_000, 10**6])
def test_without_a_budget_what_is_planned_is_what_the_defaults_fit(n):
    shape, result = CoverShape.of(OverlappingCoverRegressor(), n), planned(n, 8)
    assert result.subdomain_size == shape.size == min(800, n)
    assert (result.overlap, result.n_subdomains) == (shape.overlap, shape.n_subdomains)
    assert planned(n, 8, overlap=0.5).subdomain_size == result.subdomain_size


def test_few_rows_are_one_subdomain():
    X, y = rows_of(300, 3, 1)
    model = OverlappingCoverRegressor(LEAN, subdomain_size="auto").fit(X, y)
    assert (model.n_subdomains_, model.subdomain_size_) == (1, 300)


def test_another_word_is_refused():
    with pytest.raises(ValueError, match="subdomain_size='large' must be a number"):
        OverlappingCoverRegressor(subdomain_size="large").fit([[0.0], [1.0]], [0, 1])


def test_auto_passes_a_store_and_is_resumed(tmp_path):
    X, y = rows_of(1000, 3, 1)
    options = {"subdomain_size": "auto", "overlap": 0.0, "random_state": 0}
    model = OverlappingCoverRegressor(FIXED, **options)
    store.fit_into(model, X[:, :2], y, tmp_path / "into.ocm")
    store.fit_into(model, X[:, :2], y, tmp_path / "into.ocm")
    fitted = OverlappingCoverRegressor(FIXED, **options).fit(X[:, :2], y)
    fitted.save(tmp_path / "saved.ocm")
    for path in (tmp_path / "into.ocm", tmp_path / "saved.ocm"):
        loaded = overcover.load(path)
        assert loaded.subdomain_size == "auto"
        assert loaded.subdomain_size_ == fitted.subdomain_size_
        assert_array_equal(loaded.predict(X[:, :2]), fitted.predict(X[:, :2]))
        assert store.inspect(path)["subdomain_size"] == fitted.subdomain_size_


# -- after the fit ---------------------------------------------------------------------


def test_a_fitted_model_says_what_came_of_it(tmp_path):
    X, y = rows_of(400, 3, 1)
    model = OverlappingCoverRegressor(FIXED, subdomain_size=300, random_state=0)
    with pytest.raises(AttributeError, match="after fit"):
        _ = model.plan_
    result = model.fit(X, y).plan_
    assert result.subdomain_size == 300
    assert result.overlap == 1 - result.n_samples / (300 * result.n_subdomains)
    assert result.n_subdomains == model.n_subdomains_ == 14
    assert result.seconds == model.timings_
    assert any("75 % of all rows" in finding.text for finding in result.findings)
    assert "75 % of all rows" in str(result)
    model.save(tmp_path / "model.ocm")
    assert overcover.load(tmp_path / "model.ocm").plan_.findings == result.findings


def fit_quietly(model, *data):
    """Fit; any warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.fit(*data)


def test_fewer_rows_than_features_are_warned_of():
    X, y = rows_of(120, 20, 1)
    with pytest.warns(PoorCoverWarning, match="20 features.*subdomain_size=100"):
        OverlappingCoverRegressor(LEAN, subdomain_size=5, overlap=0.0).fit(X, y)
    fit_quietly(OverlappingCoverRegressor(LEAN, subdomain_size=6, overlap=0.0), X, y)


def test_a_subdomain_that_owns_less_than_two_rows_is_warned_of():
    X, y = rows_of(101, 2, 1)
    with pytest.warns(PoorCoverWarning, match="less than two rows.* 100 or more"):
        OverlappingCoverRegressor(LEAN, subdomain_size=15, overlap=0.9).fit(X, y)
    fit_quietly(OverlappingCoverRegressor(LEAN, subdomain_size=15), X[:100], y[:100])
    fit_quietly(OverlappingCoverRegressor(LEAN, subdomain_size=20), X, y)


def test_many_small_subdomains_are_warned_of(monkeypatch):
    monkeypatch.setattr("overcover.planning.findings.MANY", 10)
    X, y = rows_of(200, 2, 1)
    with pytest.warns(PoorCoverWarning, match="costs more than the machines"):
        OverlappingCoverRegressor(LEAN, subdomain_size=50, overlap=0.75).fit(X, y)


def test_states_larger_than_memory_are_warned_of_where_they_are_held(
    monkeypatch, tmp_path
):
    monkeypatch.setattr("overcover.planning.findings.memory_of_computer", lambda: 1e5)
    X, y = rows_of(300, 2, 1)
    model = OverlappingCoverRegressor(FIXED, subdomain_size=60, overlap=0.9)
    with pytest.warns(PoorCoverWarning, match="held 10 times.*fit_into"):
        model.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.fit_into(model, X, y, tmp_path / "model.ocm")


@pytest.mark.parametrize("n", [1, 2, 30, 801, 1000, 1700, 5000])
@pytest.mark.parametrize("d", [1, 10, 300])
def test_defaults_never_warn(n, d):
    """Counts alone decide, so that a fit need not be result."""
    from overcover.planning.findings import poor_choices

    for size in (800, "auto"):
        model = OverlappingCoverRegressor(subdomain_size=size)
        assert list(poor_choices(CoverShape.of(model, n), d, 1, GP())) == []


# -- measuring -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "machine", [GP(), TwinGP(), FIXED, KernelRidge(), GP(per_output=True)]
)
def test_every_stage_is_measured_once(machine, monkeypatch):
    small = {"SIZES": (20, 40), "N_PARTITIONED": 300, "N_COVERED": 60, "BATCH": 5}
    for name, value in small.items():
        monkeypatch.setattr(timing, name, value)
    rates = measure(machine, 3, 2)
    assert measure(clone(machine), 3, 2) is rates  # remembered by its parameters
    assert rates.machine(1e6) > 0 and rates.question(1e6) > 0
    assert min(rates.tuning, rates.partition, rates.cover, rates.file) > 0
    result = plan(10**4, 3, 2, machine=machine, rates=rates, n_queries=10)
    assert np.isfinite(result.total_seconds)


def test_lines_pass_two_points_and_have_no_negative_terms():
    assert Line.through((10.0, 3.0), (30.0, 7.0)) == Line(fixed=1.0, each=0.2)
    for seconds in ((5.0, 4.0), (1.0, 9.0), (1.0, 2.0)):
        line = Line.through(*zip((100.0, 400.0), seconds))
        assert min(line) >= 0
        assert line(1600.0) >= line(800.0) > 0


# -- budgets of a fit ------------------------------------------------------------------


@pytest.fixture
def fixed_rates(monkeypatch):
    """What the operations of a computer cost, without measuring."""
    monkeypatch.setattr("overcover.planning.choice.measure", lambda *_: RATES)


@pytest.mark.parametrize("budget", [1.0, "10s", {"memory": "1GB"}])
def test_a_fit_within_a_budget_is_the_fit_of_the_plan(budget, fixed_rates):
    X, y = rows_of(700, 3, 1)
    options = {"machine": FIXED, "random_state": 0}
    model = OverlappingCoverRegressor(**options).fit(X, y, budget=budget)
    best = planned(*X.shape, budget=budget, machine=FIXED)
    sizes = {"subdomain_size": best.subdomain_size, "overlap": best.overlap}
    same = OverlappingCoverRegressor(**options, **sizes).fit(X, y)
    assert model.subdomain_size_ == best.subdomain_size
    assert_array_equal(model.predict(X), same.predict(X))
    assert model.get_params()["subdomain_size"] == 800  # a parameter stays as it was


def test_a_plan_for_a_fit_counts_the_time_of_measuring(fixed_rates, monkeypatch):
    clock = iter([0.0, 5.0])
    monkeypatch.setattr(choice.time, "perf_counter", clock.__next__)
    best = choice.plan_within(OverlappingCoverRegressor(FIXED), (700, 3, 1), 5.0)
    assert not best.fits and best.exceeded(best.budget) == ["seconds"]


def test_a_fit_says_when_its_budget_is_too_little(fixed_rates):
    X, y = rows_of(700, 3, 1)
    model = OverlappingCoverRegressor(FIXED, random_state=0)
    with pytest.warns(PoorCoverWarning, match="Does not fit in .*sensible fit needs"):
        model.fit(X, y, budget=1e-4)
    with pytest.raises(ValueError, match=r"chooses subdomain_size, .* set to 100"):
        model.set_params(subdomain_size=100).fit(X, y, budget=10)
