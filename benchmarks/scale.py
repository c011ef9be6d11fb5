"""Large data: a million rows, rows on disk, growth, and the store.

    python benchmarks/scale.py [--section million,pose,growth,store] [--quick]

Million: 1,000,000 x 10 rows (Friedman's function, noise with standard deviation 1), GP,
M = 400, p = .8, and a million queries with standard deviations; LightGBM on the same
rows. Pose: 335,000 x 3,060 rows of float32 on disk (`make_pose("human36m")`, in the
folder that OVERCOVER_SCRATCH names), TwinGP, M = 1,390, p = .6, a fit into a store,
165,000 queries. Growth: exponents from 10,000 to 1,000,000 rows. Store: time to load
and to predict with a model of 450 subdomains, with cold and warm pages, and with
joblib.

Memory is the private memory of the process; `rss` also counts pages of mapped files.
The GEMM share is relative to two threads that only multiply large matrices of doubles.
"""

import os
import resource
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import joblib
import numpy as np
from sklearn.datasets import make_friedman1
from threadpoolctl import threadpool_limits

import _common
import overcover
from _common import note, print_table, run_sections, timed
from gp import answers_of, prediction_flops, training_flops
from overcover import GP, OverlappingCoverRegressor, TwinGP, store
from overcover.consult import panel_of
from overcover.datasets import make_pose
from overcover.metrics import interval_coverage, mean_joint_error
from scaling import exponent

N_JOBS = 2
STAGES = ("tuning", "partition", "cover", "machines")


class Settings(NamedTuple):
    """Sizes of a run."""

    n_rows: int = 1_000_000
    size: int = 400
    n_frames: int | None = None
    """Frames of the pose data; None for all 500,000."""

    n_cameras: int = 4
    pose_size: int = 1390
    sizes: tuple = (10_000, 31_623, 100_000, 316_228, 1_000_000)
    n_grown: int = 100_000
    stored_size: int = 800
    n_stored: int = 16_000
    n_trees: int = 500
    gp: GP = GP()
    twin: TwinGP = TwinGP(metric="joint", keep_factors=True)


FULL = Settings()
GIVEN = TwinGP(10.0, 100.0, 1e-3, 1e-3, keep_factors=True)
QUICK = Settings(
    *(900, 60, 240, 1, 60, (400, 800), 200, 40, 400, 5),
    gp=GP(length_scale=1.0, noise=0.1),
    twin=GIVEN,
)


def friedman(n_rows, seed):
    """Inputs, noisy outputs, and the outputs without noise."""
    X, f = make_friedman1(n_rows, n_features=10, noise=0.0, random_state=seed)
    noise = np.random.default_rng(seed).normal(size=n_rows)
    return X, f + noise, f


def two_gemm_rate(size):
    """FLOP/s of two threads, each with products of (size x size) matrices."""
    A = np.random.default_rng(0).normal(size=(size, size))

    def work(n_products):
        for _ in range(n_products):
            A @ A
        return n_products

    # Many operations, but of small matrices few: each product takes microseconds.
    n_products = int(np.clip(3e10 / (2.0 * size**3), 1, 1000))
    with threadpool_limits(1), ThreadPoolExecutor(N_JOBS) as pool:
        done, seconds = timed(lambda: list(pool.map(work, [n_products] * N_JOBS)))
    return sum(done) * 2.0 * size**3 / seconds


def gigabytes(n_bytes):
    """With two decimals."""
    return round(n_bytes / 1e9, 2)


def resident():
    """The peak memory of this process according to the system, in GB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2)


@contextmanager
def scratch():
    """A folder for large files: in OVERCOVER_SCRATCH, or among temporary files."""
    folder = tempfile.mkdtemp(dir=os.environ.get("OVERCOVER_SCRATCH"))
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder)


# -- a million rows --------------------------------------------------------------------


def million(settings):
    """One row for the cover, one for LightGBM where it is installed."""
    X, y, _ = friedman(settings.n_rows, 0)
    X_test, y_test, f_test = friedman(settings.n_rows, 1)
    note(f"fit {len(X):,} rows")
    model = OverlappingCoverRegressor(
        settings.gp,
        subdomain_size=settings.size,
        overlap=0.8,
        n_jobs=N_JOBS,
        random_state=_common.SEED,
    )
    with _common.watched_memory() as used:
        _, fit_seconds = timed(model.fit, X, y)
        note(f"predict {len(X_test):,} queries")
        (mean, std), seconds = timed(model.predict, X_test, return_std=True)
    half = 1.96 * std
    n_answers = answers_of(model, X_test)
    # Every round computes factors again if they are not kept.
    n_rounds = -(-len(X_test) // panel_of(model).rows_per_round)
    again = 0 if all(map(np.size, model.states_[0].factor)) else n_rounds
    trained = training_flops(model)
    asked = prediction_flops(model, n_answers) + again * trained
    rate = two_gemm_rate(settings.size)
    row = {
        "method": "cover",
        "n": len(X),
        "K": model.n_subdomains_,
        "fit_s": fit_seconds,
        **{f"{stage}_s": model.timings_[stage] for stage in STAGES},
        "predict_s": seconds,
        "us_per_query": 1e6 * seconds / len(X_test),
        "rmse": float(_common.rmse(y_test, mean)),
        "rmse_of_f": float(_common.rmse(f_test, mean)),
        "coverage_95": interval_coverage(y_test, mean - half, mean + half),
        "nlpd": _common.nlpd(y_test, mean, std),
        "peak_gb": gigabytes(used.peak),
        "rss_gb": resident(),
        "factors_kept": not again,
        "gflops_gemm": rate / 1e9,
        "gemm_share_machines": training_flops(model)
        / model.timings_["machines"]
        / rate,
        "gemm_share_predict": asked / seconds / rate,
    }
    del model
    rows = [row, *boosted(settings.n_trees, X, y, X_test, y_test, f_test)]
    print_table(f"{len(X):,} rows, {len(X_test):,} queries", rows)
    return rows


def boosted(n_trees, X, y, X_test, y_test, f_test):
    """LightGBM with the same number of threads."""
    try:
        from lightgbm import LGBMRegressor
    except ImportError:
        return []
    note("LightGBM")
    rival = LGBMRegressor(
        n_estimators=n_trees,
        num_leaves=63,
        learning_rate=0.1,
        n_jobs=N_JOBS,
        verbose=-1,
    )
    _, fit_seconds = timed(rival.fit, X, y)
    mean, seconds = timed(rival.predict, X_test)
    return [
        {
            "method": f"LightGBM, {n_trees} trees",
            "n": len(X),
            "fit_s": fit_seconds,
            "predict_s": seconds,
            "us_per_query": 1e6 * seconds / len(X_test),
            "rmse": float(_common.rmse(y_test, mean)),
            "rmse_of_f": float(_common.rmse(f_test, mean)),
        }
    ]


# -- rows on the disk ------------------------------------------------------------------


def pose(settings):
    """The size of Human3.6M: all stages read the rows from files."""
    kept = os.environ.get("OVERCOVER_SCRATCH")
    with scratch() as folder:
        note("pose data")
        data, making = timed(
            make_pose,
            "human36m",
            n_frames=settings.n_frames,
            n_cameras=settings.n_cameras,
            folder=Path(kept or folder) / "human36m",
            n_jobs=N_JOBS,
            random_state=1,
        )
        row = pose_row(data, folder / "pose.ocm", settings.twin, settings.pose_size)
    rows = [row | {"making_s": making}]
    print_table("Rows on the disk", rows)
    return rows


def pose_row(data, path, machine, size):
    """Fit into a store, predict from it."""
    X, Y = data.X_train, data.Y_train
    note(f"fit {X.shape[0]:,} x {X.shape[1]:,} rows")
    model = OverlappingCoverRegressor(
        machine,
        subdomain_size=size,
        overlap=0.6,
        n_jobs=N_JOBS,
        random_state=_common.SEED,
    )
    with _common.watched_memory() as used:
        _, fit_seconds = timed(store.fit_into, model, X, Y, path)
        note(f"predict {len(data.X_test):,} queries")
        mean, seconds = timed(model.predict, data.X_test)
    few = np.sort(np.random.default_rng(0).permutation(len(mean))[:2000])
    low, high = model.predict_interval(data.X_test[few], 0.95)
    trained, asked = twin_flops(model, data.X_test)
    rate = two_gemm_rate(size)
    machines = model.timings_["machines"]
    total = fit_seconds + seconds
    return {
        "n": len(X),
        "d": X.shape[1],
        "n_queries": len(mean),
        "K": model.n_subdomains_,
        "M": size,
        "fit_s": fit_seconds,
        **{f"{stage}_s": model.timings_[stage] for stage in STAGES},
        "files_s": fit_seconds - sum(model.timings_[stage] for stage in STAGES),
        "predict_s": seconds,
        "total_s": total,
        "us_per_query": 1e6 * seconds / len(mean),
        "error_mm": float(mean_joint_error(data.Y_test, mean)),
        "coverage_95": interval_coverage(data.Y_test[few], low, high),
        "peak_gb": gigabytes(used.peak),
        "rss_gb": resident(),
        "store_gb": gigabytes(bytes_of(path)),
        "gflops_gemm": rate / 1e9,
        "gemm_share_machines": trained / machines / rate,
        "gemm_share_predict": asked / seconds / rate,
        "gemm_share_all": (trained + asked) / total / rate,
    }


def twin_flops(model, X_test):
    """Operations of the matrix products that training and all queries need.

    Training: input kernel matrix, its factor, the factor's inverse and the readout.
    Queries: similarities and variances for every candidate, once more for the one that
    answers, its readout, and three products for every evaluation of the search.
    """
    state = model.states_[0]
    (size, d), q, r = state.rows.A.shape, state.rows.Z.shape[1], len(state.core.pivots)
    trained = size**2 * d + 2.0 * size**3 / 3 + 2.0 * size**2 * (r + q)
    few = np.asarray(X_test[:: max(1, len(X_test) // 2000)], dtype=float)
    n_asked = answers_of(model, few) / len(few)
    found = model.machine_.search(state, few[:200])
    look = size * (2.0 * d + size)
    each = n_asked * look + look + 2.0 * size * (r + q)
    each += found.n_evaluations.mean() * (2.0 * r**2 + 4.0 * r * q)
    return model.n_subdomains_ * trained, len(X_test) * each


def bytes_of(path):
    """Bytes of all files of a folder."""
    return sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())


# -- growth ----------------------------------------------------------------------------


def growth(settings):
    """Seconds by the number of rows, with fixed hyperparameters; then the exponents."""
    points = [growth_point(n, settings) for n in settings.sizes]
    print_table("By the number of rows", points)
    rows = []
    for stage in ("partition", "cover", "machines", "fit", "us_per_query"):
        values = [point[stage] for point in points]
        slopes = exponent(settings.sizes, values)
        end = exponent(settings.sizes[-2:], values[-2:])
        rows.append({"stage": stage, "exponent": slopes, "at_end": end})
    print_table("Exponents in N", rows)
    return [row | {"points": points} for row in rows]


def growth_point(n, settings):
    """One number of rows."""
    note(f"{n:,} rows")
    X, y, _ = friedman(n, 0)
    queries = friedman(settings.n_grown, 1)[0]
    model = OverlappingCoverRegressor(
        GP(length_scale=np.r_[np.ones(5), np.full(5, 10.0)], noise=0.1),
        subdomain_size=settings.size,
        overlap=0.8,
        n_jobs=N_JOBS,
        random_state=_common.SEED,
    )
    with _common.watched_memory() as used:
        model.fit(X, y)
        _, seconds = timed(model.predict, queries, return_std=True)
    stages = {stage: model.timings_[stage] for stage in STAGES[1:]}
    return {
        "n": n,
        "K": model.n_subdomains_,
        **stages,
        "fit": sum(stages.values()),
        "us_per_query": 1e6 * seconds / len(queries),
        "growth_gb": gigabytes(used.peak - used.start),
    }


# -- the store -------------------------------------------------------------------------


def stored(settings):
    """Load and predict, with pages on disk and with pages in memory."""
    X, y, _ = friedman(settings.n_stored, 0)
    queries = friedman(1000, 1)[0]
    model = OverlappingCoverRegressor(
        GP(length_scale=1.0, noise=0.1, keep_factors=True),
        subdomain_size=settings.stored_size,
        n_jobs=N_JOBS,
        random_state=_common.SEED,
    ).fit(X, y)
    expected = np.array(model.predict(queries, return_std=True))
    with scratch() as folder:
        path, pickled = folder / "model.ocm", folder / "model.joblib"
        _, save_seconds = timed(model.save, path)
        joblib.dump(model, pickled)
        ways = {"overcover.load": (overcover.load, path)}
        ways["joblib.load"] = joblib.load, pickled
        rows = []
        for name, (load, source) in ways.items():
            note(name)
            row = {"way": name, "mb": bytes_of(folder / source.name) / 1e6}
            row["mb"] = row["mb"] or source.stat().st_size / 1e6
            rows.append(row | asked_after(load, source, queries, expected))
    rows[0]["save_s"] = save_seconds
    print_table(f"A model of {model.n_subdomains_} subdomains, milliseconds", rows)
    return rows


def asked_after(load, source, queries, expected, n_repeats=5):
    """Milliseconds of loading, of a first query, of another, of a thousand."""
    spent: dict[str, list] = {"load": [], "first": [], "warm": [], "thousand": []}
    for _ in range(n_repeats):
        forget_pages(source)
        model, seconds = timed(load, source)
        spent["load"].append(seconds)
        query = queries[:1]
        spent["first"].append(timed(model.predict, query, return_std=True)[1])
        times = []
        for _ in range(20):
            started = perf_counter()
            model.predict(query, return_std=True)
            times.append(perf_counter() - started)
        spent["warm"].append(median(times))
        said, seconds = timed(model.predict, queries, return_std=True)
        spent["thousand"].append(seconds)
        assert np.array_equal(said, expected)
    return {f"{name}_ms": 1e3 * median(seconds) for name, seconds in spent.items()}


def forget_pages(path):
    """Drop the system's cache of a store's files, so that queries read the disk."""
    files = [path] if path.is_file() else [f for f in path.rglob("*") if f.is_file()]
    for file in files:
        with open(file, "rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


SECTIONS = {"million": million, "pose": pose, "growth": growth, "store": stored}


def main(arguments=None):
    """Run the chosen sections."""
    description = __doc__.splitlines()[0]
    run_sections(description, "scale", SECTIONS, (FULL, QUICK), arguments)


if __name__ == "__main__":
    main()
