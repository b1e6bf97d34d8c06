// Plans: what is saved, and the node that replays a backward against the tape it stands for.
#include "frontend/autograd/GradPlan.h"
#include "tests/unit/capture/GradHarness.h"

using namespace dlc;
using namespace dlc::test;
using namespace dlc::ops;

namespace {

const int64_t kOnes[] = {1, 1};

/// Runs the plan's forward on `inputs` (tensors with their histories) as a replay would; returns the roots.
struct Replay {
  std::shared_ptr<GradPlan> plan;
  std::vector<int64_t> order; ///< graph input -> program input

  Replay(const Program &program, const Tensors &inputs) {
    Recording r = record(program, inputs, false);
    for (const Tensor &t : r.piece.inputs) {
      int64_t at = -1;
      for (size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i].storageRef() == t.storageRef())
          at = static_cast<int64_t>(i);
      order.push_back(at);
    }
    numbers = r.piece.numbers;
    roots = r.piece.gradients.roots;
    plan = planGradient(r.piece.graph, r.piece.gradients, {r.piece.sharedInput});
  }

  Tensors operator()(const Tensors &inputs) const {
    Tensors in, outs, result;
    for (int64_t i : order)
      in.push_back(inputs[i]);
    interpret(plan->forward(), in, numbers, {}, outs);
    for (size_t i = 0; i < outs.size(); ++i)
      if (plan->forward().outputs[i].writeBack < 0) { // results are new storages, never written
        Ref<Storage> fresh = Storage::allocate(outs[i].storage().bytes());
        fresh->swapData(outs[i].storage());
        outs[i] = Tensor::viewOf(fresh, outs[i].sizes(), outs[i].strides(), 0, outs[i].dtype());
      }
    for (int32_t r : roots)
      for (size_t i = 0; i < plan->numOutputs(); ++i)
        if (plan->forward().outputs[i].value == r)
          result.push_back(outs[i]);
    attachGradient(plan, GradRun{in, numbers, {}, outs, {}, {}, false}, result);
    return result;
  }
  std::vector<Number> numbers;
  std::vector<int32_t> roots;
};

Tensors cotangentsOf(const Tensors &roots) {
  Tensors c;
  for (size_t i = 0; i < roots.size(); ++i)
    c.push_back(noise(roots[i].sizes(), 50 + i));
  return c;
}

/// Replayed gradients equal the tape's, twice, and so do gradients of gradients.
void sameAsTape(const Program &program, const Tensors &inputs, bool second = true) {
  Replay replay(program, inputs);
  Tensors wanted;
  for (const Tensor &t : inputs)
    if (requiresGrad(t))
      wanted.push_back(t);
  Tensors eager = program(inputs), replayed = replay(inputs), c = cotangentsOf(eager);
  ASSERT_EQ(eager.size(), replayed.size());
  for (bool again : {true, false}) {
    Tensors a = grad(eager, wanted, c, again, false, true), b = grad(replayed, wanted, c, again, false, true);
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(a[i].defined(), b[i].defined()) << i;
      if (a[i].defined())
        expectNear(b[i], a[i], str("gradient ", i));
    }
  }
  if (!second)
    return;
  auto gradients = [&](const Tensors &roots) {
    Tensors first = grad(roots, wanted, c, true, true, true), some;
    for (const Tensor &t : first)
      if (t.defined() && requiresGrad(t))
        some.push_back(t);
    Tensors seeds = cotangentsOf(some);
    return some.empty() ? Tensors() : grad(some, wanted, seeds, false, false, true);
  };
  Tensors a = gradients(program(inputs)), b = gradients(replay(inputs));
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    // A gradient that does not depend on an input is absent or zero.
    Tensor zero = zeros<Tensor>(Dims(inputs[0].sizes().begin(), inputs[0].sizes().end()), DType::F32);
    if (a[i].defined() && b[i].defined())
      expectNear(b[i], a[i], str("second gradient ", i));
    else
      EXPECT_EQ(a[i].defined(), b[i].defined()) << "second gradient " << i;
  }
}

Tensors mlp(const Tensors &in) {
  Tensor h = relu(linear(in[0], in[1], in[2]));
  Tensor y = tanh(linear(h, in[3], in[4]));
  return {mean(y * y)};
}
Tensors mlpInputs() { return {noise({5, 4}), leaf({8, 4}, 2), leaf({8}, 3), leaf({3, 8}, 4), leaf({3}, 5)}; }

TEST(GradPlan, Mlp) { sameAsTape(mlp, mlpInputs()); }

TEST(GradPlan, ElementwiseChain) {
  sameAsTape([](const Tensors &in) { return Tensors{sin(exp(in[0]) * in[1]) / (in[1] * in[1] + 1)}; },
             {leaf({4, 3}), leaf({4, 3}, 2)});
}

TEST(GradPlan, SeveralResults) {
  sameAsTape(
      [](const Tensors &in) {
        Tensor h = exp(in[0]);
        return Tensors{h * in[1], sum(h), in[1] * 2};
      },
      {leaf({4}), leaf({4}, 2)});
}

TEST(GradPlan, AttentionBlock) {
  sameAsTape(
      [](const Tensors &in) {
        Tensor h = layer_norm(in[0], Ints(Sizes{8}), in[1], in[2], 1e-5)[0];
        Tensor p = softmax(matmul(h, transpose(h, 1, 2)) * 0.35, -1);
        return Tensors{gelu(matmul(p, h)) + in[0]};
      },
      {leaf({2, 5, 8}), leaf({8}, 2), leaf({8}, 3)}, false);
}

TEST(GradPlan, NormTwice) {
  sameAsTape([](const Tensors &in) { return Tensors{layer_norm(in[0] * 2, Ints(Sizes{4}), in[1], in[2], 1e-5)[0]}; },
             {leaf({3, 4}), leaf({4}, 2), leaf({4}, 3)});
}

TEST(GradPlan, Convolution) {
  sameAsTape(
      [](const Tensors &in) {
        Tensor y = conv2d(in[0], in[1], in[2], Ints(kOnes), Ints(kOnes), Ints(kOnes));
        return Tensors{mean(relu(batch_norm(y, nullptr, nullptr, in[3], in[4], true, Number(0.1), 1e-5)[0]))};
      },
      {noise({2, 3, 6, 6}), leaf({4, 3, 3, 3}, 2), leaf({4}, 3), leaf({4}, 4), leaf({4}, 5)}, false);
}

TEST(GradPlan, DropoutMaskIsNotSaved) {
  Program program = [](const Tensors &in) { return Tensors{sum(dropout(in[0] * in[0], 0.5, true) * in[0])}; };
  Tensors inputs{leaf({64})};
  Replay replay(program, inputs);
  EXPECT_EQ(replay.plan->decisions().saved.size(), 0u) << print(replay.plan->forward());
  Tensors out = replay(inputs);
  Tensor g = grad(out, inputs, {}, false, false, false)[0];
  // d(m x^3) = 3 m x^2 with the mask m of the forward: 0 or 2.
  std::vector<float> got = valuesOf(g), x = valuesOf(inputs[0]);
  float total = 0;
  for (size_t i = 0; i < x.size(); ++i)
    total += got[i] * x[i] / 3;
  EXPECT_NEAR(total, valuesOf(out[0])[0], 1e-4);
}

TEST(GradPlan, GeluIsRecomputed) {
  // Eager keeps the operand of gelu and its result (for the product); one of them is enough.
  Replay replay([](const Tensors &in) { return Tensors{mm(gelu(mm(in[0], in[1])), in[2])}; },
                {noise({16, 4}), leaf({4, 32}, 2), leaf({32, 4}, 3)});
  const Partition &p = replay.plan->decisions();
  EXPECT_EQ(p.saved.size(), 1u);
  EXPECT_EQ(p.savedBytes, 16 * 32 * 4);
  EXPECT_EQ(p.inputs.size(), 3u); // in[0] and the matrices, which the tape would hold too
}

TEST(GradPlan, WhatTheTapeDoesNotHoldIsCopiedOrNotNeeded) {
  // The tape of an addition and a relu saves the relu's result only: the user may change the operands.
  Program program = [](const Tensors &in) { return Tensors{relu(in[0] + in[1]) * 3}; };
  Tensors inputs{leaf({8}), noise({8}, 2)};
  Replay replay(program, inputs);
  EXPECT_EQ(replay.plan->decisions().inputs.size(), 0u);
  Tensors out = replay(inputs);
  Tensor c = noise({8}, 3);
  Tensor expected = grad(program(inputs), {inputs.data(), 1}, {&c, 1}, false, false, false)[0];
  mul_(inputs[1], Tensor(Number(-1)));
  expectNear(grad(out, {inputs.data(), 1}, {&c, 1}, false, false, false)[0], expected, "gradient");
}

TEST(GradPlan, LongChainsAreCut) {
  auto chain = [](int n) {
    return [n](const Tensors &in) {
      Tensor x = in[0];
      for (int i = 0; i < n; ++i)
        x = sin(x);
      return Tensors{x};
    };
  };
  Tensors inputs{leaf({8})};
  EXPECT_EQ(Replay(chain(20), inputs).plan->decisions().saved.size(), 0u);
  EXPECT_EQ(Replay(chain(100), inputs).plan->decisions().saved.size(), 3u);
  sameAsTape(chain(100), inputs);
}

template <class F> std::string errorOf(F f) {
  try {
    f();
  } catch (const Error &e) {
    return str(static_cast<int>(e.kind()), " ", e.what());
  }
  return "";
}

TEST(GradPlan, ErrorsAreThoseOfTheTape) {
  auto changed = [](auto &&f) {
    Tensors in{leaf({3}), leaf({3}, 2)};
    Tensors out = f(in);
    {
      GradModeScope off(false);
      add_(in[1], Tensor(Number(1)));
    }
    return errorOf([&] { backward({out.data(), 1}, {}, false, false); });
  };
  Program program = [](const Tensors &in) { return Tensors{sum(in[0] * in[1])}; };
  Tensors inputs{leaf({3}), leaf({3}, 2)};
  Replay replay(program, inputs);
  EXPECT_NE(changed(program), "");
  EXPECT_EQ(changed(program), changed(replay));
  auto output = [](auto &&f) {
    Tensors in{leaf({3})};
    Tensors out = f(in);
    add_(out[0], Tensor(Number(1)));
    Tensor total = sum(out[0]);
    return errorOf([&] { backward({&total, 1}, {}, false, false); });
  };
  Program exponential = [](const Tensors &in) { return Tensors{exp(in[0])}; };
  Replay exponentialReplay(exponential, {inputs.data(), inputs.data() + 1});
  EXPECT_NE(output(exponential), "");
  EXPECT_EQ(output(exponential), output(exponentialReplay));
  auto twice = [](auto &&f) {
    Tensors in{leaf({3})};
    Tensors out = f(in);
    Tensor c = noise({3});
    backward(out, {&c, 1}, false, false);
    return errorOf([&] { backward(out, {&c, 1}, false, false); });
  };
  EXPECT_NE(twice(exponential), "");
  EXPECT_EQ(twice(exponential), twice(exponentialReplay));
}

TEST(GradPlan, HooksAndAccumulation) {
  Tensors inputs = mlpInputs();
  Replay replay(mlp, inputs);
  Tensors out = replay(inputs);
  int calls = 0;
  addHook(out[0], [&](const Tensor &g) {
    ++calls;
    return g * 2;
  });
  addHook(inputs[1], [&](const Tensor &g) {
    ++calls;
    return Tensor();
  });
  backward(out, {}, true, false);
  backward(out, {}, false, false);
  EXPECT_EQ(calls, 4);
  Tensors expected = grad(mlp(inputs), {&inputs[1], 1}, {}, false, false, false);
  expectNear(gradMetaOf(inputs[1]).grad, expected[0] * 4, "grad");
}

TEST(GradPlan, FrozenAndUndefined) {
  Program program = [](const Tensors &in) { return Tensors{in[0] * in[1], sum(in[1] * in[1])}; };
  Tensors inputs{noise({4}), leaf({4}, 2)};
  Replay replay(program, inputs);
  Tensors out = replay(inputs), eager = program(inputs);
  // Only the second result takes part.
  Tensor a = grad({&eager[1], 1}, {&inputs[1], 1}, {}, false, false, false)[0];
  Tensor b = grad({&out[1], 1}, {&inputs[1], 1}, {}, false, false, false)[0];
  expectNear(b, a, "gradient");
}

TEST(GradPlan, UnsupportedSaysWhy) {
  auto why = [](const Program &program, const Tensors &inputs) { return errorOf([&] { Replay(program, inputs); }); };
  EXPECT_NE(why([](const Tensors &in) { return Tensors{transpose(in[0], 0, 1), in[0] * 2}; }, {leaf({2, 3})})
                .find("view of an"),
            std::string::npos);
  EXPECT_NE(why(
                [](const Tensors &in) {
                  mul_(in[0], in[1]);
                  return Tensors{in[0] * 2};
                },
                {noise({3}), leaf({3}, 2)})
                .find("changed in place"),
            std::string::npos);
}

} // namespace
