// Sizes and numbers that stand for something while a session records: who answers for them and who is told when a
// program takes the plain value out.
#pragma once
#include "runtime/core/Dim.h"

namespace dlc {

class Tensor;
class Number;
struct TensorMeta;

/// The layout of one tensor as expressions of a session's symbols, or the number that a wrapped tensor stands for.
struct SymbolicLayout {
  uint64_t session = 0; ///< which session it belongs to; of another one it means nothing
  Dims sizes, strides;
  Dim offset = 0;
  const void *number = nullptr; ///< Number::ref() of a wrapped tensor, of any session
};

/// A session. Sizes are read in two ways: through Tensor::meta(), which gives expressions, or as plain ints
/// (Tensor::sizes() and the like), after which the reader's behaviour may depend on them: then the session is told.
/// Code that only carries the ints of one recording along (and keeps the expressions beside them) reads
/// `impl()->sizes`, or has a HintScope.
class SymbolicHost {
public:
  virtual ~SymbolicHost() = default;
  /// Puts expressions in the place of sizes, strides and offset.
  virtual void describe(const Tensor &t, TensorMeta &meta) = 0;
  /// Somebody read the sizes, strides or offset of a tensor that has a SymbolicLayout as plain ints.
  virtual void sizesRead(const Tensor &t) = 0;
  /// Somebody read the value of a number that has a ref().
  virtual void numberRead(const Number &n) = 0;
};

/// The host of this thread; null outside of sessions.
SymbolicHost *symbolicHost();
/// Installs a host (may be null: values are read by their owner) for the scope.
class SymbolicScope {
public:
  explicit SymbolicScope(SymbolicHost *host);
  ~SymbolicScope();
  SymbolicScope(const SymbolicScope &) = delete;

private:
  SymbolicHost *previous_;
  bool previousHints_;
};
/// In the scope plain reads are the session's own (`on`), or somebody's decisions again (not `on`).
class HintScope {
public:
  explicit HintScope(bool on = true);
  ~HintScope();
  HintScope(const HintScope &) = delete;

private:
  bool previous_;
};
/// The host, unless plain reads are its own.
SymbolicHost *symbolicReader();

/// Refs of numbers: sessions make theirs with sessionRef, so that nobody takes them for an operand of a graph; the
/// value of a size expression as a number has the ref of the expression.
inline const void *sessionRef(uint64_t id) { return reinterpret_cast<const void *>(uint64_t(1) << 63 | id); }
inline bool isSessionRef(const void *ref) { return reinterpret_cast<uint64_t>(ref) >> 63; }
inline uint64_t sessionRefId(const void *ref) { return reinterpret_cast<uint64_t>(ref) & ~(uint64_t(1) << 63); }
inline const void *exprRef(const DimExpr *e) {
  return e ? reinterpret_cast<const void *>(uint64_t(1) << 62 | reinterpret_cast<uint64_t>(e)) : nullptr;
}
/// Null if `ref` is no expression's.
inline const DimExpr *exprOfRef(const void *ref) {
  uint64_t bits = reinterpret_cast<uint64_t>(ref);
  return bits >> 62 == 1 ? reinterpret_cast<const DimExpr *>(bits & ~(uint64_t(1) << 62)) : nullptr;
}

} // namespace dlc
