"""Contrastive divergence: energies of data go down, energies of negatives go up."""

import torch


def contrastive_loss(energy_data, energy_negative, log_weights=None, regularise: float = 0.0):
    """⟨E⟩ over the data − Σ w E over the negatives + regularise (⟨E₊²⟩ + ⟨E₋²⟩).

    The weights w are equal, or the softmax of `log_weights` (Jarzynski's, Eq. 9).
    """
    energy_data, energy_negative = energy_data.reshape(-1), energy_negative.reshape(-1)
    weights = None
    if log_weights is not None:
        if log_weights.shape != energy_negative.shape:
            raise ValueError(
                f"log_weights must have shape {tuple(energy_negative.shape)}, one for each "
                f"negative, got {tuple(log_weights.shape)}"
            )
        weights = torch.softmax(log_weights, dim=0)
    return weighted_loss(energy_data, energy_negative, weights, regularise)


def weighted_loss(energy_data, energy_negative, weights=None, regularise: float = 0.0):
    """The same with weights that are normalised already; None is a plain mean."""
    negative = energy_negative.mean() if weights is None else (weights * energy_negative).sum()
    loss = energy_data.mean() - negative
    if regularise:
        squares = energy_data.square().mean() + energy_negative.square().mean()
        loss = loss + regularise * squares
    return loss
