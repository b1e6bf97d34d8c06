"""Operators between tensors and what is none: NumPy arrays on either side, negative powers of integers."""

import operator

import dlc
import numpy as np
import pytest

OPERATORS = [
    *(getattr(operator, n) for n in "add sub mul truediv floordiv mod pow matmul lt le eq ne gt ge".split()),
]


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("wrap", [lambda f: f, dlc.compile], ids=["eager", "compiled"])
def test_arrays_on_either_side(op, wrap):
    a, b = np.array([1.0, 2.0, 3.0], np.float32), np.array([2.0, 2.0, 0.5], np.float32)
    want = op(a, b)
    for left, right in ((a, dlc.tensor(b)), (dlc.tensor(a), b), (dlc.tensor(a), dlc.tensor(b))):
        got = wrap(lambda x, y: op(x, y))(left, right)
        assert isinstance(got, dlc.Tensor) and np.allclose(got.numpy(), want, rtol=1e-6)


def test_an_array_takes_part_in_promotion_as_a_tensor():
    assert (np.array([1.0]) + dlc.ones(1)).dtype is dlc.float64
    assert (np.array(1.0) + dlc.ones(1)).dtype is dlc.float32
    assert (dlc.ones(2, requires_grad=True) * np.ones(2, np.float32)).requires_grad
    with pytest.raises(TypeError):
        np.array(["a"]) + dlc.ones(1)


@pytest.mark.parametrize("wrap", [lambda f: f, dlc.compile], ids=["eager", "compiled"])
def test_integers_to_negative_powers(wrap):
    i = dlc.tensor([1, 2, 3])
    for power in (lambda x: x**-1, lambda x: dlc.pow(x, -2), lambda x: (x + 1).pow_(-1), lambda x: x.pow(-1)):
        with pytest.raises(RuntimeError, match="negative integer powers"):
            wrap(power)(i)
    assert wrap(lambda x: x**-1.0)(i).tolist() == pytest.approx([1, 0.5, 1 / 3])
    assert wrap(lambda x: x ** dlc.tensor([-1, 1, 2]))(i).tolist() == [1, 2, 9] and i.tolist() == [1, 2, 3]
    assert wrap(lambda x: x.float() ** -1)(i).tolist() == pytest.approx([1, 0.5, 1 / 3])
