"""What the distances of trained image models say: means, scatter, and places between two marks."""

from typing import Any

import numpy as np

SAMPLERS = ("ESH", "ULA")
MEASURED = ("distance", "distance_from_noise")


def values(result: dict[str, Any], sampler: str, key: str) -> np.ndarray:
    """One number for each seed."""
    return np.asarray([row[key] for row in result["rows"] if row["sampler"] == sampler])


def _difference(result: dict[str, Any], key: str) -> tuple[float, float]:
    """ESH's mean less ULA's, and its standard error by the scatter of the seeds."""
    both = [values(result, sampler, key) for sampler in SAMPLERS]
    error = sum(one.var(ddof=1) / len(one) if len(one) > 1 else np.inf for one in both) ** 0.5
    return float(both[0].mean() - both[1].mean()), float(error)


def told_apart(result: dict[str, Any]) -> str:
    """Which sampler is nearer, where the seeds can tell."""
    words = []
    for key, name in (("distance", "in the buffer"), ("distance_from_noise", "from noise")):
        change, error = _difference(result, key)
        if abs(change) <= 2 * error:
            words.append(f"{name} the difference is within the scatter of the seeds")
        else:
            nearer = "ESH" if change < 0 else "ULA"
            words.append(f"{name} {nearer} is nearer, beyond the scatter of the seeds")
    return "; ".join(words)


def long_lines(result: dict[str, Any]) -> list[str]:
    """The longer run and its ensemble, as lines of the table."""
    if "long" not in result:
        return []
    run, together = result["long"], result["long"]["ensemble"]
    name = "ESH, long" if alike(run["marks"], result["marks"]) else "ESH, long, by the other ruler"
    return [
        f"| {name} | {run['distance']:.2f} | {run['distance_from_noise']:.2f} | "
        f"{run['seconds']:.0f} | {run['speed']:,.0f} |",
        f"| {name}: ensemble of {together['members']} | | "
        f"{together['distance_from_noise']:.2f} | | |",
    ]


def alike(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether two rulers are trainings of the same classifier, by where they see noise."""
    ends = [marks["distances"][_sizes(marks)[-1]]["ceiling"] for marks in (first, second)]
    return abs(ends[0] - ends[1]) < 0.1 * max(ends)


def by_the_other(result: dict[str, Any]) -> dict[str, Any]:
    """The same as the ruler beside sees it."""
    rows, marks = [row | row["beside"] for row in result["rows"]], result["beside"]
    long = result.get("long")
    if long and "beside" in long:
        long = long | long["beside"] | {"marks": marks}
    return {"rows": rows, "marks": marks, "long": long}


def beside_words(result: dict[str, Any]) -> str:
    """The distances by the other ruler."""
    if "beside" not in result:
        return ""
    other = by_the_other(result)
    marks = other["marks"]
    found = marks["distances"][_sizes(marks)[-1]]
    means = [values(other, sampler, key).mean() for key in MEASURED for sampler in SAMPLERS]
    return (
        f"How much nearer depends on the ruler. By another classifier ({marks['accuracy']:.1%} "
        "accurate, trained with label smoothing and decay of the weights), to which training "
        f"images are at {found['floor']:.2f}, a single class at {found['one class']:.1f} and "
        f"uniform noise at {found['ceiling']:.1f}, the buffers are at {means[0]:.2f} and "
        f"{means[1]:.2f} and the samples from noise at {means[2]:.2f} and {means[3]:.2f}: "
        f"{told_apart(other)}. "
    )


def long_words(result: dict[str, Any]) -> str:
    """The longer run beside the short ones, by a ruler that measured both."""
    if "long" not in result:
        return ""
    run = result["long"]
    single, together = run["distance_from_noise"], run["ensemble"]["distance_from_noise"]
    times = run["gradients"] / result["rows"][0]["gradients"]
    members = "nearer" if together < 0.99 * single else "no nearer"
    measured, other = result, ""
    if not alike(run["marks"], result["marks"]):
        measured, other = by_the_other(result), ", by that other ruler,"
    before = values(measured, "ESH", "distance").mean()
    change = "nearer than" if run["distance"] < before else "no nearer than"
    return (
        f"A single run of ESH that is {times:.1f} times as long ({run['gradients']:,} gradients) "
        f"ends{other} with its buffer at {run['distance']:.2f}, {change} the short runs; from "
        f"noise it is at {single:.2f}, and the mean energy of the averaged weights at its last "
        f"{run['ensemble']['members']} looks is {members}, at {together:.2f}. "
    )


def _sizes(marks: dict[str, Any]) -> list[str]:
    """Numbers of samples that a ruler has marks for, from small to large."""
    return sorted(marks["distances"], key=int)


def where(result: dict[str, Any]) -> str:
    """Where the samples lie between training images and noise."""
    ruled = [result, by_the_other(result)] if "beside" in result else [result]
    words = " By the other ruler, ".join(map(_way, ruled))
    return words[0].upper() + words[1:]


def _way(result: dict[str, Any]) -> str:
    """The same by one ruler, with a longer run if it measured that."""
    marks, long = result["marks"], result.get("long")
    place = {"distance": -1, "distance_from_noise": 0}  # among the sizes

    def share(value: float, key: str, marks: dict[str, Any]) -> str:
        found = marks["distances"][_sizes(marks)[place[key]]]
        return f"{(value - found['floor']) / (found['ceiling'] - found['floor']):.0%}"

    def of(key: str) -> str:
        parts = [f"{s} at {share(values(result, s, key).mean(), key, marks)}" for s in SAMPLERS]
        if long and alike(long["marks"], marks):
            parts.append(f"the long run at {share(long[key], key, long['marks'])}")
        return ", ".join(parts)

    alone = marks["distances"][_sizes(marks)[-1]]["one class"]
    return (
        "on the way from training images (0%) to uniform noise (100%), where images of a single "
        f"class lie at {share(alone, 'distance', marks)}, the buffers lie with {of('distance')}, "
        f"and samples from noise with {of('distance_from_noise')}."
    )
