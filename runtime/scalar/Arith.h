// Arithmetic, comparison, logic, bits and rounding primitives for every kind. Semantics are
// PyTorch's; where it leaves a choice, the comment says which one all builders take.
#ifndef DLC_RUNTIME_SCALAR_ARITH_H
#define DLC_RUNTIME_SCALAR_ARITH_H

#include "runtime/scalar/Builder.h"

#include <limits>

namespace dlc::scalar {

/// x != 0 as Bool; NaN is true.
template <class B, class V> inline auto truth_(B &b, V x) {
  return byClass(
      b, x, [&](auto v) { return b.cmp(Cmp::Ne, v, b.like(v, 0)); },
      [&](auto v) { return b.cmp(Cmp::Ne, v, b.likeInt(v, 0)); }, [&](auto v) { return v; });
}

/// Bool negation.
template <class B, class V> inline V notBool(B &b, V x) { return b.bitXor(x, b.likeInt(x, 1)); }

// Comparisons: Bool results; on Bool false < true.
template <class B, class V> inline auto eq_(B &b, V x, V y) { return b.cmp(Cmp::Eq, x, y); }
template <class B, class V> inline auto ne_(B &b, V x, V y) { return b.cmp(Cmp::Ne, x, y); }
template <class B, class V> inline auto lt_(B &b, V x, V y) { return b.cmp(Cmp::Lt, x, y); }
template <class B, class V> inline auto le_(B &b, V x, V y) { return b.cmp(Cmp::Le, x, y); }
template <class B, class V> inline auto gt_(B &b, V x, V y) { return b.cmp(Cmp::Gt, x, y); }
template <class B, class V> inline auto ge_(B &b, V x, V y) { return b.cmp(Cmp::Ge, x, y); }

/// Sum; ints wrap, Bool is `or`.
template <class B, class V> inline V add_(B &b, V x, V y) {
  auto sum = [&](auto v) { return b.add(v, y); };
  return byClass(b, x, sum, sum, [&](auto v) { return b.bitOr(v, y); });
}
/// Difference; ints wrap, Bool is `xor`.
template <class B, class V> inline V sub_(B &b, V x, V y) {
  auto difference = [&](auto v) { return b.sub(v, y); };
  return byClass(b, x, difference, difference, [&](auto v) { return b.bitXor(v, y); });
}
/// Product; ints wrap, Bool is `and`.
template <class B, class V> inline V mul_(B &b, V x, V y) {
  auto product = [&](auto v) { return b.mul(v, y); };
  return byClass(b, x, product, product, [&](auto v) { return b.bitAnd(v, y); });
}
/// True division; only for float kinds (promotion has made ints floats).
template <class B, class V> inline V div_(B &b, V x, V y) { return b.div(x, y); }
/// x * y + z with one rounding; float kinds.
template <class B, class V> inline V fma_(B &b, V x, V y, V z) { return b.fma(x, y, z); }

/// -x; ints wrap.
template <class B, class V> inline V neg_(B &b, V x) {
  return byClass(
      b, x, [&](auto v) { return b.neg(v); }, [&](auto v) { return b.sub(b.likeInt(v, 0), v); },
      [&](auto v) { return v; });
}

/// |x|; the most negative int stays itself.
template <class B, class V> inline V abs_(B &b, V x) {
  return byClass(
      b, x, [&](auto v) { return b.absf(v); },
      [&](auto v) {
        auto zero = b.likeInt(v, 0);
        return b.select(b.cmp(Cmp::Lt, v, zero), b.sub(zero, v), v);
      },
      [&](auto v) { return v; });
}

/// -1, 0 or 1; NaN and -0 give 0.
template <class B, class V> inline V sign_(B &b, V x) {
  auto of = [&](auto v) {
    auto zero = constant(b, v, 0), one = constant(b, v, 1);
    auto negative = b.select(b.cmp(Cmp::Lt, v, zero), b.sub(zero, one), zero);
    return b.select(b.cmp(Cmp::Gt, v, zero), one, negative);
  };
  return byClass(b, x, of, of, [&](auto v) { return v; });
}

/// The larger operand; NaN if either is; of two equal ones (also -0 and 0) the second.
template <class B, class V> inline V max_(B &b, V x, V y) {
  return byClass(
      b, x,
      [&](auto v) {
        auto first = b.bitOr(b.cmp(Cmp::Gt, v, y), b.cmp(Cmp::Ne, v, v));
        return b.select(first, v, y);
      },
      [&](auto v) { return b.select(b.cmp(Cmp::Gt, v, y), v, y); }, [&](auto v) { return b.bitOr(v, y); });
}

/// The smaller operand; NaN if either is; of two equal ones (also -0 and 0) the second.
template <class B, class V> inline V min_(B &b, V x, V y) {
  return byClass(
      b, x,
      [&](auto v) {
        auto first = b.bitOr(b.cmp(Cmp::Lt, v, y), b.cmp(Cmp::Ne, v, v));
        return b.select(first, v, y);
      },
      [&](auto v) { return b.select(b.cmp(Cmp::Lt, v, y), v, y); }, [&](auto v) { return b.bitAnd(v, y); });
}

/// The larger operand, ignoring a NaN on one side.
template <class B, class V> inline V fmax_(B &b, V x, V y) {
  return b.select(b.bitOr(b.cmp(Cmp::Gt, x, y), b.cmp(Cmp::Ne, y, y)), x, y);
}
/// The smaller operand, ignoring a NaN on one side.
template <class B, class V> inline V fmin_(B &b, V x, V y) {
  return b.select(b.bitOr(b.cmp(Cmp::Lt, x, y), b.cmp(Cmp::Ne, y, y)), x, y);
}

namespace detail {
// An int divisor that can be divided by: 0 (reported) and -1 (handled apart, since INT_MIN / -1
// traps) become 1.
template <class B, class V> inline V safeDivisor(B &b, V y, bool isSignedKind) {
  auto zero = b.cmp(Cmp::Eq, y, b.likeInt(y, 0));
  b.raise(zero, Fault::DivisionByZero);
  V one = b.likeInt(y, 1);
  V safe = b.select(zero, one, y);
  return isSignedKind ? b.select(b.cmp(Cmp::Eq, y, b.likeInt(y, -1)), one, safe) : safe;
}

// Quotient truncated towards zero; -x for the divisor -1, wrapping.
template <class B, class V> inline V intQuotient(B &b, V x, V y) {
  bool withSign = isSigned(b.kind(x));
  V q = b.divInt(x, safeDivisor(b, y, withSign));
  if (!withSign)
    return q;
  return b.select(b.cmp(Cmp::Eq, y, b.likeInt(y, -1)), b.sub(b.likeInt(x, 0), x), q);
}

// Remainder with the sign of x; the safe divisor 1 gives 0 for -1, as it should.
template <class B, class V> inline V intRemainder(B &b, V x, V y) {
  return b.remInt(x, safeDivisor(b, y, isSigned(b.kind(x))));
}

// Whether remainder and divisor are non-zero and of opposite sign, so that floor differs from
// truncation.
template <class B, class V> inline auto signsDiffer(B &b, V rem, V y) {
  V zero = constant(b, rem, 0);
  auto unlike = b.bitXor(b.cmp(Cmp::Lt, rem, zero), b.cmp(Cmp::Lt, y, zero));
  return b.bitAnd(b.cmp(Cmp::Ne, rem, zero), unlike);
}
} // namespace detail

/// Remainder with the sign of x; an int divisor of 0 raises DivisionByZero.
template <class B, class V> inline V fmod_(B &b, V x, V y) {
  auto ofInt = [&](auto v) { return detail::intRemainder(b, v, y); };
  return byClass(b, x, [&](auto v) { return b.libm(Libm::Fmod, v, y); }, ofInt, [&](auto v) { return v; });
}

/// Remainder with the sign of y, as Python's %; an int divisor of 0 raises DivisionByZero.
template <class B, class V> inline V remainder_(B &b, V x, V y) {
  auto adjusted = [&](auto rem) { return b.select(detail::signsDiffer(b, rem, y), b.add(rem, y), rem); };
  return byClass(
      b, x, [&](auto v) { return adjusted(b.libm(Libm::Fmod, v, y)); },
      [&](auto v) { return adjusted(detail::intRemainder(b, v, y)); }, [&](auto v) { return v; });
}

/// Quotient rounded towards zero; an int divisor of 0 raises DivisionByZero.
template <class B, class V> inline V trunc_div_(B &b, V x, V y) {
  return byClass(
      b, x, [&](auto v) { return b.trunc(b.div(v, y)); }, [&](auto v) { return detail::intQuotient(b, v, y); },
      [&](auto v) { return v; });
}

namespace detail {
// Python's float //: exact where (x - fmod(x, y)) / y is, so 6 // 0.1 is 59; the sign of a zero is
// that of x / y.
template <class B, class V> inline V floatFloorDiv(B &b, V x, V y) {
  V zero = b.like(x, 0), one = b.like(x, 1);
  V rem = b.libm(Libm::Fmod, x, y);
  V q = b.div(b.sub(x, rem), y);
  q = b.select(signsDiffer(b, rem, y), b.sub(q, one), q);
  V whole = b.floor(q);
  V up = b.add(whole, one);
  whole = b.select(b.cmp(Cmp::Gt, b.sub(q, whole), b.like(x, 0.5)), up, whole);
  V ratio = b.div(x, y);
  V result = b.select(b.cmp(Cmp::Ne, q, zero), whole, b.copysign(zero, ratio));
  return b.select(b.cmp(Cmp::Eq, y, zero), ratio, result);
}

// Floor of an int quotient: one less than truncation where the remainder's sign differs from the
// divisor's.
template <class B, class V> inline V intFloorDiv(B &b, V x, V y) {
  V q = intQuotient(b, x, y);
  if (!isSigned(b.kind(x)))
    return q;
  V one = b.likeInt(x, 1), zero = b.likeInt(x, 0);
  auto special = b.bitOr(b.cmp(Cmp::Eq, y, zero), b.cmp(Cmp::Eq, y, b.likeInt(y, -1)));
  V rem = b.sub(x, b.mul(q, y));
  auto lower = b.bitAnd(signsDiffer(b, rem, y), notBool(b, special));
  return b.select(lower, b.sub(q, one), q);
}
} // namespace detail

/// Quotient rounded down, as Python's // per element; an int divisor of 0 raises DivisionByZero.
template <class B, class V> inline V floor_div_(B &b, V x, V y) {
  return byClass(
      b, x, [&](auto v) { return detail::floatFloorDiv(b, v, y); },
      [&](auto v) { return detail::intFloorDiv(b, v, y); }, [&](auto v) { return v; });
}

/// x * x.
template <class B, class V> inline V square_(B &b, V x) { return mul_(b, x, x); }
/// 1 / x; float kinds.
template <class B, class V> inline V reciprocal_(B &b, V x) { return b.div(b.like(x, 1), x); }
/// Square root, correctly rounded; float kinds.
template <class B, class V> inline V sqrt_(B &b, V x) { return b.sqrt(x); }
/// 1 / sqrt(x); two roundings; float kinds.
template <class B, class V> inline V rsqrt_(B &b, V x) { return b.div(b.like(x, 1), b.sqrt(x)); }
/// The magnitude of x with the sign of y; float kinds.
template <class B, class V> inline V copysign_(B &b, V x, V y) { return b.copysign(x, y); }
/// x + w * (y - x), computed from the nearer end as PyTorch does; float kinds.
template <class B, class V> inline V lerp_(B &b, V x, V y, V w) {
  V delta = b.sub(y, x);
  V fromX = b.add(x, b.mul(w, delta));
  V fromY = b.sub(y, b.mul(delta, b.sub(b.like(w, 1), w)));
  return b.select(b.cmp(Cmp::Lt, b.absf(w), b.like(w, 0.5)), fromX, fromY);
}

namespace detail {
template <class B, class V, class F> inline V onFloats(B &b, V x, F &&f) {
  auto same = [](auto v) { return v; };
  return byClass(b, x, f, same, same);
}
} // namespace detail

// Rounding; identity on ints.
template <class B, class V> inline V floor_(B &b, V x) {
  return detail::onFloats(b, x, [&](auto v) { return b.floor(v); });
}
template <class B, class V> inline V ceil_(B &b, V x) {
  return detail::onFloats(b, x, [&](auto v) { return b.ceil(v); });
}
template <class B, class V> inline V trunc_(B &b, V x) {
  return detail::onFloats(b, x, [&](auto v) { return b.trunc(v); });
}
/// To the nearest whole number, ties to even.
template <class B, class V> inline V round_(B &b, V x) {
  return detail::onFloats(b, x, [&](auto v) { return b.roundeven(v); });
}
/// x - trunc(x); float kinds.
template <class B, class V> inline V frac_(B &b, V x) { return b.sub(x, b.trunc(x)); }

namespace detail {
// Bool constants in the shape of x. Not x == x: that is a warning in the printed text.
template <class B, class V> inline auto never(B &b, V x) { return b.cmp(Cmp::Eq, b.likeInt(x, 0), b.likeInt(x, 1)); }
template <class B, class V> inline auto always(B &b, V x) { return b.cmp(Cmp::Ne, b.likeInt(x, 0), b.likeInt(x, 1)); }
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
} // namespace detail

// Classification; Bool results, constant on ints.
template <class B, class V> inline auto isnan_(B &b, V x) {
  auto no = [&](auto v) { return detail::never(b, v); };
  return byClass(b, x, [&](auto v) { return b.cmp(Cmp::Ne, v, v); }, no, no);
}
template <class B, class V> inline auto isinf_(B &b, V x) {
  auto no = [&](auto v) { return detail::never(b, v); };
  return byClass(b, x, [&](auto v) { return b.cmp(Cmp::Eq, b.absf(v), b.like(v, detail::kInfinity)); }, no, no);
}
template <class B, class V> inline auto isfinite_(B &b, V x) {
  auto yes = [&](auto v) { return detail::always(b, v); };
  return byClass(b, x, [&](auto v) { return b.cmp(Cmp::Lt, b.absf(v), b.like(v, detail::kInfinity)); }, yes, yes);
}
/// Whether the sign bit is set; for ints x < 0.
template <class B, class V> inline auto signbit_(B &b, V x) {
  return byKind(
      b, x,
      [&](auto v) {
        auto i = b.bits(v);
        return b.cmp(Cmp::Lt, i, b.likeInt(i, 0));
      },
      [&](auto v) {
        auto i = b.bits(v);
        return b.cmp(Cmp::Lt, i, b.likeInt(i, 0));
      },
      [&](auto v) { return b.cmp(Cmp::Lt, v, b.likeInt(v, 0)); });
}

// Logic on truth values of any kind; Bool results.
template <class B, class V, class W> inline auto logical_and_(B &b, V x, W y) {
  return b.bitAnd(truth_(b, x), truth_(b, y));
}
template <class B, class V, class W> inline auto logical_or_(B &b, V x, W y) {
  return b.bitOr(truth_(b, x), truth_(b, y));
}
template <class B, class V, class W> inline auto logical_xor_(B &b, V x, W y) {
  return b.bitXor(truth_(b, x), truth_(b, y));
}
template <class B, class V> inline auto logical_not_(B &b, V x) { return notBool(b, truth_(b, x)); }

// Bits of ints and Bool.
template <class B, class V> inline V and_(B &b, V x, V y) { return b.bitAnd(x, y); }
template <class B, class V> inline V or_(B &b, V x, V y) { return b.bitOr(x, y); }
template <class B, class V> inline V xor_(B &b, V x, V y) { return b.bitXor(x, y); }
template <class B, class V> inline V not_(B &b, V x) {
  return b.bitXor(x, b.likeInt(x, b.kind(x) == Kind::Bool ? 1 : -1));
}

namespace detail {
template <class B, class V> inline auto validShift(B &b, V n, int width) {
  return b.bitAnd(b.cmp(Cmp::Ge, n, b.likeInt(n, 0)), b.cmp(Cmp::Lt, n, b.likeInt(n, width)));
}
} // namespace detail

/// x << n; 0 where n is negative or at least the width. Ints.
template <class B, class V> inline V shl_(B &b, V x, V n) {
  auto valid = detail::validShift(b, n, bitWidth(b.kind(x)));
  V zero = b.likeInt(x, 0);
  return b.select(valid, b.shl(x, b.select(valid, n, zero)), zero);
}
/// x >> n, keeping the sign; by the width minus 1 where n is out of range. Ints.
template <class B, class V> inline V shr_(B &b, V x, V n) {
  int width = bitWidth(b.kind(x));
  V most = b.likeInt(x, width - 1);
  V amount = b.select(detail::validShift(b, n, width), n, most);
  V shifted = b.shr(x, amount);
  if (isSigned(b.kind(x)))
    return shifted;
  return b.select(detail::validShift(b, n, width), shifted, b.likeInt(x, 0));
}

/// x where the condition is true (non-zero), else y.
template <class B, class C, class V> inline V select_(B &b, C condition, V x, V y) {
  return b.select(truth_(b, condition), x, y);
}

/// min_(max_(x, low), high): NaN in any operand gives NaN; high wins if low > high.
template <class B, class V> inline V clamp_(B &b, V x, V low, V high) { return min_(b, max_(b, x, low), high); }

} // namespace dlc::scalar

#endif // DLC_RUNTIME_SCALAR_ARITH_H
