"""dlc: an eager tensor runtime with PyTorch's names, and a compiler for the programs written with it.

`dlc.compile` turns a function, a method or a Module into one that records what it does and runs it as compiled code.
"""

from dlc import _cpu

_cpu.require()  # before the extension is loaded: an older processor would stop at its first instruction

from dlc import _C
from dlc import _constants
from dlc._C import *  # noqa: F403 (the public names of the extension are those of this package)
from dlc._constants import *  # noqa: F403
from dlc._C import Tensor, bool, float, int  # noqa: A004,F401
from dlc._functions import *  # noqa: F403
from dlc import _tensor as _tensor_methods
from dlc import autograd, cuda, random, utils, nn, optim, special  # noqa: E402
from dlc import compiler
from dlc.compiler import compile, compile_stats, explain, reset_compile_stats  # noqa: A004
from dlc.random import get_rng_state, seed, set_rng_state
from dlc.serialization import load, save

__version__: str = _C.__version__


def show_config() -> str:
    """Version, compiler, CPU and settings of this build, as text."""
    return _C.show_config()


_tensor_methods.install()
