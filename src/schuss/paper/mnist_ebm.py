"""MNIST by persistent contrastive divergence on a GPU, ESH against ULA at the same gradients."""

from schuss.paper.persistent_ebm import Page

ITEM = Page(
    name="mnist_ebm",
    recipe="mnist",
    title="MNIST energy models",
    place="beside Figure 7",
    about=(
        "The network is the paper's for CIFAR-10 with half of its features; images are padded to "
        "32×32. The energy's scale, 1000 for both, is one at which ESH seldom has to be rolled "
        "back: at the 20000 of CIFAR-10, and still at 5000, its steps turn too far in the first "
        "iterations. Langevin's step is the best of three about √(2/scale), at which its gradient "
        "step is one; the others are in the table. ESH's step wasn't tuned."
    ),
).item()
