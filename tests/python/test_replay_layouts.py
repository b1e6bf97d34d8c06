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
