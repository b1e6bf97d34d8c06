// Pieces recorded under an observer run again for other inputs, sizes and numbers as eager execution would.
#include "tests/unit/capture/TestSession.h"

using namespace dlc;
using dlc::testing::TestSession;

namespace {

Tensor filled(Sizes sizes, float from = 0) {
  Tensor t = Tensor::empty(sizes, DType::F32);
  for (int64_t i = 0; i < t.numel(); ++i)
    t.dataAs<float>()[i] = from + 0.25f * static_cast<float>((i * 7) % 23);
  return t;
}

std::vector<float> valuesOf(const Tensor &t) {
  Tensor c = ops::contiguous(t);
  return {c.dataAs<float>(), c.dataAs<float>() + c.numel()};
}

using Tensors = std::vector<Tensor>;

struct Captured {
  std::unique_ptr<TestSession> session;
  Tensors results;
};

/// Runs `f(inputs)` under a session and returns it.
template <class F>
Captured capture(F f, Tensors inputs, bool symbols = false,
                 Ref<CompiledFunction> fn = makeRef<CompiledFunction>("test", CompileOptions{false, true})) {
  Captured c{std::make_unique<TestSession>(inputs, symbols), {}};
  FactSink sink;
  CompiledCall call(fn, c.session.get());
  EXPECT_TRUE(call.active());
  if (symbols)
    for (const Tensor &t : inputs)
      (void)t.meta(); // from here on aliases of it know its sizes too
  c.results = f(inputs);
  for (const Tensor &t : c.results)
    c.session->keep(t);
  call.finish();
  c.session->facts = sink.take();
  return c;
}

Tensors copies(const Tensors &from) {
  Tensors out;
  for (const Tensor &t : from)
    out.push_back(ops::clone(t));
  return out;
}

/// Replays for `inputs` and compares with eager: results, what is left in the inputs, and their versions.
template <class F> void expectSame(Captured &c, F f, const Tensors &inputs) {
  Tensors mine = copies(inputs), theirs = copies(inputs);
  ASSERT_TRUE(c.session->accepts(mine));
  c.session->run(mine);
  Tensors results = f(theirs);
  ASSERT_EQ(results.size(), c.results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    Tensor got = c.session->standIn(c.results[i], mine);
    ASSERT_TRUE(got.defined());
    EXPECT_EQ(got.sizes(), results[i].sizes());
    EXPECT_EQ(got.strides(), results[i].strides());
    EXPECT_EQ(valuesOf(got), valuesOf(results[i]));
    EXPECT_EQ(got.storage().version(), results[i].storage().version());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(valuesOf(mine[i]), valuesOf(theirs[i]));
    EXPECT_EQ(mine[i].storage().version(), theirs[i].storage().version());
  }
  EXPECT_TRUE(c.session->reasons.empty());
}

TEST(Observer, ASmallPieceRunsAgain) {
  auto f = [](const Tensors &in) { return Tensors{ops::add(in[0], Tensor(Number(1)))}; };
  Captured c = capture(f, {filled({8})});
  ASSERT_EQ(c.session->steps.size(), 1u);
  EXPECT_EQ(c.session->steps[0].record.code->numNodes(), 1u);
  EXPECT_TRUE(c.session->steps[0].record.code->isShort());
  resetCompileStats();
  expectSame(c, f, {filled({8}, 3)});
  EXPECT_EQ(compileStats().smallPieces, 1);
}

TEST(Observer, SmallPiecesOfViewsAndWrites) {
  auto f = [](const Tensors &in) {
    Tensor row = ops::select(in[0], 0, Dim(1));
    return Tensors{ops::mul(row, Tensor(Number(2)))};
  };
  Captured c = capture(f, {filled({3, 4})});
  expectSame(c, f, {filled({3, 4}, 1)});
  auto g = [](const Tensors &in) {
    ops::add_(in[0], in[1]);
    return Tensors{};
  };
  Captured d = capture(g, {filled({3, 4}), filled({4})});
  expectSame(d, g, {filled({3, 4}, 1), filled({4}, 2)});
}

TEST(Observer, ALongPieceRunsAgain) {
  auto f = [](const Tensors &in) {
    Tensor y = ops::mul(ops::add(in[0], in[1]), in[0]);
    ops::sub_(in[1], y);
    return Tensors{y, ops::sum(in[1])};
  };
  Captured c = capture(f, {filled({3, 4}), filled({3, 4}, 1)});
  expectSame(c, f, {filled({3, 4}, 5), filled({3, 4}, 2)});
}

TEST(Observer, AWriteThroughAViewOfAnInput) {
  auto f = [](const Tensors &in) {
    Tensor part = ops::slice(in[0], 1, Dim(1), Dim(3));
    ops::mul_(part, Tensor(Number(3)));
    return Tensors{ops::add(in[0], in[0])};
  };
  Captured c = capture(f, {filled({3, 4})});
  expectSame(c, f, {filled({3, 4}, 5)});
  auto fn = makeRef<CompiledFunction>("test", CompileOptions{false, true});
  capture(f, {filled({5, 4})}, false, fn);
  Captured s = capture(f, {filled({3, 4})}, true, fn);
  expectSame(s, f, {filled({7, 4}, 5)});
}

TEST(Observer, AReadMakesTwoPieces) {
  auto f = [](const Tensors &in) {
    Tensor y = ops::mul(ops::add(in[0], in[0]), in[0]);
    (void)ops::sum(y).item();
    ops::add_(y, Tensor(Number(1)));
    return Tensors{y};
  };
  Captured c = capture(f, {filled({5})});
  EXPECT_EQ(c.session->steps.size(), 2u);
  expectSame(c, f, {filled({5}, 9)});
}

TEST(Observer, SizesAreSymbols) {
  auto f = [](const Tensors &in) {
    Tensor y = ops::relu(ops::add(ops::matmul(in[0], in[1]), in[2]));
    return Tensors{ops::mean(y), ops::transpose(y, 0, 1), ops::softmax(y, 1)};
  };
  auto fn = makeRef<CompiledFunction>("test", CompileOptions{false, true});
  auto inputs = [](int64_t n) { return Tensors{filled({n, 4}), filled({4, 5}, 1), filled({5}, -2)}; };
  capture(f, inputs(3), false, fn); // the first sizes are compiled for themselves
  Captured c = capture(f, inputs(6), true, fn);
  EXPECT_EQ(fn->numEntries(), 2u);
  for (int64_t n : {2, 6, 9, 17})
    expectSame(c, f, inputs(n));
}

TEST(Observer, AnEntryForOneSizeFixesTheSymbols) {
  auto f = [](const Tensors &in) { return Tensors{ops::mul(ops::add(ops::mul(in[0], in[0]), in[0]), in[0])}; };
  Captured c = capture(f, {filled({6})}, true);
  EXPECT_TRUE(c.session->accepts({filled({6})}));
  EXPECT_FALSE(c.session->accepts({filled({7})}));
}

TEST(Observer, ReadingPlainSizesFixesThem) {
  auto f = [](const Tensors &in) {
    Tensor y = ops::add(in[0], in[0]);
    return Tensors{ops::slice(y, 0, Dim(0), Dim(y.size(0) / 2))};
  };
  Captured c = capture(f, {filled({6})}, true);
  EXPECT_FALSE(c.session->accepts({filled({8})}));
  auto g = [](const Tensors &in) {
    Tensor y = ops::add(in[0], in[0]);
    return Tensors{ops::mul(ops::slice(y, 0, Dim(0), floorDiv(y.meta().sizes[0], Dim(2))), Tensor(Number(2)))};
  };
  auto fn = makeRef<CompiledFunction>("test", CompileOptions{false, true});
  capture(g, {filled({4})}, false, fn);
  Captured d = capture(g, {filled({6})}, true, fn);
  expectSame(d, g, {filled({8}, 1)});
  expectSame(d, g, {filled({9}, 1)});
}

TEST(Observer, NumbersOfTheSession) {
  auto f = [](const Tensors &in, const Number &n) {
    Tensor y = ops::add(in[0], in[0], n);
    return Tensors{ops::mul(ops::add(y, Tensor(n)), Tensor(Number(2.0)))};
  };
  Number given = Number::symbolic(Number(3.0), sessionRef(7));
  Captured c = capture([&](const Tensors &in) { return f(in, given); }, {filled({6})}, true);
  EXPECT_TRUE(c.session->numbersRead.empty());
  Tensors in{filled({6}, 2)};
  c.session->run(in, {{7, Number(0.5)}});
  EXPECT_EQ(valuesOf(c.session->standIn(c.results[0], in)), valuesOf(f(in, Number(0.5))[0]));
  Captured d =
      capture([&](const Tensors &in) { return Tensors{given.toDouble() > 2 ? ops::add(in[0], in[0]) : in[0]}; },
              {filled({6})}, true);
  EXPECT_EQ(d.session->numbersRead, std::vector<uint64_t>{7});
}

TEST(Observer, RandomOpsTakeTheirGeneratorsState) {
  auto f = [](const Tensors &in) {
    Tensor noise = ops::rand_like(in[0]);
    return Tensors{ops::add(ops::mul(noise, in[0]), ops::rand_like(in[0]))};
  };
  auto fn = makeRef<CompiledFunction>("test", CompileOptions{false, true});
  capture(f, {filled({5})}, false, fn);
  Captured c = capture(f, {filled({9})}, true, fn);
  defaultGenerator().manualSeed(11);
  Tensors in{filled({14}, 1)};
  ASSERT_TRUE(c.session->accepts(in));
  c.session->run(in);
  uint64_t after = defaultGenerator().offset();
  defaultGenerator().manualSeed(11);
  EXPECT_EQ(valuesOf(c.session->standIn(c.results[0], in)), valuesOf(f(in)[0]));
  EXPECT_EQ(defaultGenerator().offset(), after);
}

TEST(Observer, GradientsInsideAreSymbolicToo) {
  installAutograd();
  installCompile();
  auto f = [](const Tensors &in) {
    Tensor x = detach(in[0]), w = detach(in[1]);
    setRequiresGrad(x, true);
    setRequiresGrad(w, true);
    Tensor y = ops::softmax(ops::gelu(ops::matmul(x, w)), 1);
    Tensor both[2] = {y, ops::exp(y)};
    int64_t last[1] = {10};
    Tensor joined = ops::cat<Tensor>(both, 1);
    Tensor loss = ops::mean(ops::mul(ops::layer_norm(joined, last)[0], joined));
    Tensor roots[1] = {ops::add(loss, ops::var(ops::sum(x, Ints({1}))))};
    backward(roots, {}, false, false);
    return Tensors{ops::mul(gradMetaOf(x).grad, Tensor(Number(1))), ops::mul(gradMetaOf(w).grad, Tensor(Number(1)))};
  };
  auto fn = makeRef<CompiledFunction>("test", CompileOptions{false, true});
  auto inputs = [](int64_t n) { return Tensors{filled({n, 4}), filled({4, 5}, 1)}; };
  capture(f, inputs(3), false, fn);
  Captured c = capture(f, inputs(6), true, fn);
  EXPECT_EQ(c.session->grads.size(), 2u);
  for (int64_t n : {6, 9, 17})
    expectSame(c, f, inputs(n));
}

TEST(Observer, WhatCannotRunAgainIsSaid) {
  Captured c = capture(
      [](const Tensors &in) {
        Tensor y = ops::add(in[0], in[0]);
        y.storage().markForeign();
        return Tensors{};
      },
      {filled({6})});
  EXPECT_EQ(c.session->reasons.size(), 1u);
  Captured d = capture([](const Tensors &in) { return Tensors{ops::nonzero(in[0])}; }, {filled({6})});
  EXPECT_EQ(d.session->ops, std::vector<std::string>{"nonzero"});
}

} // namespace
