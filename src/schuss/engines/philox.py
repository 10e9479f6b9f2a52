"""Philox 2x32 (Salmon et al. 2011): a generator for `jax.random`, and cheap normals.

Counter-based like JAX's own threefry, and the same on any number of devices, but built on
multiplications, of which a CPU does several at a time: random bits for an eighth of the price.
At small dimensions the noise would otherwise cost more than all the rest of a step.
"""

import math

import jax
import jax.numpy as jnp
from jax.extend.random import define_prng_impl

MULTIPLIER, WEYL = 0xD256D193, 0x9E3779B9

APART = 0x5851F42D
"""Another key from a key, for numbers of another kind."""

SINE = (1.57079632, -0.64596376, 0.079689918, -0.0046741438, 0.0001516717)
"""sin(πf/2)/f as a polynomial in f², interpolated at the Chebyshev points of [0, 1]."""


def philox(first, second, key, rounds=10):
    """Two words of 32 random bits from a counter of two words and a key of one."""
    for _ in range(rounds):
        high, low = _product(first)
        first, second = high ^ key ^ second, low
        key = key + jnp.uint32(WEYL)
    return first, second


def _product(word):
    """High and low half of the 64-bit product, whether or not JAX has 64-bit types switched on."""
    with jax.enable_x64(True):
        product = word.astype(jnp.uint64) * jnp.uint64(MULTIPLIER)
        return (product >> 32).astype(jnp.uint32), product.astype(jnp.uint32)


def normals(key, step, shape):
    """Standard normals in float32 for a step of a run, by Box and Muller.

    Seven rounds are the fewest that pass BigCrush, and enough where only directions matter. Each
    pair gives one number: to use the other would take more time, in copies, than it saves.
    """
    seed = jax.random.key_data(key)
    first, second = philox(_places(shape), seed[0] ^ step.astype(jnp.uint32), seed[1], rounds=7)
    radius = jnp.sqrt(-2 * jnp.log(((first >> 8).astype(jnp.float32) + 0.5) * 2.0**-24))
    angle = (second.astype(jnp.int32) >> 8).astype(jnp.float32) * 2.0**-23
    # Without the barrier XLA would draw the numbers again for each of their uses.
    return jax.lax.optimization_barrier(radius * _cosine(angle))


def uniforms(key, step, shape, dtype):
    """Numbers between 0 and 1, neither of them among these, for a step of a run."""
    seed = jax.random.key_data(key)
    words = seed[0] ^ step.astype(jnp.uint32), seed[1] ^ jnp.uint32(APART)
    high, low = philox(_places(shape), *words)
    if dtype == jnp.float32:
        return ((high >> 9).astype(dtype) + 0.5) * 2.0**-23
    return (high.astype(dtype) * 2.0**20 + (low >> 12).astype(dtype) + 0.5) * 2.0**-52


def _places(shape):
    """The number of each place of an array: the first word of its counter."""
    return jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)


def _cosine(f):
    """cos πf for −1 ≤ f < 1 to 1e-6: 1 − 2 sin²(πf/2), the sine interpolated in f²."""
    y = f * f
    value = SINE[-1]
    for coefficient in SINE[-2::-1]:
        value = coefficient + y * value
    return 1 - 2 * y * value * value


def _seed(seed):
    if seed.dtype.itemsize > 4:
        words = jax.lax.bitcast_convert_type(seed, jnp.uint32)
        return words[::-1]
    return jnp.stack([jnp.uint32(0), seed.astype(jnp.uint32)])


def _fold_in(key, data):
    first, second = philox(data.astype(jnp.uint32), key[0], key[1])
    return jnp.stack([first, second])


def _split(key, shape):
    index = jnp.arange(1, 1 + math.prod(shape), dtype=jnp.uint32).reshape(shape)
    first, second = philox(index, key[0] ^ jnp.uint32(APART), key[1])
    return jnp.stack([first, second], axis=-1)


def _random_bits(key, bit_width, shape):
    first, second = philox(_places(shape), key[0], key[1])
    if bit_width == 64:
        return first.astype(jnp.uint64) << 32 | second.astype(jnp.uint64)
    return first.astype(jnp.dtype(f"uint{bit_width}"))


PHILOX = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="philox2x32",
    tag="pl",
)
"""For `jax.random.key(seed, impl=PHILOX)`."""
