# ruff: noqa: F401, names for the other packages
"""Files and frames of data to numbers, and back: one reader, one rule.

The rule (separators, names, missing values, kinds, numbers) stands in ``docs/data.md``.
Nothing is unpickled by Python's own unpickler. Text and Parquet need the extra ``cli``:
pandas is imported only for text and frames, pyarrow only for Parquet.
"""

from ._arrays import INPUTS, OUTPUT, OUTPUTS, npz_names, read_npy, read_npz
from ._cells import PLAIN, Spelling, TableError, column_names
from ._encoder import TableEncoder, encode_training
from ._files import (
    STDIN,
    MissingKey,
    UnknownForm,
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
    Table,
    check_columns,
    open_parquet,
    open_table,
    parquet_batches,
    read_numbers,
    respelled,
)
from ._kinds import (
    as_numbers,
    check_present,
    finite_values,
    kind_and_trouble,
    needs_encoding,
    place,
    with_gaps,
)
from ._write import WRITABLE, writing_table
