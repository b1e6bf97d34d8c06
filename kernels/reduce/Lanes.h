// The accumulator structure of reductions along contiguous elements: 4 vectors of 8 lanes, element i in lane i % 32,
// combined as a tree. Generated kernels in strict mode use the same order.
#pragma once
#include "runtime/scalar/Arith.h"
#include "runtime/scalar/NativeBuilder.h"
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

// 8 lanes of 64 bits are two registers; everything here is inlined, so no vector crosses a call.
#pragma clang diagnostic ignored "-Wpsabi"

// Code compiled for another instruction set must not be merged with this one by the linker: kernels/wide sets DLC_ISA.
#ifndef DLC_ISA
#define DLC_ISA baseline
#endif

namespace dlc::kernels {
inline namespace DLC_ISA {

/// Signed overflow must wrap, so integer arithmetic is done on the unsigned type.
template <class T, bool Arithmetic> struct LaneType {
  using type = T;
};
template <> struct LaneType<int8_t, true> {
  using type = uint8_t;
};
template <> struct LaneType<int16_t, true> {
  using type = uint16_t;
};
template <> struct LaneType<int32_t, true> {
  using type = uint32_t;
};
template <> struct LaneType<int64_t, true> {
  using type = uint64_t;
};

struct SumCombine {
  static constexpr bool kArithmetic = true;
  template <class T> static constexpr T identity() { return T(0); }
  template <class V> static V apply(V a, V b) { return a + b; }
};
struct ProdCombine {
  static constexpr bool kArithmetic = true;
  template <class T> static constexpr T identity() { return T(1); }
  template <class V> static V apply(V a, V b) { return a * b; }
};
/// NaN wins; of equal values the second.
struct MaxCombine {
  static constexpr bool kArithmetic = false;
  template <class T> static constexpr T identity() {
    return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::lowest();
  }
  template <class V> static V apply(V a, V b) { return ((a > b) | (a != a)) ? a : b; }
};
struct MinCombine {
  static constexpr bool kArithmetic = false;
  template <class T> static constexpr T identity() {
    return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  }
  template <class V> static V apply(V a, V b) { return ((a < b) | (a != a)) ? a : b; }
};
/// Of truth values as bytes 0 and 1.
struct AllCombine : MinCombine {
  template <class T> static constexpr T identity() { return T(1); }
};

/// Partial results of one reduction; elements are given in runs of contiguous memory, each starting at lane 0.
template <class T, class C> class Lanes {
public:
  static constexpr int kLanes = 8, kAccumulators = 4, kStep = kLanes * kAccumulators;
  using E = typename LaneType<T, C::kArithmetic>::type;
  using Vec = E __attribute__((vector_size(kLanes * sizeof(E))));

  Lanes() { reset(); }
  void reset() {
    for (Vec &a : acc_)
      a = Vec{} + C::template identity<E>();
  }
  /// `map` is applied to vectors and must also take scalars.
  template <class F> void add(const T *x, int64_t n, F map) {
    Vec a0 = acc_[0], a1 = acc_[1], a2 = acc_[2], a3 = acc_[3];
    int64_t i = 0;
    for (; i + kStep <= n; i += kStep) {
      a0 = C::apply(a0, map(load(x + i)));
      a1 = C::apply(a1, map(load(x + i + kLanes)));
      a2 = C::apply(a2, map(load(x + i + 2 * kLanes)));
      a3 = C::apply(a3, map(load(x + i + 3 * kLanes)));
    }
    acc_[0] = a0, acc_[1] = a1, acc_[2] = a2, acc_[3] = a3;
    for (int k = 0; i < n; ++k) {
      int64_t count = n - i < kLanes ? n - i : kLanes;
      if (count == kLanes)
        acc_[k] = C::apply(acc_[k], map(load(x + i)));
      else
        for (int64_t lane = 0; lane < count; ++lane)
          acc_[k][lane] = C::apply(E(acc_[k][lane]), map(E(x[i + lane])));
      i += count;
    }
  }
  void add(const T *x, int64_t n) {
    add(x, n, [](auto v) { return v; });
  }
  T result() const {
    Vec v = C::apply(C::apply(acc_[0], acc_[1]), C::apply(acc_[2], acc_[3]));
    E t[kLanes];
    std::memcpy(t, &v, sizeof t);
    for (int half = kLanes / 2; half; half /= 2)
      for (int i = 0; i < half; ++i)
        t[i] = C::apply(t[i], t[i + half]);
    return static_cast<T>(t[0]);
  }

private:
  static Vec load(const T *p) {
    Vec v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  Vec acc_[kAccumulators];
};

} // namespace DLC_ISA
} // namespace dlc::kernels
