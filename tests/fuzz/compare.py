"""Runs one program eagerly and compiled and compares everything that can be seen: results, sharing, bases, gradients."""

import dlc
import numpy as np

EPS = {dlc.float64: 2.3e-16, dlc.float32: 1.2e-7, dlc.float16: 1e-3, dlc.bfloat16: 8e-3}


class Difference(AssertionError):
    """Eager and compiled don't agree."""


def array(t):
    t = t.detach()
    return (t.float() if t.dtype == dlc.bfloat16 else t).numpy()


def span(t):
    """First and last byte of a tensor's elements."""
    size = t.element_size()
    reach = sum((n - 1) * s for n, s in zip(t.shape, t.stride())) if t.numel() else -1
    return t.data_ptr(), t.data_ptr() + (reach + 1) * size


def sharing(tensors):
    """Which pairs of tensors overlap in memory."""
    spans = [span(t) for t in tensors]
    pairs = [(i, j) for i in range(len(spans)) for j in range(i)]
    return [(i, j) for i, j in pairs if spans[i][0] < spans[j][1] and spans[j][0] < spans[i][1]]


class Run:
    """One execution: the exception or the results, the bases afterwards, the gradients of the float bases."""

    def __init__(self, function, program, call, dtype=None):
        self.bases, inputs = program.make(call, dtype)
        self.error, self.results, self.grads, self.backward_error = None, (), [], None
        try:
            self.results = function(*inputs)
        except Exception as error:
            self.error = error
            return
        self.shared = sharing([*self.results, *inputs])
        if program.backward:
            self.run_backward()

    def run_backward(self):
        loss = None
        for t in self.results:
            if t.requires_grad and t.dtype.is_floating_point and t.numel():
                part = (t.double() * 0.5).sum()
                loss = part if loss is None else loss + part
        if loss is None:
            return
        try:
            loss.backward()
        except Exception as error:
            self.backward_error = error
            return
        self.grads = [b.grad for b in self.bases if b.requires_grad]


def same_bits(a, b):
    a, b = array(a), array(b)
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    nan = np.isnan(b)
    return (
        np.array_equal(np.isnan(a), nan)
        and np.array_equal(a[~nan], b[~nan])
        and np.array_equal(np.signbit(a[~nan]), np.signbit(b[~nan]))
    )


def close(got, want, reference):
    """Not much farther from the float64 reference than eager is, with norm-wise slack for another order of summation."""
    a, b = array(got).astype(np.float64), array(want).astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        limit = {dlc.float16: 6e4, dlc.bfloat16: 3e38, dlc.float32: 3e38, dlc.float64: 1e308}[want.dtype]
        odd = np.isfinite(a) != np.isfinite(b)
        return bool((np.maximum(np.nan_to_num(np.abs(a[odd])), np.nan_to_num(np.abs(b[odd]))) > limit * 0.5).all())
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return False
    scale = np.abs(b[finite]).max(initial=0.0)
    # A gradient may be what is left of terms that cancel: of the size of rounding errors of numbers around 1.
    slack = 64 * EPS[want.dtype] * max(scale, 1.0)
    if reference is not None and tuple(reference.shape) == tuple(want.shape):
        r = array(reference).astype(np.float64)
        both = finite & np.isfinite(r)
        slack += 16 * np.abs(b[both] - r[both]).max(initial=0.0)
    return bool((np.abs(a[finite] - b[finite]) <= slack + 64 * EPS[want.dtype] * np.abs(b[finite])).all())


def compare_tensor(what, got, want, exact, reference=None):
    for field in ("dtype", "shape", "requires_grad"):
        if getattr(got, field) != getattr(want, field):
            raise Difference(f"{what}: {field} {getattr(got, field)} instead of {getattr(want, field)}")
    moved = [i for i, n in enumerate(want.shape) if n > 1]
    if want.numel() and [got.stride(i) for i in moved] != [want.stride(i) for i in moved]:
        raise Difference(f"{what}: strides {got.stride()} instead of {want.stride()}")
    if same_bits(got, want):
        return
    if exact or not want.dtype.is_floating_point or not close(got, want, reference):
        rule = "bit for bit" if exact else "within tolerance"
        raise Difference(f"{what} not equal {rule}:\n{array(got)}\ninstead of\n{array(want)}")


def compare_runs(program, got, want, reference):
    if (got.error is None) != (want.error is None) or type(got.error) is not type(want.error):
        raise Difference(f"outcome {got.error!r} instead of {want.error!r}")
    ref_ok = reference is not None and reference.error is None
    for i, (a, b) in enumerate(zip(got.results, want.results)):
        compare_tensor(f"result {i}", a, b, program.exact[i], reference.results[i] if ref_ok else None)
    # An op that fails on its data (division by zero) takes the writes recorded with it along: an exception's class is
    # compared then, not the bases. What is exact in the program is exact in its bases.
    for i, (a, b) in enumerate(zip(got.bases, want.bases) if want.error is None else ()):
        compare_tensor(f"base {i}", a, b, all(program.exact), reference.bases[i] if ref_ok else None)
    if want.error is None and got.shared != want.shared:
        raise Difference(f"tensors sharing memory: {got.shared} instead of {want.shared}")
    if type(got.backward_error) is not type(want.backward_error):
        raise Difference(f"backward: {got.backward_error!r} instead of {want.backward_error!r}")
    for i, (a, b) in enumerate(zip(got.grads, want.grads)):
        if (a is None) != (b is None):
            raise Difference(f"gradient {i}: {a} instead of {b}")
        if a is not None:
            compare_tensor(f"gradient {i}", a, b, False, reference.grads[i] if ref_ok and reference.grads else None)


def check_program(program):
    """Three compiled calls (two of the first size, one of the second) against eager. Returns how the counters moved."""
    function = program.function()
    compiled = dlc.compile(program.function())
    before = dlc.compile_stats()
    for call in (0, 0, 1):
        want = Run(function, program, call)
        reference = None
        if not all(program.exact) or program.backward:
            reference = Run(program.function(wide=True), program, call, dlc.float64)
        # Read before the compiled run: nothing the two runs share may be written in between.
        got = Run(compiled, program, call)
        compare_runs(program, got, want, reference)
    after = dlc.compile_stats()
    counts = {name: after[name] - before[name] for name in ("compilations", "breaks", "fallbacks")}
    events = compiled.events() if counts["fallbacks"] else []
    return counts | {"reasons": sorted({short(e["text"]) for e in events if e["kind"] == "fallback"})}


def short(reason):
    """A reason without the lines that differ from program to program."""
    return " ".join(line for line in reason.splitlines() if line and not line.startswith("Repeat with"))
