// Gradients built from recorded graphs against those of the tape, both run by eager kernels.
#include "tests/unit/capture/GradHarness.h"

using namespace dlc;
using namespace dlc::test;
using namespace dlc::ops;

namespace {

/// The joint graph of a recording as one program: inputs, then cotangents; outputs are the gradients.
Graph backwardProgram(const Joint &joint) {
  Graph g = joint.graph;
  g.outputs.clear();
  g.inputs.insert(g.inputs.end(), joint.cotangents.begin(), joint.cotangents.end());
  for (int32_t v : joint.gradients) {
    GraphOutput o;
    o.value = v;
    o.strides = contiguousStrides(g.values[v].sizes);
    g.outputs.push_back(o);
  }
  return g;
}

std::vector<Number> numbersOf(const Joint &joint, std::vector<Number> numbers, Ints symbols) {
  for (const Dim &d : joint.sizeNumbers)
    numbers.push_back(Number(static_cast<double>(evaluate(d, symbols))));
  return numbers;
}

/// Gradients from the graph equal those of the tape.
void sameGradients(const Program &program, const Tensors &inputs) {
  Recording r = record(program, inputs);
  ASSERT_EQ(r.piece.gradients.unsupported, "");
  ASSERT_FALSE(r.roots.empty());
  Tensors cotangents, wanted;
  for (size_t i = 0; i < r.roots.size(); ++i)
    cotangents.push_back(noise(r.roots[i].sizes(), 77 + i));
  JointRequest request;
  request.roots = r.piece.gradients.roots;
  for (const Tensor &t : inputs)
    if (requiresGrad(t)) {
      int64_t i = inputOf(r.piece, t);
      ASSERT_GE(i, 0);
      wanted.push_back(t);
      request.targets.push_back(r.piece.graph.inputs[i]);
    }
  Tensors expected = grad(r.roots, wanted, cotangents, true, false, true);
  Joint joint = differentiate(r.piece.graph, r.piece.gradients, request);
  std::vector<int32_t> kept;
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_EQ(joint.gradients[i] >= 0, expected[i].defined()) << i;
  Tensors want;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (joint.gradients[i] >= 0) {
      kept.push_back(joint.gradients[i]);
      want.push_back(expected[i]);
    }
  joint.gradients = kept;
  Graph g = backwardProgram(joint);
  Tensors in = r.piece.inputs, outs;
  in.insert(in.end(), cotangents.begin(), cotangents.end());
  interpret(g, in, numbersOf(joint, r.piece.numbers, {}), {}, outs);
  for (size_t i = 0; i < outs.size(); ++i)
    expectNear(outs[i], want[i], str("gradient ", i));
}

std::string whyUnsupported(const Program &program, const Tensors &inputs) {
  return record(program, inputs).piece.gradients.unsupported;
}

const int64_t kOnes[] = {1, 1};

TEST(Joint, Mlp) {
  sameGradients(
      [](const Tensors &in) {
        Tensor h = ops::relu(linear(in[0], in[1], in[2]));
        Tensor y = ops::tanh(linear(h, in[3], in[4]));
        return Tensors{ops::mean(y * y)};
      },
      {noise({5, 4}), leaf({8, 4}, 2), leaf({8}, 3), leaf({3, 8}, 4), leaf({3}, 5)});
}

TEST(Joint, NumbersOnBothSides) {
  sameGradients(
      [](const Tensors &in) {
        Tensor x = in[0];
        return Tensors{ops::pow(x * 3.5 + 2, Number(2.5)) / 7, ops::pow(x, Number(2)) - 1 / (x + 4)};
      },
      {leaf({6})});
}

TEST(Joint, ConvolutionWithBatchNorm) {
  sameGradients(
      [](const Tensors &in) {
        Tensor y = ops::conv2d(in[0], in[1], in[2], Ints(kOnes), Ints(kOnes), Ints(kOnes));
        auto n = ops::batch_norm(y, in[5], in[6], in[3], in[4], true, Number(0.1), 1e-5);
        return Tensors{ops::mean(ops::relu(n[0]))};
      },
      {noise({2, 3, 6, 6}), leaf({4, 3, 3, 3}, 2), leaf({4}, 3), leaf({4}, 4), leaf({4}, 5), noise({4}, 6),
       ops::abs(noise({4}, 7))});
}

TEST(Joint, AttentionBlock) {
  sameGradients(
      [](const Tensors &in) {
        Tensor h = ops::layer_norm(in[0], Ints(Sizes{8}), in[1], in[2], 1e-5)[0];
        Tensor scores = ops::matmul(h, ops::transpose(h, 1, 2)) * 0.35;
        Tensor p = ops::softmax(scores, -1);
        return Tensors{ops::matmul(p, h) + in[0]};
      },
      {leaf({2, 5, 8}), leaf({8}, 2), leaf({8}, 3)});
}

TEST(Joint, CompositesKeepTheirOwnGradient) {
  Tensor zero = ops::zeros<Tensor>(Dims{3}, DType::F32);
  setRequiresGrad(zero, true);
  sameGradients([](const Tensors &in) { return Tensors{ops::norm(in[0]) + ops::logsumexp(in[0], Ints(Sizes{0}))}; },
                {zero});
}

TEST(Joint, Embedding) {
  sameGradients(
      [](const Tensors &in) {
        return Tensors{ops::cross_entropy(ops::matmul(ops::embedding(in[1], in[0]), in[2]), in[3])};
      },
      {leaf({10, 4}), indices({6}, 10), leaf({4, 5}, 2), indices({6}, 5)});
}

TEST(Joint, DropoutReadsItsSeed) {
  sameGradients([](const Tensors &in) { return Tensors{ops::dropout(in[0] * in[0], 0.4, true)}; }, {leaf({64})});
}

TEST(Joint, ViewsWhereAndSums) {
  sameGradients(
      [](const Tensors &in) {
        Tensor v = ops::slice(ops::transpose(in[0], 0, 1), 0, Dim(1), Dim(4));
        Tensor w = ops::where(v > 0, v * in[1], ops::expand(in[1], Dims{3, 6}) - v);
        return Tensors{ops::cat<Tensor>(Tensors{w, ops::flip(w, Ints(Sizes{0}))}, 1),
                       ops::sum(ops::select(w, 0, Dim(1)))};
      },
      {leaf({6, 5}), leaf({6}, 2)});
}

TEST(Joint, InPlaceThroughViews) {
  sameGradients(
      [](const Tensors &in) {
        Tensor h = in[0] * 2;
        Tensor row = ops::select(h, 0, Dim(1));
        ops::mul_(row, in[1]);
        ops::add_(h, Tensor(Number(1)));
        return Tensors{h * 3};
      },
      {leaf({3, 4}), leaf({4}, 2)});
}

TEST(Joint, DetachAndNoGradStopGradients) {
  sameGradients(
      [](const Tensors &in) {
        Tensor a = in[0] * in[0];
        Tensor b = a * detach(a);
        GradModeScope off(false);
        Tensor c = in[0] * 5;
        GradModeScope on(true);
        return Tensors{b * c};
      },
      {leaf({4})});
}

TEST(Joint, WhatTheGraphCanNotShowIsUnsupported) {
  auto newLeaf = [](const Tensors &in) {
    Tensor t = detach(in[0] * 2);
    setRequiresGrad(t, true);
    return Tensors{t * t};
  };
  EXPECT_NE(whyUnsupported(newLeaf, {leaf({4})}), "");
  auto hidden = [](const Tensors &in) {
    Tensor t = in[0] * 2;
    {
      GradModeScope off(false);
      ops::mul_(t, Tensor(Number(3)));
    }
    return Tensors{t + 1};
  };
  EXPECT_NE(whyUnsupported(hidden, {leaf({4})}), "");
  auto overwritten = [](const Tensors &in) {
    Tensor t = ops::exp(in[0]);
    ops::add_(t, Tensor(Number(1)));
    return Tensors{t};
  };
  EXPECT_NE(whyUnsupported(overwritten, {leaf({4})}), "");
  auto hook = [](const Tensors &in) {
    Tensor t = ops::exp(in[0]);
    addHook(t, [](const Tensor &g) { return g; });
    return Tensors{t};
  };
  EXPECT_NE(whyUnsupported(hook, {leaf({4})}), "");
}

TEST(Joint, LiftedSizes) {
  Program program = [](const Tensors &in) {
    Tensor h = ops::relu(linear(in[0], in[1], in[2]));
    return Tensors{ops::mean(h * h), ops::sum(h, Ints(Sizes{0}))};
  };
  Tensors inputs{leaf({5, 4}), leaf({8, 4}, 2), leaf({8}, 3)};
  Recording r = record(program, inputs);
  // The first size of in[0] becomes s0.
  Graph lifted = r.piece.graph;
  std::vector<TensorMeta> metas;
  for (int32_t v : lifted.inputs)
    metas.push_back(lifted.values[v]);
  int64_t x = inputOf(r.piece, inputs[0]);
  ASSERT_GE(x, 0);
  metas[x] = TensorMeta::contiguous(DType::F32, Dims{Dim::symbol(0, 5), Dim(4)});
  std::vector<Dim> dims;
  for (GraphNode &n : lifted.nodes)
    forEachDim(n.args, [&](Dim &d) { dims.push_back(d); });
  int64_t hints[] = {5};
  FactSink sink;
  lifted = retype(lifted, metas, dims, hints);
  JointRequest request;
  request.roots = r.piece.gradients.roots;
  for (const Tensor &t : inputs)
    request.targets.push_back(lifted.inputs[inputOf(r.piece, t)]);
  Joint joint = differentiate(lifted, r.piece.gradients, request);
  EXPECT_FALSE(joint.sizeNumbers.empty());
  Graph g = backwardProgram(joint);
  for (int64_t n : {1, 2, 5, 9}) {
    Tensors in{leaf({n, 4}), inputs[1], inputs[2]};
    Tensors roots = program(in), cotangents{noise(roots[0].sizes(), 9), noise(roots[1].sizes(), 10)}, outs;
    Tensors expected = grad(roots, in, cotangents, false, false, false);
    int64_t symbols[] = {n};
    for (const Fact &f : sink.take())
      if (!holds(f, symbols))
        EXPECT_LE(n, 1) << str(f);
    if (n == 1)
      continue;
    Tensors given = r.piece.inputs;
    given[x] = in[0];
    given.insert(given.end(), cotangents.begin(), cotangents.end());
    interpret(g, given, numbersOf(joint, r.piece.numbers, symbols), symbols, outs);
    for (size_t i = 0; i < outs.size(); ++i)
      expectNear(outs[i], expected[i], str("n = ", n, ", gradient ", i));
  }
}

} // namespace
