// Strided copies between any two dtypes: the tile loads and stores of every eager kernel.
#pragma once
#include "runtime/core/DType.h"
#include <cstdint>

namespace dlc::kernels {

/// Copies `n` elements; strides in bytes. Equal dtypes keep the bits. Float to int as runtime/scalar/Cast.h says.
using ConvertFn = void (*)(const char *src, int64_t srcStride, char *dst, int64_t dstStride, int64_t n);

ConvertFn convertFn(DType from, DType to);

/// The type arithmetic is done in: f16 and bf16 compute in f32, the others in themselves.
constexpr DType computeType(DType t) { return t == DType::F16 || t == DType::BF16 ? DType::F32 : t; }

} // namespace dlc::kernels
