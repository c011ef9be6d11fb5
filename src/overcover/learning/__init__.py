r"""Learning: add rows to a fitted cover, or remove rows; only their subdomains change.

    X, Y -> metric -> partition -> cover -> machines -> routing -> combination
    -> prediction, and [learning] from more rows

A new row belongs to the cluster with the nearest centre. It also joins every subdomain
that borrows from this cluster, unless it is farther away than the farthest row that the
subdomain borrowed there. These `Borders` do not change while rows come and go, so the
order of rows makes no difference, and `forget` undoes `partial_fit`.

New states are fitted when one of them is needed, so several batches share the work. A
subdomain that has grown past `GROWN` times its size, or owns `CROWDED` times its share,
is split before, and all subdomains that borrow from it choose their rows again. A
subdomain that has shrunk as much also chooses again. Hyperparameters do not change.
`Machine.recall` returns the rows of a state; each row is taken from its owner.
(Appending rows to a Cholesky factor would save about half of the work, but does not
work with factors in float32.)
"""

from ._changes import Promise, about_growth, ground_of
from ._ground import GROWN, Borders
from ._methods import LearnsOn

__all__ = ["GROWN", "Borders", "LearnsOn", "Promise", "about_growth", "ground_of"]
