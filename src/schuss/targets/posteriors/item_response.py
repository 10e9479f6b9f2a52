"""Item response with one parameter: who answers which question rightly.

The sizes and priors are those of Inference Gym's `SyntheticItemResponseTheory`.
"""

import functools
import math

import numpy as np

from schuss.targets.draws import normal_start
from schuss.targets.posteriors.logistic import sigmoid, softplus
from schuss.targets.posteriors.reference import reference
from schuss.targets.posteriors.table import table
from schuss.targets.target import Array, Namespace, Target

STUDENTS, QUESTIONS, RESPONSES = 400, 100, 30_105


def responses() -> np.ndarray:
    """1 for right, −1 for wrong, 0 for unasked, (students, questions), drawn from the prior."""
    rng = np.random.default_rng(0)
    ability = 0.75 + rng.standard_normal((STUDENTS, 1))
    difficulty = rng.standard_normal(QUESTIONS)
    chance = 1 / (1 + np.exp(difficulty - ability))
    answer = np.where(rng.random((STUDENTS, QUESTIONS)) < chance, 1.0, -1.0)
    unasked = rng.permutation(STUDENTS * QUESTIONS)[RESPONSES:]
    answer.reshape(-1)[unasked] = 0.0
    return answer


@functools.cache
def item_response() -> Target:
    """x = (m, a_1 … a_400, q_1 … q_100), m ~ N(.75, 1), a and q ~ N(0, 1), 501-D.

    E = ½ (m − .75)² + ½ Σ a_i² + ½ Σ q_j² + Σ_asked log(1 + e^{−s_ij (m + a_i − q_j)}), s_ij = ±1.
    The sum runs over all pairs: an unasked one has s = 0 and adds log 2, which is taken off.
    """
    signs = table(responses())
    unasked = STUDENTS * QUESTIONS - RESPONSES
    last = 1 + STUDENTS

    def margin(xp: Namespace, x: Array) -> tuple[Array, Array]:
        sign = signs(xp, x)
        able = x[:, :1] + x[:, 1:last]
        return sign, sign * (able[:, :, None] - x[:, None, last:])

    def energy(xp: Namespace, x: Array) -> Array:
        prior = (x[:, 0] - 0.75) ** 2 + xp.sum(x[:, 1:] ** 2, axis=-1)
        misfit = xp.sum(softplus(xp, -margin(xp, x)[1]), axis=(-2, -1))
        return prior / 2 + misfit - unasked * math.log(2)

    def gradient(xp: Namespace, x: Array) -> Array:
        sign, right = margin(xp, x)
        pull = -sign * sigmoid(xp, -right)
        student = xp.sum(pull, axis=-1)
        mean = x[:, :1] - 0.75 + xp.sum(student, axis=-1, keepdims=True)
        question = xp.sum(pull, axis=-2)
        return xp.concat([mean, x[:, 1:last] + student, x[:, last:] - question], axis=-1)

    dim = 1 + STUDENTS + QUESTIONS
    return Target(
        name="item-response",
        dim=dim,
        energy=energy,
        gradient=gradient,
        start=normal_start(dim),
        truth=reference("item-response"),
    )
