"""Compiled functions called by many threads, from hooks, across fork, and interrupted."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import dlc
import pytest
from dlc import nn


def formula(x, k=2):
    return (x * k + 1).exp().sum(0)


def expected(n, k):
    return dlc.full((3,), n * 2.718281828 ** (0.125 * k + 1))


def in_threads(count, work):
    """Runs work(i) in threads that start together; errors are raised here."""
    barrier, errors = threading.Barrier(count), []

    def body(i):
        barrier.wait()
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=body, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not any(t.is_alive() for t in threads)
    if errors:
        raise errors[0]


def script(text, timeout=60, **env):
    """Runs a program of its own; its output, after it ended with status 0."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(dlc.__file__)), **env},
    )
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout, done.stderr


# --- threads


def test_a_shared_function_compiles_once_a_key():
    f = dlc.compile(formula)
    shapes = [(n, 3) for n in range(2, 10)]

    def work(i):
        for j in range(30):
            n = shapes[(i * 7 + j) % 8][0]
            assert dlc.allclose(f(dlc.full((n, 3), 0.125)), expected(n, 2), rtol=1e-5)

    dlc.reset_compile_stats()
    in_threads(32, work)
    stats = dlc.compile_stats()
    # One static, one with the size lifted: every other thread waited for the two.
    assert stats["compilations"] <= 2 and f.num_entries == stats["compilations"] and stats["fallbacks"] == 0
    assert stats["hits"] == 32 * 30 - stats["compilations"]


def test_different_programs_of_one_function_compile_once_each():
    f = dlc.compile(lambda x, way: [x * 2 + 1 - x, (x - 1) * (x + 1), x.exp() + x * 3, (x * x + x) * x][way].sum())
    dlc.reset_compile_stats()
    in_threads(16, lambda i: [f(dlc.ones(5), (i + j) % 4) for j in range(8)])
    assert dlc.compile_stats()["compilations"] == 4 == f.num_entries


def test_private_functions():
    def work(i):
        f = dlc.compile(lambda x: formula(x, i))
        for n in (2, 3, 4, 2):
            assert dlc.allclose(f(dlc.full((n, 3), 0.125)), expected(n, i), rtol=1e-5)

    in_threads(32, work)


def test_gradients_in_threads():
    model = dlc.compile(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
    x = dlc.rand(6, 4)

    def grads(call):
        inputs = x.clone().requires_grad_()
        call(inputs).sum().backward()
        return inputs.grad

    want = grads(model._compiled_original)

    def work(i):
        for _ in range(10):
            assert dlc.allclose(grads(model), want, atol=1e-6)

    in_threads(12, work)


def test_hits_go_on_while_another_program_compiles():
    def program(x, length):
        for k in range(length):
            x = x * 1.001 + (x.sin() if k % 3 else x.abs())
        return x

    f = dlc.compile(program)
    x = dlc.ones(4)
    f(x, 3)
    state = {"during": 0, "compiling": True, "started": False}

    def compile_long():
        state["started"] = True
        f(x, 1500)
        state["compiling"] = False

    thread = threading.Thread(target=compile_long)
    thread.start()
    while state["compiling"]:
        f(x, 3)
        state["during"] += state["started"]
    thread.join()
    # The recording itself takes the GIL for most of its time; the compilation does not, and lasts much longer.
    assert state["during"] > 50


def test_a_function_deleted_while_it_runs():
    for _ in range(20):
        model = nn.Linear(64, 64)
        box = [dlc.compile(lambda x, m=model: (m(x).relu() + 1).sum())]
        started = threading.Event()
        results = []

        def work(box=box, started=started, results=results):
            f = box[0]
            started.set()
            for _ in range(3):
                results.append(f(dlc.ones(64, 64)).item())

        thread = threading.Thread(target=work)
        thread.start()
        started.wait()
        box.clear()
        del model
        gc.collect()
        thread.join()
        assert len(set(results)) == 1 and len(results) == 3


def test_reset_while_threads_call():
    f = dlc.compile(formula)
    stop = threading.Event()

    def work(i):
        if i == 0:
            for _ in range(30):
                dlc.compiler.reset()
            stop.set()
        while not stop.is_set():
            n = 2 + i % 3
            assert dlc.allclose(f(dlc.full((n, 3), 0.125)), expected(n, 2), rtol=1e-5)

    in_threads(6, work)


def test_exceptions_of_user_code_in_threads():
    @dlc.compile
    def f(x, fail):
        x = x * 2 + 1
        if fail:
            raise ValueError(fail)
        return x.sum()

    def work(i):
        for j in range(20):
            if (i + j) % 3 == 0:
                with pytest.raises(ValueError, match=f"^{i}-{j}$"):
                    f(dlc.ones(4), f"{i}-{j}")
            else:
                assert f(dlc.ones(4), None).item() == 12
            assert not dlc.compiler.is_compiling()

    in_threads(8, work)


# --- re-entrance


def test_compiled_functions_called_from_hooks():
    inner = dlc.compile(lambda g: g * 2 + 1 - g)
    seen = []

    def on_grad(g):
        seen.append(inner(g).tolist())
        return inner(g)

    layer = nn.Linear(2, 1, bias=False)
    with dlc.no_grad():
        layer.weight.fill_(1.0)
    layer.register_forward_hook(lambda m, i, o: inner(o))
    layer.register_forward_pre_hook(lambda m, i: (inner(i[0]),))

    def step(x):
        y = x * 1.0
        y.register_hook(on_grad)
        layer(y).sum().backward()
        return x.grad

    for f in (step, dlc.compile(step)):
        seen.clear()
        x = dlc.tensor([[1.0, 2.0]], requires_grad=True)
        assert f(x).tolist() == [[2.0, 2.0]] and seen == [[[2.0, 2.0]]]


def test_compiled_function_called_while_an_object_dies():
    values = []
    inner = dlc.compile(lambda x: (x * 2 + 1).sum())

    class Last:
        def __del__(self):
            values.append(inner(dlc.ones(3)).item())

    @dlc.compile
    def f(x):
        x = x * 3
        last = Last()
        del last
        return x + 1

    assert f(dlc.ones(2)).tolist() == [4, 4] and values == [9.0]


# --- fork


def child_result(function):
    """What function() returns in a forked child, as an exit status."""
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            status = 0 if function() else 1
        finally:
            os._exit(status)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hangs"


def test_fork_with_threads_that_compile_and_run():
    f = dlc.compile(lambda x: ((x * 2 + 1).exp() @ x).sum())
    want, stop = f(dlc.ones(33, 33)).item(), threading.Event()

    def compile_on():
        k = 0
        while not stop.is_set():
            k += 1
            dlc.compile(lambda x, k=k: (x * k + 1).exp().sum() * 3)(dlc.ones(k % 7 + 1))

    def run_on():
        while not stop.is_set():
            f(dlc.ones(33, 33))

    def in_child():
        g = dlc.compile(lambda x: (x * 5 + 2).tanh().sum() * 7)
        fresh = dlc.allclose(g(dlc.ones(5)), ((dlc.ones(5) * 5 + 2).tanh().sum() * 7))
        return f(dlc.ones(33, 33)).item() == want and fresh and grandchild()

    def grandchild():
        return child_result(lambda: f(dlc.ones(33, 33)).item() == want) == 0

    threads = [threading.Thread(target=t) for t in (compile_on, compile_on, run_on, run_on)]
    for t in threads:
        t.start()
    try:
        assert [child_result(in_child) for _ in range(12)] == [0] * 12
    finally:
        stop.set()
        for t in threads:
            t.join()


def test_fork_before_the_first_compilation():
    script("""
        import os, dlc
        f = dlc.compile(lambda x: (x * 2 + 1).exp().sum())
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                ok = abs(f(dlc.zeros(4)).item() - 4 * 2.718281828) < 1e-4
                os._exit(0 if ok else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert abs(f(dlc.zeros(4)).item() - 4 * 2.718281828) < 1e-4
    """)


shared = dlc.compile(formula)


def pool_task(n):
    return shared(dlc.full((n, 3), 0.125)).tolist()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_processes(method):
    want = [pool_task(n) for n in (2, 3, 4)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        got = pool.map(pool_task, [2, 3, 4] * 4, chunksize=1)
    for row, w in zip(got, want * 4, strict=True):
        assert row == pytest.approx(w, rel=1e-6)


# --- Ctrl-C


def test_interrupts_at_any_moment():
    """SIGINT after random delays: KeyboardInterrupt comes out, and the next call is right."""
    out, _ = script("""
        import random, signal, threading, time, os, dlc
        random.seed(1)
        w = dlc.rand(300, 300) * 0.01
        def program(x, k):
            for i in range(k % 5 + 2):
                x = (x @ w + k).sin() * 0.5
            return x.sum()
        shared = dlc.compile(program)
        x = dlc.rand(300, 300)
        hits = 0
        for k in range(60):
            f = dlc.compile(program) if k % 2 else shared
            pid = os.getpid()
            timer = threading.Timer(random.random() * 0.03, lambda: os.kill(pid, signal.SIGINT))
            try:
                timer.start()
                while True:
                    f(x, k)
            except KeyboardInterrupt:
                hits += 1
            assert not dlc.compiler.is_compiling()
            got, want = f(x, k).item(), program(x, k).item()
            assert abs(got - want) <= 2e-3 * abs(want) + 1e-2, (k, got, want)
        print(hits)
    """)
    assert out.strip() == "60"


def test_an_interrupted_update_does_not_half_happen_to_the_cache():
    out, _ = script("""
        import signal, dlc
        def handler(*_):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, handler)
        hits = 0
        for k in range(40):
            f = dlc.compile(lambda x: ((x * 2 + 1).exp() + k).sum())
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 * (k % 13 + 1))
                while True:
                    f(dlc.ones(3))
            except KeyboardInterrupt:
                hits += 1
            assert abs(f(dlc.zeros(3)).item() - 3 * (2.718281828 + k)) < 1e-3
        print(hits)
    """)
    assert out.strip() == "40"


def test_effects_after_interrupts_are_those_of_whole_calls():
    out, _ = script("""
        import random, signal, dlc
        random.seed(3)
        class State:
            n = 0
        buffer, log = dlc.zeros(4), []
        @dlc.compile
        def step(x):
            State.n += 1
            buffer.add_(1)
            y = (x * 2 + 1).exp()
            log.append(State.n)
            return (y + buffer).sum()
        def handler(*_):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, handler)
        hits = 0
        for k in range(100):
            try:
                signal.setitimer(signal.ITIMER_REAL, random.random() * 0.002 + 1e-5)
                while True:
                    step(dlc.ones(4))
            except KeyboardInterrupt:
                hits += 1
            b = buffer[0].item()
            assert abs(State.n - b) <= hits and abs(State.n - len(log)) <= hits
            before = State.n, b, len(log)
            got = step(dlc.zeros(4)).item()
            assert (State.n, buffer[0].item(), len(log)) == tuple(v + 1 for v in before)
            assert abs(got - 4 * (2.718281828 + b + 1)) < 1e-3 * got
        print(hits)
    """)
    assert out.strip() == "100"


def test_state_that_another_thread_changes_is_seen_whole():
    class State:
        k = 1.0

    f = dlc.compile(lambda x: ((x * State.k + 1).sum(), State.k))
    stop, wrong = threading.Event(), []

    def read(i):
        if i == 0:
            for j in range(60):
                State.k = float(j % 7)
                time.sleep(0.0005)
            stop.set()
        while not stop.is_set():
            total, k = f(dlc.ones(3))
            if total.item() != 3 * k + 3:
                wrong.append((total.item(), k))

    in_threads(5, read)
    assert wrong == []


# --- the end of the process


@pytest.mark.parametrize(
    "body",
    [
        "f(big)",
        "long(small)",
        "big @ big",
        "dlc.compile(lambda x: (x * 2 + 1).exp().sum())(small)",
        "(f(small16) * 2).sum().backward()",
    ],
)
def test_daemon_threads_at_exit(body):
    for _ in range(3):
        _, err = script(f"""
            import threading, time, dlc
            f = dlc.compile(lambda x: ((x @ x).relu() * 1e-3 + 1).sum())
            def many(x):
                for _ in range(50):
                    x = x + 1
                return x
            long = dlc.compile(many)
            big, small, small16 = dlc.rand(400, 400), dlc.rand(4), dlc.rand(16, 16, requires_grad=True)
            f(big), long(small), f(small16)
            def work():
                while True:
                    {body}
            for _ in range(4):
                threading.Thread(target=work, daemon=True).start()
            time.sleep(0.1)
        """)
        assert err == ""


def test_compiling_in_exit_handlers():
    out, err = script("""
        import atexit
        def last(k):
            import dlc
            print(round(dlc.compile(lambda x: (x * k + 1).exp().sum())(dlc.zeros(3)).item(), 3))
        atexit.register(last, 2)
        import dlc
        atexit.register(last, 3)
        last(4)
    """)
    assert out.split() == ["8.155"] * 3 and err == ""


def test_fork_then_exit_normally():
    script("""
        import os, sys, dlc
        f = dlc.compile(lambda x: (x * 2 + 1).exp().sum(), background=True)
        f(dlc.ones(3))
        pid = os.fork()
        f(dlc.ones(3)); f(dlc.ones(4))
        if pid == 0:
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    """)
