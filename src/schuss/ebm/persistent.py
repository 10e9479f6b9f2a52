"""Persistent contrastive divergence on images, run by run, each measured and kept in a folder.

    python -m schuss.ebm.persistent cifar --data PATH --work FOLDER --seeds 3 --minutes 9

trains every sampler of the recipe with every seed, one after the other, and writes for each run
`NAME.json` and `NAME.npz` (pictures). What is in the folder is not done again, and a run that was
cut short goes on from its checkpoint: the same command may be given until everything is there.
With `--long` it is one longer run, `ESH-long`, whose last weights are sampled as an ensemble too.
"""

import json
import math
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from schuss.ebm.machine import best_device
from schuss.ebm.recipe_parts import load_images, ruler_of
from schuss.ebm.recipe_run import run_recipe
from schuss.ebm.recipes import RECIPES, Recipe, changed, longer, smaller
from schuss.ebm.results import there_already
from schuss.ebm.run_command import run_parser, session, tell_end


def run_all(
    recipe: Recipe,
    path: pathlib.Path | None,
    work: pathlib.Path,
    *,
    samplers: Sequence[str] | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    label: str | None = None,
    device: Any = None,
    compile: bool | None = None,
    until: float = math.inf,
    progress: bool = False,
    advance: Callable[[str], None] = lambda done: None,
) -> dict[str, Any]:
    """All runs of a recipe: their results, the ruler's marks, and whether all are there.

    A run is named after its sampler and its seed, or its `label`. `until` is on the clock of
    time.monotonic.

    Where the folder has all of them already, neither data nor a network is needed.
    """
    wanted = {
        f"{sampler}-{label or seed}": (sampler, seed)
        for seed in seeds
        for sampler in (samplers or recipe.samplers)
    }
    work.mkdir(parents=True, exist_ok=True)
    files = [work / f"{name}.json" for name in wanted]
    if (work / "ruler.json").exists() and all(file.exists() for file in files):
        runs = [there_already(file, advance, file.stem) for file in files]
        marks = json.loads((work / "ruler.json").read_text())
        return {"marks": marks, "runs": runs, "finished": True}
    device = best_device(device)
    images = load_images(recipe, path)
    ruler = ruler_of(recipe, images, work, device, advance)
    runs = []
    options: dict[str, Any] = {"device": device, "compile": compile, "until": until}
    options |= {"progress": progress, "advance": advance}
    for name, (sampler, seed) in wanted.items():
        made = run_recipe(recipe, images, ruler, sampler, seed, work, name=name, **options)
        if made is None:
            break
        runs.append(made)
    return {"marks": ruler.marks, "runs": runs, "finished": len(runs) == len(wanted)}


def main() -> None:
    """The command, without any library that a GPU machine may lack."""
    parser = run_parser("Persistent contrastive divergence on images.", needs_data=False)
    parser.add_argument("recipe", choices=tuple(RECIPES))
    parser.add_argument("--samplers", help="ESH,ULA unless given; ESH with --long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, help="3 unless given; 1 with --long")
    parser.add_argument("--long", action="store_true", help="one longer run, and an ensemble")
    parser.add_argument(
        "--set", action="append", default=[], help="a number of the recipe, e.g. iterations=20000"
    )
    given = parser.parse_args()
    recipe = smaller(RECIPES[given.recipe]) if given.quick else RECIPES[given.recipe]
    recipe = changed(longer(recipe) if given.long else recipe, given.set)
    samplers = given.samplers or ("ESH" if given.long else "ESH,ULA")
    result = run_all(
        recipe,
        given.data,
        given.work,
        samplers=samplers.split(","),
        seeds=range(given.seed, given.seed + (given.seeds or (1 if given.long else 3))),
        label="long" if given.long else None,
        **session(given),
    )
    print(json.dumps(result["marks"]))
    for made in result["runs"]:
        keys = ("name", "gradients", "distance", "distance_from_noise", "seconds")
        print(json.dumps({key: made[key] for key in keys}))
    tell_end(result["finished"])


if __name__ == "__main__":
    main()
