"""Where capture can go wrong without anybody noticing: state that changes, values that escape, memory that is shared.

Each test calls the compiled function several times with something changed in between, and compares with plain Python.
"""

import contextlib
import gc
import io
import logging
import os
import threading
import warnings
import weakref

import dlc
import dlc.nn.functional as F
import numpy as np
import pytest
from dlc import nn, tensor

LEVEL = 1.0


def values(t):
    return t.detach().tolist()


def chain(x):
    """Enough ops for a graph of its own."""
    return ((x * 2 + 1).exp().log() - 1) / 2


# State that a function reads.


def test_global_number_changes():
    global LEVEL
    compiled = dlc.compile(lambda x: x * LEVEL + LEVEL - 1)
    for LEVEL in (1.0, 2.0, 2.0, -3.0):
        assert values(compiled(tensor([1.0]))) == [2 * LEVEL - 1]


def test_global_tensor_is_written_and_rebound():
    scope = {"w": tensor([1.0, 2.0])}
    compiled = dlc.compile(lambda x: x * scope["w"] + scope["w"] * 2)
    x = tensor([1.0, 1.0])
    assert values(compiled(x)) == [3.0, 6.0]
    scope["w"].add_(1)
    assert values(compiled(x)) == [6.0, 9.0]
    scope["w"] = tensor([0.0, 10.0])
    assert values(compiled(x)) == [0.0, 30.0]
    scope["w"] = tensor([[1.0], [2.0]])
    assert values(compiled(x)) == [[3.0, 3.0], [6.0, 6.0]]


def test_attribute_list_and_dict_change():
    class State:
        factor = 2

    state, items, table = State(), [1.0, 2.0], {"b": 1.0}

    def f(x):
        y = x * state.factor + sum(items)
        for name in sorted(table):
            y = y * 2 + table[name]
        return y

    compiled = dlc.compile(f)
    for change in (
        lambda: None,
        lambda: setattr(state, "factor", 5),
        lambda: items.append(4.0),
        lambda: items.clear(),
        lambda: table.update(a=7.0),
        lambda: delattr(state, "factor"),
    ):
        with contextlib.suppress(AttributeError):
            change()
        assert values(compiled(tensor([3.0]))) == values(f(tensor([3.0])))


def test_submodule_replaced_and_method_shadowed():
    m = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    compiled = dlc.compile(m)
    x = tensor([[1.0, -1.0]])
    assert values(compiled(x)) == values(m(x))
    m[1] = nn.Tanh()
    assert values(compiled(x)) == values(m(x))
    m[0].forward = lambda x: x * 10
    assert values(compiled(x)) == values(m(x)) == values((x * 10).tanh())


def test_parameter_replaced_and_written_under_no_grad():
    m = nn.Linear(2, 1, bias=False)
    compiled = dlc.compile(lambda x: m(x) * 2 + 1)
    x = tensor([[1.0, 1.0]])
    for w in ([[1.0, 2.0]], [[3.0, 4.0]]):
        with dlc.no_grad():
            m.weight.copy_(tensor(w))
        assert values(compiled(x)) == [[2 * sum(w[0]) + 1]]
    m.weight = nn.Parameter(tensor([[5.0, 5.0]]))
    assert values(compiled(x)) == [[21.0]]


def test_default_dtype_is_read_at_each_call():
    compiled = dlc.compile(lambda: dlc.ones(2) * 3 + dlc.zeros(2))
    assert compiled().dtype == dlc.float32
    dlc.set_default_dtype(dlc.float64)
    try:
        assert compiled().dtype == dlc.float64
    finally:
        dlc.set_default_dtype(dlc.float32)
    assert compiled().dtype == dlc.float32


def test_dtype_rank_and_layout_of_arguments_vary():
    compiled = dlc.compile(chain)
    shapes = [(3,), (3, 4), (), (0, 2), (1, 1), (2, 3, 4)]
    for _ in range(2):
        for shape in shapes:
            for dtype in (dlc.float32, dlc.float64):
                x = dlc.ones(shape, dtype=dtype)
                y = compiled(x)
                assert y.dtype == dtype and tuple(y.shape) == shape
                np.testing.assert_array_equal(y.numpy(), chain(x).numpy())
    x = dlc.arange(12.0).reshape(3, 4)
    for view in (x, x.t(), x[:, ::2], x[1:].t(), x[:1].expand(5, 4)):
        np.testing.assert_array_equal(compiled(view).numpy(), chain(view).numpy())


# Values that Python takes out of a program.


def test_print_and_logging_keep_text_and_order(caplog):
    def f(x):
        y = x * 2 + 1
        print("y is", y)
        logging.getLogger("footguns").warning("sum %s", float(y.sum()))
        z = y * y - 1
        print(f"{z.sum().item():.1f}")
        return z

    texts = []
    for g in (f, dlc.compile(f)):
        out = io.StringIO()
        caplog.clear()
        with contextlib.redirect_stdout(out):
            g(tensor([1.0, 2.0]))
            g(tensor([3.0, 4.0]))
        texts.append((out.getvalue(), [r.getMessage() for r in caplog.records]))
    assert texts[0] == texts[1]
    assert texts[0][0]


def test_values_stored_outside_stay_what_they_were():
    kept = []

    def f(x):
        y = x * 3 - 1
        kept.append(y)
        y = y * 2 + x
        kept.append(y.sum())
        return y

    compiled = dlc.compile(f)
    for v in (1.0, 2.0, 3.0):
        compiled(tensor([v]))
    assert [float(t) for t in kept] == [2.0, 5.0, 5.0, 12.0, 8.0, 19.0]


def test_numpy_view_sees_later_writes():
    def f(x):
        view = x.numpy()
        before = view.copy()
        x.mul_(2)
        x.add_(1)
        return before, view.copy(), x * 1

    for g in (f, dlc.compile(f), dlc.compile(f)):
        before, after, result = g(tensor([1.0, 2.0]))
        assert before.tolist() == [1.0, 2.0]
        assert after.tolist() == values(result) == [3.0, 5.0]


def test_numpy_array_under_a_tensor_changes_between_calls():
    array = np.ones(3, np.float32)
    x = dlc.from_numpy(array)
    compiled = dlc.compile(chain)
    for v in (1.0, 5.0, -2.0):
        array[:] = v
        np.testing.assert_array_equal(compiled(x).numpy(), chain(x).numpy())


def test_comparison_in_python_control_flow():
    def f(x):
        y = x * 2
        while y.sum() < 100:
            y = y * y + 1
        return y if y.sum() > 0 else -y

    compiled = dlc.compile(f)
    for v in (1.0, 2.0, 50.0, -3.0, 200.0):
        assert values(compiled(tensor([v]))) == values(f(tensor([v])))


def test_number_of_iterations_varies():
    def f(x, n):
        out = []
        for i in range(n):
            x = x * 1.5 + i
            out.append(x.sum())
        return dlc.stack(out) if out else x

    compiled = dlc.compile(f)
    for n in (0, 1, 2, 3, 5, 2, 0):
        assert values(compiled(tensor([1.0, 2.0]), n)) == values(f(tensor([1.0, 2.0]), n))


# Memory that is shared.


def test_result_that_is_an_argument_or_a_view_of_one():
    def f(x):
        y = x * 2 + 1
        return x, x[1:], x.view(-1, 1), y, y[:1], x.detach()

    compiled = dlc.compile(f)
    for _ in range(3):
        x = dlc.arange(4.0)
        same, tail, column, y, head, detached = compiled(x)
        assert same is x
        x.add_(10)
        assert values(tail) == [11.0, 12.0, 13.0]
        assert values(column[0]) == [10.0]
        assert values(detached) == values(x)
        y.zero_()
        assert values(head) == [0.0]


def test_same_result_twice_is_one_tensor():
    def f(x):
        y = chain(x)
        return y, y

    a, b = dlc.compile(f)(dlc.ones(3))
    assert a is b


def test_writes_through_views_reach_the_argument():
    def f(x):
        row = x[0]
        row.add_(1)
        x.t()[1].mul_(10)
        x[:, -1] = row[0]
        return row * 1, x.sum()

    compiled = dlc.compile(f)
    for _ in range(3):
        a, b = dlc.arange(6.0).reshape(2, 3), dlc.arange(6.0).reshape(2, 3)
        got, want = compiled(a), f(b)
        assert [values(t) for t in got] == [values(t) for t in want]
        assert values(a) == values(b)


def test_write_to_a_tensor_nobody_passed():
    counter = dlc.zeros(1)

    def f(x):
        counter.add_(1)
        return x * counter + counter

    compiled = dlc.compile(f)
    assert [values(compiled(tensor([2.0]))) for _ in range(4)] == [[3.0], [6.0], [9.0], [12.0]]
    assert values(counter) == [4.0]


def test_writes_before_an_exception_are_kept():
    def f(x):
        x.add_(1)
        x.mul_(2)
        y = x * 3 - 1
        if x.shape[0] == 2:
            raise ValueError("two")
        x.add_(100)
        return y

    compiled = dlc.compile(f)
    for _ in range(2):
        x = dlc.ones(2)
        with pytest.raises(ValueError, match="two"):
            compiled(x)
        assert values(x) == [4.0, 4.0]
        x = dlc.ones(3)
        assert values(compiled(x)) == [11.0] * 3
        assert values(x) == [104.0] * 3


def test_error_while_recording_is_raised_where_it_happens():
    reached = []

    def f(x):
        y = x * 2 + 1
        try:
            z = y @ dlc.ones(7, 7)
        except RuntimeError:
            reached.append(True)
            z = y - 1
        return z * y

    compiled = dlc.compile(f)
    for _ in range(2):
        assert values(compiled(dlc.ones(2, 3))) == values(f(dlc.ones(2, 3)))
    assert len(reached) == 4


def test_integer_error_comes_before_a_later_exception():
    def f(x):
        y = x // 0
        raise KeyError(y.shape)

    for g in (f, dlc.compile(f)):
        with pytest.raises((ZeroDivisionError, RuntimeError)):
            g(tensor([1]))


# Gradients.


def test_backward_through_two_compiled_functions_and_eager_between():
    f, g = dlc.compile(chain), dlc.compile(lambda x: (x * x + x).sum() * 2)
    for n in (3, 3, 5):
        x, x2 = dlc.ones(n, requires_grad=True), dlc.ones(n, requires_grad=True)
        g(f(x) * 3).backward()
        y = chain(x2) * 3
        ((y * y + y).sum() * 2).backward()
        np.testing.assert_allclose(x.grad.numpy(), x2.grad.numpy(), rtol=1e-5)


def test_gradients_accumulate_over_calls():
    w = tensor([1.0, 2.0], requires_grad=True)

    def f(x):
        (w * x * 2 + 1).sum().backward()

    compiled = dlc.compile(f)
    for n in range(1, 4):
        compiled(tensor([1.0, 3.0]))
        assert values(w.grad) == [2.0 * n, 6.0 * n]
    w.grad = None
    compiled(tensor([1.0, 3.0]))
    assert values(w.grad) == [2.0, 6.0]


def test_requires_grad_of_an_argument_changes():
    compiled = dlc.compile(chain)
    for flag in (False, True, False):
        y = compiled(dlc.ones(3, requires_grad=flag))
        assert y.requires_grad is flag
    with dlc.no_grad():
        assert not compiled(dlc.ones(3, requires_grad=True)).requires_grad


def test_saved_value_changed_in_place_is_an_error():
    def f(x):
        y = x.exp()
        y.add_(1)
        y.sum().backward()

    for g in (f, dlc.compile(f)):
        with pytest.raises(RuntimeError):
            g(dlc.ones(2, requires_grad=True))


def test_batch_norm_statistics_and_mode():
    plain, other = nn.BatchNorm2d(2), nn.BatchNorm2d(2)
    compiled = dlc.compile(other)
    for i in range(4):
        x = dlc.arange(16.0).reshape(2, 2, 2, 2) * (i + 1)
        if i == 3:
            plain.eval()
            compiled.eval()
        np.testing.assert_allclose(values(compiled(x)), values(plain(x)), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(values(other.running_mean), values(plain.running_mean), rtol=1e-6)
        assert int(other.num_batches_tracked) == int(plain.num_batches_tracked) == min(i + 1, 3)


def test_random_numbers_between_compiled_and_eager_calls():
    def f(x):
        return F.dropout(x * 2 + 1, 0.5) + dlc.rand(4)

    compiled = dlc.compile(f)
    runs = []
    for g in (f, compiled, compiled):
        dlc.manual_seed(3)
        runs.append([values(g(dlc.ones(4))), values(dlc.rand(2)), values(g(dlc.ones(4))), values(dlc.randn(2))])
    assert runs[0] == runs[1] == runs[2]
    assert runs[0][0] != runs[0][2]


# Counters, messages, lifetimes.


def test_each_thing_that_varies_costs_at_most_two_compilations():
    def f(x, scale, shift):
        return ((x * scale + shift).tanh() * x.shape[0]).sum(0)

    compiled = dlc.compile(f)
    cases = {
        "batch": [(n, 1.5, 2) for n in range(2, 60)],
        "float": [(4, i / 7, 2) for i in range(50)],
        "int": [(4, 1.5, i) for i in range(50)],
    }
    for name, calls in cases.items():
        before = dlc.compile_stats()["compilations"]
        for n, scale, shift in calls:
            x = dlc.arange(n * 3.0).reshape(n, 3)
            np.testing.assert_allclose(
                compiled(x, scale, shift).numpy(), f(x, scale, shift).numpy(), rtol=1e-5, atol=1e-5
            )
        assert dlc.compile_stats()["compilations"] - before <= 2, name


def test_counter_attribute_costs_no_compilations():
    class Counting(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return chain(x) * self.calls

    m = Counting()
    compiled = dlc.compile(m)
    before = dlc.compile_stats()["compilations"]
    for n in range(1, 30):
        assert values(compiled(dlc.ones(2))) == values(chain(dlc.ones(2)) * n)
    assert m.calls == 29
    assert dlc.compile_stats()["compilations"] - before <= 2


def test_a_hit_is_counted_and_compiles_nothing():
    compiled = dlc.compile(chain)
    compiled(dlc.ones(3))
    before = dlc.compile_stats()
    for _ in range(5):
        compiled(dlc.ones(3))
    after = dlc.compile_stats()
    assert after["compilations"] == before["compilations"]
    assert after["hits"] - before["hits"] == 5


def test_warnings_inside_are_shown_each_time():
    def f(x):
        warnings.warn("careful", UserWarning, stacklevel=1)
        return chain(x)

    compiled = dlc.compile(f)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            compiled(dlc.ones(2))
    assert [str(w.message) for w in seen].count("careful") == 3


def test_compiled_function_keeps_no_arguments_or_modules_alive():
    m = nn.Linear(3, 3)
    compiled = dlc.compile(m)
    compiled(dlc.ones(2, 3))
    gone = weakref.ref(m)
    del m, compiled
    gc.collect()
    assert gone() is None

    class Marker:
        pass

    f = dlc.compile(lambda x, marker: chain(x))
    marker = Marker()
    gone = weakref.ref(marker)
    f(dlc.ones(2), marker)
    del marker
    gc.collect()
    assert gone() is None


def resident_kb():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def test_calls_do_not_grow_memory():
    compiled = dlc.compile(chain)
    x = dlc.ones(1000)
    for _ in range(500):
        compiled(x)
    gc.collect()
    before = resident_kb()
    for _ in range(5000):
        compiled(x)
    gc.collect()
    assert resident_kb() - before < 2048


def test_threads_share_one_compiled_function():
    compiled = dlc.compile(chain)
    wrong = []

    def work(seed):
        for i in range(40):
            x = dlc.full((seed % 4 + 1, i % 3 + 1), float(seed))
            if values(compiled(x)) != values(chain(x)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_after_compiling():
    compiled = dlc.compile(chain)
    want = values(compiled(dlc.ones(100)))
    pid = os.fork()
    if pid == 0:
        good = values(compiled(dlc.ones(100))) == want and values(compiled(dlc.ones(7))) == want[:7]
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
