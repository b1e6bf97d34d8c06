// The texts of the device helpers. They are inline rather than static: not every program uses all of a group, and
// unused static functions are warnings.
#include "compiler/cuda/CudaPrelude.h"

namespace dlc::compiler {

static const char *textOf(CudaHelper helper) {
  switch (helper) {
  case CudaHelper::Raise:
    return R"(// The error slot keeps the largest code.
__device__ __forceinline__ void dlc_raise(long long *err, bool condition, long long code) {
  if (condition)
    atomicMax(err, code);
}
)";
  case CudaHelper::IntPow:
    return R"(__device__ inline long long dlc_ipow(long long base, long long exponent) {
  if (exponent < 0) {
    if (base == 1)
      return 1;
    return base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  }
  unsigned long long result = 1, factor = (unsigned long long)base;
  for (unsigned long long e = (unsigned long long)exponent; e; e >>= 1, factor *= factor)
    if (e & 1)
      result *= factor;
  return (long long)result;
}
)";
  case CudaHelper::Half:
    return R"(__device__ __forceinline__ float dlc_from_f16(unsigned short bits) {
#ifdef DLC_HOST_SHIM
  return dlc_shim_from_f16(bits);
#else
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
#endif
}
__device__ __forceinline__ unsigned short dlc_to_f16(float x) {
#ifdef DLC_HOST_SHIM
  return dlc_shim_to_f16(x);
#else
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
#endif
}
__device__ __forceinline__ float dlc_round_f16(float x) { return dlc_from_f16(dlc_to_f16(x)); }
)";
  case CudaHelper::BFloat:
    return R"(__device__ __forceinline__ float dlc_from_bf16(unsigned short bits) {
  return __int_as_float((int)((unsigned int)bits << 16));
}
__device__ __forceinline__ unsigned short dlc_to_bf16(float x) {
  const unsigned int bits = (unsigned int)__float_as_int(x);
  const unsigned int rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (unsigned short)(x != x ? ((bits >> 16) & 0x8000u) | 0x7fc0u : rounded);
}
__device__ __forceinline__ float dlc_round_bf16(float x) { return dlc_from_bf16(dlc_to_bf16(x)); }
)";
  case CudaHelper::SafeDivide:
    return R"(// Division and remainder of ints; a divisor of 0 counts as 1, and by -1 the result wraps.
template <class T> __device__ __forceinline__ T dlc_int_div(T x, T y) {
  return y == 0 ? x : y == (T)-1 && (T)-1 < 0 ? (T)(0ull - (unsigned long long)x) : (T)(x / y);
}
template <class T> __device__ __forceinline__ T dlc_int_rem(T x, T y) {
  return y == 0 || (y == (T)-1 && (T)-1 < 0) ? (T)0 : (T)(x % y);
}
)";
  case CudaHelper::FloorIndex:
    return R"(// Index arithmetic of affine maps for numerators that may be negative; y > 0.
template <class T> __device__ __forceinline__ T dlc_floor_div(T x, T y) {
  return x >= 0 ? x / y : -((y - 1 - x) / y);
}
template <class T> __device__ __forceinline__ T dlc_floor_mod(T x, T y) {
  return x - dlc_floor_div(x, y) * y;
}
)";
  case CudaHelper::IndexDivide:
    return R"(// Quotient and remainder of indices, which are not negative; y > 0.
__device__ __forceinline__ long long dlc_index_div(long long x, long long y) {
  return ((x | y) >> 31) == 0 ? (long long)((unsigned int)x / (unsigned int)y) : x / y;
}
__device__ __forceinline__ long long dlc_index_mod(long long x, long long y) {
  return ((x | y) >> 31) == 0 ? (long long)((unsigned int)x % (unsigned int)y) : x % y;
}
)";
  case CudaHelper::Combine:
    return R"(// Combines of reductions. NaN wins min and max.
struct dlc_add {
  template <class T> static __device__ __forceinline__ T join(T x, T y) { return x + y; }
  static __device__ __forceinline__ int join(int x, int y) { return (int)((unsigned int)x + (unsigned int)y); }
  static __device__ __forceinline__ long long join(long long x, long long y) {
    return (long long)((unsigned long long)x + (unsigned long long)y);
  }
};
struct dlc_mul {
  template <class T> static __device__ __forceinline__ T join(T x, T y) { return x * y; }
  static __device__ __forceinline__ int join(int x, int y) { return (int)((unsigned int)x * (unsigned int)y); }
  static __device__ __forceinline__ long long join(long long x, long long y) {
    return (long long)((unsigned long long)x * (unsigned long long)y);
  }
};
struct dlc_min {
  template <class T> static __device__ __forceinline__ T join(T x, T y) { return x < y || x != x ? x : y; }
};
struct dlc_max {
  template <class T> static __device__ __forceinline__ T join(T x, T y) { return x > y || x != x ? x : y; }
};
struct dlc_and {
  template <class T> static __device__ __forceinline__ T join(T x, T y) { return (T)(x & y); }
};
struct dlc_or {
  template <class T> static __device__ __forceinline__ T join(T x, T y) { return (T)(x | y); }
};
)";
  case CudaHelper::Pair:
    return R"(// Value and position for argmin and argmax: the first of equal values, and of NaNs, which win.
template <class T> struct dlc_pair {
  T value;
  long long index;
};
struct dlc_argmax {
  template <class T> static __device__ __forceinline__ dlc_pair<T> join(dlc_pair<T> x, dlc_pair<T> y) {
    const bool x_nan = x.value != x.value, y_nan = y.value != y.value;
    const bool tie = x.value == y.value || (x_nan && y_nan);
    const bool x_first = tie ? x.index < y.index : x_nan || (!y_nan && x.value > y.value);
    return x_first ? x : y;
  }
};
struct dlc_argmin {
  template <class T> static __device__ __forceinline__ dlc_pair<T> join(dlc_pair<T> x, dlc_pair<T> y) {
    const bool x_nan = x.value != x.value, y_nan = y.value != y.value;
    const bool tie = x.value == y.value || (x_nan && y_nan);
    const bool x_first = tie ? x.index < y.index : x_nan || (!y_nan && x.value < y.value);
    return x_first ? x : y;
  }
};
)";
  case CudaHelper::Shuffle:
    return R"(// The value of the lane whose number differs by `mask`.
template <class T> struct dlc_shuffle {
  static __device__ __forceinline__ T of(T x, int mask) {
    return sizeof(T) < 4 ? (T)__shfl_xor_sync(0xffffffffu, (int)x, mask) : __shfl_xor_sync(0xffffffffu, x, mask);
  }
};
template <> struct dlc_shuffle<bool> {
  static __device__ __forceinline__ bool of(bool x, int mask) {
    return __shfl_xor_sync(0xffffffffu, (int)x, mask) != 0;
  }
};
)";
  case CudaHelper::RowReduce:
    return R"(// Joins x over the kTeam lanes of threadIdx.x; every lane gets the result.
template <class Op, int kTeam, class T> __device__ __forceinline__ T dlc_row_reduce(T x) {
  for (int mask = (kTeam < 32 ? kTeam : 32) / 2; mask > 0; mask /= 2)
    x = Op::join(x, dlc_shuffle<T>::of(x, mask));
  if (kTeam > 32) {
    __shared__ T partial[kTeam > 32 ? kTeam / 32 : 1];
    if (threadIdx.x % 32 == 0)
      partial[threadIdx.x / 32] = x;
    __syncthreads();
    x = partial[0];
    for (int i = 1; i < kTeam / 32; ++i)
      x = Op::join(x, partial[i]);
    __syncthreads();
  }
  return x;
}
)";
  case CudaHelper::ColumnReduce:
    return R"(// Joins x over the kTeam lanes of threadIdx.y for each of kUnits values of threadIdx.x; every lane gets the result.
template <class Op, int kTeam, int kUnits, class T> __device__ __forceinline__ T dlc_column_reduce(T x) {
  __shared__ T partial[kTeam][kUnits];
  partial[threadIdx.y][threadIdx.x] = x;
  __syncthreads();
  x = partial[0][threadIdx.x];
  for (int i = 1; i < kTeam; ++i)
    x = Op::join(x, partial[i][threadIdx.x]);
  __syncthreads();
  return x;
}
)";
  }
  return "";
}

// Only with Shuffle: pairs are shuffled part by part.
static const char *kPairShuffle = R"(template <class T> struct dlc_shuffle<dlc_pair<T>> {
  static __device__ __forceinline__ dlc_pair<T> of(dlc_pair<T> x, int mask) {
    return {dlc_shuffle<T>::of(x.value, mask), __shfl_xor_sync(0xffffffffu, x.index, mask)};
  }
};
)";

std::string cudaPrelude(std::set<CudaHelper> used) {
  if (used.count(CudaHelper::RowReduce))
    used.insert(CudaHelper::Shuffle);
  std::string out;
  for (CudaHelper helper : used) {
    out += std::string(textOf(helper)) + "\n";
    if (helper == CudaHelper::Shuffle && used.count(CudaHelper::Pair))
      out += std::string(kPairShuffle) + "\n";
  }
  return out;
}

} // namespace dlc::compiler
