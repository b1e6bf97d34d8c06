"""Shrinks a program while it keeps failing in the same way: lines, results and inputs go one at a time."""

import dataclasses

from tests.fuzz.compare import Difference, check_program


def verdict(program):
    """What is wrong with a program: "different", the first fallback's reason, or None."""
    try:
        return (check_program(program)["reasons"] or [None])[0]
    except Difference:
        return "different"
    except Exception:
        return "broken"


def rebuilt(program, lines, results):
    head = program.source.splitlines()[0]
    source = "\n".join([head, *lines, "    return ({},)".format(", ".join(name for name, _ in results))]) + "\n"
    return dataclasses.replace(program, source=source, exact=[exact for _, exact in results])


def minimize(program):
    """(smallest program found, verdict) for a program that fails; the program itself if it doesn't."""
    what = verdict(program)
    if what in (None, "broken"):
        return program, what
    lines = program.source.splitlines()[1:-1]
    names = program.source.splitlines()[-1].split("(")[1].split(")")[0].split(",")
    results = [(n.strip(), e) for n, e in zip([n for n in names if n.strip()], program.exact)]
    if not what.startswith("different"):
        what = what[:60]

    def fails(candidate):
        last = candidate.source.splitlines()[-1]
        made = [line.split("=")[0].strip() for line in candidate.source.splitlines()] + [f"x{i}" for i in range(9)]
        if not all(name.strip() in made for name in last.split("(")[1].split(")")[0].split(",") if name.strip()):
            return False
        found = verdict(candidate)
        return found is not None and found[:60] == what

    changed = True
    while changed:
        changed = False
        for part in (results, lines):
            for i in reversed(range(len(part))):
                kept = part[:i] + part[i + 1 :]
                trial = (lines, kept) if part is results else (kept, results)
                if (part is lines or kept) and fails(rebuilt(program, *trial)):
                    part[:] = kept
                    changed = True
    return rebuilt(program, lines, results), what
