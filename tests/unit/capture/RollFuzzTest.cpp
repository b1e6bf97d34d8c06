// Random programs with loops: rolled against unrolled in the interpreter.
#include "frontend/compile/Roll.h"
#include "runtime/op/Functional.h"
#include "tests/unit/capture/RollCheck.h"
#include <gtest/gtest.h>
#include <random>

using namespace dlc;
using namespace dlc::rolltest;

namespace {

/// A program made from a seed: some state, a list, a buffer; a body of random statements that is the same in each
/// step, but for a few steps that do something else.
class Program {
public:
  explicit Program(uint32_t seed) : random_(seed) {
    for (int64_t k = 0; k < 4; ++k)
      inputs_.push_back(filled({4, 4}, seed + k));
    for (int64_t k = 0; k < 3; ++k)
      sequences_.push_back(filled({kMost, 4, 4}, seed + 10 + k));
    buffer_ = filled({kMost, 4, 4}, seed + 20);
    size_t statements = 2 + pick(9);
    for (size_t k = 0; k < statements; ++k)
      body_.push_back({pick(14), pick(16), pick(16), pick(16)});
    steps_ = static_cast<int64_t>(pick(kMost + 1));
    oddStep_ = pick(3) == 0 ? static_cast<int64_t>(pick(kMost)) : -1;
    start_ = pick(3);
    again_ = pick(3) == 0;
  }

  std::vector<Tensor> run() {
    state_.assign(inputs_.begin(), inputs_.end());
    if (start_ == 1)
      state_[0] = state_[1];
    if (start_ == 2)
      state_[2] = ops::transpose(state_[2], 0, 1);
    list_.clear();
    own_ = ops::clone(buffer_);
    for (int rounds = again_ ? 2 : 1; rounds > 0; --rounds)
      for (int64_t t = 0; t < steps_; ++t) {
        for (const Statement &s : body_)
          run(s, t);
        if (t == oddStep_)
          state_[0] = ops::tanh(state_[0]);
      }
    std::vector<Tensor> out = state_;
    if (!list_.empty())
      out.push_back(ops::stack<Tensor>(list_));
    out.push_back(own_);
    if (!list_.empty())
      out.push_back(list_[list_.size() / 2]);
    return out;
  }

private:
  static constexpr int64_t kMost = 14;
  struct Statement {
    size_t kind, to, a, b;
  };
  size_t pick(size_t n) { return random_() % n; }
  Tensor &state(size_t k) { return state_[k % state_.size()]; }
  const Tensor &given(size_t k) const { return inputs_[k % inputs_.size()]; }
  Tensor item(size_t which, int64_t t, size_t order) const {
    int64_t k = order % 3 == 0 ? t : order % 3 == 1 ? steps_ - 1 - t : (t * 3 + 1) % kMost;
    return ops::select(sequences_[which % sequences_.size()], order % 2, Dim(order % 2 ? k % 4 : k));
  }
  /// Keeps values small and square.
  static Tensor square(const Tensor &x) {
    Tensor y = x.size(0) == 4 ? x : ops::slice(x, 0, Dim(0), Dim(4));
    return ops::tanh(y);
  }

  void run(const Statement &s, int64_t t) {
    Tensor &to = state(s.to);
    switch (s.kind) {
    case 0:
    case 1:
      to = square(ops::matmul(state(s.a), given(s.b)));
      break;
    case 2:
      to = ops::add(state(s.a), state(s.b));
      to = ops::tanh(to);
      break;
    case 3:
      to = square(ops::add(state(s.a), item(s.b, t, 2 * s.a)));
      break;
    case 4:
      list_.push_back(state(s.a));
      break;
    case 5:
      ops::copy_(ops::select(own_, 0, Dim(s.b % 2 ? t : steps_ - 1 - t)), state(s.a));
      break;
    case 6:
      ops::mul_(state(s.a), Tensor(Number(0.5 + 0.125 * static_cast<double>(t % 5))));
      break;
    case 7:
      to = ops::transpose(state(s.a), 0, 1);
      break;
    case 8:
      to = ops::clone(state(s.a));
      ops::add_(to, given(s.b));
      break;
    case 9:
      to = ops::tanh(ops::add(ops::slice(state(s.a), s.b % 2, Dim(1), Dim(3)), Tensor(Number(1))));
      to = ops::cat<Tensor>(std::vector<Tensor>{to, to}, static_cast<int64_t>(s.b % 2));
      break;
    case 10:
      if (!list_.empty())
        to = ops::tanh(ops::add(list_[s.b % 2 ? list_.size() - 1 : list_.size() / 2], state(s.a)));
      break;
    case 11:
      ops::add_(ops::select(given(s.a), 0, Dim(s.b % 4)), ops::select(state(s.to), 0, Dim(0)));
      break;
    case 12:
      to = ops::add(ops::select(own_, 0, Dim(t)), ops::sum(state(s.a), {}, false));
      to = ops::tanh(to);
      break;
    default:
      to = ops::softmax(state(s.a), static_cast<int64_t>(s.b % 2));
    }
  }

  std::mt19937 random_;
  std::vector<Tensor> inputs_, sequences_, state_, list_;
  Tensor buffer_, own_;
  std::vector<Statement> body_;
  int64_t steps_ = 0, oddStep_ = -1;
  size_t start_ = 0;
  bool again_ = false;
};

TEST(RollFuzz, RolledEqualsUnrolled) {
  size_t rolled = 0;
  RollCheck check;
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    Program program(seed);
    rolled += check.run([&] { return program.run(); }, 1e-5f).loops > 0;
    if (testing::Test::HasFailure())
      break;
  }
  EXPECT_GT(rolled, 300u);
}

} // namespace
