# lit suite: .mlir files run through the tools of one build (DLC_BUILD, default build/) and FileCheck.
import os

import lit.formats

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
build = os.environ.get("DLC_BUILD", os.path.join(root, "build"))
llvm = os.environ.get("DLC_LLVM_ROOT", "/usr/lib/llvm-19")

config.name = "dlc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(build, "lit")
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(build, "bin"), os.path.join(llvm, "bin"), os.environ["PATH"]]
)
config.environment["DLC_CACHE_DIR"] = os.path.join(build, "lit", "cache")
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.substitutions.append(("%python", os.path.join(root, ".venv", "bin", "python")))
config.substitutions.append(("%root", root))
