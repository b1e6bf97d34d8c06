"""dlc: an eager tensor runtime with PyTorch's names, and a compiler for the programs written with it.

`dlc.compile` turns a function, a method or a Module into one that records what it does and runs it as compiled code.
"""

# ruff: noqa: E402, F401, F403, I001 (re-exports, in an order that matters)
from dlc import _cpu

_cpu.require()  # before the extension is loaded: an older processor would stop at its first instruction

from dlc import _C
from dlc._C import *
from dlc._C import __version__
from dlc._constants import *
from dlc._functions import *
from dlc._printing import set_printoptions
from dlc import _tensor, autograd, config, cuda, nn, optim, random, special, utils
from dlc import compiler, tuning
from dlc.compiler import (
    compile,
    compile_stats,
    explain,
    mark_dynamic,
    mark_static,
    maybe_mark_dynamic,
    reset_compile_stats,
)
from dlc.profiler import profile
from dlc.random import get_rng_state, seed, set_rng_state
from dlc.serialization import load, save

_tensor.install()
