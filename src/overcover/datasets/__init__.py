"""Data: people who move before cameras, loaders of files, sets from OpenML.

Nothing on the data path imports this package. `make_pose` generates its data from a
seed. Loaders read numbers and names only: no file is ever unpickled by Python's own
unpickler.
"""

from ..tables import array_checksum, file_checksum
from ._mocap import load_human36m, load_humaneva
from ._openml import fetch_kin8nm, fetch_protein
from ._sarcos import load_sarcos
from ._tables import load_table
from .pose import Camera, PoseData, Rows, make_pose

__all__ = ["Camera", "PoseData", "Rows", "array_checksum", "fetch_kin8nm"]
__all__ += ["fetch_protein", "file_checksum", "load_human36m", "load_humaneva"]
__all__ += ["load_sarcos", "load_table", "make_pose"]
