"""Digits on the CPU: an energy model of 8×8 images, trained in minutes, ESH beside ULA."""

from schuss.paper.persistent_ebm import Page

ITEM = Page(
    name="digits_ebm",
    recipe="digits",
    title="Digits on the CPU",
    place="beside Figure 7",
    public=lambda settings: 0.0,
    about=(
        "This experiment isn't the paper's: it is its convolutional network in small, for a "
        "machine without a GPU, on the 8×8 digits of scikit-learn; ESH's path is reflected at ±1.1."
    ),
).item()
