"""Checks of the fast path on a GPU, without a test runner: `python -m tests.ebm.gpu`."""

import time

import torch

import schuss
from schuss import ebm
from schuss.ebm.negatives import Drawer
from schuss.ebm.still import Still


def conv_run(features, batch, steps, **options):
    """A run of the paper's network on random images."""
    torch.manual_seed(0)
    device = torch.device("cuda")
    images = torch.rand(2000, 3, 32, 32, device=device) * 2 - 1
    buffer = ebm.ReplayBuffer(4 * batch, (3, 32, 32), start="colour", reinit=0.02, device=device)
    settings = {"buffer": buffer, "batch": batch, "steps": steps, "precision": "bf16", "flip": True}
    net = ebm.ConvEnergy(features).to(device)
    return ebm.Trainer(net, images, every=10, **(settings | options))


def check_compiled_is_eager():
    """A graph made before the weights changed gives what eager steps give afterwards."""
    torch.manual_seed(0)
    net = ebm.ConvEnergy(8).cuda()
    still, x = Still(net), torch.rand(16, 3, 32, 32, device="cuda") * 2 - 1
    x = x.contiguous(memory_format=torch.channels_last)
    for keep in ("last", "reservoir"):
        options = {"steps": 20, "keep": keep, "energy_scale": 2e3, "gradient_dtype": None}
        fast, slow = (
            Drawer(still.energy, schuss.ESH(0.5), compile=compile, **options)
            for compile in (True, False)
        )
        for change in (1.0, 1.2):
            with torch.no_grad():
                for parameter in net.parameters():
                    parameter.mul_(change)
                    parameter.add_(0.01 * (change - 1))
            still.update()
            one, two = fast(x, 3), slow(x, 3)
            torch.testing.assert_close(one.x, two.x, rtol=0, atol=0.02)
            torch.testing.assert_close(one.energy_error, two.energy_error, rtol=0.1, atol=0.5)


def check_nothing_waits():
    """Between two looks no operation waits for the device, once everything is compiled."""
    run = conv_run(8, 16, 3)
    run.fit(10)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(5):
            run._iterate()
            run.iteration += 1
    finally:
        torch.cuda.set_sync_debug_mode("default")


def check_speed():
    """Seconds for an epoch of the paper (100 iterations of 100 steps, batch 500), and memory."""
    run = conv_run(128, 500, 100)
    run.fit(10)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    begun = time.perf_counter()
    history = run.fit(20)
    torch.cuda.synchronize()
    epoch = 5 * (time.perf_counter() - begun)
    print(
        f"{torch.cuda.get_device_name()}: {epoch:.1f} s an epoch, "
        f"{torch.cuda.max_memory_allocated() / 1e9:.1f} GB, {history!r}, δ {history.delta[-1]:.3f}"
    )


CHECKS = (check_compiled_is_eager, check_nothing_waits, check_speed)

if __name__ == "__main__":
    for check in CHECKS:
        begun = time.perf_counter()
        check()
        print(f"{check.__name__}: well, {time.perf_counter() - begun:.0f} s", flush=True)
