// Softmax, normalisation, losses, dropout, attention: composites that a kernel may claim whole, or that decompose.
include "OpBase.td"

class Nn<string mnemonicName> : Dlc_Op<mnemonicName> {
  let kind = "composite";
  let composite = 1;
  let dtypes = FloatTypes;
  let pyModule = "nn.functional";
  let method = 0;
}
class NnGradient<string mnemonicName> : Nn<mnemonicName> { let function = 0; }
class NnRule<string mnemonicName> : Dlc_Rule<mnemonicName> {
  let dtypes = FloatTypes;
  let pyModule = "nn.functional";
  let method = 0;
}

class SoftmaxLike<string mnemonicName> : Nn<mnemonicName> {
  let params = (ins T:$self, Int<>:$dim, DTypeOpt:$dtype);
  let kwonly = "dtype";
  let meta = "softmax";
  let pyModule = "";
  let method = 1;
  let traitsDlc = ["RowWise"];
}
def Dlc_SoftmaxOp : SoftmaxLike<"softmax"> {
  let summary = "exp(x) divided by its sum along `dim`.";
  let vjp = [Vjp<["self"], "softmax_backward(g, out, dim)">];
  let samples = [Sample<"S(3,4), 1", "ref.softmax(self, 1)">, Sample<"S(3,4), 0", "ref.softmax(self, 0)">];
}
def Dlc_LogSoftmaxOp : SoftmaxLike<"log_softmax"> {
  let summary = "The logarithm of softmax, accurate for small probabilities.";
  let vjp = [Vjp<["self"], "log_softmax_backward(g, out, dim)">];
  let samples = [Sample<"S(3,4), 1", "np.log(ref.softmax(self, 1))">];
}
class SoftmaxGradient<string mnemonicName> : NnGradient<mnemonicName> {
  let params = (ins T:$grad, T:$output, Int<>:$dim);
  let meta = "like_first";
  let traitsDlc = ["RowWise"];
}
def Dlc_SoftmaxBackwardOp : SoftmaxGradient<"softmax_backward"> {
  let summary = "The gradient of softmax, from its result.";
  let vjp = [Vjp<["grad"], "softmax_backward(g, output, dim)">, Vjp<["output"], "softmaxGradOutput(g, grad, output, dim)">];
  let noSample = "the gradient of softmax";
}
def Dlc_LogSoftmaxBackwardOp : SoftmaxGradient<"log_softmax_backward"> {
  let summary = "The gradient of log_softmax, from its result.";
  let vjp = [Vjp<["grad"], "g - sum(g * exp(output), dimList(dim), true)">,
             Vjp<["output"], "-(sum(grad, dimList(dim), true) * exp(output) * g)">];
  let noSample = "the gradient of log_softmax";
}

def Dlc_LayerNormOp : Nn<"layer_norm"> {
  let summary = "Normalises the last dimensions to mean 0 and variance 1, then scales and shifts.";
  let params = (ins T:$self, Ints<>:$normalized_shape, TOpt:$weight, TOpt:$bias, Float<"1e-5">:$eps);
  let returns = (outs O:$out, O:$mean, O:$rstd);
  let publicResults = 1;
  let traitsDlc = ["RowWise"];
  let vjp = [Vjp<["self", "weight", "bias"],
                 "layerNormGrad(g_out, self, normalized_shape, mean, rstd, weight, eps, needs[1], needs[2])">];
  let samples = [Sample<"S(3,4), (4,)", "ref.layer_norm(self, 1)">, Sample<"S(2,3,4), (3,4), S(3,4), S(3,4)", "ref.layer_norm(self, 2) * weight + bias">];
}
def Dlc_LayerNormBackwardOp : NnGradient<"layer_norm_backward"> {
  let summary = "The gradients of layer_norm for its input, weight and bias.";
  let params = (ins T:$grad, T:$self, Ints<>:$normalized_shape, T:$mean, T:$rstd, TOpt:$weight, Bool<>:$needs_weight, Bool<>:$needs_bias);
  let returns = (outs O:$grad_self, O:$grad_weight, O:$grad_bias);
  // Under create_graph its rule runs instead.
  let differentiable = 0;
  let noSample = "the gradient of layer_norm";
}
def Dlc_RmsNormOp : NnRule<"rms_norm"> {
  let summary = "Divides by the root of the mean square over the last dimensions, then scales.";
  let params = (ins T:$input, Ints<>:$normalized_shape, TOpt:$weight, FloatOpt:$eps);
  let samples = [Sample<"S(3,4), (4,), S(4), 1e-6", "input / np.sqrt(np.mean(input * input, -1, keepdims=True) + 1e-6) * weight">];
}
def Dlc_BatchNormOp : Nn<"batch_norm"> {
  let summary = "Normalises each channel over the batch, or by running statistics, which training updates.";
  let params = (ins T:$input, TOptMut:$running_mean, TOptMut:$running_var, TOpt:$weight, TOpt:$bias,
                Bool<"False">:$training, Num<"0.1">:$momentum, Float<"1e-5">:$eps);
  let returns = (outs O:$out, O:$mean, O:$rstd);
  let publicResults = 1;
  let vjp = [Vjp<["input", "weight", "bias"],
                 "batchNormGrad(g_out, input, mean, rstd, weight, training, eps, needs[1], needs[2])">];
  let samples = [Sample<"S(3,4), S(4), P(4)", "(input - running_mean) / np.sqrt(running_var + 1e-5)">,
                 Sample<"S(2,3,4,5), S(3), P(3), S(3), S(3), True, 0.1", "ref.batch_norm(input, weight, bias)">];
}
def Dlc_BatchNormBackwardOp : NnGradient<"batch_norm_backward"> {
  let summary = "The gradients of batch_norm for its input, weight and bias.";
  let params = (ins T:$grad, T:$input, T:$mean, T:$rstd, TOpt:$weight, Bool<>:$training, Bool<>:$needs_weight, Bool<>:$needs_bias);
  let returns = (outs O:$grad_input, O:$grad_weight, O:$grad_bias);
  // Under create_graph its rule runs instead.
  let differentiable = 0;
  let noSample = "the gradient of batch_norm";
}
def Dlc_DropoutOp : NnRule<"dropout"> {
  let summary = "Sets elements to 0 with probability `p` and scales the others by 1 / (1 - p), in training.";
  let params = (ins T:$input, Float<"0.5">:$p, Bool<"True">:$training);
  let samples = [Sample<"S(3,4), 0.5, False", "input">];
}
def Dlc_ScaledDotProductAttentionOp : NnRule<"scaled_dot_product_attention"> {
  let summary = "softmax(query @ key.T * scale + mask) @ value.";
  let params = (ins T:$query, T:$key, T:$value, TOpt:$attn_mask, Float<"0.0">:$dropout_p, Bool<"False">:$is_causal, FloatOpt:$scale, Bool<"False">:$enable_gqa);
  let kwonly = "scale";
  let samples = [Sample<"S(2,3,4), S(2,5,4), S(2,5,6)", "ref.attention(query, key, value)">,
                 Sample<"S(2,2,3,4), S(2,2,3,4), S(2,2,3,4), is_causal=True", "ref.attention(query, key, value, np.tril(np.ones((3,3), bool)))">,
                 Sample<"S(2,3,4), S(2,5,4), S(2,5,6), S(3,5), scale=0.3", "ref.attention(query, key, value, attn_mask, 0.3)">,
                 Sample<"S(2,4,3,4), S(2,2,5,4), S(2,2,5,6), enable_gqa=True", "ref.attention(query, np.repeat(key, 2, 1), np.repeat(value, 2, 1))">];
}
// In one pass: no tensor of queries x keys is made. Operands are (batch, heads, positions, features), with the heads of
// key and value dividing those of query; results have the heads after the positions, where the next layer wants them.
class AttentionLike<string mnemonicName> : Internal<mnemonicName> {
  let kind = "structured";
  let dtypes = FloatTypes;
}
def Dlc_AttentionOp : AttentionLike<"attention"> {
  let summary = "Attention over (batch, heads, positions, features), and the logarithms of its sums for the gradient.";
  // The products are multiplied by `scale`, or divided by it. A bool mask replaces scores by `fill` where it is False;
  // is_causal does so for keys after the query.
  let params = (ins T:$query, T:$key, T:$value, TOpt:$mask, Bool<>:$is_causal, Num<>:$scale, Bool<>:$divides, Num<>:$fill, Bool<>:$zero_empty);
  let returns = (outs O:$out, O:$lse);
  let publicResults = 1;
  let vjp = [Vjp<["query", "key", "value"], "attentionGrad(g_out, query, key, value, mask, out, lse, is_causal, scale, divides, fill, zero_empty)">,
             Vjp<["mask"], "attentionMaskGrad(g_out, query, key, value, *mask, is_causal, scale, divides, fill, zero_empty)">];
  let noSample = "scaled_dot_product_attention calls it";
}
def Dlc_AttentionBackwardOp : AttentionLike<"attention_backward"> {
  let summary = "The gradients of attention for query, key and value; their heads come after the positions.";
  // The scores' gradients are `grad_fill` where scores were replaced, and then multiplied by `grad_scale`.
  let params = (ins T:$grad, T:$query, T:$key, T:$value, TOpt:$mask, T:$out, T:$lse, Bool<>:$is_causal, Num<>:$scale, Bool<>:$divides, Num<>:$fill, Bool<>:$zero_empty,
                Num<>:$grad_scale, Num<>:$grad_fill);
  let returns = (outs O:$grad_query, O:$grad_key, O:$grad_value);
  // Under create_graph its rule runs instead.
  let differentiable = 0;
  let noSample = "the gradient of attention";
}

def Dlc_NllLossOp : Nn<"nll_loss"> {
  let summary = "The negative log likelihood of the classes `target`; also the total weight, for the gradient.";
  let params = (ins T:$self, T:$target, TOpt:$weight, Int<"-100">:$ignore_index, Enum<["mean", "sum", "none"], "mean">:$reduction);
  let returns = (outs O:$out, O:$total_weight);
  let publicResults = 1;
  let indexOperands = ["target"];
  let vjp = [Vjp<["self"], "nll_loss_backward(g_out, metaOf(self).dtype, sizesOf(self), target, weight, total_weight, ignore_index, reduction)">];
  let samples = [Sample<"S(4,3), I((4,), 3)", "-np.mean(self[np.arange(4), target])">,
                 Sample<"S(4,3), I((4,), 3), S(3), 1, 'sum'", "ref.nll_loss(self, target, weight, 1, 'sum')">,
                 Sample<"S(2,3,5), I((2,5), 3), reduction='none'", "-np.take_along_axis(self, target[:, None], 1)[:, 0]">];
}
def Dlc_NllLossBackwardOp : NnGradient<"nll_loss_backward"> {
  let summary = "The gradient of nll_loss.";
  let params = (ins T:$grad, DTypeA:$dtype, SymInts<>:$input_sizes, T:$target, TOpt:$weight, T:$total_weight, Int<>:$ignore_index, Enum<["mean", "sum", "none"]>:$reduction);
  let vjp = [Vjp<["grad"], "nllGradGrad(g, target, weight, total_weight, ignore_index, reduction)">];
  let noSample = "the gradient of nll_loss";
}
def Dlc_CrossEntropyOp : NnRule<"cross_entropy"> {
  let summary = "The loss of log_softmax against classes (integer `target`) or probabilities (float `target`).";
  let params = (ins T:$input, T:$target, TOpt:$weight, Int<"-100">:$ignore_index, Enum<["mean", "sum", "none"], "mean">:$reduction, Float<"0.0">:$label_smoothing);
  let samples = [Sample<"S(4,3), I((4,), 3)", "ref.cross_entropy(input, target)">,
                 Sample<"S(4,3), I((4,), 3), label_smoothing=0.1, reduction='sum'", "ref.cross_entropy(input, target, 0.1, 'sum')">,
                 Sample<"S(4,3), P(4,3)", "-np.mean(np.sum(target * np.log(ref.softmax(input, 1)), 1))">];
}
class Loss<string mnemonicName> : NnRule<mnemonicName> {
  let params = (ins T:$input, T:$target, Enum<["mean", "sum", "none"], "mean">:$reduction);
}
def Dlc_MseLossOp : Loss<"mse_loss"> {
  let summary = "The squared difference, reduced.";
  let samples = [Sample<"S(3,4), S(3,4)", "np.mean((input - target) ** 2)">, Sample<"S(3,4), S(3,4), 'none'", "(input - target) ** 2">];
}
def Dlc_L1LossOp : Loss<"l1_loss"> {
  let summary = "The absolute difference, reduced.";
  let samples = [Sample<"S(3,4), S(3,4)", "np.mean(np.abs(input - target))">];
}
def Dlc_SmoothL1LossOp : NnRule<"smooth_l1_loss"> {
  let summary = "The squared difference below `beta`, the absolute one above, reduced.";
  let params = (ins T:$input, T:$target, Enum<["mean", "sum", "none"], "mean">:$reduction, Float<"1.0">:$beta);
  let samples = [Sample<"S(3,4), S(3,4)", "ref.smooth_l1(input, target)">];
}
def Dlc_BinaryCrossEntropyOp : NnRule<"binary_cross_entropy"> {
  let summary = "The loss of probabilities against targets in [0, 1]; logarithms are limited to -100.";
  let params = (ins T:$input, T:$target, TOpt:$weight, Enum<["mean", "sum", "none"], "mean">:$reduction);
  let samples = [Sample<"S(3,4), S(3,4)", "-np.mean(target * np.log(input) + (1 - target) * np.log(1 - input))", "0.1,0.9">];
}
def Dlc_BinaryCrossEntropyWithLogitsOp : NnRule<"binary_cross_entropy_with_logits"> {
  let summary = "The loss of sigmoid(input) against targets in [0, 1], without overflow.";
  let params = (ins T:$input, T:$target, TOpt:$weight, Enum<["mean", "sum", "none"], "mean">:$reduction, TOpt:$pos_weight);
  let samples = [Sample<"S(3,4), S(3,4)", "np.mean(np.log1p(np.exp(input)) - target * input)", "0.1,0.9">];
}
