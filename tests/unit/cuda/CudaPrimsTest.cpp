// Every scalar primitive on every kind it accepts: the CUDA text, run on the CPU, gives the bits of the native builder;
// NVRTC compiles the f32 ones without warnings or spills.
#include "HostProgram.h"
#include "compiler/cuda/CudaPrelude.h"
#include "compiler/cuda/CudaPrims.h"
#include "compiler/cuda/nvrtc/Nvrtc.h"
#include "runtime/scalar/NativeBuilder.h"
#include "runtime/scalar/Primitives.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace s = dlc::scalar;
using dlc::compiler::CudaHelper;
using dlc::compiler::CudaPrim;
using dlc::compiler::CudaPrims;
using s::Kind;

namespace {

constexpr size_t kCount = 2048;

struct Case {
  std::string kernel, name;
  Kind kind, result;
  int arity;
};

std::vector<Kind> operandKinds(std::string_view name, int arity, Kind kind) {
  std::vector<Kind> kinds(arity, kind);
  if (name == "select")
    kinds[0] = Kind::Bool;
  return kinds;
}

// A kernel that applies the primitive to arrays a, b, c.
std::string kernelText(const CudaPrim &prim, const Case &c) {
  std::vector<Kind> kinds = operandKinds(c.name, c.arity, c.kind);
  std::string text = "extern \"C\" __global__ void " + c.kernel + "(", call = prim.function + "(";
  if (prim.raises)
    call += "err, ";
  for (int i = 0; i < c.arity; ++i) {
    std::string array(1, static_cast<char>('a' + i));
    text += std::string("const ") + s::cppName(kinds[i]) + " *" + array + ", ";
    call += (i ? ", " : "") + array + "[i]";
  }
  text += std::string(s::cppName(prim.result)) + " *y, long long *err, long long n) {\n";
  text +=
      "  for (long long i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64)\n    y[i] = " + call + ");\n}\n";
  return text;
}

struct Program {
  std::vector<Case> cases;
  std::string text;
};

Program makeProgram(std::initializer_list<Kind> kinds) {
  Program program;
  CudaPrims prims;
  std::string kernels;
  s::forEachPrimitive([&](const auto &p) {
    for (Kind kind : kinds) {
      if (!s::primitiveAccepts(p.name, kind))
        continue;
      const CudaPrim *prim = prims.use(p.name, operandKinds(p.name, p.kArity, kind));
      ASSERT_NE(prim, nullptr) << p.name;
      EXPECT_EQ(prim->result, s::primitiveResult(p.name, kind)) << p.name;
      std::string name(p.name);
      program.cases.push_back({"k_" + name + "_" + s::shortName(kind), name, kind, prim->result, p.kArity});
      kernels += kernelText(*prim, program.cases.back());
    }
  });
  bool ints = std::count(kinds.begin(), kinds.end(), Kind::I32) > 0; // floats use no helper
  std::set<CudaHelper> helpers;
  if (ints)
    helpers = {CudaHelper::Raise, CudaHelper::IntPow};
  program.text = dlc::compiler::cudaPrelude(helpers) + prims.text() + kernels;
  return program;
}

// Values of one kind with the awkward ones first; three sets, so that operands differ.
template <class T> std::vector<T> values(int set) {
  std::mt19937_64 random(17 + set);
  std::vector<T> out;
  if constexpr (std::is_floating_point_v<T>) {
    T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    std::vector<T> odd{0,
                       T(-0.0),
                       1,
                       -1,
                       T(0.5),
                       T(-0.5),
                       2,
                       -3,
                       inf,
                       -inf,
                       nan,
                       std::numeric_limits<T>::denorm_min(),
                       std::numeric_limits<T>::max(),
                       std::numeric_limits<T>::lowest(),
                       std::numeric_limits<T>::min(),
                       20};
    for (size_t i = 0; i < odd.size() * odd.size(); ++i)
      out.push_back(odd[set == 0 ? i / odd.size() : (i * (set == 1 ? 1 : 7)) % odd.size()]);
    std::uniform_real_distribution<double> near(-12, 12);
    while (out.size() < kCount) {
      uint64_t bits = random();
      T any;
      std::memcpy(&any, &bits, sizeof any);
      out.push_back(out.size() % 2 ? any : static_cast<T>(near(random)));
    }
  } else {
    while (out.size() < kCount)
      out.push_back(static_cast<T>(out.size() % 3 ? random() : random() % 9 - 4));
    if (set == 0)
      out[0] = std::numeric_limits<T>::min();
    if (set == 1) {
      out[0] = static_cast<T>(-1);
      out[1] = 0;
    }
  }
  return out;
}
// std::vector<bool> has no data(): bytes stand for Bool.
template <class T> using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
template <class T> std::vector<Stored<T>> stored(int set) {
  std::vector<Stored<T>> out = values<Stored<T>>(set);
  if constexpr (std::is_same_v<T, bool>)
    for (auto &v : out)
      v &= 1;
  return out;
}

template <class R> bool sameBits(R x, R y) {
  if constexpr (std::is_floating_point_v<R>)
    if (x != x && y != y)
      return true;
  return std::memcmp(&x, &y, sizeof x) == 0;
}

// Runs case number I of the list natively and through the shim.
template <size_t I, Kind K> void check(HostProgram &program) {
  constexpr auto &p = std::get<I>(s::kPrimitives);
  using T = s::TypeOf<K>;
  if constexpr (s::primitiveAccepts(p.name, K)) {
    auto a = stored<T>(0), b = stored<T>(1), c = stored<T>(2);
    std::vector<uint8_t> flags = stored<bool>(0);
    s::NativeBuilder builder;
    auto apply = [&](size_t i) {
      if constexpr (p.name == "select")
        return p.code(builder, bool(flags[i]), T(b[i]), T(c[i]));
      else if constexpr (std::decay_t<decltype(p)>::kArity == 1)
        return p.code(builder, T(a[i]));
      else if constexpr (std::decay_t<decltype(p)>::kArity == 2)
        return p.code(builder, T(a[i]), T(b[i]));
      else
        return p.code(builder, T(a[i]), T(b[i]), T(c[i]));
    };
    using R = decltype(apply(0));
    std::vector<Stored<R>> got(kCount);
    int64_t fault = 0;
    std::vector<void *> bufs{p.name == "select" ? static_cast<void *>(flags.data()) : a.data()};
    if (p.kArity > 1)
      bufs.push_back(b.data());
    if (p.kArity > 2)
      bufs.push_back(c.data());
    bufs.insert(bufs.end(), {got.data(), &fault});
    std::string kernel = "k_" + std::string(p.name) + "_" + s::shortName(K);
    program.run(kernel, bufs, {int64_t(kCount)}, 1);
    for (size_t i = 0; i < kCount; ++i) {
      R want = apply(i);
      ASSERT_TRUE(sameBits<R>(R(got[i]), want)) << kernel << " at " << i << ": " << +R(got[i]) << " instead of "
                                                << +want << " for " << +a[i] << ", " << +b[i] << ", " << +c[i];
    }
    EXPECT_EQ(fault, builder.fault) << kernel;
  }
}

template <Kind K, size_t... I> void checkKind(HostProgram &program, std::index_sequence<I...>) {
  (check<I, K>(program), ...);
}

template <Kind... K> void checkKinds() {
  Program program = makeProgram({K...});
  std::vector<HostKernel> kernels;
  for (const Case &c : program.cases)
    kernels.push_back({c.kernel, 64, 1});
  HostProgram host(program.text, kernels);
  using All = std::make_index_sequence<std::tuple_size_v<std::decay_t<decltype(s::kPrimitives)>>>;
  (checkKind<K>(host, All()), ...);
}

TEST(CudaPrims, FloatsGiveTheNativeBits) { checkKinds<Kind::F32, Kind::F64>(); }
TEST(CudaPrims, IntsAndBoolsGiveTheNativeBits) {
  checkKinds<Kind::Bool, Kind::I8, Kind::U8, Kind::I16, Kind::I32, Kind::I64>();
}

TEST(CudaPrims, NamesAndKindsAreChecked) {
  CudaPrims prims;
  EXPECT_EQ(prims.use("no_such", {Kind::F32}), nullptr);
  EXPECT_EQ(prims.use("exp", {Kind::I32}), nullptr);
  EXPECT_EQ(prims.use("exp", {Kind::F32, Kind::F32}), nullptr);
  EXPECT_EQ(prims.use("select", {Kind::Bool, Kind::F32, Kind::F32})->function, "dlc_select_bool_f32");
  EXPECT_TRUE(prims.use("remainder", {Kind::I32, Kind::I32})->raises);
  EXPECT_FALSE(prims.use("remainder", {Kind::F32, Kind::F32})->raises);
}

TEST(CudaPrims, CompileCleanlyForTheGpu) {
  std::string library = dlc::compiler::Nvrtc::findIn(DLC_TEST_SOURCE "/.venv");
  ASSERT_FALSE(library.empty()) << "no NVRTC in .venv: pip install -r tools/requirements.txt there";
  auto nvrtc = dlc::compiler::Nvrtc::open(library);
  dlc::compiler::Cubin cubin = nvrtc->compile(makeProgram({Kind::F32}).text, "sm_80");
  EXPECT_GT(cubin.usage.size(), 80u);
  for (const auto &usage : cubin.usage) {
    EXPECT_EQ(usage.spillBytes, 0) << usage.kernel;
    EXPECT_LE(usage.registers, 64) << usage.kernel;
  }
}

TEST(Nvrtc, MissingLibraryAndBadTextSayWhatToDo) {
  try {
    dlc::compiler::Nvrtc::open("/nowhere/libnvrtc.so");
    FAIL();
  } catch (const std::exception &error) {
    EXPECT_NE(std::string(error.what()).find("DLC_NVRTC"), std::string::npos) << error.what();
  }
  auto nvrtc = dlc::compiler::Nvrtc::open(dlc::compiler::Nvrtc::findIn(DLC_TEST_SOURCE "/.venv"));
  EXPECT_THROW(nvrtc->compile("__global__ void f() { int unused; }", "sm_80"), std::exception);
  EXPECT_THROW(nvrtc->compile("__global__ void f() { g(); }", "sm_80"), std::exception);
}

} // namespace
