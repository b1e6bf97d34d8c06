// The types a scalar primitive computes in. f16 and bf16 are absent on purpose: the caller widens
// to f32 before an operation and rounds once after it.
#ifndef DLC_RUNTIME_SCALAR_KIND_H
#define DLC_RUNTIME_SCALAR_KIND_H

#include <cstdint>
#include <type_traits>

namespace dlc::scalar {

/// The compute type of a scalar value.
enum class Kind : uint8_t { Bool, I8, U8, I16, I32, I64, F32, F64 };

/// Returns whether `kind` is F32 or F64.
constexpr bool isFloat(Kind kind) { return kind == Kind::F32 || kind == Kind::F64; }

/// Returns whether `kind` is a number without fraction; Bool is not one.
constexpr bool isInt(Kind kind) { return kind != Kind::Bool && !isFloat(kind); }

/// Returns whether values of `kind` have a sign.
constexpr bool isSigned(Kind kind) { return kind != Kind::Bool && kind != Kind::U8; }

/// Returns the width of a value in bits; 1 for Bool.
constexpr int bitWidth(Kind kind) {
  switch (kind) {
  case Kind::Bool:
    return 1;
  case Kind::I8:
  case Kind::U8:
    return 8;
  case Kind::I16:
    return 16;
  case Kind::I32:
  case Kind::F32:
    return 32;
  case Kind::I64:
  case Kind::F64:
    return 64;
  }
  return 0;
}

/// Returns the C++ spelling of the type, which is also its CUDA spelling.
constexpr const char *cppName(Kind kind) {
  constexpr const char *kNames[] = {"bool", "signed char", "unsigned char", "short",
                                    "int",  "long long",   "float",         "double"};
  return kNames[static_cast<int>(kind)];
}

/// Returns the short name used in primitive names: "bool", "i8", ..., "f64".
constexpr const char *shortName(Kind kind) {
  constexpr const char *kNames[] = {"bool", "i8", "u8", "i16", "i32", "i64", "f32", "f64"};
  return kNames[static_cast<int>(kind)];
}

namespace detail {
template <class T> constexpr Kind kindOf() {
  if constexpr (std::is_same_v<T, bool>)
    return Kind::Bool;
  else if constexpr (std::is_same_v<T, float>)
    return Kind::F32;
  else if constexpr (std::is_same_v<T, double>)
    return Kind::F64;
  else {
    static_assert(std::is_integral_v<T>, "a scalar value is bool, an integer, float or double");
    if constexpr (sizeof(T) == 1)
      return std::is_signed_v<T> ? Kind::I8 : Kind::U8;
    else if constexpr (sizeof(T) == 2)
      return Kind::I16;
    else if constexpr (sizeof(T) == 4)
      return Kind::I32;
    else
      return Kind::I64;
  }
}
template <Kind K> struct TypeOf;
template <> struct TypeOf<Kind::Bool> {
  using type = bool;
};
template <> struct TypeOf<Kind::I8> {
  using type = int8_t;
};
template <> struct TypeOf<Kind::U8> {
  using type = uint8_t;
};
template <> struct TypeOf<Kind::I16> {
  using type = int16_t;
};
template <> struct TypeOf<Kind::I32> {
  using type = int32_t;
};
template <> struct TypeOf<Kind::I64> {
  using type = int64_t;
};
template <> struct TypeOf<Kind::F32> {
  using type = float;
};
template <> struct TypeOf<Kind::F64> {
  using type = double;
};
} // namespace detail

/// The Kind of a C++ type.
template <class T> inline constexpr Kind kKindOf = detail::kindOf<T>();

/// The C++ type of a Kind.
template <Kind K> using TypeOf = typename detail::TypeOf<K>::type;

} // namespace dlc::scalar

#endif // DLC_RUNTIME_SCALAR_KIND_H
