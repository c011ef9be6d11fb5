"""Workers keep the order, take tasks as they go, and hide no exception."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from threadpoolctl import threadpool_info, threadpool_limits

from overcover import GP, AnyRegressor, OverlappingCoverRegressor
from overcover._parallel import MANY_ROWS, one_thread_per_worker, run_tasks

each_n_jobs = pytest.mark.parametrize("n_jobs", [None, 1, 2, 3, -1])


@each_n_jobs
def test_results_come_in_the_order_of_the_tasks(n_jobs):
    pause = threading.Event()

    def work(i):
        pause.wait(0.002 * (i % 3))  # so that later tasks may finish first
        return i * i

    for n_tasks in (50, 0):
        results = run_tasks(work, ((i,) for i in range(n_tasks)), n_jobs)
        assert list(results) == [i * i for i in range(n_tasks)]


def test_one_worker_takes_a_task_only_when_its_result_is_wanted():
    taken = []

    def tasks():
        for i in range(10):
            taken.append(i)
            yield (i,)

    results = run_tasks(abs, tasks(), n_jobs=1)
    assert taken == []
    assert next(results) == 0
    assert taken == [0]
    assert next(results) == 1
    assert taken == [0, 1]
    results.close()


def test_few_arguments_are_alive_at_a_time():
    lock, alive, most = threading.Lock(), 0, 0

    def tasks():
        nonlocal alive, most
        for i in range(200):
            with lock:
                alive += 1
                most = max(most, alive)
            yield (i,)

    def work(i):
        nonlocal alive
        with lock:
            alive -= 1
        return i

    assert list(run_tasks(work, tasks(), n_jobs=2)) == list(range(200))
    assert most <= 20


@each_n_jobs
def test_an_exception_reaches_the_caller(n_jobs):
    def work(i):
        if i == 3:
            raise ZeroDivisionError("the third")
        return i

    with pytest.raises(ZeroDivisionError, match="the third"):
        list(run_tasks(work, ((i,) for i in range(10)), n_jobs))


@each_n_jobs
def test_an_exception_in_the_tasks_reaches_the_caller(n_jobs):
    def tasks():
        yield (1,)
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        list(run_tasks(abs, tasks(), n_jobs))


def threads(kind):
    """Threads of every loaded library of a kind, "blas" or "openmp"."""
    libraries = threadpool_info()
    return [one["num_threads"] for one in libraries if one["user_api"] == kind]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("kind", ["blas", "openmp"])
def test_libraries_have_one_thread_while_tasks_run_and_theirs_again_after(kind, n_jobs):
    with threadpool_limits(2, kind):
        before = threads(kind)
        assert set(before) == {2}
        during = run_tasks(lambda _: threads(kind), ((i,) for i in range(4)), n_jobs)
        assert list(during) == [[1] * len(before)] * 4
        assert threads(kind) == before


def test_libraries_have_their_threads_again_after_an_error():
    with threadpool_limits(2, "blas"):
        with pytest.raises(ValueError, match="stop"), one_thread_per_worker():
            raise ValueError("stop")
        assert set(threads("blas")) == {2}


@pytest.fixture
def other_thread():
    """Calls functions in a thread that lives on, as that of a server does."""
    with ThreadPoolExecutor(1) as pool:
        yield lambda function, *args: pool.submit(function, *args).result()


def test_a_thread_that_was_first_does_not_own_the_limit(other_thread):
    def limited():
        with one_thread_per_worker():
            return threads("blas")

    with threadpool_limits(2, "blas"):
        before = threads("blas")
        for call in (other_thread, lambda function: function()) * 2:
            assert set(call(limited)) == {1}
            assert threads("blas") == before


def test_the_limit_ends_in_whatever_thread(other_thread):
    with threadpool_limits(2, "blas"):
        before = threads("blas")
        first, second = one_thread_per_worker(), one_thread_per_worker()
        other_thread(first.__enter__)
        second.__enter__()
        other_thread(first.__exit__, None, None, None)
        assert set(threads("blas")) == {1}
        second.__exit__(None, None, None)
        assert threads("blas") == before


class Recorder(RegressorMixin, BaseEstimator):
    """Notes how many BLAS threads there are while it is fitted and predicts."""

    def __init__(self, numbers):
        self.numbers = numbers

    def __sklearn_clone__(self):
        return self

    def fit(self, X, y):
        self.numbers.extend(threads("blas"))
        return self

    def predict(self, X):
        self.numbers.extend(threads("blas"))
        return np.zeros(len(X))


@pytest.mark.parametrize("in_cover", [True, False])
def test_fits_and_predictions_have_one_blas_thread_per_worker(in_cover):
    numbers = []
    X = np.random.default_rng(0).normal(size=(60, 2))
    machine = AnyRegressor(Recorder(numbers))
    cover = OverlappingCoverRegressor(machine, subdomain_size=30, random_state=0)
    with threadpool_limits(3, user_api="blas"):
        (cover if in_cover else machine).fit(X, X[:, 0]).predict(X)
        assert set(threads("blas")) == {3}
    assert len(numbers) > 1 and set(numbers) == {1}


def test_scales_are_chosen_with_one_blas_thread(monkeypatch):
    numbers, fit_state = [], GP.fit_state

    def noting(self, *args, **kwargs):
        numbers.extend(threads("blas"))
        return fit_state(self, *args, **kwargs)

    monkeypatch.setattr(GP, "fit_state", noting)
    X = np.random.default_rng(0).normal(size=(60, 2))
    with threadpool_limits(3, user_api="blas"):
        OverlappingCoverRegressor(random_state=0).fit(X, np.exp(2 * X[:, 0]))
    assert len(numbers) > 1 and set(numbers) == {1}


def test_a_full_model_of_many_rows_leaves_the_number_of_threads_to_blas():
    numbers = []
    X = np.random.default_rng(0).normal(size=(MANY_ROWS, 1))
    with threadpool_limits(3, user_api="blas"):
        AnyRegressor(Recorder(numbers)).fit(X, X[:, 0]).predict(X)
    assert set(numbers) == {3}
