// The recorder against eager execution: views, in-place ops, overlapping inputs, the dead and the living.
#include "frontend/compile/Compile.h"
#include "runtime/autograd/Autograd.h"
#include "runtime/op/Functional.h"
#include <gtest/gtest.h>

using namespace dlc;

namespace {

Tensor iota(Sizes sizes) {
  Tensor t = Tensor::empty(sizes, DType::F32);
  for (int64_t i = 0; i < t.numel(); ++i)
    t.dataAs<float>()[i] = static_cast<float>(i);
  return t;
}

std::vector<float> valuesOf(const Tensor &t) {
  Tensor c = ops::contiguous(t);
  return {c.dataAs<float>(), c.dataAs<float>() + c.numel()};
}

/// Runs `f` on fresh copies of the inputs eagerly and `times` times recorded; compares results and inputs.
template <class F> void sameAsEager(F f, int times = 3) {
  auto [inputs, results] = f();
  Ref<CompiledFunction> fn = makeRef<CompiledFunction>("test", CompileOptions{false, true});
  for (int k = 0; k < times; ++k) {
    CompiledCall call(fn);
    auto [in, out] = f();
    call.finish();
    ASSERT_EQ(out.size(), results.size());
    for (size_t i = 0; i < out.size(); ++i)
      EXPECT_EQ(valuesOf(out[i]), valuesOf(results[i]));
    for (size_t i = 0; i < in.size(); ++i)
      EXPECT_EQ(valuesOf(in[i]), valuesOf(inputs[i]));
  }
}
using Pair = std::pair<std::vector<Tensor>, std::vector<Tensor>>;

TEST(Recorder, RecordsInsteadOfRunning) {
  Ref<CompiledFunction> fn = makeRef<CompiledFunction>("test", CompileOptions{false, true});
  Tensor x = iota({4});
  CompiledCall call(fn);
  Tensor y = ops::add(ops::mul(x, x), x);
  EXPECT_NE(y.storage().lazy(), nullptr);
  EXPECT_EQ(y.storage().rawData(), nullptr);
  call.finish();
  EXPECT_EQ(y.storage().lazy(), nullptr);
  EXPECT_EQ(valuesOf(y), (std::vector<float>{0, 2, 6, 12}));
}

TEST(Recorder, OverlappingInputsSeeEachOthersWrites) {
  sameAsEager([] {
    Tensor b = iota({6});
    Tensor p = ops::slice(b, 0, Dim(0), Dim(4)), q = ops::slice(b, 0, Dim(2), Dim(6));
    ops::add_(p, Tensor(Number(1)));
    return Pair{{b}, {ops::mul(p, q)}};
  });
}

TEST(Recorder, EarlierReadsKeepWhatTheySaw) {
  sameAsEager([] {
    Tensor x = iota({2, 2});
    Tensor y = ops::mul(ops::view(x, {Dim(4)}), Tensor(Number(2)));
    ops::copy_(ops::select(x, 0, Dim(0)), Tensor(Number(100)));
    return Pair{{x}, {y, ops::add(x, x)}};
  });
}

TEST(Recorder, WritesThroughTransposedAndStridedViews) {
  sameAsEager([] {
    Tensor x = iota({3, 4});
    Tensor t = ops::transpose(x, 0, 1);
    ops::add_(ops::select(t, 0, Dim(1)), Tensor(Number(10)));
    Tensor y = ops::add(t, Tensor(Number(1)));
    ops::mul_(ops::slice(y, 0, Dim(0), Dim(4), Dim(2)), Tensor(Number(3)));
    return Pair{{x}, {y, ops::neg(t)}};
  });
}

TEST(Recorder, TwoInPlaceOpsAreOneWriteBack) {
  sameAsEager([] {
    Tensor a = iota({3});
    ops::neg_(a);
    ops::sub_(a, Tensor(Number(2)));
    return Pair{{a}, {ops::mul(a, a)}};
  });
}

TEST(Recorder, GradientsOfAWholeStepAreRecorded) {
  installAutograd();
  sameAsEager([] {
    Tensor w = iota({3});
    setRequiresGrad(w, true);
    Tensor x = iota({2, 3});
    Tensor loss = ops::sum(ops::mul(ops::mul(x, w), w));
    Tensor roots[1] = {loss};
    backward(roots, {}, false, false);
    Tensor g = gradMetaOrNull(w)->grad;
    return Pair{{}, {loss, g}};
  });
}

TEST(Recorder, ADivisionByZeroRaisesThoughNobodyReadsTheQuotient) {
  Ref<CompiledFunction> fn = makeRef<CompiledFunction>("test", CompileOptions{false, true});
  Tensor x = Tensor::empty({2}, DType::I64);
  x.dataAs<int64_t>()[0] = 0;
  x.dataAs<int64_t>()[1] = 1;
  CompiledCall call(fn);
  Tensor q = ops::floor_divide(x, x);
  ops::fill_(q, Tensor(Number(0)));
  Tensor y = ops::add(q, Tensor(Number(1)));
  EXPECT_THROW(call.finish(), Error);
  EXPECT_THROW(y.data(), Error);
}

TEST(Recorder, AReadInTheMiddleIsABreak) {
  resetCompileStats();
  Ref<CompiledFunction> fn = makeRef<CompiledFunction>("test", CompileOptions{false, true});
  Tensor x = iota({4});
  CompiledCall call(fn);
  Tensor y = ops::add(ops::mul(x, x), x);
  EXPECT_EQ(ops::sum(y).item().toDouble(), 20);
  Tensor z = ops::mul(y, y);
  call.finish();
  EXPECT_EQ(valuesOf(z)[3], 144);
  EXPECT_EQ(compileStats().breaks, 1);
}

} // namespace
