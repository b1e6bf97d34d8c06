// Generated matrix products behind a C interface, with kernels/lib and OpenBLAS beside them: tools/bench/products.py
// loads this into a Python process and times all sides there, interleaved with PyTorch's.
#include "compiler/cpu/CpuCompiler.h"
#include "compiler/lower/ContractPlan.h"
#include "compiler/lower/Passes.h"
#include "kernels/lib/Gemm.h"
#include "tests/unit/kernel/ContractHarness.h"
#include "tools/bench/Peak.h"

#include <cstring>

extern "C" void cblas_sgemm(int order, int transA, int transB, int m, int n, int k, float alpha, const float *a,
                            int lda, const float *b, int ldb, float beta, float *c, int ldc);
extern "C" char *openblas_get_corename();

using namespace dlc::compiler;
using namespace dlc::kernels;

namespace {

struct Product {
  int64_t m, n, k, columns;
  bool transA, transB;
  CompiledKernel kernel;
  std::string schedule;
  double compileMs;
  std::unique_ptr<float, decltype(&std::free)> panels{nullptr, &std::free};
};

mlir::MLIRContext &context() {
  static mlir::MLIRContext *context = [] {
    mlir::DialectRegistry registry;
    registerLowerDialects(registry);
    auto *made = new mlir::MLIRContext(registry, mlir::MLIRContext::Threading::DISABLED);
    made->loadAllAvailableDialects();
    return made;
  }();
  return *context;
}

CpuCompiler &compiler() {
  static CpuCompiler *compiler = [] {
    CpuCompilerOptions options;
    options.cacheDirectory.clear();
    options.threads = 1;
    if (const char *cpu = std::getenv("DLC_TEST_CPU")) {
      options.target.cpu = cpu;
      options.target.features.clear();
      options.target.vectorBits = 256;
    }
    return new CpuCompiler(std::move(options));
  }();
  return *compiler;
}

unsigned targetBits() { return std::getenv("DLC_TEST_CPU") ? 256 : CpuTarget::host().vectorBits; }

void pack(Product &p, const float *b) {
  int64_t c = p.columns, panels = (p.n + c - 1) / c;
  p.panels.reset(static_cast<float *>(std::aligned_alloc(64, (panels * c * p.k * 4 + 63) / 64 * 64)));
  std::memset(p.panels.get(), 0, panels * c * p.k * 4);
  for (int64_t k = 0; k < p.k; ++k)
    for (int64_t j = 0; j < p.n; ++j)
      p.panels.get()[(j / c * p.k + k) * c + j % c] = p.transB ? b[j * p.k + k] : b[k * p.n + j];
}

} // namespace

#define DLC_EXPORT extern "C" __attribute__((visibility("default")))

/// Compiles A[m, k] B[k, n]; with `b`, that is packed now. Null and a message on stderr if it can't be.
DLC_EXPORT void *productMake(int64_t m, int64_t n, int64_t k, int transA, int transB, const float *b,
                             const char *schedule, int dynamic) {
  auto p = std::make_unique<Product>();
  p->m = m, p->n = n, p->k = k, p->transA = transA, p->transB = transB;
  ProductSpec s;
  s.m = dynamic ? -1 : m, s.n = n, s.k = k, s.transA = transA, s.transB = transB;
  s.schedule = schedule;
  mlir::OpBuilder builder(&context());
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToEnd(module->getBody());
  auto func = buildProduct(builder, s);
  if (b) {
    p->columns = chooseColumns(func, targetBits());
    pack(*p, b);
    s.packed = p->columns;
    func.erase();
    func = buildProduct(builder, s);
  }
  double start = dlc::bench::now();
  auto compiled = compiler().compile({func});
  if (!compiled) {
    std::fprintf(stderr, "%s\n", llvm::toString(compiled.takeError()).c_str());
    return nullptr;
  }
  p->compileMs = (dlc::bench::now() - start) * 1e3;
  p->kernel = (*compiled)[0];
  llvm::raw_string_ostream(p->schedule) << func.getScheduleAttr();
  if (const char *name = std::getenv("DLC_BENCH_ASM"))
    if (auto text = compiler().assembly(func))
      if (FILE *file = std::fopen(name, "w"))
        std::fwrite(text->data(), 1, text->size(), file), std::fclose(file);
  return p.release();
}

DLC_EXPORT const char *productSchedule(void *product) { return static_cast<Product *>(product)->schedule.c_str(); }
DLC_EXPORT double productCompileMs(void *product) { return static_cast<Product *>(product)->compileMs; }
DLC_EXPORT void productFree(void *product) { delete static_cast<Product *>(product); }

/// Runs the whole range, in so many pieces.
DLC_EXPORT void productRun(void *product, const float *a, const float *b, float *c, int64_t pieces) {
  auto &p = *static_cast<Product *>(product);
  int64_t fault = 0;
  const void *bufs[] = {a, p.panels ? p.panels.get() : b, c, &fault};
  int64_t ints[8], count = 0;
  ints[count++] = p.transA ? p.m : p.k;
  if (p.panels) {
    ints[count++] = p.k * p.columns;
    ints[count++] = p.columns;
  } else {
    ints[count++] = p.transB ? p.k : p.n;
  }
  ints[count++] = p.n;
  if (p.kernel.info.numInts > count)
    ints[count++] = p.m;
  for (int64_t i = 0; i < pieces; ++i) {
    ints[count] = p.m * p.n * i / pieces;
    ints[count + 1] = p.m * p.n * (i + 1) / pieces;
    p.kernel.fn(const_cast<void *const *>(bufs), ints);
  }
}

/// Seconds of the fastest of `rounds` series of calls; side: 0 generated, 1 kernels/lib, 2 kernels/lib prepacked, 3
/// OpenBLAS.
DLC_EXPORT double productTime(void *product, int side, const float *a, const float *b, float *c, int64_t repeats) {
  auto &p = *static_cast<Product *>(product);
  GemmArgs<float> g;
  g.m = p.m, g.n = p.n, g.k = p.k, g.a = a, g.b = b, g.c = c, g.cRow = p.n;
  g.aRow = p.transA ? 1 : p.k, g.aCol = p.transA ? p.m : 1, g.bRow = p.transB ? 1 : p.n, g.bCol = p.transB ? p.k : 1;
  std::unique_ptr<PackedMatrix<float>> packed;
  if (side == 2) {
    packed = std::make_unique<PackedMatrix<float>>(p.k, p.n, b, g.bRow, g.bCol);
    g.packedB = packed.get();
  }
  double start = 0;
  for (int64_t r = -1; r < repeats; ++r) { // the first call brings the operands into the caches
    if (r == 0)
      start = dlc::bench::now();
    if (side == 0)
      productRun(product, a, b, c, 1);
    else if (side < 3)
      gemm(g);
    else
      cblas_sgemm(101, p.transA ? 112 : 111, p.transB ? 112 : 111, p.m, p.n, p.k, 1, a, p.transA ? p.m : p.k, b,
                  p.transB ? p.k : p.n, 0, c, p.n);
  }
  return (dlc::bench::now() - start) / repeats;
}

DLC_EXPORT double productPeak() { return dlc::bench::peak(); }
DLC_EXPORT const char *productBlas() { return openblas_get_corename(); }
