"""CIFAR-10 by persistent contrastive divergence on a GPU, ESH against ULA at the same gradients."""

from schuss.paper.persistent_ebm import Page

ITEM = Page(
    name="cifar_ebm",
    recipe="cifar",
    title="CIFAR-10 energy models",
    place="Figure 7",
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
