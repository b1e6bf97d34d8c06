"""Class indices of losses are checked in compiled code as in eager."""

import dlc
import dlc.nn.functional as F
import pytest


def loss(x, target):
    return F.cross_entropy((x * 2 + 1).relu(), target) * 2


@pytest.mark.parametrize("bad", [3, 7, -1])
@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 2)])
def test_target_out_of_range_raises_when_compiled(shape, bad):
    fast = dlc.compile(loss)
    x = dlc.randn(*shape)
    target = dlc.tensor([0, 2, 1, -100])
    if len(shape) == 3:
        target = dlc.stack([target, target], 1)
    assert abs(fast(x, target).item() - loss(x, target).item()) < 1e-6
    target[1] = bad
    for program in (loss, fast):
        with pytest.raises(IndexError, match="out of bounds"):
            program(x, target)
