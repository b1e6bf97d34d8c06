// Histories of replayed results against eager's: gradients, double backward, versions, views, writes in place.
#include "tests/unit/capture/TestSession.h"

using namespace dlc;
using dlc::testing::TestSession;

namespace {

using Tensors = std::vector<Tensor>;

Tensor filled(Sizes sizes, float from = 0) {
  Tensor t = Tensor::empty(sizes, DType::F32);
  for (int64_t i = 0; i < t.numel(); ++i)
    t.dataAs<float>()[i] = from + 0.25f * static_cast<float>((i * 7) % 23);
  return t;
}
Tensor leaf(Sizes sizes, float from = 0) {
  Tensor t = filled(sizes, from);
  setRequiresGrad(t, true);
  return t;
}
std::vector<float> valuesOf(const Tensor &t) {
  Tensor c = ops::contiguous(t);
  return {c.dataAs<float>(), c.dataAs<float>() + c.numel()};
}

struct Taped {
  std::unique_ptr<TestSession> session;
  std::shared_ptr<TapeTemplate> tape;
  std::string why;
  Tensors results;
  /// The results of a later call.
  Tensors replay(const Tensors &inputs, const std::vector<Number> &numbers = {}) {
    std::map<uint64_t, Number> byId;
    for (size_t i = 0; i < numbers.size(); ++i)
      byId[i] = numbers[i];
    EXPECT_TRUE(session->accepts(inputs));
    session->run(inputs, byId);
    Tensors out;
    for (const Tensor &t : results)
      out.push_back(session->standIn(t, inputs));
    session->instantiate(*tape, inputs, out, numbers);
    return out;
  }
};

template <class F>
Taped capture(F f, Tensors inputs, bool symbols = false,
              Ref<CompiledFunction> fn = makeRef<CompiledFunction>("test", CompileOptions{false, true})) {
  installAutograd();
  installCompile();
  Taped c{std::make_unique<TestSession>(inputs, symbols), nullptr, "", {}};
  TapeCapture tape;
  FactSink sink;
  CompiledCall call(fn, c.session.get());
  for (size_t i = 0; i < inputs.size(); ++i) {
    (void)inputs[i].meta();
    tape.addEntry(inputs[i], static_cast<int32_t>(i));
  }
  c.results = f(inputs);
  for (const Tensor &t : c.results)
    c.session->keep(t);
  call.finish();
  c.tape = tape.finish(c.results, *c.session, c.why);
  c.session->facts = sink.take();
  return c;
}

Tensor total(const Tensors &results) {
  Tensor sum;
  for (const Tensor &t : results) {
    Tensor s = ops::sum(ops::mul(t, t));
    sum = sum.defined() ? ops::add(sum, s) : s;
  }
  return sum;
}

/// Backward of results: gradients of the leaves among the inputs.
Tensors gradientsOf(const Tensors &inputs, const Tensors &results, bool twice = false) {
  Tensors leaves;
  for (const Tensor &t : inputs)
    if (requiresGrad(t))
      leaves.push_back(t);
  Tensor roots[1] = {total(results)};
  Tensors g = grad(roots, leaves, {}, twice, twice, false);
  if (!twice)
    return g;
  Tensor again[1] = {total(g)};
  return grad(again, leaves, {}, false, false, true);
}

template <class F> void sameGradients(Taped &c, F f, Tensors (*make)(int64_t), int64_t n, bool twice = false) {
  ASSERT_TRUE(c.tape) << c.why;
  Tensors mine = make(n), theirs = make(n);
  Tensors got = gradientsOf(mine, c.replay(mine), twice), want = gradientsOf(theirs, f(theirs), twice);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].defined(), want[i].defined());
    if (!got[i].defined())
      continue;
    std::vector<float> a = valuesOf(got[i]), b = valuesOf(want[i]);
    if (!twice)
      EXPECT_EQ(a, b);
    for (size_t k = 0; twice && k < b.size(); ++k) // a plan adds the parts in another order
      EXPECT_NEAR(a[k], b[k], 1e-6f * std::abs(b[k]));
  }
}

Tensors layerInputs(int64_t n) { return {leaf({n, 4}), leaf({4, 5}, 1), filled({5}, -2)}; }
Tensors layer(const Tensors &in) {
  Tensor y = ops::gelu(ops::add(ops::matmul(in[0], in[1]), in[2]));
  return {ops::softmax(y, 1), ops::mean(ops::mul(y, in[2]))};
}

TEST(Tape, ResultsHaveTheHistoriesOfTheCall) {
  Taped c = capture(layer, layerInputs(3));
  ASSERT_TRUE(c.tape) << c.why;
  sameGradients(c, layer, layerInputs, 3);
  sameGradients(c, layer, layerInputs, 3);
}

TEST(Tape, DoubleBackward) {
  auto f = [](const Tensors &in) { return Tensors{ops::mul(ops::exp(in[0]), ops::matmul(in[0], in[1]))}; };
  Tensors (*make)(int64_t) = [](int64_t n) { return Tensors{leaf({n, n}, -2), leaf({n, n}, 1)}; };
  Taped c = capture(f, make(3));
  sameGradients(c, f, make, 3, true);
}

TEST(Tape, OverSizes) {
  auto fn = makeRef<CompiledFunction>("test", CompileOptions{false, true});
  capture(layer, layerInputs(3), false, fn);
  Taped c = capture(layer, layerInputs(6), true, fn);
  for (int64_t n : {6, 11})
    sameGradients(c, layer, layerInputs, n);
}

TEST(Tape, OverNumbers) {
  auto f = [](const Tensors &in, const Number &n) {
    return Tensors{ops::mul(ops::mul(ops::add(in[0], in[0], n), in[0]), Tensor(n))};
  };
  Number given = Number::symbolic(Number(2.5), sessionRef(0));
  Taped c = capture([&](const Tensors &in) { return f(in, given); }, {leaf({4})}, true);
  ASSERT_TRUE(c.tape) << c.why;
  Tensors mine{leaf({4}, 1)}, theirs{leaf({4}, 1)};
  EXPECT_EQ(valuesOf(gradientsOf(mine, c.replay(mine, {Number(0.5)}))[0]),
            valuesOf(gradientsOf(theirs, f(theirs, Number(0.5)))[0]));
  // The recorded call's own tape goes on working after its session.
  Tensors in{c.session->entry()[0]}, again{leaf({4})};
  EXPECT_EQ(valuesOf(gradientsOf(in, c.results)[0]), valuesOf(gradientsOf(again, f(again, Number(2.5)))[0]));
}

TEST(Tape, ASavedTensorChangedLaterIsAnError) {
  auto f = [](const Tensors &in) {
    Tensor y = ops::exp(in[0]);
    return Tensors{y, ops::mul(y, in[1])};
  };
  auto make = [] { return Tensors{leaf({4}), filled({4}, 1)}; };
  Taped c = capture(f, make());
  ASSERT_TRUE(c.tape) << c.why;
  Tensors in = make(), out = c.replay(in);
  {
    GradModeScope off(false);
    ops::add_(in[1], Tensor(Number(1)));
  }
  EXPECT_THROW(gradientsOf(in, {out[1]}), Error);
  in = make();
  out = c.replay(in);
  EXPECT_NO_THROW(gradientsOf(in, {out[1]}));
}

TEST(Tape, WritesInPlaceAndViews) {
  auto f = [](const Tensors &in) {
    Tensor y = ops::mul(in[0], in[1]);
    ops::mul_(y, in[1]);
    Tensor z = ops::zeros<Tensor>(Dims{Dim(2), Dim(4)});
    ops::copy_(ops::select(z, 0, Dim(1)), y);
    return Tensors{y, ops::view(in[0], Dims{Dim(2), Dim(2)}), z};
  };
  Tensors (*make)(int64_t) = [](int64_t n) { return Tensors{leaf({n}), leaf({n}, 1)}; };
  Taped c = capture(f, make(4));
  sameGradients(c, f, make, 4);
  // A write through a replayed view reaches the base, and is refused where eager refuses it.
  Tensors in = make(4), out = c.replay(in);
  EXPECT_THROW(ops::add_(out[1], Tensor(Number(1))), Error);
}

TEST(Tape, AnEntryTensorGetsAHistory) {
  auto f = [](const Tensors &in) {
    ops::add_(in[1], ops::mul(in[0], in[0]));
    return Tensors{ops::mul(in[1], in[0])};
  };
  Tensors (*make)(int64_t) = [](int64_t n) { return Tensors{leaf({n}), filled({n}, 1)}; };
  Taped c = capture(f, make(4));
  ASSERT_TRUE(c.tape) << c.why;
  Tensors mine = make(4), theirs = make(4);
  c.replay(mine);
  f(theirs);
  ASSERT_TRUE(requiresGrad(mine[1]));
  Tensor roots[1] = {total({mine[1]})}, wanted[1] = {total({theirs[1]})};
  Tensor x[1] = {mine[0]}, y[1] = {theirs[0]};
  EXPECT_EQ(valuesOf(grad(roots, x, {}, false, false, false)[0]),
            valuesOf(grad(wanted, y, {}, false, false, false)[0]));
}

TEST(Tape, WhatCannotBeMadeAgainIsSaid) {
  Taped c = capture(
      [](const Tensors &in) {
        Tensor w = ops::mul(detach(in[0]), Tensor(Number(2)));
        setRequiresGrad(w, true);
        return Tensors{ops::mul(w, in[0])};
      },
      {leaf({4})});
  EXPECT_FALSE(c.tape);
  EXPECT_EQ(c.why, "a leaf that wants a gradient was made inside of it");
}

TEST(Tape, ATemplateKeepsNoTensorsOfItsCall) {
  auto f = [](const Tensors &in) { return Tensors{ops::mul(ops::exp(in[0]), in[0])}; };
  Taped c = capture(f, {leaf({4})});
  ASSERT_TRUE(c.tape) << c.why;
  Ref<Storage> saved = c.session->entry()[0].storageRef();
  c.session.reset();
  c.results.clear();
  EXPECT_EQ(saved->refCount(), 1u);
}

} // namespace
