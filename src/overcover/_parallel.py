"""Workers: many independent tasks on threads, with one BLAS thread each.

BLAS, NumPy and compiled loops release the interpreter lock, so threads run in parallel
and share the data without copies. BLAS always has one thread per worker, in fits and in
predictions: its rounding depends on its number of threads, whereas results must not
depend on `n_jobs`. At 800 rows, a second thread does not speed up a Cholesky
factorisation; if other processes need the cores, it makes small products ten times
slower. Only a full model of many rows leaves the number to BLAS, see `threads_for`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import OpenBLASController, ThreadpoolController

# From so many rows or queries on, a full model gains by several BLAS threads.
MANY_ROWS = 4000
# Tasks per worker that are submitted before the caller takes their results.
LOOKAHEAD = 4


@cache
def _threadpools() -> ThreadpoolController:
    # The search for the libraries takes milliseconds, so it runs once.
    return ThreadpoolController()


def _disown() -> None:
    """Allow every thread to limit OpenBLAS, not only the first one that did.

    Since threadpoolctl 3.8 the first thread owns the limit as long as it lives, and
    limits by other threads silently have no effect.
    """
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


class _SharedLimit:
    """One BLAS thread as long as any holder needs the limit.

    The limit applies to the whole process: when one of two holders ends, it must not
    remove the limit of the other.
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
    """Limit BLAS and OpenMP to one thread, so that rounding is always the same."""
    # An OpenMP limit holds in the thread that sets it.
    with _one_blas_thread, _threadpools().limit(limits=1, user_api="openmp"):
        yield


def threads_for(n_rows: int):
    """A context for a full model: one BLAS thread, or as many as it likes for many."""
    return one_thread_per_worker() if n_rows < MANY_ROWS else nullcontext()


def run_tasks(
    function: Callable[..., Any], tasks: Iterable[tuple], n_jobs: int | None = None
) -> Iterator[Any]:
    """Call ``function(*task)`` for every task; yield results in the order of tasks.

    Tasks are consumed lazily, so a generator keeps few arguments in memory at a time.
    `n_jobs` threads: 1 if None (or the number of a joblib context), -1 for all cores.

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
            finally:  # after an error, or when the caller stops early
                for future in waiting:
                    future.cancel()


def _pin_openmp() -> None:
    # Worker threads end with the loop, so their limit needs no reset.
    _threadpools().limit(limits=1, user_api="openmp")
