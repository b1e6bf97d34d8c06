// Rolled against unrolled recordings in the interpreter: the same bits, the same memory, for every number of steps.
#include "tests/unit/capture/RollCheck.h"
#include "runtime/autograd/Autograd.h"
#include <gtest/gtest.h>

using namespace dlc;
using namespace dlc::rolltest;

namespace {

class Roll : public testing::Test {
protected:
  template <class F> Seen check(F f, float tolerance = 0) { return check_.run(f, tolerance); }
  /// For sums over steps that one product adds in another order.
  static constexpr float kReordered = 2e-6f;

private:
  RollCheck check_;
};

Tensor number(double v) { return Tensor(Number(v)); }

struct Weights {
  Tensor wx = filled({4, 12}, 1), wh = filled({3, 12}, 2), b = filled({12}, 3);
};

Tensor zeroState() {
  Dim sizes[2] = {Dim(2), Dim(3)};
  return ops::zeros<Tensor>(sizes);
}

/// One step of an LSTM with 3 units.
void lstmStep(const Weights &w, const Tensor &x, Tensor &h, Tensor &c) {
  Tensor g = ops::add(ops::add(ops::matmul(x, w.wx), ops::matmul(h, w.wh)), w.b);
  auto gate = [&](int64_t k) { return ops::slice(g, 1, Dim(3 * k), Dim(3 * k + 3)); };
  Tensor i = ops::sigmoid(gate(0)), f = ops::sigmoid(gate(1)), o = ops::sigmoid(gate(2)), n = ops::tanh(gate(3));
  c = ops::add(ops::mul(f, c), ops::mul(i, n));
  h = ops::mul(o, ops::tanh(c));
}

std::vector<Tensor> lstm(const Weights &w, const Tensor &x, std::vector<Tensor> &hs) {
  Tensor h = zeroState(), c = zeroState();
  for (int64_t t = 0; t < x.size(0); ++t) {
    lstmStep(w, ops::select(x, 0, Dim(t)), h, c);
    hs.push_back(h);
  }
  return {h, c};
}

TEST_F(Roll, LstmOfAnyLength) {
  Weights w;
  for (int64_t n = 0; n <= 40; ++n) {
    Tensor x = filled({n, 2, 4}, n);
    Seen s = check([&] {
      std::vector<Tensor> hs, out = lstm(w, x, hs);
      if (!hs.empty())
        out.push_back(ops::stack<Tensor>(hs));
      return out;
    });
    if (n >= 4) {
      ASSERT_EQ(s.loops, 1u) << n;
      EXPECT_EQ(s.steps[0], static_cast<size_t>(n));
      EXPECT_EQ(s.ops[0], 16u); // of 17: the product of x is made before the loop
      EXPECT_LE(s.parts, 6u);
    }
  }
}

TEST_F(Roll, AListOfTheStepsValuesIsReturned) {
  Weights w;
  Tensor x = filled({9, 2, 4}, 5);
  Seen s = check([&] {
    std::vector<Tensor> hs;
    lstm(w, x, hs);
    return hs;
  });
  EXPECT_EQ(s.loops, 1u);
}

TEST_F(Roll, GradientsOfAnyLength) {
  installAutograd();
  for (int64_t n = 1; n <= 24; ++n) {
    Weights w;
    for (Tensor *t : {&w.wx, &w.wh, &w.b})
      setRequiresGrad(*t, true);
    Tensor x = filled({n, 2, 4}, n);
    Seen s = check(
        [&] {
          std::vector<Tensor> hs;
          lstm(w, x, hs);
          Tensor y = ops::stack<Tensor>(hs);
          Tensor roots[1] = {ops::mean(ops::mul(y, y))};
          backward(roots, {}, false, false);
          return std::vector<Tensor>{roots[0]};
        },
        kReordered);
    if (n >= 5) {
      EXPECT_EQ(s.loops, 2u) << n;
      EXPECT_GE(s.steps[1] + 2, static_cast<size_t>(n));
    }
  }
}

TEST_F(Roll, TwoLayers) {
  Weights a, b;
  a.wh = filled({3, 12}, 7);
  b.wx = filled({3, 12}, 8);
  for (bool together : {true, false}) {
    Tensor x = filled({11, 2, 4}, 3);
    Seen s = check([&] {
      std::vector<Tensor> hs, ys;
      Tensor h = zeroState(), c = zeroState();
      Tensor k = zeroState(), d = zeroState();
      for (int64_t t = 0; t < 11; ++t) {
        lstmStep(a, ops::select(x, 0, Dim(t)), h, c);
        hs.push_back(h);
        if (together)
          lstmStep(b, h, k, d);
      }
      for (int64_t t = 0; t < 11 && !together; ++t)
        lstmStep(b, hs[t], k, d);
      return std::vector<Tensor>{k, d};
    });
    EXPECT_EQ(s.loops, together ? 1u : 2u);
  }
}

TEST_F(Roll, AStepThatDiffersMakesTwoLoops) {
  Weights w;
  Tensor x = filled({20, 2, 4}, 4);
  Seen s = check([&] {
    Tensor h = zeroState(), c = zeroState();
    for (int64_t t = 0; t < 20; ++t) {
      lstmStep(w, ops::select(x, 0, Dim(t)), h, c);
      if (t == 8)
        h = ops::neg(h);
    }
    return std::vector<Tensor>{h, c};
  });
  ASSERT_EQ(s.loops, 2u);
  EXPECT_EQ(s.steps[0] + s.steps[1], 20u);
}

TEST_F(Roll, NumbersMayDifferInEachStep) {
  Weights w;
  Tensor x = filled({10, 2, 4}, 4);
  Seen s = check([&] {
    Tensor h = zeroState(), c = zeroState();
    for (int64_t t = 0; t < 10; ++t) {
      lstmStep(w, ops::select(x, 0, Dim(t)), h, c);
      h = ops::mul(h, number(0.5 + 0.25 * static_cast<double>(t)));
    }
    return std::vector<Tensor>{h, c};
  });
  EXPECT_EQ(s.loops, 1u);
}

TEST_F(Roll, TheFirstStateMayLieOtherwiseInMemory) {
  Weights w;
  Tensor x = filled({10, 2, 4}, 4), h0 = ops::transpose(filled({3, 2}, 5), 0, 1), c0 = filled({2, 6}, 6);
  Seen s = check([&] {
    Tensor h = h0, c = ops::slice(c0, 1, Dim(0), Dim(6), Dim(2));
    for (int64_t t = 0; t < 10; ++t)
      lstmStep(w, ops::select(x, 0, Dim(t)), h, c);
    return std::vector<Tensor>{h, c};
  });
  EXPECT_EQ(s.loops, 1u);
  EXPECT_EQ(s.steps[0], 10u);
}

TEST_F(Roll, StepsReadInAnyOrder) {
  Weights w;
  Tensor x = filled({2, 13, 4}, 4);
  std::vector<Tensor> list;
  for (int64_t t = 0; t < 13; ++t)
    list.push_back(filled({2, 4}, t));
  for (int mode = 0; mode < 3; ++mode) {
    Seen s = check([&] {
      Tensor h = zeroState(), c = zeroState();
      for (int64_t t = 0; t < 13; ++t)
        lstmStep(w, mode == 2 ? list[t] : ops::select(x, 1, Dim(mode == 0 ? 12 - t : t * 5 % 13)), h, c);
      return std::vector<Tensor>{h, c};
    });
    EXPECT_EQ(s.loops, 1u) << mode;
    EXPECT_EQ(s.steps[0], 13u);
  }
}

TEST_F(Roll, StateTwoStepsBack) {
  Tensor w = filled({3, 3}, 1), x = filled({2, 3}, 2);
  Seen s = check([&] {
    Tensor a = x, b = x;
    for (int t = 0; t < 20; ++t) {
      Tensor next = ops::tanh(ops::add(ops::matmul(a, w), b));
      b = a;
      a = next;
    }
    return std::vector<Tensor>{a, b};
  });
  EXPECT_EQ(s.loops, 1u);
}

TEST_F(Roll, AnInputChangedInPlaceInTheLoop) {
  Tensor w = filled({3, 3}, 1);
  Tensor state = filled({2, 3}, 2);
  Seen s = check([&] {
    Tensor y = state;
    for (int t = 0; t < 12; ++t) {
      y = ops::tanh(ops::matmul(y, w));
      ops::add_(state, y);
    }
    return std::vector<Tensor>{y};
  });
  EXPECT_EQ(s.loops, 1u);
}

TEST_F(Roll, TheLastPartWritesItsResultsToTheInputs) {
  Weights w;
  Tensor x = filled({8, 2, 4}, 2), a = filled({2, 3}, 5), b = filled({2, 3}, 6);
  Tensor row = ops::select(a, 0, Dim(1)), all = filled({4, 3}, 3);
  Tensor low = ops::slice(all, 0, Dim(0), Dim(3)), high = ops::slice(all, 0, Dim(1), Dim(4));
  Seen s = check([&] {
    Tensor h = zeroState(), c = zeroState();
    Tensor before = ops::mul(row, number(2)), view = ops::transpose(b, 0, 1);
    for (int64_t t = 0; t < 8; ++t)
      lstmStep(w, ops::select(x, 0, Dim(t)), h, c);
    ops::add_(a, ops::mul(h, row));
    ops::copy_(b, ops::add(ops::mul(a, h), c));
    ops::add_(low, ops::slice(high, 0, Dim(0), Dim(1)));
    ops::mul_(high, low);
    return std::vector<Tensor>{ops::sub(a, b), before, ops::neg(view), ops::add(high, low)};
  });
  EXPECT_EQ(s.loops, 1u);
}

TEST_F(Roll, ParametersChangedInALoopAreNotRolled) {
  std::vector<Tensor> parameters, grads;
  for (int64_t k = 0; k < 40; ++k) {
    parameters.push_back(filled({3, 3}, k));
    grads.push_back(filled({3, 3}, k + 50));
  }
  Seen s = check([&] {
    for (int k = 0; k < 40; ++k)
      ops::sub_(parameters[k], ops::matmul(grads[k], ops::tanh(ops::mul(grads[k], number(0.1)))));
    return std::vector<Tensor>{};
  });
  EXPECT_EQ(s.loops, 0u);
}

TEST_F(Roll, LayersAreNotALoopOfTime) {
  std::vector<Tensor> weights, biases;
  for (int64_t k = 0; k < 12; ++k) {
    weights.push_back(filled({3, 3}, k));
    biases.push_back(filled({3}, k));
  }
  Tensor x = filled({2, 3}, 1);
  Seen s = check([&] {
    Tensor y = x;
    for (int k = 0; k < 12; ++k)
      y = ops::tanh(ops::sigmoid(ops::exp(ops::add(ops::matmul(y, weights[k]), biases[k]))));
    return std::vector<Tensor>{y};
  });
  EXPECT_EQ(s.loops, 0u);
}

TEST_F(Roll, NothingToRoll) {
  Tensor x = filled({4}, 1);
  Seen s = check([&] {
    Tensor y = x;
    for (int k = 0; k < 10; ++k)
      y = ops::tanh(ops::add(y, x));
    return std::vector<Tensor>{ops::sum(ops::exp(y))};
  });
  EXPECT_EQ(s.loops, 0u);
}

TEST_F(Roll, ResultsWrittenToABuffer) {
  Weights w;
  Tensor x = filled({10, 2, 4}, 4), given = filled({10, 2, 3}, 9), flat = filled({2, 3, 10}, 9);
  for (int mode = 0; mode < 4; ++mode) {
    Seen s = check([&] {
      Dim sizes[3] = {Dim(10), Dim(2), Dim(3)};
      Tensor out = mode == 1 ? given : mode == 2 ? ops::permute(flat, {2, 0, 1}) : ops::zeros<Tensor>(sizes);
      Tensor h = zeroState(), c = zeroState(), before = out;
      if (mode == 3)
        before = ops::neg(out); // reads the buffer as it was
      for (int64_t t = 0; t < 10; ++t) {
        lstmStep(w, ops::select(x, 0, Dim(t)), h, c);
        ops::copy_(ops::select(out, 0, Dim(9 - t)), h);
      }
      return std::vector<Tensor>{h, out, before};
    });
    EXPECT_EQ(s.loops, 1u) << mode;
  }
}

TEST_F(Roll, GradientsOfWhatIsWalked) {
  installAutograd();
  for (int64_t n : {3, 4, 5, 12}) {
    Tensor w = filled({4, 4}, 1), x = filled({n, 2, 4}, n);
    setRequiresGrad(w, true);
    setRequiresGrad(x, true);
    Seen s = check(
        [&] {
          Tensor h = filled({2, 4}, 7);
          for (int64_t t = 0; t < n; ++t)
            h = ops::tanh(ops::sigmoid(ops::add(ops::matmul(h, w), ops::select(x, 0, Dim(t)))));
          Tensor roots[1] = {ops::sum(h)};
          backward(roots, {}, false, false);
          return std::vector<Tensor>{roots[0]};
        },
        kReordered);
    if (n == 12)
      EXPECT_EQ(s.loops, 2u);
  }
}

TEST_F(Roll, ElementwiseStepsAreTakenManyAtATime) {
  Tensor x = filled({5}, 1), table = filled({300, 5}, 2);
  for (int64_t n : {150, 160, 161, 299}) {
    Seen s = check([&] {
      Tensor y = x, z = x;
      for (int64_t t = 0; t < n; ++t) {
        y = ops::tanh(ops::add(ops::mul(y, number(0.9)), ops::select(table, 0, Dim(t))));
        z = ops::sigmoid(ops::sub(y, z));
      }
      return std::vector<Tensor>{y, z};
    });
    ASSERT_GE(s.loops, 1u);
    EXPECT_GE(s.ops[0], 50u);
  }
}

TEST_F(Roll, LoopsInLoops) {
  Tensor w = filled({3, 3}, 1), u = filled({3, 3}, 4), x = filled({2, 3}, 2);
  for (int inner : {4, 200}) {
    Seen s = check([&] {
      Tensor h = x;
      for (int i = 0; i < 6; ++i) {
        h = ops::sub(ops::sigmoid(ops::matmul(h, u)), x);
        for (int k = 0; k < inner; ++k)
          h = ops::tanh(ops::add(ops::matmul(h, w), x));
      }
      return std::vector<Tensor>{h};
    });
    EXPECT_EQ(s.loops, inner == 4 ? 1u : 6u);
  }
}

TEST_F(Roll, RandomNumbersOfEachStep) {
  Weights w;
  Tensor x = filled({10, 2, 4}, 4);
  Seen s = check([&] {
    Tensor h = zeroState(), c = zeroState();
    for (int64_t t = 0; t < 10; ++t) {
      lstmStep(w, ops::select(x, 0, Dim(t)), h, c);
      h = ops::dropout(h, 0.5, true);
    }
    return std::vector<Tensor>{h, c};
  });
  EXPECT_EQ(s.loops, 1u);
}

} // namespace
