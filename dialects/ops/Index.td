// Gathering, scattering, sorting, searching. An index out of range raises IndexError; only indexing (`index`) wraps.
include "OpBase.td"

class IndexOp<string mnemonicName> : Dlc_Op<mnemonicName> { let kind = "index"; }

def Dlc_EmbeddingOp : IndexOp<"embedding"> {
  let summary = "Rows of `weight` chosen by `input`; the row `padding_idx` gets no gradient.";
  let params = (ins T:$input, T:$weight, IntOpt:$padding_idx);
  let indexOperands = ["input"];
  let pyModule = "nn.functional";
  let method = 0;
  let vjp = [Vjp<["weight"], "embedding_backward(g, input, sizesOf(weight)[0], padding_idx)">];
  let samples = [Sample<"I((2,3), 5), S(5,4)", "weight[input]">];
}
def Dlc_EmbeddingBackwardOp : IndexOp<"embedding_backward"> {
  let summary = "Adds rows of `grad` into a table of `num_weights` rows.";
  let params = (ins T:$grad, T:$indices, SymInt<>:$num_weights, IntOpt:$padding_idx);
  let function = 0; let method = 0;
  let vjp = [Vjp<["grad"], "embeddingGradGrad(g, indices, padding_idx)">];
  let noSample = "the gradient of embedding";
}
def Dlc_GatherOp : IndexOp<"gather"> {
  let summary = "Elements of `self` along `dim` at the positions `index`.";
  let params = (ins T:$self, Int<>:$dim, T:$index);
  let indexOperands = ["index"];
  let vjp = [Vjp<["self"], "scatter_add(zerosOf(g, metaOf(self)), dim, index, g)">];
  let samples = [Sample<"S(3,4), 1, I((3,2), 4)", "np.take_along_axis(self, index, 1)">];
}
def Dlc_ScatterOp : IndexOp<"scatter"> {
  let summary = "`self` with elements of `src` written along `dim` at the positions `index`.";
  let params = (ins T:$self, Int<>:$dim, T:$index, TN:$src);
  let indexOperands = ["index"];
  let inplace = 1;
  let vjp = [Vjp<["self"], "scatter(g, dim, index, 0)">, Vjp<["src"], "gather(g, dim, index)">];
  let samples = [Sample<"S(3,4), 1, U((3,2), 4), S(3,2)", "ref.scatter(self, 1, index, src)">];
}
def Dlc_ScatterValueOp : Dlc_Rule<"scatter_value"> {
  let summary = "`self` with `value` written along `dim` at the positions `index`.";
  let params = (ins T:$self, Int<>:$dim, T:$index, Num<>:$value);
  let pyName = "scatter";
  let overload = 1;
  let inplace = 1;
  let samples = [Sample<"S(3,4), 1, I((3,2), 4), value=2", "ref.scatter(self, 1, index, 2)">];
}
def Dlc_ScatterAddOp : IndexOp<"scatter_add"> {
  let summary = "`self` with elements of `src` added along `dim` at the positions `index`.";
  let params = (ins T:$self, Int<>:$dim, T:$index, T:$src);
  let indexOperands = ["index"];
  let inplace = 1;
  let vjp = [Vjp<["self"], "g">, Vjp<["src"], "gather(g, dim, index)">];
  let samples = [Sample<"S(3,4), 1, I((3,5), 4), S(3,5)", "ref.scatter_add(self, 1, index, src)">];
}
def Dlc_IndexSelectOp : IndexOp<"index_select"> {
  let summary = "Slices of `self` along `dim` at the positions `index`.";
  let params = (ins T:$self, Int<>:$dim, T:$index);
  let indexOperands = ["index"];
  let vjp = [Vjp<["self"], "index_add(zerosOf(g, metaOf(self)), dim, index, g)">];
  let samples = [Sample<"S(3,4), 1, I((2,), 4)", "np.take(self, index, 1)">];
}
def Dlc_IndexAddOp : IndexOp<"index_add"> {
  let summary = "`self` with slices of `source`, scaled by `alpha`, added along `dim` at the positions `index`.";
  let params = (ins T:$self, Int<>:$dim, T:$index, T:$source, Num<"1">:$alpha);
  let kwonly = "alpha";
  let indexOperands = ["index"];
  let inplace = 1;
  let vjp = [Vjp<["self"], "g">, Vjp<["source"], "index_select(g, dim, index) * alpha">];
  let samples = [Sample<"S(3,4), 1, I((5,), 4), S(3,5)", "ref.index_add(self, 1, index, source)">];
}
def Dlc_IndexOp : IndexOp<"index"> {
  let summary = "Advanced indexing: integer or bool tensors, or None for a whole dimension.";
  let params = (ins T:$self, TOptList:$indices);
  let function = 0; let method = 0;
  let vjp = [Vjp<["self"], "index_put(zerosOf(g, metaOf(self)), indices, g, true)">];
  let noSample = "Tensor.__getitem__ covers it";
}
def Dlc_IndexPutOp : IndexOp<"index_put"> {
  let summary = "`self` with `values` written (or added) where `indices` point.";
  let params = (ins T:$self, TOptList:$indices, T:$values, Bool<"False">:$accumulate);
  let inplace = 1;
  let vjp = [Vjp<["self"], "indexPutGradSelf(g, indices, metaOf(values), accumulate)">,
             Vjp<["values"], "sumToLike(index(g, indices), metaOf(values))">];
  let samples = [Sample<"S(3,4), [U((2,), 3)], S(2,4)", "ref.index_put(self, indices, values)">,
                 Sample<"S(3,4), [I((5,), 3), I((5,), 4)], S(5), True", "ref.index_put(self, indices, values, True)">];
}
def Dlc_MaskedSelectOp : IndexOp<"masked_select"> {
  let summary = "The elements where `mask` holds, as a vector.";
  let params = (ins T:$self, T:$mask);
  let boolOperands = ["mask"];
  let dataDependent = 1;
  let vjp = [Vjp<["self"], "maskedSelectGrad(g, metaOf(self), mask)">];
  let samples = [Sample<"S(3,4), B(3,4)", "self[mask]">];
}
def Dlc_NonzeroOp : IndexOp<"nonzero"> {
  let summary = "The indices of nonzero elements, a row each.";
  let params = (ins T:$self);
  let dataDependent = 1;
  let differentiable = 0;
  let samples = [Sample<"S(3,4)", "np.argwhere(self)">];
}
def Dlc_OneHotOp : IndexOp<"one_hot"> {
  let summary = "A new last dimension that is 1 at the index and 0 elsewhere; without `num_classes`, one more than the largest.";
  let params = (ins T:$self, SymInt<"-1">:$num_classes);
  let indexOperands = ["self"];
  let pyModule = "nn.functional";
  let method = 0;
  let dtypes = ["i64"];
  let differentiable = 0;
  let composite = 1;
  let samples = [Sample<"I((2,3), 4), 4", "np.eye(4, dtype=np.int64)[self]">];
}
def Dlc_TopkOp : IndexOp<"topk"> {
  let summary = "The `k` largest (or smallest) elements along `dim` and their indices.";
  let params = (ins T:$self, SymInt<>:$k, Int<"-1">:$dim, Bool<"True">:$largest, Bool<"True">:$sorted);
  let returns = (outs O:$values, O:$indices);
  let dtypes = NumberTypes;
  let vjp = [Vjp<["self"], "scatter_add(zerosOf(g_values, metaOf(self)), dim, indices, g_values)">];
  let samples = [Sample<"D(3,5), 2", "ref.topk(self, 2)">, Sample<"D(3,5), 2, 0, False", "ref.topk(self, 2, 0, False)">];
}
def Dlc_SortOp : IndexOp<"sort"> {
  let summary = "Sorts along `dim`; also the index that each element came from. NaN counts as the largest.";
  let params = (ins T:$self, Int<"-1">:$dim, Bool<"False">:$descending, Bool<"False">:$stable);
  let returns = (outs O:$values, O:$indices);
  let kwonly = "stable";
  let vjp = [Vjp<["self"], "scatter_add(zerosOf(g_values, metaOf(self)), dim, indices, g_values)">];
  let samples = [Sample<"D(3,5)", "(np.sort(self), np.argsort(self, kind='stable'))">, Sample<"D(3,5), 0, True", "ref.sort_descending(self, 0)">];
}
def Dlc_ArgsortOp : Dlc_Rule<"argsort"> {
  let summary = "The indices that sort along `dim`.";
  let params = (ins T:$self, Int<"-1">:$dim, Bool<"False">:$descending, Bool<"False">:$stable);
  let kwonly = "stable";
  let differentiable = 0;
  let samples = [Sample<"D(3,5)", "np.argsort(self, kind='stable')">];
}
