"""Rows that arrive in batches: a model that learns on against a fit at once.

    python benchmarks/stream.py [--quick] [--rows 36000] [--batch 1000] [--single 10]

The first rows are fitted, the others learned in batches. After each, `advise` is asked,
and `retune` called if it says so, as a user would. Halfway the model is saved, loaded,
and goes on from the store. Some batches are followed by a query, for which the machines
that have got rows since the last one are fitted again. At the end, single rows are
learned one by one, each followed by a query. The rival is a fit of all rows at once,
with the same parameters. Errors are those of test rows, relative to the deviation
of the outputs. Memory is what belongs to the process alone at its peak during a batch,
or a query, beyond what it held before.

Two ratios say how much cheaper learning is than fitting anew: that of a batch, seconds
of the fit over seconds of a batch with its share of the queries; and that of a row
which comes alone.
"""

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

import _common
from _common import note, print_table, timed, watched_memory
from overcover import OverlappingCoverRegressor, load
from overcover.advice import advise


class Settings(NamedTuple):
    """One stream."""

    n_rows: int = 36_000
    n_first: int = 4_000
    n_batch: int = 1_000
    size: int = 800
    n_single: int = 10
    n_test: int = 4_000
    n_unasked: int = 8  # batches for every query


QUICK = Settings(900, 500, 100, 60, 2, 200, 2)


def error_of(model, data):
    """Root mean squared error of the test rows, in standard units."""
    return float(np.sqrt(np.mean((model.predict(data.X_test) - data.Y_test) ** 2)))


def learn_batch(model, X, Y, query=None):
    """A row of the table: what one batch takes, and a query after it."""
    with watched_memory() as used:
        _, seconds = timed(model.partial_fit, X, Y)
    row = {
        "rows": model.n_samples_seen_,
        "seconds": seconds,
        "megabytes": (used.peak - used.start) / 1e6,
        "error_over_std": float(np.sqrt(model.promise_.error_sq)),
    }
    if query is None:
        return row
    with watched_memory() as used:
        _, seconds = timed(model.predict, query, return_std=True)
    return row | {
        "query_seconds": seconds,
        "query_megabytes": (used.peak - used.start) / 1e6,
        "subdomains": model.n_subdomains_,
    }


def follow_advice(model):
    """Call `retune` if `advise` says so; its seconds, or None."""
    if not any("model.retune()" in str(finding) for finding in advise(model)):
        return None
    return timed(model.retune)[1]


def learn_and_ask(model, X, Y):
    """Learn rows, and predict them."""
    model.partial_fit(X, Y).predict(X, return_std=True)


def run(settings, folder):
    """All rows of the record: batches, then a summary."""
    data = _common.load("kin40k").first(settings.n_rows, settings.n_test)
    X, Y = data.X_train, data.Y_train
    options = {"subdomain_size": settings.size, "random_state": _common.SEED}
    model = OverlappingCoverRegressor(**options)
    first = settings.n_first
    _, seconds_first = timed(model.fit, X[:first], Y[:first])
    note(f"{first} rows fitted in {seconds_first:.1f} s")
    batches, restart = [], {}
    starts = range(first, settings.n_rows - settings.n_single, settings.n_batch)
    for i, start in enumerate(starts):
        stop = min(start + settings.n_batch, settings.n_rows - settings.n_single)
        is_asked = stop - start < settings.n_batch or (i + 1) % settings.n_unasked == 0
        query = data.X_test[:1] if is_asked else None
        batches.append(learn_batch(model, X[start:stop], Y[start:stop], query))
        batches[-1]["retune_seconds"] = follow_advice(model)
        note(str(batches[-1]))
        if i == len(starts) // 2:
            path = Path(folder) / "stream.ocm"
            expected = model.predict(data.X_test)
            _, restart["seconds_to_save"] = timed(model.save, path)
            model, restart["seconds_to_load"] = timed(load, path)
            restart["same"] = bool(np.array_equal(model.predict(data.X_test), expected))
    singles = [
        timed(learn_and_ask, model, X[i : i + 1], Y[i : i + 1])[1]
        for i in range(settings.n_rows - settings.n_single, settings.n_rows)
    ]
    at_once = OverlappingCoverRegressor(**options)
    _, seconds_at_once = timed(at_once.fit, X, Y)
    seconds, half = [row["seconds"] for row in batches], len(batches) // 2
    queries = [row["query_seconds"] for row in batches if "query_seconds" in row]
    seconds_each = (sum(seconds) + sum(queries)) / len(batches)
    tunings = [s for row in batches if (s := row["retune_seconds"]) is not None]
    found, wanted = error_of(model, data), error_of(at_once, data)
    summary = {
        **settings._asdict(),
        **restart,
        "error": found,
        "error_at_once": wanted,
        "error_ratio": found / wanted,
        "seconds_first": seconds_first,
        "seconds_at_once": seconds_at_once,
        "seconds_machines_at_once": at_once.timings_["machines"],
        "seconds_batch": float(np.median(seconds)),
        "seconds_batch_asked": seconds_each,
        "later_over_earlier": float(np.mean(seconds[half:]) / np.mean(seconds[:half])),
        "seconds_single": float(np.median(singles)),
        "batch_cheaper": seconds_at_once / seconds_each,
        "single_cheaper": seconds_at_once / float(np.median(singles)),
        "subdomains": model.n_subdomains_,
        "subdomains_at_once": at_once.n_subdomains_,
        "n_retuned": len(tunings),
        "seconds_retuned": sum(tunings),
    }
    return batches, summary


def main(arguments=None):
    """Run one stream, print its batches and a summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a taste, in seconds")
    parser.add_argument("--results", type=Path, help="folder for the JSON file")
    for name, field in {
        "rows": "n_rows",
        "first": "n_first",
        "batch": "n_batch",
        "size": "size",
        "single": "n_single",
        "test": "n_test",
        "unasked": "n_unasked",
    }.items():
        parser.add_argument(f"--{name}", dest=field, type=int)
    options = parser.parse_args(arguments)
    settings = QUICK if options.quick else Settings()
    given = {name: getattr(options, name) for name in Settings._fields}
    given = {name: value for name, value in given.items() if value is not None}
    with tempfile.TemporaryDirectory() as folder:
        batches, summary = run(settings._replace(**given), folder)
    print_table("Batches", batches)
    pairs = [{"quantity": k, "value": v} for k, v in summary.items()]
    print_table("Learned on against at once", pairs)
    # Anything but the full run must not overwrite published numbers.
    is_full = not options.quick and not given
    folder = options.results or (_common.RESULTS if is_full else None)
    if folder:
        rows = [{"summary": summary, "batches": batches}]
        print(f"-> {_common.write_json('stream', rows, folder)}")


if __name__ == "__main__":
    main()
