"""Promises to users that no other file tests as such: docs/promises.md says which test stands for which promise."""

import contextlib
import io
import logging
import re
import sys
import warnings

import dlc
import dlc.nn.functional as F
import pytest
from dlc import nn

from tests.cases.harness import assert_same, at_most, compare_call

HERE = __file__.rpartition("/")[2]


# Breaks are told.


def halves(x):
    y = x * 2 + 1
    if y.sum() > 0:
        y = y - 3
    return y * y + 1


def test_a_break_is_told_once_and_explained(capfd):
    compiled = dlc.compile(halves)
    for _ in range(3):
        compiled(dlc.ones(4))
    lines = [line for line in capfd.readouterr().err.splitlines() if line]
    assert len(lines) <= 1
    explanation = dlc.explain(halves)(dlc.ones(4))
    for e in explanation.break_reasons:
        assert re.search(rf"{HERE}:\d+", e["loc"]) and e["text"] and e["action"]
    with pytest.raises(RuntimeError, match=HERE):
        dlc.compile(lambda x: halves(x.exp())[0].tolist() and halves(x), fullgraph=True)(dlc.ones(4))


# Errors: the plain function's class and text, short, the user's line first, what to do last.

X = dlc.ones(3, 4)
LEAF = dlc.ones(2, requires_grad=True)
BAD = {
    "add": lambda: X + dlc.ones(3, 5),
    "mm": lambda: X @ X,
    "view": lambda: X.view(5, 2),
    "reshape": lambda: X.reshape(7),
    "cat": lambda: dlc.cat([X, dlc.ones(2, 5)]),
    "stack": lambda: dlc.stack([X, X[0]]),
    "index": lambda: X[5],
    "dim": lambda: X.sum(4),
    "permute": lambda: X.permute(0, 0),
    "expand": lambda: X.expand(2, 4),
    "unsqueeze": lambda: X.unsqueeze(5),
    "linear": lambda: nn.Linear(3, 2)(X),
    "conv": lambda: nn.Conv2d(1, 1, 3)(X),
    "cross entropy": lambda: F.cross_entropy(X, dlc.tensor([1, 2])),
    "item": lambda: X.item(),
    "bool": lambda: bool(X),
    "int": lambda: int(X),
    "leaf in place": lambda: LEAF.add_(1),
    "backward of a constant": lambda: X.sum().backward(),
    "backward of a vector": lambda: (LEAF * 2).backward(),
    "backward twice": lambda: [y.backward() for y in [(LEAF * 2).exp().sum()] * 2],
    "in-place dtype": lambda: dlc.ones(2, dtype=dlc.int64).add_(1.5),
    "copy": lambda: X.copy_(dlc.ones(5)),
    "softmax": lambda: X.softmax(3),
    "chunk": lambda: X.chunk(0),
    "argument type": lambda: X.sum(dim="a"),
    "unknown keyword": lambda: dlc.relu(X, foo=1),
    "narrow": lambda: X.narrow(0, 2, 5),
    "max of nothing": lambda: dlc.empty(0).max(),
    "item assignment": lambda: X.__setitem__(0, dlc.ones(7)),
    "layer norm": lambda: F.layer_norm(X, (3,)),
    "where": lambda: dlc.where(X > 0, X, dlc.ones(7)),
}
BAD_DATA = {
    "index": lambda: X[dlc.tensor([7])],
    "embedding": lambda: F.embedding(dlc.tensor([9]), dlc.ones(3, 2)),
    "gather": lambda: X.gather(0, dlc.tensor([[9]])),
    "division": lambda: dlc.tensor([1]) // dlc.tensor([0]),
}


def raised(f):
    with pytest.raises(Exception) as caught:
        f()
    return caught.value


@pytest.mark.parametrize("what", BAD)
def test_errors_are_those_of_the_plain_function(what):
    want = raised(BAD[what])
    compiled = dlc.compile(BAD[what])
    for _ in range(3):
        got = raised(compiled)
        assert type(got) is type(want)
        assert str(got) == str(want)
    lines = str(got).splitlines()
    assert 2 <= len(lines) <= 15
    assert f"({HERE}:{BAD[what].__code__.co_firstlineno})" in lines[0]
    assert lines[-1] and lines[-1] != lines[0]


def product(x, y):
    return x @ y


def test_errors_after_sizes_varied_name_the_sizes():
    compiled = dlc.compile(product)
    for n in (2, 2, 2, 3, 3, 3):
        compiled(dlc.ones(n, n), dlc.ones(n, 4))
    bad = dlc.ones(5, 5), dlc.ones(6, 4)
    assert str(raised(lambda: compiled(*bad))) == str(raised(lambda: product(*bad)))


@pytest.mark.parametrize("what", BAD_DATA)
def test_errors_in_data_are_those_of_the_plain_function(what):
    want = raised(BAD_DATA[what])
    compiled = dlc.compile(BAD_DATA[what])
    place = re.compile(r" \(\S+:\d+\)")
    for _ in range(3):
        got = raised(compiled)
        assert type(got) is type(want)
        assert place.sub("", str(got)) == place.sub("", str(want))
        assert HERE in str(got).splitlines()[0]


# Control flow on data, with nothing found and no iteration among it.


def doubled_until(x, limit):
    n = 0
    while x.sum() < limit and n < 20:
        x = x * 2 + 1
        n += 1
    return x, n


def listed(x):
    return [v * 2 for v in x.tolist()], x.nonzero(), x[x > 0] * 2 + 1, x[x > 0].numel()


def repeated(x):
    y = x
    for i in range(int(x.sum()) % 4):
        y = y * 2 + i
    return y


def walked(x):
    total = dlc.zeros(())
    for row in x:
        if row.sum() > 0 and row[0] < 5:
            total = total + row.sum() * 2
        elif not row.any():
            continue
        else:
            break
    else:
        total = total + 100
    return total


CONTROL = [
    (doubled_until, [(dlc.ones(2), 10.0), (dlc.ones(2), 0.0), (dlc.ones(2), 100.0)]),
    (listed, [(dlc.tensor([1.0, -1.0, 3.0]),), (dlc.tensor([-1.0, 0.0]),), (dlc.zeros(0),)]),
    (repeated, [(dlc.tensor([1.0, 2.0]),), (dlc.tensor([4.0, 0.0]),), (dlc.tensor([1.0, 1.0]),), (dlc.tensor([1.0, 0.0]),)]),
    (walked, [(dlc.ones(3, 2),), (dlc.zeros(3, 2),), (-dlc.ones(2, 2),), (dlc.zeros(0, 2),), (dlc.tensor([[1.0, 2.0], [0.0, 0.0], [7.0, 1.0]]),)]),
]  # fmt: skip


@pytest.mark.parametrize("f, inputs", CONTROL, ids=lambda v: getattr(v, "__name__", ""))
def test_control_flow_on_data_is_cached(f, inputs):
    for order in (inputs, inputs[::-1]):
        compiled = dlc.compile(f)
        for _ in range(3):
            for args in order:
                compare_call(f, compiled, lambda args=args: args)
        with at_most(0):
            for args in order * 2:
                compare_call(f, compiled, lambda args=args: args)


# Results keep their values.


@pytest.mark.parametrize("grad", [False, True])
def test_ten_results_chained_as_inputs_stay_as_they_are(grad):
    def f(x):
        y = x * 2 + 1
        return y, y[1:], (y - 3).abs()

    compiled = dlc.compile(f)
    x = dlc.tensor([0.5, -1.0, 2.0], requires_grad=grad)
    kept, copies = [], []
    for _ in range(10):
        results = compiled(x)
        kept.append(results)
        copies.append([r.detach().clone() for r in results])
        x = results[2].clamp(max=8)
    for results, values in zip(kept, copies):
        for r, v in zip(results, values):
            assert_same(r.detach(), v)
        assert results[1]._storage_ptr() == results[0]._storage_ptr()
    assert len({results[0]._storage_ptr() for results in kept}) == 10


# What is printed, logged and warned comes in order and costs nothing.


def talkative(x, k):
    logger = logging.getLogger("dlc.promises")
    print("start", k)
    y = x * 2 + k
    logger.warning("size %d", x.shape[0])
    print(f"k={k:.1f}", y.shape, sep=" | ", end=";\n")
    warnings.warn("careful", UserWarning, stacklevel=1)
    z = (y - 1).relu()
    print(z)
    sys.stdout.write("done\n")
    return z * 2


def heard(f, *args):
    """Everything that f says, in one text in the order it came."""
    out = io.StringIO()
    logger = logging.getLogger("dlc.promises")
    handler = logging.StreamHandler(out)
    logger.addHandler(handler)
    logger.propagate = False
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda message, *rest: out.write(f"warning {message}\n")
            f(*args)
    finally:
        logger.removeHandler(handler)
    return [line for line in out.getvalue().splitlines() if not line.startswith("[dlc")]


def test_print_logging_and_warnings_come_as_in_eager():
    compiled = dlc.compile(talkative)
    for k in (1.0, 1.0, 1.0, 2.5, 1.0):
        assert heard(compiled, dlc.ones(3), k) == heard(talkative, dlc.ones(3), k)
    with at_most(0):
        for k in (1.0, 2.5, 4.0):
            assert heard(compiled, dlc.ones(3), k) == heard(talkative, dlc.ones(3), k)


def test_talking_adds_no_compilation():
    def silent(x, k):
        return ((x * 2 + k) - 1).relu() * 2

    def told(x, k):
        print("size", x.shape[0], k)
        return ((x * 2 + k) - 1).relu() * 2

    counts = []
    for f in (silent, told):
        dlc.reset_compile_stats()
        compiled = dlc.compile(f)
        for k in (1.0, 2.0, 3.0):
            heard(compiled, dlc.ones(3), k)
        counts.append(dlc.compile_stats()["compilations"])
    assert counts[0] == counts[1]


def stopping(x):
    y = x * 2 + 1
    breakpoint()
    return y - 1


def test_breakpoint_stops_in_the_users_frame(monkeypatch):
    seen = []

    def hook():
        frame = sys._getframe(1)
        seen.append(
            (frame.f_code.co_name, frame.f_lineno - stopping.__code__.co_firstlineno, frame.f_locals["y"].tolist())
        )

    monkeypatch.setattr(sys, "breakpointhook", hook)
    compiled = dlc.compile(stopping)
    for _ in range(3):
        assert compiled(dlc.ones(2)).tolist() == [2.0, 2.0]
    assert [(name, values) for name, _, values in seen] == [("stopping", [3.0, 3.0])] * 3
    assert {line for _, line, _ in seen} <= {2, 3}
