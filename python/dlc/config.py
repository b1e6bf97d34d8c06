"""Settings, one attribute each: those of the DLC_* environment variables, under Python's spelling (fusion_fuel).

`dlc.config.mode = "interpret"` changes one; `with dlc.config.patch(mode="interpret"):` changes it for a block.
"""

import contextlib
import re
import sys
import types

from dlc import _C


def _snake(name):
    return re.sub("([A-Z])", lambda m: "_" + m[1].lower(), name)


_NAMES = {_snake(name): name for name in _C._get_knobs()}


class _Config(types.ModuleType):
    def __getattr__(self, name):
        if name in _NAMES:
            return _C._get_knobs()[_NAMES[name]][0]
        raise AttributeError(f"dlc.config has no setting '{name}'; there are {', '.join(_NAMES)}")

    def __setattr__(self, name, value):
        if name in _NAMES:
            _C._set_knob(_NAMES[name], value)
        elif name.startswith("__"):
            super().__setattr__(name, value)
        else:
            raise AttributeError(f"dlc.config has no setting '{name}'; there are {', '.join(_NAMES)}")

    def __dir__(self):
        return [*super().__dir__(), *_NAMES]


@contextlib.contextmanager
def patch(**settings):
    """Changes settings until the end of the block."""
    config = sys.modules[__name__]
    before = {name: getattr(config, name) for name in settings}
    try:
        for name, value in settings.items():
            setattr(config, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)


sys.modules[__name__].__class__ = _Config
