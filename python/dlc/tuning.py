"""What the tuner found out about this machine, as a file to keep or ship.

`dlc.compile(f, mode="max-autotune")`, or `options={"tuning_seconds": 5}`, measures other schedules of the kernels of each
graph, the dearest kernels first, and keeps those that are reliably faster in the persistent cache. Compilations of every
mode use what was found, in later processes too; only those with a budget measure. An entry holds for one kernel with
sizes of one class on one kind of processor with as many threads, and for one version of the compiler.
"""

import json

from dlc import _C

__all__ = ["export", "load"]

_FORMAT = "dlc tuning file"


def export(path):
    """Writes all entries of the persistent cache and of this process as a text file; returns how many they are."""
    entries = [{"key": key.split("\n"), "value": value.split("\n")} for key, value in _C._tuning_entries()]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"format": _FORMAT, "version": 1, "entries": entries}, file, indent=1)
        file.write("\n")
    return len(entries)


def load(path):
    """Takes the entries of an exported file for what this process compiles from now on; returns how many fit.

    Those of other processors, thread counts or versions are left out, with a warning that says what they were made for.
    """
    with open(path, encoding="utf-8") as file:
        entries = _entries(path, file.read())
    foreign = [key for key, value in entries if not _C._tuning_load(key, value)]
    if foreign:
        _warn(path, foreign, len(entries))
    return len(entries) - len(foreign)


def _entries(path, text):
    try:
        content = json.loads(text)
        if content["format"] != _FORMAT or content["version"] != 1:
            raise ValueError
        return [("\n".join(entry["key"]), "\n".join(entry["value"])) for entry in content["entries"]]
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"dlc.tuning.load: {path} is no tuning file\ngive a file that dlc.tuning.export wrote"
        ) from None


def _warn(path, foreign, total):
    import warnings

    here = _C._tuning_host().rstrip("\n").split("\n")
    there = foreign[0].split("\n")[: len(here)]
    differs = [f"`{b}` and not `{a}`" for a, b in zip(here, there) if a != b] or ["its text can't be read"]
    warnings.warn(
        f"dlc.tuning.load: {len(foreign)} of {total} entries of {path} are not for this process and were left out: "
        f"the first was made for {'; '.join(differs)}",
        stacklevel=3,
    )
