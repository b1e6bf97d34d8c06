"""The check of the processor's features, on made-up /proc/cpuinfo texts; it runs without the extension."""

import importlib.util
from pathlib import Path

import pytest

_PATH = Path(__file__).resolve().parents[2] / "python" / "dlc" / "_cpu.py"
_SPEC = importlib.util.spec_from_file_location("dlc_cpu_check", _PATH)
cpu = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(cpu)

V3 = "fpu sse4_2 avx avx2 bmi1 bmi2 f16c fma abm movbe"


def test_old_processor_is_refused_with_what_it_lacks(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nflags\t\t: fpu sse4_2 avx abm movbe f16c bmi1 bmi2\n")
    with pytest.raises(ImportError, match="lacks avx2, fma"):
        cpu.require(str(info))


def test_v3_processor_passes(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text(f"flags\t\t: {V3} avx512f\n")
    cpu.require(str(info))


def test_unknown_machine_is_not_refused(tmp_path):
    cpu.require(str(tmp_path / "absent"))
