"""repr and str of tensors, as PyTorch writes them."""

import dlc
import pytest


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: dlc.tensor(1.5), "tensor(1.5000)"),
        (lambda: dlc.tensor(3), "tensor(3)"),
        (lambda: dlc.tensor([True, False]), "tensor([ True, False])"),
        (lambda: dlc.tensor([1.0, 2.0]), "tensor([1., 2.])"),
        (lambda: dlc.tensor([1.0, -2.5]), "tensor([ 1.0000, -2.5000])"),
        (lambda: dlc.tensor([[1, 20], [300, 4]]), "tensor([[  1,  20],\n        [300,   4]])"),
        (lambda: dlc.tensor([1e-8, 1.0]), "tensor([1.0000e-08, 1.0000e+00])"),
        (lambda: dlc.tensor([1e10]), "tensor([1.0000e+10])"),
        (lambda: dlc.tensor([float("nan"), float("inf"), -1.0]), "tensor([nan, inf, -1.])"),
        (lambda: dlc.tensor([1.0], dtype=dlc.float64), "tensor([1.], dtype=dlc.float64)"),
        (lambda: dlc.tensor([1], dtype=dlc.int8), "tensor([1], dtype=dlc.int8)"),
        (lambda: dlc.tensor([1.0], dtype=dlc.bfloat16), "tensor([1.], dtype=dlc.bfloat16)"),
        (lambda: dlc.zeros(0), "tensor([])"),
        (lambda: dlc.zeros(0, 2), "tensor([], size=(0, 2))"),
        (lambda: dlc.tensor([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
        (lambda: dlc.zeros(2, 2, 1), "tensor([[[0.],\n         [0.]],\n\n        [[0.],\n         [0.]]])"),
    ],
)
def test_text(make, text):
    assert repr(make()) == text and str(make()) == text


def test_gradient_function_is_shown():
    text = repr(dlc.tensor([1.0], requires_grad=True) * 2)
    assert text.startswith("tensor([2.], grad_fn=<Mul")


def test_long_tensors_are_cut():
    assert repr(dlc.arange(2000)) == "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"
    lines = repr(dlc.zeros(100, 100)).split("\n")
    assert len(lines) == 7 and "..." in lines[3]


def test_long_lines_are_wrapped():
    assert all(len(line) <= 82 for line in repr(dlc.arange(100)).split("\n"))
