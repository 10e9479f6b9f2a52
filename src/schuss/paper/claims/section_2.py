"""Section 2: the dynamics, ergodicity, integrators, Jarzynski."""

import math

from schuss.paper.claim import Finding, claim

ROUNDING = 1e-8
"""What differences of maps in double precision leave of zero."""


@claim(
    "2",
    "Most importantly, the Hamiltonian is conserved under the dynamics.",
    rule="|ΔH| of the flow, by DOP853 at tolerance 1e-12, is below 1e-8; that of one leapfrog step "
    "falls with a slope of at least 2.8.",
    items="structure",
)
def conserved(structure):
    slope = structure["order"]["original"]["energy of one step"]["slope"]
    return Finding(
        f"|ΔH| {structure['drift']:.1e} at most; slope {slope:.2f}",
        "deterministic",
        [structure["drift"] < ROUNDING, slope > 2.8],
    )


@claim(
    "2",
    "Secondly, via Liouville’s theorem we see that dynamics are volume preserving (or more "
    "generally, symplectic).",
    rule="|log det| of the original flow's Jacobian, and the change of dx∧dv, are below 1e-8.",
    items="structure",
)
def volume_preserving(structure):
    row = structure["volume"]["flow, original"]
    return Finding(
        f"|log det| {row['log_det']:.1e}, form {row['form']:.1e}",
        "deterministic",
        [row["log_det"] < ROUNDING and row["form"] < ROUNDING],
    )


@claim(
    "2",
    "Finally, the dynamics are reversible.",
    rule="There and back with v reversed the flow is less than 1e-8 from where it began.",
    items="structure",
)
def reversible(structure):
    error = structure["reversal"]["flow, original"]
    return Finding(f"{error:.1e} from the start", "deterministic", [error < ROUNDING])


@claim(
    "2",
    "Under Newtonian physics the speed is slowest at the top so most of a rider’s time is spent in "
    "dreadful anticipation of the fall, before quickly whipping through the bottom.",
    rule="At each of three speeds the Newtonian rider spends more than half of the time on the "
    "upper half of the track.",
    items="roller-coaster",
)
def newtonian_rider(coaster):
    high = [row["high"] for row in coaster["rows"] if row["q"] == 0]
    return Finding(
        f"{min(high):.0%} to {max(high):.0%} of the time",
        "4 circuits",
        [share > 0.5 for share in high],
    )


@claim(
    "2",
    "A spectator will see the rider spending most of their time at the bottom, with low potential "
    "energy, and the time spent in each region is exactly proportional to the Boltzmann "
    "distribution, as we show mathematically in the next section.",
    rule="Total variation between the time spent and e^(−E) is below 0.002 at each of three "
    "speeds.",
    items="roller-coaster",
)
def esh_rider(coaster):
    far = [row["distance"] for row in coaster["rows"] if row["q"] == 1]
    ride = max(row["ride_to_exact"] for row in coaster["rows"] if row["q"] == 1)
    return Finding(
        f"distance {max(far):.4f} at most", f"steps leave {ride:.4f}", [d < 0.002 for d in far]
    )


@claim(
    "2",
    "For 1-D dynamics, this could be an issue, as the velocity can never change signs.",
    rule="On x⁴/4 the exact flow goes to infinity in finite time with v > 0 throughout.",
    items="shell",
)
def line_never_turns(shell):
    line = shell["line"]
    return Finding(
        f"at infinity after {line['time_to_infinity']:.3f}; but rounding turns "
        f"{line['turned']['scaled']:.0%} of the computed chains",
        "quadrature",
        [line["slowest"] > 0 and math.isfinite(line["time_to_infinity"])],
    )


@claim(
    "2",
    "However, in higher dimensions, dynamics always avoid the singularity (Appendix A.2).",
    rule="In 2, 3 and 10 dimensions every chain from N(0, I) turns back with |v| > 0; and the "
    "orbit straight against the force, in two dimensions, does not reach v = 0 in finite time.",
    items="shell",
)
def singularity_avoided(shell):
    slowest = ", ".join(f"{row['slowest']:.2g} (d = {row['dim']})" for row in shell["plane"])
    time = shell["head_on"]["time_to_infinity"]
    return Finding(
        f"smallest |v| {slowest}; straight up, v = 0 after {time:.3f}",
        f"{shell['chains']} chains",
        [
            *(row["turned"] == 1 and row["slowest"] > 0 for row in shell["plane"]),
            not math.isfinite(time),
        ],
    )


@claim(
    "2.1",
    "The reason for defining the non-standard Hamiltonian dynamics in Eq. 2 is that the uniform "
    "distribution over all states with fixed energy, c, gives us samples from the Gibbs "
    "distribution after marginalizing out the velocity.",
    rule="On shells at c = −2, 0 and 5 the mean of E is within 3 standard errors of e^(−E)'s; "
    "under Newton's kinetic energy it is outside at each level.",
    items="shell",
)
def shell_is_gibbs(shell):
    ours = [row for row in shell["levels"] if row["q"] == 1]
    newton = [row for row in shell["levels"] if row["q"] == 0]
    listed = ", ".join(f"{row['energy']:.3f}" for row in ours)
    other = ", ".join(f"{row['energy']:.2f}" for row in newton)
    return Finding(
        f"E[E] {listed} for {shell['truth']:.3f}; Newton {other}",
        f"± {max(row['error'] for row in ours):.3f}",
        [*(abs(row["off"]) < 3 for row in ours), all(abs(row["off"]) > 3 for row in newton)],
    )


@claim(
    "2.1",
    "At this point, we invoke the ergodic hypothesis: the dynamics will equally occupy all states "
    "of fixed energy over time.",
    rule="For each flow of the ergodicity item chains agree about ⟨x²⟩ to 20 % after a distance of "
    "1000.",
    items="ergodicity",
)
def ergodic_hypothesis(ergodicity):
    spread = {
        case["name"]: case["spread"]["flow"]["spread"]
        for case in ergodicity["cases"]
        if case["spread"]
    }
    agree = [name for name, value in spread.items() if value < 0.2]
    worst = max(spread, key=spread.__getitem__)
    return Finding(
        f"true of {', '.join(agree) or 'none'} of {len(spread)}; worst {worst} {spread[worst]:.2f}",
        "100 chains",
        [value < 0.2 for value in spread.values()],
    )


@claim(
    "2.1",
    "While we do not expect hidden invariants to emerge in highly nonlinear energy functions "
    "specified by neural networks, systems can be empirically probed through fixed point analysis "
    "or Lyapunov exponents.",
    rule="Over the flows of the ergodicity item the median exponent and the scatter of ⟨x²⟩ over "
    "chains have a rank correlation of −0.7 or less; and the flow has fixed points to analyse "
    "(|x'| = 0 somewhere).",
    items="ergodicity",
)
def probed_by_exponents(ergodicity):
    correlation = rank_correlation(ergodicity)
    return Finding(
        f"rank correlation {correlation:.2f}; |x'| = 1 everywhere, so no fixed points; networks "
        "weren't probed",
        "8 flows",
        [correlation <= -0.7, False],
    )


def rank_correlation(ergodicity) -> float:
    """Of the median exponents and the scatter of ⟨x²⟩ over chains."""
    from scipy.stats import spearmanr

    cases = [case for case in ergodicity["cases"] if case["spread"]]
    exponents = [case["chaos"]["median"] for case in cases]
    spread = [case["spread"]["flow"]["spread"] for case in cases]
    return float(spearmanr(exponents, spread).statistic)  # pyright: ignore


@claim(
    "2.1",
    "Standard MCMC also assumes ergodicity, but the use of stochastic steps typically suffices to "
    "ensure ergodicity.",
    rule="With a velocity refreshed over 2√d, chains of each flow agree about ⟨x²⟩ to 20 %, and "
    "their mean is within 10 % of the truth.",
    items="ergodicity",
)
def stochastic_steps_suffice(ergodicity):
    rows = {c["name"]: c["spread"]["refreshed"] for c in ergodicity["cases"] if c["spread"]}
    met = {name: r["spread"] < 0.2 and abs(r["pooled"] - 1) < 0.1 for name, r in rows.items()}
    worst = max(rows, key=lambda name: rows[name]["spread"])
    return Finding(
        f"{sum(met.values())} of {len(met)} flows; largest scatter {rows[worst]['spread']:.2f} "
        f"({worst})",
        "100 chains",
        list(met.values()),
    )


@claim(
    "2.2",
    "The leapfrog or Stormer-Verlet integrator is the method of choice for numerically integrating "
    "standard Hamiltonian dynamics because the discrete dynamics are explicitly reversible and "
    "volume preserving.",
    rule="For the leapfrog of Eq. 4, ESH column: |log det| below 1e-8, and there and back to 1e-8.",
    items="structure",
)
def leapfrog_keeps_volume(structure):
    name = "leapfrog, original"
    det, back = structure["volume"][name]["log_det"], structure["reversal"][name]
    return Finding(
        f"|log det| {det:.1e}; back to {back:.1e}",
        "deterministic",
        [det < ROUNDING, back < ROUNDING],
    )


@claim(
    "2.2",
    "Additionally, the error of these integrators are O(ε³) for numerical step size, ε.",
    rule="The error of one step falls with a slope between 2.8 and 3.2, for the original and the "
    "scaled leapfrog.",
    items="structure",
)
def third_order_locally(structure):
    slopes = {name: kinds["one step"]["slope"] for name, kinds in structure["order"].items()}
    whole = structure["order"]["scaled"]["a fixed time"]["slope"]
    return Finding(
        ", ".join(f"{name} {slope:.2f}" for name, slope in slopes.items())
        + f" (over a fixed time {whole:.2f})",
        "5 steps of ε",
        [2.8 < slope < 3.2 for slope in slopes.values()],
    )


@claim(
    "2.2",
    "Volume preservation is not guaranteed by off-the-shelf integrators like Runge-Kutta.",
    rule="|log det| of the classical Runge–Kutta scheme is a thousand times that of the leapfrog.",
    items="structure",
)
def runge_kutta_volume(structure):
    volume = structure["volume"]
    ours, theirs = (volume[f"{n}, original"]["log_det"] for n in ("leapfrog", "Runge–Kutta"))
    return Finding(
        f"{theirs:.1e} against {ours:.1e}", "deterministic", [theirs > 1000 * max(ours, 1e-10)]
    )


@claim(
    "2.2",
    "Unfortunately, for ESH the effective step size for x can vary dramatically depending on the "
    "magnitude of the velocity.",
    rule="On MOG-prior the 95 % quantile of step lengths is more than 10 times the 5 % quantile.",
    items="structure",
)
def steps_vary(structure):
    ratio = structure["steps"]["original"]["ratio"]
    return Finding(f"{ratio:.3g} times", "quantiles of 100,000 steps", [ratio > 10])


@claim(
    "2.2",
    "This leads to very slow integration with a fixed step size, as we will illustrate in the "
    "results.",
    rule="On each target of Figure 3 the original leapfrog's MMD² after 200 gradients is more than "
    "twice the scaled one's and can be listed from exact samples.",
    items="integrators",
)
def original_is_slow(integrators):
    met, listed = [], []
    for name, shown in integrators["targets"].items():
        ours, theirs = (shown["rows"][m]["mmd"][-1] for m in ("leap", "leap-orig"))
        met.append(theirs > 2 * ours and theirs > 3 * shown["null"])
        listed.append(f"{name} {theirs:.2g} for {ours:.2g}")
    return Finding("; ".join(listed), f"{integrators['chains']} chains", met)


@claim(
    "2.2",
    "Although Runge-Kutta integrators do not give the same guarantees in terms of approximate "
    "conservation of the Hamiltonian as symplectic integrators, the Hamiltonian was stable in "
    "experiments (App. E.1).",
    rule="The mean |ΔH| of Runge–Kutta, scaled and original, is below 0.1 on each of five targets.",
    items="integrators",
)
def runge_kutta_stable(integrators):
    drift = {
        (name, method): shown["rows"][method]["drift"]
        for name, shown in integrators["targets"].items()
        for method in ("rk", "rk-orig")
    }
    leap = max(shown["rows"]["leap"]["drift"] for shown in integrators["targets"].values())
    return Finding(
        f"{max(drift.values()):.2g} at most (the leapfrog up to {leap:.2g})",
        f"{integrators['chains']} chains",
        [value < 0.1 for value in drift.values()],
    )


@claim(
    "2.2",
    "Moreover, looking at Eq. 3, we see that the exact value of the Hamiltonian is irrelevant, so "
    "results may be less sensitive to fluctuations.",
    rule="Shells at c = −2, 0 and 5 give the same mean of E within 3 standard errors; and with ε = "
    "0.1, where H drifts, ESH ends on MOG-prior as near to exact samples as Runge–Kutta.",
    items="shell integrators",
)
def hamiltonian_irrelevant(shell, integrators):
    ours = [row for row in shell["levels"] if row["q"] == 1]
    spread = max(r["energy"] for r in ours) - min(r["energy"] for r in ours)
    error = math.sqrt(2) * max(row["error"] for row in ours)
    rows = integrators["targets"]["MOG-prior"]["rows"]
    return Finding(
        f"shells differ by {spread:.4f}; MMD² {rows['leap']['mmd'][-1]:.4f} with mean |ΔH| "
        f"{rows['leap']['drift']:.2g}, Runge–Kutta {rows['rk']['mmd'][-1]:.3f}",
        f"± {error:.4f}",
        [spread < 3 * error, rows["leap"]["mmd"][-1] <= rows["rk"]["mmd"][-1]],
    )


@claim(
    "2.2",
    "The adaptive time-step in the Runge-Kutta ODE solver is strongly correlated to the magnitude "
    "of the velocity (App. E.1).",
    rule="The correlation of the logarithms of accepted step and |v| is above 0.8.",
    items="integrators",
)
def step_follows_speed(integrators):
    steps = integrators["detail"]["steps"]
    return Finding(
        f"{steps['correlation']:.3f}, slope {steps['slope']:.2f}",
        f"{len(steps['step'])} steps",
        [steps["correlation"] > 0.8],
    )


@claim(
    "2.2",
    "Interestingly, the previously troublesome magnitude of the velocity, captured by r, plays no "
    "role in the dynamics of x.",
    rule="Paths of the scaled flow from |v| = 1 and |v| = 1000 end less than 1e-8 apart in x.",
    items="structure",
)
def speed_plays_no_role(structure):
    apart = structure["speed_free"]
    return Finding(f"{apart:.1e} apart", "deterministic", [apart < ROUNDING])


@claim(
    "2.2",
    "Correctly deriving a leapfrog integrator for the time-scaled ODE is nontrivial, but turns out "
    "to be well worth the effort.",
    rule="In 200 gradients on the mixture the scaled leapfrog goes ten times as far as Runge–Kutta "
    "and as the original leapfrog, and ends nearer to exact samples than both.",
    items="integrators",
)
def worth_the_effort(integrators):
    rows = integrators["targets"]["MOG"]["rows"]
    others = [rows[m] for m in ("rk", "leap-orig")]
    far = " and ".join(f"{row['distance']:.2g}" for row in others)
    return Finding(
        f"distance {rows['leap']['distance']:.3g} for {far}; MMD² {rows['leap']['mmd'][-1]:.1e} "
        "for " + " and ".join(f"{row['mmd'][-1]:.2g}" for row in others),
        f"{integrators['chains']} chains",
        [
            all(rows["leap"]["distance"] > 10 * row["distance"] for row in others),
            all(rows["leap"]["mmd"][-1] < row["mmd"][-1] for row in others),
        ],
    )


@claim(
    "2.2",
    "If the norm of the gradient is large u → e and the dynamics are like gradient descent.",
    rule="From every angle of 0.01 rad or more to −e a kick of δ = 20 leaves u within 1e-3 rad of "
    "e.",
    items="kick_precision",
)
def like_descent(kicks):
    angle = kicks["descent"]["20"]
    return Finding(
        f"within {angle:.1e} rad; at δ = 1 {kicks['descent']['1']:.1f}",
        "closed form",
        [angle < 1e-3],
    )


@claim(
    "2.2",
    "The update form keeps u a unit vector.",
    rule="After 10,000 printed updates in double precision |u| is within 1e-10 of one.",
    items="kick_precision",
)
def unit_vector(kicks):
    return Finding(f"within {kicks['length']:.1e}", "20 chains", [kicks["length"] < 1e-10])


@claim(
    "2.2",
    "The penultimate form justifies one procedure for ergodic sampling — we uniformly randomly "
    "choose t ∼ U[0, T], then take x(t) as our sample.",
    rule="Algorithm 2 gives the same means of |x|², x₁ > ¼ and E as the weights |v| on the same "
    "paths, within 3 standard errors of the difference.",
    items="estimators",
)
def random_time(estimators):
    apart = {name: row["apart"]["random time"] for name, row in estimators["rows"].items()}
    listed = ", ".join(f"{value:+.1f}" for value in apart.values())
    return Finding(
        f"{listed} standard errors apart",
        f"{estimators['chains']} chains",
        [abs(value) < 3 for value in apart.values()],
    )


@claim(
    "2.2",
    "Alternatively, the last expression is a weighted sample (by |v|) in the time-scaled "
    "coordinates.",
    rule="The means of |x|², x₁ > ¼ and E by the weights are within 3 standard errors of exact "
    "samples'.",
    items="estimators",
)
def weighted_sample(estimators):
    rows = estimators["rows"].values()
    off = [(row["mean"]["weights"] - row["truth"]) / row["error"]["weights"] for row in rows]
    listed = ", ".join(f"{value:+.1f}" for value in off)
    return Finding(
        f"off by {listed} standard errors: orbits that stay about one mode are never entered",
        f"{estimators['chains']} chains",
        [abs(value) < 3 for value in off],
    )


@claim(
    "2.2",
    "We can avoid storing the whole trajectory and then sampling at the end with reservoir "
    "sampling.",
    rule="Algorithm 3 gives the same means as the weights on the same paths, within 3 standard "
    "errors of the difference.",
    items="estimators",
)
def reservoir_sampling(estimators):
    apart = [row["apart"]["reservoir"] for row in estimators["rows"].values()]
    listed = ", ".join(f"{value:+.1f}" for value in apart)
    return Finding(
        f"{listed} standard errors apart",
        f"{estimators['chains']} chains",
        [abs(value) < 3 for value in apart],
    )


@claim(
    "2.3",
    "This is not required for ESH dynamics as our Hamiltonian directly samples the target.",
    rule="Without an annealing schedule log Z is within 0.5 in 2, 10, 50 and 200 dimensions.",
    items="jarzynski",
)
def no_annealing(jarzynski):
    off = {row["dim"]: row["off"] for row in jarzynski["diagnosis"]}
    listed = ", ".join(f"{value:+.2f} (d = {dim})" for dim, value in off.items())
    return Finding(f"log Z off by {listed}", "256 chains", [abs(v) < 0.5 for v in off.values()])


@claim(
    "2.3",
    "This expression holds for any h, including h(x) = 1, which gives us the partition function "
    "ratio E_q[e^w] = Z/Z₀.",
    rule="With ε = 0.1 log Z is within 2 standard errors at the end, and the weighted mean of E "
    "within 0.05 of d/2.",
    items="jarzynski",
)
def any_h(jarzynski):
    last = jarzynski["runs"]["fine"]["paper"]
    off = (last["log_z"][-1] - jarzynski["log_z"]) / last["error"][-1]
    energy = last["weighted_energy"][-1]
    return Finding(
        f"log Z {last['log_z'][-1]:.3f} for {jarzynski['log_z']:.3f}; E {energy:.3f} for 1.5",
        f"± {last['error'][-1]:.3f}",
        [abs(off) < 2, abs(energy - 1.5) < 0.05],
    )
