"""Replays with sizes that vary: results have the layout that Python's would have, whatever the layout of the inputs."""

import dlc
import pytest


def layouts(n):
    """Tensors of shape (n, 4) in different layouts."""
    yield dlc.randn(n, 4)
    yield dlc.randn(4, n).t()
    yield dlc.randn(n, 8)[:, ::2]
    yield dlc.randn(2 * n, 4)[::2]
    yield dlc.randn(4, 2 * n).t()[::2]
    yield dlc.randn(9, n).t()[:, :4]
    yield dlc.randn(4).expand(n, 4)


@pytest.mark.parametrize("function", [dlc.relu, lambda x: x * 2 + x, lambda x: x.view_as(x), lambda x: x.t() + 1])
def test_strides_of_results(function):
    compiled = dlc.compile(function)
    before = dlc.compile_stats()["replays"]
    for _ in range(2):
        for n in (3, 5, 2, 7, 1, 4, 0):
            for x in layouts(n):
                got, want = compiled(x), function(x)
                assert got.shape == want.shape and got.stride() == want.stride()
                assert dlc.equal(got, want)
    assert dlc.compile_stats()["replays"] > before


def test_odd_strides_of_one_row():
    compiled = dlc.compile(lambda x: (x * 2, x.stride()))
    for x in (dlc.randn(1, 4), dlc.as_strided(dlc.randn(9), (1, 4), (5, 1)), dlc.randn(6, 4), dlc.randn(1, 4)):
        for _ in range(2):
            y, strides = compiled(x)
            assert strides == x.stride() and y.stride() == (x * 2).stride()


def flat(result):
    return result if isinstance(result, tuple) else (result,)


ALIASES = [
    lambda x, y: x.flip(0) + y.sum(),
    lambda x, y: (x.sum(), y.sum()),
    lambda x, y: (x + 1, y[1:]),
    lambda x, y: (y.view(-1), x.view(-1)),
    lambda x, y: (x.add_(1), y * 2),
]


@pytest.mark.parametrize("function", ALIASES)
def test_equal_views_in_one_call_other_memory_in_the_next(function):
    compiled = dlc.compile(function)

    def arguments(kind):
        x = dlc.arange(12.0).reshape(3, 4)
        return [(x, x[:]), (x, dlc.ones(3, 4)), (x, x), (x, x.view(3, 4)), (x, dlc.ones(3, 4))][kind]

    for kinds in (range(5), range(5), (1, 0, 3, 4, 2)):
        for kind in kinds:
            mine, theirs = arguments(kind), arguments(kind)
            got, want = compiled(*mine), function(*theirs)
            for a, b in zip(flat(got), flat(want)):
                assert dlc.equal(a, b)
            for a, b in zip(mine, theirs):
                assert dlc.equal(a, b)
