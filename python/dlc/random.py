"""The default random number generator: a seed gives the same numbers eager and compiled, on any number of threads."""

import contextlib
import os

from dlc import _C
from dlc._functions import manual_seed

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


def get_rng_state():
    """The state of the default generator as an int64 tensor (seed, offset)."""
    return _C.default_generator.get_state()


def set_rng_state(new_state):
    """Continues the default generator from a state of get_rng_state()."""
    _C.default_generator.set_state(new_state)


def initial_seed() -> int:
    """The seed of the default generator."""
    return _C.initial_seed()


def seed() -> int:
    """Seeds the default generator from the system and returns the seed."""
    value = int.from_bytes(os.urandom(7), "little")
    manual_seed(value)
    return value


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True):
    """Restores the default generator's state at the end of the block."""
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
