"""The command line says what it should and refuses plainly."""

import importlib.util
import subprocess
import sys
import types

import numpy as np
import pytest
import typer
from results.runs import posterior
from typer.testing import CliRunner

from schuss import demo
from schuss.cli import app
from schuss.commands import compare as compare_command
from schuss.loading import LoadError, load, parse_init
from schuss.model import Model
from schuss.sampling import sample as sampling
from schuss.targets import TARGETS


def call(*words):
    return CliRunner().invoke(app, words, env={"COLUMNS": "120", "NO_COLOR": "1"})


def test_version():
    result = call("--version")
    assert result.exit_code == 0
    assert result.output.startswith("schuss 0.")


def test_targets_are_all_listed():
    result = call("targets")
    assert result.exit_code == 0
    listed = {line.split()[0] for line in result.output.splitlines() if line.strip()}
    assert set(TARGETS) <= listed
    assert "E[x₁] = −.4825" in " ".join(result.output.split())


def test_demo_is_given_its_path(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(demo, "run", asked.append)
    assert call("demo", "--out", str(tmp_path / "a.svg")).exit_code == 0
    assert asked == [tmp_path / "a.svg"]


@pytest.mark.parametrize("out", ["picture", "picture.jpeg"])
def test_demo_refuses_other_files(out):
    result = call("demo", "--out", out)
    assert result.exit_code == 2
    assert "must end in one of .png, .pdf, .svg" in " ".join(result.output.replace("│", "").split())


MODEL = """
import jax.numpy as jnp
import scales
import schuss

def logp(x):
    return -0.5 * jnp.sum((x - 1.0) ** 2 / scales.VARIANCE)

def broken():
    return 3

def target():
    return schuss.targets.get("quartic")

def position(x, y):
    return 0.0

flat = schuss.from_value_and_grad(lambda x: (0.0, x), 2)
init = jnp.zeros(3)
number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "scales.py").write_text("import numpy as np\nVARIANCE = np.array([1.0, 4.0, 9.0])")
    (tmp_path / "wrong.py").write_text("import math\nx = math.nothing\n")
    (tmp_path / "unclear.py").write_text("def logp(x):\n    return (x\n")
    np.save(tmp_path / "start.npy", np.ones((2, 3)))
    np.save(tmp_path / "words.npy", np.array(["a", "b"]))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("_loaded_") or name == "scales"]:
        del sys.modules[name]


def said(result):
    return " ".join(result.output.replace("│", "").split())


def test_help_is_quick_and_imports_nothing_heavy():
    """3 s of processor time are six times what it takes."""
    script = (
        "import sys, time\n"
        "from typer.testing import CliRunner\n"
        "from schuss.cli import app\n"
        "result = CliRunner().invoke(app, ['--help'])\n"
        "assert all(word in result.output for word in ('sample', 'compare', 'ebm'))\n"
        "heavy = {'jax', 'torch', 'matplotlib', 'arviz', 'pymc', 'scipy.stats'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "print(time.process_time() < 3)\n"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout.split() == ["[]", "True"], found.stdout + found.stderr


def test_a_function_is_loaded_with_its_start_and_its_neighbours(folder):
    before = list(sys.path)
    loaded = load("model.py:logp")
    assert loaded.name == "logp"
    assert set(loaded.arguments) == {"logdensity", "init"}
    assert loaded.arguments["logdensity"](np.array([3.0, 1.0, 1.0])) == pytest.approx(-2.0)
    assert sys.path == before
    assert set(load("model.py:logp", energy=True).arguments) == {"energy", "init"}


def test_targets_and_models_are_recognised(folder):
    assert load("eight_schools").arguments["target"].name == "eight-schools"
    assert load("model.py:target").arguments["target"].name == "quartic"
    assert isinstance(load("model.py:flat").arguments["target"], Model)


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("nowhere.py:logp", "nowhere.py isn't a file"),
        ("model.py", "lacks the name of what to sample"),
        ("model.py:logq", "nothing called 'logq'; there is logp, broken, target, position, flat"),
        ("model.py:number", "is of type int; name a log-density function"),
        ("model.py:broken", "takes no position and returned a int"),
        ("wrong.py:x", "AttributeError: module 'math' has no attribute 'nothing' (line 2)"),
        ("unclear.py:logp", "SyntaxError: '(' was never closed (line 2)"),
        ("nonsense", "is neither FILE.py:NAME nor a target"),
    ],
)
def test_what_cannot_be_loaded(folder, what, told):
    with pytest.raises(LoadError) as error:
        load(what)
    assert told in str(error.value)
    result = call("sample", what)
    assert result.exit_code == 2
    assert " ".join(told.split()) in said(result)


def test_an_energy_is_a_function(folder):
    with pytest.raises(LoadError, match="--energy is for functions"):
        load("mog", energy=True)


def test_starts_are_read(folder):
    assert parse_init("0, 1.5,-2").tolist() == [0, 1.5, -2]
    assert parse_init("start.npy").shape == (2, 3)
    for text in ("a,b", "", "words.npy", "missing.npy"):
        with pytest.raises(LoadError, match="init"):
            parse_init(text)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--init", "0,0,0", "--dim", "3"), "pass --init or --dim, not both"),
        (("--init", "a"), "init must be numbers between commas or a .npy file"),
        (("--out", "nowhere/run"), "out must be in a folder that exists"),
        (("--draws", "2"), "draws must be a whole number of at least 4, got 2"),
        (("--draws", "5", "--ess", "3"), "got draws and ess"),
        (("--init", "0,0,0,0"), "logdensity works neither on one position of shape (4,)"),
    ],
)
def test_sample_refuses(folder, words, told):
    result = call("sample", "model.py:logp", *words)
    assert result.exit_code == 2
    assert told in said(result)


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--random-seed", "random_seed isn't an argument of schuss sample; it is called seed here"),
        ("--tune", "tune isn't an argument of schuss sample; leave it out: schuss.sample ends its"),
        ("--drws", "drws isn't an argument of schuss sample; did you mean draws?"),
        ("--nonsense", "nonsense isn't an argument of schuss sample; it takes what, init, dim"),
    ],
)
def test_options_from_elsewhere(option, told):
    result = call("sample", "mog", option, "500")
    assert result.exit_code == 2
    assert told in said(result)


def test_a_function_without_a_start_is_refused(folder):
    (folder / "bare.py").write_text("def logp(x):\n    return -(x**2).sum()\n")
    result = call("sample", "bare.py:logp")
    assert result.exit_code == 2
    assert "pass --dim N or --init" in said(result)


def test_an_error_in_the_users_start_keeps_its_traceback(folder):
    text = "def logp(x):\n    return 0.0\ndef init(rng, n):\n    raise ValueError('mine')\n"
    (folder / "start.py").write_text(text)
    result = call("sample", "start.py:logp")
    assert result.exit_code == 2
    assert result.output.count("Traceback") == 1
    assert result.output.endswith("ValueError: mine\n")


BROKEN = """
import jax.numpy as jnp
import schuss
init = jnp.zeros(2)

def look_up(x):
    return {}["missing"]

def fails(x):
    return look_up(x)

def decides(x):
    return -jnp.sum(x**2) if x[0] > 0 else -jnp.sum(x**4)

def nothing(x):
    jnp.sum(x)

def by_hand(x):
    raise RuntimeError("mine")

def build():
    return look_up(0)

flat = schuss.from_value_and_grad(by_hand, 2)
"""


@pytest.mark.parametrize(
    ("name", "lines", "end"),
    [
        (
            "fails",
            ["look_up(x)", '{}["missing"]'],
            "Error: logdensity works neither on one position",
        ),
        ("decides", ["-jnp.sum(x**2) if x[0]"], "Error: logdensity decides by the value"),
        ("build", ["look_up(0)", '{}["missing"]'], "KeyError: 'missing'"),
        ("flat", ['RuntimeError("mine")'], "RuntimeError: mine"),
    ],
)
def test_an_error_in_a_users_function_keeps_its_traceback(folder, name, lines, end):
    """His lines once, nobody else's, and no box around them."""
    (folder / "mine.py").write_text(BROKEN)
    # Samplers are compared on functions for JAX only.
    for command in ("sample", "compare")[: 1 if name == "flat" else 2]:
        result = call(command, f"mine.py:{name}")
        assert result.exit_code == 2
        told = result.output.splitlines()
        assert told[0] == "Traceback (most recent call last):"
        files = [line for line in told if line.startswith("  File ")]
        assert len(files) == len(lines) and all('mine.py", line ' in line for line in files)
        assert all(sum(part in line for line in told[:-1]) == 1 for part in lines)
        assert told[-1].startswith(end)
        assert "│" not in result.output and "schuss/" not in result.output


@pytest.mark.parametrize("command", ["sample", "compare"])
def test_a_function_without_a_return(folder, command):
    (folder / "mine.py").write_text(BROKEN)
    result = call(command, "mine.py:nothing")
    assert result.exit_code == 2
    told = "logdensity must return one number for each position, got None; let it end in a return"
    assert told in said(result)


def test_an_interrupted_run_is_an_exit_code(folder, monkeypatch):
    post = posterior(interrupted=True, reached="400 of 5000 draws a chain")
    monkeypatch.setattr(sampling, "sample", lambda **_: post)
    result = call("sample", "model.py:logp")
    assert result.exit_code == 130
    assert "Interrupted after 400 of 5000 draws a chain. Converged" in said(result)


def test_sample_passes_its_options_on(folder, monkeypatch):
    asked = {}
    monkeypatch.setattr(sampling, "sample", lambda **given: asked.update(given) or posterior())
    words = "--chains 8 --seed 5 --ess 300 --no-exact --checkpoint run.zarr --init start.npy"
    result = call("sample", "model.py:logp", *words.split())
    assert result.exit_code == 0, result.output
    wanted = {"chains": 8, "seed": 5, "ess": 300, "exact": False, "draws": None, "seconds": None}
    assert wanted.items() <= asked.items()
    assert str(asked["checkpoint"]) == "run.zarr"
    assert asked["init"].shape == (2, 3)
    call("sample", "model.py:logp", "--dim", "7")
    assert asked["init"](np.random.default_rng(0), 5).shape == (5, 7)


def test_a_failed_verdict_is_an_exit_code(folder, monkeypatch):
    x = np.random.default_rng(0).normal(size=(4, 400, 6))
    x[0] += 9.0
    monkeypatch.setattr(sampling, "sample", lambda **_: posterior(x=x))
    result = call("sample", "model.py:logp", "--out", "bad.html")
    assert result.exit_code == 1
    assert "NOT converged" in result.output
    assert "NOT converged" in (folder / "bad.html").read_text()
    assert [path for path in folder.glob("bad.n*") if path.suffix in (".nc", ".npz")]


def test_draws_without_netcdf_are_an_npz(folder, monkeypatch):
    post = posterior()
    monkeypatch.setattr(sampling, "sample", lambda **_: post)
    monkeypatch.setattr(
        type(post), "to_arviz", lambda self: (_ for _ in ()).throw(ImportError("h5"))
    )
    result = call("sample", "model.py:logp")
    assert result.exit_code == 0
    assert "run.npz (numpy.load reads it; no netCDF: ImportError: h5)" in said(result)
    with np.load(folder / "run.npz") as kept:
        assert np.array_equal(kept["theta"], post["theta"])
        assert kept["sample_stats.energy"].shape == (4, 400)
    assert not list(folder.glob("*.part"))


def test_sample_from_a_file_to_a_page_and_draws(folder):
    """Means within 6 standard errors, at an ESS of at least 100."""
    import arviz

    result = call("sample", "model.py:logp", "--draws", "200", "--seed", "1")
    assert result.exit_code == 0, result.output
    assert "Converged" in result.output
    assert "3 dimensions, exact" in said(result)
    assert "Converged" in (folder / "run.html").read_text()
    if importlib.util.find_spec("h5netcdf") or importlib.util.find_spec("netCDF4"):
        draws = arviz.from_netcdf(folder / "run.nc").posterior["x"].values
    else:
        draws = np.load(folder / "run.npz")["x"]
    assert draws.shape == (4, 200, 3)
    deviation = np.abs(draws.mean(axis=(0, 1)) - 1.0) / np.array([1.0, 2.0, 3.0])
    assert deviation.max() < 6 / np.sqrt(100)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--samplers", "auto,nots"), "got 'nots'"),
        (("--samplers", "nuts:0.1"), "nuts finds its own step"),
        (("--samplers", "hmc:x"), "the step of hmc must be a positive number, got 'x'"),
        (("--samplers", ","), "samplers must name one of"),
        (("--out", "compare.txt"), "out must end in .html, .json or one of .png"),
        (("--out", "nowhere/c.html"), "out must be in a folder that exists"),
    ],
)
def test_compare_refuses(folder, words, told):
    result = call("compare", "model.py:logp", *words)
    assert result.exit_code == 2
    assert told in said(result)


def test_compare_needs_jax(folder):
    result = call("compare", "model.py:flat")
    assert result.exit_code == 2
    assert "samplers are compared on JAX log-densities" in said(result)


def test_an_interrupted_comparison_is_an_exit_code(monkeypatch):
    monkeypatch.setattr(compare_command, "run", lambda *_, **__: False)
    assert call("compare", "mog").exit_code == 130


def test_reproduce_passes_its_settings_on(monkeypatch, tmp_path):
    from schuss.paper import ITEMS, reproduce

    asked = []
    monkeypatch.setattr(reproduce, "reproduce", lambda *given, **_: asked.append(given) or True)
    words = ("--data", str(tmp_path), "--work", str(tmp_path / "work"), "--seeds", "2")
    assert call("reproduce", "cifar_ebm", "table1", *words).exit_code == 0
    _, wanted, _, settings = asked[0]
    assert wanted == ["table1", "cifar_ebm"]
    assert (settings.seeds, settings.data, settings.work) == (2, tmp_path, tmp_path / "work")
    assert call("reproduce", "all").exit_code == 0
    assert asked[1][1] == [item.name for item in ITEMS]
    result = call("reproduce", "cifar_ebm", "--data", str(tmp_path / "nowhere"))
    assert result.exit_code == 2
    assert "--data must be" in said(result)


def test_ebm_is_mounted_lazily(monkeypatch):
    inner = typer.Typer()
    inner.command()(lambda: typer.echo("trained"))
    inner.command("other")(lambda: None)
    cli = types.ModuleType("schuss.ebm.cli")
    cli.ebm_app = inner
    monkeypatch.setitem(sys.modules, "schuss.ebm", types.ModuleType("schuss.ebm"))
    monkeypatch.setitem(sys.modules, "schuss.ebm.cli", cli)
    assert "schuss ebm" in call("ebm", "--help").output
    assert call("ebm", "other").exit_code == 0
    assert call("ebm", "nothing").exit_code == 2


def test_ebm_without_pytorch(monkeypatch):
    monkeypatch.delitem(sys.modules, "schuss.ebm.cli", raising=False)
    monkeypatch.setitem(sys.modules, "schuss.ebm", None)
    result = call("ebm", "train", "toy")
    assert result.exit_code == 2
    assert "pip install 'schuss[torch]'" in said(result)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_models_of_other_libraries_are_recognised(folder):
    (folder / "pm.py").write_text(
        "import pymc as pm\nwith pm.Model() as model:\n    pm.Normal('mu', 0, 1)\n"
    )
    (folder / "np.py").write_text(
        "import numpyro\nimport numpyro.distributions as dist\n"
        "def model(scale=2.0):\n    numpyro.sample('mu', dist.Normal(0, scale))\n"
        "def with_data(y):\n    numpyro.sample('mu', dist.Normal(0, 1), obs=y)\n"
        "def logp(x):\n    return dist.Normal(0, 1).log_prob(x).sum()\n"
    )
    for what in ("pm.py:model", "np.py:model"):
        model = load(what).arguments["target"]
        assert (type(model), model.dim) == (Model, 1)
    assert "logdensity" in load("np.py:logp").arguments
    with pytest.raises(LoadError, match=r"schuss.from_numpyro\(with_data, y\)"):
        load("np.py:with_data")
