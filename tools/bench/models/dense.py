"""Linear layers, pointwise chains and losses."""

import dlc as torch
import dlc.nn.functional as F
import numpy as np
from dlc import nn

from models import Program


def small_mlp(width=64, batch=1):
    """Three linear layers of width 64, batch 1: what a call costs."""
    module = nn.Sequential(
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)
    )
    return Program(module, module, (_normal(batch, width),))


def mlp(width=512, batch=64):
    """784-512-512-10 with LayerNorm and GELU, batch 64."""
    module = nn.Sequential(
        nn.Linear(784, width), nn.LayerNorm(width), nn.GELU(),
        nn.Linear(width, width), nn.LayerNorm(width), nn.GELU(),
        nn.Linear(width, 10),
    )  # fmt: skip
    return Program(module, module, (_normal(batch, 784),))


class Pointwise(nn.Module):
    def forward(self, x):
        x = torch.sigmoid(torch.tanh(torch.log1p(torch.exp(torch.sin(x)))))
        return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()


def pointwise(rows=512, width=1024):
    """Five transcendental functions and a row normalisation, 512 x 1024."""
    module = Pointwise()
    return Program(module, module, (_normal(rows, width),))


class CrossEntropy(nn.Module):
    def forward(self, x, y):
        return F.cross_entropy(x, y)


def softmax_ce(rows=512, classes=10000):
    """Cross-entropy of 512 x 10,000."""
    module = CrossEntropy()
    return Program(module, module, (_normal(rows, classes), _classes(classes, rows)))


def train_mlp(width=512, batch=64):
    """A training step of 784-512-512-10 with Adam, batch 64."""
    module = nn.Sequential(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-4)

    def step(x, y):
        loss = F.cross_entropy(module(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return Program(module, step, (_normal(batch, 784), _classes(10, batch)))


def _normal(*shape):
    return np.random.default_rng(1).standard_normal(shape, dtype=np.float32)


def _classes(count, *shape):
    return np.random.default_rng(2).integers(0, count, shape)
