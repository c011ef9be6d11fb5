"""Tables: inputs and outputs from text, Parquet, .npy or .npz."""

from collections import Counter
from itertools import chain

import numpy as np
from sklearn.utils import Bunch

from .. import tables
from .._validation import check_choice


def load_table(
    path,
    target=None,
    *,
    features=None,
    header="auto",
    delimiter="auto",
    missing="refuse",
    sha256=None,
):
    """Read inputs and outputs from a file of numbers.

    Parameters
    ----------
    path : str or path-like
        .npz, .npy; .csv, .tsv, .txt, .dat, .asc (also as .gz, .bz2, .xz) or .parquet,
        which need ``pip install 'overcover[cli]'``. Nothing is ever unpickled. Missing
        values, dates and names follow `overcover.tables`.
    target : str, int or list of them, or None
        Columns of outputs, by name or position (-1 is the last). One column gives a
        target of shape (n,), a list one of shape (n, n_outputs). In an .npz of several
        arrays, the name of the output array; None looks for Y, y or target, and for
        their ``_train`` and ``_test``.
    features : str, int or list of them, or None
        Columns of inputs; None takes all others. In an .npz of several arrays, the name
        of the input array.
    header : {"auto", True, False}
        Whether the first line of text names the columns; "auto": if it holds a word.
    delimiter : str
        Of text; "auto" is the most frequent of comma, semicolon and tab in the first
        line, else blanks in .txt, .dat and .asc.
    missing : {"refuse", "drop", "keep"}
        What to do if values are missing or infinite: raise an error that counts them,
        leave such rows out, or let them be.
    sha256 : str or None
        Refuse a file with another sum; see `file_checksum`.

    Returns
    -------
    Bunch
        data of shape (n_samples, n_features), target, feature_names, target_names; and
        data_test, target_test where the file has a split.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from overcover.datasets import load_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "heights.csv"
    ...     _ = path.write_text("age,shoe,height\\n4,28,104\\n9,34,137\\n")
    ...     table = load_table(path, target="height")
    >>> table.feature_names, table.data.tolist(), table.target.tolist()
    (['age', 'shoe'], [[4.0, 28.0], [9.0, 34.0]], [104.0, 137.0])
    """
    check_choice("missing", missing, ("refuse", "drop", "keep"))
    path = tables.check_path(path, sha256)
    if tables.form_of(path) == ".npz" and len(tables.npz_names(path)) > 1:
        parts = _parts_of_archive(path, target, features)
    else:
        parts = {"": _parts_of_table(path, target, features, header, delimiter)}
    table = Bunch()
    for split, (data, outputs, *names) in parts.items():
        data, outputs = _without_gaps(data, outputs, names, missing, path)
        table[f"data{split}"], table[f"target{split}"] = data, outputs
        table.feature_names, table.target_names = names
    return table


def _parts_of_table(path, target, features, header, delimiter):
    parts: list[list[str]] = []

    def choose(names):
        parts[:] = _choose(names, target, features, path)
        return [*parts[0], *parts[1]]

    columns = tables.read_numbers(path, choose, header, delimiter)
    X, Y = (np.column_stack([columns[name] for name in part]) for part in parts)
    if not isinstance(target, list | tuple):
        Y = Y[:, 0]
    return _as_floats(X), _as_floats(Y), *parts


def _parts_of_archive(path, target, features):
    """Inputs, outputs, and the names of both, by split: "" and maybe "_test"."""
    names = {*tables.npz_names(path)}
    inputs = tables.INPUTS if features is None else (features,)
    outputs = tables.OUTPUTS if target is None else (target,)
    is_split = target is None and features is None and not names & {*inputs}
    is_split &= any(f"{name}_train" in names for name in inputs)
    suffixes = {"": "_train", "_test": "_test"} if is_split else {"": ""}
    parts = {}
    for split, suffix in suffixes.items():
        X, Y = (
            tables.read_npz(path, [f"{name}{suffix}" for name in keys])
            for keys in (inputs, outputs)
        )
        if X.ndim != 2 or Y.ndim not in (1, 2) or len(X) != len(Y):
            raise tables.TableError(
                f"{str(path)!r} holds inputs of shape {X.shape} and outputs of shape "
                f"{Y.shape}; needed are (n_samples, n_features), and (n_samples,) or "
                "(n_samples, n_outputs)."
            )
        widths = (X.shape[1], "x"), (1 if Y.ndim == 1 else Y.shape[1], "y")
        columns = (tables.column_names(*width) for width in widths)
        parts[split] = _as_floats(X), _as_floats(Y), *columns
    return parts


def _as_floats(values):
    keep = values.dtype in (np.float32, np.float64)
    return np.ascontiguousarray(values, dtype=None if keep else np.float64)


def _choose(names, target, features, path):
    """Names of the columns of inputs, and of outputs."""
    if target is None:
        raise ValueError(
            f"Say which column of {str(path)!r} is the target, by name or position."
            f"{tables.near_names('', names)}"
        )
    outputs = _named(names, target, "target", path)
    if features is None:
        inputs = [name for name in names if name not in outputs]
    else:
        inputs = _named(names, features, "features", path)
    both = sorted({*inputs} & {*outputs})
    if both or not inputs:
        raise ValueError(
            f"Inputs need columns of {str(path)!r} that are not outputs; "
            + (f"{both} would be both." if both else "there are none.")
        )
    return inputs, outputs


def _named(names, wanted, role, path):
    """Names of columns that are given by name or position."""
    chosen = []
    for column in wanted if isinstance(wanted, list | tuple) else [wanted]:
        if isinstance(column, str):
            chosen.append(tables.pick(names, column, path, "column "))
        elif -len(names) <= column < len(names):
            chosen.append(names[column])
        else:
            raise ValueError(
                f"{role}={column} is not the position of one of the {len(names)} "
                f"columns of {str(path)!r}."
            )
    return chosen


def _without_gaps(data, target, names, missing, path):
    """Refuse, drop or keep rows with values that are missing or infinite."""
    is_gap = ~np.column_stack([np.isfinite(data), np.isfinite(target)])
    if missing == "keep" or not is_gap.any():
        return data, target
    rows = is_gap.any(axis=1)
    if missing == "drop":
        if rows.all():
            raise ValueError(f"Every row of {str(path)!r} misses a value.")
        return data[~rows], target[~rows]
    counts = Counter(dict(zip(chain(*names), is_gap.sum(axis=0).tolist())))
    text = ", ".join(f"{name} ({n})" for name, n in counts.most_common(5) if n)
    raise ValueError(
        f"{str(path)!r} holds {is_gap.sum()} values that are missing or infinite, in "
        f"{rows.sum()} of {len(data)} rows: {text}. Pass missing='drop' to leave these "
        "rows out, or 'keep' and fill them yourself."
    )
