"""The training loop: negatives by a sampler, one step of the optimiser, over and over."""

import contextlib
import dataclasses
import functools
import logging
import math
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from schuss.algorithms import ESH, Algorithm
from schuss.arguments import corners, one_of, positive, positive_number, seed_or_generator, whole
from schuss.checkpoint.errors import understood
from schuss.checkpoint.identity import check_identity
from schuss.ebm import checkpoint, contents, ranks, scale
from schuss.ebm.batches import Batches
from schuss.ebm.buffer import ReplayBuffer
from schuss.ebm.divergence import DivergenceError, Limits, cause
from schuss.ebm.ema import EMA
from schuss.ebm.examples import Examples
from schuss.ebm.history import STATISTICS, History
from schuss.ebm.joint import JointEnergy, check_labels
from schuss.ebm.judgement import CALLS, CHAINS, ROUNDS, Judgement, Samples, judge
from schuss.ebm.machine import machine, tuned
from schuss.ebm.negatives import Drawer
from schuss.ebm.objective import Objective
from schuss.ebm.penalty import WEIGHT, Penalty, explain
from schuss.ebm.pictures import drawable, picture
from schuss.ebm.randomness import generator, key
from schuss.ebm.recovery import Recovery
from schuss.ebm.schedule import optimiser as make_optimiser
from schuss.ebm.schedule import schedule
from schuss.ebm.starts import saved_colours
from schuss.ebm.still import Still, channels_last
from schuss.ebm.trained_net import bounded, broken, trainable, training
from schuss.ebm.watch import watching

log = logging.getLogger("schuss.ebm")

PRECISIONS = {None: None, "bf16": torch.bfloat16}
MEASURED = 500
"""Chains and data by which the scale of the energy is chosen, at most."""

PICTURED = 100
"""Images in a picture."""

META = ("iteration", "streams", "energy_scale", "recovery", "config", "seed", "settings")
"""What a checkpoint says beside its tensors."""

BUFFER = ("size", "reinit", "start", "lower", "upper", "seed")
"""What a run depends on of a buffer that is new."""

FIRST_SAVE, NEXT_SAVE = 60.0, 300.0
"""Seconds after which a checkpoint is written, whatever `save_every` is."""


class Trainer:
    """Trains an energy: any module that takes x (n, *shape) and returns (n,) or (n, 1).

    net, data: the module, and a tensor, a pair of data and labels (classes of a `JointEnergy`, or
        conditions y of a module that takes x and y), or a function of a number and a generator;
        both on the same device.
    sampler, steps, keep: how negatives are made; the sampler sees `energy_scale` · net. "auto"
        takes the scale at which its step turns by δ = 0.1 before training, or 0.7 where it is one
        of Langevin dynamics (schuss.ebm.scale).
    gradient_penalty: weight of the loss's penalty on slopes at which a step turns by more than
        three times that (schuss.ebm.penalty). None is 1 where the scale is "auto", and none where
        it is a number and so energies have a unit of their own.
    buffer: a `ReplayBuffer`, or None for fresh chains from `start` in every iteration.
    weighting: None, or "jarzynski" for fresh chains whose last states are weighted by
        E₀(x₀) − E(x_t) − (d−1)r_t (Eq. 9, exact at any step size); `reference` is E₀.
    fixed: a mask of the shape of a position; where it is True negatives are equal to data, and the
        net learns the density of the other coordinates given these.
    warm_start, warm_noise: so many iterations by denoising score matching first, which needs no
        sampler and learns the density of data with normal noise of this sd; the buffer then begins
        at such data.
    batch: data and negatives for each process and iteration.
    optimiser, lr, betas, momentum: "adam", "sgd" or a function of the parameters; lr_schedule:
        "constant", "tail" (falls to a tenth over the second half) or a function of the share done.
    data_noise, flip: sd of noise on the data, and mirror images.
    regularise: weight of the squared energies; joint_weight: of the generative part of JEM's loss.
    clip: largest norm of the loss's gradient.
    ema: decay of the average weights, None for none.
    precision: "bf16" inside the network; compile: fuse the sampler's steps (None: on a GPU).
    every: iterations between two looks at the numbers; nothing in between waits for the device.
    limits, retries: what counts as diverged, and how often to go back to a good state.
    streams: parts of a batch with random numbers and a buffer of their own. One process with
        streams=2 does what two processes with half of the batch do.
    folder, save_every: where checkpoints and pictures go, and after how many iterations. A
        checkpoint without pictures is written after the first `every` iterations, or a minute,
        and then every five minutes. With `page` `report` is called at the end. A folder that has
        checkpoints is refused until `resume` is called. config: what they should say of the run,
        for JSON.
    """

    def __init__(
        self,
        net: nn.Module,
        data: Any,
        *,
        sampler: Algorithm | None = None,
        steps: int = 50,
        keep: str = "reservoir",
        buffer: ReplayBuffer | None = None,
        start: Callable | str = "uniform",
        weighting: str | None = None,
        reference: Callable | None = None,
        fixed: Any = None,
        warm_start: int = 0,
        warm_noise: float = 0.1,
        batch: int = 250,
        optimiser: str | Callable = "adam",
        lr: float = 2e-4,
        betas: tuple[float, float] = (0.5, 0.999),
        momentum: float = 0.0,
        lr_schedule: str | Callable | None = None,
        iterations: int = 1000,
        data_noise: float = 0.03,
        flip: bool = False,
        energy_scale: float | str = "auto",
        gradient_penalty: float | None = None,
        regularise: float = 0.0,
        joint_weight: float = 1.0,
        clip: float | None = None,
        ema: float | None = 0.999,
        precision: str | None = None,
        compile: bool | None = None,
        seed: int = 0,
        every: int = 50,
        limits: Limits | None = None,
        retries: int = 3,
        streams: int = 1,
        folder: str | pathlib.Path | None = None,
        save_every: int | None = None,
        page: bool = True,
        config: Any = None,
        progress: bool = False,
    ):
        self.net, self.parameters = net, trainable(net)
        sampler = ESH(step_size=0.5) if sampler is None else sampler
        device, dtype = self.parameters[0].device, self.parameters[0].dtype
        one_of("precision", precision, tuple(PRECISIONS))
        one_of("weighting", weighting, (None, "jarzynski"))
        positive("clip", 1.0 if clip is None else clip)
        if gradient_penalty is None:
            gradient_penalty = WEIGHT if energy_scale == "auto" else 0.0
        if gradient_penalty:
            positive_number("gradient_penalty", gradient_penalty)
        self.seed, self.every = seed_or_generator(seed), whole("every", every, 1)
        self.iterations = whole("iterations", iterations, 1)
        limits = Limits() if limits is None else limits
        # Langevin dynamics with more drift than noise is how many people sample.
        wide = dataclasses.replace(limits, delta=math.inf)
        self.limits = limits if isinstance(sampler, ESH) else wide
        self.warm_start = whole("warm_start", warm_start, 0)
        positive_number("warm_noise", warm_noise)
        self.warm_noise = float(warm_noise)
        if warm_start and fixed is not None:
            raise ValueError("warm_start doesn't go with fixed; leave one of them out")
        self.clip = math.inf if clip is None else clip
        self.lr_schedule = schedule(lr_schedule)
        self.folder = None if folder is None else pathlib.Path(folder)
        save_every = 10 * self.every if save_every is None else save_every
        self.save_every = whole("save_every", save_every, 1)
        self.page, self.config, self.progress = page, config, progress

        joint = isinstance(net, JointEnergy)
        examples = Examples(data, device, dtype, noise=data_noise, flip=flip, joint=joint)
        check_labels(net, examples.labels)
        if fixed is not None:
            fixed = torch.as_tensor(fixed, device=device).reshape(examples.shape)
        if getattr(sampler, "box", None) is not None:
            lower, upper = corners(sampler.box, examples.shape)
            examples.check_inside(float(lower.min()), float(upper.max()))
        if len(examples.shape) == 3 and device.type == "cuda":
            channels_last(net)
        inside = PRECISIONS[precision]
        self.optimiser = make_optimiser(optimiser, self.parameters, lr, betas, momentum)
        self._rates = [group["lr"] for group in self.optimiser.param_groups]
        self.ema = None if ema is None else EMA(net, ema)

        self._still, self._eager = Still(net, inside), None
        self._drawing = {
            "algorithm": sampler,
            "steps": steps,
            "keep": keep,
            "gradient_dtype": inside,
            "fixed": fixed,
        }
        compile = device.type == "cuda" if compile is None else compile
        self.batches = Batches(
            examples,
            Drawer(self._still.energy, compile=compile, energy_scale=1.0, **self._drawing),
            batch=batch,
            streams=streams,
            buffer=buffer,
            start=start,
            weighting=weighting,
            reference=reference,
            fixed=fixed,
            conditional=examples.labels is not None and not joint,
            seed=self.seed,
            device=device,
            dtype=dtype,
        )
        # From the same chains in every process, however many there are.
        count = min(self.batches.batch * ranks.world(), MEASURED)
        first = self.batches.fresh(count, generator(device, self.seed, 0))
        first = self.batches.laid_out(first)
        shown, labels = examples.draw(len(first), generator(device, self.seed, 1))
        y = (labels,) if self.batches.conditional else ()
        shown = self.batches.laid_out(shown)
        scale.check_step(sampler, torch.cat((first, shown)))
        turn = self._turn = scale.Turn.of(sampler, first, fixed)
        with torch.autocast(device.type, inside, enabled=inside is not None):
            found = scale.energy_scale(energy_scale, self._still.update(), turn, first, *y)
        self._rescale(found)
        if not gradient_penalty and not bounded(net):
            log.warning(
                "nothing bounds the slope of net, for gradient_penalty=0 and not all of its layers "
                "have spectral norm: training may diverge"
            )
        distance = turn.distance(shown, first)
        self._objective = ranks.parallel(
            Objective(
                net,
                regularise=regularise,
                joint_weight=joint_weight,
                penalty=Penalty(gradient_penalty, turn, distance) if gradient_penalty else None,
                precision=inside,
            ),
            device,
        )
        self.recovery = Recovery(whole("retries", retries, 0))
        self.iteration, self._saved = 0, 0
        self._safe: int | None = None  # the iteration of the last checkpoint
        self._clock = time.monotonic()
        self._alone: pathlib.Path | None = None  # a folder that this run has locked
        self._known: set[int] = set()  # marks of commits that this run goes on from
        self._damaged: int | None = None
        self._given = {
            "sampler": sampler,
            "steps": steps,
            "keep": keep,
            "start": start,
            "buffer": buffer and {name: getattr(buffer, name) for name in BUFFER},
            "weighting": weighting,
            "reference": reference,
            "fixed": fixed,
            "warm_start": warm_start,
            "warm_noise": warm_noise,
            "batch": self.batches.batch * ranks.world(),
            "lr_schedule": "constant" if lr_schedule is None else lr_schedule,
            "data_noise": data_noise,
            "flip": flip,
            "energy_scale": energy_scale,
            "gradient_penalty": gradient_penalty,
            "regularise": regularise,
            "joint_weight": joint_weight,
            "clip": clip,
            "ema": ema,
            "precision": precision,
            "seed": self.seed if isinstance(self.seed, int) else None,
        }
        self._rows = np.zeros((0, len(STATISTICS)))
        self._speed = math.nan

    @property
    def averaged(self) -> nn.Module:
        """The network with average weights, or the network itself where there is no average."""
        return self.net if self.ema is None else self.ema.module

    @property
    def buffer(self) -> ReplayBuffer | None:
        """The buffer, of the first stream of this process."""
        return self.batches.buffers[0] if self.batches.buffers else None

    @property
    def history(self) -> History:
        """What happened so far."""
        columns = dict(zip(STATISTICS, self._rows.T, strict=True))
        return History(
            **columns,
            images_per_second=self._speed,
            gradients=max(0, len(self._rows) - self.warm_start) * self.batches.drawer.gradients,
            rollbacks=tuple(self.recovery.rollbacks),
        )

    def fit(self, iterations: int | None = None, minutes: float | None = None) -> History:
        """Train to the end of the run, for so many more iterations, or for so many minutes."""
        end = self.iterations
        if iterations is not None:
            end = self.iteration + whole("iterations", iterations, 1)
        if minutes is not None:
            positive("minutes", minutes)
        if not self.recovery.ready:
            self.recovery.remember(self.iteration, self._tensors())
        shown = watching(self.progress and ranks.rank() == 0, self.iteration, end)
        folder = contextlib.nullcontext() if self.folder is None else self._alone_in(self.folder)
        with folder, training(self.net), tuned(), shown as watch:
            self._clock = time.monotonic()
            try:
                self._loop(end, minutes, watch)
            except KeyboardInterrupt:
                with contextlib.suppress(KeyboardInterrupt):  # a second one stops saving, too
                    self._interrupted()
                raise
        ended = self.iteration >= self.iterations or minutes is not None
        if self.page and self.folder is not None and ended:
            self.report()
        return self.history

    def _loop(self, end: int, minutes: float | None, watch: Callable) -> None:
        numbers = self.parameters[0].new_zeros((self.every, len(STATISTICS)), dtype=torch.float32)
        begun, paused, count, images = time.monotonic(), 0.0, 0, 0
        while self.iteration < end:
            numbers[count] = self._iterate()
            self.iteration, count = self.iteration + 1, count + 1
            images += self.batches.batch * ranks.world()
            regular = self.iteration % self.every == 0 or self.iteration == end
            overdue = self._overdue(regular)
            # Clocks of several processes differ: they stop together at regular iterations only.
            if not regular and not (overdue and ranks.world() == 1):
                continue
            late = minutes is not None and time.monotonic() - begun > 60 * minutes
            well, late, overdue = self._look(numbers[:count], regular, late, overdue)
            count, now = 0, time.monotonic()
            self._speed = images / (now - begun - paused)
            if well:
                watch(self.iteration, self._rows[-1], self._speed)
                if self.folder is not None and regular and (late or self._due(end)):
                    self.save()
                elif self.folder is not None and overdue:
                    self._write(self.folder, weights=False)
                paused += time.monotonic() - now
            if late and regular:
                return

    def _iterate(self) -> torch.Tensor:
        """One step of training; its statistics, still on the device."""
        self._still.update()
        noise = self.warm_noise if self.iteration < self.warm_start else None
        if self.warm_start and self.iteration == self.warm_start:
            self.batches.refill(self.warm_noise)
        place = self.iteration, self.recovery.attempt
        batch = self.batches.draw(*place) if noise is None else self.batches.noisy(*place, noise)
        weights = None
        largest = batch.energy_error.new_full((), 1 / (len(batch.negatives) * ranks.world()))
        if batch.log_weights is not None:
            weights = ranks.normalised(batch.log_weights)
            largest = weights.max() / ranks.world()
        self.optimiser.zero_grad(set_to_none=True)
        outcome = self._objective(
            batch.x,
            batch.labels,
            batch.negatives,
            weights,
            self.energy_scale,
            batch.conditions,
            noise,
        )
        try:
            outcome.loss.backward()
        except RuntimeError as error:
            explain(error)
            raise
        norm = nn.utils.clip_grad_norm_(self.parameters, self.clip)
        factor = self.lr_schedule(self.iteration / self.iterations) * self.recovery.rate_factor
        for group, rate in zip(self.optimiser.param_groups, self._rates, strict=True):
            group["lr"] = factor * rate
        self.optimiser.step()
        if self.ema is not None:
            self.ema.update(self.net)
        numbers = (
            outcome.loss,
            outcome.energy_data,
            outcome.energy_negative,
            batch.energy_error.mean(),
            batch.frozen.to(torch.float32).mean(),
            norm,
            batch.delta.mean(),
            largest,
            outcome.accuracy,
        )
        return torch.stack([number.detach().to(torch.float32) for number in numbers])

    def _look(
        self, numbers: torch.Tensor, regular: bool, late: bool, overdue: bool
    ) -> tuple[bool, bool, bool]:
        """Bring the numbers to the host and judge them: whether all is well, whether time is up,
        whether a checkpoint is overdue. States to go back to are kept at regular iterations only,
        so that the clock has no influence on the numbers.
        """
        total = torch.stack([p.detach().sum() for p in self.parameters]).sum().to(torch.float32)
        flags = [torch.full_like(total, float(flag)) for flag in (late, overdue)]
        given = torch.cat((numbers.reshape(-1), torch.stack((*flags, total))))
        host = ranks.mean(given).double().cpu().numpy()
        rows, finite = host[:-3].reshape(numbers.shape), np.isfinite(host[-1])
        late, overdue = bool(host[-3]), bool(host[-2])
        found = cause(rows, self.limits)
        if self.iteration == len(rows):  # nothing was learned yet
            turn = rows[0, STATISTICS.index("delta")]
            scale.check_turn(turn, self.limits.delta, self.energy_scale)
        if found is None and finite:
            self._rows = np.concatenate((self._rows, rows))
            if regular:
                self.recovery.praise()
                self.recovery.remember(self.iteration, self._tensors())
            return True, late, overdue
        row, shown = (len(rows) - 1, None) if found is None else found
        self._go_back(self.iteration - len(rows) + row + 1, shown)
        return False, late, overdue

    def _go_back(self, iteration: int, shown: str | None) -> None:
        """Report a divergence and return to a good state."""
        names = ", ".join(broken(self.net)[:3])
        named = f"weights that are not finite in {names}" if names else None
        found = "; ".join(part for part in (shown, named) if part) or "weights that overflow"
        back_to, tensors = self.recovery.go_back(iteration, found)
        self._restore(back_to, tensors)
        self._saved = min(self._saved, back_to)
        failures, retries = self.recovery.failures, self.recovery.retries
        if failures > retries:
            raise DivergenceError(
                f"training diverged {failures} times, last at iteration {iteration} ({found}), and "
                f"was left at iteration {back_to}; try a smaller lr, step_size or energy_scale, "
                "spectral normalisation, or regularise=0.1"
            )
        if ranks.rank() == 0:
            log.warning(
                f"iteration {iteration}: training diverged ({found}); back to iteration {back_to}, "
                f"retry {failures} of {retries}"
            )

    def _tensors(self) -> dict[str, torch.Tensor]:
        found = contents.gather(self.net, self.optimiser, self.ema)
        for number, buffer in enumerate(self.batches.buffers):
            found |= {f"buffer.{number}.{name}": t for name, t in buffer.state_dict().items()}
        return found

    def _restore(self, iteration: int, tensors: dict[str, torch.Tensor]) -> None:
        contents.restore(tensors, self.net, self.optimiser, self.ema)
        for number, buffer in enumerate(self.batches.buffers):
            buffer.load_state_dict(contents.under(f"buffer.{number}.", tensors))
        self.iteration, self._rows = iteration, self._rows[:iteration]

    def _interrupted(self) -> None:
        """Leave a whole state behind, that of the last look, and save it."""
        self._restore(*self.recovery.last)
        if self.folder is not None and ranks.world() == 1 and self.iteration > (self._safe or 0):
            self._write(self.folder)

    def _due(self, end: int) -> bool:
        return self.iteration == end or self.iteration - self._saved >= self.save_every

    def _overdue(self, regular: bool) -> bool:
        """Whether a checkpoint should be written whatever `save_every` is."""
        if self.folder is None or (self._safe is None and regular):
            return self.folder is not None
        limit = FIRST_SAVE if self._safe is None else NEXT_SAVE
        return time.monotonic() - self._clock > limit

    @contextlib.contextmanager
    def _alone_in(self, folder: pathlib.Path) -> Iterator[None]:
        """Lock the folder, and refuse one whose checkpoints are of another run."""
        folder = folder.absolute()
        if self._alone == folder:
            yield
            return
        checkpoint.check_known(folder, self._known)
        if ranks.rank() == 0:
            folder.mkdir(parents=True, exist_ok=True)
            only = checkpoint.alone(folder, self._known, self._damaged)
        else:
            only = contextlib.nullcontext()
        before = self._alone
        with only:
            self._alone = folder
            try:
                yield
            finally:
                self._alone = before

    def save(self, folder: str | pathlib.Path | None = None) -> pathlib.Path:
        """Write a checkpoint to go on from, the weights alone, and pictures; the checkpoint."""
        folder = self._folder(folder)
        with self._alone_in(folder):
            place = self._write(folder)
            if ranks.rank() == 0:
                self._draw(folder)
        self._saved = self.iteration
        return place

    def _write(self, folder: pathlib.Path, weights: bool = True) -> pathlib.Path:
        """Write a checkpoint, and the weights alone if wanted."""
        place = checkpoint.begin(folder, self.iteration)
        ranks.wait()
        if ranks.rank() == 0:
            checkpoint.clear(place)
        ranks.wait()
        for stream, buffer in enumerate(self.batches.buffers):
            checkpoint.write(place / self._stream_file(stream), buffer.state_dict())
        if ranks.rank() == 0:
            tensors = contents.gather(self.net, self.optimiser, self.ema)
            tensors["history"] = torch.as_tensor(self._rows)
            meta = {
                "iteration": self.iteration,
                "streams": self._streams,
                "energy_scale": self.energy_scale,
                "recovery": self.recovery.state(),
                "config": self.config,
                "seed": self.seed if isinstance(self.seed, int) else None,
                "settings": self._settings,
                "colours": self.batches.colours,
            }
            checkpoint.write(place / checkpoint.STATE, tensors, meta)
        ranks.wait()
        if ranks.rank() == 0:
            file = folder / f"weights-{self.iteration:07d}.safetensors" if weights else None
            if file is not None:
                checkpoint.write(file, self.averaged.state_dict())
            checkpoint.finish(folder, place, file, self._known)
        ranks.wait()
        self._safe, self._clock = self.iteration, time.monotonic()
        return place

    @functools.cached_property
    def _settings(self) -> dict[str, Any]:
        """The arguments that the numbers of a run depend on, for JSON."""
        examples = self.batches.examples
        data = examples.function or examples.x
        return contents.described(
            {"data": data, "labels": examples.labels, **self._given}
            | contents.rates(self.optimiser, self._rates)
        )

    def resume(self, folder: str | pathlib.Path | None = None) -> "Trainer":
        """Go on from the newest whole checkpoint: with the same arguments, to the same numbers.

        Other data, arguments or another `config` are refused, the length of the run aside.
        """
        folder = self._folder(folder)
        mark = checkpoint.mark(folder)
        place, damaged = checkpoint.newest(folder)
        device = self.parameters[0].device
        tensors, meta = checkpoint.read(place / checkpoint.STATE, device)
        with understood(place):
            saved = {name: meta[name] for name in META}
            settings = dict(saved["settings"])
        if self.config is not None and saved["config"] is not None:
            described = checkpoint.identity(saved["config"], saved["seed"])
            check_identity(folder, described, checkpoint.identity(self.config, self.seed))
        checkpoint.check_architecture(contents.under("net.", tensors), self.net.state_dict())
        if (self.ema is not None) != ("ema.steps" in tensors):
            raise ValueError("ema must be given if, and only if, it was when this run was saved")
        if saved["streams"] != self._streams:
            raise ValueError(
                f"the checkpoint has {saved['streams']} buffers in all but this run has "
                f"{self._streams}; use as many processes times streams="
            )
        check_identity(folder, settings, self._settings)
        streams = [
            checkpoint.read(place / self._stream_file(stream), device)[0]
            for stream in range(len(self.batches.buffers))
        ]
        with understood(place):
            for buffer, stream in zip(self.batches.buffers, streams, strict=True):
                buffer.load_state_dict(stream)
            contents.restore(tensors, self.net, self.optimiser, self.ema)
            if self.energy_scale != saved["energy_scale"]:
                self._rescale(saved["energy_scale"])
            self.recovery.load(saved["recovery"])
            self.iteration = self._saved = self._safe = saved["iteration"]
            self._rows = tensors["history"].cpu().numpy()
        self._known, self._damaged = {mark}, mark if damaged else None
        if self.batches.colours is not None:
            self.batches.paint(saved_colours(meta, self.batches.examples.shape))
        for stream, buffer in enumerate(self.batches.buffers):
            buffer.load_state_dict(checkpoint.read(place / self._stream_file(stream), device)[0])
        contents.restore(tensors, self.net, self.optimiser, self.ema)
        if self.energy_scale != meta["energy_scale"]:
            self._rescale(meta["energy_scale"])
        self.recovery.load(meta["recovery"])
        self.iteration = self._saved = meta["iteration"]
        self._rows = tensors["history"].cpu().numpy()
        return self

    def _rescale(self, energy_scale: float) -> None:
        self.energy_scale = energy_scale
        self.batches.drawer.rescale(energy_scale)

    @property
    def _streams(self) -> int:
        return len(self.batches.buffers) * ranks.world()

    def _stream_file(self, stream: int) -> str:
        return f"stream-{self.batches.number(stream)}.safetensors"

    def _folder(self, folder: str | pathlib.Path | None) -> pathlib.Path:
        folder = self.folder if folder is None else folder
        if folder is None:
            raise ValueError("folder is missing; pass it here or to the Trainer")
        return pathlib.Path(folder)

    def from_noise(
        self,
        n: int,
        *,
        rounds: int = 5,
        seed: int = 0,
        y: torch.Tensor | None = None,
        fixed: Any = None,
        init: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Samples of the average network: `rounds` calls of the sampler, one after the other.

        Given conditions `y` (n, …), those of data if left out, for a net that takes them and for a
        `JointEnergy`. Where the mask `fixed` is True coordinates stay as they are in `init`
        (n, *shape), and the others begin as noise.
        """
        source = generator(self.parameters[0].device, seed, 0)
        x = self.batches.fresh(n, source)
        drawer = self._sampling(self._drawing["fixed"])
        if fixed is not None:
            if init is None or init.shape != x.shape:
                raise ValueError(
                    f"fixed needs init of shape {tuple(x.shape)}, which has the values to keep"
                )
            fixed = torch.as_tensor(fixed, device=x.device).reshape(x.shape[1:])
            x, drawer = torch.where(fixed, init.to(x), x), self._sampling(fixed)
        if y is None and self.batches.conditional:
            y = self.batches.conditions(n, source)
        x = self.batches.laid_out(x)
        for number in range(rounds):
            x = drawer(x, key(seed, number + 1), y).x
        return x

    def _sampling(self, fixed) -> Drawer:
        """An eager drawer of the average network as it is now."""
        if self._eager is None:
            self._eager = Still(self.averaged, self._drawing["gradient_dtype"])
        options = {"compile": False, "energy_scale": self.energy_scale, **self._drawing}
        return Drawer(self._eager.update(), **options | {"fixed": fixed})

    def judge(self) -> tuple[Judgement, Samples]:
        """What speaks against the run, by its last iterations and samples of the average net."""
        if not len(self._rows):
            raise ValueError("a run without an iteration can't be judged; call fit first")
        device, drawer = self.parameters[0].device, self._sampling(self._drawing["fixed"])
        source = generator(device, self.seed, self.iteration, 0, 0, 5)
        data, labels = self.batches.examples.distinct(CHAINS, source)
        y = {"data": labels, "noise": labels} if self.batches.conditional else {}
        noise = self.from_noise(len(data), rounds=ROUNDS, seed=self.iteration, y=y.get("noise"))
        parts: dict[str, Any] = {"data": data, "noise": noise, "buffer": None, "after": None}
        if self.buffer is not None:
            parts["buffer"] = after = self.batches.laid_out(self.buffer.x[: len(data)])
            y["buffer"] = None if self.buffer.y is None else self.buffer.y[: len(data)]
            for number in range(CALLS):
                after = drawer(after, key(self.seed, self.iteration, number), y["buffer"]).x
            parts["after"] = after
        energies = {
            name: drawer.net(x, *(() if y.get(name) is None else (y[name],)))
            for name, x in parts.items()
            if x is not None and name != "after"
        }
        energies = {name: e.reshape(-1).double().cpu().numpy() for name, e in energies.items()}
        samples = Samples(**{name: None if x is None else x.cpu() for name, x in parts.items()})
        return judge(self.history, samples, energies, self.energy_scale, self._turn.limit), samples

    def report(self, folder: str | pathlib.Path | None = None) -> Judgement | None:
        """Judge the run and write history.csv, curves, samples, settings and report.html.

        None in processes other than the first, which writes.
        """
        from schuss.ebm.report import leave, settings  # Matplotlib, which training needs not

        folder = self._folder(folder)
        if ranks.rank() != 0:
            return None
        found, samples = self.judge()
        folder.mkdir(parents=True, exist_ok=True)
        device = self.parameters[0].device
        limits = (-1.0, 1.0) if self.buffer is None else (self.buffer.lower, self.buffer.upper)
        leave(
            folder,
            history=self.history,
            scale=self.energy_scale,
            limit=self._turn.limit,
            samples=samples,
            limits=limits,
            found=found,
            about=settings(
                self.config,
                self._settings | {"energy_scale of the run": self.energy_scale},
                machine(device),
                found,
            ),
        )
        return found

    def _draw(self, folder: pathlib.Path) -> None:
        """Pictures of the buffer and of samples from noise, where positions are images."""
        if not drawable(self.batches.examples.shape):
            return
        if self.buffer is not None:
            picture(folder / "buffer.png", self.buffer.x[:PICTURED])
        seed = key(self.seed, self.iteration)
        picture(folder / "noise.png", self.from_noise(PICTURED, seed=seed))
