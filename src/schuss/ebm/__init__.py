"""Neural energies in PyTorch: the sampler inside the training loop."""

try:
    from schuss.ebm.buffer import ReplayBuffer
    from schuss.ebm.checkpoint import load_weights
    from schuss.ebm.divergence import DivergenceError, Limits
    from schuss.ebm.ema import EMA
    from schuss.ebm.ensemble import Ensemble
    from schuss.ebm.history import History, Rollback
    from schuss.ebm.joint import JointEnergy
    from schuss.ebm.losses import contrastive_loss
    from schuss.ebm.networks import ConvEnergy, ResidualClassifier, StridedEnergy, ToyMLP
    from schuss.ebm.pictures import picture
    from schuss.ebm.trainer import Trainer
    from schuss.ebm.uses import (
        auroc,
        bits_per_dimension,
        diversity,
        log_density_ratio,
        outliers,
    )
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise

    # The commands and their help are there all the same.
    def __getattr__(name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        raise ImportError(
            f"schuss.ebm.{name} needs PyTorch; install it with pip install 'schuss[torch]'"
        )


__all__ = [
    "EMA",
    "ConvEnergy",
    "DivergenceError",
    "Ensemble",
    "History",
    "JointEnergy",
    "Limits",
    "ReplayBuffer",
    "ResidualClassifier",
    "Rollback",
    "StridedEnergy",
    "ToyMLP",
    "Trainer",
    "auroc",
    "bits_per_dimension",
    "contrastive_loss",
    "diversity",
    "load_weights",
    "log_density_ratio",
    "outliers",
    "picture",
]
