"""Special functions under their names in PyTorch."""

from dlc import _C
from dlc._C import expm1, log1p, log_softmax, logsumexp, softmax

__all__ = ["erf", "expit", "expm1", "log1p", "log_softmax", "logsumexp", "softmax"]

erf = _C.erf
expit = _C.sigmoid
