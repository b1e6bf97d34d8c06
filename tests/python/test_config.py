"""Settings from Python, and Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading
import time

import dlc
import pytest


def test_settings():
    assert dlc.config.mode == "full" or os.environ.get("DLC_MODE")
    before = dlc.config.fusion_fuel
    with dlc.config.patch(fusion_fuel=3, mode="interpret"):
        assert dlc.config.fusion_fuel == 3 and dlc.config.mode == "interpret"
        assert dlc.compile(lambda x: (x * 2 + 1).exp())(dlc.zeros(1)).item() == pytest.approx(2.718281828)
    assert dlc.config.fusion_fuel == before and "fusion_fuel" in dir(dlc.config)
    for attempt in (lambda: dlc.config.nothing, lambda: setattr(dlc.config, "nothing", 1)):
        with pytest.raises(AttributeError):
            attempt()
    with pytest.raises(TypeError):
        dlc.config.mode = 3


def test_interrupt_during_a_long_kernel():
    a = dlc.rand(1500, 1500)
    start = time.perf_counter()
    a @ a
    once = time.perf_counter() - start
    timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))
    start = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(200):
            a @ a
    assert time.perf_counter() - start < 0.05 + 20 * once + 1
    assert (dlc.ones(2) + 1).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("mode", "bogus", "'interpret'"),
        ("gemm_isa", "avx", "'avx2'"),
        ("num_threads", -1, "0 to 256"),
        ("compile_threads", 1000, "0 to 256"),
        ("cache_limit_mb", -5, "from 0"),
        ("fusion_fuel", -2, "from -1"),
        ("fault", "x", "'compile'"),
    ],
)
def test_values_that_are_not_allowed(name, value, text):
    before = getattr(dlc.config, name)
    with pytest.raises(ValueError, match=text):
        setattr(dlc.config, name, value)
    assert getattr(dlc.config, name) == before


def test_environment_values_that_are_not_allowed_are_told_and_ignored():
    environment = {"DLC_MODE": "bogus", "DLC_FUSION_FUEL": "-7", "DLC_CACHE_LIMIT_MB": "99999999999999999999"}
    environment |= {"DLC_COMPILE_THREADS": "5000", "DLC_NUM_THREADS": "many"}
    code = "import dlc; print(dlc.config.mode, dlc.config.fusion_fuel, dlc.config.cache_limit_mb, dlc.config.compile_threads)"
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["full", "-1", "1024", "0"]
    for name in environment:
        assert f"{name}={environment[name]}" in done.stderr
