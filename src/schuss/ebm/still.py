"""A copy of a network that stands still while it is sampled, and is brought up to date in between.

Its weights stay where they are in memory, so compiled steps and CUDA graphs of it stay valid
whatever the optimiser does, and reparametrised weights (spectral norm) are computed once for many
steps. The network that is trained is never touched: not its mode, nor what requires gradients.
"""

import copy

import torch
from torch import nn
from torch.nn.utils import parametrize


class Still:
    """`energy` is the frozen copy; `update()` copies the weights of the network into it.

    With a `dtype` the copy is for use under autocast of that precision. Parts that a module names
    in `under_autocast` keep their weights rounded as autocast would round them in every step.
    On a GPU weights of convolutions lie with their channels last, as images do there.
    """

    def __init__(self, net: nn.Module, dtype: torch.dtype | None = None):
        self.net = net
        try:
            self.energy = copy.deepcopy(net)
        except Exception as error:
            raise ValueError(
                f"net must be a module that copy.deepcopy can copy, but that failed: {error}"
            ) from error
        for module in list(self.energy.modules()):
            if parametrize.is_parametrized(module):
                _settle(module)
        self.energy.eval().requires_grad_(False)
        if dtype is not None:
            _round(self.energy, dtype)
        channels_last(self.energy)
        self._plain, self._made = self._pairs()

    def _pairs(self):
        """Tensors to copy as they are, and those that a parametrisation makes."""
        plain, made = [], []
        trained = dict(self.net.named_modules())
        for path, module in self.energy.named_modules():
            source = trained[path]
            own = dict(module.named_parameters(recurse=False))
            own |= dict(module.named_buffers(recurse=False))
            for name in own:
                reparametrised = name in getattr(source, "parametrizations", {})
                (made if reparametrised else plain).append((module, source, name))
        return plain, made

    @torch.no_grad()
    def update(self) -> nn.Module:
        """The frozen copy with the weights of now."""
        for copied, source, name in self._plain:
            getattr(copied, name).copy_(getattr(source, name))
        for copied, source, name in self._made:
            training = source.training
            parametrisation = source.parametrizations[name]
            parametrisation.eval()
            try:
                getattr(copied, name).copy_(getattr(source, name))
            finally:
                parametrisation.train(training)
        return self.energy


def channels_last(net: nn.Module) -> None:
    """Lay out weights of convolutions on a GPU like the images that they meet."""
    for tensor in (*net.parameters(), *net.buffers()):
        if tensor.dim() == 4 and tensor.is_cuda:
            tensor.data = tensor.data.contiguous(memory_format=torch.channels_last)


def _round(energy: nn.Module, dtype: torch.dtype) -> None:
    for module in list(energy.modules()):
        for name in getattr(module, "under_autocast", ()):
            getattr(module, name).to(dtype)


def _settle(module: nn.Module) -> None:
    """Make parametrised tensors plain ones.

    PyTorch's own way takes the property off the class, which a copy shares with its original.
    """
    names = [name for name, _ in module.parametrizations.named_children()]
    values = {name: getattr(module, name).detach().clone() for name in names}
    del module.parametrizations
    module.__class__ = type(module).__bases__[0]
    for name, value in values.items():
        module.register_parameter(name, nn.Parameter(value))
