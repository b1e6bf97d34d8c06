// Shared parts of meta functions; see MetaUtil.h.
#include "runtime/op/meta/MetaUtil.h"

namespace dlc::ops {

void Promoter::add(const TensorMeta &m) {
  addTo(m.wrapped ? wrapped_ : m.sizes.empty() ? zeroDim_ : dimensioned_, m.dtype);
}

DType Promoter::type() const {
  std::optional<DType> t = dimensioned_;
  auto consider = [&](const std::optional<DType> &lower, bool wrapped) {
    if (!lower)
      return;
    if (!t)
      t = wrapped && isFloat(*lower) ? defaultDType() : *lower;
    else if (categoryOf(*lower) > categoryOf(*t))
      t = wrapped && isFloat(*lower) ? defaultDType() : *lower;
  };
  consider(zeroDim_, false);
  consider(wrapped_, true);
  return t.value_or(DType::F32);
}

DType resultType(Span<const TensorMeta *const> operands) {
  Promoter p;
  for (const TensorMeta *m : operands)
    p.add(*m);
  return p.type();
}

void requireDType(const OpInfo &op, DType t) {
  DLC_REQUIRE(op.dtypes >> static_cast<int>(t) & 1, NotImplemented, op.name, ": not implemented for ", t,
              "\nconvert the argument with .to(", isFloat(t) || t == DType::Bool ? "dlc.int64" : "dlc.float32",
              ") first");
}

Dims broadcastSizes(const char *op, Span<const TensorMeta *const> operands) {
  Dims sizes;
  for (const TensorMeta *m : operands) {
    const Dims &s = m->sizes;
    while (sizes.size() < s.size())
      sizes.insert(0, Dim(1));
    for (size_t i = 0; i < s.size(); ++i) {
      Dim &a = sizes[sizes.size() - s.size() + i];
      const Dim &b = s[i];
      if (a.same(b) || (b.isConst() && b.value() == 1))
        continue; // beside a constant 1 a size is itself, also a symbol that happens to be 1
      if (a.isConst() && a.value() == 1) {
        a = b;
      } else if (b.value() == 1 && a.value() != 1) {
        if (!b.isConst())
          (void)(b == 1);
      } else if (a.value() == 1 && b.value() != 1) {
        if (!a.isConst())
          (void)(a == 1);
        a = b;
      } else if (a.value() == b.value()) {
        (void)(a == b); // a fact of the recording
        if (b.isConst())
          a = b;
      } else {
        std::string shapes;
        for (const TensorMeta *o : operands)
          shapes += (shapes.empty() ? "" : " and ") + listStr(o->sizes);
        fail(ErrorKind::Runtime, op, ": sizes ", shapes, " do not broadcast: dimension ",
             static_cast<int64_t>(i) - static_cast<int64_t>(s.size()), " is ", a, " in one and ", b,
             " in another\nmake the sizes equal, or one of them 1");
      }
    }
  }
  return sizes;
}

bool expandsTo(const Dims &from, const Dims &to) {
  if (from.size() > to.size())
    return false;
  for (size_t i = 0; i < from.size(); ++i) {
    const Dim &a = from[i], &b = to[to.size() - from.size() + i];
    if (!a.same(b) && !(a.value() == 1 ? a == 1 : a == b))
      return false;
  }
  return true;
}

bool isContiguous(const Dims &sizes, const Dims &strides) {
  Dim expected = 1;
  bool always = true; // for all values of symbols: nothing is taken for granted
  for (size_t i = sizes.size(); i-- > 0 && always; expected *= sizes[i])
    always = strides[i].same(expected);
  if (always)
    return true;
  expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0)
      return true;
    if (sizes[i] == 1)
      continue;
    if (!strides[i].same(expected) && strides[i] != expected)
      return false;
    expected *= sizes[i];
  }
  return true;
}
bool isContiguous(const TensorMeta &m) { return isContiguous(m.sizes, m.strides); }

Dims channelsLastStrides(const Dims &sizes) {
  Dims s(4);
  s[1] = 1;
  s[3] = maxDim(sizes[1], 1);
  s[2] = s[3] * maxDim(sizes[3], 1);
  s[0] = s[2] * maxDim(sizes[2], 1);
  return s;
}

bool isChannelsLast(const TensorMeta &m) {
  if (m.dim() != 4 || isContiguous(m))
    return false;
  Dims want = channelsLastStrides(m.sizes);
  for (size_t i = 0; i < 4; ++i)
    if (m.sizes[i] != 1 && m.strides[i] != want[i])
      return false;
  return true;
}
Dims imageStrides(const TensorMeta &m, const Dims &sizes) {
  return isChannelsLast(m) ? channelsLastStrides(sizes) : contiguousStrides(sizes);
}

namespace {
/// Of the two dimensions, whether `inner` should be the outer one: the first operand that can tell decides.
bool outOfOrder(Span<const TensorMeta *const> operands, const Dims &sizes, size_t outer, size_t inner) {
  for (const TensorMeta *m : operands) {
    size_t missing = sizes.size() - m->sizes.size();
    if (outer < missing || inner < missing)
      continue;
    Dim a = m->sizes[outer - missing] == 1 ? Dim(0) : m->strides[outer - missing];
    Dim b = m->sizes[inner - missing] == 1 ? Dim(0) : m->strides[inner - missing];
    if (a == 0 || b == 0)
      continue;
    if (!a.same(b) && a != b)
      return a < b;
    if (sizes[outer] < sizes[inner])
      return true;
  }
  return false;
}
} // namespace

Dims layoutLike(Span<const TensorMeta *const> operands, const Dims &sizes) {
  bool plain = true;
  for (const TensorMeta *m : operands)
    plain = plain && isContiguous(*m);
  if (plain || sizes.size() < 2)
    return contiguousStrides(sizes);
  // Insertion sort from the innermost dimension outwards, so that ambiguous pairs keep their order.
  SmallVec<size_t> order;
  for (size_t i = 0; i < sizes.size(); ++i)
    order.push_back(i);
  for (size_t i = 1; i < order.size(); ++i)
    for (size_t j = i; j > 0 && outOfOrder(operands, sizes, order[j - 1], order[j]); --j)
      std::swap(order[j - 1], order[j]);
  Dims strides(sizes.size());
  Dim step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = step;
    if (sizes[order[i]] > 1)
      step *= sizes[order[i]];
  }
  return strides;
}

bool sameSizes(const Dims &a, const Dims &b) {
  if (a.size() != b.size())
    return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!sameDim(a[i], b[i]))
      return false;
  return true;
}

int64_t wrapDimOfRank(const char *op, const char *param, int64_t dim, int64_t rank) {
  int64_t n = std::max<int64_t>(rank, 1);
  DLC_REQUIRE(dim >= -n && dim < n, Index, op, ": `", param, "` is ", dim, ", out of range for ", rank,
              " dimensions\nuse a dimension from ", -n, " to ", n - 1);
  return dim < 0 ? dim + n : dim;
}
int64_t wrapDim(const char *op, const char *param, int64_t dim, const TensorMeta &self) {
  return wrapDimOfRank(op, param, dim, self.dim());
}

uint64_t dimMask(const char *op, const std::optional<Ints> &dims, const TensorMeta &self) {
  DLC_REQUIRE(self.dim() <= 64, Runtime, op, ": `self` has ", self.dim(), " dimensions\nat most 64 are supported");
  uint64_t all = self.dim() == 64 ? ~uint64_t(0) : (uint64_t(1) << self.dim()) - 1;
  if (!dims || dims->empty())
    return all;
  uint64_t mask = 0;
  for (int64_t d : *dims) {
    uint64_t bit = uint64_t(1) << wrapDim(op, "dim", d, self);
    DLC_REQUIRE(!(mask & bit), Runtime, op, ": dimension ", d, " appears more than once in `dim` ", listStr(*dims),
                "\nname each dimension once");
    mask |= bit;
  }
  return mask & all;
}

Dim wrapIndex(const char *op, const Dim &index, const Dim &size, int64_t dim) {
  DLC_REQUIRE(index.value() >= -size.value() && index.value() < size.value(), Index, op, ": index ", index.value(),
              " is out of range for dimension ", dim, " of size ", size.value(), "\nuse an index from -", size.value(),
              " to ", size.value() - 1);
  if (index.value() < 0) {
    (void)(index < 0);
    (void)(index + size >= 0);
    return index + size;
  }
  (void)(index >= 0);
  (void)(index < size);
  return index;
}

SliceBounds sliceBounds(const char *op, const Dim &size, const std::optional<Dim> &start, const std::optional<Dim> &end,
                        const Dim &step) {
  DLC_REQUIRE(step.value() > 0, Value, op, ": `step` is ", step.value(), "\nuse a positive step; flip() reverses");
  auto clamped = [&](Dim v) {
    if (v < 0)
      v += size;
    return v < 0 ? Dim(0) : v > size ? size : v;
  };
  // An absent bound, or the one that slicing passes for it, needs no comparison.
  Dim from = start && !start->same(0) ? clamped(*start) : Dim(0);
  Dim to = end && !end->same(size) && !end->same(Dim(INT64_MAX)) ? clamped(*end) : size;
  if (from.same(0) && to.same(size) && step.same(1))
    return {from, to};
  if (to < from)
    to = from;
  Dim length = step.same(1) ? to - from : floorDiv(to - from + step - 1, step);
  return {from, length};
}

Dim product(const Dims &sizes) {
  Dim n = 1;
  for (const Dim &d : sizes)
    n *= d;
  return n;
}

TensorMeta denseMeta(DType dtype, const Dims &sizes, const Dims &strides) {
  TensorMeta m;
  m.dtype = dtype;
  m.defined = true;
  m.sizes = sizes;
  m.strides = strides;
  return m;
}

TensorMeta likeMeta(const TensorMeta &m, DType dtype) {
  const TensorMeta *one[] = {&m};
  return denseMeta(dtype, m.sizes, layoutLike(one, m.sizes));
}

Dims reducedSizes(const TensorMeta &self, uint64_t mask, bool keepdim) {
  Dims sizes;
  for (size_t i = 0; i < self.sizes.size(); ++i)
    if (!(mask >> i & 1))
      sizes.push_back(self.sizes[i]);
    else if (keepdim)
      sizes.push_back(1);
  return sizes;
}

void requireSameDType(const char *op, const char *a, const TensorMeta &x, const char *b, const TensorMeta &y) {
  DLC_REQUIRE(x.dtype == y.dtype, Runtime, op, ": `", a, "` is ", describe(x), " but `", b, "` is ", describe(y),
              "\nconvert one with .to() so that the dtypes agree");
}
void requireRank(const char *op, const char *param, const TensorMeta &m, int64_t rank) {
  DLC_REQUIRE(m.dim() == rank, Runtime, op, ": `", param, "` is ", describe(m), ", which has ", m.dim(),
              " dimensions, not ", rank, "\npass a tensor of ", rank, " dimensions");
}
void requireIndexType(const char *op, const char *param, const TensorMeta &m) {
  DLC_REQUIRE(m.dtype == DType::I64 || m.dtype == DType::I32, Runtime, op, ": `", param, "` is ", describe(m),
              ", but indices are int64 or int32\nconvert it with .to(dlc.int64)");
}

Dims inferSizes(const char *op, Span<const Dim> sizes, const TensorMeta &self) {
  Dims out(sizes.begin(), sizes.end());
  Dim known = 1, total = self.numel();
  int64_t hole = -1;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] >= 0) { // a size that varies stays what it is here: -1 means something else
      known *= out[i];
      continue;
    }
    DLC_REQUIRE(out[i].value() == -1, Runtime, op, ": size ", out[i].value(), " in ", listStr(out),
                " is negative\nuse -1 to infer one size");
    DLC_REQUIRE(hole < 0, Runtime, op, ": more than one -1 in ", listStr(out), "\nonly one size can be inferred");
    hole = static_cast<int64_t>(i);
  }
  bool fits = hole < 0 ? sameDim(known, total) : known.value() != 0 && floorMod(total, known) == 0;
  DLC_REQUIRE(fits, Runtime, op, ": sizes ", listStr(out), " do not fit `self` of sizes ", listStr(self.sizes),
              " with ", total.value(), " elements\nmake the product of the sizes ", total.value(),
              hole >= 0 && known.value() == 0 ? "; -1 is ambiguous beside 0" : "");
  if (hole >= 0)
    out[hole] = floorDiv(total, known);
  return out;
}

std::optional<Dims> viewStrides(const TensorMeta &self, const Dims &sizes) {
  if (isContiguous(self) || self.numel() == 0)
    return contiguousStrides(sizes);
  Dims strides(sizes.size());
  // From the inside out: collect a run of old dimensions that lie densely, and split it into new ones.
  int64_t v = static_cast<int64_t>(sizes.size()) - 1;
  Dim base = self.strides.back(), chunk = 1, seen = 1;
  for (int64_t d = self.dim() - 1; d >= 0; --d) {
    chunk *= self.sizes[d];
    bool last = d == 0 || (self.sizes[d - 1] != 1 && !sameDim(self.strides[d - 1], chunk * base));
    if (!last)
      continue;
    while (v >= 0 && ((!seen.same(chunk) && seen < chunk) || sizes[v] == 1)) {
      strides[v] = seen * base;
      seen *= sizes[v];
      --v;
    }
    if (!sameDim(seen, chunk))
      return std::nullopt;
    if (d > 0) {
      base = self.strides[d - 1];
      chunk = 1;
      seen = 1;
    }
  }
  return v < 0 ? std::optional<Dims>(strides) : std::nullopt;
}

} // namespace dlc::ops
