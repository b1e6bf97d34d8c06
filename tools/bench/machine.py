"""What the machine can do, measured, and whether it is ours alone just now."""

import os
import statistics
import time

GIGABYTE = 1e9


def measure(threads):
    """FMA peaks in GFLOP/s and bandwidths in GB/s, of one core and of `threads`: {"fma": {...}, "levels": [...]}."""
    import dlc
    from dlc import _C

    dlc.set_num_threads(threads)
    l2, l3 = _C._cache_bytes(2) or 1 << 20, _C._cache_bytes(3) or 32 << 20
    # A third of L3, but no more than a virtual machine may hope for of a cache it shares.
    sizes = {"L2": l2 // 2 * threads, "L3": min(l3 // 3, 24 << 20), "memory": min(2 * l3, 1 << 30)}
    limits = {"L2": l2 * threads, "L3": l3, "memory": None}
    levels = []
    for name, size in sizes.items():
        rates = {
            f"{what} {count}": _C._bandwidth(
                size if count == threads or name != "L2" else size // threads, copy, count > 1
            )
            for what, copy in (("read", False), ("copy", True))
            for count in dict.fromkeys((1, threads))
        }
        levels.append({"level": name, "holds": limits[name], **rates})
    return {
        "threads": threads,
        "fma": {str(count): fma_peak(count) for count in dict.fromkeys((1, threads))},
        "levels": levels,
    }


def fma_peak(threads):
    from dlc import _C

    return _C._fma_peak(threads > 1)


def describe(machine):
    """The measurements as a few lines."""
    threads = machine["threads"]
    one, together = machine["fma"]["1"], machine["fma"][str(threads)]
    lines = [f"FMA peak, GFLOP/s: {one:.0f} a core, {together:.0f} on {threads} threads"]
    for level in machine["levels"]:
        rates = ", ".join(
            f"{what} {level[f'{what} 1']:.0f} a core, {level[f'{what} {threads}']:.0f} on {threads} threads"
            for what in ("read", "copy")
        )
        lines.append(f"{level['level']}, GB/s: {rates}")
    return "\n".join(lines)


def bound(machine, flops, size, footprint, threads):
    """Seconds that the machine needs at least for `flops` operations and `size` bytes, and which of both decides.

    footprint: bytes that the whole program goes over in a call; they decide in which cache a kernel finds its operands.
    """
    level = next(v for v in machine["levels"] if v["holds"] is None or footprint <= v["holds"])
    rate = max(level[f"read {threads}"], level[f"copy {threads}"])
    compute, memory = flops / (machine["fma"][str(threads)] * 1e9), size / (rate * GIGABYTE)
    return max(compute, memory), "FMA" if compute > memory else level["level"]


# --- is anybody else at work?

MOST_OTHERS = 0.05  # of one core
MOST_LOAD = 0.5  # a core, the average of a minute; only before this program itself has worked
MOST_SPREAD = 0.05  # (median - smallest) / smallest of equal loops
LEAST_SCALING = 0.9  # FMA peak of all threads, a thread, beside that of one


def verdict(sample):
    """Why a sample is not that of a quiet machine; empty if it is.

    sample: "others" (cores that other processes used), "load" (or None), "cores", "spread", "scaling" (or None).
    """
    reasons = []
    if sample["others"] > MOST_OTHERS:
        reasons.append(f"other processes used {sample['others']:.2f} cores (at most {MOST_OTHERS:g} allowed)")
    if sample["load"] is not None and sample["load"] > MOST_LOAD * sample["cores"]:
        reasons.append(
            f"the load average of the last minute is {sample['load']:.2f} on {sample['cores']} cores (at most "
            f"{MOST_LOAD * sample['cores']:g} allowed)"
        )
    if sample["spread"] > MOST_SPREAD:
        reasons.append(
            f"equal loops differ by {100 * sample['spread']:.0f} % from their best (at most {100 * MOST_SPREAD:g} % allowed)"
        )
    if sample["scaling"] is not None and sample["scaling"] < LEAST_SCALING:
        reasons.append(
            f"all threads together reach {sample['scaling']:.2f} of the FMA peak of one times their number (at least "
            f"{LEAST_SCALING:g} wanted)"
        )
    return reasons


def sample(threads, seconds=1.0, with_load=True):
    """What `verdict` judges, of the next `seconds`."""
    import dlc

    dlc.set_num_threads(threads)
    before, start = _busy(), time.perf_counter()
    time.sleep(seconds)
    others = (_busy() - before) / (time.perf_counter() - start)
    one = [fma_peak(1) for _ in range(9)]
    scaling = max(fma_peak(threads) for _ in range(5)) / (threads * max(one)) if threads > 1 else None
    return {
        "others": max(0.0, others),
        "load": os.getloadavg()[0] if with_load else None,
        "cores": len(os.sched_getaffinity(0)),
        "spread": (max(one) - statistics.median(one)) / statistics.median(one),
        "scaling": scaling,
    }


def _busy():
    """Seconds that processes other than this one have had cores since the start of the system."""
    with open("/proc/stat") as file:
        user, nice, system, _idle, _wait, irq, soft, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK") - time.process_time()
