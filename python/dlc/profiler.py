"""dlc.profile: where the time of compiled code goes, step by step."""

import time
from dataclasses import dataclass

from dlc import _C


@dataclass
class Step:
    """Equal steps of all plans: their `calls`, `seconds` of all calls, and `bytes` and `flops` (0: not known) of one."""

    kind: str
    name: str
    ops: list
    shapes: str
    calls: int
    seconds: float
    bytes: int
    flops: int

    @property
    def gflops(self):
        """Thousand million floating-point operations a second."""
        return self.flops * self.calls / self.seconds * 1e-9 if self.seconds else 0.0

    @property
    def gigabytes(self):
        """Thousand million bytes a second, each operand counted once."""
        return self.bytes * self.calls / self.seconds * 1e-9 if self.seconds else 0.0


class profile:  # noqa: N801 (used like a function)
    """`with dlc.profile() as p:` times the steps of all compiled code that runs in the block; `print(p)` shows them.

    steps: the rows, the most expensive first. seconds: the whole block's, Python, guards and eager ops included.
    The clock is read before and after each step, which costs about 50 ns a step. One profile at a time.
    """

    def __init__(self):
        self.steps, self.seconds = [], 0.0

    def __enter__(self):
        _C._start_profile()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *error):
        self.seconds = time.perf_counter() - self._start
        self.steps = [Step(*row) for row in _C._take_profile()]

    def table(self, limit=40, calls=1):
        """The steps as text. calls: how often the function was called in the block; times are of one call."""
        total = sum(s.seconds for s in self.steps)
        rows = [("us", "share", "calls", "GFLOP/s", "GB/s", "kind", "step")]
        for s in self.steps[:limit]:
            rows.append(
                (
                    f"{s.seconds / calls * 1e6:.1f}",
                    f"{100 * s.seconds / total:.1f}%" if total else "-",
                    f"{s.calls / calls:g}",
                    f"{s.gflops:.1f}" if s.flops else "-",
                    f"{s.gigabytes:.1f}",
                    s.kind,
                    f"{s.name}: {_shortened(s.shapes)}",
                )
            )
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = ["  ".join([*(cell.rjust(w) for cell, w in zip(row, widths)), row[5].ljust(7), row[6]]) for row in rows]
        if len(self.steps) > limit:
            rest = sum(s.seconds for s in self.steps[limit:])
            lines.append(f"{len(self.steps) - limit} more steps: {rest / calls * 1e6:.1f} us")
        outside = self.seconds - total
        lines.append(f"steps {total / calls * 1e6:.1f} us, outside of them {outside / calls * 1e6:.1f} us")
        return "\n".join(lines)

    def __str__(self):
        return self.table()


def _shortened(text, length=150):
    return text if len(text) <= length else f"{text[: length - 3]}..."
