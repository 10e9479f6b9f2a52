"""Related work and conclusion."""

from schuss.paper.claim import Finding, claim, untried
from schuss.paper.factors import best as best_step
from schuss.paper.thermostats import KINDS, best


@claim(
    "4",
    "Our experiments with Nosé-Hoover and other thermostats often oscillated or converged slowly "
    "because the thermostat variable is only weakly coupled to the physical, Newtonian momenta, "
    "which are then coupled to the only variables of interest in our case, the original "
    "coordinates.",
    rule="Of a Nosé–Hoover thermostat, a chain of three and a Langevin thermostat each is at more "
    "than twice ESH's MMD² after 200 gradients, and above the level of exact samples, on at least "
    "three of five targets: with the paper's ε = 0.01, and with the best of three steps.",
    items="thermostats",
)
def thermostats_are_slow(thermostats):
    met, listed = [], []
    for which in ("ε 0.01", "best ε"):
        for kind in KINDS:
            slow = 0
            for row in thermostats["targets"].values():
                curve = row[kind]["0.01"] if which == "ε 0.01" else best(row[kind])[1]
                end = float("inf") if curve is None else curve[-1]
                slow += end > max(2 * row["ESH"][-1], 3 * row["null"])
            met.append(slow >= 3)
            listed.append(f"{kind}, {which}: {slow}")
    return Finding(
        f"slow on so many of {len(thermostats['targets'])}: {'; '.join(listed)}",
        f"{thermostats['chains']} chains",
        met,
    )


@claim(
    "4",
    "A recent review of MD research outlines different methods for constructing thermostats "
    "including iso-kinetic thermostats which have some similarities to ESH.",
    rule="The path of the iso-kinetic thermostat with v² = d is that of the scaled flow: the "
    "distance falls with ε², by a factor of 3.5 to 4.5 when ε is halved.",
    items="thermostats",
)
def isokinetic(thermostats):
    apart = thermostats["isokinetic"]["d"]
    ratio = apart[0] / apart[1]
    return Finding(
        f"{apart[0]:.1e} and {apart[1]:.1e} apart, a factor of {ratio:.2f}: the same flow",
        "deterministic",
        [3.5 < ratio < 4.5],
    )


@claim(
    "5",
    "Removing stochasticity leads to faster mixing between modes and could enable applications "
    "where backpropagation through the sampler is desired.",
    rule="From one mode of the mixture the deterministic flow covers the modes more evenly than "
    "the same flow with a velocity refreshed over 3, 1 and 0.3, after 40 gradients and after 200.",
    items="thermostats",
)
def faster_mixing(thermostats):
    rows = {row["length"]: row for row in thermostats["mixing"]}
    plain, met, listed = rows.pop(None), [], []
    for at in ("40", "200"):
        met += [plain[at] <= row[at] for row in rows.values()]
        others = ", ".join(f"{row[at]:.3f}" for row in rows.values())
        listed.append(f"after {at}: {plain[at]:.3f} for {others}")
    return Finding("; ".join(listed), f"{4 * thermostats['chains']} chains", met)


backpropagation = untried(
    "5",
    "State-of-the-art generative models directly model the score function, the gradient of the "
    "energy function, which can be used to sample with Langevin dynamics but could also "
    "potentially benefit from faster mixing with ESH dynamics.",
    rule="On a score network trained on MNIST, ESH's samples are nearer to the data than "
    "Langevin's at equal gradients, beyond 2 standard errors.",
    command="no command yet",
)


@claim(
    "5",
    "ESH dynamics provide a simple, fast, and deterministic drop-in replacement for sampling "
    "methods like HMC and Langevin dynamics with the potential to impact a wide range of "
    "applications such as Bayesian modeling and latent factor inference.",
    rule="On the posteriors of ten factors of the digits, after 200 gradients and each with the "
    "best of three steps, ESH's errors of E[z] and of E[z²] are at most 1.1 times HMC's (k = 5) "
    "and the better Langevin's.",
    items="factors",
)
def drop_in(factors):
    rows = {name: best_step(found)[1] for name, found in factors["rows"].items()}
    met = []
    for key in ("mean", "square"):
        langevin = min(rows[name][key] for name in ("MALA", "ULA"))
        met += [rows["ESH"][key] <= 1.1 * other for other in (rows["HMC k=5"][key], langevin)]
    listed = ", ".join(
        f"{name} {row['mean']:.2f} and {row['square']:.2f}" for name, row in rows.items()
    )
    return Finding(listed, f"{factors['images']} images", met)
