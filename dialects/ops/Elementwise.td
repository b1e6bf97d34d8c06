// Arithmetic and transcendental functions, rounding, minimum and maximum, and the gradients that are kernels of their own.
include "OpBase.td"

def Dlc_AddOp : Binary<"add", (add_ $self, (mul_ $alpha, $other)), "g", "scaled(g, alpha)"> {
  let summary = "Adds `other`, scaled by `alpha`, to `self`, with broadcasting.";
  let params = (ins T:$self, TN:$other, Num<"1">:$alpha);
  let kwonly = "alpha";
  let operator = "add";
  let traitsDlc = ["Commutative"];
  let samples = [Sample<"S(3,4), S(4), alpha=2", "self + alpha * other">, Sample<"S(2,3), S(2,1)", "self + other">,
                 Sample<"S(5), 2", "self + 2">];
}
def Dlc_SubOp : Binary<"sub", (sub_ $self, (mul_ $alpha, $other)), "g", "-scaled(g, alpha)"> {
  let summary = "Subtracts `other`, scaled by `alpha`, from `self`.";
  let params = (ins T:$self, TN:$other, Num<"1">:$alpha);
  let kwonly = "alpha";
  let operator = "sub";
  let dtypes = NumberTypes;
  let samples = [Sample<"S(3,4), S(4), alpha=2", "self - alpha * other">, Sample<"S(3,1), S(4)", "self - other">];
}
def Dlc_RsubOp : Dlc_Rule<"rsub"> {
  let summary = "Subtracts `self`, scaled by `alpha`, from `other`.";
  let params = (ins T:$self, TN:$other, Num<"1">:$alpha);
  let kwonly = "alpha";
  let dtypes = NumberTypes;
  let samples = [Sample<"S(3,4), 2.0", "2.0 - self">];
}
def Dlc_MulOp : Binary<"mul", (mul_ $self, $other), "g * other", "g * self"> {
  let summary = "Multiplies `self` by `other`, with broadcasting.";
  let operator = "mul";
  let traitsDlc = ["Commutative", "Associative"];
  let samples = [Sample<"S(3,4), S(4)", "self * other">, Sample<"S(3), 3", "self * 3">];
}
def Dlc_DivOp : Binary<"div", (case_ $rounding_mode, "None", (div_ $self, $other), "floor", (floor_div_ $self, $other),
                                     "trunc", (trunc_div_ $self, $other)),
                       "divGradSelf(g, other, rounding_mode)", "divGradOther(g, self, other, rounding_mode)"> {
  let summary = "Divides `self` by `other`; `rounding_mode` rounds the quotient towards zero or down.";
  let params = (ins T:$self, TN:$other, EnumOpt<["floor", "trunc"]>:$rounding_mode);
  let kwonly = "rounding_mode";
  let operator = "truediv";
  let meta = "div";
  let arithCases = ["floor", "trunc"];
  let promotion = PromoteToFloat;
  let samples = [Sample<"S(3,4), P(4)", "self / other">, Sample<"S(3,4), P(4), rounding_mode='floor'", "ref.floor_divide(self, other)">,
                 Sample<"S(3,4), P(4), rounding_mode='trunc'", "ref.trunc_divide(self, other)">];
}
def Dlc_FloorDivideOp : Ew<"floor_divide"> {
  let summary = "Divides and rounds down, as Python's `//`.";
  let params = (ins T:$self, TN:$other);
  let scalar = (floor_div_ $self, $other);
  let operator = "floordiv";
  let differentiable = 0;
  let dtypes = NumberTypes;
  let samples = [Sample<"S(3,4), P(4)", "ref.floor_divide(self, other)">];
}
def Dlc_RemainderOp : Binary<"remainder", (remainder_ $self, $other), "g",
                             "-(g * div(self, other, \"floor\"))"> {
  let summary = "The remainder of a division rounded down: the sign is that of `other`, as Python's `%`.";
  let operator = "mod";
  let dtypes = NumberTypes;
  let samples = [Sample<"S(3,4), P(4)", "np.remainder(self, other)">];
}
def Dlc_FmodOp : Binary<"fmod", (fmod_ $self, $other), "g", "-(g * div(self, other, \"trunc\"))"> {
  let summary = "The remainder of a division rounded towards zero: the sign is that of `self`.";
  let dtypes = NumberTypes;
  let samples = [Sample<"S(3,4), P(4)", "np.fmod(self, other)">];
}
def Dlc_PowOp : Ew<"pow"> {
  let summary = "Raises `self` to the power `exponent`.";
  let params = (ins TN:$self, TN:$exponent);
  let scalar = (pow_ $self, $exponent);
  let operator = "pow";
  let dtypes = NumberTypes;
  let meta = "pow";
  let vjp = [Vjp<["self"], "powGradSelf(g, self, exponent)">, Vjp<["exponent"], "powGradExponent(g, self, exponent, out)">];
  let samples = [Sample<"P(3,4), S(4)", "ref.pow(self, exponent)">, Sample<"S(3,4), 2", "self ** 2">, Sample<"S(3,4), 3", "self ** 3">];
}
def Dlc_NegOp : Unary<"neg", (neg_ $self), "-g"> {
  let summary = "The negative of each element.";
  let operator = "neg";
  let dtypes = NumberTypes;
  let samples = [Sample<"S(3,4)", "-self">];
}
def Dlc_AbsOp : Unary<"abs", (abs_ $self), "g * sign(self)"> {
  let summary = "The absolute value of each element.";
  let operator = "abs";
  let dtypes = NumberTypes;
  let samples = [Sample<"S(3,4)", "np.abs(self)">];
}
def Dlc_SignOp : Unary<"sign", (sign_ $self), "zeros_like(g)"> {
  let summary = "-1, 0 or 1, by the sign of each element; NaN stays NaN.";
  let samples = [Sample<"S(3,4)", "np.sign(self)">];
}
def Dlc_ReciprocalOp : FloatUnary<"reciprocal", (reciprocal_ $self), "-(g * (out * out))"> {
  let summary = "One divided by each element.";
  let samples = [Sample<"P(3,4)", "1 / self">];
}
def Dlc_SquareOp : Unary<"square", (square_ $self), "g * (self * 2)"> {
  let summary = "The square of each element.";
  let dtypes = NumberTypes;
  let samples = [Sample<"S(3,4)", "self * self">];
}
def Dlc_SqrtOp : FloatUnary<"sqrt", (sqrt_ $self), "g / (out * 2)"> {
  let summary = "The square root of each element.";
  let samples = [Sample<"P(3,4)", "np.sqrt(self)">];
}
def Dlc_RsqrtOp : FloatUnary<"rsqrt", (rsqrt_ $self), "g * (out * out * out) * -0.5"> {
  let summary = "One divided by the square root of each element.";
  let samples = [Sample<"P(3,4)", "1 / np.sqrt(self)">];
}
def Dlc_ExpOp : FloatUnary<"exp", (exp_ $self), "g * out"> {
  let summary = "The exponential function.";
  let samples = [Sample<"S(3,4)", "np.exp(self)">];
}
def Dlc_Exp2Op : FloatUnary<"exp2", (exp2_ $self), "g * out * 0.69314718055994530942"> {
  let summary = "Two to the power of each element.";
  let samples = [Sample<"S(3,4)", "np.exp2(self)">];
}
def Dlc_Expm1Op : FloatUnary<"expm1", (expm1_ $self), "g * (out + 1)"> {
  let summary = "exp(x) - 1, accurate near 0.";
  let samples = [Sample<"S(3,4)", "np.expm1(self)">];
}
def Dlc_LogOp : FloatUnary<"log", (log_ $self), "g / self"> {
  let summary = "The natural logarithm.";
  let samples = [Sample<"P(3,4)", "np.log(self)">];
}
def Dlc_Log2Op : FloatUnary<"log2", (log2_ $self), "g / (self * 0.69314718055994530942)"> {
  let summary = "The logarithm to base 2.";
  let samples = [Sample<"P(3,4)", "np.log2(self)">];
}
def Dlc_Log10Op : FloatUnary<"log10", (log10_ $self), "g / (self * 2.3025850929940456840)"> {
  let summary = "The logarithm to base 10.";
  let samples = [Sample<"P(3,4)", "np.log10(self)">];
}
def Dlc_Log1pOp : FloatUnary<"log1p", (log1p_ $self), "g / (self + 1)"> {
  let summary = "log(1 + x), accurate near 0.";
  let samples = [Sample<"P(3,4)", "np.log1p(self)">];
}
def Dlc_SinOp : FloatUnary<"sin", (sin_ $self), "g * cos(self)"> {
  let summary = "The sine of each element, in radians.";
  let samples = [Sample<"S(3,4)", "np.sin(self)">];
}
def Dlc_CosOp : FloatUnary<"cos", (cos_ $self), "-(g * sin(self))"> {
  let summary = "The cosine of each element, in radians.";
  let samples = [Sample<"S(3,4)", "np.cos(self)">];
}
def Dlc_TanOp : FloatUnary<"tan", (tan_ $self), "g * (out * out + 1)"> {
  let summary = "The tangent of each element, in radians.";
  let samples = [Sample<"S(3,4)", "np.tan(self)", "-1,1">];
}
def Dlc_AsinOp : FloatUnary<"asin", (asin_ $self), "g * rsqrt(1 - self * self)"> {
  let summary = "The arc sine of each element.";
  let samples = [Sample<"S(3,4)", "np.arcsin(self)", "-0.9,0.9">];
}
def Dlc_AcosOp : FloatUnary<"acos", (acos_ $self), "-(g * rsqrt(1 - self * self))"> {
  let summary = "The arc cosine of each element.";
  let samples = [Sample<"S(3,4)", "np.arccos(self)", "-0.9,0.9">];
}
def Dlc_AtanOp : FloatUnary<"atan", (atan_ $self), "g / (self * self + 1)"> {
  let summary = "The arc tangent of each element.";
  let samples = [Sample<"S(3,4)", "np.arctan(self)">];
}
def Dlc_Atan2Op : Binary<"atan2", (atan2_ $self, $other), "atan2Grad(g, self, other, other)",
                         "-atan2Grad(g, self, other, self)"> {
  let summary = "The angle of the point (`other`, `self`), from -pi to pi.";
  let params = (ins T:$self, T:$other);
  let promotion = PromoteToFloat;
  let samples = [Sample<"S(3,4), S(4)", "np.arctan2(self, other)">];
}
def Dlc_SinhOp : FloatUnary<"sinh", (sinh_ $self), "g * cosh(self)"> {
  let summary = "The hyperbolic sine.";
  let samples = [Sample<"S(3,4)", "np.sinh(self)">];
}
def Dlc_CoshOp : FloatUnary<"cosh", (cosh_ $self), "g * sinh(self)"> {
  let summary = "The hyperbolic cosine.";
  let samples = [Sample<"S(3,4)", "np.cosh(self)">];
}
def Dlc_TanhOp : FloatUnary<"tanh", (tanh_ $self), "tanh_backward(g, out)"> {
  let summary = "The hyperbolic tangent.";
  let samples = [Sample<"S(3,4)", "np.tanh(self)">];
}
def Dlc_ErfOp : FloatUnary<"erf", (erf_ $self), "g * exp(-(self * self)) * 1.1283791670955125739"> {
  let summary = "The error function.";
  let samples = [Sample<"S(3,4)", "ref.erf(self)">];
}
def Dlc_FloorOp : Unary<"floor", (floor_ $self), "zeros_like(g)"> {
  let summary = "The largest integer not above each element.";
  let dtypes = NumberTypes;
  let samples = [Sample<"S(3,4)", "np.floor(self)">];
}
def Dlc_CeilOp : Unary<"ceil", (ceil_ $self), "zeros_like(g)"> {
  let summary = "The smallest integer not below each element.";
  let dtypes = NumberTypes;
  let samples = [Sample<"S(3,4)", "np.ceil(self)">];
}
def Dlc_RoundOp : Unary<"round", (round_ $self), "zeros_like(g)"> {
  let summary = "The nearest integer; halves go to the even one.";
  let dtypes = NumberTypes;
  let samples = [Sample<"S(3,4)", "np.round(self)">];
}
def Dlc_TruncOp : Unary<"trunc", (trunc_ $self), "zeros_like(g)"> {
  let summary = "Drops the fraction of each element.";
  let dtypes = NumberTypes;
  let samples = [Sample<"S(3,4)", "np.trunc(self)">];
}
def Dlc_ClampOp : Ew<"clamp"> {
  let summary = "Limits each element to [`min`, `max`]; NaN stays NaN.";
  let params = (ins T:$self, TNOpt:$min, TNOpt:$max);
  let scalar = (given_ $max, (min_ (given_ $min, (max_ $self, $min), $self), $max),
                             (given_ $min, (max_ $self, $min), $self));
  let dtypes = NumberTypes;
  let meta = "clamp";
  let vjp = [Vjp<["self", "min", "max"], "clampGrad(g, self, min, max, needs)">];
  let samples = [Sample<"S(3,4), -1, 1", "np.clip(self, -1, 1)">, Sample<"S(3,4), min=0", "np.maximum(self, 0)">,
                 Sample<"S(3,4), max=S(4)", "np.minimum(self, max)">];
}
def Dlc_ClampMinOp : Ew<"clamp_min"> {
  let summary = "Limits each element from below.";
  let params = (ins T:$self, TN:$min);
  let scalar = (max_ $self, $min);
  let dtypes = NumberTypes;
  let vjp = [Vjp<["self"], "where(self >= min, g, 0)">, Vjp<["min"], "where(self < min, g, 0)">];
  let samples = [Sample<"S(3,4), 0.5", "np.maximum(self, 0.5)">];
}
def Dlc_ClampMaxOp : Ew<"clamp_max"> {
  let summary = "Limits each element from above.";
  let params = (ins T:$self, TN:$max);
  let scalar = (min_ $self, $max);
  let dtypes = NumberTypes;
  let vjp = [Vjp<["self"], "where(self <= max, g, 0)">, Vjp<["max"], "where(self > max, g, 0)">];
  let samples = [Sample<"S(3,4), 0.5", "np.minimum(self, 0.5)">];
}
def Dlc_MinimumOp : Binary<"minimum", (min_ $self, $other), "extremumGrad(g, self, other, self > other)",
                           "extremumGrad(g, self, other, self < other)"> {
  let summary = "The smaller of two elements; NaN if either is NaN.";
  let params = (ins T:$self, T:$other);
  let traitsDlc = ["Commutative", "Associative", "Idempotent"];
  let samples = [Sample<"S(3,4), S(4)", "np.minimum(self, other)">];
}
def Dlc_MaximumOp : Binary<"maximum", (max_ $self, $other), "extremumGrad(g, self, other, self < other)",
                           "extremumGrad(g, self, other, self > other)"> {
  let summary = "The larger of two elements; NaN if either is NaN.";
  let params = (ins T:$self, T:$other);
  let traitsDlc = ["Commutative", "Associative", "Idempotent"];
  let samples = [Sample<"S(3,4), S(4)", "np.maximum(self, other)">];
}
def Dlc_LerpOp : Ew<"lerp"> {
  let summary = "`self + weight * (end - self)`.";
  let params = (ins T:$self, T:$end, TN:$weight);
  let scalar = (lerp_ $self, $end, $weight);
  let dtypes = FloatTypes;
  let vjp = [Vjp<["self"], "g - g * weight">, Vjp<["end"], "g * weight">, Vjp<["weight"], "g * (end - self)">];
  let samples = [Sample<"S(3,4), S(4), 0.25", "self + 0.25 * (end - self)">, Sample<"S(3,4), S(4), S(3,1)", "self + weight * (end - self)">];
}
def Dlc_AddcmulOp : Dlc_Rule<"addcmul"> {
  let summary = "`self + value * tensor1 * tensor2`.";
  let params = (ins T:$self, T:$tensor1, T:$tensor2, Num<"1">:$value);
  let kwonly = "value";
  let inplace = 1;
  let samples = [Sample<"S(3,4), S(4), S(3,1), value=2", "self + 2 * tensor1 * tensor2">];
}
def Dlc_AddcdivOp : Dlc_Rule<"addcdiv"> {
  let summary = "`self + value * tensor1 / tensor2`.";
  let params = (ins T:$self, T:$tensor1, T:$tensor2, Num<"1">:$value);
  let kwonly = "value";
  let inplace = 1;
  let dtypes = FloatTypes;
  let samples = [Sample<"S(3,4), S(4), P(3,1), value=0.5", "self + 0.5 * tensor1 / tensor2">];
}

def Dlc_WhereOp : Ew<"where"> {
  let summary = "Elements of `self` where `condition` holds, of `other` elsewhere.";
  let params = (ins T:$condition, TN:$self, TN:$other);
  let scalar = (select_ $condition, $self, $other);
  let boolOperands = ["condition"];
  let inplace = 0;
  let method = 0;
  let meta = "where";
  let vjp = [Vjp<["self"], "where(condition, g, 0)">, Vjp<["other"], "where(condition, 0, g)">];
  let samples = [Sample<"B(3,4), S(3,4), S(4)", "np.where(condition, self, other)">, Sample<"B(3,4), S(3,1), 0", "np.where(condition, self, 0)">];
}
def Dlc_MaskedFillOp : Ew<"masked_fill"> {
  let summary = "`value` where `mask` holds, else the element of `self`; keeps the dtype of `self`.";
  let params = (ins T:$self, T:$mask, TN:$value);
  let scalar = (select_ $mask, $value, $self);
  let boolOperands = ["mask"];
  let promotion = PromoteNone;
  let meta = "masked_fill";
  let vjp = [Vjp<["self"], "masked_fill(g, mask, 0)">, Vjp<["value"], "where(mask, g, 0)">];
  let samples = [Sample<"S(3,4), B(4), 2", "np.where(mask, 2, self)">];
}
def Dlc_CastOp : Dlc_Op<"cast"> {
  let summary = "Converts to another dtype. Floats become integers by truncation, modulo the integer's width.";
  let params = (ins T:$self, DTypeA:$dtype);
  let kind = "elementwise";
  let function = 0;
  let method = 0;
  let vjp = [Vjp<["self"], "cast(g, dtypeOf(self))">];
  let noSample = "Tensor.to covers it";
}
def Dlc_NanToNumOp : Dlc_Rule<"nan_to_num"> {
  let summary = "Replaces NaN and infinities by numbers.";
  let params = (ins T:$self, NumOpt:$nan, NumOpt:$posinf, NumOpt:$neginf);
  let samples = [Sample<"S(3,4), 0.0", "np.nan_to_num(self)">];
}

// Gradients that eager code runs often enough to want one pass over memory.
def Dlc_TanhBackwardOp : Ew<"tanh_backward"> {
  let summary = "The gradient of tanh, from its result.";
  let params = (ins T:$grad, T:$output);
  let scalar = (mul_ $grad, (sub_ (const_ "1"), (mul_ $output, $output)));
  let function = 0; let method = 0; let inplace = 0; let out = 0;
  let dtypes = FloatTypes;
  let vjp = [Vjp<["grad"], "tanh_backward(g, output)">, Vjp<["output"], "g * grad * output * -2">];
  let noSample = "the gradient of tanh";
}
def Dlc_SigmoidBackwardOp : Ew<"sigmoid_backward"> {
  let summary = "The gradient of sigmoid, from its result.";
  let params = (ins T:$grad, T:$output);
  let scalar = (mul_ $grad, (mul_ $output, (sub_ (const_ "1"), $output)));
  let function = 0; let method = 0; let inplace = 0; let out = 0;
  let dtypes = FloatTypes;
  let vjp = [Vjp<["grad"], "sigmoid_backward(g, output)">, Vjp<["output"], "g * grad * (1 - output * 2)">];
  let noSample = "the gradient of sigmoid";
}
