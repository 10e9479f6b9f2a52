"""Changes of variables between the target and the kernel."""

from schuss.coordinates.auxiliary import Auxiliary
from schuss.coordinates.diagonal import Diagonal
from schuss.coordinates.frame import Frame, potential, through, to_x, to_z

__all__ = ["Auxiliary", "Diagonal", "Frame", "potential", "through", "to_x", "to_z"]
