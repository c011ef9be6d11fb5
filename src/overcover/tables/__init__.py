# ruff: noqa: F401, names for the other packages
"""Files and frames of data to numbers, and back: one reader, one rule.

Datasets, command line and stores read tables here: a file means the same to all. The
rule (separators, names, missing values, kinds, numbers) stands in ``docs/data.md``. In
short: text, .parquet, .npy or .npz; every row has as many cells as the first line, and
no two columns have the same name; all cells of a column are numbers, truth values (1
and 0) or dates (days since 1970 in UTC), or else they are words. Missing values are NaN
until the caller decides; callers refuse infinite ones.

Nothing is unpickled by Python's own unpickler. Text and Parquet need the extra ``cli``:
pandas is imported only for text and frames, pyarrow only for Parquet.
"""

from ._arrays import INPUTS, OUTPUT, OUTPUTS, npz_names, read_npy, read_npz
from ._cells import TableError, column_names
from ._encoder import TableEncoder, encode_training
from ._files import (
    STDIN,
    MissingKey,
    array_checksum,
    check_path,
    file_checksum,
    form_of,
    near_names,
    pick,
    reading,
    require,
)
from ._frames import (
    Chunks,
    check_columns,
    open_parquet,
    parquet_batches,
    read_chunks,
    read_frame,
    read_numbers,
)
from ._kinds import (
    as_numbers,
    kind_and_trouble,
    needs_encoding,
    parsed,
    place,
    with_gaps,
)
from ._write import WRITABLE, writing_table
