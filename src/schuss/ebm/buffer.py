"""The replay buffer: chains that go on from one training iteration to the next."""

from collections.abc import Callable
from typing import Any

import torch

from schuss.arguments import seed_or_generator, whole
from schuss.ebm.randomness import generator, key
from schuss.ebm.starts import STARTS, Colours, starting


class ReplayBuffer:
    """`size` chains of a shape, drawn in batches without replacement and written back in place.

    Each chain drawn is begun anew from `start` with probability `reinit`. `start` is "uniform" on
    [lower, upper], "colour", "normal", or a function of a number and a generator. "colour" is half
    noise and half a random colour, of the mean and covariance of those in a `Trainer`'s images. The
    draws depend on `seed` and on how many there were before, and nothing else.
    """

    def __init__(
        self,
        size: int,
        shape: tuple[int, ...] | int,
        *,
        start: Callable | str = "uniform",
        reinit: float = 0.05,
        seed: int = 0,
        device: Any = None,
        lower: float = -1.0,
        upper: float = 1.0,
    ):
        self.size = whole("size", size, 1)
        lengths = (shape,) if isinstance(shape, int) else shape
        self.shape = tuple(whole("shape", length, 1) for length in lengths)
        if not 0 <= reinit <= 1:
            raise ValueError(f"reinit must be a fraction between 0 and 1, got {reinit!r}")
        if not lower < upper:
            raise ValueError(
                f"lower must be below upper, got {lower!r} and {upper!r}; exchange them"
            )
        self.reinit, self.lower, self.upper = float(reinit), float(lower), float(upper)
        self.seed = seed_or_generator(seed)
        if not isinstance(self.seed, int):
            raise ValueError("seed of a ReplayBuffer must be a whole number of at least 0")
        self.device = torch.empty(0, device=device).device
        self.start = start
        self.fresh = starting(start, self.shape, self.device, self.lower, self.upper)
        self.draws = 0
        self.x, self.y = self._first(), None
        self._conditions: Callable | None = None

    def _first(self) -> torch.Tensor:
        return self.fresh(self.size, generator(self.device, self.seed, 0))

    def paint(self, colours: Colours) -> None:
        """Start from these colours from now on; a buffer that is as it began begins anew."""
        make = starting(self.start, self.shape, self.device, self.lower, self.upper, colours)
        self.begin(make)

    def begin(self, fresh: Callable) -> None:
        """Start by another function from now on; a buffer that is as it began begins anew."""
        begun = self.draws == 0 and torch.equal(self.x, self._first())
        self.fresh = fresh
        if begun:
            self.x = self._first()

    def condition(self, draw: Callable) -> None:
        """Give each chain a condition y, drawn by a function of a number and a generator."""
        self._conditions = draw
        self.y = draw(self.size, generator(self.device, self.seed, 0, 1)).to(self.device)

    @property
    def boxed(self) -> bool:
        """Whether the chains start in [lower, upper]."""
        return self.start in STARTS and self.start != "normal"

    def draw(self, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        """`n` different chains and their slots; nothing here waits for the device."""
        if n > self.size:
            raise ValueError(
                f"batch must be at most the buffer's size {self.size}, got {n}; take a larger "
                "buffer or a smaller batch"
            )
        self.draws += 1
        source = generator(self.device, self.seed, self.draws)
        slots = torch.randperm(self.size, generator=source, device=self.device)[:n]
        x = self.x[slots]
        if self.reinit:
            again = torch.rand(n, generator=source, device=self.device) < self.reinit
            chosen = again.reshape(n, *(1 for _ in self.shape))
            x = torch.where(chosen, self.fresh(n, source), x)
            if self._conditions is not None and self.y is not None:
                chosen = again.reshape(n, *(1 for _ in self.y.shape[1:]))
                self.y[slots] = torch.where(chosen, self._conditions(n, source), self.y[slots])
        return x, slots

    def write(self, slots: torch.Tensor, x: torch.Tensor) -> None:
        """Put chains back where they were drawn."""
        if tuple(x.shape) != (len(slots), *self.shape):
            raise ValueError(
                f"x must have shape {(len(slots), *self.shape)}, one chain for each slot, got "
                f"{tuple(x.shape)}"
            )
        self.x[slots] = x.detach().to(self.x)

    def sibling(self, number: int) -> "ReplayBuffer":
        """Another buffer of the same kind with its own random numbers; number 0 is this one."""
        if number == 0:
            return self
        return ReplayBuffer(
            self.size,
            self.shape,
            start=self.start,
            reinit=self.reinit,
            seed=key(self.seed, number, 0, 0),
            device=self.device,
            lower=self.lower,
            upper=self.upper,
        )

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The chains and the number of draws; the tensor is the buffer's own."""
        state = {"x": self.x, "draws": torch.tensor(self.draws)}
        return state if self.y is None else {**state, "y": self.y}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Go on from a state, with the same draws as the buffer that gave it."""
        if tuple(state["x"].shape) != tuple(self.x.shape):
            raise ValueError(
                f"the saved buffer holds {tuple(state['x'].shape)} but this one "
                f"{tuple(self.x.shape)}; make it of the same size and shape"
            )
        self.x.copy_(state["x"])
        if self.y is not None:
            self.y.copy_(state["y"])
        self.draws = int(state["draws"])
