"""Times calls in turns, so that a change of the machine's speed hits all candidates alike."""

import statistics
import time

REST = 0.03  # seconds between candidates, in which their threads stop spinning


def interleave(calls, rounds, slice_seconds):
    """Times zero-argument calls in turns: {name: {"median", "min", "samples", "calls"}} in seconds a call."""
    counts, times = {}, {name: [] for name in calls}
    for name, call in calls.items():
        call()
        start = time.perf_counter()
        call()
        counts[name] = max(1, int(slice_seconds / max(time.perf_counter() - start, 1e-7)))
    for _ in range(rounds):
        for name, call in calls.items():
            time.sleep(REST)
            call()
            start = time.perf_counter()
            for _ in range(counts[name]):
                call()
            times[name].append((time.perf_counter() - start) / counts[name])
    return {
        name: {"median": statistics.median(t), "min": min(t), "samples": t, "calls": counts[name] * rounds}
        for name, t in times.items()
    }
