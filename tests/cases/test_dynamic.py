"""Public failure cases, dynamic shapes and control flow: branches and asserts on shapes and data, numbers that vary."""

import dlc
import pytest
from dlc import tensor

from tests.cases.harness import assert_same, at_most, check, compare_call


def test_D01_branch_on_a_whole_shape():
    def f(x):
        return -x if x.shape != (2, 3) else x * 10

    for order in ([(4, 3), (2, 3)], [(2, 3), (4, 3)]):
        compiled = dlc.compile(f)
        with at_most(4):
            for _ in range(3):
                for shape in order:
                    _, want = compare_call(f, compiled, lambda shape=shape: (dlc.ones(*shape),))
                    assert float(want[0, 0]) == (10 if shape == (2, 3) else -1)


@pytest.mark.parametrize("order", [(4, 1), (1, 4)])
def test_D02_assert_on_a_shape(order):
    def f(x):
        assert x.shape[0] >= 3, "need 3"
        return x + 1

    compiled = dlc.compile(f)
    for _ in range(3):
        for n in order:
            if n < 3:
                with pytest.raises(AssertionError, match="need 3"):
                    compiled(dlc.zeros(n))
            else:
                assert_same(compiled(dlc.zeros(n)), dlc.ones(n))


@pytest.mark.parametrize("order", [(4.0, -4.0), (-4.0, 4.0)])
def test_D03_assert_on_data(order):
    def f(x):
        assert (x >= 0).all(), "neg"
        return x.sqrt()

    compiled = dlc.compile(f)
    for _ in range(3):
        for v in order:
            if v < 0:
                with pytest.raises(AssertionError, match="neg"):
                    compiled(tensor([v]))
            else:
                assert_same(compiled(tensor([v])), tensor([2.0]))


def test_D04_python_number_read_from_a_tensor():
    def f(b):
        n = int(b[0]) + int(b[1])
        return dlc.ones(4) * n

    compiled = dlc.compile(f)
    with at_most(2):
        for k in range(50):
            assert_same(compiled(tensor([k, 2 * k])), dlc.ones(4) * (3 * k))


def test_D04_number_scales_a_longer_chain():
    def f(b):
        n = int(b[0])
        x = dlc.ones(8) * n + n
        return (x * 2 - n).sum()

    compiled = dlc.compile(f)
    with at_most(2):
        for k in range(50):
            assert float(compiled(tensor([k]))) == 8 * 3 * k


@pytest.mark.parametrize("kind", [float, int])
def test_D06_python_number_argument(kind):
    def f(x, s=1.0):
        return (x * s + s).exp().log() - s

    compiled = dlc.compile(f)
    with at_most(2):
        for i in range(20):
            s = kind(i) if kind is int else 0.25 + i / 4
            assert_same(compiled(dlc.ones(3), s), f(dlc.ones(3), s))
            assert_same(compiled(dlc.ones(3)), f(dlc.ones(3)))

    def scale(x, s=1.0):
        return x * s

    compiled = dlc.compile(scale)
    with at_most(2):
        assert [compiled(dlc.ones(1), 0.5 + i).item() for i in range(20)] == [0.5 + i for i in range(20)]


@pytest.mark.parametrize("order", [(1, 2, 3, 64, 7, 0), (64, 7, 0, 1, 2, 3), (0, 1, 64, 2)])
def test_D07_batch_of_size_one_and_zero(order):
    def f(x):
        return (x - x.mean(0)).sum(1) if x.shape[0] else x.sum(1)

    compiled = dlc.compile(f)
    with at_most(3):
        for _ in range(3):
            for b in order:
                compare_call(f, compiled, lambda b=b: (dlc.arange(b * 4.0).reshape(b, 4),), rtol=1e-6)


@pytest.mark.parametrize("values", [(1.0, -1.0, 2.0, -3.0, 0.0), (-1.0, 1.0, -3.0, 2.0, 0.0)])
def test_D09_branch_on_data_alternates(values):
    def f(x):
        return x * 2 if x.sum() > 0 else x - 1

    want = [v * 2 if v > 0 else v - 1 for v in values]
    compiled = dlc.compile(f)
    assert [compiled(tensor([v])).item() for v in values] == want
    with at_most(0):
        for _ in range(2):
            assert [compiled(tensor([v])).item() for v in values] == want


def test_D09_longer_branches_compile_once_each():
    def f(x):
        y = (x * 3 - 1).exp()
        if y.sum() > 1:
            return (y * 2 + x).tanh()
        return (y - 1 / (x * x + 1)).abs()

    compiled = dlc.compile(f)
    inputs = [dlc.full((5,), v) for v in (1.0, -4.0, 2.0, -5.0)]
    with at_most(3):
        for x in inputs:
            assert_same(compiled(x), f(x))
    with at_most(0):
        for x in inputs * 2:
            assert_same(compiled(x), f(x))


def test_D10_data_dependent_output_size():
    def f(x):
        return x[x > 0], x[x > 0].sum() + x[x > 0].numel()

    check(
        f,
        lambda: (tensor([1.0, -1.0, 3.0]),),
        lambda: (tensor([-1.0]),),
        lambda: (tensor([2.0] * 21),),
        expect=[[1.0, 3.0], 6.0],
        compilations=6,
        fallbacks=100,
    )
    check(f, lambda: (tensor([-1.0]),), expect=[[], 0.0], compilations=6, fallbacks=100)
