"""Tables: inputs and outputs from .npz, .npy, CSV, TSV or Parquet.

A table is columns with names or positions; the target columns are said by the user, and
the other columns are the inputs. An .npz may also hold inputs and outputs as arrays of
their own, and a split. Text is read in one pass by numpy; only where that fails is it
read again, cell by cell, to say where and why. Memory: the chosen columns as float64
(arrays of float32 stay what they are).
"""

import gzip
import warnings
from itertools import chain

import numpy as np
from sklearn.utils import Bunch

from .._validation import check_choice, check_names
from ._files import (
    MissingKey,
    check_path,
    near_names,
    npz_names,
    pick,
    read_npy,
    read_npz,
    reading,
    require,
)
from ._text import BadText, Rows

TEXT = {".csv": "auto", ".txt": "auto", ".dat": "auto", ".asc": "auto"}
TEXT |= {".tsv": "\t", ".tab": "\t"}
FORMS = (".npz", ".npy", ".parquet", *TEXT)
MISSING = ("refuse", "drop", "keep")
# Cells that say that a value is not known.
UNKNOWN = {"", "na", "n/a", "nan", "null", "none", "?"}
INPUTS, OUTPUTS = ("X", "x", "data"), ("Y", "y", "target")


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
        .npz, .npy, .csv, .tsv, .txt, .dat, .asc (text also as .gz), or .parquet, which
        needs ``pip install 'overcover[cli]'``. Nothing is ever unpickled.
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
        line, else blanks.
    missing : {"refuse", "drop", "keep"}
        What to do if values are missing or infinite: an error that counts them, leave
        such rows out, or let them be.
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
    check_choice("missing", missing, MISSING)
    path = check_path(path, sha256)
    form = _form(path)
    if form == ".npz" and not _is_one_table(path):
        parts = _read_arrays(path, target, features)
    else:
        names, columns = _open_table(path, form, header, delimiter)
        chosen = _choose(names, target, features, path)
        table = columns([*chain(*chosen)])
        n_inputs = len(chosen[0])
        single = not isinstance(target, list | tuple)
        outputs = table[:, n_inputs] if single else table[:, n_inputs:]
        named = [[names[i] for i in part] for part in chosen]
        parts = {
            "": (np.ascontiguousarray(table[:, :n_inputs]), outputs.copy(), *named)
        }
    found = Bunch()
    for split, (data, outputs, inputs_named, outputs_named) in parts.items():
        data, outputs = _without_gaps(
            data, outputs, (inputs_named, outputs_named), missing, path
        )
        found[f"data{split}"], found[f"target{split}"] = data, outputs
        found.feature_names, found.target_names = inputs_named, outputs_named
    return found


def _form(path):
    suffixes = [s.lower() for s in path.suffixes]
    form = suffixes[-1] if suffixes else ""
    if form == ".gz" and len(suffixes) > 1 and suffixes[-2] in TEXT:
        form = suffixes[-2]
    if form not in FORMS:
        raise ValueError(
            f"The form of {path.name!r} is not known. Known are {', '.join(FORMS)}, "
            "and text packed as .gz."
        )
    return form


# -- columns ---------------------------------------------------------------------------


def _open_table(path, form, header, delimiter):
    """Names of the columns, and a function that reads those at given positions."""
    if form in TEXT:
        return _open_text(
            path, header, TEXT[form] if delimiter == "auto" else delimiter
        )
    if form == ".parquet":
        return _open_parquet(path)
    table = read_npy(path) if form == ".npy" else read_npz(path, npz_names(path)[0])
    if table.ndim != 2:
        raise ValueError(
            f"{str(path)!r} holds an array of shape {table.shape}; a table has two "
            "dimensions."
        )
    names = [f"column_{i}" for i in range(table.shape[1])]
    return names, lambda positions: _as_floats(table[:, positions])


def _choose(names, target, features, path):
    """Positions of the columns of inputs, and of outputs."""
    if target is None:
        raise ValueError(
            f"Say which column of {str(path)!r} is the target, by name or position."
            f"{near_names('', names)}"
        )
    outputs = _positions(names, target, "target", path)
    if features is None:
        inputs = [i for i in range(len(names)) if i not in outputs]
    else:
        inputs = _positions(names, features, "features", path)
    both = sorted(names[i] for i in set(inputs) & set(outputs))
    if both or not inputs:
        raise ValueError(
            f"Inputs need columns of {str(path)!r} that are not outputs; "
            + (f"{both} would be both." if both else "there are none.")
        )
    return inputs, outputs


def _positions(names, wanted, role, path):
    wanted = list(wanted) if isinstance(wanted, list | tuple) else [wanted]
    positions = []
    for column in wanted:
        if isinstance(column, str):
            if column not in names:
                raise MissingKey(
                    f"{str(path)!r} has no column {column!r} for the {role}."
                    f"{near_names(column, names)}"
                )
            positions.append(names.index(column))
        elif -len(names) <= column < len(names):
            positions.append(column % len(names))
        else:
            raise ValueError(
                f"{role}={column} is not the position of one of the {len(names)} "
                f"columns of {str(path)!r}."
            )
    return positions


# -- forms -----------------------------------------------------------------------------


def _open_text(path, header, delimiter):
    with reading(path, "text"), _opened(path) as file:
        head = Rows(file, delimiter)
    if not head.first:
        raise ValueError(f"{str(path)!r} does not begin with a line of columns.")
    delimiter, first = head.separator, [cell.strip() for cell in head.first]
    named = any(_number(c) is None for c in first) if header == "auto" else bool(header)
    names = first if named else [f"column_{i}" for i in range(len(first))]
    check_names(names, repr(str(path)))

    def columns(positions):
        try:
            with (
                warnings.catch_warnings(),
                reading(path, "text"),
                _opened(path) as file,
            ):
                warnings.simplefilter("error", UserWarning)  # no rows
                return np.loadtxt(
                    chain([] if named else [head.header], Rows(file, delimiter)),
                    delimiter=delimiter,
                    usecols=positions,
                    ndmin=2,
                    comments=None,
                    quotechar='"',
                )
        except ValueError:
            return _read_cells(path, delimiter, named, names, positions)

    return names, columns


def _opened(path):
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", newline="")


def _number(cell):
    """The number in a cell, NaN if it says that it is not known, None for a word."""
    try:
        return float(cell)
    except ValueError:
        return np.nan if cell.lower() in UNKNOWN else None


def _read_cells(path, delimiter, named, names, positions):
    """The table read slowly, or an error that says which cell is at fault."""
    table = []
    with reading(path, "text"), _opened(path) as file:
        rows = Rows(file, delimiter)
        pairs = chain([] if named else [(rows.n_lines, rows.first)], rows.cells())
        for line, row in pairs:
            cells = [row[j].strip() for j in positions]
            numbers = [_number(cell) for cell in cells]
            if None in numbers:
                i = numbers.index(None)
                raise BadText(
                    f"line {line} holds {cells[i]!r} in column "
                    f"{names[positions[i]]!r}, which is not a number. Turn words into "
                    "numbers, or choose other columns by features=[...]."
                )
            table.append(numbers)
    if not table:
        raise ValueError(f"{str(path)!r} holds no rows.")
    return np.array(table)


def _open_parquet(path):
    parquet = require("pyarrow.parquet", "cli", "To read .parquet files")
    types = require("pyarrow.types", "cli", "To read .parquet files")
    with reading(path, "a Parquet file"):
        schema = parquet.read_schema(path)
    check_names(schema.names, repr(str(path)))

    def columns(positions):
        for name in (schema.names[i] for i in positions):
            kind = schema.field(name).type
            if not any(
                is_kind(kind)
                for is_kind in (types.is_integer, types.is_floating, types.is_boolean)
            ):
                raise ValueError(
                    f"Column {name!r} of {str(path)!r} is of type {kind}, not of "
                    "numbers. Turn it into numbers, or choose other columns by "
                    "features=[...]."
                )
        with reading(path, "a Parquet file"):
            table = parquet.read_table(
                path, columns=[schema.names[i] for i in positions]
            )
            parts = [
                table[schema.names[i]].cast("float64").to_numpy() for i in positions
            ]
        return np.column_stack(parts)

    return list(schema.names), columns


# -- an archive of arrays --------------------------------------------------------------


def _is_one_table(path):
    return len(npz_names(path)) == 1


def _read_arrays(path, target, features):
    """Arrays and names by split: "" and, if the file has one, "_test"."""
    names = npz_names(path)
    inputs = (features,) if features is not None else INPUTS
    outputs = (target,) if target is not None else OUTPUTS
    split = target is None and features is None and not set(inputs) & set(names)
    suffixes = {"": "_train", "_test": "_test"} if split else {"": ""}
    if split and not any(f"{n}_train" in names for n in inputs):
        suffixes = {"": ""}  # so that the error speaks of X, not of X_train
    parts = {}
    for part, suffix in suffixes.items():
        X = read_npz(path, pick(names, [f"{n}{suffix}" for n in inputs], path))
        Y = read_npz(path, pick(names, [f"{n}{suffix}" for n in outputs], path))
        if X.ndim != 2 or Y.ndim not in (1, 2) or len(X) != len(Y):
            raise ValueError(
                f"{str(path)!r} holds inputs of shape {X.shape} and outputs of shape "
                f"{Y.shape}; needed are (n_samples, n_features), and (n_samples,) or "
                "(n_samples, n_outputs)."
            )
        width = 1 if Y.ndim == 1 else Y.shape[1]
        named = ([f"x{i}" for i in range(X.shape[1])], [f"y{i}" for i in range(width)])
        parts[part] = (_as_floats(X), _as_floats(Y), *named)
    return parts


def _as_floats(values):
    keep = values.dtype in (np.float32, np.float64)
    return np.ascontiguousarray(values, dtype=None if keep else np.float64)


# -- gaps ------------------------------------------------------------------------------


def _without_gaps(data, target, names, missing, path):
    """Refuse, drop or keep rows with values that are missing or infinite."""
    Y = target.reshape(len(target), -1)
    gaps = np.hstack([~np.isfinite(data), ~np.isfinite(Y)])
    if missing == "keep" or not gaps.any():
        return data, target
    rows = gaps.any(axis=1)
    if missing == "drop":
        if rows.all():
            raise ValueError(f"Every row of {str(path)!r} misses a value.")
        return data[~rows], target[~rows]
    counts = dict(zip(chain(*names), gaps.sum(axis=0).tolist()))
    worst = sorted((n for n in counts if counts[n]), key=counts.__getitem__)[:-6:-1]
    said = ", ".join(f"{n} ({counts[n]})" for n in worst)
    raise ValueError(
        f"{str(path)!r} holds {int(gaps.sum())} values that are missing or infinite, "
        f"in {int(rows.sum())} of {len(data)} rows: {said}. Pass missing='drop' to "
        "leave these rows out, or 'keep' and fill them yourself."
    )
