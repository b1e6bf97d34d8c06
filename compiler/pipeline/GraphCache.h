// Whole compiled graphs in the persistent cache: a warm process builds the launch plan and links object code, and runs
// no pass. Free of MLIR.
#pragma once
#include "compiler/api/CompiledKernel.h"
#include "compiler/api/Executable.h"
#include <optional>

namespace dlc::compiler {

/// What an entry of `graph` (bytes that say all about it, see graphBytes) is found by: with the build, the processor,
/// the options and the knobs. Empty: this compilation is to use no entry.
std::string graphSource(const std::string &graph, const CompileOptions &options);

/// The compiled graph of `source`, or null. `symbols`: the hints of its symbols. Facts that compiling it recorded are
/// recorded again.
std::shared_ptr<Executable> loadGraph(const std::string &source, Ints symbols);

/// Keeps `executable`, whose plan calls `kernels`; `facts` is what compiling recorded. Nothing is kept of plans that
/// hold what does not travel.
void storeGraph(const std::string &source, const Executable &executable, const std::vector<CompiledKernel> &kernels,
                const std::vector<Fact> &facts);

/// Other data in the same cache, by what it was made from; the build is part of the key.
std::optional<std::string> loadData(const std::string &source);
void storeData(const std::string &source, const std::string &data);

/// Records facts in the sink of this thread, as the comparisons did that they came from.
void recordFacts(const std::vector<Fact> &facts, Ints symbols);

} // namespace dlc::compiler
