// The key of a recorded graph: a skeleton (everything but its sizes) and the numbers that may be lifted.
#pragma once
#include "frontend/trace/Recorder.h"
#include <cstdint>
#include <string>
#include <vector>

namespace dlc {

/// Sizes, strides and index arguments of a recording in order of occurrence.
struct Skeleton {
  std::string bytes;            ///< equal bytes: the same program up to `numbers` and the number operands' values
  std::vector<int64_t> numbers; ///< sizes of inputs, strides of inputs that are not row-major, Dims of arguments
  size_t inputNumbers = 0;      ///< how many of them belong to inputs
  std::vector<std::vector<int64_t>> alike; ///< numbers of other recordings of this program that will come
  uint64_t hash = 0;
};
Skeleton skeletonOf(const trace::Piece &piece);
/// The numbers of a graph with symbols as expressions, in the order of Skeleton::numbers. Where the skeleton of its
/// concrete form says "row-major", facts say that the strides are so for all values of the symbols.
std::vector<Dim> symbolicNumbers(const Graph &g, std::vector<Fact> &facts);

/// How each number of a skeleton depends on symbols.
struct Lifting {
  std::vector<Dim> forms;          ///< per number: a constant or an expression
  std::vector<uint32_t> positions; ///< symbol k is the number at positions[k]
  /// The symbols' values for these numbers.
  std::vector<int64_t> symbols(const std::vector<int64_t> &numbers) const;
  bool matches(const std::vector<int64_t> &numbers, Ints symbols) const;
};

/// What callers ask of single numbers of a skeleton: lift it from the first recording on, or never.
enum class LiftHint : int8_t { Auto, Lift, Fix };
/// By the marks of the piece's inputs (dlc.mark_dynamic, mark_static); with `all`, every size of an input that is no
/// parameter is to be lifted. Empty: no hint at all.
std::vector<LiftHint> liftHints(const trace::Piece &piece, bool all);

/// Everything constant.
Lifting staticLifting(const std::vector<int64_t> &numbers);
/// Lifts what differs between the samples (recordings of one skeleton; the last is the current one). Numbers that
/// agree in all samples stay constant; equal columns share a symbol; arguments that are a product, multiple or sum of
/// earlier symbols in all samples are expressions of them. What was guessed is checked at each look-up.
/// Columns in `pinned` stay constant. Numbers hinted to be lifted are, though all samples agree (but for 0 and 1, which
/// ops treat differently); what equals them, or a product of two, is taken to be the same size.
Lifting antiUnify(const std::vector<std::vector<int64_t>> &samples, size_t inputNumbers,
                  const std::vector<std::vector<int64_t>> &pinned = {}, const std::vector<LiftHint> &hints = {});
/// The symbol that a fact fixes to one number (`s0 - 3 == 0`), or -1.
int64_t symbolFixedBy(const Fact &fact);

/// The graph with its numbers replaced by their forms, and the facts that makes it rest on.
Graph liftGraph(const trace::Piece &piece, const Lifting &lifting, std::vector<Fact> &facts);

} // namespace dlc
