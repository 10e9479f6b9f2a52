"""Appendices A and B."""

from schuss.paper.claim import Finding, claim


@claim(
    "A.1",
    "We did not explore dynamics with intermediate values of q, because we only get "
    "energy-sampling dynamics for q = 1.",
    rule="The time spent differs from e^(−E) by a total variation above 0.1 at q = 0, ¼, ½ and ¾ "
    "and every speed, and by less than 0.002 at q = 1.",
    items="roller-coaster",
)
def only_q_one(coaster):
    other = [row["distance"] for row in coaster["rows"] if row["q"] < 1]
    esh = [row["distance"] for row in coaster["rows"] if row["q"] == 1]
    return Finding(
        f"{min(other):.2f} at least below q = 1; {max(esh):.4f} at q = 1",
        "4 circuits",
        [min(other) > 0.1, max(esh) < 0.002],
    )


@claim(
    "A.2",
    "The example in Fig. 2 was 1-d and did give the correct ergodic distribution, but this relied "
    "on the fact that the domain was periodic so v never needed to change signs.",
    rule="On the periodic track the time spent is e^(−E) to 0.002; on the line the exact flow "
    "leaves for infinity in finite time.",
    items="roller-coaster shell",
)
def relied_on_periodicity(coaster, shell):
    far = max(row["distance"] for row in coaster["rows"] if row["q"] == 1)
    time = shell["line"]["time_to_infinity"]
    return Finding(
        f"track {far:.4f}; line: gone after {time:.2f}", "quadrature", [far < 0.002, time < 10]
    )


@claim(
    "A.2",
    "Then v(t)² = e^(2/d (c − E(x(t)))), which is positive.",
    rule="Along paths in 2, 3 and 10 dimensions log|v| follows (c − E)/d with a median error below "
    "0.01.",
    items="shell",
)
def speed_from_energy(shell):
    law = {row["dim"]: row["law"] for row in shell["plane"]}
    return Finding(
        ", ".join(f"{value:.1e} (d = {dim})" for dim, value in law.items())
        + "; the printed ẋ = v/v²/d means v/(v²/d)",
        "ε = 0.025",
        [value < 0.01 for value in law.values()],
    )


@claim(
    "B.1",
    "However, note that chaining leapfrogs together allows us to re-use the gradient from the "
    "previous step, requiring only one gradient evaluation per step.",
    rule="A path of 100 steps takes 101 gradients, the one at the start included.",
    items="structure",
)
def one_gradient(structure):
    seen = structure["gradients"]
    return Finding(
        f"{seen['gradients']} for {seen['steps']} steps",
        "exact",
        [seen["gradients"] == seen["steps"] + 1],
    )


@claim(
    "B.1",
    "Instead the approximation above is derived using the Baker-Campbell-Hausdorff formula.",
    rule="The error of the approximation, O(ε³), shows as a slope of one scaled step between 2.8 "
    "and 3.2.",
    items="structure",
)
def splitting_order(structure):
    slope = structure["order"]["scaled"]["one step"]["slope"]
    return Finding(f"{slope:.2f}", "5 steps of ε", [2.8 < slope < 3.2])


@claim(
    "B.2",
    "While it seems intuitive that starting with samples from the target distribution should be "
    "helpful, in this appendix we examine this claim more closely.",
    rule="The first derivative of E[E] at t = 0 is zero within 3 standard errors, as the appendix "
    "computes.",
    items="stationarity",
)
def first_derivative(stationarity):
    first, second = stationarity["derivative"]["values"]
    error = stationarity["derivative"]["errors"]
    return Finding(
        f"first {first:+.4f}, second {second:+.3f}",
        f"± {error[0]:.4f}, ± {error[1]:.3f}",
        [abs(first) < 3 * error[0]],
    )


@claim(
    "B.2",
    "What this calculation shows is that if we start with a sample from a buffer which is already "
    "converged to the target distribution, and initialize our velocities in a sperically symmetric "
    "way, then the density on x remains in the target distribution.",
    rule="On the coupled quartic (d = 2) exact samples with fresh velocities keep E[E] within 3 "
    "standard errors over the second half of a distance of 50, κ = d.",
    items="stationarity",
)
def stays_in_target(stationarity):
    paper, other = stationarity["drift d"], stationarity["drift d − 1"]
    truth = stationarity["truth"]
    return Finding(
        f"{paper['late']:.3f} for {truth:.3f}, which is e^(−E/2)'s {stationarity['tempered']:.3f} "
        f"nearly; with κ = d − 1 {other['late']:.3f}",
        f"± {paper['error']:.3f}",
        [abs(paper["late"] - truth) < 3 * paper["error"]],
    )
