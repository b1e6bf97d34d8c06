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

/// Operands of one product, small integers in matrices with gaps between rows, and what comes out.
struct Operands {
  Operands(const ProductSpec &s, int64_t m, int64_t n, int64_t k) : s(s), m(m), n(n), k(k) {
    batch = s.batch ? 3 : 1;
    lda = (s.transA ? m : k) + 3, ldb = (s.transB ? k : n) + 5, ldc = n + 1;
    aSize = lda * (s.transA ? k : m), bSize = ldb * (s.transB ? n : k), cSize = ldc * m;
    a = smallIntegers(batch * aSize + 1, 1), b = smallIntegers(batch * bSize + 1, 2);
    bias = smallIntegers(cSize + n + 1, 3);
    c.assign(batch * cSize, -77);
    if (!s.packed)
      return;
    panels.assign((n + s.packed - 1) / s.packed * s.packed * k, 0);
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        panels[(j / s.packed * k + p) * s.packed + j % s.packed] = bAt(0, p, j);
  }
  float aAt(int64_t g, int64_t i, int64_t p) const { return a[g * aSize + (s.transA ? p * lda + i : i * lda + p)]; }
  float bAt(int64_t g, int64_t p, int64_t j) const { return b[g * bSize + (s.transB ? j * ldb + p : p * ldb + j)]; }
  float want(int64_t g, int64_t i, int64_t j) const {
    float x = 0;
    for (int64_t p = 0; p < k; ++p)
      x += aAt(g, i, p) * bAt(g, p, j);
    if (s.epilogue == ProductSpec::Residual)
      x += bias[i * ldc + j];
    else if (s.epilogue != ProductSpec::None)
      x += bias[j];
    dlc::scalar::NativeBuilder native;
    if (s.epilogue == ProductSpec::BiasRelu)
      x = std::max(x, 0.f);
    return s.epilogue == ProductSpec::BiasGelu ? dlc::scalar::gelu_erf_(native, x) : x;
  }

  const ProductSpec &s;
  int64_t m, n, k, batch, lda, ldb, ldc, aSize, bSize, cSize;
  std::vector<float> a, b, bias, c, panels;
};

/// One product against plain loops.
void checkProduct(const CompiledKernel &kernel, const ProductSpec &s, int64_t m, int64_t n, int64_t k, int pieces) {
  Operands x(s, m, n, k);
  std::vector<int64_t> ints;
  auto strides = [&](int64_t outer, int64_t ld) {
    if (s.batch)
      ints.push_back(outer);
    ints.push_back(ld);
  };
  strides(x.aSize, x.lda);
  if (s.packed)
    ints.insert(ints.end(), {k * s.packed, s.packed});
  else
    strides(x.bSize, x.ldb);
  std::vector<void *> bufs{x.a.data(), s.packed ? x.panels.data() : x.b.data()};
  if (s.epilogue != ProductSpec::None)
    bufs.push_back(x.bias.data());
  if (s.epilogue == ProductSpec::Residual)
    ints.push_back(x.ldc);
  bufs.push_back(x.c.data());
  strides(x.cSize, x.ldc);
  if (s.batch)
    ints.push_back(x.batch);
  for (auto [fixed, size] : {std::pair(s.m, m), std::pair(s.n, n), std::pair(s.k, k)})
    if (fixed < 0)
      ints.push_back(size);
  ASSERT_EQ(run(kernel, bufs, ints, pieces), 0);
  for (int64_t g = 0; g < x.batch; ++g)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < x.ldc; ++j)
        ASSERT_EQ(x.c[g * x.cSize + i * x.ldc + j], j < n ? x.want(g, i, j) : -77)
            << m << " x " << n << " x " << k << " at " << g << " " << i << " " << j << " pieces " << pieces << "\n"
            << s.schedule;
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

// Tiles of more rows than a vector has lanes, and operands that are transposed while they are copied.
TEST(KernelContract, PackedTilesOfRows) {
  std::string columns = std::to_string(lanes());
  for (std::string rows : {"3", "9", "14"})
    for (bool transA : {false, true})
      for (bool transB : {false, true}) {
        ProductSpec s;
        s.transA = transA;
        s.transB = transB;
        s.schedule = "micro = {m = " + rows + ", n = " + columns +
                     "}, block = {k = 40, m = 42, n = " + std::to_string(3 * lanes()) +
                     "}, pack = {lhs = block, rhs = block}";
        checkSizes(s, {0, 1, 8, 9, 14, 15, 41, 42, 50, 100}, {1, 16, 17, 49}, {0, 1, 33, 40, 41, 90});
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

TEST(KernelContract, RefusesTilesThatCantBe) {
  ProductSpec s;
  s.transB = true;
  for (auto [schedule, why] :
       {std::pair("micro = {n = 3}", "multiple of the width"), std::pair("pack = {rhs = none}", "must pack an operand"),
        std::pair("micro = {m = 40, n = 64}", "no machine's registers"),
        std::pair("block = {m = 9999999, k = 9999999}", "too large")}) {
    s.schedule = schedule;
    KernelHarness h;
    Compiled compiled = compileOne(h, [&](mlir::OpBuilder &b) { return buildProduct(b, s); });
    EXPECT_FALSE(compiled.kernel.fn);
    EXPECT_NE(compiled.error.find(why), std::string::npos) << compiled.error;
  }
}

// Rows by columns instead of columns by rows: the roles of the operands are exchanged.
const char *kTransposed = R"(
kernel.func @transposed(%a: memref<?x?xf32, strided<[?, 1]>>, %w: memref<?x?xf32, strided<[?, 1]>>,
    %c: memref<?x?xf32, strided<[?, 1]>>, %M: index, %N: index, %K: index, %err: memref<i64>)
    domain(m = %M, n = %N, k = %K) outs(%c) {
  %s = kernel.contract over(m, n, k) by(k) : !kernel.val<f32, [m, n]> lhs {
    %0 = kernel.read %a[affine_map<(d0, d1, d2) -> (d0, d2)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  } rhs {
    %0 = kernel.read %w[affine_map<(d0, d1, d2) -> (d2, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %s, %c[affine_map<(d0, d1) -> (d1, d0)>] accumulate add : !kernel.val<f32, [m, n]>, memref<?x?xf32, strided<[?, 1]>>
})";

TEST(KernelContract, AccumulatesIntoATransposedOutput) {
  KernelHarness h;
  CompiledKernel kernel = h.one(kTransposed);
  ASSERT_TRUE(kernel.fn);
  for (int64_t m : {1, 5, 33})
    for (int64_t n : {1, 17, 40})
      for (int64_t k : {0, 1, 9}) {
        auto a = smallIntegers(m * k + 1, 1), b = smallIntegers(k * n + 1, 2), c = smallIntegers(m * n, 3), old = c;
        ASSERT_EQ(run(kernel, {a.data(), b.data(), c.data()}, {k, n, m, m, n, k}, 3), 0);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            float want = old[j * m + i];
            for (int64_t p = 0; p < k; ++p)
              want += a[i * k + p] * b[p * n + j];
            ASSERT_EQ(c[j * m + i], want) << m << " " << n << " " << k;
          }
      }
}

// A convolution over channels-last memory with padding, stride and dilation, weights in panels, and a fused bias.
const char *kConvolution = R"(
kernel.func @conv(%x: memref<?x?x?x?xf32, strided<[?, ?, ?, 1]>>, %w: memref<?x?x?x?x?xf32, strided<[?, ?, ?, 16, 1]>>,
    %b: memref<?xf32, strided<[1]>>, %y: memref<?x?x?x?xf32, strided<[?, ?, ?, 1]>>, %B: index, %H: index, %W: index,
    %OH: index, %OW: index, %O: index, %C: index, %err: memref<i64>)
    domain(b = %B, oh = %OH, ow = %OW, o = %O, kh = 3, kw = 2, c = CHANNELS) outs(%y) SCHEDULE {
  %s = kernel.contract over(b, oh, ow, o, kh, kw, c) by(kh, kw, c) : !kernel.val<f32, [b, oh, ow, o]> lhs {
    %pad = arith.constant 0.0 : f32
    %0 = kernel.read %x[affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 * 2 + d4 - 1, d2 + d5 * 2 - 1, d6)>]
      bound pad [1, 2] of (%H, %W) pad %pad : f32 : memref<?x?x?x?xf32, strided<[?, ?, ?, 1]>> -> f32
    kernel.yield %0 : f32
  } rhs {
    %0 = kernel.read %w[affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3 floordiv 16, d4, d5, d6, d3 mod 16)>]
      : memref<?x?x?x?x?xf32, strided<[?, ?, ?, 16, 1]>> -> f32
    kernel.yield %0 : f32
  }
  %o = kernel.map over(b, oh, ow, o) : !kernel.val<f32, [b, oh, ow, o]> {
    %0 = kernel.use %s : !kernel.val<f32, [b, oh, ow, o]> -> f32
    %1 = kernel.read %b[affine_map<(d0, d1, d2, d3) -> (d3)>] : memref<?xf32, strided<[1]>> -> f32
    %2 = arith.addf %0, %1 : f32
    kernel.yield %2 : f32
  }
  kernel.write %o, %y[affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>]
    : !kernel.val<f32, [b, oh, ow, o]>, memref<?x?x?x?xf32, strided<[?, ?, ?, 1]>>
})";

void checkConvolution(const CompiledKernel &kernel, int64_t B, int64_t H, int64_t W, int64_t O, int64_t C) {
  int64_t OH = (H + 2 - 3) / 2 + 1, OW = W + 2 - 3 + 1, panels = (O + 15) / 16;
  auto x = smallIntegers(B * H * W * C + 1, 1), w = smallIntegers(panels * 6 * C * 16, 2), bias = smallIntegers(O, 3);
  std::vector<float> y(B * OH * OW * O, -77);
  std::vector<int64_t> ints{H * W * C, W * C, C, 6 * C * 16, 2 * C * 16, C * 16, OH * OW * O, OW * O,
                            O,         B,     H, W,          OH,         OW,     O,           C};
  ASSERT_EQ(run(kernel, {x.data(), w.data(), bias.data(), y.data()}, ints, 3), 0);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t oh = 0; oh < OH; ++oh)
      for (int64_t ow = 0; ow < OW; ++ow)
        for (int64_t o = 0; o < O; ++o) {
          float want = bias[o];
          for (int64_t kh = 0; kh < 3; ++kh)
            for (int64_t kw = 0; kw < 2; ++kw)
              for (int64_t c = 0; c < C; ++c) {
                int64_t ih = oh * 2 + kh - 1, iw = ow + kw * 2 - 1;
                if (ih >= 0 && ih < H && iw >= 0 && iw < W)
                  want += x[((b * H + ih) * W + iw) * C + c] * w[(((o / 16 * 3 + kh) * 2 + kw) * C + c) * 16 + o % 16];
              }
          ASSERT_EQ(y[((b * OH + oh) * OW + ow) * O + o], want) << b << " " << oh << " " << ow << " " << o;
        }
}

TEST(KernelContract, PaddedConvolution) {
  KernelHarness h;
  for (std::string channels : {"%C", "5", "8"})
    for (std::string schedule : {"", "block = {k = 4}", "pack = {lhs = block}, block = {k = 4, m = 8}",
                                 "micro = {m = 5}, pack = {rhs = block}"}) {
      if (!schedule.empty())
        schedule = "attributes {schedule = #kernel.schedule<" + schedule + ">}";
      CompiledKernel kernel = h.one(fill(kConvolution, {{"CHANNELS", channels}, {"SCHEDULE", schedule}}));
      ASSERT_TRUE(kernel.fn);
      for (int64_t c : {1, 5, 8})
        if (channels == "%C" || channels == std::to_string(c)) {
          checkConvolution(kernel, 2, 5, 4, 20, c);
          checkConvolution(kernel, 1, 1, 3, 1, c);
          checkConvolution(kernel, 1, 9, 9, 16, c);
        }
    }
}

// Operands that are computed: rows gathered by an index, scaled and widened; weights from 16-bit floats or bytes.
const char *kPrologue = R"(
kernel.func @embed(%x: memref<?x?xT, strided<[?, 1]>>, %i: memref<?xi64, strided<[1]>>, %s: memref<?xf32, strided<[1]>>,
    %w: memref<?x?xT, strided<[?, 1]>>, %c: memref<?x?xf32, strided<[?, 1]>>, %d: memref<?x?xf32, strided<[?, 1]>>,
    %M: index, %N: index, %K: index, %R: index, %err: memref<i64>) domain(m = %M, n = COLUMNS, k = %K) outs(%c, %d) {
  %scale = kernel.map over(m) : !kernel.val<f32, [m]> {
    %0 = kernel.read %s[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    %1 = arith.addf %0, %0 : f32
    kernel.yield %1 : f32
  }
  %p = kernel.contract over(m, n, k) by(k) : !kernel.val<f32, [m, n]> lhs {
    %0 = kernel.read %i[affine_map<(d0, d1, d2) -> (d0)>] : memref<?xi64, strided<[1]>> -> i64
    %1 = kernel.read %x[affine_map<(d0, d1, d2)[s0] -> (s0, d2)>] syms(%0 : i64) bound check [0] of (%R)
      : memref<?x?xT, strided<[?, 1]>> -> T
    %2 = WIDEN %1 : T to f32
    %3 = kernel.use %scale : !kernel.val<f32, [m]> -> f32
    %4 = arith.mulf %2, %3 : f32
    kernel.yield %4 : f32
  } rhs {
    %0 = kernel.read %w[affine_map<(d0, d1, d2) -> (d2, d1)>] : memref<?x?xT, strided<[?, 1]>> -> T
    %1 = WIDEN %0 : T to f32
    kernel.yield %1 : f32
  }
  %o = kernel.map over(m, n) : !kernel.val<f32, [m, n]> {
    %0 = kernel.use %p : !kernel.val<f32, [m, n]> -> f32
    %1 = kernel.prim "relu"(%0) : (f32) -> f32
    kernel.yield %1 : f32
  }
  kernel.write %p, %c[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [m, n]>, memref<?x?xf32, strided<[?, 1]>>
  kernel.write %o, %d[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [m, n]>, memref<?x?xf32, strided<[?, 1]>>
})";

/// `from` stores a small integer in the memory of the operands.
template <class T> void checkPrologue(const std::string &type, const std::string &widen, T (*from)(float)) {
  KernelHarness h;
  for (std::string columns : {"%N", "32"}) {
    CompiledKernel kernel =
        h.one(fill(kPrologue, {{"COLUMNS", columns}, {"WIDEN", widen}, {"xT", "x" + type}, {" T", " " + type}}));
    ASSERT_TRUE(kernel.fn);
    for (int64_t m : {1, 3, 40})
      for (int64_t n : {32, 7, 50})
        for (int64_t k : {0, 1, 6, 65}) {
          if (columns == "32" && n != 32)
            continue;
          int64_t R = 6;
          auto xs = smallIntegers(R * k + 1, 1), ws = smallIntegers(k * n + 1, 2), scale = smallIntegers(m, 3);
          std::vector<T> x, w;
          for (float v : xs)
            x.push_back(from(v));
          for (float v : ws)
            w.push_back(from(v));
          std::vector<int64_t> rows(m);
          for (int64_t i = 0; i < m; ++i)
            rows[i] = i * 5 % R;
          std::vector<float> c(m * n, -77), d(m * n, -77);
          std::vector<void *> bufs{x.data(), rows.data(), scale.data(), w.data(), c.data(), d.data()};
          ASSERT_EQ(run(kernel, bufs, {k, n, n, n, m, n, k, R}, 2), 0);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              float want = 0;
              for (int64_t p = 0; p < k; ++p)
                want += 2 * scale[i] * xs[rows[i] * k + p] * ws[p * n + j];
              ASSERT_EQ(c[i * n + j], want) << m << " " << n << " " << k;
              ASSERT_EQ(d[i * n + j], std::max(want, 0.f));
            }
          rows[m / 2] = R; // out of range
          if (k > 0)
            EXPECT_NE(run(kernel, bufs, {k, n, n, n, m, n, k, R}), 0);
        }
  }
}

TEST(KernelContract, Prologues) {
  checkPrologue<uint16_t>("bf16", "arith.extf", [](float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return static_cast<uint16_t>(bits >> 16);
  });
  checkPrologue<int8_t>("i8", "arith.sitofp", [](float x) { return static_cast<int8_t>(x); });
}

const char *kTypes = R"(
kernel.func @types(%a: memref<?x?xA, strided<[?, 1]>>, %w: memref<?x?xB, strided<[?, 1]>>,
    %c: memref<?x?xC, strided<[?, 1]>>, %M: index, %err: memref<i64>) domain(m = %M, n = 48, k = 21) outs(%c) {
  %s = kernel.contract over(m, n, k) by(k) : !kernel.val<C, [m, n]> lhs {
    %0 = kernel.read %a[affine_map<(d0, d1, d2) -> (d0, d2)>] : memref<?x?xA, strided<[?, 1]>> -> A
    kernel.yield %0 : A
  } rhs {
    %0 = kernel.read %w[affine_map<(d0, d1, d2) -> (d2, d1)>] : memref<?x?xB, strided<[?, 1]>> -> B
    kernel.yield %0 : B
  }
  kernel.write %s, %c[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<C, [m, n]>, memref<?x?xC, strided<[?, 1]>>
})";

template <class A, class B, class C> void checkTypes(const char *a, const char *b, const char *c) {
  KernelHarness h;
  CompiledKernel kernel = h.one(fill(kTypes, {{"xA", std::string("x") + a},
                                              {"xB", std::string("x") + b},
                                              {"xC", std::string("x") + c},
                                              {" A\n", std::string(" ") + a + "\n"},
                                              {" B\n", std::string(" ") + b + "\n"},
                                              {"<C", std::string("<") + c}}));
  ASSERT_TRUE(kernel.fn);
  for (int64_t m : {1, 7, 40}) {
    std::vector<A> x(m * 21);
    std::vector<B> w(21 * 48);
    std::vector<C> y(m * 48, 9);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<A>(static_cast<int>(i * 37 % 251) - 120);
    for (size_t i = 0; i < w.size(); ++i)
      w[i] = static_cast<B>(static_cast<int>(i * 53 % 249) - 120);
    ASSERT_EQ(run(kernel, {x.data(), w.data(), y.data()}, {21, 48, 48, m}, 2), 0);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < 48; ++j) {
        C want = 0;
        for (int64_t p = 0; p < 21; ++p)
          want += static_cast<C>(x[i * 21 + p]) * static_cast<C>(w[p * 48 + j]);
        ASSERT_EQ(y[i * 48 + j], want) << i << " " << j;
      }
  }
}

TEST(KernelContract, Types) {
  checkTypes<double, double, double>("f64", "f64", "f64");
  checkTypes<int8_t, int8_t, int32_t>("i8", "i8", "i32");
  checkTypes<int32_t, int8_t, int32_t>("i32", "i8", "i32");
}

} // namespace
