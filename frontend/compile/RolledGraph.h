// A recorded piece cut into parts: straight runs of ops and loop bodies, each a piece of its own that is compiled once,
// with the wiring that says which values a step of a part reads and makes. Free of any compiler.
#pragma once
#include "frontend/trace/Recorder.h"
#include "runtime/exec/PlanSteps.h"
#include <functional>
#include <vector>

namespace dlc {

/// A view made between the parts: `base` read with another layout. With `source`, not a view but the value of `base`
/// after `source` has been written through that layout.
struct RolledView {
  int32_t value, base, source = -1;
  Sizes sizes, strides;
  int64_t offset = 0; ///< in elements from the first element of `base`
};

/// Memory that the steps of a loop write one result to, each to a slot of its own. A result that is needed for less
/// than `slots` more steps lies in a ring.
struct RolledBuffer {
  size_t slots = 0;
  int64_t elements = 0; ///< of a slot
  DType dtype = DType::F32;
  Sizes sizes, strides; ///< of a slot
  size_t values = 0;    ///< that lie here, of the whole program
};

/// Where a value lies: in another value, or in a buffer. Known before anything runs.
struct RolledPlace {
  int32_t root = -1;  ///< value, or numValues + buffer
  int64_t offset = 0; ///< in elements from the root's first element
};

/// One part. Its graph is that of one step; the tables have one row a step and hold values of the whole program.
struct RolledPart {
  enum class Kind : uint8_t {
    Piece, ///< `piece`, compiled or interpreted
    Eager  ///< one op over values of many steps (cat), run by its kernel
  } kind = Kind::Piece;
  trace::Piece piece; ///< without inputs; Eager: a graph of one node
  size_t steps = 1;
  std::vector<int32_t> in, out;   ///< steps x inputs and steps x outputs of the graph
  std::vector<uint8_t> dense;     ///< per input: its layout differs between steps; row-major memory is made of it
  std::vector<int32_t> numbers;   ///< steps x number operands of the graph: number operands of the whole program
  std::vector<int32_t> scattered; ///< steps x numScattered: views with a source, made after each step
  size_t numScattered = 0;
  /// steps x (inputs, outputs), if steps differ in nothing but these and can run without looking between them. Of a
  /// list of values at equal distances in one root: its inputs.
  std::vector<RolledPlace> places;
  std::vector<int64_t> dims; ///< steps x Dim arguments of the graph's nodes in order; empty if they don't vary
  size_t numInputs() const { return piece.graph.inputs.size(); }
  size_t numOutputs() const { return piece.graph.outputs.size(); }
  size_t numNumbers() const { return piece.graph.numbers.size(); }
};

/// Runs a step of a part on these operands.
using RolledStepRunner = std::function<void(size_t part, size_t step, Span<const Tensor> in, Span<const Number> numbers,
                                            std::vector<Tensor> &outs)>;

/// Runs all steps of a part in a row. False if it can't: then nothing was done.
using RolledLoopRunner = std::function<bool(size_t part, const PlanSteps &steps, Span<const Number> numbers)>;

struct RolledGraph {
  size_t numValues = 0;
  std::vector<int32_t> inputs; ///< value of each input
  std::vector<RolledPart> parts;
  std::vector<RolledView> views;
  std::vector<int32_t> viewOf; ///< per value: its view, or -1
  std::vector<GraphOutput> outputs;
  bool lastWrites = false; ///< the last part writes those of its outputs that are write-backs to their inputs
  /// Counting the steps of all parts: dead[deadAt[2 * t]] .. dead[deadAt[2 * t + 1]] are last used in step t itself,
  /// those up to deadAt[2 * t + 2] in what is made after it.
  std::vector<int32_t> dead;
  std::vector<uint32_t> deadAt;

  size_t numLoops() const;
  std::vector<RolledBuffer> buffers;
  std::vector<RolledPlace> slotOf; ///< per value: its place in a buffer, or none

  /// Finds the places of what loops read and write. Last step of making a rolled graph.
  void placeLoops();
  /// As interpret(): one tensor per output, write-backs last. A step that throws leaves all inputs as they were.
  void run(Span<const Tensor> inputs, Span<const Number> numbers, const RolledStepRunner &runStep,
           std::vector<Tensor> &outs, const RolledLoopRunner &runLoop = nullptr) const;
  /// "3 ops, 1000 steps of 18 ops, 12 ops".
  std::string describe() const;
};

} // namespace dlc
