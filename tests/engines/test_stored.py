"""The step that a CUDA graph captures: it leaves its results where its inputs were."""

import pytest
import torch
from torch import nn

import schuss
from schuss.core.collect import collecting
from schuss.engines.cuda_graph import leaves, rebuild
from schuss.engines.engine import collected
from schuss.engines.torch import _blank, _compiled, _drawn, _gathering, _storing, xp
from schuss.problem import launch, pose

pytestmark = []
SAMPLERS = {
    "ESH": schuss.ESH(0.1),
    "refreshed": schuss.ESH(0.1, refresh=3.0),
    "ULA": schuss.ULA(0.01),
}


@pytest.mark.parametrize("keep", ["last", "reservoir", "moments"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_stored_step_is_the_step(name, keep):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 1), nn.Flatten(0))
    problem = pose(energy=net, init=torch.randn(5, 3), engine="torch")
    job, state, _ = launch(problem, SAMPLERS[name], 0, speed=True, weighted=True)
    collection = collecting(keep, windowed=job.kernel.windowed)
    with torch.no_grad():
        gathered = collected(xp, job, state, None, collection)
        blank = _blank(job, state.x, collection.uniforms)
        noise, uniform = _drawn(torch.Generator().manual_seed(1), 1, blank)
        inputs = (state, gathered, noise, uniform, job.params, job.frames)
        mine = rebuild(torch.clone, inputs)
        _compiled(_storing(job.kernel, job.grad_fn, collection))(*mine)
        new = _gathering(job.kernel, job.grad_fn, collection)(*inputs)
    assert any((a != b).any() for a, b in zip(leaves(new), leaves(inputs[:2]), strict=True))
    for stored, wanted in zip(leaves(mine[:2]), leaves(new), strict=True):
        torch.testing.assert_close(stored, wanted)


def test_noise_is_drawn_in_place():
    z = torch.zeros(4, 3)
    problem = pose(energy=lambda x: (x**2).sum(-1), init=z, engine="torch")
    job, state, _ = launch(problem, schuss.ULA(0.01), 0, speed=False, weighted=False)
    blank = _blank(job, state.x, uniforms=1)
    noise, uniform = _drawn(torch.Generator().manual_seed(3), 1, blank)
    again = torch.Generator().manual_seed(3)
    assert noise.normal is blank[0].normal and uniform is blank[1]
    assert torch.equal(noise.normal, torch.randn(4, 3, generator=again))
    assert torch.equal(uniform, torch.rand(4, generator=again))
