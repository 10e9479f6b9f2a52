"""CIFAR-10 by persistent contrastive divergence on a GPU, ESH against ULA at the same gradients."""

from schuss.paper.item import Settings
from schuss.paper.persistent_ebm import Page

PAPER_HOURS = 24.0
"""The paper's day on four GPUs for 250 epochs of 100 iterations of 100 steps at batch 500."""


def _public(settings: Settings) -> float:
    """The same number of image-gradients at the paper's rate."""
    from schuss.ebm.recipes import CIFAR, longer

    theirs = 250 * 100 * 100 * 500
    iterations = 2 * settings.seeds * CIFAR.iterations + longer(CIFAR).iterations
    return PAPER_HOURS * 3600 * iterations * CIFAR.steps * CIFAR.batch / theirs


ITEM = Page(
    name="cifar_ebm",
    recipe="cifar",
    title="CIFAR-10 energy models",
    place="Figure 7",
    public=_public,
    long=True,
    about=(
        "The network, the samplers, their step sizes and the scale of the energy are the paper's. "
        "What differs for both samplers: the buffer starts as noise around colours and 2 % of the "
        "chains drawn begin anew, images are mirrored, the learning rate falls in the second half, "
        "the batch is 250, and the short runs see a fiftieth of the paper's gradients of images, "
        "which took a day on four GPUs; images are JPEGs where the data is. Of four trainings of "
        "the ruler's classifier, of 5 to 15 epochs with and without smoothing and decay, the main "
        "one is that which keeps classes least apart: what is made to tell them apart sees little "
        "else."
    ),
).item()
