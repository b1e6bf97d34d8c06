// Records a function with its tape, so that gradients built from the graph can be compared with the eager ones.
#pragma once
#include "frontend/autograd/GradPlan.h"
#include "frontend/trace/Recorder.h"
#include "runtime/autograd/Autograd.h"
#include "runtime/op/Functional.h"
#include <cmath>
#include <functional>
#include <gtest/gtest.h>

namespace dlc::test {

using Tensors = std::vector<Tensor>;
using Program = std::function<Tensors(const Tensors &)>;

/// Numbers in [-1, 1) that look random.
inline Tensor noise(Sizes sizes, uint64_t seed = 1) {
  Tensor t = Tensor::empty(sizes, DType::F32);
  for (int64_t i = 0; i < t.numel(); ++i) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    t.dataAs<float>()[i] = static_cast<float>(static_cast<int32_t>(seed >> 32)) / 2147483648.0f;
  }
  return t;
}
inline Tensor leaf(Sizes sizes, uint64_t seed = 1) {
  Tensor t = noise(sizes, seed);
  setRequiresGrad(t, true);
  return t;
}
inline Tensor indices(Sizes sizes, int64_t below) {
  Tensor t = Tensor::empty(sizes, DType::I64);
  for (int64_t i = 0; i < t.numel(); ++i)
    t.dataAs<int64_t>()[i] = (i * 7 + 3) % below;
  return t;
}
inline std::vector<float> valuesOf(const Tensor &t) {
  Tensor c = ops::contiguous(t);
  return {c.dataAs<float>(), c.dataAs<float>() + c.numel()};
}

/// What recording `program` on `inputs` gave; the results that need a gradient are roots.
struct Recording {
  trace::Piece piece;
  Tensors results, roots;
};
/// The tape of this process; test binaries have no Python module that installs it.
inline const bool kTape = (installAutograd(), true);

/// Without the tape its saved tensors are no outputs of the piece.
inline Recording record(const Program &program, const Tensors &inputs, bool keepTape = true) {
  Recording r;
  bool ran = false;
  trace::Recorder recorder([&](trace::Piece &piece, std::vector<Tensor> &outs) {
    EXPECT_FALSE(ran) << "more than one piece";
    ran = true;
    if (keepTape) {
      interpret(piece.graph, piece.inputs, piece.numbers, {}, outs);
      trace::GradLog log = std::move(r.piece.gradients);
      r.piece = piece;
      r.piece.gradients = std::move(log);
    } else {
      r.piece = piece;
      r.piece.plan = piece.plan = planGradient(piece.graph, piece.gradients, {piece.sharedInput});
      interpret(piece.plan->forward(), piece.inputs, piece.numbers, {}, outs);
    }
  });
  recorder.canPlan = [&](trace::Piece &piece) {
    r.piece.gradients = piece.gradients;
    return !keepTape;
  };
  InterceptorScope scope(&recorder);
  recorder.logGradients(true);
  r.results = program(inputs);
  for (const Tensor &t : r.results)
    if (requiresGrad(t))
      r.roots.push_back(t);
  std::stable_sort(r.roots.begin(), r.roots.end(), [](const Tensor &a, const Tensor &b) {
    GradEdge x = gradEdgeOf(a), y = gradEdgeOf(b);
    return std::make_pair(x.node->sequence, x.index) < std::make_pair(y.node->sequence, y.index);
  });
  recorder.flush(trace::FlushReason::Exit, "return");
  return r;
}

/// The index of the graph input that reads `t`; -1: none.
inline int64_t inputOf(const trace::Piece &piece, const Tensor &t) {
  for (size_t i = 0; i < piece.inputs.size(); ++i)
    if (piece.inputs[i].storageRef() == t.storageRef() && piece.inputs[i].sizes() == t.sizes() &&
        piece.inputs[i].strides() == t.strides() && piece.inputs[i].offset() == t.offset())
      return static_cast<int64_t>(i);
  return -1;
}

inline void expectNear(const Tensor &got, const Tensor &want, const std::string &what) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  std::vector<float> a = valuesOf(got), b = valuesOf(want);
  for (size_t i = 0; i < a.size(); ++i)
    if (!(std::isnan(a[i]) && std::isnan(b[i])))
      EXPECT_NEAR(a[i], b[i], 1e-5f * std::max(1.0f, std::abs(b[i]))) << what << "[" << i << "]";
}

} // namespace dlc::test
