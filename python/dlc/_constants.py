"""Constants and layout names that programs written for PyTorch refer to."""

import math

inf = math.inf
nan = math.nan
pi = math.pi
e = math.e
newaxis = None

strided = "strided"
contiguous_format = "contiguous_format"
preserve_format = "preserve_format"
channels_last = "channels_last"

__all__ = ["channels_last", "contiguous_format", "e", "inf", "nan", "newaxis", "pi", "preserve_format", "strided"]
