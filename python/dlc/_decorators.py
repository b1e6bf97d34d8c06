"""Functions run in a gradient mode; the extension calls this when a mode object decorates one."""

import functools
import inspect


def with_grad_mode(enabled, function):
    """`function` with gradient recording on or off during each call (for a generator, during each step)."""
    from dlc import enable_grad, no_grad

    mode = enable_grad if enabled else no_grad
    if inspect.isclass(function):
        function.__init__ = with_grad_mode(enabled, function.__init__)
        return function
    if inspect.isgeneratorfunction(function):
        return _generator(mode, function)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        with mode():
            return function(*args, **kwargs)

    return wrapper


def _generator(mode, function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        with mode():
            inner = function(*args, **kwargs)
            step = inner.send
        sent = None
        while True:
            try:
                with mode():
                    value = step(sent)
            except StopIteration as stop:
                return stop.value
            try:
                sent = yield value
                step = inner.send
            except GeneratorExit:
                inner.close()
                raise
            except BaseException as error:
                sent, step = error, inner.throw

    return wrapper
