"""ESH as the public code computes it: its kick, and single precision.

Where a chain climbs straight against the force, as every chain does that begins exactly at a mode,
u·e rounds to −1; the public code then keeps the direction, and the chain strays far off before it
turns round. In double precision that hardly ever happens.
"""

import numpy as np

from schuss.targets.target import Target


def public_esh(
    target: Target, gradients: int, chains: int, seed: int, step_size: float = 0.1
) -> np.ndarray:
    """States by gradients spent, (gradients + 1, chains, dim), the start first."""
    rng = np.random.default_rng(seed)
    x = target.start(rng, chains).astype(np.float32)
    u = rng.standard_normal(x.shape).astype(np.float32)
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    h = np.float32(step_size / 2)

    def gradient(x):
        return target.gradient(np, x.astype(float)).astype(np.float32)

    def kick(u, g):
        length = np.linalg.norm(g, axis=1, keepdims=True)
        e = -g / length
        c = np.sum(u * e, axis=1, keepdims=True)
        zeta = np.exp(-h * length / target.dim)
        turned = np.where(c > -1, (1 + c + (c - 1) * zeta**2) * e + 2 * zeta * (u - c * e), -e)
        return turned / np.linalg.norm(turned, axis=1, keepdims=True)

    path, g = [x], gradient(x)
    for _ in range(gradients):
        u = kick(u, g)
        x = x + 2 * h * u
        g = gradient(x)
        u = kick(u, g)
        path.append(x)
    return np.stack(path)
