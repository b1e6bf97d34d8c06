"""Recurrent networks, written as Python loops."""

import dlc as torch
import numpy as np
from dlc import nn

from models import Program


class LSTM(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.hidden = hidden
        self.x = nn.Linear(features, 4 * hidden)
        self.h = nn.Linear(hidden, 4 * hidden)

    def forward(self, x):
        h = c = torch.zeros(x.shape[0], self.hidden)
        outputs = []
        for t in range(x.shape[1]):
            i, f, g, o = (self.x(x[:, t]) + self.h(h)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            outputs.append(h)
        return torch.stack(outputs, 1)


def rnn(batch=8, length=50, features=64, hidden=128):
    """LSTM as a Python loop, 8 x 50 x 64, hidden 128."""
    module = LSTM(features, hidden)
    x = np.random.default_rng(1).standard_normal((batch, length, features), dtype=np.float32)
    return Program(module, module, (x,))
