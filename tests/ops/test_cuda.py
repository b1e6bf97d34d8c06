"""Every op through CUDA text: the graphs that dlc.compile makes of the samples, run on the CPU through the host shim.

A family's samples are compiled as one CUDA program; the tool compares each graph with the eager kernels on random data.
"""

import os
import subprocess
from collections import defaultdict
from pathlib import Path

import dlc
import pytest
from samples import LAYOUTS, MODE, SAMPLES, arguments, to_tensor, walk
from test_ops import REFUSED, dtypes_of, run

TOOL = Path(os.environ.get("DLC_BUILD_DIR", Path(__file__).parents[2] / "build")) / "bin" / "cuda-shim-run"
DTYPES = {
    "quick": ("f32",),
    "sample": ("f32", "i32"),
    "full": ("f32", "f64", "f16", "bf16", "u8", "i64", "i32", "bool"),
}


def families():
    rows = defaultdict(list)
    for row in SAMPLES:
        for dtype in dtypes_of(row):
            wanted = dtype in DTYPES[MODE] and (MODE == "full" or dtype == "f32" or row["kind"] == "elementwise")
            if wanted and (row["op"], row["index"], dtype) not in REFUSED:
                rows[row["kind"]].append((row, dtype))
    return sorted(rows.items())


def graphs_of(row, dtype, folder):
    """Compiles one sample and returns the dumped graphs, as they were captured."""
    args, kwargs = arguments(row, dtype)
    args = walk(args, lambda d: to_tensor(d, dtype, LAYOUTS[0]))
    kwargs = walk(kwargs, lambda d: to_tensor(d, dtype, LAYOUTS[0]))
    with dlc.config.patch(dump_dir=str(folder)):
        run(row, args, kwargs, "compiled")
    return sorted(folder.glob("*captured.mlir"))


@pytest.mark.slow
@pytest.mark.parametrize("kind, rows", [pytest.param(k, r, id=k) for k, r in families()])
def test_shim(kind, rows, tmp_path):
    files = []
    for row, dtype in rows:
        files += graphs_of(row, dtype, tmp_path / f"{row['op']}{row['index']}-{dtype}")
    done = subprocess.run([TOOL, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
