"""Checks that no compiler makes: layers, sizes, generated files, formatting.

`./dev lint` runs all of it; `lint.py --layers` only the layers, which ctest does. Sizes are reported, not enforced.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CPP = (".cpp", ".h", ".inc")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
MLIR_HEADER = re.compile(r"^(mlir|llvm|mlir-c|llvm-c)/")


def tracked(*suffixes: str) -> list[Path]:
    """Files of the tree with one of the suffixes: git's list, new files included, or all but build folders."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        found = (p.relative_to(ROOT) for p in ROOT.rglob("*"))
        names = [p.as_posix() for p in found if not p.parts[0].startswith((".", "build", "dist"))]
    return [Path(n) for n in sorted(set(names)) if n.endswith(suffixes) and (ROOT / n).is_file()]


def under(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(prefix + "/")


def rule_for(folder: str, rules: dict) -> tuple[str, list[str], bool] | None:
    """(prefix, allowed include prefixes, MLIR allowed) of the longest prefix that covers the folder."""
    if under(folder, "tests"):
        tests = rules["tests"]
        return "tests", tests["allow"], any(under(folder, p) for p in tests["mlir"])
    matches = [p for p in rules if p != "tests" and under(folder, p)]
    if not matches:
        return None
    best = max(matches, key=len)
    return best, [best, *rules[best]], "mlir" in rules[best]


def check_layers(config: dict) -> list[str]:
    rules = config["layers"]
    tops = {p.split("/")[0] for p in rules}
    faults = []
    for path in tracked(*CPP):
        rule = rule_for(path.parent.as_posix(), rules)
        if rule is None:
            faults.append(f"{path}: no layer of tools/lint/layers.toml covers this folder")
            continue
        prefix, allowed, mlir = rule
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            header = match[2]
            if MLIR_HEADER.match(header):
                if not mlir:
                    faults.append(f"{path}:{number}: {prefix} may not include MLIR or LLVM ({header})")
            elif header.split("/")[0] in tops and not any(under(header, a) for a in allowed):
                faults.append(f"{path}:{number}: {prefix} may not include {header}")
    return faults


def function_lengths(text: str):
    """(first line, length, name) of C++ bodies at namespace level, by clang-format's layout."""
    start, name = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if line and not line[0].isspace() and line.endswith("{") and "(" in line:
            if not line.startswith(("namespace", "extern", "class", "struct", "enum")):
                start, name = number, line
        elif line.startswith("}") and start:
            yield start, number - start + 1, name
            start = 0


def report_sizes(config: dict) -> None:
    limits = config["sizes"]
    large, total = [], 0
    folders: dict[str, int] = {}
    for path in tracked(".cpp", ".h", ".py", ".td"):
        text = (ROOT / path).read_text(encoding="utf-8")
        lines = text.count("\n")
        total += lines
        folders[path.parent.as_posix()] = folders.get(path.parent.as_posix(), 0) + 1
        if lines > limits["file_lines"]:
            large.append(f"{path}: {lines} lines")
        if path.suffix in (".cpp", ".h"):
            for start, length, name in function_lengths(text):
                if length > limits["function_lines"]:
                    large.append(f"{path}:{start}: {length} lines in {name[:80]}")
    large += [f"{f}: {n} files" for f, n in sorted(folders.items()) if n > limits["folder_files"]]
    print(f"sizes: {total} lines in {sum(folders.values())} files; larger than aimed at: {len(large)}")
    for line in large:
        print(f"  {line}")


def run(name: str, command: list[str], keep: str = "") -> list[str]:
    """Complaints of a command that failed: the lines that contain `keep`."""
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if result.returncode == 0:
        return []
    lines = [line for line in (result.stdout + result.stderr).splitlines() if keep in line]
    return [f"{name}:", *("  " + line for line in lines[-40:])]


def check_format() -> list[str]:
    cpp = [str(p) for p in tracked(".cpp", ".h")]
    ruff = str(ROOT / ".venv/bin/ruff")
    python = [d for d in ("python", "tests", "tools", "examples") if (ROOT / d).is_dir()]
    return (
        run("clang-format", ["clang-format-19", "--dry-run", "-Werror", "--ferror-limit=1", *cpp], ": error:")
        + run("ruff format", [ruff, "format", "--check", "--quiet", *python])
        + run("ruff check", [ruff, "check", "--output-format=concise", *python])
    )


def check_generated() -> list[str]:
    return run("generated files", ["ninja", "-C", "build", "--quiet", "opgen-check"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", action="store_true", help="only the layers")
    args = parser.parse_args()
    config = tomllib.loads((ROOT / "tools/lint/layers.toml").read_text(encoding="utf-8"))
    faults = check_layers(config)
    if not args.layers:
        report_sizes(config)
        faults += check_generated() + check_format()
    for fault in faults:
        print(fault)
    print("lint: clean" if not faults else f"lint: {len(faults)} lines of complaint")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
