"""Every op through CUDA text: the graphs that dlc.compile makes of the samples, run on the CPU through the host shim.

A family's samples are compiled as one CUDA program; the tool compares each graph with the eager kernels on random data.
"""

import importlib.util
import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import dlc
import numpy as np
import pytest
from samples import LAYOUTS, MODE, SAMPLES, arguments, to_tensor, walk
from test_ops import REFUSED, dtypes_of, run

ROOT = Path(__file__).parents[2]
BIN = Path(os.environ.get("DLC_BUILD_DIR", ROOT / "build")) / "bin"
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


def run_in_shim(files):
    done = subprocess.run([BIN / "cuda-shim-run", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind, rows", [pytest.param(k, r, id=k) for k, r in families()])
def test_shim(kind, rows, tmp_path):
    files = []
    for row, dtype in rows:
        files += graphs_of(row, dtype, tmp_path / f"{row['op']}{row['index']}-{dtype}")
    run_in_shim(files)


def small_gpt():
    """The example's training step with one small layer, and a batch."""
    spec = importlib.util.spec_from_file_location("chargpt", ROOT / "examples" / "chargpt.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.LAYERS, example.WIDTH, example.HEADS, example.BATCH, example.CONTEXT = 1, 32, 2, 2, 16
    tokens = dlc.from_numpy(np.random.default_rng(0).integers(0, 60, (2, 17)))
    return example.make_step(*example.setup(60)), tokens[:, :-1].clone(), tokens[:, 1:].clone()


@pytest.mark.slow
def test_train_step(tmp_path):
    """A whole step of the GPT, forward to optimizer: equal through the shim, and a cubin with next to no spills.
    Products are the library's on a GPU."""
    step, x, y = small_gpt()
    with dlc.config.patch(dump_dir=str(tmp_path), contract=0):
        dlc.compile(step)(x, y)
    run_in_shim(sorted(tmp_path.glob("*captured.mlir")))
    (fused,) = tmp_path.glob("*fused.mlir")
    for arch in ("sm_80", "sm_90"):
        command = [BIN / "dlc-translate", "--emit-cuda", f"--arch={arch}", f"--nvrtc-env={ROOT / '.venv'}", fused]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        usage = re.findall(r"(\w+): (\d+) registers, (\d+) bytes spilled", done.stdout)
        assert len(usage) > 10
        for kernel, registers, spilled in usage:
            assert int(registers) <= 128 and int(spilled) <= 64, f"{arch} {kernel}: {registers}, {spilled}"
