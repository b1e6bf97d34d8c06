// A recorded piece cut into parts: straight runs of ops and loop bodies, each a piece of its own that is compiled once,
// with the wiring that says which values a step of a part reads and makes. Free of any compiler.
#pragma once
#include "frontend/trace/Recorder.h"
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
  std::vector<int64_t> dims; ///< steps x Dim arguments of the graph's nodes in order; empty if they don't vary
  size_t numInputs() const { return piece.graph.inputs.size(); }
  size_t numOutputs() const { return piece.graph.outputs.size(); }
  size_t numNumbers() const { return piece.graph.numbers.size(); }
};

/// Runs a step of a part on these operands.
using RolledStepRunner = std::function<void(size_t part, size_t step, Span<const Tensor> in, Span<const Number> numbers,
                                            std::vector<Tensor> &outs)>;

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
  /// As interpret(): one tensor per output, write-backs last. A step that throws leaves all inputs as they were.
  void run(Span<const Tensor> inputs, Span<const Number> numbers, const RolledStepRunner &runStep,
           std::vector<Tensor> &outs) const;
  /// "3 ops, 1000 steps of 18 ops, 12 ops".
  std::string describe() const;
};

} // namespace dlc
