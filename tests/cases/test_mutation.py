"""Public failure cases, mutation, aliasing and views: the inputs, their bases and every result are compared."""

import dlc
import dlc.nn.functional as F
import numpy as np
import pytest
from dlc import tensor

from tests.cases.harness import array, assert_same, at_most, check, outcome


@pytest.mark.parametrize("distinct_first", [True, False])
def test_M01_distinct_then_overlapping_inputs(distinct_first):
    def f(p, q):
        p.add_(1)
        return p * q

    compiled = dlc.compile(f)

    def distinct():
        p, q = dlc.zeros(4), dlc.zeros(4)
        assert_same(compiled(p, q), dlc.zeros(4))
        assert_same((p, q), (dlc.ones(4), dlc.zeros(4)))

    def overlapping():
        b = dlc.zeros(6)
        assert_same(compiled(b[0:4], b[2:6]), tensor([1.0, 1.0, 0.0, 0.0]))
        assert_same(b, tensor([1.0, 1.0, 1.0, 1.0, 0.0, 0.0]))

    with at_most(2):
        for _ in range(3):
            for call in (distinct, overlapping) if distinct_first else (overlapping, distinct):
                call()


def test_M01_the_same_tensor_twice_and_other_overlaps():
    def f(p, q):
        p.mul_(2)
        q.add_(p)
        return p + q

    compiled = dlc.compile(f)
    with at_most(6):
        for _ in range(3):
            for first, second in [
                ((0, 4), (0, 4)),
                ((0, 4), (1, 5)),
                ((1, 5), (0, 4)),
                ((0, 4), (4, 8)),
                ((2, 6), (4, 8)),
            ]:
                bases = [dlc.arange(8.0), dlc.arange(8.0)]
                results = [outcome(g, (b[slice(*first)], b[slice(*second)])) for g, b in zip((f, compiled), bases)]
                if results[0][0] == "error":
                    assert type(results[1][1]) is type(results[0][1])
                else:
                    assert_same(results[1], results[0])
                assert_same(bases[1], bases[0])


def test_M03_augmented_assignment_with_repeated_indices():
    def f(x):
        x[[1, 1]] += 5
        return x

    check(f, lambda: (tensor([1.0, 2.0]),), lambda: (dlc.arange(9.0),), expect=[[1.0, 7.0]], compilations=4)

    def g(x, i):
        x[i] += x[i]
        return x * 1

    check(g, lambda: (dlc.arange(5.0), tensor([3, 1, 3])), expect=[[0.0, 2.0, 2.0, 6.0, 4.0]])


def test_M04_write_through_an_expanded_tensor():
    def f(s):
        e = s.expand(3)
        e[0] = 9.0
        return e

    compiled = dlc.compile(f)
    for _ in range(3):
        s = tensor(1.0)
        try:
            result = compiled(s)
        except RuntimeError as error:
            assert "expand" in str(error) or "overlap" in str(error) or "memory" in str(error)
        else:
            assert_same(result.clone(), tensor([9.0, 9.0, 9.0]))
            assert float(s) == 9.0


def test_M04_whole_tensor_write_to_an_expanded_tensor_is_an_error():
    def f(s):
        s.expand(3).add_(1)
        return s

    check(f, lambda: (tensor([1.0]),), error=RuntimeError)


def test_M06_two_in_place_ops_on_one_input():
    def f(a):
        a.neg_()
        a.sub_(2)
        return a * a

    check(f, lambda: (tensor([1.0, -3.0]),), lambda: (dlc.arange(33.0),), expect=[[9.0, 1.0]])
    a = tensor([1.0, -3.0])
    dlc.compile(f)(a)
    assert_same(a, tensor([-3.0, 1.0]))


def test_M07_value_read_before_a_later_mutation():
    def f(x):
        y = x.view(-1) * 2
        x[0] = 100
        return y

    check(f, lambda: (tensor([[1, 2], [3, 4]]),), lambda: (dlc.ones(5, 3),), expect=[[2, 4, 6, 8]], compilations=3)
    x = tensor([[1, 2], [3, 4]])
    dlc.compile(f)(x)
    assert x.tolist() == [[100, 100], [3, 4]]


@pytest.mark.parametrize("times", [2, 3, 4])
def test_M06_in_place_through_the_transpose_of_a_square(times):
    """The memory of one write is reused for the next, in the other order of dims."""

    def f(x):
        for _ in range(times):
            x.t().add_(x[0, 1])
        return x

    check(
        f,
        lambda: (dlc.arange(16.0).view(4, 4),),
        lambda: (dlc.arange(9.0).view(3, 3),),
        lambda: (dlc.arange(6.0).view(2, 3),),
        compilations=4,
    )


def test_M07_views_follow_their_base():
    def f(x):
        row, column, turned = x[1], x[:, 0], x.t()
        before = row + 0
        turned.add_(10)
        column.mul_(2)
        return before, row + 0, column + 0, turned.sum(0), x

    check(f, lambda: (dlc.arange(6.0).reshape(2, 3),), lambda: (dlc.arange(20.0).reshape(5, 4),))


def test_M08_earlier_outputs_survive_later_calls():
    def f(x):
        return x + 1

    compiled = dlc.compile(f)
    a, b = compiled(tensor([1.0])), compiled(tensor([2.0]))
    c = compiled(b)
    assert [t.item() for t in (a, b, c)] == [2.0, 3.0, 4.0]

    def g(x):
        return ((x * 2 + 1).exp().log() - 1) / 2 + 1

    compiled = dlc.compile(g)
    kept = [dlc.zeros(1000)]
    for _ in range(10):
        kept.append(compiled(kept[-1]))
    for i, t in enumerate(kept):
        np.testing.assert_allclose(array(t), i, atol=1e-4)
    assert len({t.data_ptr() for t in kept}) == len(kept)


def test_M10_strides_are_part_of_the_result():
    def channels_last():
        return dlc.arange(18.0).reshape(1, 3, 3, 2).permute(0, 3, 1, 2)

    def f(x):
        return x * 2, F.pad(x, (1, 1, 1, 1), mode="reflect")

    x = channels_last()
    assert x.stride()[1:] == (1, 6, 2)
    check(f, lambda: (channels_last(),))
    doubled, padded = dlc.compile(f)(x)
    assert doubled.stride()[1:] == (1, 6, 2)
    assert padded.stride()[1:] == (1, 10, 2)
    check(lambda y: dlc.ones_like(y), lambda: (dlc.ones(4, 3).t(),))
    assert dlc.compile(lambda y: dlc.ones_like(y))(dlc.randn(4, 3).t()).stride() == (1, 3)


@pytest.mark.parametrize(
    "layout",
    [
        lambda x: x,
        lambda x: x.t(),
        lambda x: x[::2],
        lambda x: x[:, 1:3],
        lambda x: x[:1].expand(4, 4),
        lambda x: x.unsqueeze(0).permute(2, 0, 1),
        lambda x: x[:0],
    ],
)
def test_M10_layouts_through_chains(layout):
    check(
        lambda x: (x + 1, (x * 2).relu() - x, x.exp().t() if x.dim() == 2 else x),
        lambda: (layout(dlc.arange(16.0).reshape(4, 4)),),
    )
