// Creation and random ops. requires_grad is added to the Python spelling of creation functions.
include "OpBase.td"

def Dlc_EmptyOp : Creation<"empty"> {
  let summary = "A tensor of the given size, not initialised.";
  let params = (ins SymInts<>:$size, DTypeOpt:$dtype, DeviceOpt:$device);
  let kwonly = "dtype"; let varargs = 1;
  let noSample = "its values are undefined";
}
def Dlc_FullOp : Creation<"full"> {
  let summary = "A tensor filled with `fill_value`.";
  let params = (ins SymInts<>:$size, Num<>:$fill_value, DTypeOpt:$dtype, DeviceOpt:$device);
  let kwonly = "dtype";
  let samples = [Sample<"(2,3), 1.5", "np.full((2,3), 1.5, np.float32)">, Sample<"(2,), True", "np.full((2,), True)">, Sample<"(2,0), 7", "np.full((2,0), 7)">];
}
class Filled<string mnemonicName> : Dlc_Rule<mnemonicName> {
  let params = (ins SymInts<>:$size, DTypeOpt:$dtype, DeviceOpt:$device);
  let kwonly = "dtype"; let varargs = 1; let method = 0; let differentiable = 0; let kind = "creation";
}
def Dlc_ZerosOp : Filled<"zeros"> {
  let summary = "A tensor of zeros.";
  let samples = [Sample<"2, 3", "np.zeros((2,3), np.float32)">, Sample<"(2,), dtype=dlc.int64", "np.zeros(2, np.int64)">];
}
def Dlc_OnesOp : Filled<"ones"> {
  let summary = "A tensor of ones.";
  let samples = [Sample<"2, 3", "np.ones((2,3), np.float32)">];
}
// Integer ranges are sized by run-time symbols; float ranges are constants of the program, as their size depends on them.
def Dlc_ArangeOp : Creation<"arange"> {
  let summary = "Numbers from `start` to before `end`, in steps of `step`.";
  let params = (ins SymInt<>:$start, SymInt<>:$end, SymInt<"1">:$step, DTypeOpt:$dtype, DeviceOpt:$device);
  let kwonly = "dtype";
  let meta = "arange";
  let overload = 1;
  let samples = [Sample<"1, 7, 2", "np.arange(1, 7, 2)">, Sample<"5, 0, -2", "np.arange(5, 0, -2)">];
}
def Dlc_ArangeFloatOp : Creation<"arange_float"> {
  let summary = "Numbers from `start` to before `end`, in steps of `step`.";
  let params = (ins Float<>:$start, Float<>:$end, Float<"1">:$step, DTypeOpt:$dtype, DeviceOpt:$device);
  let kwonly = "dtype";
  let meta = "arange_float";
  let pyName = "arange";
  let overload = 3;
  let samples = [Sample<"0, 1, 0.25", "np.arange(0, 1, 0.25, dtype=np.float32)">];
}
class ArangeRule<string mnemonicName, dag ps> : Dlc_Rule<mnemonicName> {
  let params = ps;
  let kwonly = "dtype"; let method = 0; let differentiable = 0; let kind = "creation";
  let pyName = "arange";
}
def Dlc_ArangeEndOp : ArangeRule<"arange_end", (ins SymInt<>:$end, DTypeOpt:$dtype, DeviceOpt:$device)> {
  let summary = "Numbers from 0 to before `end`.";
  let samples = [Sample<"5", "np.arange(5)">, Sample<"5, dtype=dlc.float32", "np.arange(5, dtype=np.float32)">];
}
def Dlc_ArangeFloatEndOp : ArangeRule<"arange_float_end", (ins Float<>:$end, DTypeOpt:$dtype, DeviceOpt:$device)> {
  let summary = "Numbers from 0 to before `end`.";
  let overload = 2;
  let samples = [Sample<"2.5", "np.arange(2.5, dtype=np.float32)">];
}
def Dlc_LinspaceOp : Creation<"linspace"> {
  let summary = "`steps` numbers from `start` to `end`, both included.";
  let params = (ins Num<>:$start, Num<>:$end, SymInt<>:$steps, DTypeOpt:$dtype, DeviceOpt:$device);
  let kwonly = "dtype";
  let meta = "linspace";
  let samples = [Sample<"0, 1, 5", "np.linspace(0, 1, 5, dtype=np.float32)">, Sample<"2, 3, 1", "np.array([2], np.float32)">];
}
def Dlc_EyeOp : Creation<"eye"> {
  let summary = "A matrix with ones on its diagonal.";
  let params = (ins SymInt<>:$n, SymIntOpt:$m, DTypeOpt:$dtype, DeviceOpt:$device);
  let kwonly = "dtype";
  let meta = "eye";
  let samples = [Sample<"3", "np.eye(3, dtype=np.float32)">, Sample<"2, 4", "np.eye(2, 4, dtype=np.float32)">];
}
class LikeRule<string mnemonicName> : Dlc_Rule<mnemonicName> {
  let params = (ins T:$self, DTypeOpt:$dtype, DeviceOpt:$device);
  let kwonly = "dtype"; let method = 0; let differentiable = 0; let kind = "creation";
}
def Dlc_FullLikeOp : Creation<"full_like"> {
  let summary = "A tensor of the shape, strides and dtype of `self`, filled with `fill_value`.";
  let params = (ins T:$self, Num<>:$fill_value, DTypeOpt:$dtype, DeviceOpt:$device);
  let kwonly = "dtype";
  let meta = "creation_like";
  let samples = [Sample<"S(2,3), 4", "np.full_like(self, 4)">];
}
def Dlc_EmptyLikeOp : Creation<"empty_like"> {
  let summary = "A tensor of the shape, strides and dtype of `self`, not initialised.";
  let params = (ins T:$self, DTypeOpt:$dtype, DeviceOpt:$device);
  let kwonly = "dtype";
  let meta = "creation_like";
  let noSample = "its values are undefined";
}
def Dlc_ZerosLikeOp : LikeRule<"zeros_like"> {
  let summary = "Zeros in the shape, strides and dtype of `self`.";
  let samples = [Sample<"S(2,3)", "np.zeros_like(self)">];
}
def Dlc_OnesLikeOp : LikeRule<"ones_like"> {
  let summary = "Ones in the shape, strides and dtype of `self`.";
  let samples = [Sample<"S(2,3)", "np.ones_like(self)">];
}

def Dlc_RandOp : Random<"rand"> {
  let summary = "Uniform numbers in [0, 1).";
  let params = (ins SymInts<>:$size, Rng:$generator, DTypeOpt:$dtype, DeviceOpt:$device);
  let kwonly = "generator"; let varargs = 1; let method = 0; let meta = "creation";
  let noSample = "random";
}
def Dlc_RandnOp : Random<"randn"> {
  let summary = "Normal numbers with mean 0 and variance 1.";
  let params = (ins SymInts<>:$size, Rng:$generator, DTypeOpt:$dtype, DeviceOpt:$device);
  let kwonly = "generator"; let varargs = 1; let method = 0; let meta = "creation";
  let noSample = "random";
}
def Dlc_RandintOp : Random<"randint"> {
  let summary = "Uniform integers from `low` to before `high`.";
  let params = (ins SymInt<>:$low, SymInt<>:$high, SymInts<>:$size, Rng:$generator, DTypeOpt:$dtype, DeviceOpt:$device);
  let kwonly = "generator"; let method = 0;
  let meta = "creation";
  let overload = 1;
  let noSample = "random";
}
def Dlc_RandintHighOp : Dlc_Rule<"randint_high"> {
  let summary = "Uniform integers from 0 to before `high`.";
  let params = (ins SymInt<>:$high, SymInts<>:$size, Rng:$generator, DTypeOpt:$dtype, DeviceOpt:$device);
  let kwonly = "generator"; let method = 0; let differentiable = 0; let kind = "creation";
  let pyName = "randint";
  let noSample = "random";
}
def Dlc_RandpermOp : Random<"randperm"> {
  let summary = "The integers below `n` in random order.";
  let params = (ins SymInt<>:$n, Rng:$generator, DTypeOpt:$dtype, DeviceOpt:$device);
  let kwonly = "generator"; let method = 0; let meta = "randperm";
  let noSample = "random";
}
class RandomLike<string mnemonicName> : Random<mnemonicName> {
  let params = (ins T:$self, Rng:$generator, DTypeOpt:$dtype, DeviceOpt:$device);
  let kwonly = "generator"; let method = 0; let meta = "creation_like";
  let noSample = "random";
}
def Dlc_RandLikeOp : RandomLike<"rand_like"> {
  let summary = "Uniform numbers in [0, 1), in the shape and dtype of `self`.";
}
def Dlc_RandnLikeOp : RandomLike<"randn_like"> {
  let summary = "Normal numbers, in the shape and dtype of `self`.";
}
def Dlc_BernoulliOp : Random<"bernoulli"> {
  let summary = "1 with the probability that each element gives, else 0.";
  let params = (ins T:$self, Rng:$generator);
  let kwonly = "generator";
  let dtypes = FloatTypes;
  let meta = "like_first";
  let differentiable = 1;
  let vjp = [Vjp<["self"], "zeros_like(g)">];
  let noSample = "random";
}
def Dlc_MultinomialOp : Random<"multinomial"> {
  let summary = "`num_samples` indices drawn by the weights of each row.";
  let params = (ins T:$self, SymInt<>:$num_samples, Bool<"False">:$replacement, Rng:$generator);
  let kwonly = "generator";
  let dtypes = FloatTypes;
  let noSample = "random";
}
class InplaceRandom<string mnemonicName> : Random<mnemonicName> {
  let function = 0; let method = 0; let inplace = 1;
  let meta = "like_first";
  let differentiable = 1;
  let noSample = "random";
}
def Dlc_UniformOp : InplaceRandom<"uniform"> {
  let summary = "Uniform numbers in [`from`, `to`), in the shape of `self`.";
  let params = (ins T:$self, Num<"0">:$from, Num<"1">:$to, Rng:$generator);
  let kwonly = "generator";
  let dtypes = FloatTypes;
  let vjp = [Vjp<["self"], "zeros_like(g)">];
}
def Dlc_NormalOp : InplaceRandom<"normal"> {
  let summary = "Normal numbers of the given mean and deviation, in the shape of `self`.";
  let params = (ins T:$self, Num<"0">:$mean, Num<"1">:$std, Rng:$generator);
  let kwonly = "generator";
  let dtypes = FloatTypes;
  let vjp = [Vjp<["self"], "zeros_like(g)">];
}
def Dlc_FillOp : Dlc_Op<"fill"> {
  let summary = "`value` everywhere, in the shape and dtype of `self`.";
  let params = (ins T:$self, TN:$value);
  let kind = "creation"; let meta = "fill"; let inplace = 1; let method = 0;
  let vjp = [Vjp<["self"], "zeros_like(g)">, Vjp<["value"], "sumToLike(g, metaOf(value))">];
  let samples = [Sample<"S(2,3), 3", "np.full_like(self, 3)">];
}
def Dlc_ZeroOp : Dlc_Rule<"zero"> {
  let summary = "Zeros in the shape of `self`: what `zero_` writes.";
  let params = (ins T:$self);
  let function = 0; let method = 0; let inplace = 1; let kind = "creation";
  let noSample = "Tensor.zero_ covers it";
}
