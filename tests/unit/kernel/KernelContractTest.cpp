// Contractions compiled and run against plain loops. Operands are small integers, so that every order of the sums
// gives the same bits.
#include "ContractHarness.h"
#include "KernelHarness.h"
#include "runtime/scalar/NativeBuilder.h"
#include "runtime/scalar/Primitives.h"

#include "mlir/IR/Verifier.h"

#include <random>

using namespace dlc::compiler;
using namespace dlc::ir::kernel;

namespace {

std::vector<float> smallIntegers(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> data(n);
  for (float &x : data)
    x = static_cast<float>(static_cast<int>(random() % 9) - 4);
  return data;
}

struct Compiled {
  CompiledKernel kernel;
  std::string error;
};

Compiled compileOne(KernelHarness &h, llvm::function_ref<FuncOp(mlir::OpBuilder &)> build) {
  mlir::OpBuilder b(&h.context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(b.getUnknownLoc());
  b.setInsertionPointToEnd(module->getBody());
  FuncOp func = build(b);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
  auto compiled = h.compiler.compile({func});
  if (!compiled)
    return {{}, llvm::toString(compiled.takeError())};
  return {(*compiled)[0], ""};
}

/// One product with random small integers in matrices with gaps between rows, against plain loops.
void checkProduct(const CompiledKernel &kernel, const ProductSpec &s, int64_t m, int64_t n, int64_t k, int pieces) {
  int64_t batch = s.batch ? 3 : 1;
  int64_t lda = (s.transA ? m : k) + 3, ldb = (s.transB ? k : n) + 5, ldc = n + 1;
  int64_t aSize = lda * (s.transA ? k : m), bSize = ldb * (s.transB ? n : k), cSize = ldc * m;
  auto a = smallIntegers(batch * aSize + 1, 1), b = smallIntegers(batch * bSize + 1, 2);
  auto bias = smallIntegers(cSize + n + 1, 3);
  auto bAt = [&](int64_t g, int64_t p, int64_t j) { return b[g * bSize + (s.transB ? j * ldb + p : p * ldb + j)]; };
  std::vector<float> panels;
  if (s.packed) {
    panels.assign((n + s.packed - 1) / s.packed * s.packed * k, 0);
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        panels[(j / s.packed * k + p) * s.packed + j % s.packed] = bAt(0, p, j);
  }
  std::vector<float> c(batch * cSize, -77);
  std::vector<int64_t> ints;
  auto strides = [&](int64_t outer, int64_t ld) {
    if (s.batch)
      ints.push_back(outer);
    ints.push_back(ld);
  };
  strides(aSize, lda);
  if (s.packed)
    ints.insert(ints.end(), {k * s.packed, s.packed});
  else
    strides(bSize, ldb);
  std::vector<void *> bufs{a.data(), s.packed ? panels.data() : b.data()};
  if (s.epilogue != ProductSpec::None)
    bufs.push_back(bias.data());
  if (s.epilogue == ProductSpec::Residual)
    ints.push_back(ldc);
  bufs.push_back(c.data());
  strides(cSize, ldc);
  if (s.batch)
    ints.push_back(batch);
  for (auto [fixed, size] : {std::pair(s.m, m), std::pair(s.n, n), std::pair(s.k, k)})
    if (fixed < 0)
      ints.push_back(size);
  ASSERT_EQ(run(kernel, bufs, ints, pieces), 0);
  dlc::scalar::NativeBuilder native;
  for (int64_t g = 0; g < batch; ++g)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < ldc; ++j) {
        float want = -77;
        if (j < n) {
          want = 0;
          for (int64_t p = 0; p < k; ++p)
            want += a[g * aSize + (s.transA ? p * lda + i : i * lda + p)] * bAt(g, p, j);
          if (s.epilogue == ProductSpec::Residual)
            want += bias[i * ldc + j];
          else if (s.epilogue != ProductSpec::None)
            want += bias[j];
          if (s.epilogue == ProductSpec::BiasRelu)
            want = std::max(want, 0.f);
          if (s.epilogue == ProductSpec::BiasGelu)
            want = dlc::scalar::gelu_erf_(native, want);
        }
        ASSERT_EQ(c[g * cSize + i * ldc + j], want)
            << m << " x " << n << " x " << k << " at " << g << " " << i << " " << j << " pieces " << pieces << "\n"
            << s.schedule;
      }
}

/// Sizes around the edges of the tile and the blocks.
void checkSizes(ProductSpec s, std::vector<int64_t> ms, std::vector<int64_t> ns, std::vector<int64_t> ks) {
  KernelHarness h;
  Compiled compiled = compileOne(h, [&](mlir::OpBuilder &b) { return buildProduct(b, s); });
  ASSERT_TRUE(compiled.kernel.fn) << compiled.error << s.schedule;
  int pieces = 0;
  for (int64_t m : ms)
    for (int64_t n : ns)
      for (int64_t k : ks) {
        checkProduct(compiled.kernel, s, m, n, k, 1 + pieces++ % 4);
        if (testing::Test::HasFatalFailure())
          return;
      }
}

unsigned lanes() { return withoutDisk().target.vectorBits / 32; }

TEST(KernelContract, DynamicSizes) {
  checkSizes({}, {0, 1, 2, 7, 8, 9, 13, 30}, {0, 1, 15, 16, 17, 47, 48, 49, 100}, {0, 1, 3, 4, 5, 33});
}

TEST(KernelContract, Layouts) {
  for (bool transA : {false, true})
    for (bool transB : {false, true})
      for (bool batch : {false, true}) {
        ProductSpec s;
        s.transA = transA;
        s.transB = transB;
        s.batch = batch;
        checkSizes(s, {1, 9, 40}, {1, 17, 70}, {1, 6, 37});
      }
}

TEST(KernelContract, StaticSizes) {
  for (int64_t m : {1, 2, 3, 5, 8, 14, 33})
    for (int64_t n : {1, 10, 48, 64, 100})
      for (int64_t k : {1, 4, 63}) {
        ProductSpec s;
        s.m = m;
        s.n = n;
        s.k = k;
        s.transA = m == 33;
        checkSizes(s, {m}, {n}, {k});
      }
}

TEST(KernelContract, PackedRhs) {
  for (int64_t columns : {lanes(), 2 * lanes(), 3 * lanes()}) {
    ProductSpec s;
    s.packed = columns;
    checkSizes(s, {0, 1, 6, 14, 15}, {0, 1, columns - 1, columns, columns + 1, 3 * columns}, {0, 1, 4, 50});
  }
}

// Every choice of packing and slices by hand.
TEST(KernelContract, Schedules) {
  std::string columns = std::to_string(2 * lanes());
  for (std::string block : {"m = 12, n = " + columns + ", k = 0", std::string("m = 6, n = 0, k = 8"),
                            "m = 18, n = " + std::to_string(4 * lanes()) + ", k = 16"})
    for (std::string lhs : {"none", "block"})
      for (std::string rhs : {"none", "block"})
        for (bool transA : {false, true}) {
          ProductSpec s;
          s.n = 6 * lanes();
          s.k = 40;
          s.transA = transA;
          s.schedule = "micro = {m = 6, n = " + columns + ", k = 4}, block = {" + block + "}, pack = {lhs = " + lhs +
                       ", rhs = " + rhs + "}";
          checkSizes(s, {0, 1, 5, 6, 7, 11, 12, 13, 40}, {s.n}, {s.k});
        }
}

TEST(KernelContract, Epilogues) {
  for (auto epilogue : {ProductSpec::BiasRelu, ProductSpec::BiasGelu, ProductSpec::Residual})
    for (std::string schedule : {"", "block = {k = 16}"}) {
      ProductSpec s;
      s.epilogue = epilogue;
      s.schedule = schedule;
      checkSizes(s, {0, 1, 7, 8, 9, 20}, {1, 15, 16, 17, 64, 100}, {0, 1, 15, 16, 17, 40});
      s.batch = epilogue != ProductSpec::Residual;
      s.n = 96;
      checkSizes(s, {8, 9}, {96}, {33});
    }
}

} // namespace
