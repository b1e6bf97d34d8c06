"""Functions of the package that are made of ops instead of being one."""

from dlc import _C
from dlc._C import Tensor

__all__ = [
    "allclose",
    "atleast_1d",
    "broadcast_shapes",
    "broadcast_tensors",
    "equal",
    "hstack",
    "is_floating_point",
    "is_tensor",
    "isclose",
    "manual_seed",
    "meshgrid",
    "numel",
    "square",
    "vstack",
]


def is_tensor(obj):
    """True if `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input):
    """True if the tensor's dtype is a floating one."""
    return input.is_floating_point()


def numel(input):
    """The number of elements."""
    return input.numel()


def manual_seed(seed):
    """Starts the default generator's stream of `seed` and returns the generator."""
    _C.manual_seed(seed)
    return _C.default_generator


def equal(input, other):
    """True if both tensors have the same sizes and equal elements."""
    if not isinstance(other, Tensor):
        raise TypeError(f"equal(): argument 'other' must be a Tensor, not {type(other).__name__}")
    if input.shape != other.shape:
        return False
    return bool((input == other).all().item())


def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Where |input - other| <= atol + rtol * |other|, elementwise; infinities are close to themselves."""
    if input.dtype != other.dtype:
        raise RuntimeError(
            f"isclose: the dtypes {input.dtype} and {other.dtype} differ\nconvert one of them with .to()"
        )
    same = input == other
    if not input.is_floating_point():
        input, other = input.double(), other.double()
    difference = (input - other).abs()
    close = (difference <= atol + rtol * other.abs()) & _C.isfinite(difference)
    close = close | same
    if equal_nan:
        close = close | (_C.isnan(input) & _C.isnan(other))
    return close


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """True if isclose holds for all elements."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all().item())


def square(input):
    """Each element times itself."""
    return input * input


def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes broadcast to."""
    shapes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    rank = max((len(s) for s in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for i, size in enumerate(reversed(shape), 1):
            if size == 1:
                continue
            if result[-i] not in (1, size):
                raise RuntimeError(
                    f"broadcast_shapes: the shapes {shapes} do not broadcast: {result[-i]} against {size} at dim {rank - i}"
                )
            result[-i] = size
    return _C.Size(result)


def broadcast_tensors(*tensors):
    """The tensors expanded to their common shape."""
    shape = broadcast_shapes(*(t.shape for t in tensors))
    return tuple(t.expand(shape) for t in tensors)


def atleast_1d(input):
    """The tensor, or a 1-d view of a 0-d one."""
    return input if input.dim() else input.reshape(1)


def vstack(tensors):
    """Joins along the first dimension; vectors count as rows."""
    return _C.cat([t if t.dim() > 1 else t.reshape(1, -1) for t in tensors], 0)


def hstack(tensors):
    """Joins along the second dimension, vectors along their only one."""
    tensors = [atleast_1d(t) for t in tensors]
    return _C.cat(tensors, 0 if tensors[0].dim() == 1 else 1)


def meshgrid(*tensors, indexing="ij"):
    """Coordinate grids of the given vectors, as views."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if indexing not in ("ij", "xy"):
        raise ValueError(f"meshgrid: `indexing` is {indexing!r}\nuse 'ij' or 'xy'")
    swap = indexing == "xy" and len(tensors) > 1
    if swap:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    shape = [t.numel() for t in tensors]
    grids = []
    for i, t in enumerate(tensors):
        grids.append(t.reshape([-1 if k == i else 1 for k in range(len(shape))]).expand(shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)
