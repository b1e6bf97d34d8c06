// Making code that runs a recorded piece again: compiled entries, and pieces too small to compile.
#pragma once
#include "frontend/compile/Cache.h"
#include "frontend/compile/Compile.h"

namespace dlc {

/// Pieces of fewer ops run their eager kernels, unless they move much memory.
constexpr size_t kMinNodes = 3;
constexpr int64_t kLargeBytes = 256 << 10;
/// Whether compiling can't pay.
bool isSmallPiece(const Graph &graph);

/// Fills the record of an observed piece that `entry` served: code, symbols, and the facts under which the session's
/// sizes are served by the same entry.
void recordEntry(trace::Piece &piece, std::shared_ptr<CacheEntry> entry, Ints symbols, Ref<CompiledFunction> owner);
/// The same for a small piece.
void recordSmallPiece(trace::Piece &piece);

/// Runs an entry's code. What fails in it, or has none, runs in the interpreter and is counted and told; true if it did
/// not come to that.
bool runEntry(const CacheEntry &entry, const std::string &name, Span<const Tensor> inputs, Span<const Number> numbers,
              Ints symbols, std::vector<Tensor> &outs);

/// While it lives, what this thread compiles is part of one recording and counts as one compilation.
class OneCompilation {
public:
  OneCompilation();
  ~OneCompilation();
  bool any() const { return compiled_ > 0; }

private:
  int compiled_ = 0;
};
void countHit();
void countSmallPiece();

} // namespace dlc
