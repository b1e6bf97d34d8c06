"""Tensors that a Module counts among its own: parameters and buffers."""

from dlc._C import Tensor, empty


class Parameter(Tensor):
    """A tensor that becomes a parameter when assigned to a Module; it wants a gradient unless told otherwise."""

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = empty(0)
        return Tensor._make_subclass(cls, data, requires_grad)


class Buffer(Tensor):
    """A tensor that becomes a buffer when assigned to a Module."""

    def __new__(cls, data=None, persistent=True):
        buffer = Tensor._make_subclass(cls, empty(0) if data is None else data, False)
        buffer.persistent = persistent
        return buffer
