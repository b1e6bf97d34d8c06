// An edited schedule changes code, never results: random legal schedules give bitwise what the default gives for maps
// and integer reductions, and the same sum of integers in floats. Compiling is thread safe.
#include "KernelHarness.h"

#include <random>
#include <thread>

using namespace dlc::compiler;

namespace {

// Two stages of a row, a column sum of the result's source, in f32 holding small integers (so sums are exact).
const char *kRows = R"(
kernel.func @rows(%x: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?xf32, strided<[1]>>,
                  %y: memref<?x?xf32, strided<[?, 1]>>, %z: memref<?xf32, strided<[1]>>, %R: index, %C: index,
                  %err: memref<i64>) domain(r = %R, c = %C) outs(%y, %z)
    attributes {schedule = #kernel.schedule<$S>} {
  %s:2 = kernel.reduce over(r, c) by(c) combine [add, max] : !kernel.val<f32, [r]>, !kernel.val<f32, [r]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0, %0 : f32, f32
  }
  %e = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    %1 = kernel.use %s#1 : !kernel.val<f32, [r]> -> f32
    %2 = arith.subf %0, %1 : f32
    %3 = kernel.read %b[affine_map<(d0, d1) -> (d1)>] : memref<?xf32, strided<[1]>> -> f32
    %4 = kernel.prim "relu"(%2) : (f32) -> f32
    %5 = arith.subf %3, %4 : f32
    %6 = kernel.prim "abs"(%5) : (f32) -> f32
    kernel.yield %6 : f32
  }
  %t = kernel.reduce over(r, c) by(c) combine [add] : !kernel.val<f32, [r]> {
    %0 = kernel.use %e : !kernel.val<f32, [r, c]> -> f32
    kernel.yield %0 : f32
  }
  %o = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.use %e : !kernel.val<f32, [r, c]> -> f32
    %1 = kernel.use %t : !kernel.val<f32, [r]> -> f32
    %2 = kernel.use %s#0 : !kernel.val<f32, [r]> -> f32
    %3 = arith.subf %0, %1 : f32
    %4 = arith.addf %3, %2 : f32
    kernel.yield %4 : f32
  }
  kernel.write %o, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
  kernel.write %t, %z[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [r]>, memref<?xf32, strided<[1]>>
})";

const char *kColumns = R"(
kernel.func @columns(%x: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?xf32, strided<[1]>>,
                     %y: memref<?x?xf32, strided<[?, 1]>>, %z: memref<?xf32, strided<[1]>>, %R: index, %C: index,
                     %err: memref<i64>) domain(r = %R, c = %C) outs(%y, %z)
    attributes {schedule = #kernel.schedule<$S>} {
  %s = kernel.reduce over(r, c) by(r) combine [add] : !kernel.val<f32, [c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  }
  %o = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    %1 = kernel.use %s : !kernel.val<f32, [c]> -> f32
    %2 = kernel.read %b[affine_map<(d0, d1) -> (d1)>] : memref<?xf32, strided<[1]>> -> f32
    %3 = arith.subf %0, %1 : f32
    %4 = arith.mulf %3, %2 : f32
    kernel.yield %4 : f32
  }
  kernel.write %o, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
  kernel.write %s, %z[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [c]>, memref<?xf32, strided<[1]>>
})";

template <class T> T pick(std::mt19937 &random, std::initializer_list<T> list) {
  return *(list.begin() + random() % list.size());
}

std::string randomSchedule(std::mt19937 &random, const char *order, const char *par) {
  std::string text = order;
  text += std::string(", vec = {") + pick(random, {"r", "c"}) + " = " + pick(random, {"1", "2", "4", "8", "16", "32"}) +
          "}";
  text += std::string(", unroll = ") + pick(random, {"1", "2", "3", "4", "8"});
  text += std::string(", tail = ") + pick(random, {"mask", "single", "auto"});
  if (random() % 2)
    text += std::string(", par = [") + (random() % 2 ? par : "") + "]";
  if (random() % 2)
    text += std::string(", place = {s1 = ") + pick(random, {"out", "recompute"}) + "}";
  return text;
}

void checkSchedules(const char *kernel, const char *order, const char *par, size_t zSize(int64_t r, int64_t c)) {
  KernelHarness h;
  std::mt19937 random(11);
  CompiledKernel base = h.one(fill(kernel, {{"$S", ""}}));
  ASSERT_TRUE(base.fn);
  for (int trial = 0; trial < 50; ++trial) {
    std::string schedule = randomSchedule(random, order, par);
    CompiledKernel k = h.one(fill(kernel, {{"$S", schedule}}));
    ASSERT_TRUE(k.fn) << schedule;
    for (auto [r, c] : {std::pair<int64_t, int64_t>{1, 1}, {3, 7}, {5, 33}, {9, 64}, {2, 70}, {0, 5}, {4, 0}}) {
      std::vector<float> x(r * c), b(c + 1);
      for (float &v : x)
        v = float(int(random() % 17) - 8);
      for (float &v : b)
        v = float(int(random() % 5) - 2);
      std::vector<float> y(r * c + 1, 5), y2 = y, z(zSize(r, c) + 1, 5), z2 = z;
      run(base, {x.data(), b.data(), y.data(), z.data()}, {c, c, r, c});
      run(k, {x.data(), b.data(), y2.data(), z2.data()}, {c, c, r, c}, 1 + trial % 4);
      ASSERT_EQ(y, y2) << schedule << " " << r << "x" << c;
      ASSERT_EQ(z, z2) << schedule << " " << r << "x" << c;
    }
  }
}

TEST(KernelSchedule, AnySchedulesOfRowsAgree) {
  checkSchedules(kRows, "order = [r, c]", "r", [](int64_t r, int64_t) { return size_t(r); });
}

TEST(KernelSchedule, AnySchedulesOfColumnsAgree) {
  checkSchedules(kColumns, "order = [c, r]", "c", [](int64_t, int64_t c) { return size_t(c); });
}

TEST(KernelSchedule, PiecesOfTheRangeDoNotChangeRealSums) {
  KernelHarness h;
  std::mt19937 random(3);
  for (const char *text : {kRows, kColumns}) {
    CompiledKernel k = h.one(fill(text, {{"$S", ""}}));
    int64_t r = 37, c = 301;
    std::vector<float> x(r * c), b(c);
    for (float &v : x)
      v = float(random()) * 1e-7f;
    std::vector<float> y(r * c), z(c + r), first, firstSums;
    for (int pieces : {1, 2, 3, 7, 64}) {
      run(k, {x.data(), b.data(), y.data(), z.data()}, {c, c, r, c}, pieces);
      if (first.empty())
        first = y, firstSums = z;
      EXPECT_EQ(y, first) << pieces;
      EXPECT_EQ(z, firstSums) << pieces;
    }
  }
}

TEST(KernelSchedule, CompilesFromSeveralThreads) {
  CpuCompilerOptions options = withoutDisk();
  options.threads = 2;
  CpuCompiler compiler(options);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      KernelHarness h; // a context of its own
      std::string text;
      for (int i = 0; i < 4; ++i)
        text += fill(kRows,
                     {{"$S", "unroll = " + std::to_string(1 + (i + t) % 5)}, {"@rows", "@rows" + std::to_string(i)}});
      auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &h.context);
      auto kernels = llvm::to_vector(module->getOps<dlc::ir::kernel::FuncOp>());
      auto compiled = compiler.compile(kernels);
      ASSERT_TRUE(bool(compiled));
      std::vector<float> x = {1, 2, 3, 4}, b = {0, 0}, y(4), z(2);
      for (CompiledKernel &k : *compiled)
        run(k, {x.data(), b.data(), y.data(), z.data()}, {2, 2, 2, 2});
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_GE(compiler.stats().llvmCompilations, 5);
}

} // namespace
