"""CIFAR-10 by persistent contrastive divergence on a GPU, ESH against ULA at the same gradients."""

from schuss.paper.item import Settings
from schuss.paper.persistent_ebm import Page

PAPER_HOURS = 24.0
"""The paper's day on four GPUs for 250 epochs of 100 iterations of 100 steps at batch 500."""


def _public(settings: Settings) -> float:
    """The same number of image-gradients at the paper's rate."""
    from schuss.ebm.recipes import CIFAR

    theirs = 250 * 100 * 100 * 500
    ours = CIFAR.iterations * CIFAR.steps * CIFAR.batch
    return PAPER_HOURS * 3600 * ours / theirs * 2 * settings.seeds


ITEM = Page(
    name="cifar_ebm",
    recipe="cifar",
    title="CIFAR-10 energy models",
    place="Figure 7",
    public=_public,
    about=(
        "The network, the samplers, their step sizes and the scale of the energy are the paper's. "
        "What differs for both samplers: the buffer starts as noise around colours and 2 % of the "
        "chains drawn begin anew, images are mirrored, the learning rate falls in the second half, "
        "the batch is 250, and runs are an eightieth as long as the paper's, which trained for a "
        "day on four GPUs; images are JPEGs where the data is."
    ),
).item()
