"""What trips tracers: state read or changed behind the compiled function's back. Each program runs eagerly and compiled,
several calls in a row, and must give equal results and equal side effects."""

import contextlib
import gc
import io
import weakref

import dlc
import dlc.nn.functional as F
import numpy as np
import pytest
from dlc import nn


def plain(value):
    """A result as Python data."""
    if isinstance(value, dlc.Tensor):
        return str(value.dtype), value.requires_grad, value.detach().tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def same(make, calls):
    """`make()` gives a function with fresh state; `calls(f)` yields results. Eager and compiled must agree."""
    eager = [plain(r) for r in calls(make())]
    compiled = [plain(r) for r in calls(dlc.compile(make()))]
    assert compiled == eager


X = [1.0, 2.0, 3.0]


def test_closure_counter():
    def make():
        n = 0

        def f(x):
            nonlocal n
            n += 1
            return x * n + n

        return f

    same(make, lambda f: [f(dlc.tensor(X)) for _ in range(4)])


def test_global_and_attribute_numbers():
    class Config:
        scale, flag, name = 2.0, True, "a"

    def f(x):
        y = x * Config.scale
        return (y + 1 if Config.flag else y - 1), Config.name

    def calls(f):
        Config.scale, Config.flag, Config.name = 2.0, True, "a"
        yield f(dlc.tensor(X))
        Config.scale = 5
        yield f(dlc.tensor(X))
        Config.flag = False
        Config.name = "b"
        yield f(dlc.tensor(X))

    same(lambda: f, calls)


def test_captured_tensor_changed_in_place_and_replaced():
    def make():
        state = {"w": dlc.ones(3)}

        def f(x, how):
            if how == "inside":
                state["w"].mul_(3)
            elif how == "replace":
                state["w"] = x * 10
            return x * state["w"] + 1

        f.state = state
        return f

    def calls(f):
        yield f(dlc.tensor(X), "")
        f.state["w"].add_(4)
        yield f(dlc.tensor(X), "")
        yield f(dlc.tensor(X), "inside")
        yield f(dlc.tensor(X), "replace")
        yield f(dlc.tensor(X), "")
        yield f.state["w"]

    same(make, calls)


def test_memory_shared_with_numpy_changed_outside():
    def make():
        array = np.ones(3, np.float32)
        t = dlc.from_numpy(array)

        def f(x):
            y = x * t + 1
            t.add_(1)
            return y * t

        f.array = array
        return f

    def calls(f):
        yield f(dlc.tensor(X))
        f.array[:] = 7
        yield f(dlc.tensor(X))
        yield f.array.tolist()

    same(make, calls)


def test_outputs_alias_inputs_and_each_other():
    def f(x):
        y = x.view(-1)
        z = y * 2
        w = z[1:]
        w.add_(1)
        return y, z, w, x

    def calls(f):
        x = dlc.tensor([X])
        y, z, w, same_x = f(x)
        y[0] = 50.0
        w[0] = -1.0
        yield x, y, z, w, same_x is x

    same(lambda: f, calls)


def test_argument_written_through_overlapping_views():
    def f(a, b):
        a.mul_(2)
        c = b + 1
        b.add_(a.sum())
        return c, a + b

    def calls(f):
        for build in (
            lambda t: (t[:3], t[2:]),
            lambda t: (t[:3], t[3:]),
            lambda t: (t[:3], t[:3]),
            lambda t: (t[1:4], t[0:3]),
        ):
            t = dlc.arange(6.0)
            a, b = build(t)
            if a.shape == b.shape:
                yield f(a, b), t

    same(lambda: f, calls)


def test_exceptions_between_writes():
    def make():
        log = []

        def f(x):
            x.add_(1)
            try:
                if x.shape[0] == 3:
                    raise ValueError("three")
                x.mul_(2)
            except ValueError as error:
                log.append(str(error))
                x.sub_(10)
            finally:
                log.append("end")
            return x * 1, list(log)

        return f

    same(make, lambda f: [f(dlc.tensor(X)), f(dlc.ones(2)), f(dlc.tensor(X))])


def test_loops_whose_length_depends_on_values():
    def f(x):
        n = 0
        while x.sum() < 50:
            x = x * 2 + 1
            n += 1
        for _ in range(int(x[0]) % 3):
            x = x - 1
        return x, n

    same(lambda: f, lambda f: [f(dlc.tensor(X)), f(dlc.tensor([0.1, 0.2])), f(dlc.tensor(X))])


def test_printing_inside():
    def f(x):
        y = x * 2
        print("y is", y, y.shape[0])
        return y + 1

    outputs = []
    for g in (f, dlc.compile(f)):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            g(dlc.tensor(X))
            g(dlc.tensor(X))
        outputs.append(out.getvalue())
    assert outputs[0] == outputs[1] and outputs[0].count("tensor([2., 4., 6.]) 3") == 2


def test_default_dtype_and_modes_change_between_calls():
    def f(x):
        return dlc.zeros(2) + x.sum(), dlc.is_grad_enabled(), x * 2

    def calls(f):
        x = dlc.tensor(X, requires_grad=True)
        yield f(x)
        dlc.set_default_dtype(dlc.float64)
        try:
            yield f(x)
        finally:
            dlc.set_default_dtype(dlc.float32)
        with dlc.no_grad():
            yield f(x)
        yield f(x)

    same(lambda: f, calls)


def test_dtype_layout_and_shape_of_arguments_change():
    def f(x):
        return (x * 2 + 1).transpose(0, -1).contiguous().sum(0), x.stride()

    base = dlc.arange(24.0)

    def calls(f):
        yield f(base.view(4, 6))
        yield f(base.view(6, 4).t())
        yield f(base.view(2, 3, 4))
        yield f(base.view(4, 6)[::2, 1:])
        yield f(base.view(4, 6).to(dlc.int32))
        yield f(base.view(24, 1).expand(24, 3))
        yield f(base[:0].view(0, 4))
        yield f(base.view(4, 6))

    same(lambda: f, calls)


def test_python_numbers_of_every_kind():
    def f(x, n):
        return x * n, x + n, n

    same(
        lambda: f,
        lambda f: [f(dlc.tensor(X), n) for n in (2, 2.5, True, False, -3, 0, 2, 1e30, float("inf"), float("-0.0"))],
    )


def test_tensors_kept_from_one_call_to_the_next():
    def make():
        kept = []

        def f(x):
            y = x * (1 + len(kept))
            kept.append(y)
            return sum(kept)

        return f

    same(make, lambda f: [f(dlc.tensor(X)) for _ in range(4)])


def test_results_outlive_the_function_and_are_freed():
    f = dlc.compile(lambda x: (x * 2 + 1, (x * 3).exp()))
    a, b = f(dlc.ones(1000))
    ref = weakref.ref(b)
    del b
    gc.collect()
    assert ref() is None and a[0].item() == 3
    before = dlc.memory_stats()["allocated"]
    for _ in range(20):
        f(dlc.ones(1000))
    gc.collect()
    assert dlc.memory_stats()["allocated"] <= before + 64 * 1024


def test_gradient_flags_of_parameters_T04():
    def make():
        layer = nn.Linear(2, 2)
        with dlc.no_grad():
            layer.weight.fill_(0.5)
            layer.bias.fill_(0.25)

        def f(x):
            layer(x).square().sum().backward()
            return [p.grad.clone() if p.grad is not None else None for p in layer.parameters()]

        f.layer = layer
        return f

    def calls(f):
        x = dlc.ones(1, 2)
        yield f(x)
        f.layer.weight.requires_grad_(False)
        yield f(x)
        f.layer.weight.requires_grad_(True)
        yield f(x)
        f.layer.zero_grad()
        yield f(x)

    same(make, calls)


def test_parameters_replaced_and_module_edited():
    def make():
        net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        for p in net.parameters():
            nn.init.constant_(p, 0.5)

        def f(x):
            return net(x)

        f.net = net
        return f

    def calls(f):
        x = dlc.tensor([X])
        yield f(x)
        f.net[0].weight = nn.Parameter(dlc.ones(3, 3))
        yield f(x)
        f.net[0].weight.data = dlc.ones(3, 3) * 2
        yield f(x)
        f.net[1] = nn.Tanh()
        yield f(x)
        f.net.append(nn.Flatten(0))
        yield f(x)
        f.net.double()
        yield f(x.double())

    same(make, calls)


def test_batch_norm_statistics_and_mode():
    def make():
        net = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.0))

        def f(x):
            return net(x), net[0].running_mean.clone(), net[0].num_batches_tracked.item()

        f.net = net
        return f

    def calls(f):
        x = dlc.tensor([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]])
        for mode in (True, True, False, True):
            f.net.train(mode)
            out, mean, count = f(x)
            yield [round(v, 5) for v in out.flatten().tolist()], [round(v, 5) for v in mean.tolist()], count

    same(make, calls)


def test_hooks_inside_the_region():
    def make():
        seen = []

        def f(x):
            w = dlc.tensor([2.0], requires_grad=True)
            w.register_hook(lambda g: seen.append(g.item()) or g * 3)
            (w * x).sum().backward()
            return w.grad, list(seen)

        return f

    same(make, lambda f: [f(dlc.tensor(X)) for _ in range(3)])


def test_indexing_by_computed_and_plain_indices():
    def f(x, i, index, mask):
        y = x * 2
        y[i] = -1.0
        y[index] += 10
        return y, y[index], y[i], y[mask], y[mask].sum()

    def calls(f):
        for i in (0, 2, 1, 0):
            yield f(dlc.tensor(X), i, dlc.tensor([i, 2 - i]), dlc.tensor([True, i == 1, False]))

    same(lambda: f, calls)


def test_sorting_shuffling_and_sampling():
    def f(x):
        order = dlc.randperm(3)
        noise = dlc.rand_like(x)
        return x[order], noise, x.sort(descending=True).values, F.dropout(x, 0.5), order

    def calls(f):
        dlc.manual_seed(3)
        for _ in range(3):
            yield f(dlc.tensor(X))
        yield dlc.get_rng_state()

    same(lambda: f, calls)


def test_generator_argument():
    def calls(f):
        g = dlc.Generator().manual_seed(5)
        yield f(g)
        yield f(g)
        yield g.get_state()

    same(lambda: lambda g: (dlc.rand(3, generator=g) * 2 + 1, dlc.randn(2, generator=g)), calls)


def test_recursion_and_callbacks():
    def make():
        def f(x, depth, callback):
            if depth == 0:
                return callback(x)
            return f(x * 2 + depth, depth - 1, callback) - 1

        return f

    same(
        make, lambda f: [f(dlc.tensor(X), 3, lambda t: t.exp().log()), f(dlc.tensor(X), 1, lambda t: t.tolist() and t)]
    )


@pytest.mark.parametrize("count", [1, 3])
def test_accumulation_over_several_backwards(count):
    def make():
        w = dlc.tensor([1.0, 2.0, 3.0], requires_grad=True)

        def f(x):
            for k in range(count):
                ((w * x).sum() * (k + 1)).backward()
            return w.grad.clone()

        return f

    same(make, lambda f: [f(dlc.tensor(X)) for _ in range(3)])


def test_named_tuples_and_dataclass_arguments():
    import dataclasses
    from collections import namedtuple

    Pair = namedtuple("Pair", "a b")

    @dataclasses.dataclass
    class Box:
        t: dlc.Tensor
        k: int = 2

    def f(pair, box, *rest, **named):
        box.k += 1
        return Pair(pair.b * box.k, pair.a + sum(rest)), {k: v * 2 for k, v in named.items()}

    def calls(f):
        box = Box(dlc.ones(1))
        yield f(Pair(dlc.tensor(X), dlc.ones(3)), box)
        yield f(Pair(dlc.tensor(X), dlc.ones(3)), box, 1, 2.5, z=dlc.zeros(2), y=3)
        yield box.k

    same(lambda: f, calls)


def test_a_scalar_tensor_beside_half_tensors_is_rounded_to_their_type_first():
    values = [((i * 37) % 101 - 50) / 17 for i in range(300)]
    for dtype in (dlc.bfloat16, dlc.float16):
        a, b = dlc.tensor(values, dtype=dtype), dlc.tensor(0.7654321)

        def f(a, b):
            return a + b, a * b, a / b, dlc.atan2(a, b), a > b

        for want, rounded, got in zip(f(a, b), f(a, b.to(dtype)), dlc.compile(f)(a, b), strict=True):
            assert dlc.equal(got, want) and dlc.equal(want, rounded)
