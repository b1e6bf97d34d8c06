// The kernels of tests/lit/cuda, printed as CUDA, run on the CPU through the host shim and compared with plain loops:
// elementwise results bit for bit. The same text compiles with NVRTC without warnings or spills.
#include "HostProgram.h"
#include "compiler/cuda/CudaEmitter.h"
#include "compiler/cuda/nvrtc/Nvrtc.h"
#include "dialects/kernel/KernelDialect.h"
#include "runtime/scalar/NativeBuilder.h"
#include "runtime/scalar/Primitives.h"

#include "gtest/gtest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"

#include <cstring>
#include <memory>
#include <random>

namespace s = dlc::scalar;
using dlc::compiler::CudaKernel;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

using Floats = std::vector<float>;

/// All kernels of the lit suite in one program, compiled once.
struct Suite {
  Suite() {
    context.loadDialect<dlc::ir::kernel::KernelDialect, mlir::arith::ArithDialect, mlir::math::MathDialect>();
    mlir::OwningOpRef<mlir::ModuleOp> all = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
    for (const char *file : {"maps", "rows", "columns", "access", "types"}) {
      auto one = mlir::parseSourceFile<mlir::ModuleOp>(
          std::string(DLC_TEST_SOURCE) + "/tests/lit/cuda/" + file + ".mlir", &context);
      for (auto func : one->getOps<dlc::ir::kernel::FuncOp>())
        all->push_back(func->clone());
    }
    program = *dlc::compiler::emitCuda(*all);
    again = dlc::compiler::emitCuda(*all)->text;
    std::vector<HostKernel> kernels;
    for (const CudaKernel &kernel : program.kernels)
      kernels.push_back({kernel.name, kernel.threadsX, kernel.threadsY});
    host = std::make_unique<HostProgram>(program.text, kernels);
  }
  mlir::MLIRContext context;
  dlc::compiler::CudaProgram program;
  std::string again;
  std::unique_ptr<HostProgram> host;
};

Suite &suite() {
  static Suite instance;
  return instance;
}

/// Runs a kernel with at most `limit` blocks; the error slot is added. Returns its value.
int64_t run(const std::string &name, std::vector<void *> bufs, std::vector<int64_t> ints, int64_t limit = 1000) {
  int64_t error = 0;
  bufs.push_back(&error);
  for (const CudaKernel &kernel : suite().program.kernels) {
    if (kernel.symbol != name)
      continue;
    EXPECT_EQ(kernel.numBufs, bufs.size()) << name;
    EXPECT_EQ(kernel.numInts, ints.size()) << name;
    suite().host->run(kernel.name, bufs, ints, dlc::compiler::cudaGrid(kernel, ints.data(), limit));
    return error;
  }
  ADD_FAILURE() << "no kernel " << name;
  return -1;
}

Floats randoms(size_t n, unsigned seed = 1, float low = -3, float high = 3) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> d(low, high);
  Floats out(n);
  for (float &v : out)
    v = d(generator);
  return out;
}

void expectSame(float got, float want, const std::string &where) {
  if (got != got && want != want)
    return;
  EXPECT_EQ(std::memcmp(&got, &want, 4), 0) << where << ": " << got << " instead of " << want;
}

TEST(CudaKernel, TextIsDeterministic) { EXPECT_EQ(suite().program.text, suite().again); }

TEST(CudaKernel, CompilesCleanlyForTwoArchitectures) {
  auto nvrtc = dlc::compiler::Nvrtc::open(dlc::compiler::Nvrtc::findIn(DLC_TEST_SOURCE "/.venv"));
  for (const char *arch : {"sm_80", "sm_90"}) {
    dlc::compiler::Cubin cubin = nvrtc->compile(suite().program.text, arch);
    EXPECT_EQ(cubin.usage.size(), suite().program.kernels.size());
    EXPECT_EQ(cubin.binary.substr(0, 4), "\177ELF");
    for (const auto &usage : cubin.usage) {
      EXPECT_EQ(usage.spillBytes, 0) << arch << " " << usage.kernel;
      EXPECT_LE(usage.registers, 64) << arch << " " << usage.kernel;
    }
  }
}

TEST(CudaKernel, MapWithBroadcastAndStrides) {
  s::NativeBuilder b;
  for (auto [rows, columns] : {std::pair(1, 1), {3, 7}, {5, 300}, {0, 4}}) {
    int64_t ldx = columns + 3, ldy = columns + 1;
    Floats x = randoms(rows * ldx + 1), bias = randoms(columns, 2), y(rows * ldy + 1, 7);
    run("gelu_bias", {x.data(), bias.data(), y.data()}, {ldx, ldy, rows, columns}, 2);
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c)
        expectSame(y[r * ldy + c], s::gelu_erf_(b, x[r * ldx + c] + bias[c]), "gelu");
      EXPECT_EQ(y[r * ldy + columns], 7) << "wrote past a row";
    }
  }
}

TEST(CudaKernel, TwoOutputsOneTransposed) {
  Floats x = randoms(35), y(35), z(35);
  double scale = 1.7;
  int64_t bits;
  std::memcpy(&bits, &scale, 8);
  run("scale_both", {x.data(), y.data(), z.data()}, {bits});
  for (int r = 0; r < 5; ++r)
    for (int c = 0; c < 7; ++c) {
      float want = x[r * 7 + c] * static_cast<float>(scale);
      expectSame(y[r * 7 + c], want, "y");
      expectSame(z[c * 5 + r], std::sqrt(want), "z");
    }
}

TEST(CudaKernel, OutputsOverUnlikeDims) {
  Floats x = randoms(300), b = randoms(11, 2), y(300 * 11), z(11);
  run("outer_and_row", {x.data(), b.data(), y.data(), z.data()}, {11, 300, 11}, 3);
  for (int r = 0; r < 300; ++r)
    for (int c = 0; c < 11; ++c)
      expectSame(y[r * 11 + c], x[r] * b[c], "outer");
  for (int c = 0; c < 11; ++c)
    expectSame(z[c], -b[c], "row");
}

TEST(CudaKernel, InPlace) {
  Floats x = randoms(1000), y = randoms(1000, 2), want = y;
  run("accumulate_into", {x.data(), y.data()}, {1000}, 2);
  for (int i = 0; i < 1000; ++i)
    expectSame(y[i], x[i] + want[i], "sum");
}

void checkSoftmax(const Floats &row, const float *got) {
  double largest = -INFINITY, sum = 0;
  bool nan = false;
  for (float v : row) {
    nan |= v != v;
    largest = std::max(largest, static_cast<double>(v));
  }
  for (float v : row)
    sum += std::exp(v - largest);
  for (size_t c = 0; c < row.size(); ++c) {
    double want = nan ? NAN : std::exp(row[c] - largest) / sum;
    if (want != want)
      EXPECT_TRUE(got[c] != got[c]) << "column " << c;
    else
      EXPECT_NEAR(got[c], want, 1e-6 * want + 1e-30);
  }
}

TEST(CudaKernel, SoftmaxWithNanAndInfinities) {
  for (int columns : {1, 2, 31, 257, 1000}) {
    constexpr int kRows = 5;
    Floats x = randoms(kRows * columns, columns), y(kRows * columns);
    x[columns] = kNan; // row 1
    for (int c = 0; c < columns; ++c)
      x[2 * columns + c] = -kInf; // all masked: NaN
    if (columns > 1)
      x[3 * columns] = -kInf;
    run("softmax", {x.data(), y.data()}, {columns, columns, kRows, columns}, 2);
    for (int r = 0; r < kRows; ++r)
      checkSoftmax(Floats(x.begin() + r * columns, x.begin() + (r + 1) * columns), &y[r * columns]);
    if (columns > 1) {
      EXPECT_EQ(y[3 * columns], 0);
    }
  }
}

TEST(CudaKernel, LayerNormWithFewerRowsThanTeams) {
  constexpr int kColumns = 96;
  for (int rows : {1, 7, 9, 20}) {
    Floats x = randoms(rows * kColumns), q = randoms(rows * kColumns, 2), g = randoms(kColumns, 3),
           b = randoms(kColumns, 4);
    Floats h(rows * kColumns + 96, 5), y(rows * kColumns + 96, 5);
    run("layer_norm", {x.data(), q.data(), g.data(), b.data(), h.data(), y.data()}, {kColumns, kColumns, rows}, 2);
    for (int r = 0; r < rows; ++r) {
      double mean = 0, variance = 0;
      for (int c = 0; c < kColumns; ++c)
        mean += double(x[r * kColumns + c] + q[r * kColumns + c]) / kColumns;
      for (int c = 0; c < kColumns; ++c)
        variance += std::pow(double(x[r * kColumns + c] + q[r * kColumns + c]) - mean, 2) / kColumns;
      for (int c = 0; c < kColumns; ++c) {
        float sum = x[r * kColumns + c] + q[r * kColumns + c];
        expectSame(h[r * kColumns + c], sum, "h");
        EXPECT_NEAR(y[r * kColumns + c], (sum - mean) / std::sqrt(variance + 1e-5) * g[c] + b[c], 2e-5);
      }
    }
    EXPECT_EQ(y[rows * kColumns], 5) << "a team without a row wrote";
  }
}

TEST(CudaKernel, ValueKeptInAnOutputIsLoadedBeforeItIsOverwritten) {
  constexpr int kRows = 3, kColumns = 300;
  Floats x = randoms(kRows * kColumns), y(kRows * kColumns), z(kRows * kColumns);
  run("kept_in_output", {x.data(), y.data(), z.data()}, {kColumns, kColumns, kColumns, kRows, kColumns});
  for (int r = 0; r < kRows; ++r) {
    double sum = 0;
    for (int c = 0; c < kColumns; ++c)
      sum += std::exp(double(x[r * kColumns + c]));
    for (int c = 0; c < kColumns; ++c) {
      EXPECT_NEAR(y[r * kColumns + c], x[r * kColumns + c] * sum, 1e-2);
      EXPECT_NEAR(z[r * kColumns + c], std::exp(double(x[r * kColumns + c])) + sum, 1e-2);
    }
  }
}

TEST(CudaKernel, ExtremesLetNanWinAndTakeTheFirstOfTies) {
  constexpr int kRows = 4, kColumns = 300;
  Floats x = randoms(kRows * kColumns), low(kRows), high(kRows);
  std::vector<int64_t> at(kRows);
  x[1 * kColumns + 40] = x[1 * kColumns + 290] = 99; // a tie
  x[2 * kColumns + 77] = x[2 * kColumns + 78] = kNan;
  for (int c = 0; c < kColumns; ++c)
    x[3 * kColumns + c] = -kInf;
  run("row_extremes", {x.data(), low.data(), high.data(), at.data()}, {kColumns, kRows, kColumns});
  for (int r : {0, 1}) {
    const float *row = &x[r * kColumns];
    EXPECT_EQ(low[r], *std::min_element(row, row + kColumns));
    EXPECT_EQ(high[r], *std::max_element(row, row + kColumns));
    EXPECT_EQ(at[r], std::max_element(row, row + kColumns) - row);
  }
  EXPECT_EQ(at[1], 40);
  EXPECT_TRUE(low[2] != low[2] && high[2] != high[2]);
  EXPECT_EQ(at[2], 77);
  EXPECT_EQ(at[3], 0);
  EXPECT_EQ(high[3], -kInf);
}

TEST(CudaKernel, ReductionsToOneNumber) {
  constexpr int kRows = 37, kColumns = 41;
  Floats x = randoms(kRows * kColumns);
  float sum = 0, mean = 0;
  run("sum_all", {x.data(), &sum}, {kColumns, kRows, kColumns});
  run("mean_lse", {x.data(), &mean}, {kColumns, kRows, kColumns});
  double wantSum = 0, wantMean = 0;
  for (int r = 0; r < kRows; ++r) {
    double exps = 0;
    for (int c = 0; c < kColumns; ++c) {
      wantSum += x[r * kColumns + c];
      exps += std::exp(double(x[r * kColumns + c]));
    }
    wantMean += std::log(exps) / kRows;
  }
  EXPECT_NEAR(sum, wantSum, 1e-3);
  EXPECT_NEAR(mean, wantMean, 1e-5);
  run("sum_all", {x.data(), &sum}, {kColumns, 0, kColumns});
  EXPECT_EQ(sum, 0);
}

TEST(CudaKernel, ColumnReductions) {
  for (auto [rows, columns] : {std::pair(1, 1), {9, 33}, {100, 64}, {3, 5}}) {
    Floats x = randoms(rows * columns), sums(columns + 1, 5), y(rows * columns);
    run("colsum", {x.data(), sums.data()}, {columns, rows, columns}, 2);
    run("center", {x.data(), y.data()}, {columns, columns, rows, columns}, 2);
    for (int c = 0; c < columns; ++c) {
      double want = 0;
      for (int r = 0; r < rows; ++r)
        want += x[r * columns + c];
      EXPECT_NEAR(sums[c], want, 1e-4);
      for (int r = 0; r < rows; ++r)
        EXPECT_NEAR(y[r * columns + c], x[r * columns + c] - want / rows, 1e-5);
    }
    EXPECT_EQ(sums[columns], 5) << "wrote past the columns";
  }
}

TEST(CudaKernel, GatherWrapsAndReportsIndices) {
  constexpr int kVocabulary = 6, kColumns = 5;
  Floats w = randoms(kVocabulary * kColumns), y(4 * kColumns);
  std::vector<int64_t> index{0, 5, -1, 3};
  EXPECT_EQ(run("embedding", {w.data(), index.data(), y.data()}, {kColumns, kColumns, kVocabulary, 4, kColumns}), 0);
  for (int n = 0; n < 4; ++n)
    for (int c = 0; c < kColumns; ++c)
      EXPECT_EQ(y[n * kColumns + c], w[(index[n] + kVocabulary) % kVocabulary * kColumns + c]);
  index[2] = 6;
  EXPECT_EQ(run("embedding", {w.data(), index.data(), y.data()}, {kColumns, kColumns, kVocabulary, 4, kColumns}), 2);
}

TEST(CudaKernel, PaddedWindow) {
  Floats x = randoms(9), y(9);
  run("smooth", {x.data(), y.data()}, {9});
  for (int i = 0; i < 9; ++i)
    expectSame(y[i], (i ? x[i - 1] : 0.0f) + x[i] + (i < 8 ? x[i + 1] : 0.0f), "window");
}

TEST(CudaKernel, ScatterAddsInOrder) {
  constexpr int kRows = 20, kColumns = 7, kVocabulary = 3;
  Floats x = randoms(kRows * kColumns), y(kVocabulary * kColumns), want(kVocabulary * kColumns);
  std::vector<int64_t> index;
  for (int n = 0; n < kRows; ++n)
    index.push_back(n * n % kVocabulary);
  EXPECT_EQ(run("scatter_add", {x.data(), index.data(), y.data()}, {kColumns, kColumns, kRows, kColumns, kVocabulary}),
            0);
  for (int n = 0; n < kRows; ++n)
    for (int c = 0; c < kColumns; ++c)
      want[index[n] * kColumns + c] += x[n * kColumns + c];
  EXPECT_EQ(y, want);
  index[4] = kVocabulary;
  EXPECT_EQ(run("scatter_add", {x.data(), index.data(), y.data()}, {kColumns, kColumns, kRows, kColumns, kVocabulary}),
            2);
}

TEST(CudaKernel, IndexValuesAndReversedReads) {
  std::vector<int64_t> target{2, 0, 9};
  Floats x = randoms(12), y(3 * 10);
  run("one_hot_flip", {target.data(), x.data(), y.data()}, {10, 3, 10});
  for (int n = 0; n < 3; ++n)
    for (int c = 0; c < 10; ++c)
      EXPECT_EQ(y[n * 10 + c], c == target[n] ? x[9 - c] : 0);
}

TEST(CudaKernel, NarrowFloatsRoundAfterEachOperation) {
  s::NativeBuilder b;
  constexpr int kCount = 64;
  std::vector<_Float16> x(kCount), y(kCount);
  std::vector<uint16_t> z(kCount), w(kCount);
  for (int i = 0; i < kCount; ++i) {
    x[i] = static_cast<_Float16>(-2 + i * 0.07f);
    z[i] = static_cast<uint16_t>(s::f32ToBf16Bits(b, -2 + i * 0.07f));
  }
  run("halves", {x.data(), z.data(), y.data(), w.data()}, {kCount});
  for (int i = 0; i < kCount; ++i) {
    float square = static_cast<_Float16>(float(x[i]) * float(x[i]));
    EXPECT_EQ(float(y[i]), float(static_cast<_Float16>(s::exp_(b, square))));
    float in = s::bf16BitsToF32(b, int32_t(z[i]));
    float sum = s::bf16BitsToF32(b, s::f32ToBf16Bits(b, in + in));
    EXPECT_EQ(w[i], static_cast<uint16_t>(s::f32ToBf16Bits(b, s::tanh_(b, sum))));
  }
}

TEST(CudaKernel, IntsBoolsAndDivisionByZero) {
  constexpr int kCount = 256;
  std::vector<uint8_t> x(kCount), t(kCount), u(kCount);
  std::vector<int32_t> d(kCount), q(kCount);
  for (int i = 0; i < kCount; ++i) {
    x[i] = static_cast<uint8_t>(i);
    d[i] = i < 128 ? i - 128 : i - 127;
  }
  EXPECT_EQ(run("ints", {x.data(), d.data(), t.data(), u.data(), q.data()}, {kCount}), 0);
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(t[i], i == 0);
    EXPECT_EQ(u[i], i / 7);
    EXPECT_EQ(q[i], static_cast<int>(std::floor(100.0 / d[i])));
  }
  d[3] = 0;
  EXPECT_EQ(run("ints", {x.data(), d.data(), t.data(), u.data(), q.data()}, {kCount}), 1);
}

TEST(CudaKernel, IntReductions) {
  std::vector<uint8_t> x(500, 0);
  std::vector<int64_t> w(500, INT64_MAX / 100);
  uint8_t any = 9, largest = 9;
  int64_t sum = 0;
  run("int_reductions", {x.data(), w.data(), &any, &largest, &sum}, {500});
  EXPECT_EQ(any, 0);
  EXPECT_EQ(largest, 0);
  EXPECT_EQ(sum, static_cast<int64_t>(uint64_t(INT64_MAX / 100) * 500)) << "sums wrap";
  x[499] = 200;
  run("int_reductions", {x.data(), w.data(), &any, &largest, &sum}, {500});
  EXPECT_EQ(any, 1);
  EXPECT_EQ(largest, 200);
}

} // namespace
