// Every environment variable that dlc reads, as one typed table.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace dlc {

/// X(C++ name, type, default, environment variable, documentation)
#define DLC_FOR_EACH_KNOB(X)                                                                                           \
  X(logs, std::string, "", "DLC_LOGS",                                                                                 \
    "comma-separated: graph, guards, recompiles, breaks, fusion, compile_time, tuning, or all")                        \
  X(dumpDir, std::string, "", "DLC_DUMP_DIR", "write one numbered file a compiler phase into this folder")             \
  X(mode, std::string, "full", "DLC_MODE", "eager | interpret | no_fuse | full: how far compiled functions go")        \
  X(replay, bool, true, "DLC_REPLAY", "learn programs that replay calls without Python; 0: always trace")              \
  X(fusionFuel, int64_t, -1, "DLC_FUSION_FUEL", "stop fusing after this many merges (-1: no limit)")                   \
  X(cacheDir, std::string, "", "DLC_CACHE_DIR", "persistent cache (default: $XDG_CACHE_HOME/dlc or ~/.cache/dlc)")     \
  X(cacheLimitMb, int64_t, 1024, "DLC_CACHE_LIMIT_MB", "size limit of the persistent cache; 0 turns it off")           \
  X(compileThreads, int64_t, 0, "DLC_COMPILE_THREADS", "threads that compile kernels (0: as many as compute threads)") \
  X(tuningSeconds, int64_t, 10, "DLC_TUNING_SECONDS", "what mode=\"max-autotune\" may measure for each graph")         \
  X(numThreads, int64_t, 0, "DLC_NUM_THREADS", "compute threads (0: affinity mask and cgroup quota)")                  \
  X(nvrtc, std::string, "", "DLC_NVRTC", "path of the NVRTC library (default: what the system's loader finds)")        \
  X(gemmIsa, std::string, "", "DLC_GEMM_ISA", "avx2: library and generated code without AVX-512, to compare")          \
  X(contract, int64_t, -1, "DLC_CONTRACT",                                                                             \
    "matrix products as generated kernels: -1 where they are expected to be faster, 0 never, 1 wherever possible")     \
  X(audit, int64_t, 0, "DLC_AUDIT", "run Python at each n-th replayed call and compare (0: never)")                    \
  X(verboseErrors, bool, false, "DLC_VERBOSE_ERRORS", "show the compiler's own stack in errors")                       \
  X(fault, std::string, "", "DLC_FAULT",                                                                               \
    "for tests: fail on purpose in `compile` (of a graph), `run` (of its code) or a phase of the compiler")            \
  X(plantBug, std::string, "", "DLC_PLANT_BUG", "for the fuzzer's own test: miscompile this op on purpose")

/// The values read at first use. `knobs()` may be changed by tests and by dlc.config.
struct Knobs {
#define DLC_X(name, type, def, env, doc) type name = def;
  DLC_FOR_EACH_KNOB(DLC_X)
#undef DLC_X
};
Knobs &knobs();
/// Why `value` is not allowed for the knob of that C++ name; empty if it is.
std::string knobFault(const std::string &name, const std::string &value);
std::string knobFault(const std::string &name, int64_t value);
inline std::string knobFault(const std::string &, bool) { return {}; }
/// One line a knob: variable, value, documentation.
std::string describeKnobs();
/// True if DLC_LOGS names `topic` (or all).
bool logEnabled(const char *topic);
/// Writes "[dlc topic] text" to stderr.
void logLine(const char *topic, const std::string &text);
/// Warns on stderr, once per distinct text.
void warnOnce(const std::string &text);
/// Replaces how warnings are shown (Python's warnings module).
void setWarningSink(void (*sink)(const std::string &text));

} // namespace dlc
