r"""Learning on: rows join a fitted cover, or leave it; their subdomains change alone.

    X, Y -> metric -> partition -> cover -> machines -> routing -> combination
    -> prediction, and [learning] from more rows

A new row belongs to the cluster with the nearest centre, and to every subdomain that
borrows from that cluster and reaches as far: farther than the row lies the farthest row
that it has borrowed there. These `Borders` stay while rows come and go, so the order of
rows makes no difference, and a row that is forgotten leaves no trace. They are drawn
anew where a subdomain grows past `GROWN` times its size, or owns `CROWDED` times its
share: its cluster is split, and it and all who borrow from it are covered again. The
same goes for a subdomain that has shrunk as much.

States give their rows back (`Machine.recall`); each row is taken from its owner.
Hyperparameters stay. New states are fitted when one of them is asked for, so that
several batches share the work. (Rows appended to a Cholesky factor would save about
half of it, and are no use where factors are kept in float32.)
"""

from ._changes import Promise
from ._findings import about_growth
from ._ground import GROWN, Borders
from ._methods import LearnsOn

__all__ = ["GROWN", "Borders", "LearnsOn", "Promise", "about_growth"]
