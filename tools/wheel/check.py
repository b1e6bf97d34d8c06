"""./dev wheel --check: the wheel in dist/ in a bare virtual environment, with no compiler or linker on the PATH.

Checks what the extension exports and links, and trains an MLP compiled. Needs ldd and nm itself, the wheel does not.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def output(*command: str, **options) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def main() -> None:
    wheel = max((ROOT / "dist").glob("dlc-*.whl"), key=lambda p: p.stat().st_mtime)
    with tempfile.TemporaryDirectory() as folder:
        python = f"{folder}/venv/bin/python"
        output(sys.executable, "-m", "venv", f"{folder}/venv")
        output(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
        extension = str(next(Path(folder).glob("venv/lib/python3*/site-packages/dlc/_C*.so")))
        exports = [line.split()[-1] for line in output("nm", "-D", "--defined-only", extension).splitlines()]
        libraries = [line.split()[0] for line in output("ldd", extension).splitlines()]
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, exports {' '.join(exports)}")
        print("links", " ".join(libraries))
        assert exports == ["PyInit__C"], "the extension exports more than its init function"
        assert not any(word in lib for lib in libraries for word in ("LLVM", "MLIR", "omp")), libraries
        bare = {"PATH": "/nonexistent", "HOME": folder}
        print(output(python, str(ROOT / "tools" / "wheel" / "train.py"), env=bare, cwd=folder), end="")


if __name__ == "__main__":
    main()
