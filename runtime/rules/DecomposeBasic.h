// Rules of arithmetic, reduction, view, index and creation composites.
#pragma once
#include "runtime/rules/Rules.h"
#include <cmath>

namespace dlc::rules {

template <class V> V rsubRule(const RsubArgs<V> &a) {
  DLC_REQUIRE(dtypeOf(a.self) != DType::Bool && dtypeOf(a.other) != DType::Bool, NotImplemented,
              "rsub: not implemented for bool\nuse logical_xor(), or convert to an integer dtype first");
  return a.other - scaled(a.self, a.alpha);
}
template <class V> V addcmulRule(const AddcmulArgs<V> &a) {
  V product = a.tensor1 * a.tensor2;
  bool whole = isIntegral(dtypeOf(product)) && isIntegral(dtypeOf(a.self)) && !a.value.ref();
  return a.self + scaled(product, whole ? Number(a.value.toInt()) : a.value);
}
template <class V> V addcdivRule(const AddcdivArgs<V> &a) {
  DLC_REQUIRE(isFloat(dtypeOf(a.tensor1)) || isFloat(dtypeOf(a.tensor2)), Runtime, "addcdiv: `tensor1` is ",
              dtypeOf(a.tensor1), " and `tensor2` is ", dtypeOf(a.tensor2),
              ", but integers are not divided here\nconvert them with .float(), or use div() with a rounding_mode");
  return a.self + scaled(a.tensor1 / a.tensor2, a.value);
}
template <class V> V nanToNumRule(const NanToNumArgs<V> &a) {
  DType t = dtypeOf(a.self);
  if (!isFloat(t))
    return clone(a.self);
  const double largest = t == DType::F64   ? 1.7976931348623157e308
                         : t == DType::F32 ? 3.4028234663852886e38
                         : t == DType::F16 ? 65504.0
                                           : 3.3895313892515355e38;
  V finite = where(isnan(a.self), a.nan.value_or(0.0), a.self);
  finite = where(eq(a.self, INFINITY), a.posinf.value_or(largest), finite);
  return where(eq(a.self, -INFINITY), a.neginf.value_or(-largest), finite);
}

template <class V> std::array<V, 2> pickedAlong(const V &self, const V &indices, int64_t dim, bool keepdim) {
  if (rankOf(self) == 0)
    return {self, indices};
  V values = gather(self, dim, indices);
  return keepdim ? std::array<V, 2>{values, indices}
                 : std::array<V, 2>{squeeze(values, dimList(dim)), squeeze(indices, dimList(dim))};
}
/// argmax is not defined for bool, max is.
template <class V> V ordered(const V &v) { return metaOf(v).dtype == DType::Bool ? cast(v, DType::U8) : v; }
template <class V> std::array<V, 2> maxDimRule(const MaxDimArgs<V> &a) {
  return pickedAlong(a.self, argmax(ordered(a.self), a.dim, true), a.dim, a.keepdim);
}
template <class V> std::array<V, 2> minDimRule(const MinDimArgs<V> &a) {
  return pickedAlong(a.self, argmin(ordered(a.self), a.dim, true), a.dim, a.keepdim);
}
template <class V> V maxOtherRule(const MaxOtherArgs<V> &a) { return maximum(a.self, a.other); }
template <class V> V minOtherRule(const MinOtherArgs<V> &a) { return minimum(a.self, a.other); }
inline void requireElements(const char *op, const TensorMeta &m) {
  DLC_REQUIRE(m.numel() != 0, Runtime, op, ": `self` of sizes ", listStr(m.sizes),
              " is empty and has no extreme element\npass a tensor with elements");
}
template <class V> V maxAllRule(const MaxAllArgs<V> &a) {
  requireElements("max", metaOf(a.self));
  return amax(a.self);
}
template <class V> V minAllRule(const MinAllArgs<V> &a) {
  requireElements("min", metaOf(a.self));
  return amin(a.self);
}

/// {variance, mean}, both with the operand's rank if keepdim.
template <class V>
std::array<V, 2> varianceAndMean(const V &self, const std::optional<Ints> &dim, double correction, bool keepdim) {
  TensorMeta m = metaOf(self);
  DLC_REQUIRE(isFloat(m.dtype), NotImplemented, "var: `self` is ", describe(m),
              ", but a float dtype is needed\nconvert it with .float()");
  Sizes dims = reducedDims(m, dim);
  std::optional<Ints> over = dims.empty() ? std::optional<Ints>() : optionalDims(dims);
  V average = mean(self, over, true);
  V d = self - average;
  V squares = sum(d * d, over, keepdim);
  V n = V(Builder<V>::number(reducedCount(m, dim)));
  if (correction != 0)
    n = clamp_min(n - correction, 0);
  return {castTo(squares / n, m.dtype), keepdim || dims.empty() ? average : view(average, sizesOf(squares))};
}
template <class V> V varRule(const VarArgs<V> &a) { return varianceAndMean(a.self, a.dim, a.correction, a.keepdim)[0]; }
template <class V> V stdRule(const StdArgs<V> &a) {
  return sqrt(varianceAndMean(a.self, a.dim, a.correction, a.keepdim)[0]);
}
template <class V> std::array<V, 2> varMeanRule(const VarMeanArgs<V> &a) {
  return varianceAndMean(a.self, a.dim, a.correction, a.keepdim);
}
template <class V> V varUnbiasedRule(const VarUnbiasedArgs<V> &a) {
  return varianceAndMean(a.self, a.dim, a.unbiased ? 1 : 0, a.keepdim)[0];
}
template <class V> V stdUnbiasedRule(const StdUnbiasedArgs<V> &a) {
  return sqrt(varianceAndMean(a.self, a.dim, a.unbiased ? 1 : 0, a.keepdim)[0]);
}

template <class V> V logsumexpRule(const LogsumexpArgs<V> &a) {
  TensorMeta m = metaOf(a.self);
  Sizes dims = reducedDims(m, a.dim);
  V x = castTo(a.self, toFloatType(m.dtype));
  V top = amax(x, dims, true);
  V shift = where(isfinite(top), top, 0);
  V r = log(sum(exp(x - shift), optionalDims(dims), true)) + shift;
  if (a.keepdim)
    return r;
  Dims sizes;
  for (int64_t i = 0; i < m.dim(); ++i)
    if (std::find(dims.begin(), dims.end(), i) == dims.end())
      sizes.push_back(m.sizes[i]);
  return view(r, sizes);
}
template <class V> V normRule(const NormArgs<V> &a) {
  DLC_REQUIRE(isFloat(dtypeOf(a.self)), NotImplemented, "norm: `self` is ", dtypeOf(a.self),
              ", but the result needs a float dtype\nconvert with .float() first");
  if (a.p == 2)
    return sqrt(sum(a.self * a.self, a.dim, a.keepdim));
  if (a.p == 0)
    return sum(castTo(ne(a.self, 0), dtypeOf(a.self)), a.dim, a.keepdim);
  V size = abs(a.self);
  if (std::isinf(a.p))
    return a.p > 0 ? amax(size, a.dim.value_or(Ints()), a.keepdim) : amin(size, a.dim.value_or(Ints()), a.keepdim);
  return a.p == 1 ? sum(size, a.dim, a.keepdim) : pow(sum(pow(size, a.p), a.dim, a.keepdim), 1 / a.p);
}

template <class V> V reshapeRule(const ReshapeArgs<V> &a) {
  TensorMeta m = metaOf(a.self);
  Dims sizes = inferSizes("reshape", a.shape, m);
  return viewStrides(m, sizes) ? view(a.self, sizes) : view(clone(a.self, "contiguous_format"), sizes);
}
template <class V> V tRule(const TArgs<V> &a) {
  int64_t rank = rankOf(a.self);
  DLC_REQUIRE(rank <= 2, Runtime, "t: `self` has ", rank, " dimensions, more than 2\nuse transpose() or permute()");
  return rank < 2 ? a.self : transpose(a.self, 0, 1);
}
template <class V> V movedimRule(const MovedimArgs<V> &a) {
  TensorMeta m = metaOf(a.self);
  DLC_REQUIRE(a.source.size() == a.destination.size(), Runtime, "movedim: `source` ", listStr(a.source),
              " and `destination` ", listStr(a.destination), " differ in length\ngive one destination a dimension");
  Sizes order(m.dim(), -1);
  uint64_t from = 0;
  for (size_t i = 0; i < a.source.size(); ++i) {
    int64_t s = wrapDim("movedim", "source", a.source[i], m),
            d = wrapDim("movedim", "destination", a.destination[i], m);
    DLC_REQUIRE(order[d] < 0 && !(from >> s & 1), Runtime, "movedim: a dimension is named twice in ", listStr(a.source),
                " or ", listStr(a.destination), "\nname each once");
    order[d] = s;
    from |= uint64_t(1) << s;
  }
  int64_t next = 0;
  for (int64_t &o : order)
    if (o < 0) {
      while (from >> next & 1)
        ++next;
      o = next++;
    }
  return permute(a.self, order);
}
template <class V> V broadcastToRule(const BroadcastToArgs<V> &a) { return expand(a.self, a.size); }
template <class V> V expandAsRule(const ExpandAsArgs<V> &a) { return expand(a.self, sizesOf(a.other)); }
template <class V> V viewAsRule(const ViewAsArgs<V> &a) { return view(a.self, sizesOf(a.other)); }
template <class V> V narrowRule(const NarrowArgs<V> &a) {
  TensorMeta m = metaOf(a.self);
  DLC_REQUIRE(m.dim() > 0, Runtime, "narrow: `self` has no dimensions\na 0-d tensor can't be narrowed");
  int64_t d = wrapDim("narrow", "dim", a.dim, m);
  DLC_REQUIRE(a.length.value() >= 0, Runtime, "narrow: `length` is ", a.length, "\nuse at least 0");
  Dim start = a.start < 0 ? a.start + m.sizes[d] : a.start;
  DLC_REQUIRE(start >= 0 && start + a.length <= m.sizes[d], Runtime, "narrow: ", a.length, " elements from ", a.start,
              " leave dimension ", d, " of size ", m.sizes[d], "\nstay inside of it");
  return slice(a.self, d, start, start + a.length);
}
template <class V> V flattenRule(const FlattenArgs<V> &a) {
  TensorMeta m = metaOf(a.self);
  if (m.dim() == 0)
    return view(a.self, Dims(1, Dim(1))); // clang takes Dims{1} in a template for the count
  int64_t from = wrapDim("flatten", "start_dim", a.start_dim, m), to = wrapDim("flatten", "end_dim", a.end_dim, m);
  DLC_REQUIRE(from <= to, Runtime, "flatten: `start_dim` ", a.start_dim, " is after `end_dim` ", a.end_dim,
              "\nswap them");
  if (from == to)
    return a.self;
  Dims sizes(m.sizes.begin(), m.sizes.begin() + from);
  Dim n = 1;
  for (int64_t i = from; i <= to; ++i)
    n *= m.sizes[i];
  sizes.push_back(n);
  sizes.append(m.sizes.begin() + to + 1, m.sizes.end());
  return reshape(a.self, sizes);
}
template <class V> V unflattenRule(const UnflattenArgs<V> &a) {
  TensorMeta m = metaOf(a.self);
  int64_t d = wrapDim("unflatten", "dim", a.dim, m);
  TensorMeta part = TensorMeta::contiguous(m.dtype, Dims{m.dim() ? m.sizes[d] : Dim(1)});
  Dims sizes(m.sizes.begin(), m.sizes.begin() + d), split = inferSizes("unflatten", a.sizes, part);
  sizes.append(split.begin(), split.end());
  if (m.dim())
    sizes.append(m.sizes.begin() + d + 1, m.sizes.end());
  return view(a.self, sizes);
}
template <class V> V contiguousRule(const ContiguousArgs<V> &a) {
  TensorMeta m = metaOf(a.self);
  if (a.memory_format == "contiguous_format")
    return isContiguous(m) ? a.self : clone(a.self, a.memory_format);
  requireRank("contiguous", "self", m, 4);
  Dims want = channelsLastStrides(m.sizes);
  bool already = true;
  for (int i = 0; i < 4; ++i)
    already = already && (m.sizes[i].value() == 1 || m.strides[i].value() == want[i].value());
  return already ? a.self : clone(a.self, a.memory_format);
}
template <class V> V rollOne(const V &x, const Dim &shift, int64_t d) {
  Dims sizes = sizesOf(x);
  if (sizes.empty() || sizes[d] == 0)
    return clone(x, "preserve_format");
  Dim n = sizes[d], at = floorMod(-shift, n);
  return cat<V>(std::vector<V>{slice(x, d, at, n), slice(x, d, Dim(0), at)}, d);
}
template <class V> V rollRule(const RollArgs<V> &a) {
  TensorMeta m = metaOf(a.self);
  if (a.dims.empty()) {
    DLC_REQUIRE(a.shifts.size() == 1, Runtime, "roll: ", a.shifts.size(),
                " shifts without `dims`\ngive one shift, or a dimension for each");
    return view(rollOne(flatten(a.self), a.shifts[0], 0), m.sizes);
  }
  DLC_REQUIRE(a.dims.size() == a.shifts.size(), Runtime, "roll: ", a.shifts.size(), " shifts but ", a.dims.size(),
              " dimensions\ngive one shift a dimension");
  V r = a.self;
  for (size_t i = 0; i < a.dims.size(); ++i)
    r = rollOne(r, a.shifts[i], wrapDim("roll", "dims", a.dims[i], m));
  return r;
}
template <class V> V repeatRule(const RepeatArgs<V> &a) {
  Dims sizes = sizesOf(a.self);
  DLC_REQUIRE(a.repeats.size() >= sizes.size(), Runtime, "repeat: `repeats` ", listStr(a.repeats),
              " has fewer entries than `self` of sizes ", listStr(sizes),
              " has dimensions\ngive one a dimension, new ones first");
  Dims one, many, total;
  size_t extra = a.repeats.size() - sizes.size();
  for (size_t i = 0; i < a.repeats.size(); ++i) {
    DLC_REQUIRE(a.repeats[i].value() >= 0, Runtime, "repeat: ", a.repeats[i],
                " in `repeats` is negative\nuse at least 0");
    Dim s = i < extra ? Dim(1) : sizes[i - extra];
    one.push_back(1);
    one.push_back(s);
    many.push_back(a.repeats[i]);
    many.push_back(s);
    total.push_back(a.repeats[i] * s);
  }
  return reshape(expand(reshape(a.self, one), many), total);
}
template <class V> V stackRule(const StackArgs<V> &a) {
  DLC_REQUIRE(!a.tensors.empty(), Runtime, "stack: `tensors` is empty\npass at least one tensor");
  TensorMeta first = metaOf(a.tensors[0]);
  int64_t d = wrapDimOfRank("stack", "dim", a.dim, first.dim() + 1);
  std::vector<V> parts;
  for (const V &t : a.tensors) {
    DLC_REQUIRE(sameSizes(sizesOf(t), first.sizes), Runtime, "stack: `tensors` of sizes ", listStr(first.sizes),
                " and ", listStr(sizesOf(t)), " differ\nmake all sizes equal");
    parts.push_back(unsqueeze(t, d));
  }
  return cat<V>(parts, d);
}

template <class V> std::vector<V> splitBy(const V &self, Span<const Dim> each, int64_t d) {
  std::vector<V> parts;
  Dim at = 0;
  for (const Dim &n : each) {
    parts.push_back(slice(self, d, at, at + n));
    at += n;
  }
  return parts;
}
template <class V> std::vector<V> equalParts(const V &self, int64_t d, int64_t count, const Dim &each) {
  std::vector<V> parts;
  Dim n = sizesOf(self)[d];
  for (int64_t i = 0; i < count; ++i)
    parts.push_back(slice(self, d, each * i, i + 1 == count ? n : each * (i + 1)));
  return parts;
}
template <class V> std::vector<V> splitRule(const SplitArgs<V> &a) {
  int64_t d = wrapDim("split", "dim", a.dim, metaOf(a.self)), n = sizesOf(a.self)[d].concretize(),
          each = a.split_size.concretize();
  return equalParts(a.self, d, std::max<int64_t>(1, each ? (n + each - 1) / each : 1), a.split_size);
}
template <class V> std::vector<V> splitWithSizesRule(const SplitWithSizesArgs<V> &a) {
  return splitBy(a.self, a.split_sizes, wrapDim("split", "dim", a.dim, metaOf(a.self)));
}
template <class V> std::vector<V> chunkRule(const ChunkArgs<V> &a) {
  int64_t d = wrapDim("chunk", "dim", a.dim, metaOf(a.self)), n = sizesOf(a.self)[d].concretize(),
          each = (n + a.chunks - 1) / a.chunks;
  return equalParts(a.self, d, each ? (n + each - 1) / each : a.chunks, Dim(each));
}
template <class V> std::vector<V> unbindRule(const UnbindArgs<V> &a) {
  int64_t d = wrapDim("unbind", "dim", a.dim, metaOf(a.self)), n = sizesOf(a.self)[d].concretize();
  std::vector<V> parts;
  for (int64_t i = 0; i < n; ++i)
    parts.push_back(select(a.self, d, Dim(i)));
  return parts;
}

template <class V> V scatterValueRule(const ScatterValueArgs<V> &a) { return scatter(a.self, a.dim, a.index, a.value); }
/// `index`, which compares with class numbers. A comparison alone would take what is no class for a hit of none, so it
/// is divided by whether it is one: the division by zero sends the call to the eager kernel, which raises IndexError.
/// (A gather would say it directly but needs the list of classes in memory, which is one more kernel.)
template <class V> V checkedClass(const V &index, const Dim &classes) {
  V isClass = logical_and(index >= 0, index < Builder<V>::number(classes));
  return floor_divide(index, castTo(isClass, DType::I64));
}
template <class V> V oneHotRule(const OneHotArgs<V> &a) {
  return castTo(eq(unsqueeze(checkedClass(a.self, a.num_classes), -1), arange<V>(Dim(0), a.num_classes)), DType::I64);
}
template <class V> V argsortRule(const ArgsortArgs<V> &a) { return sort(a.self, a.dim, a.descending, a.stable)[1]; }

template <class V> V zerosRule(const ZerosArgs<V> &a) {
  DType t = a.dtype.value_or(defaultDType());
  return full<V>(a.size, isFloat(t) ? Number(0.0) : Number(0), t, a.device);
}
template <class V> V onesRule(const OnesArgs<V> &a) {
  DType t = a.dtype.value_or(defaultDType());
  return full<V>(a.size, isFloat(t) ? Number(1.0) : Number(1), t, a.device);
}
template <class V> V zerosLikeRule(const ZerosLikeArgs<V> &a) { return full_like(a.self, 0, a.dtype, a.device); }
template <class V> V onesLikeRule(const OnesLikeArgs<V> &a) { return full_like(a.self, 1, a.dtype, a.device); }
template <class V> V arangeEndRule(const ArangeEndArgs<V> &a) {
  return arange<V>(Dim(0), a.end, Dim(1), a.dtype, a.device);
}
template <class V> V arangeFloatEndRule(const ArangeFloatEndArgs<V> &a) {
  return arange_float<V>(0.0, a.end, 1.0, a.dtype, a.device);
}
template <class V> V randintHighRule(const RandintHighArgs<V> &a) {
  return randint<V>(Dim(0), a.high, a.size, a.generator, a.dtype, a.device);
}
template <class V> V zeroRule(const ZeroArgs<V> &a) { return full_like(a.self, 0); }

} // namespace dlc::rules
