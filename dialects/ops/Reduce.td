// Reductions over dimensions, and scans.
include "OpBase.td"

def Dlc_SumOp : Reduce<"sum"> {
  let summary = "The sum over the dimensions `dim`, or over all.";
  let params = (ins T:$self, IntsOpt:$dim, Bool<"False">:$keepdim, DTypeOpt:$dtype);
  let kwonly = "dtype";
  let promotion = PromoteSum;
  let combine = Combine<"0", "add">;
  let vjp = [Vjp<["self"], "expandReduced(g, metaOf(self), dim, keepdim)">];
  let samples = [Sample<"S(3,4)", "np.sum(self)">, Sample<"S(3,4,2), (0,2), True", "np.sum(self, axis=(0,2), keepdims=True)">,
                 Sample<"S(3,4), -1, dtype=dlc.float64", "np.sum(self, axis=-1, dtype=np.float64)">];
}
def Dlc_MeanOp : Reduce<"mean"> {
  let summary = "The mean over the dimensions `dim`, or over all.";
  let params = (ins T:$self, IntsOpt:$dim, Bool<"False">:$keepdim, DTypeOpt:$dtype);
  let kwonly = "dtype";
  let dtypes = FloatTypes;
  let combine = Combine<"0", "add">;
  let vjp = [Vjp<["self"], "expandReduced(g, metaOf(self), dim, keepdim) / reducedCount(metaOf(self), dim)">];
  let samples = [Sample<"S(3,4)", "np.mean(self)">, Sample<"S(3,4), 1, True", "np.mean(self, axis=1, keepdims=True)">];
}
def Dlc_ProdOp : Reduce<"prod"> {
  let summary = "The product over the dimension `dim`, or over all.";
  let params = (ins T:$self, IntsOpt:$dim, Bool<"False">:$keepdim, DTypeOpt:$dtype);
  let kwonly = "dtype";
  let promotion = PromoteSum;
  let combine = Combine<"1", "mul">;
  let vjp = [Vjp<["self"], "prodGrad(g, self, out, dim, keepdim)">];
  let samples = [Sample<"S(3,4)", "np.prod(self)">, Sample<"S(3,4), 1, True", "np.prod(self, axis=1, keepdims=True)">];
}
def Dlc_AmaxOp : Reduce<"amax"> {
  let summary = "The largest element over the dimensions `dim`; NaN if there is one. Its gradient is shared among ties.";
  let params = (ins T:$self, Ints<"()", 1>:$dim, Bool<"False">:$keepdim);
  let combine = Combine<"lowest", "max">;
  let vjp = [Vjp<["self"], "extremeGrad(g, self, out, dim, keepdim)">];
  let samples = [Sample<"S(3,4)", "np.max(self)">, Sample<"S(3,4), 0, True", "np.max(self, axis=0, keepdims=True)">];
}
def Dlc_AminOp : Reduce<"amin"> {
  let summary = "The smallest element over the dimensions `dim`; NaN if there is one. Its gradient is shared among ties.";
  let params = (ins T:$self, Ints<"()", 1>:$dim, Bool<"False">:$keepdim);
  let combine = Combine<"highest", "min">;
  let vjp = [Vjp<["self"], "extremeGrad(g, self, out, dim, keepdim)">];
  let samples = [Sample<"S(3,4)", "np.min(self)">, Sample<"S(3,4), 0, True", "np.min(self, axis=0, keepdims=True)">];
}
def Dlc_AllOp : Reduce<"all"> {
  let summary = "Whether all elements over the dimensions `dim` are nonzero.";
  let params = (ins T:$self, IntsOpt:$dim, Bool<"False">:$keepdim);
  let promotion = PromoteToBool;
  let combine = Combine<"1", "and">;
  let differentiable = 0;
  let samples = [Sample<"S(3,4)", "np.all(self)">, Sample<"S(3,4), 1", "np.all(self, axis=1)">];
}
def Dlc_AnyOp : Reduce<"any"> {
  let summary = "Whether any element over the dimensions `dim` is nonzero.";
  let params = (ins T:$self, IntsOpt:$dim, Bool<"False">:$keepdim);
  let promotion = PromoteToBool;
  let combine = Combine<"0", "or">;
  let differentiable = 0;
  let samples = [Sample<"S(3,4)", "np.any(self)">, Sample<"S(3,4), 1", "np.any(self, axis=1)">];
}
def Dlc_ArgmaxOp : Reduce<"argmax"> {
  let summary = "The index of the largest element; the first NaN wins, then the first of equals.";
  let params = (ins T:$self, IntOpt:$dim, Bool<"False">:$keepdim);
  let meta = "arg_reduce";
  let promotion = PromoteIndex;
  let dtypes = NumberTypes;
  let combine = Combine<"none", "argmax">;
  let differentiable = 0;
  let samples = [Sample<"S(3,4)", "np.argmax(self)">, Sample<"S(3,4), 1, True", "np.argmax(self, axis=1, keepdims=True)">];
}
def Dlc_ArgminOp : Reduce<"argmin"> {
  let summary = "The index of the smallest element; the first NaN wins, then the first of equals.";
  let params = (ins T:$self, IntOpt:$dim, Bool<"False">:$keepdim);
  let meta = "arg_reduce";
  let promotion = PromoteIndex;
  let dtypes = NumberTypes;
  let combine = Combine<"none", "argmin">;
  let differentiable = 0;
  let samples = [Sample<"S(3,4)", "np.argmin(self)">, Sample<"S(3,4), 1, True", "np.argmin(self, axis=1, keepdims=True)">];
}

class Extremum<string mnemonicName, string spelled, int position, dag ps> : Dlc_Rule<mnemonicName> {
  let params = ps;
  let pyName = spelled;
  let overload = position;
}
def Dlc_MaxDimOp : Extremum<"max_dim", "max", 0, (ins T:$self, Int<>:$dim, Bool<"False">:$keepdim)> {
  let summary = "The largest elements along `dim` and their indices.";
  let returns = (outs O:$values, O:$indices);
  let samples = [Sample<"S(3,4), 1", "(np.max(self, axis=1), np.argmax(self, axis=1))">];
}
def Dlc_MaxOtherOp : Extremum<"max_other", "max", 1, (ins T:$self, T:$other)> {
  let summary = "The larger of two elements.";
  let samples = [Sample<"S(3,4), S(4)", "np.maximum(self, other)">];
}
def Dlc_MaxAllOp : Extremum<"max_all", "max", 2, (ins T:$self)> {
  let summary = "The largest of all elements.";
  let samples = [Sample<"S(3,4)", "np.max(self)">];
}
def Dlc_MinDimOp : Extremum<"min_dim", "min", 0, (ins T:$self, Int<>:$dim, Bool<"False">:$keepdim)> {
  let summary = "The smallest elements along `dim` and their indices.";
  let returns = (outs O:$values, O:$indices);
  let samples = [Sample<"S(3,4), 1", "(np.min(self, axis=1), np.argmin(self, axis=1))">];
}
def Dlc_MinOtherOp : Extremum<"min_other", "min", 1, (ins T:$self, T:$other)> {
  let summary = "The smaller of two elements.";
  let samples = [Sample<"S(3,4), S(4)", "np.minimum(self, other)">];
}
def Dlc_MinAllOp : Extremum<"min_all", "min", 2, (ins T:$self)> {
  let summary = "The smallest of all elements.";
  let samples = [Sample<"S(3,4)", "np.min(self)">];
}

class Variance<string mnemonicName> : Dlc_Rule<mnemonicName> {
  let params = (ins T:$self, IntsOpt:$dim, Float<"1">:$correction, Bool<"False">:$keepdim);
  let kwonly = "correction";
  let dtypes = FloatTypes;
}
def Dlc_VarOp : Variance<"var"> {
  let summary = "The variance over `dim`: squared deviations divided by the count less `correction`.";
  let samples = [Sample<"S(3,4)", "np.var(self, ddof=1)">, Sample<"S(3,4), 1, correction=0, keepdim=True", "np.var(self, axis=1, keepdims=True)">];
}
def Dlc_StdOp : Variance<"std"> {
  let summary = "The standard deviation over `dim`.";
  let samples = [Sample<"S(3,4), 1", "np.std(self, axis=1, ddof=1)">];
}
def Dlc_VarMeanOp : Variance<"var_mean"> {
  let summary = "Variance and mean over `dim`.";
  let returns = (outs O:$var, O:$mean);
  let method = 0;
  let samples = [Sample<"S(3,4), 1", "(np.var(self, axis=1, ddof=1), np.mean(self, axis=1))">];
}
class VarianceUnbiased<string mnemonicName, string spelled> : Dlc_Rule<mnemonicName> {
  let params = (ins T:$self, IntsOpt:$dim, Bool<"True">:$unbiased, Bool<"False">:$keepdim);
  let dtypes = FloatTypes;
  let pyName = spelled;
  let overload = 1;
}
def Dlc_VarUnbiasedOp : VarianceUnbiased<"var_unbiased", "var"> {
  let summary = "The variance, divided by the count less one if `unbiased`.";
  let samples = [Sample<"S(3,4), 1, unbiased=False", "np.var(self, axis=1)">];
}
def Dlc_StdUnbiasedOp : VarianceUnbiased<"std_unbiased", "std"> {
  let summary = "The standard deviation, from the variance divided by the count less one if `unbiased`.";
  let samples = [Sample<"S(3,4), 1, unbiased=False", "np.std(self, axis=1)">];
}
def Dlc_LogsumexpOp : Dlc_Rule<"logsumexp"> {
  let summary = "log(sum(exp(x))) over `dim`, without overflow.";
  let params = (ins T:$self, Ints<"", 1>:$dim, Bool<"False">:$keepdim);
  let meta = "reduce";
  let promotion = PromoteToFloat;
  let vjp = [Vjp<["self"], "logsumexpGrad(g, self, out, dim, keepdim)">];
  let samples = [Sample<"S(3,4), 1", "np.log(np.sum(np.exp(self), axis=1))">];
}
def Dlc_NormOp : Dlc_Rule<"norm"> {
  let summary = "The `p`-norm over `dim`, or over all elements.";
  let params = (ins T:$self, Float<"2">:$p, IntsOpt:$dim, Bool<"False">:$keepdim);
  let meta = "reduce";
  let dtypes = FloatTypes;
  let vjp = [Vjp<["self"], "normGrad(g, self, out, p, dim, keepdim)">];
  let samples = [Sample<"S(3,4)", "np.sqrt(np.sum(self * self))">, Sample<"S(3,4), 1, 1", "np.sum(np.abs(self), axis=1)">,
                 Sample<"S(3,4), float('inf'), 0, True", "np.max(np.abs(self), axis=0, keepdims=True)">];
}

class Scan<string mnemonicName> : Dlc_Op<mnemonicName> {
  let kind = "structured";
  let params = (ins T:$self, Int<>:$dim, DTypeOpt:$dtype);
  let kwonly = "dtype";
  let meta = "scan";
  let promotion = PromoteSum;
}
def Dlc_CumsumOp : Scan<"cumsum"> {
  let summary = "The running sum along `dim`.";
  let combine = Combine<"0", "add">;
  let vjp = [Vjp<["self"], "flip(cumsum(flip(g, dimList(dim)), dim), dimList(dim))">];
  let samples = [Sample<"S(3,4), 1", "np.cumsum(self, axis=1)">];
}
def Dlc_CumprodOp : Scan<"cumprod"> {
  let summary = "The running product along `dim`.";
  let combine = Combine<"1", "mul">;
  let vjp = [Vjp<["self"], "cumprodGrad(g, self, out, dim)">];
  let samples = [Sample<"P(3,4), 1", "np.cumprod(self, axis=1)">];
}
