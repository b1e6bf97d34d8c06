"""The ways to run a program that must agree: each turns a function of tensors into one that runs that way."""

import dlc


def eager(function):
    """Ops run one by one."""
    return function


def compiled(function):
    """Recorded, compiled and run; twice, so that the second call is served from the cache. Nothing may fall back."""

    def program(beside, *tensors):
        # Pieces of fewer than three ops are not compiled: these make it one more.
        return function(*tensors), ((beside * 2 + 1).neg(), beside.exp())

    fast = dlc.compile(program)

    def call(*tensors):
        beside = dlc.ones(3)
        before = dlc.compile_stats()
        fast(beside, *tensors)
        result, extra = fast(beside, *tensors)
        after = dlc.compile_stats()
        assert extra[0].tolist() == [-3, -3, -3]
        assert after["fallbacks"] == before["fallbacks"], "\n".join(str(e) for e in fast.events())
        return result

    return call


def interpreted(function):
    """Recorded, and run by the interpreter of graphs."""
    fast = dlc.compile(function)

    def call(*tensors):
        with dlc.config.patch(mode="interpret"):
            return fast(*tensors)

    return call


EXECUTORS = {"eager": eager, "interpreter": interpreted, "compiled": compiled}
