"""Progress of a fit: scikit-learn callbacks, seconds per stage, a log, maybe a bar."""

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
        self.task = self.bar = None

    @contextmanager
    def stage(self, name, n_tasks=0) -> Iterator[None]:
        """Time a stage; `track` its tasks inside, if it has any."""
        started = time.perf_counter()
        self.task = self.root.subcontext(name, max_subtasks=n_tasks)
        self.task.call_on_fit_task_begin(estimator=self.estimator)
        self.bar = open_bar(name, n_tasks) if self.verbose else None
        try:
            yield
        finally:
            if self.bar is not None:
                self.bar.close()
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
            if self.bar is not None:
                self.bar.advance()
            yield result

    def finish(self):
        """Tell the callbacks that the fit is complete."""
        self.root.call_on_fit_task_end(estimator=self.estimator)


class _RichBar:
    def __init__(self, progress, name, n_tasks):
        self.progress = progress
        self.progress.start()
        self.id = progress.add_task(name, total=n_tasks or None)
        self.total = n_tasks

    def advance(self, n=1):
        self.progress.advance(self.id, n)

    def close(self):
        self.progress.update(self.id, total=self.total or 1, completed=self.total or 1)
        self.progress.stop()


class _PlainBar:
    def __init__(self, name, n_tasks):
        self.name, self.started = name, time.perf_counter()
        print(f"{name} ...", file=sys.stderr, flush=True)

    def advance(self, n=1):
        pass

    def close(self):
        seconds = time.perf_counter() - self.started
        print(f"{self.name} done in {seconds:.1f} s", file=sys.stderr, flush=True)


def open_bar(name, n_tasks, as_share=False):
    """A bar on standard error, lines without rich; `n_tasks` is 0 if unknown."""
    try:
        from rich import console, progress
    except ImportError:
        return _PlainBar(name, n_tasks)
    columns = [progress.TextColumn("{task.description:<10}"), progress.BarColumn()]
    columns += [progress.TimeElapsedColumn()]
    if n_tasks:
        kind = progress.TaskProgressColumn if as_share else progress.MofNCompleteColumn
        columns += [kind(), progress.TimeRemainingColumn()]
    bar = progress.Progress(*columns, console=console.Console(stderr=True))
    return _RichBar(bar, name, n_tasks)
