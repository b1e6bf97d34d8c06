"""Memory of compiled training steps, by the allocator's counters."""

import dlc
import dlc.nn.functional as F
import numpy as np
import pytest
from dlc import nn

LAYERS, WIDTH, ROWS = 5, 128, 1024


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def peak_of(compiled):
    """Bytes above what rests before the first step, and the losses."""
    dlc.manual_seed(0)
    model = nn.Sequential(*[Block() for _ in range(LAYERS)])
    optimizer = dlc.optim.SGD(model.parameters(), lr=0.01)

    def step(x):
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    if compiled:
        step = dlc.compile(step)
    x = dlc.from_numpy(np.random.default_rng(0).standard_normal((ROWS, WIDTH)).astype(np.float32))
    resting = dlc.memory_stats()["allocated"]
    losses = [float(step(x)) for _ in range(2)]
    dlc.reset_peak_memory_stats()
    losses.append(float(step(x)))
    return dlc.memory_stats()["peak_allocated"] - resting, losses


@pytest.mark.skipif(dlc.config.mode != "full", reason="about what the compiler plans")
def test_a_compiled_step_keeps_less_than_the_tape():
    eager, expected = peak_of(False)
    compiled, losses = peak_of(True)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    assert compiled <= 0.7 * eager, f"{compiled / 1e6:.1f} MB of {eager / 1e6:.1f}"
