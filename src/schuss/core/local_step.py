"""Steps that are shorter where the gradient is steep, and exact all the same.

In the neck of a posterior all lengths shrink while |g| grows in proportion, and steps that are
right elsewhere are refused there, so that chains neither enter nor leave. The length h of a step
is made part of the state, with a density that depends on the position alone,

    log h ~ Logistic(log ε − softplus(log|g| − knee), σ),

is drawn afresh whenever the chain has moved or turned, and stays as it is during a proposal, whose
W has the change of −log p(h | x) added (the idea of GIST, Bou-Rabee, Carpenter & Marsden 2024). No
further gradient is needed.
"""

from schuss.core.kick import force

SHARPNESS = 8.0
"""Of the knee: within an eighth of a factor e the step passes from ε to ε e^knee/|g|."""


def shortening(xp, g, knee):
    """log(h/ε) in the middle of its density: 0 on gentle slopes, knee − log|g| on steep ones."""
    length, _ = force(xp, g)
    steepness = xp.log(length[:, 0]) - knee
    return -xp.logaddexp(SHARPNESS * steepness, xp.zeros_like(steepness)) / SHARPNESS


def draw(xp, middle, uniform, spread):
    """log(h/ε) from the density around `middle`, by one uniform number for each chain."""
    return middle + spread * (xp.log(uniform) - xp.log1p(-uniform))


def surprise(xp, scale, middle, spread):
    """−log p(h | x) up to a constant."""
    y = (scale - middle) / spread
    return y + 2 * xp.logaddexp(-y, xp.zeros_like(y))
