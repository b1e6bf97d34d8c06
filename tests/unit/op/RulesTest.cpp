// Gradient rules against finite differences in f64, and decompositions against the kernels they stand for.
#include "runtime/autograd/Autograd.h"
#include "runtime/op/Functional.h"
#include "runtime/rules/Decompositions.h"
#include <functional>
#include <gtest/gtest.h>

using namespace dlc;
namespace {
using ops::operator+, ops::operator-, ops::operator*, ops::operator/, ops::operator<, ops::operator>;

using Fn = std::function<Tensor(const std::vector<Tensor> &)>;

Tensor random(Ints sizes, double low = -2, double high = 2, uint64_t seed = 1) {
  Generator g(seed);
  SmallVec<Dim> dims;
  for (int64_t s : sizes)
    dims.push_back(s);
  return ops::rand<Tensor>(dims, &g, DType::F64) * (high - low) + low;
}
double &at(const Tensor &t, int64_t i) { return t.dataAs<double>()[i]; }

double dotOf(const Tensor &a, const Tensor &b) { return ops::sum(a * b).item().toDouble(); }

class Rules : public testing::Test {
protected:
  static void SetUpTestSuite() { installAutograd(); }

  /// Compares the gradients of sum(f(x) * w) with central differences; with `twice`, those of the gradients too.
  static void check(const char *what, const Fn &f, std::vector<Tensor> in, bool twice = true) {
    SCOPED_TRACE(what);
    setGradEnabled(true);
    for (const Tensor &t : in)
      if (isFloat(t.dtype()))
        setRequiresGrad(t, true);
    std::vector<Tensor> leaves;
    for (const Tensor &t : in)
      if (isFloat(t.dtype()))
        leaves.push_back(t);
    Tensor y = f(in);
    Tensor w = random(y.sizes(), 0.5, 1.5, 7);
    std::vector<Tensor> roots{y}, grads{w};
    std::vector<Tensor> analytic = grad(roots, leaves, grads, true, twice, true);
    compare(f, in, leaves, w, analytic);
    if (!twice)
      return;
    // The gradient as a function: sum of all gradients, each weighted.
    Fn inner = [&](const std::vector<Tensor> &x) {
      std::vector<Tensor> now;
      for (const Tensor &t : x)
        if (isFloat(t.dtype()))
          now.push_back(t);
      bool before = gradEnabled();
      setGradEnabled(true);
      Tensor out = f(x);
      std::vector<Tensor> r{out}, g{w}, d = grad(r, now, g, true, true, true);
      setGradEnabled(before);
      Tensor total;
      for (size_t i = 0; i < d.size(); ++i)
        if (d[i].defined()) {
          Tensor part = ops::sum(d[i] * random(d[i].sizes(), 0.5, 1.5, 11 + i));
          total = total.defined() ? total + part : part;
        }
      return total;
    };
    Tensor z = inner(in);
    if (!requiresGrad(z))
      return; // linear
    Tensor one = Tensor::scalar(Number(1.0), DType::F64);
    std::vector<Tensor> r2{z}, g2{one}, second = grad(r2, leaves, g2, false, false, true);
    compare(inner, in, leaves, one, second);
  }

private:
  static void compare(const Fn &f, const std::vector<Tensor> &in, const std::vector<Tensor> &leaves, const Tensor &w,
                      const std::vector<Tensor> &analytic) {
    const double h = 1e-5;
    for (size_t k = 0; k < leaves.size(); ++k)
      for (int64_t i = 0; i < leaves[k].numel(); ++i) {
        double keep = at(leaves[k], i);
        at(leaves[k], i) = keep + h;
        double up = dotOf(detach(f(in)), w);
        at(leaves[k], i) = keep - h;
        double down = dotOf(detach(f(in)), w);
        at(leaves[k], i) = keep;
        double want = (up - down) / (2 * h);
        Tensor g = analytic[k].defined() ? ops::contiguous(detach(analytic[k])) : Tensor();
        double have = g.defined() ? at(g, i) : 0;
        ASSERT_NEAR(have, want, 1e-6 + 1e-5 * std::abs(want)) << "input " << k << " element " << i;
      }
  }
};

const int64_t kOneOne[] = {1, 1}, kTwoOne[] = {2, 1}, kZero[] = {0, 0}, kTwo[] = {2, 2};

TEST_F(Rules, Arithmetic) {
  using T = const std::vector<Tensor> &;
  Tensor a = random({3, 4}), b = random({4}, 0.5, 2, 2), p = random({3, 4}, 0.5, 2, 3);
  check("add", [](T x) { return ops::add(x[0], x[1], 3); }, {a, b});
  check("sub", [](T x) { return ops::sub(x[0], x[1], 3); }, {a, b});
  check("mul", [](T x) { return x[0] * x[1]; }, {a, b});
  check("div", [](T x) { return x[0] / x[1]; }, {a, b});
  check("remainder", [](T x) { return ops::remainder(x[0], x[1]); }, {a, b}, false);
  check("fmod", [](T x) { return ops::fmod(x[0], x[1]); }, {a, b}, false);
  check("pow", [](T x) { return ops::pow(x[0], x[1]); }, {p, b});
  check("pow 3", [](T x) { return ops::pow(x[0], 3); }, {a});
  check("pow 2", [](T x) { return ops::pow(x[0], 2); }, {a});
  check("pow base", [](T x) { return ops::pow(Tensor(Number(2.5)), x[0]); }, {a});
  check("atan2", [](T x) { return ops::atan2(x[0], x[1]); }, {a, b});
  check("lerp", [](T x) { return ops::lerp(x[0], x[1], x[2]); }, {a, b, p});
  check("clamp", [](T x) { return ops::clamp(x[0], x[1], x[2]); }, {a, random({4}, -1, 0, 5), b});
  check("maximum", [](T x) { return ops::maximum(x[0], x[1]); }, {a, b});
  check("minimum", [](T x) { return ops::minimum(x[0], x[1]); }, {a, b});
  check("where", [](T x) { return ops::where(x[0] > 0.1, x[0] * x[0], x[1]); }, {a, b});
  check("masked_fill", [](T x) { return ops::masked_fill(x[0] * x[0], x[1] > 1.0, 2.0); }, {a, b});
  check("addcmul", [](T x) { return ops::addcmul(x[0], x[1], x[2], 0.5); }, {a, b, p});
}

#define UNARY(name, low, high)                                                                                         \
  check(#name, [](const std::vector<Tensor> &x) { return ops::name(x[0]); }, {random({7}, low, high)})

TEST_F(Rules, Unary) {
  UNARY(exp, -2, 2);
  UNARY(exp2, -2, 2);
  UNARY(expm1, -2, 2);
  UNARY(log, 0.5, 3);
  UNARY(log2, 0.5, 3);
  UNARY(log10, 0.5, 3);
  UNARY(log1p, -0.5, 3);
  UNARY(sin, -2, 2);
  UNARY(cos, -2, 2);
  UNARY(tan, -1, 1);
  UNARY(asin, -0.8, 0.8);
  UNARY(acos, -0.8, 0.8);
  UNARY(atan, -2, 2);
  UNARY(sinh, -2, 2);
  UNARY(cosh, -2, 2);
  UNARY(tanh, -2, 2);
  UNARY(erf, -2, 2);
  UNARY(sqrt, 0.5, 3);
  UNARY(rsqrt, 0.5, 3);
  UNARY(reciprocal, 0.5, 3);
  UNARY(square, -2, 2);
  UNARY(abs, -2, 2);
  UNARY(relu, -2, 2);
  UNARY(sigmoid, -2, 2);
  UNARY(gelu, -2, 2);
  UNARY(silu, -2, 2);
  UNARY(elu, -2, 2);
  UNARY(leaky_relu, -2, 2);
  UNARY(softplus, -2, 2);
  UNARY(hardtanh, -2, 2);
  UNARY(hardsigmoid, -2, 2);
  UNARY(hardswish, -2, 2);
  UNARY(mish, -2, 2);
  UNARY(logsigmoid, -2, 2);
  check("gelu tanh", [](const std::vector<Tensor> &x) { return ops::gelu(x[0], "tanh"); }, {random({7})});
}

TEST_F(Rules, Reductions) {
  using T = const std::vector<Tensor> &;
  Tensor a = random({3, 4}), c = random({2, 3, 4});
  const int64_t one[] = {1}, both[] = {0, 2};
  check("sum", [](T x) { return ops::sum(x[0]); }, {a});
  check("sum dims", [&](T x) { return ops::sum(x[0] * x[0], Ints(both)); }, {c});
  check("mean", [&](T x) { return ops::mean(x[0] * x[0], Ints(one), true); }, {a});
  check("prod", [](T x) { return ops::prod(x[0]); }, {random({2, 3})});
  check("prod dim", [&](T x) { return ops::prod(x[0], Ints(one), true); }, {c});
  check("amax", [&](T x) { return ops::amax(x[0], Ints(one)); }, {a});
  check("max dim", [](T x) { return ops::max_dim(x[0], 1)[0]; }, {a});
  check("min all", [](T x) { return ops::min_all(x[0] * x[0]); }, {a});
  check("var", [&](T x) { return ops::var(x[0], Ints(one)); }, {a});
  check("std", [&](T x) { return ops::std(x[0], Ints(both), 0, true); }, {c});
  check("logsumexp", [&](T x) { return ops::logsumexp(x[0], Ints(one)); }, {a});
  check("norm", [](T x) { return ops::norm(x[0]); }, {a});
  check("norm 3", [&](T x) { return ops::norm(x[0], 3.0, Ints(one)); }, {a});
  check("cumsum", [](T x) { return ops::cumsum(x[0] * x[0], 1); }, {a});
  check("cumprod", [](T x) { return ops::cumprod(x[0], 1); }, {a});
  Tensor zeros = random({2, 4});
  at(zeros, 1) = 0;
  check("cumprod with a zero", [](T x) { return ops::cumprod(x[0], 1); }, {zeros}, false);
  check("prod with a zero", [](T x) { return ops::prod(x[0]); }, {zeros}, false);
}

TEST_F(Rules, ViewsAndMoves) {
  using T = const std::vector<Tensor> &;
  Tensor a = random({3, 4}), c = random({2, 3, 4});
  auto sq = [](const Tensor &t) { return t * t; };
  const int64_t perm[] = {2, 0, 1}, last[] = {1};
  check("view", [&](T x) { return sq(ops::view(x[0], Dims{2, 6})); }, {a});
  check("transpose", [&](T x) { return sq(ops::transpose(x[0], 0, 2)); }, {c});
  check("permute", [&](T x) { return sq(ops::permute(x[0], Ints(perm))); }, {c});
  check("expand", [&](T x) { return sq(ops::expand(x[0], Dims{2, 3, 4})); }, {random({3, 1})});
  check("select", [&](T x) { return sq(ops::select(x[0], 1, Dim(-1))); }, {a});
  check("slice", [&](T x) { return sq(ops::slice(x[0], 1, Dim(1), Dim(4), Dim(2))); }, {a});
  check("unfold", [&](T x) { return sq(ops::unfold(x[0], 1, Dim(3), Dim(1))); }, {random({2, 6})});
  check("as_strided", [&](T x) { return sq(ops::as_strided(x[0], Dims{3, 2}, Dims{2, 3}, Dim(1))); }, {random({12})});
  check("diagonal", [&](T x) { return sq(ops::diagonal(x[0], 1)); }, {a});
  check("flip", [&](T x) { return sq(ops::flip(x[0], Ints(last))); }, {a});
  check("roll", [&](T x) { return sq(ops::roll(x[0], Dims{1}, Ints(last))); }, {a});
  check("repeat", [&](T x) { return sq(ops::repeat(x[0], Dims{2, 1, 2})); }, {a});
  check("tril", [&](T x) { return sq(ops::tril(x[0])); }, {a});
  for (const char *mode : {"constant", "reflect", "replicate", "circular"})
    check(mode, [&](T x) { return sq(ops::pad(x[0], Dims{1, 2}, mode)); }, {c});
  check("slice_scatter", [&](T x) { return sq(ops::slice_scatter(x[0], x[1], 1, Dim(1), Dim(3))); },
        {a, random({3, 2})});
  check("select_scatter", [&](T x) { return sq(ops::select_scatter(x[0], x[1], 0, Dim(1))); }, {a, random({4})});
  check("diagonal_scatter", [&](T x) { return sq(ops::diagonal_scatter(x[0], x[1])); }, {a, random({3})});
  check("as_strided_scatter",
        [&](T x) { return sq(ops::as_strided_scatter(x[0], x[1], Dims{3, 2}, Dims{4, 1}, Dim(1))); },
        {random({12}), random({3, 2})});
  check("cat", [&](T x) { return sq(ops::cat<Tensor>(std::vector<Tensor>{x[0], x[1]}, 1)); }, {a, random({3, 2})});
  check("stack", [&](T x) { return sq(ops::stack<Tensor>(std::vector<Tensor>{x[0], x[1]}, 1)); },
        {a, random({3, 4}, -1, 1, 3)});
  check("split", [&](T x) { return sq(ops::split(x[0], Dim(3), 1)[1]); }, {a});
}

Tensor indices(std::initializer_list<int64_t> v, Ints sizes) {
  Tensor t = Tensor::empty(sizes, DType::I64);
  std::copy(v.begin(), v.end(), t.dataAs<int64_t>());
  return t;
}

TEST_F(Rules, Indexing) {
  using T = const std::vector<Tensor> &;
  auto sq = [](const Tensor &t) { return t * t; };
  Tensor a = random({3, 4}), i = indices({0, 2, 1, 1, 3, 0}, {3, 2}), v = indices({2, 0, 2}, {3});
  check("embedding", [&](T x) { return sq(ops::embedding(v, x[0])); }, {a});
  check("gather", [&](T x) { return sq(ops::gather(x[0], 1, i)); }, {a});
  check("scatter", [&](T x) { return sq(ops::scatter(x[0], 1, indices({0, 2, 1, 3, 3, 0}, {3, 2}), x[1])); },
        {a, random({3, 2})});
  check("scatter_add", [&](T x) { return sq(ops::scatter_add(x[0], 1, i, x[1])); }, {a, random({3, 2})});
  check("index_select", [&](T x) { return sq(ops::index_select(x[0], 0, v)); }, {a});
  check("index_add", [&](T x) { return sq(ops::index_add(x[0], 0, v, x[1], 2)); }, {a, random({3, 4}, -1, 1, 4)});
  std::vector<Tensor> both{v, indices({1, 1, 3}, {3})}, second{Tensor(), v};
  check("index", [&](T x) { return sq(ops::index(x[0], both)); }, {a});
  check("index column", [&](T x) { return sq(ops::index(x[0], second)); }, {a});
  check("index_put add", [&](T x) { return sq(ops::index_put(x[0], both, x[1], true)); }, {a, random({3})});
  check("masked_select", [&](T x) { return sq(ops::masked_select(x[0], detach(x[0]) > 0)); }, {a});
  check("sort", [&](T x) { return sq(ops::sort(x[0], 1)[0]); }, {a});
  check("topk", [&](T x) { return sq(ops::topk(x[0], Dim(2), 1)[0]); }, {a});
}

TEST_F(Rules, Products) {
  using T = const std::vector<Tensor> &;
  Tensor a = random({3, 4}), b = random({4, 2}, -1, 1, 2);
  check("mm", [](T x) { return ops::mm(x[0], x[1]); }, {a, b});
  check("addmm", [](T x) { return ops::addmm(x[0], x[1], x[2], 2, 3); }, {random({2}), a, b});
  check("baddbmm", [](T x) { return ops::baddbmm(x[0], x[1], x[2]); },
        {random({3, 2}), random({2, 3, 4}), random({2, 4, 2})});
  check("matmul", [](T x) { return ops::matmul(x[0], x[1]); }, {random({2, 1, 3, 4}), random({2, 4, 2})});
  check("matmul vector", [](T x) { return ops::matmul(x[0], x[1]); }, {random({2, 3, 4}), random({4})});
  check("linear", [](T x) { return ops::linear(x[0], x[1], x[2]); }, {random({2, 3, 4}), random({5, 4}), random({5})});
  check("einsum", [](T x) { return ops::einsum<Tensor>("bij,bjk->ki", std::vector<Tensor>{x[0], x[1]}); },
        {random({2, 3, 4}), random({2, 4, 2})});
  check("conv2d", [](T x) { return ops::conv2d(x[0], x[1], x[2], kTwoOne, kOneOne, kOneOne, 2); },
        {random({2, 4, 5, 4}), random({4, 2, 3, 2}), random({4})});
  check("max_pool2d", [](T x) { return ops::max_pool2d(x[0] * x[0], kTwo, std::nullopt, kZero, kOneOne)[0]; },
        {random({1, 2, 4, 5})});
  check("avg_pool2d", [](T x) { return ops::avg_pool2d(x[0] * x[0], kTwo, Ints(kOneOne), kOneOne); },
        {random({1, 2, 4, 3})});
  check("adaptive_avg_pool2d", [](T x) { return ops::adaptive_avg_pool2d(x[0] * x[0], Dims{3, 2}); },
        {random({1, 2, 5, 3})});
}

TEST_F(Rules, Networks) {
  using T = const std::vector<Tensor> &;
  Tensor a = random({3, 4}), w = random({4}, 0.5, 1.5, 3), b = random({4}, -1, 1, 4), target = indices({1, 3, 0}, {3});
  const int64_t four[] = {4};
  check("softmax", [](T x) { return ops::softmax(x[0], 1); }, {a});
  check("log_softmax", [](T x) { return ops::log_softmax(x[0], 0); }, {a});
  check("layer_norm", [&](T x) { return ops::layer_norm(x[0], Ints(four), x[1], x[2])[0]; }, {a, w, b});
  check("rms_norm", [&](T x) { return ops::rms_norm(x[0], Ints(four), x[1], 1e-6); }, {a, w});
  check("batch_norm", [&](T x) { return ops::batch_norm(x[0], nullptr, nullptr, x[1], x[2], true)[0]; },
        {random({3, 4, 2}), w, b});
  check("batch_norm eval", [&](T x) { return ops::batch_norm(x[0], b, w, x[1], x[2], false)[0]; },
        {random({3, 4, 2}), random({4}), random({4})});
  for (const char *reduction : {"mean", "sum", "none"}) {
    check("cross_entropy", [&](T x) { return ops::cross_entropy(x[0], target, nullptr, 3, reduction); }, {a});
    check("cross_entropy smoothed", [&](T x) { return ops::cross_entropy(x[0], target, w, -100, reduction, 0.1); },
          {a});
  }
  check("cross_entropy of probabilities", [](T x) { return ops::cross_entropy(x[0], x[1]); },
        {a, random({3, 4}, 0.1, 1, 9)});
  check("mse_loss", [](T x) { return ops::mse_loss(x[0], x[1]); }, {a, random({3, 4}, -1, 1, 5)});
  check("smooth_l1_loss", [](T x) { return ops::smooth_l1_loss(x[0], x[1]); }, {a, random({3, 4}, -1, 1, 5)});
  check("binary_cross_entropy", [](T x) { return ops::binary_cross_entropy(x[0], x[1]); },
        {random({3}, 0.2, 0.8), random({3}, 0.2, 0.8, 2)});
  check("with_logits", [](T x) { return ops::binary_cross_entropy_with_logits(x[0], x[1]); },
        {a, random({3, 4}, 0.2, 0.8, 2)});
  check("attention", [](T x) { return ops::scaled_dot_product_attention(x[0], x[1], x[2], nullptr, 0.0, true); },
        {random({2, 3, 4}), random({2, 3, 4}, -1, 1, 2), random({2, 3, 2}, -1, 1, 3)});
}

void expectClose(const Tensor &a, const Tensor &b) {
  ASSERT_EQ(a.sizes(), b.sizes());
  ASSERT_EQ(a.dtype(), b.dtype());
  Tensor d = ops::abs(ops::contiguous(a) - b);
  if (d.numel())
    EXPECT_LT(ops::amax(d).item().toDouble(), 1e-12);
}

TEST_F(Rules, DecompositionsEqualKernels) {
  setGradEnabled(false);
  using namespace rules;
  const int64_t four[] = {4};
  Tensor a = random({3, 4}), w = random({4}, 0.5, 1.5, 3), b = random({4}, -1, 1, 4), g = random({3, 4}, -1, 1, 6),
         target = indices({1, 3, 0}, {3});
  expectClose(softmaxRule(SoftmaxArgs<Tensor>{a, 1, {}}), softmax(a, 1));
  expectClose(logSoftmaxRule(LogSoftmaxArgs<Tensor>{a, 0, {}}), log_softmax(a, 0));
  auto ln = layer_norm(a, Ints(four), w, b), lnRule = layerNormRule(LayerNormArgs<Tensor>{a, Ints(four), &w, &b, 1e-5});
  auto dl = layer_norm_backward(g, a, Ints(four), ln[1], ln[2], w, true, true);
  auto dlRule = layerNormBackwardRule(LayerNormBackwardArgs<Tensor>{g, a, Ints(four), ln[1], ln[2], &w, true, true});
  Tensor x = random({3, 4, 2}), gx = random({3, 4, 2}, -1, 1, 8), rm = clone(b), rv = clone(w);
  auto bn = batch_norm(x, rm, rv, w, b, true, 0.3);
  auto bnRule = batchNormRule(BatchNormArgs<Tensor>{x, &b, &w, &w, &b, true, Number(0.3), 1e-5});
  auto db = batch_norm_backward(gx, x, bn[1], bn[2], w, true, true, true);
  auto dbRule = batchNormBackwardRule(BatchNormBackwardArgs<Tensor>{gx, x, bn[1], bn[2], &w, true, true, true});
  for (int i = 0; i < 3; ++i) {
    expectClose(ln[i], lnRule[i]);
    expectClose(dl[i], dlRule[i]);
    expectClose(bn[i], bnRule[i]);
    expectClose(db[i], dbRule[i]);
  }
  expectClose(rm, bnRule[3]);
  expectClose(rv, bnRule[4]);
  for (const char *r : {"mean", "sum", "none"}) {
    auto nll = nll_loss(a, target, w, 3, r), nllRule = nllLossRule(NllLossArgs<Tensor>{a, target, &w, 3, r});
    expectClose(nll[0], nllRule[0]);
    Tensor up = random(nll[0].sizes(), 0.5, 1.5, 4);
    expectClose(
        nll_loss_backward(up, DType::F64, Dims{3, 4}, target, w, nllRule[1], 3, r),
        nllLossBackwardRule(NllLossBackwardArgs<Tensor>{up, DType::F64, Dims{3, 4}, target, &w, nllRule[1], 3, r}));
  }
}

TEST_F(Rules, OptimizerStepsEqualTheirRules) {
  setGradEnabled(false);
  using namespace rules;
  std::vector<Tensor> p{random({3, 4})}, g{random({3, 4}, -1, 1, 2)}, m{random({3, 4}, -1, 1, 3)},
      v{random({3, 4}, 0, 1, 4)};
  Tensor step = Tensor::scalar(Number(2.0), DType::F32);
  for (bool decoupled : {false, true}) {
    auto want = adamStepRule(AdamStepArgs<Tensor>{p, g, m, v, step, Number(0.1), Number(0.9), Number(0.99),
                                                  Number(1e-8), Number(0.01), decoupled, false});
    std::vector<Tensor> p2{clone(p[0])}, m2{clone(m[0])}, v2{clone(v[0])};
    Tensor step2 = clone(step);
    adam_step<Tensor>(p2, g, m2, v2, step2, 0.1, 0.9, 0.99, 1e-8, 0.01, decoupled);
    Tensor d = ops::amax(ops::abs(want[0] - p2[0]));
    EXPECT_LT(d.item().toDouble(), 1e-6); // an eager wrapped number is f32; in the IR it is f64
    expectClose(want[1], m2[0]);
    expectClose(want[2], v2[0]);
    expectClose(want[3], step2);
  }
  for (bool nesterov : {false, true}) {
    auto want =
        sgdStepRule(SgdStepArgs<Tensor>{p, g, m, Number(0.1), Number(0.9), Number(0.0), Number(0.01), nesterov, false});
    std::vector<Tensor> p2{clone(p[0])}, m2{clone(m[0])};
    sgd_step<Tensor>(p2, g, m2, 0.1, 0.9, 0, 0.01, nesterov);
    expectClose(want[0], p2[0]);
    expectClose(want[1], m2[0]);
  }
}

} // namespace
