"""OMAR: one model plays every seat, and each seat's final reward becomes credit on its tokens.

Source: "One Model, All Roles". `OmarConfig.advantage` selects the form of credit. Each form is a class in its own
module: `hierarchical` (the method), `flat`, `turn_only` and `group_relative` (its ablations); `base` has what they
share. `docs/methods/omar.md` lists where the estimator departs from the paper and why.
"""

from __future__ import annotations

from training.methods.omar.base import Omar
from training.methods.omar.config import OmarConfig

__all__ = ["Omar", "OmarConfig"]
