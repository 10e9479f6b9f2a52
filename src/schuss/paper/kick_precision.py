"""Three forms of the velocity update in single precision, against extended precision (App. D.1).

    textbook      (Eq. 7)    [u + e (sinh δ + c cosh δ − c)]/(cosh δ + c sinh δ),  c = u·e
    public code   (App. D.1) the same times e^(−δ), with u' = −e where u·e = −1
    ours          (kick.py)  written with u + e and expm1

The truth is the closed form tan(θ'/2) = e^(−δ) tan(θ/2) for the angle to e, in NumPy's extended
precision, from the angle itself and not from its cosine.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from schuss.core.kick import kick
from schuss.diagnostics import mmd2, reference
from schuss.paper.item import Advance, Item, Settings, short
from schuss.paper.markdown import table
from schuss.paper.single_precision import public_esh
from schuss.targets import mog, mog_prior

F = np.float32
DELTAS = (1e-3, 0.1, 1.0, 10.0, 50.0, 200.0)
ANGLES = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)
"""Angles between u and −e."""
STRAYED = 1.2
KICKS = 10_000


def textbook(u: np.ndarray, g: np.ndarray, h: Any) -> np.ndarray:
    """Eq. 7 as it is printed, d = 2."""
    length = np.linalg.norm(g, axis=1, keepdims=True)
    e, delta = -g / length, h * length / F(2)
    c = np.sum(u * e, axis=1, keepdims=True)
    top = u + e * (np.sinh(delta) + c * np.cosh(delta) - c)
    return top / (np.cosh(delta) + c * np.sinh(delta))


def public(u: np.ndarray, g: np.ndarray, h: Any) -> np.ndarray:
    """The same scaled by e^(−δ), normalised, and with the paper's special case."""
    length = np.linalg.norm(g, axis=1, keepdims=True)
    e, delta = -g / length, h * length / F(2)
    c, zeta = np.sum(u * e, axis=1, keepdims=True), np.exp(-delta)
    turned = np.where(c > -1, (1 + c + (c - 1) * zeta**2) * e + 2 * zeta * (u - c * e), -e)
    return turned / np.linalg.norm(turned, axis=1, keepdims=True)


def ours(u: np.ndarray, g: np.ndarray, h: Any) -> np.ndarray:
    """The library's."""
    return kick(np, u, g, np.asarray(h), F(2))[0]


FORMS: dict[str, Callable] = {"textbook": textbook, "public code": public, "ours": ours}


def angle_after(angle: float, delta: float) -> float:
    """The angle to e after a kick, from the angle to −e before, in extended precision."""
    half, fall = np.longdouble(angle) / 2, np.longdouble(delta)
    # tan(θ/2) = 1/tan(angle/2) for θ = π − angle
    return float(2 * np.arctan(np.exp(-fall) / np.tan(half)))


def _one(form: Callable, angle: float, delta: float, size: float) -> float | None:
    """The error of the direction, in units of 2⁻²³, for a gradient of the length `size`."""
    g = np.asarray([[-size, 0.0]], F)  # e = (1, 0)
    u = np.asarray([[-math.cos(angle), math.sin(angle)]], F)
    with np.errstate(all="ignore"):
        turned = form(u, g, F(2 * delta / size))[0].astype(float)
    # u was rounded to single precision: its own angle is what counts.
    start = math.atan2(float(u[0, 1]), -float(u[0, 0]))
    wanted = angle_after(start, delta)
    error = np.hypot(turned[0] - math.cos(wanted), turned[1] - math.sin(wanted))
    return short(error / 2.0**-23) if np.isfinite(error) else None


def _worst(form: Callable, cases) -> float | None:
    """The largest error of all cases, None where one isn't finite."""
    errors = [_one(form, *case) for case in cases]
    return None if None in errors else max(errors)  # pyright: ignore


def _cases() -> dict[str, list[tuple[float, float, float]]]:
    generic = [(a, d, 1.0) for a in (2.5, 1.0, 0.1) for d in (1e-3, 0.1, 1.0)]
    near = [(a, d, 1.0) for a in ANGLES[2:] for d in (1.0, 10.0)]
    steep = [(a, d, 1.0) for a in (2.5, 1.0) for d in DELTAS[4:]]
    huge = [(a, 1.0, 1e25) for a in (2.5, 1.0)]
    return {
        "generic": generic,
        "within 0.01 rad of −e": near,
        "δ of 50 and 200": steep,
        "abs. g of 1e25": huge,
    }


def _flat(form: Callable) -> bool:
    """Whether a zero gradient leaves u as it is."""
    u = np.asarray([[0.6, 0.8]], F)
    with np.errstate(all="ignore"):
        return bool(np.allclose(form(u, np.zeros((1, 2), F), F(0.1)), u))


def _strays(form: str, kick_form: Callable, chains: int, seed: int) -> dict[str, Any]:
    """Chains from a mode that climb beyond |x| = 1.2 in 200 steps of .1, in single precision."""
    target = mog_prior()
    if form == "public code":
        x = public_esh(target, 200, chains, seed)
    else:
        x = _path(target, kick_form, chains, seed)
    finite = np.isfinite(x).all(axis=(0, 2))
    with np.errstate(invalid="ignore"):
        far = (np.linalg.norm(x, axis=-1) > STRAYED).any(axis=0)
    return {"strayed": short(np.mean(far & finite)), "not_finite": short(np.mean(~finite))}


def _path(target, form: Callable, chains: int, seed: int, step: float = 0.1) -> np.ndarray:
    """States of the scaled leapfrog in single precision, (201, chains, 2)."""
    rng = np.random.default_rng(seed)
    x = target.start(rng, chains).astype(F)
    u = rng.standard_normal(x.shape).astype(F)
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    path, half = [x], F(step / 2)
    with np.errstate(all="ignore"):
        g = target.gradient(np, x.astype(float)).astype(F)
        for _ in range(200):
            u = form(u, g, half)
            x = x + 2 * half * u
            g = target.gradient(np, x.astype(float)).astype(F)
            u = form(u, g, half)
            path.append(x)
    return np.stack(path)


def _distance(chains: int, seed: int) -> dict[str, Any]:
    """MMD² after 200 steps on the plain mixture, to see that no form matters there."""
    rng = np.random.default_rng([seed, 1])
    target = mog()
    assert target.sample is not None
    exact, found = reference(target.sample(rng, 2000)), {}
    for name, form in FORMS.items():
        x = _path(target, form, chains, seed)[-1].astype(float)
        found[name] = short(mmd2(x, exact)) if np.isfinite(x).all() else None
    return found


def _descent() -> dict[str, float]:
    """The largest angle to e after a kick, from angles to −e of 0.01 and more."""
    angles = np.linspace(0.01, math.pi, 200)
    return {
        f"{delta:g}": short(max(angle_after(angle, delta) for angle in angles))
        for delta in (1.0, 5.0, 20.0)
    }


def _length(kicks: int, seed: int) -> float:
    """How far |u| is from one after so many printed updates in double precision, none of which
    is followed by a normalisation.
    """
    rng = np.random.default_rng([seed, 2])
    u = rng.standard_normal((20, 2))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    for _ in range(kicks):
        u = textbook(u, rng.standard_normal((20, 2)), 0.1)
    return short(np.abs(np.linalg.norm(u, axis=1) - 1).max())


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    chains = 100 if settings.quick else 2000
    cases, found = _cases(), {"chains": chains, "errors": {}, "flat": {}, "strays": {}}
    for name, form in FORMS.items():
        found["errors"][name] = {kind: _worst(form, each) for kind, each in cases.items()}
        found["flat"][name] = _flat(form)
        found["strays"][name] = _strays(name, form, chains, settings.seed)
        advance(name)
    found["descent"], found["length"] = _descent(), _length(KICKS, settings.seed)
    found["mmd"] = _distance(min(chains, 500), settings.seed)
    advance("MMD")
    return found


def _tell(result: dict[str, Any]) -> str:
    kinds = list(_cases())

    def cell(value):
        return "not finite" if value is None else f"{value:.2g}"

    rows = [
        (
            name,
            *(cell(result["errors"][name][kind]) for kind in kinds),
            "kept" if result["flat"][name] else "lost",
            f"{result['strays'][name]['strayed']:.1%}",
            f"{result['strays'][name]['not_finite']:.1%}",
        )
        for name in FORMS
    ]
    heads = ("form", *kinds, "u at g = 0", "strayed", "not finite")
    return "\n\n".join(
        [
            "Largest error of u' in single precision, in units of 2⁻²³, and the share of "
            f"{result['chains']} chains from a mode of MOG-prior that stray beyond |x| = "
            f"{STRAYED:g} or turn non-finite in 200 steps of 0.1:",
            table(heads, rows),
            "From 0.01 rad beside −e a kick leaves u within "
            + ", ".join(f"{angle:.1e} rad of e (δ = {d})" for d, angle in result["descent"].items())
            + f"; {KICKS} printed updates in double precision leave |u| within "
            f"{result['length']:.1e} of one.",
            "Near u = −e the result hangs on 1 + u·e, of which single precision has lost the "
            "digits before the update begins; only a form written with u + e keeps them.",
        ]
    )


ITEM = Item(
    name="kick_precision",
    title="Kicks in single precision",
    place="Appendix D.1",
    compute=_compute,
    draw=lambda result, folder: [],
    tell=_tell,
    parts=lambda settings: 4,
)
