"""Kinds of data that no other test has, beside simple methods; a section of `trust`."""

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import _trust
from _common import note, print_table
from _trust import smooth_function

N_TEST = 1000


def surprises(settings):
    """The default, ridge, five neighbours and boosted trees on every kind of data."""
    rows = []
    for name in _trust.cases(settings, KINDS):
        for seed in settings.seeds[:1]:
            note(f"{name}, seed {seed}")
            problem = kind_of_data(name, settings, seed)
            rows.append(surprise_row(problem, seed))
            print_table("Surprises", rows[-1:])
    print_table("Surprises", rows)
    return rows


def kind_of_data(name, settings, seed):
    """Random training and test rows, or the order that belongs to the kind."""
    make = KINDS[name]
    rng = np.random.default_rng([sum(map(ord, name)), seed])
    n_rows = settings.n_rows
    X, y = make(rng, n_rows + N_TEST)
    if make in IN_ORDER:
        return _trust.Problem(name, X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])
    return _trust.split(name, X, y, n_rows, seed)


def surprise_row(problem, seed):
    """Errors of all methods, and what the default says about its own."""
    row = {"case": problem.name, "seed": seed} | _trust.assess(problem, seed)
    for label, model in simple_methods(seed).items():
        model.fit(problem.X_train, problem.Y_train.reshape(len(problem.X_train), -1))
        mean = model.predict(problem.X_test).reshape(problem.Y_test.shape)
        row[label] = _trust.rmse(problem.Y_test, mean)
    row["mean"] = _trust.rmse(problem.Y_test, problem.Y_train.mean(axis=0))
    row["worst_ratio"] = row["rmse"] / min(row["ridge"], row["neighbours"])
    return row


def simple_methods(seed):
    """Methods that take a second."""
    return {
        "ridge": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-4, 4, 17))),
        "neighbours": make_pipeline(StandardScaler(), KNeighborsRegressor(5)),
        "trees": MultiOutputRegressor(HistGradientBoostingRegressor(random_state=seed)),
    }


# -- kinds of data ---------------------------------------------------------------------


def uniform(rng, n_rows, n_columns):
    return rng.uniform(-2, 2, (n_rows, n_columns))


def counts(rng, n_rows):
    """Counts, most of them zero."""
    X = uniform(rng, n_rows, 4)
    return X, rng.poisson(0.2 * np.exp(X[:, 0] + 0.5 * np.sin(3 * X[:, 1]))) * 1.0


def unequal_noise(rng, n_rows):
    """Noise that grows a hundredfold along a column."""
    X = uniform(rng, n_rows, 3)
    noise = np.exp(1.15 * X[:, 0]) * 0.1
    return X, np.sin(2 * X[:, 1]) + noise * rng.normal(size=n_rows)


def jumps(rng, n_rows):
    """A function that is constant on the cells of a tilted grid."""
    X = uniform(rng, n_rows, 3)
    levels = np.floor(X[:, 0] + 0.3 * X[:, 1]) + 2 * (X[:, 2] > 0.3)
    return X, levels + 0.05 * rng.normal(size=n_rows)


def one_hot(rng, n_rows):
    """Two categorical columns of 40 and 15 levels as codes, and two numbers."""
    first, second = rng.integers(0, 40, n_rows), rng.integers(0, 15, n_rows)
    numbers = rng.normal(size=(n_rows, 2))
    effects = rng.normal(size=40)[first] + rng.normal(size=15)[second]
    X = np.hstack([np.eye(40)[first], np.eye(15)[second], numbers])
    y = effects + np.sin(2 * numbers[:, 0]) + 0.2 * rng.normal(size=n_rows)
    return X, y


def log_normal(rng, n_rows):
    """Incomes and prices: the logarithm is regular."""
    X = uniform(rng, n_rows, 4)
    log = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=n_rows)
    return X, np.exp(1.3 * log)


def periodic(rng, n_rows):
    """A period of time, in which a third of the days are missing."""
    time = np.sort(rng.uniform(0, 60, n_rows * 2))
    time = time[np.floor(time) % 3 != 1]
    time = np.resize(time, n_rows)[:, None]
    y = np.sin(2 * np.pi * time[:, 0] / 7) + 0.5 * np.sin(2 * np.pi * time[:, 0])
    return time + 1e-6 * rng.normal(size=time.shape), y + 0.1 * rng.normal(size=n_rows)


def densities(rng, n_rows):
    """A dense cluster beside a thin background, each with its own detail."""
    is_dense = rng.random(n_rows) < 0.8
    X = np.where(is_dense[:, None], 0.02, 2.0) * rng.normal(size=(n_rows, 2))
    detail = np.sin(100 * X[:, 0]) * np.exp(-(X**2).sum(axis=1) / 0.01)
    return X, np.sin(X[:, 1]) + detail + 0.05 * rng.normal(size=n_rows)


def near_duplicates(rng, n_rows):
    """Every row five times, with hardly different inputs and its own noise."""
    X = np.repeat(uniform(rng, -(-n_rows // 5), 3), 5, axis=0)[:n_rows]
    X = X + 1e-7 * rng.normal(size=X.shape)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n_rows)


def duplicate_outputs(rng, n_rows):
    """The same with one noise for the five, as measured at one visit."""
    X = np.repeat(uniform(rng, -(-n_rows // 5), 3), 5, axis=0)[:n_rows]
    noise = np.repeat(0.3 * rng.normal(size=-(-n_rows // 5)), 5)[:n_rows]
    X = X + 1e-3 * rng.normal(size=X.shape)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + noise


def units(rng, n_rows):
    """Columns and output in units from 1e-9 to 1e9."""
    X = uniform(rng, n_rows, 5)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n_rows)
    return X * 10.0 ** np.array([-9, 9, 0, -4, 6]) + [0, 0, 1e5, 1, 0], 1e7 * y


def few_relevant(rng, n_rows):
    """5 of 300 columns matter."""
    X = rng.normal(size=(n_rows, 300))
    y = X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3] + 0.5 * X[:, 4] ** 2
    return X, y + 0.1 * rng.normal(size=n_rows)


def wide_linear(rng, n_rows):
    """200 columns, all with a small linear effect."""
    X = rng.normal(size=(n_rows, 200))
    return X, X @ rng.normal(size=200) / np.sqrt(200) + 0.3 * rng.normal(size=n_rows)


def groups(rng, n_rows):
    """Patients with an offset each, known only by their features."""
    n_groups = max(2, n_rows // 40)
    group = rng.integers(0, n_groups, n_rows)
    offsets, about = rng.normal(size=n_groups), rng.normal(size=(n_groups, 3))
    X = np.hstack([about[group], uniform(rng, n_rows, 2)])
    y = offsets[group] + np.sin(X[:, 3]) + 0.2 * rng.normal(size=n_rows)
    return X, y


def integers(rng, n_rows):
    """A full grid of small integers, with repetitions."""
    X = rng.integers(0, 6, (n_rows, 4)) * 1.0
    y = np.sin(X[:, 0]) * X[:, 1] + (X[:, 2] > 2) + 0.3 * rng.normal(size=n_rows)
    return X, y


def linear(rng, n_rows):
    """Nothing but a plane and noise."""
    X = rng.normal(size=(n_rows, 6))
    return X, X @ rng.normal(size=6) + 0.5 * rng.normal(size=n_rows)


def no_signal(rng, n_rows):
    """Inputs that say nothing about the output."""
    return rng.normal(size=(n_rows, 5)), rng.normal(size=n_rows)


def heavy_tails(rng, n_rows):
    """Noise of a Student t with two degrees of freedom."""
    X = uniform(rng, n_rows, 3)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_t(2, n_rows)


def heavy_inputs(rng, n_rows):
    """Skewed inputs: their logarithms matter."""
    X = np.exp(1.5 * rng.normal(size=(n_rows, 3)))
    y = np.log(X[:, 0]) + np.sin(2 * np.log(X[:, 1])) + 0.1 * rng.normal(size=n_rows)
    return X, y


def binary(rng, n_rows):
    """A target of zeros and ones."""
    X = uniform(rng, n_rows, 3)
    chance = 1 / (1 + np.exp(-3 * (X[:, 0] + np.sin(3 * X[:, 1]))))
    return X, (rng.random(n_rows) < chance) * 1.0


def rough_and_smooth(rng, n_rows):
    """Smooth on one half of the inputs, fast on the other."""
    X = uniform(rng, n_rows, 2)
    fast = np.where(X[:, 0] > 0, np.sin(12 * X[:, 0]), 0.0)
    return X, fast + X[:, 1] + 0.05 * rng.normal(size=n_rows)


def same_columns(rng, n_rows):
    """Each of three columns ten times, with small errors of measurement."""
    hidden = uniform(rng, n_rows, 3)
    X = np.repeat(hidden, 10, axis=1) + 0.1 * rng.normal(size=(n_rows, 30))
    return X, np.sin(2 * hidden[:, 0]) + hidden[:, 1] + 0.1 * rng.normal(size=n_rows)


def zeros(rng, n_rows):
    """Zero for most rows, else a positive amount; as rain or claims."""
    X = uniform(rng, n_rows, 4)
    is_wet = rng.random(n_rows) < 1 / (1 + np.exp(2 - 2 * X[:, 0]))
    return X, is_wet * np.exp(0.5 * X[:, 1] + 0.5 * rng.normal(size=n_rows))


def smooth_20(rng, n_rows):
    """A smooth function of 20 columns without noise."""
    X = rng.normal(size=(n_rows, 20))
    return X, smooth_function(rng, [6.0] * 20)(X)


def sentinels(rng, n_rows):
    """Missing values as -999 in three of five columns."""
    X = uniform(rng, n_rows, 5)
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * X[:, 2] + 0.1 * rng.normal(size=n_rows)
    X[rng.random(X.shape) < [0.1, 0.1, 0, 0, 0.1]] = -999.0
    return X, y


def spatial(rng, n_rows):
    """Places in towns: a rough field and a trend."""
    towns = rng.uniform(0, 100, (12, 2))
    X = towns[rng.integers(0, 12, n_rows)] + 2.0 * rng.normal(size=(n_rows, 2))
    field = smooth_function(rng, [3.0, 3.0])(X) + 0.05 * X[:, 0]
    return X, field + 0.2 * rng.normal(size=n_rows)


def many_outputs(rng, n_rows):
    """30 outputs that are mixtures of three functions, noises .01 to 1."""
    X = uniform(rng, n_rows, 4)
    hidden = [smooth_function(rng, scales) for scales in np.eye(4)[:3] * 8 + 1.0]
    Y = np.stack([function(X) for function in hidden], axis=1)
    Y = Y @ rng.normal(size=(3, 30))
    return X, Y + np.geomspace(0.01, 1, 30) * rng.normal(size=Y.shape)


def more_columns(rng, n_rows):
    """1,000 columns that measure five hidden ones."""
    hidden = rng.normal(size=(n_rows, 5))
    X = hidden @ rng.normal(size=(5, 1000)) + rng.normal(size=(n_rows, 1000))
    return X, hidden[:, 0] + np.sin(hidden[:, 1]) + 0.1 * rng.normal(size=n_rows)


def offset_output(rng, n_rows):
    """A large mean beside a small variation, as years or kelvin."""
    X = uniform(rng, n_rows, 3) + 1e4
    y = np.sin(2 * (X[:, 0] - 1e4)) + 0.1 * rng.normal(size=n_rows)
    return X, 1e6 + y


def rare_event(rng, n_rows):
    """A narrow peak in one per cent of the inputs, else almost nothing."""
    X = uniform(rng, n_rows, 2)
    peak = 20 * np.exp(-((X - 0.5) ** 2).sum(axis=1) / 0.02)
    return X, peak + 0.1 * np.sin(X[:, 0]) + 0.02 * rng.normal(size=n_rows)


# -- rows in order: test rows are drawn alike, or are new groups -----------------------


def sorted_by_column(rng, n_rows):
    """Training rows sorted by an input, as many files are."""
    X = uniform(rng, n_rows, 3)
    X[:-N_TEST] = X[:-N_TEST][np.argsort(X[:-N_TEST, 0])]
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=n_rows)


def sorted_by_output(rng, n_rows):
    """Training rows sorted by the output, noise included."""
    X, y = sorted_by_column(rng, n_rows)
    order = np.argsort(y[:-N_TEST])
    order = np.append(order, np.arange(len(order), n_rows))
    return X[order], y[order]


def new_groups(rng, n_rows):
    """Contiguous visits of patients with offsets; new patients are tested."""
    group = np.arange(n_rows) // 20
    offsets, about = rng.normal(size=group[-1] + 1), rng.normal(size=(group[-1] + 1, 3))
    X = np.hstack([about[group], uniform(rng, n_rows, 2)])
    y = offsets[group] + np.sin(X[:, 3]) + 0.2 * rng.normal(size=n_rows)
    return X, y


def shuffled_groups(rng, n_rows):
    """The same with training rows in random order: no order reveals the groups."""
    X, y = new_groups(rng, n_rows)
    order = rng.permutation(n_rows - N_TEST)
    order = np.append(order, np.arange(len(order), n_rows))
    return X[order], y[order]


def shifted_inputs(rng, n_rows):
    """Test rows from another part of the inputs, with few training rows."""
    X = rng.normal(size=(n_rows, 3))
    X[-N_TEST:] += [1.5, 0, 0]
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n_rows)


IN_ORDER = (sorted_by_column, sorted_by_output, new_groups, shuffled_groups)
IN_ORDER += (shifted_inputs,)
KINDS = {
    make.__name__.replace("_", " "): make
    for make in (
        *(counts, unequal_noise, jumps, one_hot, log_normal, periodic, densities),
        *(near_duplicates, duplicate_outputs, units, few_relevant, wide_linear),
        *(groups, integers, linear, no_signal, heavy_tails, heavy_inputs, binary),
        *(rough_and_smooth, same_columns, zeros, smooth_20),
        *(sentinels, spatial, many_outputs, more_columns, offset_output, rare_event),
        *IN_ORDER,
    )
}
