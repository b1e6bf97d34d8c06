// Activation functions.
include "OpBase.td"

class Activation<string mnemonicName> : Ew<mnemonicName> {
  let pyModule = "nn.functional";
  let method = 0;
  let inplace = 0;
  let out = 0;
  let dtypes = FloatTypes;
}
def Dlc_ReluOp : Ew<"relu"> {
  let summary = "The larger of each element and 0; NaN stays NaN.";
  let params = (ins T:$self);
  let scalar = (relu_ $self);
  let dtypes = NumberTypes;
  let vjp = [Vjp<["self"], "where(out <= 0, 0, g)">];
  let samples = [Sample<"S(3,4)", "np.maximum(self, 0)">];
}
def Dlc_SigmoidOp : FloatUnary<"sigmoid", (sigmoid_ $self), "sigmoid_backward(g, out)"> {
  let summary = "The logistic function, 1 / (1 + exp(-x)).";
  let samples = [Sample<"S(3,4)", "1 / (1 + np.exp(-self))">];
}
def Dlc_GeluOp : Activation<"gelu"> {
  let summary = "The Gaussian error linear unit: x times the normal distribution's probability below x.";
  let params = (ins T:$self, Enum<["none", "tanh"], "none">:$approximate);
  let scalar = (case_ $approximate, "none", (gelu_erf_ $self), "tanh", (gelu_tanh_ $self));
  let vjp = [Vjp<["self"], "gelu_backward(g, self, approximate)">];
  let samples = [Sample<"S(3,4)", "ref.gelu(self)">, Sample<"S(3,4), approximate='tanh'", "ref.gelu_tanh(self)">];
}
def Dlc_GeluBackwardOp : Activation<"gelu_backward"> {
  let summary = "The gradient of gelu.";
  let params = (ins T:$grad, T:$self, Enum<["none", "tanh"], "none">:$approximate);
  let scalar = (case_ $approximate,
    "none", (mul_ $grad, (add_
      (mul_ (const_ "0.5"), (add_ (const_ "1"), (erf_ (mul_ $self, (const_ "0.70710678118654752440"))))),
      (mul_ (mul_ $self, (const_ "0.39894228040143267794")), (exp_ (mul_ (mul_ $self, $self), (const_ "-0.5")))))),
    "tanh", (mul_ $grad, (add_
      (mul_ (const_ "0.5"), (add_ (const_ "1"), (tanh_ (mul_ (const_ "0.79788456080286535588"),
        (add_ $self, (mul_ (const_ "0.044715"), (mul_ $self, (mul_ $self, $self)))))))),
      (mul_ (mul_ (mul_ $self, (const_ "0.5")),
        (sub_ (const_ "1"), (mul_
          (tanh_ (mul_ (const_ "0.79788456080286535588"),
            (add_ $self, (mul_ (const_ "0.044715"), (mul_ $self, (mul_ $self, $self)))))),
          (tanh_ (mul_ (const_ "0.79788456080286535588"),
            (add_ $self, (mul_ (const_ "0.044715"), (mul_ $self, (mul_ $self, $self))))))))),
        (mul_ (const_ "0.79788456080286535588"),
          (add_ (const_ "1"), (mul_ (const_ "0.134145"), (mul_ $self, $self))))))));
  let function = 0;
  let vjp = [Vjp<["grad"], "gelu_backward(g, self, approximate)">,
             Vjp<["self"], "geluGradGrad(g, grad, self, approximate)">];
  let noSample = "the gradient of gelu";
}
def Dlc_SiluOp : Activation<"silu"> {
  let summary = "x * sigmoid(x), also called swish.";
  let params = (ins T:$self);
  let scalar = (silu_ $self);
  let vjp = [Vjp<["self"], "silu_backward(g, self)">];
  let samples = [Sample<"S(3,4)", "self / (1 + np.exp(-self))">];
}
def Dlc_SiluBackwardOp : Activation<"silu_backward"> {
  let summary = "The gradient of silu.";
  let params = (ins T:$grad, T:$self);
  let scalar = (mul_ $grad, (mul_ (sigmoid_ $self),
    (add_ (const_ "1"), (mul_ $self, (sub_ (const_ "1"), (sigmoid_ $self))))));
  let function = 0;
  let vjp = [Vjp<["grad"], "silu_backward(g, self)">, Vjp<["self"], "siluGradGrad(g, grad, self)">];
  let noSample = "the gradient of silu";
}
def Dlc_LeakyReluOp : Activation<"leaky_relu"> {
  let summary = "x, or `negative_slope * x` where x is negative.";
  let params = (ins T:$self, Num<"0.01">:$negative_slope);
  let scalar = (leaky_relu_ $self, $negative_slope);
  let vjp = [Vjp<["self"], "where(self > 0, g, g * negative_slope)">];
  let samples = [Sample<"S(3,4)", "np.where(self > 0, self, 0.01 * self)">, Sample<"S(3,4), 0.2", "np.where(self > 0, self, 0.2 * self)">];
}
def Dlc_EluOp : Activation<"elu"> {
  let summary = "x, or `alpha * (exp(x) - 1)` where x is negative.";
  let params = (ins T:$self, Num<"1.0">:$alpha);
  let scalar = (elu_ $self, $alpha);
  let vjp = [Vjp<["self"], "where(self > 0, g, g * (exp(self) * alpha))">];
  let samples = [Sample<"S(3,4), alpha=1.5", "np.where(self > 0, self, 1.5 * np.expm1(np.minimum(self, 0)))">];
}
def Dlc_SoftplusOp : Activation<"softplus"> {
  let summary = "log(1 + exp(`beta` * x)) / `beta`; x itself where `beta` * x is above `threshold`.";
  let params = (ins T:$self, Num<"1">:$beta, Num<"20">:$threshold);
  let scalar = (softplus_ $self, $beta, $threshold);
  let vjp = [Vjp<["self"], "where(self * beta > threshold, g, g * sigmoid(self * beta))">];
  let samples = [Sample<"S(3,4)", "np.log1p(np.exp(self))">, Sample<"S(3,4), beta=2, threshold=3", "np.where(2 * self > 3, self, np.log1p(np.exp(2 * self)) / 2)">];
}
def Dlc_HardtanhOp : Activation<"hardtanh"> {
  let summary = "Limits each element to [`min_val`, `max_val`].";
  let params = (ins T:$self, Num<"-1.0">:$min_val, Num<"1.0">:$max_val);
  let scalar = (hardtanh_ $self, $min_val, $max_val);
  let dtypes = NumberTypes;
  let vjp = [Vjp<["self"], "where(logical_and(self > min_val, self < max_val), g, 0)">];
  let samples = [Sample<"S(3,4)", "np.clip(self, -1, 1)">];
}
def Dlc_HardsigmoidOp : Activation<"hardsigmoid"> {
  let summary = "A piecewise linear sigmoid: (x + 3) / 6, limited to [0, 1].";
  let params = (ins T:$self);
  let scalar = (hardsigmoid_ $self);
  let vjp = [Vjp<["self"], "where(logical_and(self > -3, self < 3), g / 6, 0)">];
  let samples = [Sample<"S(3,4)", "np.clip(self + 3, 0, 6) / 6", "-5,5">];
}
def Dlc_HardswishOp : Activation<"hardswish"> {
  let summary = "x times hardsigmoid(x).";
  let params = (ins T:$self);
  let scalar = (hardswish_ $self);
  let vjp = [Vjp<["self"], "where(self <= -3, 0, where(self < 3, g * (self / 3 + 0.5), g))">];
  let samples = [Sample<"S(3,4)", "self * np.clip(self + 3, 0, 6) / 6", "-5,5">];
}
def Dlc_MishOp : Activation<"mish"> {
  let summary = "x * tanh(softplus(x)).";
  let params = (ins T:$self);
  let scalar = (mish_ $self);
  let vjp = [Vjp<["self"], "mishGrad(g, self)">];
  let samples = [Sample<"S(3,4)", "self * np.tanh(np.log1p(np.exp(self)))">];
}
def Dlc_LogsigmoidOp : Activation<"logsigmoid"> {
  let summary = "log(sigmoid(x)), accurate for large negative x.";
  let params = (ins T:$self);
  let scalar = (log_sigmoid_ $self);
  let vjp = [Vjp<["self"], "g * sigmoid(-self)">];
  let samples = [Sample<"S(3,4)", "-np.log1p(np.exp(-self))">];
}
