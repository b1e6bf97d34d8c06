// Records a program and runs its piece rolled and unrolled in the interpreter: both must give the same bits and leave
// the inputs the same.
#pragma once
#include "frontend/compile/Roll.h"
#include "runtime/op/Functional.h"
#include <cmath>
#include <gtest/gtest.h>
#include <map>

namespace dlc::rolltest {

inline Tensor filled(Sizes sizes, int64_t seed) {
  Tensor t = Tensor::empty(sizes, DType::F32);
  for (int64_t i = 0; i < t.numel(); ++i)
    t.dataAs<float>()[i] = static_cast<float>((i * 37 + seed * 11) % 29) / 29 - 0.5f;
  return t;
}

/// Copies that lie in memory as the originals do, shared storages included.
inline std::vector<Tensor> twins(const std::vector<Tensor> &tensors) {
  std::map<Storage *, Ref<Storage>> memory;
  std::vector<Tensor> out;
  for (const Tensor &t : tensors) {
    auto [it, fresh] = memory.try_emplace(&t.storage());
    if (fresh) {
      it->second = Storage::allocate(t.storage().bytes());
      if (t.storage().bytes())
        std::memcpy(it->second->data(), t.storage().data(), t.storage().bytes());
    }
    out.push_back(Tensor::viewOf(it->second, t.sizes(), t.strides(), t.offset(), t.dtype()));
  }
  return out;
}

/// Bit for bit, or as near as `tolerance`.
inline void expectSame(const Tensor &a, const Tensor &b, float tolerance) {
  ASSERT_EQ(a.sizes(), b.sizes());
  ASSERT_EQ(a.strides(), b.strides());
  ASSERT_EQ(a.dtype(), b.dtype());
  Tensor x = ops::contiguous(a), y = ops::contiguous(b);
  size_t bytes = static_cast<size_t>(x.numel()) * itemSize(x.dtype());
  bool same = bytes == 0 || std::memcmp(x.data(), y.data(), bytes) == 0;
  if (!same && tolerance > 0 && x.dtype() == DType::F32) {
    same = true;
    for (int64_t i = 0; i < x.numel(); ++i)
      same = same && std::abs(x.dataAs<float>()[i] - y.dataAs<float>()[i]) <= tolerance;
  }
  EXPECT_TRUE(same);
}

/// What rolling made of the last piece.
struct Seen {
  size_t loops = 0, parts = 0, nodes = 0;
  std::vector<size_t> steps; // of the loops
  std::vector<size_t> ops;   // of a step of each
};

class RollCheck {
public:
  /// Records `f`, runs the piece rolled and unrolled on copies of its inputs, compares everything.
  /// `tolerance`: for programs whose reductions depend on how their operands lie in memory.
  template <class F> Seen run(F f, float tolerance = 0) {
    Seen seen;
    trace::Recorder recorder([&](trace::Piece &piece, std::vector<Tensor> &outs) {
      std::vector<Tensor> inputs = twins(piece.inputs);
      const std::vector<Tensor> rolledInputs = twins(piece.inputs);
      seen = Seen();
      seen.nodes = piece.graph.nodes.size();
      interpret(piece.graph, inputs, piece.numbers, {}, outs);
      std::optional<RolledGraph> rolled = roll(piece, known_, true);
      if (!rolled)
        return;
      for (bool inRow : {false, true}) {
        std::vector<Tensor> rolledOuts, mine = twins(rolledInputs);
        runRolled(*rolled, mine, piece.numbers, rolledOuts, inRow);
        ASSERT_EQ(rolledOuts.size(), outs.size());
        for (size_t i = 0; i < outs.size(); ++i)
          expectSame(rolledOuts[i], outs[i], tolerance);
        for (size_t i = 0; i < inputs.size(); ++i)
          expectSame(mine[i], inputs[i], tolerance);
      }
      seen.parts = rolled->parts.size();
      for (const RolledPart &p : rolled->parts)
        if (p.steps > 1) {
          ++seen.loops;
          seen.steps.push_back(p.steps);
          seen.ops.push_back(p.piece.graph.nodes.size());
        }
    });
    InterceptorScope scope(&recorder);
    auto kept = f();
    recorder.flush(trace::FlushReason::Exit, "return");
    return seen;
  }

private:
  static void setDims(Graph &g, const RolledPart &part, size_t step) {
    size_t at = part.dims.size() / part.steps * step;
    if (!part.dims.empty())
      for (GraphNode &n : g.nodes)
        forEachDim(n.args, [&](Dim &d) { d = Dim(part.dims[at++]); });
  }

  /// What the part's graph says of an input is true.
  static void checkLayout(const TensorMeta &m, const Tensor &t) {
    ASSERT_EQ(m.dtype, t.dtype());
    ASSERT_EQ(m.sizes.size(), t.sizes().size());
    for (size_t d = 0; d < m.sizes.size(); ++d) {
      EXPECT_EQ(m.sizes[d].value(), t.sizes()[d]);
      if (t.sizes()[d] > 1 && t.numel() > 0)
        EXPECT_EQ(m.strides[d].value(), t.strides()[d]);
    }
  }

  /// Step by step, or with all steps of a loop `inRow` where the places of its operands are known.
  static void runRolled(const RolledGraph &rolled, const std::vector<Tensor> &inputs, Span<const Number> numbers,
                        std::vector<Tensor> &outs, bool inRow) {
    RolledLoopRunner loop;
    if (inRow)
      loop = [&](size_t part, const PlanSteps &steps, Span<const Number> n) {
        runSteps(rolled.parts[part].piece.graph, steps, n);
        return true;
      };
    rolled.run(
        inputs, numbers,
        [&](size_t part, size_t step, Span<const Tensor> in, Span<const Number> n, std::vector<Tensor> &stepOuts) {
          Graph g = rolled.parts[part].piece.graph;
          setDims(g, rolled.parts[part], step);
          for (size_t i = 0; i < in.size(); ++i)
            checkLayout(g.values[g.inputs[i]], in[i]);
          interpret(g, in, n, {}, stepOuts);
        },
        outs, loop);
  }

  static void runSteps(const Graph &g, const PlanSteps &steps, Span<const Number> numbers) {
    size_t numIn = steps.inputs.size(), width = numIn + steps.outputs.size();
    ASSERT_EQ(steps.places.size(), steps.steps * width);
    auto at = [&](const Tensor &like, const PlanPlace &p) {
      return Tensor::viewOf(Ref<Storage>(p.storage), like.sizes(), like.strides(), p.offset, like.dtype());
    };
    for (size_t k = 0; k < steps.steps; ++k) {
      const PlanPlace *row = steps.places.data() + k * width;
      std::vector<Tensor> in, outs;
      for (size_t i = 0; i < numIn; ++i) {
        in.push_back(at(steps.inputs[i], row[i]));
        checkLayout(g.values[g.inputs[i]], in.back());
      }
      interpret(g, in, numbers, {}, outs);
      for (size_t i = 0; i < outs.size(); ++i) {
        EXPECT_EQ(outs[i].strides(), steps.outputs[i].strides());
        ops::copy_(at(steps.outputs[i], row[numIn + i]), outs[i]);
      }
    }
  }

  KnownBodies known_;
};

} // namespace dlc::rolltest
