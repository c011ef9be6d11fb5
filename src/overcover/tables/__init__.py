# ruff: noqa: F401, names for the other packages
"""Files and frames of data to numbers, and back: one reader, one rule.

Datasets, command line and stores read tables here: a file means the same to all.

*Forms.* Text (.csv, .tsv, .tab, .txt, .dat, .asc, also with .gz, .bz2 or .xz),
.parquet, .npy, .npz. Cells of text are separated by tabs in .tsv and .tab; else by the
most frequent of comma, semicolon and tab in the first line; where it has none, by
blanks in .txt, .dat and .asc. A row with more or fewer cells than the first line is
refused.

*Names.* No two columns have the same name. A column without a name is called c0, c1,
... by its position; columns of arrays X and Y in an .npz archive x0, x1, ..., y0, ....

*Missing values.* In text, an empty cell and the words ?, NA, N/A, #NA, #N/A, <NA>, NaN,
null and none, in small or capital letters (and what C libraries print for a NaN,
1.#IND); elsewhere null and NaN. They are NaN until the caller decides. Infinite values
are no missing values, and callers refuse them.

*Kinds.* All cells of a column are numbers, truth values (true is 1, false is 0), or
dates (ISO 8601, as days since 1970 in UTC); or else they are words. The first cell that
is not of the kind of its column is named by its line.

*Numbers.* The decimal mark is a point; there are no thousands separators. All digits
count.

Nothing is unpickled by Python's own unpickler. pandas is imported only for frames,
pyarrow only for Parquet.
"""

from ._arrays import OUTPUT, npz_names, read_npy, read_npz, read_parts
from ._cells import TableError, bad_cell, column_names, kind_of
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
    as_numbers,
    cells_of,
    parsed,
    place,
    read_chunks,
    read_frame,
    with_gaps,
)
from ._numbers import read_numbers
from ._parquet import check_columns, open_parquet, parquet_batches
from ._write import WRITABLE, writing_table
