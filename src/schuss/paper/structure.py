"""What section 2 says of the dynamics and of its integrators: conserved, volume, reversed, order.

    original   (Eq. 2)   x' = v/(v²/d)      v' = −g
    scaled     (Eq. 6)   x' = v/|v|         v' = −|v| g/d

The flow itself is SciPy's DOP853 at tolerance 1e-12, its Jacobian by differences of fourth order;
those of integrators are by automatic differentiation. The scaled flow keeps no volume of (x, v):
log det is log|v(t)|/|v(0)| (App. C.1).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from schuss.algorithms import ESH, Unscaled
from schuss.core.dynamics import ESH as SCALED
from schuss.core.dynamics import leap, q_dynamics
from schuss.core.integrators import LEAPFROG
from schuss.core.kernel import Point
from schuss.engines.width import wide
from schuss.paper.item import Advance, Item, Settings, short
from schuss.paper.markdown import table
from schuss.targets import Target, coupled_quartic, mog_prior
from schuss.trajectory import trajectory

ORIGINAL = q_dynamics(1)
STEPS = (0.16, 0.08, 0.04, 0.02, 0.01)
SPAN, TOLERANCE, NUDGE = 3.0, 1e-12, 1e-5
BACK = 200  # steps out and back


def _starts(chains: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, v = rng.standard_normal((2, chains, 2))
    return x, v / np.linalg.norm(v, axis=1, keepdims=True)


def hamiltonian(target: Target, z: np.ndarray) -> np.ndarray:
    """E(x) + d/2 log(v²/d) of states z = (x, v), (chains, 2 d)."""
    d = target.dim
    square = np.sum(z[:, d:] ** 2, axis=1)
    return target.energy(np, z[:, :d]) + d / 2 * np.log(square / d)


def field(target: Target, scaled: bool, xp: Any = np) -> Callable:
    """The time derivative of one state z = (x, v)."""
    d = target.dim

    def derivative(t: float, z):
        v, g = z[d:], target.gradient(xp, z[None, :d])[0]
        speed = xp.sqrt(xp.sum(v * v))
        if scaled:
            return xp.concatenate([v / speed, -speed / d * g])
        return xp.concatenate([d * v / speed**2, -g])

    return derivative


def flow(target: Target, scaled: bool, span: float) -> Callable:
    """The exact flow over a time, as a map of states (chains, 2 d)."""

    def moved(z: np.ndarray) -> np.ndarray:
        given: Any = {"method": "DOP853", "rtol": TOLERANCE, "atol": TOLERANCE}
        ends = [solve_ivp(field(target, scaled), (0, span), row, **given).y[:, -1] for row in z]
        return np.asarray(ends)

    return moved


def leapfrog(target: Target, scaled: bool, step: float, count: int = 1, xp: Any = np) -> Callable:
    """So many steps of the library's leapfrog, as a map of states (chains, 2 d)."""
    d = target.dim

    def grad_fn(x):
        return target.energy(xp, x), target.gradient(xp, x)

    def moved(z):
        x, v = z[:, :d], z[:, d:]
        speed = xp.sqrt(xp.sum(v * v, axis=1))
        u = v / speed[:, None] if scaled else v
        point = Point(x, u, xp.log(speed), *grad_fn(x))
        dynamics = SCALED if scaled else ORIGINAL
        for _ in range(count):
            point = leap(xp, grad_fn, dynamics, LEAPFROG, point, xp.asarray(step), float(d))
        v = xp.exp(point.r)[:, None] * point.u if scaled else point.u
        return xp.concatenate([point.x, v], axis=1)

    return moved


def runge_kutta(target: Target, step: float, count: int = 1, xp: Any = np) -> Callable:
    """Steps of the classical Runge–Kutta scheme for the original dynamics."""
    derivative = field(target, False, xp)

    def one(z):
        a = derivative(0, z)
        b = derivative(0, z + step / 2 * a)
        c = derivative(0, z + step / 2 * b)
        return z + step / 6 * (a + 2 * b + 2 * c + derivative(0, z + step * c))

    def moved(z):
        for _ in range(count):
            z = xp.stack([one(row) for row in z])
        return z

    return moved


def differentiated(moved: Callable, z: np.ndarray) -> np.ndarray:
    """Jacobians of a map in JAX at each state, (chains, 2 d, 2 d)."""
    with wide():
        one = jax.jit(jax.jacfwd(lambda row: moved(row[None])[0]))
        return np.stack([np.asarray(one(jnp.asarray(row))) for row in z])


def jacobians(moved: Callable, z: np.ndarray) -> np.ndarray:
    """Of a map at each state by differences of fourth order, (chains, 2 d, 2 d)."""
    columns = []
    for direction in NUDGE * np.eye(z.shape[1]):
        near = moved(z + direction) - moved(z - direction)
        far = moved(z + 2 * direction) - moved(z - 2 * direction)
        columns.append((8 * near - far) / (12 * NUDGE))
    return np.stack(columns, axis=-1)


def _volume(jacobian: np.ndarray) -> dict[str, Any]:
    """How far |det| is from one, and the form dx∧dv from its pull-back."""
    d = jacobian.shape[-1] // 2
    form = np.block([[np.zeros((d, d)), np.eye(d)], [-np.eye(d), np.zeros((d, d))]])
    pulled = np.swapaxes(jacobian, 1, 2) @ form @ jacobian
    return {
        "log_det": short(np.abs(np.linalg.slogdet(jacobian)[1]).max()),
        "form": short(np.abs(pulled - form).max()),
    }


def _jacobian_law(jacobian: np.ndarray, moved: Callable, z: np.ndarray) -> float:
    """log det − log |v(t)|/|v(0)| of the scaled flow, at most."""
    d = z.shape[1] // 2
    log_det = np.linalg.slogdet(jacobian)[1]
    gained = np.log(np.linalg.norm(moved(z)[:, d:], axis=1) / np.linalg.norm(z[:, d:], axis=1))
    return short(np.abs(log_det - gained).max())


def _reversal(moved: Callable, z: np.ndarray) -> float:
    """How far from the start a path is that went there and back."""
    d = z.shape[1] // 2
    turn = np.concatenate([np.ones(d), -np.ones(d)])
    back = moved(turn * moved(z)) * turn
    return short(np.abs(back - z).max())


def _slope(errors: list[float]) -> float:
    """Of the logarithms against those of the steps."""
    return short(np.polyfit(np.log(STEPS), np.log(errors), 1)[0])


def _order(target: Target, scaled: bool, z: np.ndarray) -> dict[str, Any]:
    """Errors of one step, and of as many as make up the span."""
    local, whole, drift = [], [], []
    reference = flow(target, scaled, STEPS[0] * 10)(z)
    for step in STEPS:
        one = leapfrog(target, scaled, step)(z)
        exact = flow(target, scaled, step)(z)
        local.append(np.abs(one - exact).max(axis=1))
        end = leapfrog(target, scaled, step, round(STEPS[0] * 10 / step))(z)
        whole.append(np.abs(end - reference).max(axis=1))
        drift.append(np.abs(hamiltonian(target, one) - hamiltonian(target, z)))
    found = {"one step": local, "a fixed time": whole, "energy of one step": drift}
    return {
        name: {"errors": short([np.median(e) for e in each]), "slope": _slope_of(each)}
        for name, each in found.items()
    }


def _slope_of(each: list[np.ndarray]) -> float:
    return _slope([float(np.median(e)) for e in each])


def _speed_free(target: Target, z: np.ndarray) -> float:
    """How far a path of the scaled flow moves in x when |v| is a thousand times as large."""
    d = z.shape[1] // 2
    moved = flow(target, scaled=True, span=SPAN)
    other = np.concatenate([z[:, :d], 1000 * z[:, d:]], axis=1)
    return short(np.abs(moved(z) - moved(other))[:, :d].max())


def _distances(settings: Settings) -> dict[str, Any]:
    """How long steps of the original leapfrog are, and how far 200 of them go, on MOG-prior."""
    chains = 20 if settings.quick else 500
    out = {}
    for name, sampler in (("original", Unscaled(step_size=0.1)), ("scaled", ESH(step_size=0.1))):
        path = trajectory(
            mog_prior(),
            chains=chains,
            sampler=sampler,
            steps=200,
            seed=settings.seed,
            engine="numpy",
        )
        lengths = np.linalg.norm(np.diff(path.x, axis=0), axis=-1)
        shares = np.quantile(lengths, (0.05, 0.95))
        out[name] = {"ratio": short(shares[1] / shares[0]), "longest": short(lengths.max())}
    return out


def count_gradients(steps: int) -> int:
    """Gradients that a path of the library takes."""
    calls = []

    def value_and_grad(x):
        calls.append(len(x))
        return np.sum(x**4, axis=-1) / 4, x**3

    start = np.asarray([[1.0, 0.5]])
    trajectory(value_and_grad=value_and_grad, init=start, steps=steps, seed=0)
    return len(calls)


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    target = coupled_quartic()
    x, v = _starts(2 if settings.quick else 12, settings.seed)
    z = np.concatenate([x, v], axis=1)
    original, spans = flow(target, False, SPAN / 3), (0.05, 5)
    drift = hamiltonian(target, original(z)) - hamiltonian(target, z)
    found: dict[str, Any] = {"chains": len(z), "drift": short(np.abs(drift).max())}
    found["volume"] = {
        "flow, original": _volume(jacobians(original, z)),
        "leapfrog, original": _volume(differentiated(leapfrog(target, False, *spans, jnp), z)),
        "Runge–Kutta, original": _volume(differentiated(runge_kutta(target, *spans, jnp), z)),
    }
    advance("volume")
    scaled = flow(target, True, SPAN / 3), leapfrog(target, True, 0.1, 5)
    made = jacobians(scaled[0], z), differentiated(leapfrog(target, True, 0.1, 5, jnp), z)
    found["jacobian_law"] = {
        name: _jacobian_law(jacobian, moved, z)
        for name, jacobian, moved in zip(("flow", "leapfrog"), made, scaled, strict=True)
    }
    advance("Jacobian of the scaled flow")
    rides = {
        "flow, original": original,
        "leapfrog, original": leapfrog(target, False, 0.02, BACK),
        "leapfrog, scaled": leapfrog(target, True, 0.1, BACK),
        "Runge–Kutta, original": runge_kutta(target, *spans),
    }
    found["reversal"] = {name: _reversal(moved, z) for name, moved in rides.items()}
    advance("reversal")
    found["order"] = {
        name: _order(target, scaled, z) for name, scaled in (("original", False), ("scaled", True))
    }
    advance("order")
    found["speed_free"] = _speed_free(target, z)
    found["steps"] = _distances(settings)
    found["gradients"] = {"steps": 100, "gradients": count_gradients(100)}
    advance("lengths of steps")
    return found


def _tell(result: dict[str, Any]) -> str:
    volume = [
        (name, f"{row['log_det']:.1e}", f"{row['form']:.1e}", f"{result['reversal'][name]:.1e}")
        for name, row in result["volume"].items()
    ]
    volume.append(("leapfrog, scaled", "–", "–", f"{result['reversal']['leapfrog, scaled']:.1e}"))
    order = [
        (name, kind, f"{row['slope']:.2f}", ", ".join(f"{e:.1e}" for e in row["errors"]))
        for name, kinds in result["order"].items()
        for kind, row in kinds.items()
    ]
    law, steps = result["jacobian_law"], result["steps"]
    heads = "largest abs. log det", "largest change of the form dx∧dv", "there and back"
    return "\n\n".join(
        [
            f"Largest errors over {result['chains']} states on the coupled quartic in two "
            "dimensions. Runge–Kutta is the classical scheme of fourth order with fixed steps of "
            "0.05, as the original leapfrog here.",
            table(("map", *heads), volume),
            f"Errors of the leapfrog (medians) with ε = {', '.join(f'{s:g}' for s in STEPS)}, "
            "and the slope of their logarithms:",
            table(("dynamics", "error of", "slope", "errors"), order),
            "The scaled flow keeps no volume of (x, v): its log det is log |v(t)|/|v(0)| to "
            f"{law['flow']:.0e}, that of its leapfrog likewise to {law['leapfrog']:.0e}. On "
            "MOG-prior with ε = 0.1 the 95 % quantile of the lengths of steps is "
            f"{steps['original']['ratio']:.3g} times the 5 % quantile for the original leapfrog, "
            f"{steps['scaled']['ratio']:.3g} times for the scaled one.",
        ]
    )


ITEM = Item(
    name="structure",
    title="Conservation, volume, reversal and order",
    place="Section 2 and Appendices B.1 and C.1",
    compute=_compute,
    draw=lambda result, folder: [],
    tell=_tell,
    parts=lambda settings: 5,
)
