"""Arrays from MATLAB, HDF5 and CDF files."""

import numpy as np
from scipy.io import loadmat

from ..tables import pick, reading, require


def read_mat(path, keys):
    """The first of the keys in a MATLAB file, also in a 1 x 1 cell; 7.3 needs h5py."""
    with reading(path, "a MATLAB file"):
        try:
            arrays = loadmat(path)
        except NotImplementedError:  # how scipy says version 7.3
            return read_h5(path, keys, "a MATLAB 7.3 file")
    names = [name for name in arrays if not name.startswith("__")]
    value = arrays[pick(names, keys, path)]
    while isinstance(value, np.ndarray) and value.dtype == object and value.size == 1:
        value = value.item()
    return np.asarray(value)


def read_h5(path, keys, form="an HDF5 file"):
    """The first of the keys in an HDF5 file, with the axes in MATLAB's order."""
    h5py = require("h5py", "data", f"To read {form}")
    with reading(path, form), h5py.File(path, "r") as file:
        value = file[pick(list(file), keys, path)]
        if value.dtype == h5py.ref_dtype and value.size == 1:
            value = file[value[()].item()]  # a cell of MATLAB
        return np.asarray(value[()]).T


def read_cdf(path, key):
    """One array of a CDF file as rows, for any axes of records."""
    cdflib = require("cdflib", "data", "To read .cdf files")
    with reading(path, "a CDF file"):
        file = cdflib.CDF(path)
        info = file.cdf_info()
        pick([*info.zVariables, *info.rVariables], key, path)
        value = file.varget(key)
        return value.reshape(-1, value.shape[-1])
