"""Functions of layers, activations and losses, under PyTorch's names: the ops of the table, and a few made of them."""

from dlc import _C
from dlc._errors import error as _error

# Every op whose record says nn.functional.
globals().update({name: value for name, value in vars(_C.nn_functional).items() if not name.startswith("_")})

log_softmax = _C.log_softmax
relu_ = _C.Tensor.relu_
sigmoid = _C.sigmoid
tanh = _C.tanh
_relu = _C.relu
_softmax = _C.softmax
_dropout = _C.nn_functional.dropout
_hardsigmoid = _C.nn_functional.hardsigmoid
_hardswish = _C.nn_functional.hardswish


def relu(input, inplace=False):
    """The larger of each element and 0; NaN stays NaN."""
    return input.relu_() if inplace else _relu(input)


def relu6(input, inplace=False):
    """Each element limited to [0, 6]."""
    return input.clamp_(0, 6) if inplace else input.clamp(0, 6)


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(x) divided by its sum along `dim`."""
    if dim is None:
        raise TypeError("softmax(): `dim` must be given\npass the dimension that sums to 1, for example dim=-1")
    return _softmax(input, dim, dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax of -x."""
    return softmax(-input, dim, dtype=dtype)


def dropout(input, p=0.5, training=True, inplace=False):
    """Sets elements to 0 with probability `p` and scales the others by 1 / (1 - p), in training."""
    if not 0.0 <= p <= 1.0:
        raise _error(
            ValueError,
            f"dropout probability has to be between 0 and 1, but got {p}",
            "give the share of elements to drop",
        )
    if not training or p == 0:
        return input
    result = _dropout(input, p, True)
    return input.copy_(result) if inplace else result


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Drops whole channels."""
    if not training or p == 0:
        return input
    mask = _dropout(_C.ones(*input.shape[:2], *([1] * (input.dim() - 2)), dtype=input.dtype), p, True)
    return input.mul_(mask) if inplace else input * mask


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """Rows of `weight` chosen by `input`; the row `padding_idx` gets no gradient."""
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise NotImplementedError(
            "embedding: `max_norm`, `scale_grad_by_freq` and `sparse` are not supported\nleave them out"
        )
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]
    return _C.nn_functional.embedding(input, weight, padding_idx)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window."""
    if return_indices:
        raise NotImplementedError("max_pool2d: `return_indices` is not supported\nleave it out")
    return _C.nn_functional.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def _legacy_reduction(size_average, reduce, reduction):
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):
    """The loss of log_softmax against classes (integer `target`) or probabilities (float `target`)."""
    reduction = _legacy_reduction(size_average, reduce, reduction)
    return _C.nn_functional.cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """The negative log likelihood of the classes `target`."""
    reduction = _legacy_reduction(size_average, reduce, reduction)
    return _C.nn_functional.nll_loss(input, target, weight, ignore_index, reduction)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """The squared difference, reduced."""
    return _C.nn_functional.mse_loss(input, target, _legacy_reduction(size_average, reduce, reduction))


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """The absolute difference, reduced."""
    return _C.nn_functional.l1_loss(input, target, _legacy_reduction(size_average, reduce, reduction))


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """The squared difference below `beta`, the absolute one above, reduced."""
    return _C.nn_functional.smooth_l1_loss(input, target, _legacy_reduction(size_average, reduce, reduction), beta)


def huber_loss(input, target, reduction="mean", delta=1.0):
    """smooth_l1_loss times `delta`."""
    return smooth_l1_loss(input, target, reduction=reduction, beta=delta) * delta


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The loss of probabilities against targets in [0, 1]."""
    if input.shape != target.shape:
        raise _error(
            ValueError,
            f"binary_cross_entropy: `target` of sizes {list(target.shape)} and `input` of sizes {list(input.shape)} differ",
            "make them equal",
        )
    return _C.nn_functional.binary_cross_entropy(
        input, target, weight, _legacy_reduction(size_average, reduce, reduction)
    )


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """The loss of sigmoid(input) against targets in [0, 1], without overflow."""
    reduction = _legacy_reduction(size_average, reduce, reduction)
    return _C.nn_functional.binary_cross_entropy_with_logits(input, target, weight, reduction, pos_weight)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """The Kullback-Leibler divergence of log-probabilities `input` from `target`."""
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = _C.where(target > 0, target * (target.clamp(min=1e-45).log() - input), _C.zeros_like(target))
    if reduction == "batchmean":
        return loss.sum() / input.shape[0]
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def normalize(input, p=2.0, dim=1, eps=1e-12):
    """Each vector along `dim` divided by its p-norm."""
    return input / input.norm(p, dim, True).clamp(min=eps).expand_as(input)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The cosine of the angle between vectors along `dim`."""
    return (x1 * x2).sum(dim) / (x1.norm(2, dim) * x2.norm(2, dim)).clamp(min=eps)


def softsign(input):
    """x / (1 + |x|)"""
    return input / (1 + input.abs())


def logsigmoid(input):
    """log(sigmoid(x)), without overflow."""
    return -_C.nn_functional.softplus(-input)


def hardsigmoid(input, inplace=False):
    """x / 6 + 1 / 2, limited to [0, 1]."""
    return input.copy_(_hardsigmoid(input)) if inplace else _hardsigmoid(input)


def hardswish(input, inplace=False):
    """x * hardsigmoid(x)"""
    return input.copy_(_hardswish(input)) if inplace else _hardswish(input)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Normalises groups of channels to mean 0 and variance 1, then scales and shifts each channel."""
    n, channels = input.shape[:2]
    if channels % num_groups:
        raise _error(
            RuntimeError,
            f"group_norm: {channels} channels do not divide into {num_groups} groups",
            "use a number of groups that divides the channels",
        )
    size = channels // num_groups
    for points in input.shape[2:]:
        size = size * points
    grouped = input.reshape(n, num_groups, size)  # not -1: n may be 0
    out = _C.nn_functional.layer_norm(grouped, (size,), None, None, eps).reshape(input.shape)
    shape = [1, channels] + [1] * (input.dim() - 2)
    if weight is not None:
        out = out * weight.reshape(shape)
    return out if bias is None else out + bias.reshape(shape)
