// Concolic sizes: a number that always has a concrete value and may also carry an expression over symbols.
// Meta functions are written over Dim once and serve eager checks, tracing and type inference in the IR.
#pragma once
#include "runtime/core/Error.h"
#include "runtime/core/Span.h"
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace dlc {

struct DimAtom;

/// A product of atoms with an integer coefficient.
struct DimTerm {
  int64_t coef;
  std::vector<const DimAtom *> factors; // sorted by id; empty for the constant term
};

/// An interned polynomial over symbols, floor divisions and remainders in canonical form: two equal expressions
/// are one object, so equality is pointer equality. Never freed (graphs share them).
struct DimExpr {
  std::vector<DimTerm> terms; // sorted, no zero coefficients, at least one with factors
  std::string text;           // canonical printed form, "s0*s1 + 2"
};

/// A symbol, or a floor division or remainder that does not simplify.
struct DimAtom {
  enum class Kind : uint8_t { Symbol, FloorDiv, Mod } kind;
  uint32_t id;     // order of creation, the canonical order
  uint32_t symbol; // Symbol
  struct Operand { // FloorDiv, Mod: lhs op rhs
    int64_t value; // used if expr is null
    const DimExpr *expr;
  } lhs, rhs;
};

/// A size, stride, offset or index.
class Dim {
public:
  constexpr Dim() = default;
  constexpr Dim(int64_t v) : value_(v) {}
  constexpr Dim(int v) : value_(v) {}
  constexpr Dim(size_t v) : value_(static_cast<int64_t>(v)) {}
  constexpr Dim(int64_t hint, const DimExpr *expr) : value_(hint), expr_(expr) {}
  /// The symbol s<k>, whose value in this recording is `hint`.
  static Dim symbol(uint32_t k, int64_t hint);

  /// The concrete value (the hint of a symbolic dim). Reading it records nothing: decisions go through comparisons.
  constexpr int64_t value() const { return value_; }
  /// Null for a constant.
  constexpr const DimExpr *expr() const { return expr_; }
  constexpr bool isConst() const { return expr_ == nullptr; }
  /// The same expression (no fact is recorded).
  constexpr bool same(const Dim &o) const { return expr_ == o.expr_ && (expr_ || value_ == o.value_); }
  /// Turns a decision on the exact number into the fact `expr == value` and returns it.
  int64_t concretize() const;

  friend Dim operator+(const Dim &a, const Dim &b) {
    return !a.expr_ && !b.expr_ ? Dim(a.value_ + b.value_) : addSlow(a, b, 1);
  }
  friend Dim operator-(const Dim &a, const Dim &b) {
    return !a.expr_ && !b.expr_ ? Dim(a.value_ - b.value_) : addSlow(a, b, -1);
  }
  friend Dim operator*(const Dim &a, const Dim &b) {
    return !a.expr_ && !b.expr_ ? Dim(a.value_ * b.value_) : mulSlow(a, b);
  }
  Dim operator-() const { return Dim(0) - *this; }
  Dim &operator+=(const Dim &o) { return *this = *this + o; }
  Dim &operator-=(const Dim &o) { return *this = *this - o; }
  Dim &operator*=(const Dim &o) { return *this = *this * o; }

  // Comparisons answer from the concrete value and record a fact when an expression takes part.
  friend bool operator==(const Dim &a, const Dim &b) {
    return !a.expr_ && !b.expr_ ? a.value_ == b.value_ : equalSlow(a, b);
  }
  friend bool operator!=(const Dim &a, const Dim &b) { return !(a == b); }
  friend bool operator<(const Dim &a, const Dim &b) {
    return !a.expr_ && !b.expr_ ? a.value_ < b.value_ : lessSlow(a, b);
  }
  friend bool operator>(const Dim &a, const Dim &b) { return b < a; }
  friend bool operator<=(const Dim &a, const Dim &b) { return !(b < a); }
  friend bool operator>=(const Dim &a, const Dim &b) { return !(a < b); }

private:
  static Dim addSlow(const Dim &a, const Dim &b, int64_t sign);
  static Dim mulSlow(const Dim &a, const Dim &b);
  static bool equalSlow(const Dim &a, const Dim &b);
  static bool lessSlow(const Dim &a, const Dim &b);

  int64_t value_ = 0;
  const DimExpr *expr_ = nullptr;
};

/// Python's floor division and remainder; the divisor must not be 0.
Dim floorDiv(const Dim &a, const Dim &b);
Dim floorMod(const Dim &a, const Dim &b);
/// Resolved by a recorded comparison.
inline Dim maxDim(const Dim &a, const Dim &b) { return a < b ? b : a; }
inline Dim minDim(const Dim &a, const Dim &b) { return b < a ? b : a; }

using Dims = SmallVec<Dim>;

/// Something a recording took for granted about its symbols: `expr` compared with 0.
struct Fact {
  enum class Kind : uint8_t { EqZero, NeZero, LtZero, GeZero } kind;
  const DimExpr *expr;
  friend bool operator==(const Fact &a, const Fact &b) { return a.kind == b.kind && a.expr == b.expr; }
};

/// Collects the facts of this thread while in scope. Without one, facts are dropped.
class FactSink {
public:
  FactSink();
  ~FactSink();
  FactSink(const FactSink &) = delete;
  std::vector<Fact> take() { return std::move(facts_); }
  void add(Fact f);

private:
  std::vector<Fact> facts_;
  FactSink *previous_;
};

/// The value of `expr` when symbol k is `symbols[k]`. Throws OverflowError when it leaves 64 bits.
int64_t evaluate(const DimExpr *expr, Ints symbols);
inline int64_t evaluate(const Dim &d, Ints symbols) { return d.isConst() ? d.value() : evaluate(d.expr(), symbols); }
bool holds(const Fact &f, Ints symbols);
std::string str(const Fact &f);

inline std::ostream &operator<<(std::ostream &os, const Dim &d) {
  return d.isConst() ? os << d.value() : os << d.expr()->text;
}

} // namespace dlc
