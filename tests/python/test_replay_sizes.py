"""Ways to use sizes, over sizes that vary down to 1: results, shapes and strides are the plain function's."""

import dlc
import dlc.nn.functional as F
import pytest

FUNCTIONS = {
    "size": lambda x: x * x.size(0),
    "numel": lambda x: x * x.numel(),
    "len": lambda x: x * len(x),
    "stride": lambda x: x * x.stride(0),
    "contiguous transpose": lambda x: x * (2 if x.t().is_contiguous() else 3),
    "view": lambda x: x.view(-1, 2) + x.numel(),
    "reshape": lambda x: x.reshape(x.shape[0] * x.shape[1]),
    "loop": lambda x: sum(x[i] for i in range(len(x))),
    "iteration": lambda x: sum(row for row in x),
    "unbind": lambda x: x.unbind(0)[-1],
    "last": lambda x: x[-1],
    "slice": lambda x: x[: len(x) // 2].sum(),
    "arange": lambda x: dlc.arange(len(x)) + x[:, 0],
    "zeros": lambda x: dlc.zeros(x.shape).add_(1) + x,
    "mean": lambda x: x.mean() + x.sum(0, keepdim=True) / len(x),
    "layer_norm of all": lambda x: F.layer_norm(x, x.shape),
    "chunk": lambda x: x.chunk(2, 0)[-1],
    "split": lambda x: x.split(2)[-1],
    "pad": lambda x: F.pad(x, (1, len(x))),
    "stack": lambda x: dlc.stack([x[0]] * len(x)),
    "expand": lambda x: x[:1].expand(x.shape[0], -1) * 2,
    "repeat": lambda x: x.repeat(2, 1),
    "mask": lambda x: x[x > 1].sum(),
    "comparison": lambda x: x * 2 if x.size(0) > 5 else x * 3,
    "text": lambda x: (x, f"{x.shape[0]}"),
    "shape returned": lambda x: (x + 1, x.shape),
    "nonzero": lambda x: dlc.nonzero(x > 1),
    "in place": lambda x: x.clone().add_(1)[1:].mul_(2),
    "one_hot": lambda x: F.one_hot(dlc.arange(len(x))),
    "squeeze": lambda x: x.squeeze(0),
    "einsum": lambda x: dlc.einsum("ij,kj->ik", x, x),
    "value": lambda x: x * x.sum().item(),
    "value as index": lambda x: x[int(x[0, 0]) :],
    "tensor as index": lambda x: x[dlc.tensor(0)] + 1,
    "transpose": lambda x: x.T.contiguous().view(-1),
}
SIZES = [(3, 4), (3, 4), (5, 4), (6, 4), (8, 4), (8, 6), (1, 4), (2, 2), (6, 4), (4, 4), (12, 2), (2, 4), (5, 1)]


def outcome(f, x):
    try:
        return f(x)
    except Exception as error:
        return type(error), str(error).partition(" (")[0]


def same(a, b):
    if isinstance(a, dlc.Tensor):
        return (
            isinstance(b, dlc.Tensor)
            and a.shape == b.shape
            and a.stride() == b.stride()
            and dlc.allclose(a.to(dlc.float64), b.to(dlc.float64), rtol=1e-5, atol=1e-5)
        )
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("name", FUNCTIONS)
def test_over_sizes(name):
    f = FUNCTIONS[name]
    compiled = dlc.compile(f)
    for rows, columns in SIZES:
        x = dlc.arange(float(rows * columns)).reshape(rows, columns) / 7
        y = x.clone()
        assert same(outcome(f, x), outcome(compiled, y)), (rows, columns)
        assert same(x, y)


def test_one_symbolic_program_serves_all_lengths():
    compiled = dlc.compile(lambda x: (x * 2 + 1).softmax(0) * len(x))
    before = dlc.compile_stats()["captures"]
    for n in (2, 35, 7, 9, 100, 64, 3):
        compiled(dlc.arange(float(n)))
    assert dlc.compile_stats()["captures"] - before == 2
