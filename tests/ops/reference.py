"""NumPy references that are longer than an expression in a record: the `ref` of the sample table."""

import itertools
import math

import numpy as np


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x) if np.size(x) else np.asarray(x, np.float64)


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def softmax(x, dim):
    if x.size == 0:
        return x
    e = np.exp(x - np.max(x, axis=dim, keepdims=True))
    return e / np.sum(e, axis=dim, keepdims=True)


def pow(a, b):  # noqa: A001
    """Integers to negative powers are 0, or 1 and -1 for those, where NumPy raises."""
    if np.issubdtype(np.result_type(a, b), np.integer):
        return np.trunc(np.power(a.astype(np.float64), b))
    return np.power(a, b)


def floor_divide(a, b):
    if np.issubdtype(np.result_type(a, b), np.floating):
        return np.floor_divide(a, b)
    return a // b


def trunc_divide(a, b):
    if np.issubdtype(np.result_type(a, b), np.floating):
        return np.trunc(a / b)
    return (np.abs(a.astype(np.int64)) // np.abs(np.asarray(b).astype(np.int64)) * np.sign(a) * np.sign(b)).astype(
        np.result_type(a, b)
    )


def layer_norm(x, dims, eps=1e-5):
    axes = tuple(range(x.ndim - dims, x.ndim))
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def batch_norm(x, weight, bias, eps=1e-5):
    axes = (0, *range(2, x.ndim))
    shape = [1, -1] + [1] * (x.ndim - 2)
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    return y * weight.reshape(shape) + bias.reshape(shape)


def attention(q, k, v, mask=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return softmax(scores, -1) @ v


def cross_entropy(x, target, smoothing=0.0, reduction="mean"):
    logp = np.log(softmax(x, 1))
    each = -(1 - smoothing) * logp[np.arange(len(target)), target] - smoothing * logp.mean(1)
    return each.sum() if reduction == "sum" else each.mean()


def nll_loss(x, target, weight=None, ignore_index=-100, reduction="mean"):
    w = np.ones(x.shape[1]) if weight is None else weight
    w = np.where(target == ignore_index, 0, w[target])
    each = -w * x[np.arange(len(target)), target]
    return each if reduction == "none" else each.sum() if reduction == "sum" else each.sum() / w.sum()


def smooth_l1(x, y, beta=1.0):
    d = np.abs(x - y)
    return np.mean(np.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta))


def _along(x, dim, index):
    """An index tuple that addresses, for each position of `index`, the position index[...] along `dim`."""
    grid = list(np.indices(index.shape))
    grid[dim] = index
    return tuple(grid)


def scatter(x, dim, index, src):
    out = x.copy()
    src = src if np.ndim(src) == 0 else src[tuple(slice(n) for n in index.shape)]
    out[_along(x, dim, index)] = src
    return out


def scatter_add(x, dim, index, src):
    out = x.copy()
    np.add.at(out, _along(x, dim, index), src[tuple(slice(n) for n in index.shape)])
    return out


def index_add(x, dim, index, source, alpha=1):
    out = np.moveaxis(x.copy(), dim, 0)
    np.add.at(out, index, np.moveaxis(source, dim, 0) * np.asarray(alpha, source.dtype))
    return np.moveaxis(out, 0, dim)


def index_put(x, indices, values, accumulate=False):
    out = x.copy()
    if accumulate:
        np.add.at(out, tuple(indices), values)
    else:
        out[tuple(indices)] = values
    return out


def topk(x, k, dim=-1, largest=True):
    order = np.argsort(-x.astype(np.float64) if largest else x, axis=dim, kind="stable")
    order = np.take(order, range(k), axis=dim)
    return np.take_along_axis(x, order, dim), order


def sort_descending(x, dim):
    order = np.argsort(-x.astype(np.float64), axis=dim, kind="stable")
    return np.take_along_axis(x, order, dim), order


def slice_scatter(x, src, dim, start, end, step):
    out = x.copy()
    where = [slice(None)] * x.ndim
    where[dim] = slice(start, end, step)
    out[tuple(where)] = src
    return out


def select_scatter(x, src, dim, index):
    out = x.copy()
    np.moveaxis(out, dim, 0)[index] = src
    return out


def diagonal_scatter(x, src, offset, dim1, dim2):
    out = x.copy()
    moved = np.moveaxis(out, (dim1, dim2), (-2, -1))
    n = src.shape[-1]
    i = np.arange(n)
    moved[..., i + max(0, -offset), i + max(0, offset)] = src
    return out


def as_strided_scatter(x, src, size, stride, offset):
    out = x.copy().reshape(-1)
    for where in np.ndindex(*size):
        out[offset + sum(i * s for i, s in zip(where, stride, strict=True))] = src[where]
    return out.reshape(x.shape)


def _pair(v):
    return (v, v) if isinstance(v, int) else tuple(v)


def conv2d(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
    (sh, sw), (ph, pw), (dh, dw) = _pair(stride), _pair(padding), _pair(dilation)
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    n, _, h, width = x.shape
    out_c, in_g, kh, kw = w.shape
    oh = (h - dh * (kh - 1) - 1) // sh + 1
    ow = (width - dw * (kw - 1) - 1) // sw + 1
    out = np.zeros((n, out_c, oh, ow), np.result_type(x, w))
    per = out_c // groups
    for o, i, j in itertools.product(range(out_c), range(oh), range(ow)):
        first = o // per * in_g
        patch = x[
            :, first : first + in_g, i * sh : i * sh + dh * (kh - 1) + 1 : dh, j * sw : j * sw + dw * (kw - 1) + 1 : dw
        ]
        out[:, o, i, j] = np.sum(patch * w[o], axis=(1, 2, 3))
    return out if bias is None else out + bias.reshape(1, -1, 1, 1)


def _windows(size, kernel, stride, padding, dilation, ceil_mode):
    """(first, last + 1) of each window in unpadded coordinates, as PyTorch counts them."""
    span = dilation * (kernel - 1) + 1
    steps = (size + 2 * padding - span) / stride
    count = (math.ceil(steps) if ceil_mode else math.floor(steps)) + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return [(i * stride - padding, i * stride - padding + span) for i in range(count)]


def _pool(x, kernel, stride, padding, dilation, ceil_mode, reduce):
    (kh, kw), (ph, pw), (dh, dw) = _pair(kernel), _pair(padding), _pair(dilation)
    sh, sw = _pair(stride if stride is not None else kernel)
    rows = _windows(x.shape[2], kh, sh, ph, dh, ceil_mode)
    cols = _windows(x.shape[3], kw, sw, pw, dw, ceil_mode)
    out = np.zeros((*x.shape[:2], len(rows), len(cols)), x.dtype)
    for (i, (top, bottom)), (j, (left, right)) in itertools.product(enumerate(rows), enumerate(cols)):
        ys = [y for y in range(top, bottom, dh) if 0 <= y < x.shape[2]]
        xs = [c for c in range(left, right, dw) if 0 <= c < x.shape[3]]
        area = (min(bottom, x.shape[2] + ph) - top) * (min(right, x.shape[3] + pw) - left)
        out[:, :, i, j] = reduce(x[:, :, ys][:, :, :, xs], area)
    return out


def max_pool2d(x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
    return _pool(x, kernel, stride, padding, dilation, ceil_mode, lambda w, area: w.max((2, 3)))


def avg_pool2d(x, kernel, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    def mean(w, area):
        return w.sum((2, 3)) / (area if count_include_pad else w.shape[2] * w.shape[3])

    return _pool(x, kernel, stride, padding, 1, ceil_mode, mean)


def adaptive_avg_pool2d(x, size):
    out = np.zeros((*x.shape[:2], *size), x.dtype)
    for i, j in np.ndindex(*size):
        y0, y1 = i * x.shape[2] // size[0], -(-(i + 1) * x.shape[2] // size[0])
        x0, x1 = j * x.shape[3] // size[1], -(-(j + 1) * x.shape[3] // size[1])
        out[:, :, i, j] = x[:, :, y0:y1, x0:x1].mean((2, 3))
    return out
