"""Layers, losses and containers."""

# ruff: noqa: F401, F403 (re-exports)
from dlc.nn import functional, init, utils
from dlc.nn.activations import *  # noqa: F403
from dlc.nn.containers import ModuleDict, ModuleList, ParameterList, Sequential
from dlc.nn.layers import (
    BatchNorm1d,
    BatchNorm2d,
    Conv2d,
    Embedding,
    GroupNorm,
    Identity,
    LayerNorm,
    Linear,
    RMSNorm,
)
from dlc.nn.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from dlc.nn.module import Module
from dlc.nn.parameter import Buffer, Parameter
from dlc.nn.transformer import MultiheadAttention, TransformerEncoder, TransformerEncoderLayer
