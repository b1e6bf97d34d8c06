// Compiles kernels given as text and runs them on arrays.
#ifndef DLC_TESTS_UNIT_KERNEL_KERNELHARNESS_H
#define DLC_TESTS_UNIT_KERNEL_KERNELHARNESS_H

#include "compiler/cpu/CpuCompiler.h"
#include "compiler/lower/Passes.h"

#include "gtest/gtest.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <cstdlib>
#include <cstring>

namespace dlc::compiler {

inline CpuCompilerOptions withoutDisk() {
  CpuCompilerOptions options;
  options.cacheDirectory.clear();
  options.threads = 1;
  if (const char *cpu = std::getenv("DLC_TEST_CPU")) { // the oldest processor served, on a newer one
    options.target.cpu = cpu;
    options.target.features.clear();
    options.target.vectorBits = 256;
  }
  return options;
}

class KernelHarness {
public:
  explicit KernelHarness(CpuCompilerOptions options = withoutDisk()) : compiler(std::move(options)) {
    mlir::DialectRegistry registry;
    registerLowerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Compiles all kernels of `text`; the error text goes to `error` and the list is empty then.
  std::vector<CompiledKernel> compile(const std::string &text) {
    error.clear();
    mlir::ScopedDiagnosticHandler handler(
        &context, [&](mlir::Diagnostic &diagnostic) { llvm::raw_string_ostream(error) << diagnostic << "\n"; });
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module)
      return {};
    auto kernels = llvm::to_vector(module->getOps<ir::kernel::FuncOp>());
    auto compiled = compiler.compile(kernels);
    if (compiled)
      return std::move(*compiled);
    error = llvm::toString(compiled.takeError());
    return {};
  }

  /// Compiles the one kernel of `text`; fails the test if that does not work.
  CompiledKernel one(const std::string &text) {
    auto kernels = compile(text);
    EXPECT_EQ(kernels.size(), 1u) << error << text;
    return kernels.empty() ? CompiledKernel() : kernels[0];
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  CpuCompiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string error;
};

/// Runs the whole range, cut into `pieces`; returns what the error slot holds.
inline int64_t run(const CompiledKernel &kernel, std::vector<void *> bufs, std::vector<int64_t> ints, int pieces = 1) {
  int64_t fault = 0, extent = 1;
  bufs.push_back(&fault);
  EXPECT_EQ(bufs.size(), kernel.info.numBufs);
  EXPECT_EQ(ints.size(), kernel.info.numInts);
  for (const SizeRef &size : kernel.info.parallelDims)
    extent *= size.index >= 0 ? ints[size.index] : size.constant;
  ints.resize(ints.size() + 2);
  for (int piece = 0; piece < pieces; ++piece) {
    ints[ints.size() - 2] = extent * piece / pieces;
    ints[ints.size() - 1] = extent * (piece + 1) / pieces;
    kernel.fn(bufs.data(), ints.data());
  }
  return fault;
}

/// `text` with every key replaced by its value.
inline std::string fill(std::string text, std::vector<std::pair<std::string, std::string>> keys) {
  for (auto &[key, value] : keys)
    for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + value.size()))
      text.replace(at, key.size(), value);
  return text;
}

/// An f64 argument as it travels in `ints`.
inline int64_t asInt(double value) {
  int64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

} // namespace dlc::compiler

#endif
