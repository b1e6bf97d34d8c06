"""What the most common mistakes say, eagerly and compiled: word for word, the user's file:line in the first line, what
to do in the last."""

import io
import re
import subprocess
import sys

import dlc
import dlc.nn.functional as F
import pytest
from dlc import nn

x, y, i = dlc.full((3, 4), 0.5), dlc.full((5, 6), 0.5), dlc.tensor([1, 2])


def grad_twice():
    z = (dlc.ones(2, requires_grad=True) ** 2).sum()
    z.backward()
    z.backward()


def changed_before_backward():
    e = dlc.ones(2, requires_grad=True).exp()
    e.add_(1)
    e.sum().backward()


class NoForward(nn.Module):
    pass


class NoInit(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(1, 1)


# What is wrong, with @ for the place, and what to do.
CASES = [
    (
        lambda: x @ y,
        RuntimeError,
        "matmul: `self` of sizes [3, 4] and `other` of sizes [5, 6] can't be multiplied: 4 columns against 5 rows@\nmake them equal",
    ),
    (
        lambda: x + y,
        RuntimeError,
        "add: sizes [3, 4] and [5, 6] do not broadcast: dimension -2 is 3 in one and 5 in another@\nmake the sizes equal, or one of them 1",
    ),
    (
        lambda: x.view(5, 5),
        RuntimeError,
        "view: sizes [5, 5] do not fit `self` of sizes [3, 4] with 12 elements@\nmake the product of the sizes 12",
    ),
    (
        lambda: x.reshape(7, -1),
        RuntimeError,
        "reshape: sizes [7, -1] do not fit `self` of sizes [3, 4] with 12 elements@\nmake the product of the sizes 12",
    ),
    (
        lambda: dlc.cat([x, y]),
        RuntimeError,
        "cat: `tensors` of sizes [3, 4] and [5, 6] can't be joined along dimension 0@\nall other sizes must agree",
    ),
    (
        lambda: dlc.stack([x, y]),
        RuntimeError,
        "stack: `tensors` of sizes [3, 4] and [5, 6] differ@\nmake all sizes equal",
    ),
    (lambda: x[5], IndexError, "select: index 5 is out of range for dimension 0 of size 3@\nuse an index from -3 to 2"),
    (
        lambda: (x * 2 + 1)[dlc.tensor([9])],
        IndexError,
        "index: index 9 is out of bounds for dimension 0 with size 3@\nGive indices from -3 to 2.",
    ),
    (
        lambda: (x * 2 + 1).gather(1, dlc.tensor([[7]])),
        RuntimeError,
        "gather: index 7 in `index` is out of bounds for dimension 1 of size 4@\nGive indices from 0 to 3.",
    ),
    (
        lambda: F.embedding(dlc.tensor([10]), x),
        IndexError,
        "embedding: index 10 in `input` is out of bounds for dimension 0 of size 3@\nGive indices from 0 to 2.",
    ),
    (
        lambda: F.cross_entropy(x, dlc.tensor([0, 1, 9])),
        IndexError,
        "nll_loss: Target 9 is out of bounds for 4 classes@\nGive targets from 0 to 3, or ignore_index.",
    ),
    (
        lambda: i // dlc.tensor([0, 1]),
        RuntimeError,
        "ZeroDivisionError: floor_divide: integer division by zero@\nMake sure that no element of the divisor is 0.",
    ),
    (
        lambda: i**-1,
        RuntimeError,
        "pow: Integers to negative integer powers are not allowed: int64[2] to the power -1@\nconvert the tensor to a floating dtype, or give a float as the exponent",
    ),
    (lambda: x.sum(4), IndexError, "sum: `dim` is 4, out of range for 2 dimensions@\nuse a dimension from -2 to 1"),
    (
        lambda: x.expand(2, 4),
        RuntimeError,
        "expand: dimension 0 of `self` of sizes [3, 4] has size 3 and can't become 2@\nonly dimensions of size 1 expand",
    ),
    (
        lambda: x.split([1, 1], 0),
        RuntimeError,
        "split: sizes [1, 1] add up to 2 but dimension 0 of `self` has size 3@\nmake the sizes add up to it",
    ),
    (
        lambda: x.topk(9),
        RuntimeError,
        "topk: `k` is 9 but dimension 1 of `self` has size 4@\nuse a k from 0 to the size",
    ),
    (
        lambda: nn.Linear(3, 2)(x),
        RuntimeError,
        "linear: `input` of sizes [3, 4] does not fit `weight` of sizes [2, 3]@\n`weight` is (out, in), and `in` the last size of `input`",
    ),
    (
        lambda: nn.Conv2d(3, 4, 3)(dlc.ones(1, 2, 8, 8)),
        RuntimeError,
        "conv2d: `input` of sizes [1, 2, 8, 8] does not fit `weight` of sizes [4, 3, 3, 3] with 1 groups: 2 channels, expected 3@\n`weight` is (out, C / groups, kh, kw) and out a multiple of groups",
    ),
    (
        lambda: nn.LayerNorm(5)(x),
        RuntimeError,
        "layer_norm: `normalized_shape` [5] are not the last sizes of `input`, [3, 4]@\nmake them agree",
    ),
    (
        lambda: nn.BatchNorm2d(3)(x),
        ValueError,
        "expected 4D input (got 2D input)@\nreshape the input of sizes [3, 4], or use the layer for its number of dimensions",
    ),
    (
        lambda: F.binary_cross_entropy(x, y),
        ValueError,
        "binary_cross_entropy: `target` of sizes [5, 6] and `input` of sizes [3, 4] differ@\nmake them equal",
    ),
    (
        lambda: F.dropout(x, 2.0),
        ValueError,
        "dropout probability has to be between 0 and 1, but got 2.0@\ngive the share of elements to drop",
    ),
    (
        lambda: x.backward(),
        RuntimeError,
        "backward: a root float32[3, 4] does not require grad and has no grad_fn@\ncompute it from a tensor that requires grad",
    ),
    (
        grad_twice,
        RuntimeError,
        "backward: the graph of SumBackward0 was already walked and its saved tensors freed@\npass retain_graph=True to the first backward()",
    ),
    (
        changed_before_backward,
        RuntimeError,
        "backward: a tensor float32[2] needed for the gradient of exp was changed by an in-place op: it is at version 1, expected 0@\nuse the out-of-place form, or clone() the tensor before changing it",
    ),
    (
        lambda: dlc.ones(2, requires_grad=True).add_(1),
        RuntimeError,
        "add_: `self` is a leaf that requires grad and can't be changed in place@\nuse the out-of-place form, or wrap the call in no_grad()",
    ),
    (
        lambda: dlc.ones(2, requires_grad=True).numpy(),
        RuntimeError,
        "numpy: the tensor requires grad, and NumPy cannot track it@\nuse t.detach().numpy()",
    ),
    (
        lambda: x.item(),
        RuntimeError,
        "item: a tensor of sizes [3, 4] has 12 elements, not 1@\nindex one element first, or use tolist()",
    ),
    (
        lambda: bool(x),
        RuntimeError,
        "bool: the value of a tensor of sizes [3, 4] is ambiguous or not a number: it has 12 elements@\nuse any(), all() or index one element",
    ),
    (
        lambda: i.add_(0.5),
        RuntimeError,
        "add_: the result is float32 and can't be stored in `self`, which is int64@\nuse the out-of-place form, or convert `self` first",
    ),
    (
        lambda: i.mean(),
        NotImplementedError,
        "mean: `self` is int64[2], but the result needs a float dtype@\npass dtype=, or convert with .float() first",
    ),
    (
        lambda: i.requires_grad_(),
        RuntimeError,
        "requires_grad_: only floating tensors can require gradients, this one is int64@\nconvert it with float() first",
    ),
    (
        lambda: x.masked_fill(i, 0),
        RuntimeError,
        "masked_fill: `mask` is int64[2], not bool@\ncompare it with 0, or convert it with .bool()",
    ),
    (
        lambda: dlc.tensor([[1], [2, 3]]),
        ValueError,
        "tensor: expected a sequence of length 1 at dim 1, not 2@\nmake the lists of each level equally long",
    ),
    (
        lambda: dlc.tensor("abc"),
        TypeError,
        "tensor: cannot make a tensor of str@\ngive numbers, nested lists or arrays",
    ),
    (
        lambda: dlc.matmul(x, 3),
        TypeError,
        "matmul(): argument 'other' must be a Tensor, not int@\ncall:\n  matmul(Tensor self, Tensor other) -> Tensor",
    ),
    (
        lambda: dlc.matmul(x),
        TypeError,
        "matmul(): missing required argument 'other'@\ncall:\n  matmul(Tensor self, Tensor other) -> Tensor",
    ),
    (
        lambda: x.to("cuda"),
        RuntimeError,
        "to: device 'cuda' is not available: this build of dlc runs on the CPU only@\nuse device='cpu'",
    ),
    (
        lambda: dlc.empty(1 << 45),
        RuntimeError,
        "cannot allocate 140737488355328 bytes of CPU memory@\nuse smaller tensors, or free some first",
    ),
    (lambda: dlc.manual_seed("a"), TypeError, "manual_seed: `seed` must be an int, not str@\ngive a whole number"),
    (
        lambda: dlc.optim.SGD([], lr=0.1),
        ValueError,
        "optimizer got an empty parameter list@\ngive model.parameters(), read once",
    ),
    (
        lambda: dlc.optim.Adam([x], lr=-1),
        ValueError,
        "Invalid learning rate value: -1@\ngive a learning rate in the range that the optimizer takes",
    ),
    (
        lambda: nn.Linear(2, 2).load_state_dict({"weight": x}),
        RuntimeError,
        'Error(s) in loading state_dict for Linear:@\n\tMissing key(s) in state_dict: "bias". \n\tsize mismatch for weight: copying a param with shape dlc.Size([3, 4]) from checkpoint, the shape in current model is dlc.Size([2, 2]).\nload what the same model saved, or pass strict=False to leave keys out',
    ),
    (
        lambda: NoForward()(x),
        NotImplementedError,
        'Module [NoForward] is missing the required "forward" function@\ndefine forward(self, ...) in NoForward',
    ),
    (
        NoInit,
        AttributeError,
        "cannot assign module before Module.__init__() call@\ncall super().__init__() first in __init__",
    ),
]


def lines_of(function):
    code = getattr(function, "__code__", None) or NoInit.__init__.__code__
    return {line for _, _, line in code.co_lines() if line}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: re.split(r"[@\n]", case[2])[0][:40])
def test_message(case, compiled):
    function, cls, want = case
    run = dlc.compile(function if function is not NoInit else lambda: NoInit(), options={"quiet": True})
    run = run if compiled else function
    with pytest.raises(cls) as raised:
        run()
    text = str(raised.value)
    place = re.search(r" \(test_messages\.py:(\d+)\)", text)
    assert place and text.replace(place[0], "@", 1) == want
    assert place.end() == len(text.split("\n")[0]) and int(place[1]) in lines_of(function)
    assert len(text.split("\n")) <= 15 and len(text.split("\n")) >= 2


@pytest.mark.parametrize("count", [3, 40])
def test_long_lists_are_cut(count):
    model = nn.Sequential(*(nn.Linear(1, 1) for _ in range(count)))
    wrong = {name: dlc.zeros(7) for name in model.state_dict()}
    with pytest.raises(RuntimeError) as raised:
        model.load_state_dict(wrong)
    lines = str(raised.value).split("\n")
    assert len(lines) == min(2 * count, 11) + 2 <= 15 and lines[-1].startswith("load what")


def test_files_that_are_none():
    with pytest.raises(RuntimeError) as raised:
        dlc.load(io.BytesIO(b"junk"))
    assert str(raised.value).split("\n")[-1] == "write it again with dlc.save"


def test_an_error_of_a_recorded_op_names_its_own_line():
    def f(t, index):
        a = t * 2 + 1
        b = a[index]  # here
        c = b + 1
        return c.sum()

    for run in (f, dlc.compile(f)):
        with pytest.raises(IndexError) as raised:
            run(x, dlc.tensor([9]))
        assert f"(test_messages.py:{f.__code__.co_firstlineno + 2})" in str(raised.value).split("\n")[0]


@pytest.mark.parametrize("where", ["compile", "run"])
def test_internal_failures_warn_once_and_stay_right(where, recwarn):
    f = dlc.compile(lambda t: (t * 2 + 1).exp().sum(), options={"name": f"fails_in_{where}"})
    want = (x * 2 + 1).exp().sum()
    dlc.reset_compile_stats()
    with dlc.config.patch(fault=where):
        for _ in range(4):
            assert dlc.allclose(f(x), want, rtol=1e-6)
    texts = [str(w.message) for w in recwarn if f"fails_in_{where}" in str(w.message)]
    assert len(texts) == 1 and len(texts[0].split("\n")) <= 15 and dlc.compile_stats()["fallbacks"] == 4
    if where == "run":  # the code is right once more
        assert dlc.allclose(f(x), want, rtol=1e-6) and dlc.compile_stats()["fallbacks"] == 4
    g = dlc.compile(lambda t: (t * 2 + 1).exp().sum(), fullgraph=True)
    if where == "compile":
        with dlc.config.patch(fault=where), pytest.raises(RuntimeError, match="could not be compiled"):
            g(x)


@pytest.mark.parametrize("phase", ["captured", "simplified", "fused", "scheduled", "binary"])
def test_a_failing_phase_says_how_to_repeat_it(phase, recwarn, tmp_path):
    f = dlc.compile(lambda t: (t * 2 + 1).exp().sum(0), options={"name": f"phase_{phase}"})
    with dlc.config.patch(fault=phase, dump_dir=str(tmp_path)):
        assert dlc.allclose(f(x), (x * 2 + 1).exp().sum(0), rtol=1e-6)
    (text,) = [str(w.message) for w in recwarn if f"phase_{phase}" in str(w.message)]
    command = re.search(r"Repeat with: (dlc-opt --phase-\w+|dlc-run) (\S+)", text)
    assert command and len(text.split("\n")) <= 15 and "runs in the interpreter" in text
    if command[1] == "dlc-run":
        assert "func.func @main" in open(command[2]).read()
        return
    done = subprocess.run(
        [sys.executable, "-m", "dlc.opt", command[1].split()[1], command[2]], capture_output=True, text=True
    )
    assert done.returncode == 0 and "func.func @main" in done.stdout, done.stderr
