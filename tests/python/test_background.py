"""background=True: calls run eagerly until a thread has compiled their code."""

import gc
import os
import threading
import warnings
import weakref

import dlc
import pytest
from dlc import nn


def formula(x, k=2):
    return (x * k + 1).exp().sum(0)


@pytest.fixture(autouse=True)
def settled():
    assert dlc.compiler.wait_for_background()
    dlc.reset_compile_stats()


def test_eager_first_and_compiled_later():
    states = []

    @dlc.compile(background=True)
    def f(x):
        states.append(dlc.compiler.is_compiling())
        return formula(x)

    x = dlc.rand(5, 3)
    want = formula(x)
    assert dlc.allclose(f(x), want, rtol=1e-6) and dlc.allclose(f(x), want, rtol=1e-6)
    assert dlc.compiler.wait_for_background() and f.num_entries == 1
    for _ in range(3):
        assert dlc.allclose(f(x), want, rtol=1e-6)
    stats = dlc.compile_stats()
    assert stats["compilations"] == 1 and stats["hits"] >= 3 and stats["fallbacks"] == 0
    assert states[0] and states[-3:] == [True] * 3  # the first call records; those that wait for the code need not


def test_effects_happen_once_whoever_runs_the_call():
    log = []

    def step(x, buffer):
        log.append("step")
        buffer.add_(1)
        y = x * 2 + buffer
        x.mul_(3)
        return y + x, dlc.rand(2)

    def run(f):
        log.clear()
        x, buffer = dlc.ones(4), dlc.zeros(4)
        dlc.manual_seed(3)
        out = []
        for i in range(6):
            y, r = f(x, buffer)
            out += [y.tolist(), r.tolist(), buffer.tolist(), x.tolist()]
            if i == 3:
                dlc.compiler.wait_for_background()
        return out, list(log), x._version

    assert run(dlc.compile(step, background=True)) == run(step)


def test_new_sizes_and_programs_keep_being_compiled():
    f = dlc.compile(lambda x, way: formula(x) if way else (x * 3 - 1).sum(0) * 2, background=True)
    for n in (4, 5, 6, 7):
        for way in (0, 1):
            x = dlc.rand(n, 3)
            want = formula(x) if way else (x * 3 - 1).sum(0) * 2
            assert dlc.allclose(f(x, way), want, rtol=1e-5)
            dlc.compiler.wait_for_background()
    assert dlc.compile_stats()["compilations"] == 4  # each program static, then with the size lifted


def test_training():
    def train(**kwargs):
        dlc.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)).double()
        optimizer = dlc.optim.SGD(model.parameters(), lr=0.1)
        fast = dlc.compile(model, **kwargs) if kwargs else model
        x, y = dlc.rand(8, 4).double(), dlc.rand(8, 1).double()
        losses = []
        for i in range(8):
            optimizer.zero_grad()
            loss = ((fast(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if i == 4:
                dlc.compiler.wait_for_background()
        return losses

    assert train(background=True) == pytest.approx(train(), rel=1e-9)


def test_threads_start_one_compilation():
    f = dlc.compile(formula, background=True)
    x = dlc.rand(6, 3)
    want, wrong = formula(x), []

    def work():
        for _ in range(20):
            if not dlc.allclose(f(x), want, rtol=1e-6):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    dlc.compiler.wait_for_background()
    assert not wrong and dlc.compile_stats()["compilations"] == 1


def test_a_failure_gives_one_warning_and_right_results():
    f = dlc.compile(lambda x: formula(x), background=True, options={"name": "fails_behind"})
    x = dlc.rand(3, 3)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with dlc.config.patch(fault="compile"):
            for _ in range(5):
                assert dlc.allclose(f(x), formula(x), rtol=1e-6)
                dlc.compiler.wait_for_background()
        sum(range(10000))  # the main thread shows what the other has to say
    texts = [str(w.message) for w in seen if "fails_behind" in str(w.message)]
    assert len(texts) == 1 and "could not be compiled" in texts[0]
    assert dlc.compile_stats()["fallbacks"] == 4 and any(e["kind"] == "fallback" for e in f.events())


def test_a_deleted_function_is_forgotten_when_its_job_is_done():
    model = nn.Linear(3, 3)
    f = dlc.compile(model, background=True)
    f(dlc.rand(2, 3))
    refs = [weakref.ref(model), weakref.ref(f)]
    del model, f
    gc.collect()
    assert [r() for r in refs] == [None] * 2  # the thread has the program only
    dlc.compiler.wait_for_background()


def test_a_forked_child_compiles_itself():
    f = dlc.compile(lambda x: formula(x, 3), background=True)
    for n in range(2, 6):
        f(dlc.ones(n, 3))  # leaves the thread something to do
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            dlc.reset_compile_stats()
            g = dlc.compile(lambda x: formula(x, 4), background=True)
            right = all(dlc.allclose(h(dlc.zeros(2, 3)), dlc.full((3,), 2 * 2.718281828), rtol=1e-5) for h in (f, g))
            status = 0 if right and g.num_entries == 1 and dlc.compiler.wait_for_background() else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    dlc.compiler.wait_for_background()


def test_the_process_ends_with_work_left():
    import subprocess
    import sys

    code = """
import dlc
def program(x, k):
    for i in range(k):
        x = x * 1.01 + (x.sin() if i % 3 else x.abs())
    return x
fs = [dlc.compile(program, background=True) for _ in range(20)]
for k, f in enumerate(fs):
    f(dlc.ones(4), 20 + k)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""
