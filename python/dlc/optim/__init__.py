"""Optimizers and learning rate schedules."""

from dlc.optim import lr_scheduler
from dlc.optim.adam import Adam, AdamW
from dlc.optim.optimizer import Optimizer
from dlc.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler"]
