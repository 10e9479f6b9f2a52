"""One call of `schuss.sample` in a process of its own: `one_run.py TARGET SEED ASK LIMIT`.

It prints one JSON row. ASK is "ess=400", "draws=1000" and so on, or "default". After LIMIT CPU
seconds the call is interrupted as by Ctrl-C, and the row is about what it gives then. CPU seconds
are those of the process up to the end of the call, with their parts: the import of JAX and schuss,
building the target, the call. What is computed from the draws afterwards isn't counted.

An error is counted in standard errors, √(true variance / ESS) with the ESS of the returned draws by
ArviZ, and the reference's own error added in squares.
"""

import importlib.util
import json
import pathlib
import resource
import signal
import sys
import time
import warnings

HERE = pathlib.Path(__file__).parent
REFERENCES = HERE / "results" / "references-loop.json"
TAIL = 0.01


def necks():
    """The module of the necks from the working tree, which an old version lacks."""
    path = HERE.parent / "src" / "schuss" / "targets" / "necks.py"
    spec = importlib.util.spec_from_file_location("necks", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def subject(name):
    """What `sample` is called with, for a target or a model."""
    from schuss import targets

    if name.startswith("neck-"):
        return {"target": necks().NECKS[name]()}
    if name in targets.TARGETS or name in targets.posteriors.POSTERIORS:
        return {"target": targets.get(name)}
    from models import MODELS

    model = MODELS[name]()
    return {"logdensity": model.logdensity, "init": model.init}


def wish(ask):
    """The argument of `sample` that is asked for."""
    if ask == "default":
        return {}
    key, value = ask.split("=")
    return {key: int(value)}


def sampler():
    """The run as one loop where the version has it, else `schuss.sample`."""
    try:
        from schuss.sampling.sample import sample
    except ImportError:
        from schuss import sample
    return sample


def call(arguments, limit):
    """The posterior, or the error; interrupted after `limit` CPU seconds."""
    import schuss

    def interrupt(number, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", schuss.NotConverged)
            return sampler()(**arguments, progress=False), None
    except (Exception, KeyboardInterrupt) as error:
        return None, f"{type(error).__name__}: {error}"[:300]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def ess(column, method):
    """ArviZ's ESS of (chains, draws), and 0 where there is none."""
    import arviz
    import numpy as np

    found = float(arviz.ess(column, method=method)) if column.shape[1] >= 4 else 0.0
    return found if np.isfinite(found) else 0.0


def truth(name, given):
    """The true moments of flat positions and the standard errors of mean and second moment."""
    import numpy as np

    if "target" not in given:
        stored = json.loads(REFERENCES.read_text()) if REFERENCES.exists() else {}
        if name not in stored:
            return None
        return {key: np.array(value, float) for key, value in stored[name]["moments"].items()}
    known = given["target"].truth
    if known is None:
        return None
    keys = ("mean", "variance", "second_moment", "second_variance")
    found = {key: np.asarray(getattr(known, key), float) for key in keys}
    from schuss.targets import posteriors

    try:
        error = posteriors.reference_error(name)
    except ValueError:
        return found | {"mean_error": 0.0, "second_error": 0.0}
    return found | {"mean_error": error.mean, "second_error": error.second_moment}


def against_truth(x, known):
    """b² of the second moments, and the largest errors of mean and second moment."""
    import numpy as np

    mean, second = x.mean((0, 1)), (x**2).mean((0, 1))
    b2 = (second - known["second_moment"]) ** 2 / known["second_variance"]
    row = {"b2max": float(b2.max()), "b2mean": float(b2.mean())}
    for key, values, off, variance, own in (
        ("error_mean", x, mean - known["mean"], known["variance"], known["mean_error"]),
        (
            "error_second",
            x**2,
            second - known["second_moment"],
            known["second_variance"],
            known["second_error"],
        ),
    ):
        sizes = np.array([ess(values[..., i], "mean") for i in range(x.shape[2])])
        error = np.sqrt(variance / np.maximum(sizes, 1.0) + np.square(own))
        row[key] = float(np.max(np.abs(off) / error))
    return row


def neck_errors(name, x):
    """E v² and the masses beyond the 1 % tails of each parent, with ESS and errors.

    The ESS of an indicator is too large where few draws are beyond the tail, so that of a tail is
    at most ArviZ's tail ESS of v.
    """
    import numpy as np
    from scipy.stats import norm

    module = necks()
    parents, found = np.moveaxis(module.parents(name, x), -1, 0), []
    for v, sd in zip(parents, module.SHAPES[name].sds, strict=True):
        square, size = float((v**2).mean()), ess(v**2, "mean")
        error = sd**2 * np.sqrt(2 / max(size, 1.0))
        row = {"square": square / sd**2, "square_ess": size}
        row["square_error"] = float((square - sd**2) / error)
        for side, sign in (("low", -1), ("high", 1)):
            beyond = (sign * v > sd * norm.isf(TAIL)).astype(float)
            size = min([ess(v, "tail")] + [ess(beyond, "mean")] * bool(beyond.any()))
            error = np.sqrt(TAIL * (1 - TAIL) / max(size, 1.0))
            row |= {side: float(beyond.mean()), f"{side}_ess": size}
            row[f"{side}_error"] = float((beyond.mean() - TAIL) / error)
        found.append(row)
    return found


def outcome(name, given, post):
    """What the draws are worth, by ArviZ, by the run itself and against the truth."""
    import numpy as np

    assert post.weights is None, "ArviZ's ESS knows no weights"
    x = np.asarray(post.x, float)
    columns = [x[..., i] for i in range(x.shape[2])]
    verdict = post.verdict
    row = {
        "gradients": int(sum(post.stats.gradients.values())),
        "dim": x.shape[2],
        "chains": x.shape[0],
        "draws": x.shape[1],
        "ess": min(ess(column, kind) for column in columns for kind in ("bulk", "tail")),
        "ess_said": verdict.numbers.get("ess"),
        "rhat_said": verdict.numbers.get("rhat"),
        "converged": bool(verdict.converged),
        "kinds": sorted({reason.kind for reason in verdict.reasons}),
        "reasons": [str(reason.what)[:160] for reason in verdict.reasons],
        "interrupted": bool(post.stats.interrupted),
    }
    known = truth(name, given)
    if known is not None:
        row |= against_truth(x, known)
    if name.startswith("neck-"):
        row["parents"] = neck_errors(name, x)
    return row


def main():
    """Import, build, call, judge, print."""
    name, seed, ask, limit = sys.argv[1:]
    import jax.numpy  # noqa: F401

    import schuss  # noqa: F401

    imported = time.process_time()
    given = subject(name)
    built = time.process_time()
    post, error = call(given | wish(ask) | {"seed": int(seed)}, float(limit))
    called = time.process_time()
    row = {
        "cpu_seconds": called,
        "import_seconds": imported,
        "build_seconds": built - imported,
        "call_seconds": called - built,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    row |= {"error": error} if post is None else outcome(name, given, post)
    print(json.dumps(row))


if __name__ == "__main__":
    main()
