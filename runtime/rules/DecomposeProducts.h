// Rules of matrix products and convolution.
#pragma once
#include "runtime/rules/Einsum.h"

namespace dlc::rules {

template <class V> V addmmRule(const AddmmArgs<V> &a) {
  V product = scaled(mm(a.mat1, a.mat2), a.alpha);
  return a.beta.isConst(0) ? product : scaled(a.self, a.beta) + product;
}
template <class V> V baddbmmRule(const BaddbmmArgs<V> &a) {
  V product = scaled(bmm(a.batch1, a.batch2), a.alpha);
  return a.beta.isConst(0) ? product : scaled(a.self, a.beta) + product;
}

/// A product with at least one operand of three or more dimensions.
template <class V> V batchedMatmul(const V &self, const V &other) {
  TensorMeta x = metaOf(self), y = metaOf(other);
  if (y.dim() <= 2) { // all rows at once
    Dims outer(x.sizes.begin(), x.sizes.end() - 1);
    V rows = reshape(self, Dims{product(outer), x.sizes.back()});
    if (y.dim() == 1)
      return view(mm(rows, unsqueeze(other, 1)), outer);
    V r = mm(rows, other);
    outer.push_back(y.sizes[1]);
    return view(r, outer);
  }
  if (x.dim() == 1)
    return squeeze(batchedMatmul(unsqueeze(self, 0), other), dimList(-2));
  TensorMeta bx = TensorMeta::contiguous(x.dtype, Dims(x.sizes.begin(), x.sizes.end() - 2));
  TensorMeta by = TensorMeta::contiguous(y.dtype, Dims(y.sizes.begin(), y.sizes.end() - 2));
  const TensorMeta *both[] = {&bx, &by};
  Dims batch = broadcastSizes("matmul", both);
  auto flat = [&](const V &v, const TensorMeta &m) {
    Dims wide = batch;
    wide.append(m.sizes.end() - 2, m.sizes.end());
    V e = m.sizes.size() == wide.size() && std::equal(wide.begin(), wide.end(), m.sizes.begin(),
                                                      [](const Dim &p, const Dim &q) { return p.same(q); })
              ? v
              : expand(v, wide);
    return batch.size() == 1 ? e : reshape(e, Dims{product(batch), m.sizes[m.sizes.size() - 2], m.sizes.back()});
  };
  V r = bmm(flat(self, x), flat(other, y));
  if (batch.size() == 1)
    return r;
  Dims sizes = batch;
  sizes.push_back(x.sizes[x.sizes.size() - 2]);
  sizes.push_back(y.sizes.back());
  return view(r, sizes);
}

template <class V> V matmulRule(const MatmulArgs<V> &a) {
  TensorMeta x = metaOf(a.self), y = metaOf(a.other);
  DLC_REQUIRE(x.dim() > 0 && y.dim() > 0, Runtime, "matmul: `self` is ", describe(x), " and `other` is ", describe(y),
              "\nboth need at least one dimension; use * for scalars");
  const Dim &inner = y.sizes[y.dim() == 1 ? 0 : y.dim() - 2];
  DLC_REQUIRE(sameDim(x.sizes.back(), inner), Runtime, "matmul: `self` of sizes ", listStr(x.sizes),
              " and `other` of sizes ", listStr(y.sizes), " can't be multiplied: ", x.sizes.back(), " columns against ",
              inner, " rows\nmake them equal");
  requireSameDType("matmul", "self", x, "other", y);
  if (x.dim() == 1 && y.dim() == 1)
    return view(mm(unsqueeze(a.self, 0), unsqueeze(a.other, 1)), Dims());
  if (x.dim() == 2 && y.dim() == 2)
    return mm(a.self, a.other);
  if (x.dim() == 2 && y.dim() == 1)
    return squeeze(mm(a.self, unsqueeze(a.other, 1)), dimList(1));
  if (x.dim() == 1 && y.dim() == 2)
    return squeeze(mm(unsqueeze(a.self, 0), a.other), dimList(0));
  return batchedMatmul(a.self, a.other);
}
template <class V> V mvRule(const MvArgs<V> &a) {
  requireRank("mv", "self", metaOf(a.self), 2);
  requireRank("mv", "vec", metaOf(a.vec), 1);
  return matmul(a.self, a.vec);
}
template <class V> V dotRule(const DotArgs<V> &a) {
  requireRank("dot", "self", metaOf(a.self), 1);
  requireRank("dot", "tensor", metaOf(a.tensor), 1);
  return matmul(a.self, a.tensor);
}
template <class V> V outerRule(const OuterArgs<V> &a) {
  requireRank("outer", "self", metaOf(a.self), 1);
  requireRank("outer", "vec2", metaOf(a.vec2), 1);
  return unsqueeze(a.self, 1) * a.vec2;
}

template <class V> V linearRule(const LinearArgs<V> &a) {
  TensorMeta x = metaOf(a.input), w = metaOf(a.weight);
  DLC_REQUIRE(x.dim() > 0 && (w.dim() == 2 || w.dim() == 1) && sameDim(x.sizes.back(), w.sizes.back()), Runtime,
              "linear: `input` of sizes ", listStr(x.sizes), " does not fit `weight` of sizes ", listStr(w.sizes),
              "\n`weight` is (out, in), and `in` the last size of `input`");
  if (w.dim() == 1 || x.dim() == 1) {
    V r = matmul(a.input, t(a.weight));
    return a.bias ? r + *a.bias : r;
  }
  V wt = transpose(a.weight, 0, 1);
  auto rows = [&](const V &in) {
    return a.bias && rankOf(*a.bias) == 1 ? addmm(*a.bias, in, wt) : a.bias ? mm(in, wt) + *a.bias : mm(in, wt);
  };
  if (x.dim() == 2)
    return rows(a.input);
  Dims outer(x.sizes.begin(), x.sizes.end() - 1);
  V r = rows(reshape(a.input, Dims{product(outer), x.sizes.back()}));
  outer.push_back(w.sizes[0]);
  return view(r, outer);
}
template <class V> V einsumRule(const EinsumArgs<V> &a) { return einsumOf(a.equation, a.operands); }

template <class V> V conv2dPaddingRule(const Conv2dPaddingArgs<V> &a) {
  Sizes padding{0, 0};
  if (a.padding == "valid")
    return conv2d(a.input, a.weight, a.bias, a.stride, padding, a.dilation, a.groups);
  for (int64_t s : a.stride)
    DLC_REQUIRE(s == 1, Runtime, "conv2d: `padding` is 'same' but `stride` is ", listStr(a.stride),
                "\n'same' needs stride 1");
  TensorMeta w = metaOf(a.weight);
  requireRank("conv2d", "weight", w, 4);
  Dims pads; // last dimension first
  bool even = true;
  for (int i = 1; i >= 0; --i) {
    int64_t total = a.dilation[i] * (w.sizes[2 + i].concretize() - 1);
    padding[i] = total / 2;
    even = even && total % 2 == 0;
    pads.push_back(total / 2);
    pads.push_back(total - total / 2);
  }
  if (even)
    return conv2d(a.input, a.weight, a.bias, a.stride, padding, a.dilation, a.groups);
  const int64_t none[] = {0, 0};
  return conv2d(pad(a.input, pads), a.weight, a.bias, a.stride, none, a.dilation, a.groups);
}

} // namespace dlc::rules
