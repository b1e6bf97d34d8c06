// The dtype x dtype table of strided conversions. Each entry has the cases that vectorise: both sides contiguous,
// a repeated source, a strided source into a contiguous destination.
#include "kernels/common/Convert.h"
#include "runtime/scalar/Cast.h"
#include "runtime/scalar/NativeBuilder.h"
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

namespace dlc::kernels {
namespace {

/// The C++ type of dtype number I.
template <size_t I> struct TypeAt;
#define DLC_X(name, type, py, cat)                                                                                     \
  template <> struct TypeAt<static_cast<size_t>(DType::name)> {                                                        \
    using T = type;                                                                                                    \
  };
DLC_FOR_EACH_DTYPE(DLC_X)
#undef DLC_X

template <class T> constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class T> auto widen(T v) {
  if constexpr (kIsHalf<T>)
    return static_cast<float>(v);
  else
    return v;
}

template <class From, class To> To convertValue(From v) {
  scalar::NativeBuilder b;
  if constexpr (std::is_same_v<From, To>)
    return v;
  else if constexpr (kIsHalf<To>)
    return To(scalar::castTo<scalar::Kind::F32>(b, widen(v)));
  else
    return scalar::castTo<scalar::kKindOf<To>>(b, widen(v));
}

template <class From, class To> void convert(const char *src, int64_t ss, char *dst, int64_t ds, int64_t n) {
  constexpr int64_t kFrom = sizeof(From), kTo = sizeof(To);
  auto *d = reinterpret_cast<To *>(dst);
  if (ds == kTo && ss == kFrom) {
    auto *s = reinterpret_cast<const From *>(src);
    if constexpr (std::is_same_v<From, To>)
      std::memcpy(d, s, n * sizeof(From));
    else
      for (int64_t i = 0; i < n; ++i)
        d[i] = convertValue<From, To>(s[i]);
    return;
  }
  if (ss == 0) {
    if (n <= 0)
      return;
    To v = convertValue<From, To>(*reinterpret_cast<const From *>(src));
    if (ds == kTo)
      for (int64_t i = 0; i < n; ++i)
        d[i] = v;
    else
      for (int64_t i = 0; i < n; ++i)
        *reinterpret_cast<To *>(dst + i * ds) = v;
    return;
  }
  if (ds == kTo)
    for (int64_t i = 0; i < n; ++i)
      d[i] = convertValue<From, To>(*reinterpret_cast<const From *>(src + i * ss));
  else
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<To *>(dst + i * ds) = convertValue<From, To>(*reinterpret_cast<const From *>(src + i * ss));
}

/// Equal dtypes of one size share a copy of bits.
template <size_t Bytes> struct Bits;
template <> struct Bits<1> {
  using T = uint8_t;
};
template <> struct Bits<2> {
  using T = int16_t;
};
template <> struct Bits<4> {
  using T = int32_t;
};
template <> struct Bits<8> {
  using T = int64_t;
};

template <size_t From, size_t To> constexpr ConvertFn entry() {
  using F = typename TypeAt<From>::T;
  using T = typename TypeAt<To>::T;
  if constexpr (From == To) {
    using B = typename Bits<sizeof(F)>::T;
    return convert<B, B>;
  } else {
    return convert<F, T>;
  }
}

template <size_t... I> constexpr std::array<ConvertFn, sizeof...(I)> table(std::index_sequence<I...>) {
  return {entry<I / kNumDTypes, I % kNumDTypes>()...};
}
constexpr auto kTable = table(std::make_index_sequence<kNumDTypes * kNumDTypes>());

} // namespace

ConvertFn convertFn(DType from, DType to) { return kTable[static_cast<int>(from) * kNumDTypes + static_cast<int>(to)]; }

} // namespace dlc::kernels
