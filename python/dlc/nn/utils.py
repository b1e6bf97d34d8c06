"""Gradient clipping and flat views of parameters. Nothing here reads a value, so nothing waits for a computation."""

import math

from dlc import _C
from dlc._C import Tensor, no_grad

__all__ = ["clip_grad_norm_", "clip_grad_value_", "get_total_norm", "parameters_to_vector", "vector_to_parameters"]


def _gradients(parameters):
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    return [p.grad for p in parameters if p.grad is not None]


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all elements of all tensors, as a 0-d tensor."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not tensors:
        return _C.tensor(0.0)
    with no_grad():
        total = _C.optim_functional.total_norm(tensors, float(norm_type))
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(f"The total norm of order {norm_type} for gradients is non-finite, so it cannot be clipped.")
    return total


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales all gradients so that a total norm above `max_norm` becomes it; returns the norm before."""
    grads = _gradients(parameters)
    if not grads:
        return _C.tensor(0.0)
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    with no_grad():
        _C.optim_functional.clip_by_norm(grads, total, max_norm)
    return total


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Limits every element of the gradients to [-clip_value, clip_value]."""
    with no_grad():
        for grad in _gradients(parameters):
            grad.clamp_(min=-clip_value, max=clip_value)


def parameters_to_vector(parameters):
    """All parameters as one vector."""
    return _C.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Lets each parameter view its part of `vec`."""
    at = 0
    for p in parameters:
        n = p.numel()
        p.data = vec[at : at + n].view_as(p).data
        at += n
