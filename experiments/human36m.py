"""Human3.6M's shape: 3,060 features, M = 1390, p = .6, at the size that fits."""

from _common import note, print_table, timed
from overcover import NeighborhoodRegressor

from .machinery import cover_of, load, tuned


def run(scale):
    """Error in mm and time of TGP in cover and NN scheme."""
    problem, size = load("human36m", scale), scale.human36m_size
    machine = tuned(problem, scale, "tgp")
    training = problem.X_train, problem.Y_train
    few = problem.some(max(4, scale.n_scheme // 5))
    note(f"human36m: cover of {len(problem.X_train)} rows")
    model = cover_of(machine, size, overlap=0.6, partition="ab").fit(*training)
    model.set_params(n_jobs=1)
    mean, seconds = timed(model.predict, problem.X_test)
    note("human36m: NN scheme")
    scheme = NeighborhoodRegressor(machine, size, n_jobs=1).fit(*training)
    scheme_mean, scheme_seconds = timed(scheme.predict, few.X_test)
    compared = mean[problem.some_rows(max(4, scale.n_scheme // 5))]
    us = 1e6 * seconds / len(mean), 1e6 * scheme_seconds / len(scheme_mean)
    rows = [
        {
            "n_train": len(problem.X_train),
            "n_test": len(problem.X_test),
            "n_features": problem.X_train.shape[1],
            "M": size,
            "K": model.n_subdomains_,
            "error": problem.error(problem.Y_test, mean),
            "error_compared": problem.error(few.Y_test, compared),
            "error_nn": problem.error(few.Y_test, scheme_mean),
            "us_odc": us[0],
            "us_nn": us[1],
            "speed_up": us[1] / us[0],
            "partition_s": model.timings_["partition"],
            "machines_s": model.timings_["machines"],
        }
    ]
    print_table("Human3.6M's shape", rows)
    return rows
