"""Appendix C: Jarzynski's weights."""

import numpy as np

from schuss.paper.claim import Finding, claim, untried
from schuss.paper.weighted_buffer import EPOCH, EPOCHS, late

WEIGHTED = "python -m schuss.ebm.weighted_buffer --data PATH --work FOLDER"


@claim(
    "C.1",
    "This expression is the discrete change of variables for the transformation from q₀(x(0), "
    "v(0)) to q_t(x(t), v(t)), and we can now pick out the log-determinant of the Jacobian as log "
    "|det ∂(x(0), v(0))/∂(x(t), v(t))| = log |v(0)| − log |v(t)|.",
    rule="The scaled flow's log det is log |v(t)|/|v(0)| to 1e-7, and its leapfrog's too.",
    items="structure",
)
def jacobian(structure):
    law = structure["jacobian_law"]
    return Finding(
        f"flow {law['flow']:.0e}, leapfrog {law['leapfrog']:.0e}",
        "deterministic",
        [value < 1e-7 for value in law.values()],
    )


@claim(
    "C.2",
    "First, we see that the Hamiltonian is approximately conserved.",
    rule="With ε = 0.1 the mean |ΔH| is below 1 % of the fall of ⟨E⟩.",
    items="jarzynski",
)
def approximately_conserved(jarzynski):
    fine = jarzynski["runs"]["fine"]
    fall = fine["energy"][0] - min(fine["energy"])
    return Finding(
        f"{fine['drift']:.3g} for a fall of {fall:.1f}",
        f"{jarzynski['chains']} chains",
        [fine["drift"] < fall / 100],
    )


@claim(
    "C.2",
    "The average energy starts high then quickly converges to a low energy state, while the "
    "kinetic energy (d r(t)) starts low and becomes large.",
    rule="In 20 steps ⟨E⟩ covers 90 % of its fall to its mean over the last half, and d⟨r⟩ 90 % of "
    "its rise.",
    items="jarzynski",
)
def quickly_low(jarzynski):
    fine = jarzynski["runs"]["fine"]
    at = fine["steps"].index(20)
    shares = {}
    for key in ("energy", "kinetic"):
        curve = np.asarray(fine[key])
        late = curve[len(curve) // 2 :].mean()
        shares[key] = (curve[at] - curve[0]) / (late - curve[0])
    return Finding(
        f"{shares['energy']:.0%} of the fall, {shares['kinetic']:.0%} of the rise",
        f"{jarzynski['chains']} chains",
        [value >= 0.9 for value in shares.values()],
    )


@claim(
    "C.2",
    "Finally, we see that the weights in Eq. 9 correctly give an estimate of the partition "
    "function.",
    rule="With ε = 0.1 log Z is within 2 standard errors at the end and at more than 80 % of the "
    "times; and with ε = 0.55, where H drifts, at the end too.",
    items="jarzynski",
)
def partition_function(jarzynski):
    off = {}
    for name, run in jarzynski["runs"].items():
        last = run["paper"]
        off[name] = (last["log_z"][-1] - jarzynski["log_z"]) / last["error"][-1]
    fine = jarzynski["runs"]["fine"]["paper"]
    within = np.abs(np.asarray(fine["log_z"]) - jarzynski["log_z"]) <= 2 * np.asarray(fine["error"])
    return Finding(
        f"ε 0.1: {off['fine']:+.1f} standard errors, {within.mean():.0%} of times; ε 0.55: "
        f"{off['coarse']:+.1f}",
        f"± {fine['error'][-1]:.3f}",
        [abs(off["fine"]) < 2 and within.mean() > 0.8, abs(off["coarse"]) < 2],
    )


@claim(
    "C.2",
    "Note that at t = 0, the weights correspond to standard importance sampling.",
    rule="At t = 0 the paper's and the exact weights give the same log Z to 1e-6, within 3 "
    "standard errors of the truth.",
    items="jarzynski",
)
def importance_sampling(jarzynski):
    run = jarzynski["runs"]["fine"]
    first = [run[form]["log_z"][0] for form in ("paper", "exact")]
    error = run["paper"]["error"][0]
    return Finding(
        f"{first[0]:.4f} and {first[1]:.4f} for {jarzynski['log_z']:.4f}",
        f"± {error:.3f}",
        [abs(first[0] - first[1]) < 1e-6, abs(first[0] - jarzynski["log_z"]) < 3 * error],
    )


@claim(
    "C.3",
    "Better sampling leads to better gradients and therefore the model trained with ESH sampling "
    "more crisply matches the true distribution.",
    rule="For every seed, on the mixture and on the rings, ESH's model is nearer to the truth in "
    "total variation than the nearest of Langevin's.",
    items="toy_ebm",
)
def crisper(toy):
    met, listed = [], []
    for data in ("mixture", "rings"):
        by = {
            s: [r["distance"] for r in toy["rows"] if r["data"] == data and r["sampler"] == s]
            for s in ("ESH", "ULA")
        }
        met.append(max(by["ESH"]) < min(by["ULA"]))
        listed.append(f"{data}: {max(by['ESH']):.3f} at most for {min(by['ULA']):.3f} at least")
    return Finding("; ".join(listed), "3 seeds", met)


langevin_fails = untried(
    "C.3",
    "Predictably, the EBM trained with Langevin dynamics fails egregiously without carefully "
    "chosen hyper-parameters.",
    rule="Of 3 seeds of D.4's setting (no data noise, 50 steps, buffer of 50,000, Adam 1e-3, 30 "
    "epochs) Langevin diverges, or ends with |E₊ − E₋| beyond its limits, in every one.",
    command=WEIGHTED,
)


@claim(
    "C.3",
    "The training with ESH dynamics was stable and led to visually plausible color distributions "
    "and diverse signals.",
    rule="In D.4's setting with Jarzynski's weights and E₀ constant: no run diverges; the buffer's "
    "mean colours are nearer to the data's than uniform noise's; and this is so for 3 seeds of 30 "
    "epochs.",
    items="weighted_buffer",
)
def stable_training(weighted):
    runs = [run for run in weighted["runs"].values() if run["sampler"] == "ESH"]
    epochs = [len(run["max_weight"]) / EPOCH for run in runs]
    near = [run["colour"] is not None and run["colour"] < run["colours"]["noise"] for run in runs]
    stopped = sum(bool(run["stopped"]) for run in runs)
    listed = ", ".join(f"{run['colour']:.3f}" for run in runs if run["colour"] is not None)
    return Finding(
        f"{stopped} of {len(runs)} diverged in {min(epochs):g} epochs; colours {listed}, noise "
        f"{runs[0]['colours']['noise']:.3f}",
        f"{len(runs)} seed",
        [not stopped, all(near), len(runs) >= 3 and min(epochs) >= EPOCHS],
    )


stopped_improving = untried(
    "C.3",
    "However, although training was stable, we noticed that the quality of the solutions stopped "
    "improving after the early epochs.",
    rule="By the ruler the buffer's distance in the last third of training is not below that in "
    "the second third by more than its scatter over seeds.",
    command=WEIGHTED,
)


@claim(
    "C.3",
    "After a few iterations, almost all the weight ends up concentrated on a single image in each "
    "batch.",
    rule="In D.4's setting the largest weight of a batch is above 0.9 on average from iteration 10 "
    "on.",
    items="weighted_buffer",
)
def one_image(weighted):
    runs = [run for run in weighted["runs"].values() if run["sampler"] == "ESH"]
    found = [late(run) for run in runs]
    return Finding(
        ", ".join(f"{value:.3f}" for value in found),
        f"{len(runs)} seed, {len(runs[0]['max_weight'])} iterations",
        [value > 0.9 for value in found],
    )


@claim(
    "C.3",
    "Although the Jarzynski ESH sampler is an unbiased estimator for expectations under the energy "
    "model, it may have very high variance if the weights are very unbalanced.",
    rule="Unbiased: with ε = 0.1 and with 0.55 the paper's weights give log Z within 2 standard "
    "errors. Variance: in 50 dimensions fewer than 5 of 256 chains are left effective.",
    items="jarzynski",
)
def unbiased_with_variance(jarzynski):
    off = []
    for run in jarzynski["runs"].values():
        last = run["paper"]
        off.append((last["log_z"][-1] - jarzynski["log_z"]) / last["error"][-1])
    left = next(row["weight_ess"] for row in jarzynski["diagnosis"] if row["dim"] == 50)
    return Finding(
        f"off by {off[0]:+.1f} and {off[1]:+.1f} standard errors; {left:.1f} effective chains",
        "10,000 and 256 chains",
        [abs(off[0]) < 2, abs(off[1]) < 2, left < 5],
    )
