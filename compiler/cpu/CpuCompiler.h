// Kernels to functions: equal kernels are compiled once, objects persist on disk, misses compile in parallel.
#ifndef DLC_COMPILER_CPU_CPUCOMPILER_H
#define DLC_COMPILER_CPU_CPUCOMPILER_H

#include "compiler/api/CompiledKernel.h"
#include "compiler/cpu/CodeGen.h"
#include "compiler/cpu/ObjectCache.h"
#include "dialects/kernel/KernelDialect.h"

#include <map>
#include <mutex>

namespace dlc::compiler {

/// How a CpuCompiler works.
struct CpuCompilerOptions {
  unsigned threads = 0;                                         ///< compile threads; 0: as many as there are cores
  std::string cacheDirectory = ObjectCache::defaultDirectory(); ///< empty: nothing on disk
  uint64_t cacheLimit = uint64_t(256) << 20;                    ///< bytes
  CpuTarget target = CpuTarget::host();

  /// Returns what DLC_CACHE_DIR and DLC_CACHE_LIMIT_MB (0: no cache) say.
  static CpuCompilerOptions fromKnobs();
};

/// A kernel's code as it travels between processes.
struct KernelObject {
  std::string key; ///< digest of the source that it was made from
  std::vector<char> object;
};

/// Compiles kernels for this machine. Thread safe.
class CpuCompiler {
public:
  explicit CpuCompiler(CpuCompilerOptions options = {});
  ~CpuCompiler();

  /// Returns the process's compiler.
  static CpuCompiler &get();

  /// Compiles `kernels` (schedules are completed in place); results in the same order. A kernel that can't be lowered
  /// gives an error whose text has the diagnostics.
  llvm::Expected<std::vector<CompiledKernel>> compile(llvm::ArrayRef<ir::kernel::FuncOp> kernels);

  /// The code of a kernel that a CpuCompiler made.
  static const KernelObject &objectOf(const CompiledKernel &kernel);

  /// Links code that was made before, in the same order; what is in memory already is shared. The results have no
  /// `info`.
  llvm::Expected<std::vector<CompiledKernel>> load(std::vector<KernelObject> objects);

  /// What changes whenever the code of a kernel may.
  static const char *version();
  ObjectCache &cache() { return cache_; }
  const CpuTarget &target() const { return options_.target; }

  /// Returns counts since the start or the last reset.
  KernelCompileStats stats();
  void resetStats();

  /// Returns the assembly of one kernel (for tests and DLC_LOGS=output_code).
  llvm::Expected<std::string> assembly(ir::kernel::FuncOp kernel);

private:
  struct Code;
  struct Worker;
  struct Job;

  llvm::Expected<std::shared_ptr<Code>> find(const std::string &key);
  std::shared_ptr<Code> findLive(const std::string &key);
  llvm::Expected<std::shared_ptr<Code>> link(KernelObject object);
  llvm::Error build(std::vector<Job> &jobs);
  void buildOne(Job &job, Worker &worker);
  std::unique_ptr<Worker> takeWorker();
  void giveWorker(std::unique_ptr<Worker> worker);
  std::string sourceOf(ir::kernel::FuncOp kernel);

  CpuCompilerOptions options_;
  ObjectCache cache_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Code>> live_;
  std::vector<std::unique_ptr<Worker>> idle_;
  KernelCompileStats stats_;
};

} // namespace dlc::compiler

#endif
