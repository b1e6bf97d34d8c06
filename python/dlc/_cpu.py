"""Checks, before the extension is loaded, that the processor has the instructions it was compiled for."""

# The feature level x86-64-v3, by the names that Linux gives in /proc/cpuinfo (abm is lzcnt and popcnt's group).
_REQUIRED = ("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe")


def missing_features(cpuinfo: str) -> list[str]:
    """Required features that the text of /proc/cpuinfo does not list; empty if it lists no flags at all."""
    for line in cpuinfo.splitlines():
        if line.startswith("flags"):
            present = set(line.partition(":")[2].split())
            return [f for f in _REQUIRED if f not in present]
    return []


def require(path: str = "/proc/cpuinfo") -> None:
    """Raises ImportError on a processor older than x86-64-v3 (AVX2 and FMA; Intel since 2013, AMD since 2015)."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            missing = missing_features(file.read())
    except OSError:
        return  # not knowable here; the extension will find out
    if missing:
        raise ImportError(
            f"dlc needs a processor of the level x86-64-v3; this one lacks {', '.join(missing)}.\n"
            "Run it on a machine with AVX2 and FMA (Intel since Haswell, AMD since Excavator)."
        )
