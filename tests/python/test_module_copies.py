"""Modules compiled in place are copied and pickled like others."""

import copy
import pickle

import dlc
from dlc import nn


def compiled():
    m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    m.compile()
    return m


def test_deepcopy_and_pickle_of_a_module_compiled_in_place():
    m, x = compiled(), dlc.ones(3, 4)
    expected = m(x)
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert dlc.equal(other(x), expected)
        assert other.__dict__["forward"] is not m.__dict__["forward"]
        with dlc.no_grad():
            other[0].weight.zero_()
        assert not dlc.equal(other(x), expected) or dlc.equal(m(x), expected)
        assert dlc.equal(m(x), expected)


def test_names_of_compiled_modules():
    class Net(nn.Module):
        def forward(self, x):
            return (x * 2 + 1).exp()

    m = dlc.compile(Net())
    m(dlc.ones(3))
    assert "Net" in dlc.compiler._callable_of(m).explain().splitlines()[0]


def test_explain_counts_what_repeats_and_tells_of_small_pieces():
    f = dlc.compile(lambda x: float((x * 2 + 1).sum()))
    with dlc.config.patch(replay=False):
        for _ in range(5):
            f(dlc.ones(3))
    breaks = [line for line in f.explain().splitlines() if line.startswith("break")]
    assert len(breaks) == 1 and "(5 times)" in breaks[0]
    g = dlc.compile(lambda x: x + 1)
    g(dlc.ones(3))
    assert "eager kernels" in g.explain()


def test_gradients_of_different_shapes_are_copied_each():
    model = nn.Sequential(*(nn.Linear(i + 1, i + 2) for i in range(8)))
    model(dlc.ones(1, 1)).sum().backward()
    for _ in range(5):
        other = copy.deepcopy(model)
        for p, q in zip(model.parameters(), other.parameters(), strict=True):
            assert p.grad is not q.grad and dlc.equal(p.grad, q.grad)
