"""Methods of Tensor that are made of others: copies, new_*, printing. Installed on the extension's type at import."""

from dlc import _C, _functions, _printing
from dlc._C import Tensor
from dlc._errors import error


def _repr(self, *, tensor_contents=None):
    return _printing.tensor_text(self)


def _format(self, spec):
    if self.dim() == 0 and spec:
        return format(self.item(), spec)
    return repr(self) if not spec else object.__format__(self, spec)


def _deepcopy(self, memo):
    """A copy with memory of its own; only leaves have one, as in PyTorch."""
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "deepcopy: only tensors created by the user (leaves) can be copied deeply\nuse .detach().clone()"
        )
    with _C.no_grad():
        data = self.detach().clone()
    result = data if type(self) is Tensor else Tensor._make_subclass(type(self), data)
    if self.is_floating_point():
        result.requires_grad_(self.requires_grad)
    memo[id(self)] = result
    memo.setdefault(id(memo), []).append(self)  # a gradient's object may live no longer than this: its id is used again
    if self.grad is not None:
        result.grad = _deepcopy(self.grad, memo)
    for name, value in self.__dict__.items():
        import copy

        setattr(result, name, copy.deepcopy(value, memo))
    return result


def _rebuild(cls, data, dtype, shape, requires_grad):
    t = _C._tensor_from_bytes(data, getattr(_C, dtype), shape)
    if cls is not Tensor:
        t = Tensor._make_subclass(cls, t)
    return t.requires_grad_(requires_grad)


def _reduce_ex(self, protocol):
    data = self.detach()
    return _rebuild, (
        type(self),
        _C._tensor_bytes(data),
        data.dtype.name,
        tuple(data.shape),
        self.requires_grad and self.is_leaf,
    )


def _options(self, dtype, device):
    return {"dtype": dtype or self.dtype, "device": device}


def new_zeros(self, *size, dtype=None, device=None, requires_grad=False):
    """Zeros of the given size, in the dtype of self unless given."""
    return _C.zeros(*size, **_options(self, dtype, device), requires_grad=requires_grad)


def new_ones(self, *size, dtype=None, device=None, requires_grad=False):
    """Ones of the given size, in the dtype of self unless given."""
    return _C.ones(*size, **_options(self, dtype, device), requires_grad=requires_grad)


def new_empty(self, *size, dtype=None, device=None, requires_grad=False):
    """An uninitialised tensor of the given size, in the dtype of self unless given."""
    return _C.empty(*size, **_options(self, dtype, device), requires_grad=requires_grad)


def new_full(self, size, fill_value, dtype=None, device=None, requires_grad=False):
    """A tensor filled with `fill_value`, in the dtype of self unless given."""
    return _C.full(size, fill_value, **_options(self, dtype, device), requires_grad=requires_grad)


def new_tensor(self, data, dtype=None, device=None, requires_grad=False):
    """A tensor of `data`, in the dtype of self unless given."""
    return _C.tensor(data, **_options(self, dtype, device), requires_grad=requires_grad)


def _mT(self):
    """The last two dimensions swapped."""
    if self.dim() < 2:
        raise error(
            RuntimeError,
            f"mT: a tensor of at least 2 dimensions is needed, not one of sizes {list(self.shape)}",
            "use unsqueeze() to add one",
        )
    return self.transpose(-2, -1)


def _T(self):
    """All dimensions in reverse order."""
    return self.permute(*range(self.dim() - 1, -1, -1)) if self.dim() != 2 else self.transpose(0, 1)


def reshape_as(self, other):
    """self.reshape(other.shape)"""
    return self.reshape(other.shape)


def is_same_size(self, other):
    """True if the sizes are equal."""
    return self.shape == other.shape


def is_set_to(self, other):
    """True if both are the same view of the same storage."""
    same = self._storage_ptr() == other._storage_ptr() and self.storage_offset() == other.storage_offset()
    return same and self.shape == other.shape and self.stride() == other.stride()


def ravel(self):
    """The elements as a vector; a view where possible."""
    return self.reshape(-1)


def _identity(self, *args, **kwargs):
    return self


_METHODS = {
    "__repr__": _repr,
    "__format__": _format,
    "__deepcopy__": _deepcopy,
    "__reduce_ex__": _reduce_ex,
    "new_zeros": new_zeros,
    "new_ones": new_ones,
    "new_empty": new_empty,
    "new_full": new_full,
    "new_tensor": new_tensor,
    "reshape_as": reshape_as,
    "is_same_size": is_same_size,
    "is_set_to": is_set_to,
    "ravel": ravel,
    "pin_memory": _identity,
    "equal": _functions.equal,
    "isclose": _functions.isclose,
    "allclose": _functions.allclose,
    "square": _functions.square,
}


def install():
    """Puts the methods on the Tensor type."""
    for name, function in _METHODS.items():
        if name not in Tensor.__dict__ or name.startswith("__"):
            setattr(Tensor, name, function)
    Tensor.T = property(_T)
    Tensor.mT = property(_mT)
    Tensor.H = property(_T)
    Tensor.__module__ = "dlc"
