"""Changes of variables between the target and the kernel."""

from schuss.coordinates.auxiliary import Auxiliary
from schuss.coordinates.bounded import Bounded
from schuss.coordinates.conditional import Conditional
from schuss.coordinates.curved import Curved
from schuss.coordinates.dense import Dense
from schuss.coordinates.diagonal import Diagonal
from schuss.coordinates.frame import Frame, potential, through, to_x, to_z
from schuss.coordinates.hierarchical import Hierarchical
from schuss.coordinates.level import Level
from schuss.coordinates.low_rank import LowRank

__all__ = [
    "Auxiliary",
    "Bounded",
    "Conditional",
    "Curved",
    "Dense",
    "Diagonal",
    "Frame",
    "Hierarchical",
    "Level",
    "LowRank",
    "potential",
    "through",
    "to_x",
    "to_z",
]
