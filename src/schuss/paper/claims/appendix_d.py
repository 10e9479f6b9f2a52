"""Appendix D: algorithms, hyper-parameters, costs."""

from schuss.paper.claim import Finding, claim, untried
from schuss.paper.samplers import TARGETS


@claim(
    "D.1",
    "For implementation, we can improve numerical accuracy by scaling the numerator and "
    "denominator of the u updates in Eq. 7 by e^(−2|g|ε/d), so that we are more likely to get "
    "underflows than overflows in the exponentials.",
    rule="In single precision the scaled form is finite at δ of 50 and 200, where the printed one "
    "is not; and within 0.01 rad of u = −e its error is below 1000 units of 2⁻²³.",
    items="kick_precision",
)
def scaled_exponentials(kicks):
    errors = kicks["errors"]
    steep, near = "δ of 50 and 200", "within 0.01 rad of −e"
    public, ours = errors["public code"][near], errors["ours"][near]
    return Finding(
        f"finite: {errors['public code'][steep] is not None}, printed: "
        f"{errors['textbook'][steep] is not None}; near −e {public:.1e} units, ours {ours:.1e}",
        "extended precision",
        [
            errors["public code"][steep] is not None and errors["textbook"][steep] is None,
            public is not None and public < 1000,
        ],
    )


@claim(
    "D.1",
    "We also found that we had to treat u · e = −1 as a special case, where the update simplifies "
    "to u(t + ε) = −e.",
    rule="In single precision, from one mode of the mixture: the special case leaves no chain "
    "non-finite; and fewer than 1 % stray beyond |x| = 1.2, as in double precision.",
    items="kick_precision",
)
def special_case(kicks):
    public, ours = kicks["strays"]["public code"], kicks["strays"]["ours"]
    return Finding(
        f"{public['strayed']:.1%} stray, {public['not_finite']:.1%} non-finite; with a safe update "
        f"{ours['strayed']:.1%}",
        f"{kicks['chains']} chains",
        [public["not_finite"] == 0, public["strayed"] < 0.01],
    )


@claim(
    "D.1, Alg. 1",
    "r(t + ε) = r(t) + a(ε/2, g(x(t + ε)))",
    rule="Algorithm 1 as printed keeps H over 1000 steps of 0.01 on the mixture to a mean |ΔH| of "
    "0.2.",
    items="estimators",
)
def algorithm_1(estimators):
    drift = estimators["algorithm_1"]
    return Finding(
        f"{drift['as printed']:.3g}; with r(t + ε/2), as in Eq. 16, {drift['put right']:.3g}: a "
        "misprint",
        "50 chains",
        [drift["as printed"] < 0.2],
    )


@claim(
    "D.2, Alg. 2",
    "The expression on the right leads to a method for ergodic sampling in Alg. 2.",
    rule="Its means of |x|², x₁ > ¼ and E are within 3 standard errors of exact samples'.",
    items="estimators",
)
def algorithm_2(estimators):
    rows = estimators["rows"].values()
    off = [(r["mean"]["random time"] - r["truth"]) / r["error"]["random time"] for r in rows]
    listed = ", ".join(f"{value:+.1f}" for value in off)
    return Finding(
        f"off by {listed} standard errors",
        f"{estimators['chains']} chains",
        [abs(value) < 3 for value in off],
    )


@claim(
    "D.2, Alg. 3",
    "The final state of the buffer will correspond to a state drawn according to the weights, w.",
    rule="Which of 40 states reservoirs keep agrees with the weights: χ², p above 0.001.",
    items="estimators",
)
def algorithm_3(estimators):
    seen = estimators["reservoir"]
    return Finding(f"p = {seen['p']:.2g}", f"{seen['draws']} reservoirs", [seen["p"] > 0.001])


@claim(
    "D.2, Alg. 4",
    "Weighted samples are unbiased estimate of samples from p(x) = e^(−E(x))/Z",
    rule="With ε = 0.1 the weighted mean of E is within 0.05 of d/2, and with 0.55 too.",
    items="jarzynski",
)
def algorithm_4(jarzynski):
    energy = [run["paper"]["weighted_energy"][-1] for run in jarzynski["runs"].values()]
    return Finding(
        f"{energy[0]:.3f} and {energy[1]:.3f} for 1.5; self-normalised, so consistent rather than "
        "unbiased",
        f"{jarzynski['chains']} chains",
        [abs(value - 1.5) < 0.05 for value in energy],
    )


@claim(
    "D.4",
    "For MALA and ULA we used both step sizes of ε = {0.01, 0.1}.",
    rule="After 200 gradients 0.1 is the better of the two for ULA, and for MALA, on each of five "
    "targets, or like exact samples: the figure shows the better one.",
    items="mmd",
)
def both_steps(mmd):
    from schuss.paper.claims.curves import GAUSSIAN_AND_MIXTURE, floor, value

    met, worse = [], []
    for kind in ("ULA", "MALA"):
        for name in GAUSSIAN_AND_MIXTURE:
            large, small = (value(mmd, name, f"{kind} {step}", 200) for step in ("0.1", "0.01"))
            met.append(large <= max(small, floor(mmd, name)))
            if not met[-1]:
                worse.append(f"{kind} on {TARGETS[name]}")
    small = [value(mmd, "mog-prior", f"{kind} 0.01", 200) for kind in ("ULA", "MALA")]
    return Finding(
        f"{sum(met)} of {len(met)}{'; not ' + ', '.join(worse) if worse else ''}; on MOG-prior "
        f"0.01 is at {small[0]:.3f} and {small[1]:.3f}",
        f"{mmd['chains']} chains",
        met,
    )


@claim(
    "D.4",
    "For the Nose-Hoover sampler we used a step size of ε = 0.01 because larger step sizes "
    "resulted in numerical errors.",
    rule="On each of six targets a step of 0.03, the next on a grid of halves of powers of ten, "
    "leaves some chain non-finite.",
    items="step_sizes",
)
def nose_hoover_step(step_sizes):
    targets = step_sizes["targets"]
    first = {}
    for name, row in targets.items():
        broken = [float(step) for step, share in row["nose_hoover"].items() if share > 0]
        first[name] = min(broken, default=float("inf"))
    listed = ", ".join(
        f"{TARGETS[n]} {'none up to 1' if s == float('inf') else f'{s:g}'}"
        for n, s in first.items()
    )
    return Finding(
        f"first errors at {listed}",
        f"{step_sizes['chains']} chains",
        [s <= 0.03 for s in first.values()],
    )


@claim(
    "D.4",
    "For the ESH Leapfrog sampler we used ε = 0.1 because we noted from the comparison of ESH ODE "
    "solvers that smaller values were less effective, and ε = 1 sometimes led to numerical errors.",
    rule="ε = 0.01 has a higher MMD² after 200 gradients than 0.1 on each of five targets; and ε = "
    "1 leaves some chain non-finite with the update as printed.",
    items="step_sizes",
)
def smaller_less_effective(step_sizes):
    from schuss.paper.claims.curves import GAUSSIAN_AND_MIXTURE

    rows = {name: step_sizes["targets"][name] for name in GAUSSIAN_AND_MIXTURE}
    less = [row["esh"]["0.01"]["mmd"] > row["esh"]["0.1"]["mmd"] for row in rows.values()]
    lost = {name: row["printed"]["1"] for name, row in step_sizes["targets"].items()}
    public = max(row["public"]["1"] for row in step_sizes["targets"].values())
    return Finding(
        f"less effective on {sum(less)} of {len(less)}; at ε = 1 {max(lost.values()):.0%} "
        f"non-finite as printed, {public:.0%} with the public code's update",
        f"{step_sizes['chains']} chains",
        [*less, max(lost.values()) > 0],
    )


@claim(
    "D.4",
    "Although a step size for ESH of ε = 1 worked better for sampling the pre-trained JEM model, "
    "the error from discretizing the ODE goes like O(ε³) so we erred on the conservative side by "
    "using ε < 1.",
    rule="On the joint model ESH 1 is below ESH ½ after 200 gradients, from noise and from the "
    "buffer; and one step's error has a slope between 2.8 and 3.2.",
    items="jem structure",
)
def larger_step_on_jem(jem, structure):
    ends = {
        start: [jem["curves"][start][name]["energy"][-1] for name in ("ESH 1", "ESH 0.5")]
        for start in ("noise", "buffer")
    }
    slope = structure["order"]["scaled"]["one step"]["slope"]
    listed = "; ".join(f"from {s} {a:.2f} for {b:.2f}" for s, (a, b) in ends.items())
    return Finding(
        f"{listed}; slope {slope:.2f}",
        "50 chains",
        [*(a < b for a, b in ends.values()), 2.8 < slope < 3.2],
    )


@claim(
    "D.4",
    "When we tried ε > 1 we always got numerical errors, so the apparent stability of the choice ε "
    "= 1 may require more consideration.",
    rule="With ε = 3 and with ε = 10 some chain is non-finite on each of six targets, in single "
    "precision: with the update as printed; with the public code's; and with a safe one.",
    items="step_sizes",
)
def errors_beyond_one(step_sizes):
    rows = step_sizes["targets"].values()
    broken = {
        "as printed": [min(row["printed"][step] for step in ("3", "10")) > 0 for row in rows],
        "the public code's": [min(row["public"][step] for step in ("3", "10")) > 0 for row in rows],
        "a safe one": [
            min(row["esh"][step]["frozen single"] for step in ("3", "10")) > 0 for row in rows
        ],
    }
    listed = ", ".join(f"{name} {sum(each)}" for name, each in broken.items())
    return Finding(
        f"errors on so many of 6 targets: {listed}",
        f"{step_sizes['chains']} chains",
        [all(each) for each in broken.values()],
    )


cost = untried(
    "D.5",
    "The CIFAR EBM in Sec. 3.4 trained using 4 Tesla V100 GPUs for about 1 day for each "
    "experiment.",
    rule="A run of the paper's 250 epochs of 100 steps at batch 500 takes at most a day on one "
    "GPU.",
    command="python -m schuss.ebm.persistent cifar --data PATH --work FOLDER --set "
    "iterations=25000 --set steps=100 --set batch=500",
)
