// Element types: the one table of their names, sizes and categories.
#pragma once
#include "runtime/core/Error.h"
#include "runtime/core/Half.h"
#include <cstddef>
#include <cstdint>
#include <ostream>

namespace dlc {

/// Calls X(enumerator, C++ type, Python name, category) for every element type.
#define DLC_FOR_EACH_DTYPE(X)                                                                                          \
  X(Bool, bool, "bool", Bool)                                                                                          \
  X(U8, uint8_t, "uint8", Int)                                                                                         \
  X(I8, int8_t, "int8", Int)                                                                                           \
  X(I16, int16_t, "int16", Int)                                                                                        \
  X(I32, int32_t, "int32", Int)                                                                                        \
  X(I64, int64_t, "int64", Int)                                                                                        \
  X(F16, ::dlc::Half, "float16", Float)                                                                                \
  X(BF16, ::dlc::BFloat16, "bfloat16", Float)                                                                          \
  X(F32, float, "float32", Float)                                                                                      \
  X(F64, double, "float64", Float)

enum class DType : uint8_t {
#define DLC_X(name, type, py, cat) name,
  DLC_FOR_EACH_DTYPE(DLC_X)
#undef DLC_X
};
constexpr int kNumDTypes = 10;

/// bool < int < float, the order of type promotion.
enum class Category : uint8_t { Bool, Int, Float };

constexpr size_t itemSize(DType t) {
  constexpr size_t sizes[] = {
#define DLC_X(name, type, py, cat) sizeof(type),
      DLC_FOR_EACH_DTYPE(DLC_X)
#undef DLC_X
  };
  return sizes[static_cast<int>(t)];
}

constexpr Category categoryOf(DType t) {
  constexpr Category cats[] = {
#define DLC_X(name, type, py, cat) Category::cat,
      DLC_FOR_EACH_DTYPE(DLC_X)
#undef DLC_X
  };
  return cats[static_cast<int>(t)];
}

/// The Python name, "float32".
constexpr const char *nameOf(DType t) {
  constexpr const char *names[] = {
#define DLC_X(name, type, py, cat) py,
      DLC_FOR_EACH_DTYPE(DLC_X)
#undef DLC_X
  };
  return names[static_cast<int>(t)];
}

constexpr bool isFloat(DType t) { return categoryOf(t) == Category::Float; }
constexpr bool isIntegral(DType t) { return categoryOf(t) != Category::Float; }
constexpr bool isSigned(DType t) { return t != DType::Bool && t != DType::U8; }

template <class T> struct DTypeOf;
#define DLC_X(name, type, py, cat)                                                                                     \
  template <> struct DTypeOf<type> {                                                                                   \
    static constexpr DType value = DType::name;                                                                        \
  };
DLC_FOR_EACH_DTYPE(DLC_X)
#undef DLC_X
template <class T> constexpr DType dtypeOfType = DTypeOf<T>::value;

/// Calls `f(TypeTag<T>{})` with the C++ type of `t`.
template <class T> struct TypeTag {
  using type = T;
};
template <class F> decltype(auto) visitDType(DType t, F &&f) {
  switch (t) {
#define DLC_X(name, type, py, cat)                                                                                     \
  case DType::name:                                                                                                    \
    return f(TypeTag<type>{});
    DLC_FOR_EACH_DTYPE(DLC_X)
#undef DLC_X
  }
  __builtin_unreachable();
}

/// PyTorch's promotion lattice for two dtypes of dimensioned tensors.
DType promoteTypes(DType a, DType b);

/// The dtype that float results of integer inputs get (dlc.set_default_dtype).
DType defaultDType();
void setDefaultDType(DType t);

inline std::ostream &operator<<(std::ostream &os, DType t) { return os << nameOf(t); }

} // namespace dlc
