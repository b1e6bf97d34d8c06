// Matrix products, convolution, pooling.
include "OpBase.td"

class Contraction<string mnemonicName> : Dlc_Op<mnemonicName> {
  let kind = "contraction";
  let dtypes = NumberTypes;
}
def Dlc_MmOp : Contraction<"mm"> {
  let summary = "The product of two matrices.";
  let params = (ins T:$self, T:$mat2);
  let out = 1;
  let traitsDlc = ["RowWise"];
  let vjp = [Vjp<["self"], "mm(g, t(mat2))">, Vjp<["mat2"], "rightFactorGrad(self, mat2, g)">];
  let samples = [Sample<"S(3,4), S(4,5)", "self @ mat2">, Sample<"S(3,0), S(0,5)", "self @ mat2">];
}
def Dlc_BmmOp : Contraction<"bmm"> {
  let summary = "The products of two batches of matrices.";
  let params = (ins T:$self, T:$mat2);
  let out = 1;
  let vjp = [Vjp<["self"], "bmm(g, transpose(mat2, 1, 2))">, Vjp<["mat2"], "bmm(transpose(self, 1, 2), g)">];
  let samples = [Sample<"S(2,3,4), S(2,4,5)", "self @ mat2">];
}
def Dlc_AddmmOp : Contraction<"addmm"> {
  let summary = "`beta * self + alpha * (mat1 @ mat2)`; with beta 0, self is not read.";
  let params = (ins T:$self, T:$mat1, T:$mat2, Num<"1">:$beta, Num<"1">:$alpha);
  let kwonly = "beta";
  let composite = 1;
  let traitsDlc = ["RowWise"];
  let vjp = [Vjp<["self"], "sumToLike(scaled(g, beta), metaOf(self))">, Vjp<["mat1"], "scaled(mm(g, t(mat2)), alpha)">,
             Vjp<["mat2"], "scaled(rightFactorGrad(mat1, mat2, g), alpha)">];
  let samples = [Sample<"S(5), S(3,4), S(4,5)", "self + mat1 @ mat2">, Sample<"S(3,5), S(3,4), S(4,5), beta=2, alpha=3", "2 * self + 3 * (mat1 @ mat2)">];
}
def Dlc_BaddbmmOp : Contraction<"baddbmm"> {
  let summary = "`beta * self + alpha * bmm(batch1, batch2)`; with beta 0, self is not read.";
  let params = (ins T:$self, T:$batch1, T:$batch2, Num<"1">:$beta, Num<"1">:$alpha);
  let kwonly = "beta";
  let composite = 1;
  let vjp = [Vjp<["self"], "sumToLike(scaled(g, beta), metaOf(self))">,
             Vjp<["batch1"], "scaled(bmm(g, transpose(batch2, 1, 2)), alpha)">,
             Vjp<["batch2"], "scaled(bmm(transpose(batch1, 1, 2), g), alpha)">];
  let samples = [Sample<"S(3,5), S(2,3,4), S(2,4,5)", "self + batch1 @ batch2">];
}
def Dlc_MatmulOp : Dlc_Rule<"matmul"> {
  let summary = "The matrix product with PyTorch's rules for vectors and batches.";
  let params = (ins T:$self, T:$other);
  let operator = "matmul";
  let dtypes = NumberTypes;
  let samples = [Sample<"S(3,4), S(4,5)", "self @ other">, Sample<"S(4), S(4)", "self @ other">, Sample<"S(3,4), S(4)", "self @ other">,
                 Sample<"S(4), S(4,5)", "self @ other">, Sample<"S(2,3,4), S(4,5)", "self @ other">, Sample<"S(2,1,3,4), S(5,4,2)", "self @ other">];
}
def Dlc_MvOp : Dlc_Rule<"mv"> {
  let summary = "The product of a matrix and a vector.";
  let params = (ins T:$self, T:$vec);
  let dtypes = NumberTypes;
  let samples = [Sample<"S(3,4), S(4)", "self @ vec">];
}
def Dlc_DotOp : Dlc_Rule<"dot"> {
  let summary = "The sum of the products of two vectors.";
  let params = (ins T:$self, T:$tensor);
  let dtypes = NumberTypes;
  let samples = [Sample<"S(4), S(4)", "self @ tensor">];
}
def Dlc_OuterOp : Dlc_Rule<"outer"> {
  let summary = "All products of the elements of two vectors.";
  let params = (ins T:$self, T:$vec2);
  let samples = [Sample<"S(3), S(4)", "np.outer(self, vec2)">];
}
def Dlc_LinearOp : Dlc_Rule<"linear"> {
  let summary = "`input @ weight.T + bias`.";
  let params = (ins T:$input, T:$weight, TOpt:$bias);
  let pyModule = "nn.functional";
  let method = 0;
  let dtypes = NumberTypes;
  let samples = [Sample<"S(3,4), S(5,4)", "input @ weight.T">, Sample<"S(2,3,4), S(5,4), S(5)", "input @ weight.T + bias">, Sample<"S(4), S(5,4), S(5)", "input @ weight.T + bias">];
}
def Dlc_EinsumOp : Dlc_Rule<"einsum"> {
  let summary = "Sums of products by Einstein's notation.";
  let params = (ins Str<>:$equation, TList:$operands);
  let method = 0;
  let varargs = 1;
  let dtypes = NumberTypes;
  let samples = [Sample<"'bij,bjk->bik', [S(2,3,4), S(2,4,5)]", "np.einsum('bij,bjk->bik', *operands)">,
                 Sample<"'ii->i', [S(3,3)]", "np.einsum('ii->i', *operands)">, Sample<"'i,j->', [S(3), S(4)]", "np.einsum('i,j->', *operands)">,
                 Sample<"'...ij,kj->...ik', [S(2,3,4), S(5,4)]", "np.einsum('...ij,kj->...ik', *operands)">];
}

class Structured<string mnemonicName> : Dlc_Op<mnemonicName> {
  let kind = "structured";
  let pyModule = "nn.functional";
  let method = 0;
  let dtypes = FloatTypes;
}
class StructuredGradient<string mnemonicName> : Structured<mnemonicName> {
  let function = 0;
}
def Dlc_Conv2dOp : Structured<"conv2d"> {
  let summary = "Two-dimensional convolution of (N, C, H, W) or (C, H, W) by (out, C / groups, kh, kw).";
  let params = (ins T:$input, T:$weight, TOpt:$bias, Ints<"1", 2>:$stride, Ints<"0", 2>:$padding, Ints<"1", 2>:$dilation, Int<"1">:$groups);
  let vjp = [Vjp<["input"], "conv2d_backward_input(g, weight, sizesOf(input), stride, padding, dilation, groups)">,
             Vjp<["weight"], "conv2d_backward_weight(g, input, sizesOf(weight), stride, padding, dilation, groups)">,
             Vjp<["bias"], "convBiasGrad(g)">];
  let samples = [Sample<"S(2,3,6,5), S(4,3,3,3)", "ref.conv2d(input, weight)">,
                 Sample<"S(2,4,7,6), S(6,2,3,2), S(6), (2,1), (1,0), (1,2), 2", "ref.conv2d(input, weight, bias, (2,1), (1,0), (1,2), 2)">];
}
def Dlc_Conv2dPaddingOp : Dlc_Rule<"conv2d_padding"> {
  let summary = "Convolution padded so that the output has the size of the input (`same`), or not at all (`valid`).";
  let params = (ins T:$input, T:$weight, TOpt:$bias, Ints<"1", 2>:$stride, Enum<["valid", "same"], "valid">:$padding, Ints<"1", 2>:$dilation, Int<"1">:$groups);
  let pyName = "conv2d";
  let overload = 1;
  let pyModule = "nn.functional";
  let method = 0;
  let dtypes = FloatTypes;
  let samples = [Sample<"S(2,3,6,5), S(4,3,3,3), padding='same'", "ref.conv2d(input, weight, padding=(1,1))">];
}
def Dlc_Conv2dBackwardInputOp : StructuredGradient<"conv2d_backward_input"> {
  let summary = "The gradient of conv2d with respect to its input.";
  let params = (ins T:$grad, T:$weight, SymInts<>:$input_sizes, Ints<>:$stride, Ints<>:$padding, Ints<>:$dilation, Int<>:$groups);
  let vjp = [Vjp<["grad"], "conv2d(g, weight, nullptr, stride, padding, dilation, groups)">,
             Vjp<["weight"], "conv2d_backward_weight(grad, g, sizesOf(weight), stride, padding, dilation, groups)">];
  let noSample = "the gradient of conv2d";
}
def Dlc_Conv2dBackwardWeightOp : StructuredGradient<"conv2d_backward_weight"> {
  let summary = "The gradient of conv2d with respect to its weight.";
  let params = (ins T:$grad, T:$input, SymInts<>:$weight_sizes, Ints<>:$stride, Ints<>:$padding, Ints<>:$dilation, Int<>:$groups);
  let vjp = [Vjp<["grad"], "conv2d(input, g, nullptr, stride, padding, dilation, groups)">,
             Vjp<["input"], "conv2d_backward_input(grad, g, sizesOf(input), stride, padding, dilation, groups)">];
  let noSample = "the gradient of conv2d";
}
// What the compiler makes of a convolution of f32: its weight packed, which depends on nothing else and so is done
// once; and what follows it (a normalisation by known statistics, a sum, an activation) in the same pass.
def Dlc_Conv2dPackOp : StructuredGradient<"conv2d_pack"> {
  let summary = "A convolution's weight in the order in which conv2d_packed reads it.";
  let params = (ins T:$weight, Int<>:$groups, Bool<>:$planar);
  let dtypes = ["f32"];
  let differentiable = 0;
  let noSample = "made by the compiler, covered by compiled convolutions";
}
def Dlc_Conv2dPackedOp : StructuredGradient<"conv2d_packed"> {
  let summary = "`activation(conv2d * scale + shift + residual)` from a packed weight; `planar` as it was packed.";
  let params = (ins T:$input, T:$packed, TOpt:$scale, TOpt:$shift, TOpt:$residual, Ints<>:$weight_sizes, Ints<>:$stride,
                Ints<>:$padding, Ints<>:$dilation, Int<>:$groups, Bool<>:$planar,
                Enum<["none", "relu", "relu6", "hardswish", "hardsigmoid"]>:$activation);
  let dtypes = ["f32"];
  let differentiable = 0;
  let noSample = "made by the compiler, covered by compiled convolutions";
}
def Dlc_MaxPool2dValuesOp : StructuredGradient<"max_pool2d_values"> {
  let summary = "max_pool2d without the indices.";
  let params = (ins T:$input, Ints<>:$kernel_size, IntsOptN<2>:$stride, Ints<>:$padding, Ints<>:$dilation, Bool<>:$ceil_mode);
  let differentiable = 0;
  let noSample = "made by the compiler, covered by compiled pooling";
}
def Dlc_MaxPool2dOp : Structured<"max_pool2d"> {
  let summary = "The largest element of each window; NaN wins. Also its index within the plane, for the gradient.";
  let params = (ins T:$input, Ints<"", 2>:$kernel_size, IntsOptN<2>:$stride, Ints<"0", 2>:$padding, Ints<"1", 2>:$dilation, Bool<"False">:$ceil_mode);
  let returns = (outs O:$out, O:$indices);
  let publicResults = 1;
  let meta = "max_pool2d";
  let vjp = [Vjp<["input"], "max_pool2d_backward(g_out, indices, sizesOf(input))">];
  let samples = [Sample<"S(2,3,6,5), 2", "ref.max_pool2d(input, 2)">, Sample<"S(2,3,7,7), 3, 2, 1, 1, True", "ref.max_pool2d(input, 3, 2, 1, 1, True)">];
}
def Dlc_MaxPool2dBackwardOp : StructuredGradient<"max_pool2d_backward"> {
  let summary = "Adds gradients back to where max_pool2d took its elements from.";
  let params = (ins T:$grad, T:$indices, SymInts<>:$input_sizes);
  let vjp = [Vjp<["grad"], "maxPoolGradGrad(g, indices)">];
  let noSample = "the gradient of max_pool2d";
}
def Dlc_AvgPool2dOp : Structured<"avg_pool2d"> {
  let summary = "The mean of each window.";
  let params = (ins T:$input, Ints<"", 2>:$kernel_size, IntsOptN<2>:$stride, Ints<"0", 2>:$padding, Bool<"False">:$ceil_mode, Bool<"True">:$count_include_pad, IntOpt:$divisor_override);
  let vjp = [Vjp<["input"], "avg_pool2d_backward(g, sizesOf(input), kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)">];
  let samples = [Sample<"S(2,3,6,5), 2", "ref.avg_pool2d(input, 2)">, Sample<"S(2,3,7,7), 3, 2, 1, False, False", "ref.avg_pool2d(input, 3, 2, 1, False, False)">];
}
def Dlc_AvgPool2dBackwardOp : StructuredGradient<"avg_pool2d_backward"> {
  let summary = "The gradient of avg_pool2d.";
  let params = (ins T:$grad, SymInts<>:$input_sizes, Ints<>:$kernel_size, IntsOptN<2>:$stride, Ints<>:$padding, Bool<>:$ceil_mode, Bool<>:$count_include_pad, IntOpt:$divisor_override);
  let vjp = [Vjp<["grad"], "avg_pool2d(g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)">];
  let noSample = "the gradient of avg_pool2d";
}
def Dlc_AdaptiveAvgPool2dOp : Structured<"adaptive_avg_pool2d"> {
  let summary = "Means of windows chosen so that the output has `output_size`.";
  let params = (ins T:$input, SymInts<>:$output_size);
  let vjp = [Vjp<["input"], "adaptive_avg_pool2d_backward(g, sizesOf(input))">];
  let samples = [Sample<"S(2,3,6,5), (1,1)", "np.mean(input, axis=(2,3), keepdims=True)">, Sample<"S(2,3,7,5), (3,2)", "ref.adaptive_avg_pool2d(input, (3,2))">];
}
def Dlc_AdaptiveAvgPool2dBackwardOp : StructuredGradient<"adaptive_avg_pool2d_backward"> {
  let summary = "The gradient of adaptive_avg_pool2d.";
  let params = (ins T:$grad, SymInts<>:$input_sizes);
  let vjp = [Vjp<["grad"], "adaptive_avg_pool2d(g, lastTwo(sizesOf(grad)))">];
  let noSample = "the gradient of adaptive_avg_pool2d";
}
