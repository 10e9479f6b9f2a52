"""schuss of the working tree ("new") and of an earlier commit ("old"), for benchmarks of both.

The old one is a git worktree under `out/worktrees`, made when it is first needed. A process runs
one or the other by its PYTHONPATH, with JAX's compilation cache off and an empty cache folder.
"""

import compileall
import hashlib
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parent.parent
OLD = "3ee5452"
"""The last commit before `schuss.sample` was written anew."""


def git(*arguments: str) -> str:
    """What git says in the working tree."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def checkout(commit: str) -> pathlib.Path:
    """The worktree of a commit, made and compiled if it isn't there."""
    name = git("rev-parse", "--short", f"{commit}^{{commit}}")
    folder = ROOT / "out" / "worktrees" / name
    if not (folder / "src").exists():
        git("worktree", "prune")
        git("worktree", "add", "--detach", str(folder), name)
        compileall.compile_dir(folder / "src", quiet=1)
    return folder


def source(version: str, commit: str = OLD) -> pathlib.Path:
    """The folder to import a version from."""
    return (ROOT if version == "new" else checkout(commit)) / "src"


def label(version: str, commit: str = OLD) -> str:
    """The commit a version stands at; the new one's last change of `src`, and what isn't in it."""
    if version == "old":
        return git("rev-parse", "--short", f"{commit}^{{commit}}")
    last = git("log", "-1", "--format=%h", "--", "src/schuss")
    changes = git("diff", "HEAD", "--", "src/schuss")
    new = git("ls-files", "--others", "--exclude-standard", "--", "src/schuss").split("\n")
    changes += "".join((ROOT / name).read_text() for name in new if name.endswith(".py"))
    return last + (f"+{hashlib.sha256(changes.encode()).hexdigest()[:6]}" if changes else "")


def environment(src: pathlib.Path, cache: str) -> dict[str, str]:
    """The variables of a process that imports schuss from `src` and caches nothing on disk.

    `cache` is an empty folder, in place of the user's.
    """
    plain = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    return plain | {
        "PYTHONPATH": str(src),
        "XDG_CACHE_HOME": cache,
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "JAX_PLATFORMS": "cpu",
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
    }
