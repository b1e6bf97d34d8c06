"""Settings from Python, and Ctrl-C."""

import os
import signal
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
