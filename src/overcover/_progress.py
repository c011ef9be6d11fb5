"""Progress of a fit: scikit-learn callbacks, seconds per stage, a log, maybe a bar."""

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from sklearn.callback import CallbackSupportMixin, with_callbacks

__all__ = ["CallbackSupportMixin", "FitProgress", "with_callbacks"]

LOGGER = logging.getLogger("overcover")


class FitProgress:
    """Stages of one fit, which runs under `with_callbacks`; bars if `verbose`."""

    def __init__(self, estimator, n_stages, verbose=0):
        self.estimator, self.verbose = estimator, verbose
        self.seconds: dict[str, float] = {}
        self.root = estimator._init_callback_context(max_subtasks=n_stages)
        self.root.call_on_fit_task_begin(estimator=estimator)
        self.task, self.advance = None, lambda: None

    @contextmanager
    def stage(self, name, n_tasks=0) -> Iterator[None]:
        """Time a stage; `track` its tasks inside, if it has any."""
        started = time.perf_counter()
        self.task = self.root.subcontext(name, max_subtasks=n_tasks)
        self.task.call_on_fit_task_begin(estimator=self.estimator)
        with bar(name, n_tasks, is_shown=self.verbose) as self.advance:
            yield
        self.task.call_on_fit_task_end(estimator=self.estimator)
        self.seconds[name] = time.perf_counter() - started
        LOGGER.info("%s took %.2f s", name, self.seconds[name])

    def track(self, results: Iterable[Any]) -> Iterator[Any]:
        """Yield the results; each marks one completed task of the stage."""
        assert self.task is not None
        for result in results:
            subtask = self.task.subcontext("subdomain")
            subtask.call_on_fit_task_begin(estimator=self.estimator)
            subtask.call_on_fit_task_end(estimator=self.estimator)
            self.advance()
            yield result

    def finish(self):
        """Tell the callbacks that the fit is complete."""
        self.root.call_on_fit_task_end(estimator=self.estimator)


@contextmanager
def bar(name, n_tasks=0, as_share=False, is_shown=True):
    """A bar on standard error, lines without rich; yields a function to advance it."""
    if not is_shown:
        yield lambda n=1: None
        return
    try:
        from rich import console, progress
    except ImportError:
        started = time.perf_counter()
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            yield lambda n=1: None
        finally:
            seconds = time.perf_counter() - started
            print(f"{name} done in {seconds:.1f} s", file=sys.stderr, flush=True)
        return
    columns = [progress.TextColumn("{task.description:<10}"), progress.BarColumn()]
    columns += [progress.TimeElapsedColumn()]
    if n_tasks:
        kind = progress.TaskProgressColumn if as_share else progress.MofNCompleteColumn
        columns += [kind(), progress.TimeRemainingColumn()]
    with progress.Progress(*columns, console=console.Console(stderr=True)) as shown:
        task = shown.add_task(name, total=n_tasks or None)
        try:
            yield partial(shown.advance, task)
        finally:
            shown.update(task, total=n_tasks or 1, completed=n_tasks or 1)
