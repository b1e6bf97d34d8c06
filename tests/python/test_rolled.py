"""Loops written in Python: compiled once whatever the number of steps, equal to the unrolled and the eager program."""

import threading

import dlc
import pytest


def cell(x, h, c, wx, wh, b):
    g = x @ wx + h @ wh + b
    i, f, o, n = g.chunk(4, 1)
    c = dlc.sigmoid(f) * c + dlc.sigmoid(i) * dlc.tanh(n)
    return dlc.sigmoid(o) * dlc.tanh(c), c


def lstm(x, wx, wh, b):
    h = dlc.zeros(x.shape[1], wh.shape[0])
    c = dlc.zeros(x.shape[1], wh.shape[0])
    outs = []
    for t in range(x.shape[0]):
        h, c = cell(x[t], h, c, wx, wh, b)
        outs.append(h)
    return dlc.stack(outs), h, c


def train_step(x, wx, wh, b):
    for p in (wx, wh, b):
        p.grad = None
    y, h, c = lstm(x, wx, wh, b)
    loss = (y * y).mean() + h.sum()
    loss.backward()
    return loss.detach(), wx.grad, wh.grad, b.grad


def lstm_inputs(steps, batch=3, features=5, hidden=6, grad=False):
    dlc.manual_seed(steps)
    params = [dlc.randn(features, 4 * hidden) * 0.3, dlc.randn(hidden, 4 * hidden) * 0.3, dlc.randn(4 * hidden) * 0.1]
    for p in params:
        p.requires_grad_(grad)
    return dlc.randn(steps, batch, features), *params


def close(got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert dlc.allclose(a, b, rtol=1e-5, atol=1e-6), (a - b).abs().max()


def compilations(f):
    before = dlc.compile_stats()
    f()
    after = dlc.compile_stats()
    return {
        k: after[k] - before[k] for k in ("compilations", "llvm_compilations", "cache_hits", "kernels", "fallbacks")
    }


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 17, 64])
def test_lstm_equals_eager(steps):
    f = dlc.compile(lstm)
    inputs = lstm_inputs(steps)
    for _ in range(3):
        close(f(*inputs), lstm(*inputs))


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 6, 17, 40])
def test_gradients_equal_eager(steps):
    f = dlc.compile(train_step)
    inputs = lstm_inputs(steps, grad=True)
    want = train_step(*inputs)
    for _ in range(3):
        close(f(*inputs), want)


def test_twenty_lengths_take_two_compilations():
    f = dlc.compile(lstm)
    stats = compilations(lambda: [f(*lstm_inputs(n)) for n in range(3, 23)])
    assert stats["compilations"] <= 2 and stats["fallbacks"] == 0
    close(f(*lstm_inputs(50)), lstm(*lstm_inputs(50)))


def test_twenty_lengths_of_a_training_step_take_two_compilations():
    f = dlc.compile(train_step)
    stats = compilations(lambda: [f(*lstm_inputs(n, grad=True)) for n in range(5, 25)])
    assert stats["compilations"] <= 2 and stats["fallbacks"] == 0
    want = train_step(*lstm_inputs(31, grad=True))
    close(f(*lstm_inputs(31, grad=True)), want)


def test_what_is_compiled_does_not_grow_with_the_steps():
    counts = []
    for steps in (10, 200):
        f, inputs = dlc.compile(lambda *a: train_step(*a)), lstm_inputs(steps, grad=True)
        stats = compilations(lambda f=f, inputs=inputs: f(*inputs))
        counts.append((stats["llvm_compilations"] + stats["cache_hits"], stats["kernels"]))
    assert counts[0] == counts[1]


def test_results_written_to_a_buffer():
    def f(x, w, out):
        own = dlc.zeros(x.shape[0], x.shape[1], w.shape[1])
        h = dlc.zeros(x.shape[1], w.shape[0])
        for t in range(x.shape[0]):
            h = dlc.tanh(x[t] + h @ w)
            own[t] = h
            out[:, t] = h * 2
        return own

    c = dlc.compile(f)
    for steps in (4, 12, 30):
        dlc.manual_seed(steps)
        x, w = dlc.randn(steps, 2, 3), dlc.randn(3, 3)
        mine, theirs = dlc.ones(2, steps, 3), dlc.ones(2, steps, 3)
        want = f(x, w, mine)
        stats = compilations(lambda x=x, w=w, theirs=theirs, want=want: close([c(x, w, theirs)], [want]))
        close([theirs], [mine])
        assert stats["compilations"] <= 1 and stats["fallbacks"] == 0


def test_gradients_of_the_sequence():
    def f(x, w):
        x.grad = w.grad = None
        h = dlc.zeros(x.shape[1], w.shape[0])
        for t in range(x.shape[0]):
            h = dlc.tanh(x[t] + h @ w)
        h.sum().backward()
        return x.grad, w.grad

    c = dlc.compile(f)
    for steps in (4, 9, 20, 21, 22):
        dlc.manual_seed(steps)
        x, w = dlc.randn(steps, 2, 3).requires_grad_(True), dlc.randn(3, 3).requires_grad_(True)
        stats = compilations(lambda x=x, w=w: close(c(x, w), f(x, w)))
        assert stats["fallbacks"] == 0 and stats["kernels"] < 60
    assert stats["compilations"] == 0


def test_state_of_a_module_changed_in_place():
    def f(state, x, w):
        for t in range(x.shape[0]):
            state.mul_(0.5).add_(dlc.tanh(x[t] @ w))
        return state * 2

    c = dlc.compile(f)
    for steps in (3, 8, 33):
        dlc.manual_seed(steps)
        x, w, state = dlc.randn(steps, 2, 3), dlc.randn(3, 3), dlc.randn(2, 3)
        copy, address = state.clone(), state.data_ptr()
        close([c(state, x, w), state], [f(copy, x, w), copy])
        assert state.data_ptr() == address


def test_loops_that_end_early():
    def f(x, w):
        h = dlc.zeros(x.shape[1], w.shape[0])
        for t in range(x.shape[0]):
            h = dlc.tanh(x[t] + h @ w)
            if t % 8 == 7 and h.sum().item() > 0:
                break
        return h, t

    c = dlc.compile(f)
    for seed in range(6):
        dlc.manual_seed(seed)
        x, w = dlc.randn(40, 2, 3), dlc.randn(3, 3)
        (h, t), (want, at) = c(x, w), f(x, w)
        assert t == at
        close([h], [want])


def test_numbers_of_each_step():
    def f(x, w, scale):
        h = x
        for k in range(12):
            h = dlc.tanh(h @ w) * (scale + 0.25 * k)
        return h

    c = dlc.compile(f)
    dlc.manual_seed(0)
    x, w = dlc.randn(2, 3), dlc.randn(3, 3)
    stats = compilations(lambda: [close([c(x, w, s)], [f(x, w, s)]) for s in (0.5, 2.0, -1.0)])
    assert stats["compilations"] == 1


def test_an_index_error_in_a_step_is_the_eager_one():
    def f(table, w, steps):
        h = dlc.zeros(2, 3)
        for s in steps:
            h = dlc.tanh(dlc.index_select(table, 0, s) + h @ w)
        return h

    table, w = dlc.randn(5, 3), dlc.randn(3, 3)
    good = [dlc.tensor([k % 5, (k + 1) % 5]) for k in range(20)]
    c = dlc.compile(f)
    close([c(table, w, good)], [f(table, w, good)])
    bad = good[:11] + [dlc.tensor([0, 7])] + good[12:]
    with pytest.raises(IndexError) as eager:
        f(table, w, bad)
    with pytest.raises(IndexError) as compiled:
        c(table, w, bad)
    first = [str(e.value).splitlines()[0].split(" (")[0] for e in (compiled, eager)]
    assert first[0] == first[1]
    close([c(table, w, good)], [f(table, w, good)])


def test_random_numbers_in_steps():
    def f(x, w):
        h = x
        for _ in range(9):
            h = dlc.nn.functional.dropout(dlc.tanh(h @ w), 0.5)
        return h

    c = dlc.compile(f)
    x, w = dlc.randn(4, 3), dlc.randn(3, 3)
    for seed in range(3):
        dlc.manual_seed(seed)
        want = f(x, w)
        dlc.manual_seed(seed)
        close([c(x, w)], [want])


def test_explain_tells_of_the_loop():
    f = dlc.compile(lstm)
    assert "is run as 2 ops, 1 ops, 1 ops, 30 steps of 16 ops, 1 ops" in str(dlc.explain(f)(*lstm_inputs(30)))


def test_a_known_body_serves_shorter_sequences():
    f = dlc.compile(train_step)
    for steps in (20, 21):
        f(*lstm_inputs(steps, grad=True))
    stats = compilations(lambda: [f(*lstm_inputs(n, grad=True)) for n in (3, 4, 5)])
    assert stats["compilations"] == 0


def test_threads_with_sequences_of_different_lengths():
    f = dlc.compile(lstm)
    inputs = {n: lstm_inputs(n) for n in (6, 11, 16, 21)}
    want = {n: lstm(*inputs[n]) for n in inputs}
    wrong = []

    def work(first):
        for k in range(40):
            n = list(inputs)[(first + k) % len(inputs)]
            if not all(dlc.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(f(*inputs[n]), want[n])):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(timeout=120)
        assert not t.is_alive()
    assert not wrong


def test_a_loop_from_the_end_gives_each_row_its_gradient():
    """The index of a row is a negative symbol in the loop's code."""

    def f(x, w):
        loss = 0
        for t in range(x.shape[0]):
            loss = loss + dlc.sigmoid(x[-1 - t] @ w).sum()
        loss.backward()
        return loss.detach()

    compiled = dlc.compile(f)
    for steps in (5, 8):
        x, w = dlc.randn(steps, 2, 3).requires_grad_(), dlc.ones(3, 4) * 0.3
        same = x.detach().clone().requires_grad_()
        assert dlc.allclose(compiled(x, w), f(same, w), rtol=1e-5)
        assert dlc.allclose(x.grad, same.grad, rtol=1e-5, atol=1e-6)
