"""Workers: many independent tasks on threads, with one BLAS thread each.

One task is one subdomain, or a few, so tasks are coarse and spend their time in BLAS,
NumPy and compiled loops, which release the interpreter lock; threads share the data and
copy nothing. BLAS gets one thread per worker, so the machine is never oversubscribed;
with one worker too, because its rounding depends on its number of threads, and results
must not depend on `n_jobs`. (At 800 rows a second thread gains a Cholesky factorisation
nothing.)
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import OpenBLASController, ThreadpoolController

# Tasks handed out before their results are wanted, for each worker.
LOOKAHEAD = 4


@cache
def _threadpools() -> ThreadpoolController:
    # Looking for the libraries takes milliseconds, so it is done once.
    return ThreadpoolController()


def _disown() -> None:
    """Let any thread limit OpenBLAS, not only the one that did so first.

    Since threadpoolctl 3.8 that thread owns the limit as long as it lives, and limits
    of others silently do nothing; but one that threads share is nobody's.
    """
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


class _SharedLimit:
    """One BLAS thread as long as anybody wants it.

    BLAS counts its threads once per process: of two that limit it at the same time, the
    one that ends first must not give the other its threads back.
    """

    def __init__(self):
        self.lock, self.n_holders = Lock(), 0

    def __enter__(self):
        with self.lock:
            if self.n_holders == 0:
                _disown()
                self.limit = _threadpools().limit(limits=1, user_api="blas")
            self.n_holders += 1

    def __exit__(self, *error):
        with self.lock:
            self.n_holders -= 1
            if self.n_holders == 0:
                _disown()
                self.limit.restore_original_limits()
                _disown()


_one_blas_thread = _SharedLimit()


@contextmanager
def one_thread_per_worker() -> Iterator[None]:
    """Hold BLAS and OpenMP at one thread, so that rounding depends on nothing else."""
    # OpenMP counts per thread, so whoever calls limits its own.
    with _one_blas_thread, _threadpools().limit(limits=1, user_api="openmp"):
        yield


def run_tasks(
    function: Callable[..., Any], tasks: Iterable[tuple], n_jobs: int | None = None
) -> Iterator[Any]:
    """Call ``function(*task)`` for every task, yielding results in the tasks' order.

    Parameters
    ----------
    function : callable
    tasks : iterable of tuples of arguments
        Consumed lazily, so a generator keeps few arguments alive at a time.
    n_jobs : int or None
        Threads: 1 if None (or what a joblib context says), -1 for all cores.

    Yields
    ------
    result of one task

    Examples
    --------
    >>> list(run_tasks(pow, [(2, 3), (3, 2)], n_jobs=2))
    [8, 9]
    """
    with one_thread_per_worker():
        n_workers = effective_n_jobs(n_jobs)
        if n_workers == 1:
            for task in tasks:
                yield function(*task)
            return

        with ThreadPoolExecutor(n_workers, initializer=_pin_openmp) as pool:
            waiting: deque[Future] = deque()
            try:
                for task in tasks:
                    if len(waiting) == LOOKAHEAD * n_workers:
                        yield waiting.popleft().result()
                    waiting.append(pool.submit(function, *task))
                while waiting:
                    yield waiting.popleft().result()
            finally:  # an error, or nobody wants the rest
                for future in waiting:
                    future.cancel()


def _pin_openmp() -> None:
    # An OpenMP limit holds only in the thread that sets it; worker threads end with the
    # loop, so nothing has to be restored in them.
    _threadpools().limit(limits=1, user_api="openmp")
