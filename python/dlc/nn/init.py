"""Filling tensors before training; every function changes its tensor in place and returns it."""

import math

from dlc._C import no_grad


def calculate_gain(nonlinearity, param=None):
    """The factor by which a nonlinearity shrinks the deviation of its input."""
    if nonlinearity in ("linear", "conv1d", "conv2d", "conv3d", "sigmoid"):
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _fans(tensor):
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


_calculate_fan_in_and_fan_out = _fans


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Uniform numbers in [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Normal numbers."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Normal numbers within [a, b], by the inverse of the distribution function."""

    def below(x):
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    with no_grad():
        low, high = below((a - mean) / std), below((b - mean) / std)
        tensor.uniform_(2 * low - 1, 2 * high - 1, generator=generator)
        tensor.copy_(_erfinv(tensor))
        return tensor.mul_(std * math.sqrt(2.0)).add_(mean).clamp_(min=a, max=b)


def _erfinv(y):
    """The inverse of erf by Giles' starting value (Approximating the erfinv function, 2010) and two Newton steps."""
    y = y.double()
    w = -((1 - y) * (1 + y)).clamp(min=1e-300).log()
    central = [2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
               -0.00417768164, 0.246640727, 1.50140941]  # fmt: skip
    tail = [-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
            0.00943887047, 1.00167406, 2.83297682]  # fmt: skip
    u, v = w - 2.5, w.sqrt() - 3
    p, q = u * 0 + central[0], v * 0 + tail[0]
    for c, t in zip(central[1:], tail[1:]):
        p, q = p * u + c, q * v + t
    near = (w < 5).double()
    x = (p * near + q * (1 - near)) * y
    for _ in range(2):
        x = x - (x.erf() - y) / (2 / math.sqrt(math.pi) * (-(x * x)).exp())
    return x


def constant_(tensor, val):
    """`val` everywhere."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    """1 everywhere."""
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """0 everywhere."""
    return constant_(tensor, 0.0)


def eye_(tensor):
    """The identity matrix."""
    from dlc._C import eye

    with no_grad():
        return tensor.copy_(eye(*tensor.shape))


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform numbers that keep the variance forward and backward (Glorot and Bengio, 2010)."""
    fan_in, fan_out = _fans(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal numbers that keep the variance forward and backward (Glorot and Bengio, 2010)."""
    fan_in, fan_out = _fans(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def _fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _fans(tensor)[mode == "fan_out"]


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform numbers that keep the variance through rectifiers (He and others, 2015)."""
    if 0 in tensor.shape:
        return tensor
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normal numbers that keep the variance through rectifiers (He and others, 2015)."""
    if 0 in tensor.shape:
        return tensor
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)), generator)
