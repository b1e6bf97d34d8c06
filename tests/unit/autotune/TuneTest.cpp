// Tuning real kernels: every candidate computes what the default does, a planted bad default is replaced, a good one
// stays, and entries outlive the process but not their machine.
#include "compiler/autotune/Candidates.h"
#include "compiler/autotune/KernelBench.h"
#include "compiler/autotune/Tune.h"
#include "compiler/autotune/TuningStore.h"
#include "compiler/lower/Schedule.h"
#include "tests/unit/kernel/KernelHarness.h"

#include <chrono>
#include <cmath>
#include <dirent.h>
#include <fstream>
#include <random>
#include <unistd.h>

using namespace dlc::compiler;
using dlc::DType;
using dlc::ir::kernel::FuncOp;

namespace {

const char *kMap = R"(
kernel.func @map(%x: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?xf32, strided<[1]>>,
                 %y: memref<?x?xf32, strided<[?, 1]>>, %R: index, %C: index, %err: memref<i64>)
    domain(r = %R, c = %C) outs(%y) attributes {schedule = #kernel.schedule<$S>} {
  %e = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    %1 = kernel.read %b[affine_map<(d0, d1) -> (d1)>] : memref<?xf32, strided<[1]>> -> f32
    %2 = arith.addf %0, %1 : f32
    %3 = kernel.prim "tanh"(%2) : (f32) -> f32
    kernel.yield %3 : f32
  }
  kernel.write %e, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
})";

// A row's sum and what the row is over it.
const char *kRow = R"(
kernel.func @row(%x: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?xf32, strided<[1]>>,
                 %y: memref<?x?xf32, strided<[?, 1]>>, %R: index, %C: index, %err: memref<i64>)
    domain(r = %R, c = %C) outs(%y) attributes {schedule = #kernel.schedule<$S>} {
  %e = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    %1 = kernel.prim "exp"(%0) : (f32) -> f32
    kernel.yield %1 : f32
  }
  %s = kernel.reduce over(r, c) by(c) combine [add] : !kernel.val<f32, [r]> {
    %0 = kernel.use %e : !kernel.val<f32, [r, c]> -> f32
    kernel.yield %0 : f32
  }
  %o = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.use %e : !kernel.val<f32, [r, c]> -> f32
    %1 = kernel.use %s : !kernel.val<f32, [r]> -> f32
    %2 = kernel.read %b[affine_map<(d0, d1) -> (d1)>] : memref<?xf32, strided<[1]>> -> f32
    %3 = arith.divf %0, %1 : f32
    %4 = arith.mulf %3, %2 : f32
    kernel.yield %4 : f32
  }
  kernel.write %o, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
})";

// A column's sum, subtracted.
const char *kColumn = R"(
kernel.func @column(%x: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?xf32, strided<[1]>>,
                    %y: memref<?x?xf32, strided<[?, 1]>>, %R: index, %C: index, %err: memref<i64>)
    domain(r = %R, c = %C) outs(%y) attributes {schedule = #kernel.schedule<$S>} {
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
})";

const char *kProduct = R"(
kernel.func @product(%a: memref<?x?xf32, strided<[?, 1]>>, %w: memref<?x?xf32, strided<[?, 1]>>,
    %c: memref<?x?xf32, strided<[?, 1]>>, %M: index, %N: index, %K: index, %err: memref<i64>)
    domain(m = %M, n = %N, k = %K) outs(%c) attributes {schedule = #kernel.schedule<$S>} {
  %s = kernel.contract over(m, n, k) by(k) : !kernel.val<f32, [m, n]> lhs {
    %0 = kernel.read %a[affine_map<(d0, d1, d2) -> (d0, d2)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  } rhs {
    %0 = kernel.read %w[affine_map<(d0, d1, d2) -> (d2, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  }
  kernel.write %s, %c[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [m, n]>, memref<?x?xf32, strided<[?, 1]>>
})";

struct Tuning : testing::Test {
  KernelHarness h;

  /// The kernel of `text` with a complete schedule.
  FuncOp parse(const std::string &text, const std::string &schedule = "") {
    module = mlir::parseSourceString<mlir::ModuleOp>(fill(text, {{"$S", schedule}}), &h.context);
    FuncOp kernel = *module->getOps<FuncOp>().begin();
    kernel.setScheduleAttr(completeSchedule(kernel, bits()));
    return kernel;
  }
  unsigned bits() { return h.compiler.target().vectorBits; }
  CompiledKernel compile(FuncOp kernel) {
    auto compiled = h.compiler.compile(kernel);
    EXPECT_TRUE(bool(compiled));
    return (*compiled)[0];
  }
  static KernelProblem problem(int64_t r, int64_t c) {
    return {{{DType::F32, r * c, 0}, {DType::F32, c, 0}, {DType::F32, r * c, 0}}, {c, c, r, c}, 0};
  }
  static double deadline(double seconds) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count() + seconds;
  }
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// `integers`: values whose sums are exact in any order.
void fillRandom(std::vector<float> &values, std::mt19937 &random, bool integers) {
  for (float &v : values)
    v = integers ? float(int(random() % 17) - 8) : float(int32_t(random())) * 0x1p-31f;
}

TEST_F(Tuning, EveryCandidateComputesTheSame) {
  std::mt19937 random(5);
  for (const char *text : {kMap, kRow, kColumn}) {
    FuncOp kernel = parse(text);
    auto schedules = candidateSchedules(kernel, {{64, 512}, bits()}, 1000);
    EXPECT_GE(schedules.size(), 8u) << text;
    CompiledKernel base = compile(kernel);
    for (size_t k = 1; k < schedules.size(); k += 1 + schedules.size() / 40) {
      kernel.setScheduleAttr(schedules[k]);
      CompiledKernel other = compile(kernel);
      for (auto [r, c] : {std::pair<int64_t, int64_t>{1, 1}, {3, 7}, {5, 33}, {9, 64}, {2, 70}, {17, 129}, {0, 5}}) {
        std::vector<float> x(r * c), b(c + 1), y(r * c + 1, 5);
        bool exact = text != kRow;
        fillRandom(x, random, text == kColumn);
        fillRandom(b, random, text == kColumn);
        std::vector<float> y2 = y;
        run(base, {x.data(), b.data(), y.data()}, {c, c, r, c});
        run(other, {x.data(), b.data(), y2.data()}, {c, c, r, c}, 1 + static_cast<int>(k) % 3);
        std::string where;
        llvm::raw_string_ostream(where) << schedules[k] << " " << r << "x" << c;
        for (size_t i = 0; i < y.size(); ++i) {
          if (exact)
            ASSERT_EQ(std::memcmp(&y[i], &y2[i], 4), 0) << where << " " << y[i] << " " << y2[i];
          else // the order in which a row is added, n * eps at most
            ASSERT_LE(std::abs(y[i] - y2[i]), std::abs(y[i]) * 1.2e-7f * float(c)) << where;
        }
      }
    }
    kernel.setScheduleAttr(schedules[0]);
  }
}

TEST_F(Tuning, EveryTileOfAProductComputesTheSame) {
  std::mt19937 random(9);
  FuncOp kernel = parse(kProduct);
  auto schedules = candidateSchedules(kernel, {{64, 512, 512}, bits()}, 1000);
  EXPECT_GE(schedules.size(), 12u);
  EXPECT_EQ(classOf(kernel), KernelClass::Contract);
  CompiledKernel base = compile(kernel);
  for (size_t k = 1; k < schedules.size(); k += 1 + schedules.size() / 15) {
    kernel.setScheduleAttr(schedules[k]);
    CompiledKernel other = compile(kernel);
    for (auto [m, n, d] :
         {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {3, 7, 5}, {15, 33, 300}, {29, 97, 0}, {7, 130, 17}}) {
      std::vector<float> a(m * d + 1), w(d * n + 1), c(m * n, 3), c2 = c;
      fillRandom(a, random, true);
      fillRandom(w, random, true);
      run(base, {a.data(), w.data(), c.data()}, {d, n, n, m, n, d});
      run(other, {a.data(), w.data(), c2.data()}, {d, n, n, m, n, d});
      ASSERT_EQ(c, c2) << m << "x" << n << "x" << d << " schedule " << k;
    }
  }
  kernel.setScheduleAttr(schedules[0]);
}

TEST_F(Tuning, TheDefaultComesFirstAndNothingTwice) {
  for (const char *text : {kMap, kRow, kColumn}) {
    FuncOp kernel = parse(text);
    auto given = kernel.getScheduleAttr();
    auto schedules = candidateSchedules(kernel, {{64, 512}, bits()}, 8);
    EXPECT_EQ(schedules.size(), 9u);
    EXPECT_EQ(schedules[0], given);
    EXPECT_EQ(kernel.getScheduleAttr(), given);
    std::set<const void *> distinct;
    for (auto s : schedules)
      distinct.insert(s.getAsOpaquePointer());
    EXPECT_EQ(distinct.size(), schedules.size());
  }
}

TEST_F(Tuning, TheModelPrefersVectorsAlongMemory) {
  FuncOp good = parse(kMap);
  double best = modelCost(good, {{256, 1024}, bits()});
  for (const char *bad : {"vec = {c = 1}", "order = [c, r], vec = {r = 8}"})
    EXPECT_GT(modelCost(parse(kMap, bad), {{256, 1024}, bits()}), 2 * best) << bad;
}

TEST_F(Tuning, ABadDefaultIsReplaced) {
  // A quarter or half of the lanes that fit: nearly twice the time on any machine.
  RaceRules rules;
  rules.canarySlack = 100; // however busy this one is
  FuncOp kernel = parse(kMap, "vec = {c = 4}, unroll = 1, tail = mask");
  double seconds[2];
  ASSERT_TRUE(tuneKernel(kernel, problem(64, 1024), h.compiler, deadline(60), seconds, rules));
  EXPECT_GT(kernel.getScheduleAttr().getVecWidth(), 4);
  EXPECT_LT(seconds[1], seconds[0]);
}

TEST_F(Tuning, WithoutTimeTheDefaultStays) {
  FuncOp kernel = parse(kMap, "vec = {c = 4}");
  auto given = kernel.getScheduleAttr();
  double seconds[2];
  EXPECT_FALSE(tuneKernel(kernel, problem(64, 1024), h.compiler, deadline(0), seconds));
  EXPECT_EQ(kernel.getScheduleAttr(), given);
}

TEST_F(Tuning, KeysTellKernelsAndClassesOfSizesApart) {
  FuncOp kernel = parse(kMap);
  std::string key = tuningKey(kernel, {60, 500});
  EXPECT_EQ(tuningKey(kernel, {64, 512}), key);
  EXPECT_NE(tuningKey(kernel, {65, 512}), key);
  EXPECT_EQ(tuningKey(parse(kMap, "vec = {c = 4}"), {64, 512}), key) << "whatever its schedule";
  EXPECT_NE(tuningKey(parse(kRow), {64, 512}), key);
}

//===--- The store ---===//

struct Store : testing::Test {
  Store() {
    std::string name = testing::TempDir() + "dlc-tuning-XXXXXX";
    root = mkdtemp(name.data());
    directory = root + "/tuning";
  }
  ~Store() override {
    for (const std::string &file : files())
      unlink(file.c_str());
    rmdir(directory.c_str());
    rmdir(root.c_str());
  }
  std::vector<std::string> files() {
    std::vector<std::string> names;
    if (DIR *dir = opendir(directory.c_str())) {
      while (dirent *entry = readdir(dir))
        if (entry->d_name[0] != '.')
          names.push_back(directory + "/" + entry->d_name);
      closedir(dir);
    }
    return names;
  }
  std::string root, directory;
  TuningEntry entry{"#kernel.schedule<unroll = 2>", 1.5e-5, 1.25e-5};
  std::string key = tuningHost() + "sizes 4\nkernel";
};

TEST_F(Store, EntriesOutliveTheProcess) {
  TuningStore(directory).put(key, entry);
  TuningStore other(directory);
  EXPECT_EQ(other.find(key), entry);
  EXPECT_FALSE(other.find(key + "x"));
}

TEST_F(Store, TheGenerationChangesWithEveryEntry) {
  TuningStore one(directory), other(directory);
  std::string before = other.generation();
  EXPECT_EQ(before, other.generation());
  usleep(20000);
  one.put(key, entry);
  EXPECT_NE(other.generation(), before) << "of another process";
  before = other.generation();
  EXPECT_TRUE(other.load(key + "2", toText(entry)));
  EXPECT_NE(other.generation(), before);
}

TEST_F(Store, DamagedEntriesCountAsAbsent) {
  TuningStore(directory).put(key, entry);
  ASSERT_EQ(files().size(), 1u);
  std::fstream file(files()[0], std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(200);
  file.put('?');
  file.close();
  TuningStore other(directory);
  EXPECT_FALSE(other.find(key));
  EXPECT_TRUE(other.dump().empty());
  other.put(key, entry);
  EXPECT_EQ(TuningStore(directory).find(key), entry);
}

TEST_F(Store, ADumpLoadsWhereItFits) {
  TuningStore one(directory);
  one.put(key, entry);
  one.put(key + "default", {"", 1e-6, 1e-6});
  auto dump = one.dump();
  ASSERT_EQ(dump.size(), 2u);
  TuningStore other("");
  for (auto &[k, v] : dump)
    EXPECT_TRUE(other.load(k, v));
  EXPECT_EQ(other.find(key), entry);
  EXPECT_EQ(other.dump(), dump);
  std::string foreign = key;
  foreign.replace(foreign.find("cpu "), 4, "cpu z");
  EXPECT_FALSE(other.load(foreign, toText(entry)));
  for (const char *bad : {"", "schedule", "schedule x\ndefault a\nseconds 2\n", "schedule x\ndefault -1\nseconds 2\n"})
    EXPECT_FALSE(other.load(key, bad)) << bad;
  EXPECT_EQ(other.find(key), entry);
}

} // namespace
