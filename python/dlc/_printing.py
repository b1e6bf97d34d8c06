"""Text of tensors in PyTorch's form: tensor([[1., 2.], [3., 4.]], dtype=..., grad_fn=<...>)."""

import math

from dlc import _C

_options = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, sci_mode=None, profile=None):
    """Sets how tensors are printed; None leaves a setting as it is."""
    if profile == "default":
        _options.update(precision=4, threshold=1000, edgeitems=3, linewidth=80, sci_mode=None)
    if profile == "full":
        _options.update(threshold=math.inf)
    if profile == "short":
        _options.update(precision=2, edgeitems=2)
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
        "sci_mode": sci_mode,
    }
    _options.update({k: v for k, v in given.items() if v is not None})


class _Formatter:
    """Chooses one width and notation for all shown values of a tensor."""

    def __init__(self, values, floating):
        self.floating = floating
        self.sci = False
        self.whole = True
        precision = _options["precision"]
        if not floating:
            self.width = max((len(str(v)) for v in values), default=1)
            return
        finite = [v for v in values if math.isfinite(v) and v != 0]
        self.whole = all(v == math.ceil(v) for v in values if math.isfinite(v))
        if finite:
            small, large = min(map(abs, finite)), max(map(abs, finite))
            if self.whole:
                self.sci = large / small > 1000.0 or large > 1.0e8
            else:
                self.sci = large / small > 1000.0 or large > 1.0e8 or small < 1.0e-4
            if self.whole and large <= 1.0e8:
                self.sci = large / small > 1000.0
        if _options["sci_mode"] is not None:
            self.sci = _options["sci_mode"]
        self.precision = precision
        self.width = max((len(self._text(v)) for v in values), default=1)

    def _text(self, value):
        if not self.floating:
            return str(value)
        if not math.isfinite(value):
            return str(value)
        if self.sci:
            return f"{value:.{self.precision}e}"
        if self.whole:
            return f"{value:.0f}."
        return f"{value:.{self.precision}f}"

    def __call__(self, value):
        return self._text(value).rjust(self.width)


def _shown(t):
    """The tensor with the middles of long dimensions cut out, and which dimensions were cut."""
    edge = _options["edgeitems"]
    if t.numel() <= _options["threshold"]:
        return t.tolist(), [False] * t.dim()
    cut = [size > 2 * edge for size in t.shape]
    for d, c in enumerate(cut):
        if c:
            t = _C.cat([t.narrow(d, 0, edge), t.narrow(d, t.shape[d] - edge, edge)], d)
    return t.tolist(), cut


def _flat(values):
    if isinstance(values, list):
        for v in values:
            yield from _flat(v)
    else:
        yield values


def _nested(values, cut, formatter, indent):
    if not isinstance(values, list):
        return formatter(values)
    edge = _options["edgeitems"]
    if not values or not isinstance(values[0], list):
        items = [formatter(v) for v in values]
        if cut[0]:
            items = items[:edge] + [" ..."] + items[edge:]
        per_line = max(1, (_options["linewidth"] - indent) // (formatter.width + 2))
        lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    items = [_nested(v, cut[1:], formatter, indent + 1) for v in values]
    if cut[0]:
        items = items[:edge] + ["..."] + items[edge:]
    depth = len(cut) - 1
    return "[" + ("," + "\n" * depth + " " * (indent + 1)).join(items) + "]"


def tensor_text(t):
    """What print(t) shows."""
    with _C.no_grad():
        data = t.detach()
        floating = data.is_floating_point()
        if data.dtype in (_C.float16, _C.bfloat16):
            data = data.float()
        values, cut = _shown(data)
    name = "Parameter containing:\n" if type(t).__name__ == "Parameter" else ""
    prefix = "tensor("
    formatter = _Formatter(list(_flat(values)), floating)
    suffixes = []
    default = _C.get_default_dtype()
    if data.numel() == 0:
        body = "[]" if t.dim() == 1 else "[]"
        if t.dim() != 1:
            suffixes.append(f"size={tuple(t.shape)}")
        if t.dtype != default:
            suffixes.append(f"dtype={t.dtype}")
    else:
        body = _nested(values, cut, formatter, len(prefix))
        if t.dtype not in (default, _C.int64, _C.bool):
            suffixes.append(f"dtype={t.dtype}")
    node = t.grad_fn
    if node is not None:
        suffixes.append(f"grad_fn=<{node.name()}>")
    elif t.requires_grad:
        suffixes.append("requires_grad=True")
    text = prefix + body
    if suffixes:
        last = text.rfind("\n") + 1
        extra = ", ".join(suffixes)
        if len(text) - last + 2 + len(extra) + 1 > _options["linewidth"]:
            text += ",\n" + " " * len(prefix) + extra
        else:
            text += ", " + extra
    return name + text + ")"
