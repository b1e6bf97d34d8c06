"""The ways to run a program that must agree: each turns a function of tensors into one that runs that way."""

import dlc


def eager(function):
    """Ops run one by one."""
    return function


def compiled(function):
    """Recorded, compiled and run; twice, so that the second call is served from the cache."""
    fast = dlc.compile(function)

    def call(*tensors):
        fast(*tensors)
        return fast(*tensors)

    return call


def interpreted(function):
    """Recorded, and run by the interpreter of graphs."""
    fast = dlc.compile(function)

    def call(*tensors):
        with dlc.config.patch(mode="interpret"):
            return fast(*tensors)

    return call


EXECUTORS = {"eager": eager, "interpreter": interpreted, "compiled": compiled}
