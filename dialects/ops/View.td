// Views, ops that move elements, joining and splitting.
include "OpBase.td"

def Dlc_ViewOp : View<"view"> {
  let summary = "The same elements with another shape, without a copy; at most one size may be -1.";
  let params = (ins T:$self, SymInts<>:$size);
  let varargs = 1;
  let function = 0;
  let vjp = [Vjp<["self"], "reshape(g, sizesOf(self))">];
  let samples = [Sample<"S(3,4), (2,-1)", "self.reshape(2,-1)">];
}
def Dlc_ReshapeOp : Dlc_Rule<"reshape"> {
  let summary = "The same elements with another shape; a view where strides allow, else a copy.";
  let params = (ins T:$self, SymInts<>:$shape);
  let varargs = 1;
  let samples = [Sample<"S(3,4), (2,-1)", "self.reshape(2,-1)">, Sample<"S(0,4), (2,0)", "self.reshape(2,0)">];
}
def Dlc_TransposeOp : View<"transpose"> {
  let summary = "Swaps two dimensions.";
  let params = (ins T:$self, Int<>:$dim0, Int<>:$dim1);
  let vjp = [Vjp<["self"], "transpose(g, dim0, dim1)">];
  let samples = [Sample<"S(2,3,4), 0, -1", "np.swapaxes(self, 0, -1)">];
}
def Dlc_TOp : Dlc_Rule<"t"> {
  let summary = "Transposes a matrix; vectors and scalars stay.";
  let params = (ins T:$self);
  let samples = [Sample<"S(3,4)", "self.T">];
}
def Dlc_PermuteOp : View<"permute"> {
  let summary = "Puts the dimensions in the order `dims`.";
  let params = (ins T:$self, Ints<>:$dims);
  let varargs = 1;
  let vjp = [Vjp<["self"], "permute(g, inversePermutation(dims))">];
  let samples = [Sample<"S(2,3,4), (2,0,-2)", "np.transpose(self, (2,0,1))">];
}
def Dlc_MovedimOp : Dlc_Rule<"movedim"> {
  let summary = "Moves dimensions to other positions.";
  let params = (ins T:$self, Ints<"", 1>:$source, Ints<"", 1>:$destination);
  let samples = [Sample<"S(2,3,4), 0, -1", "np.moveaxis(self, 0, -1)">];
}
def Dlc_ExpandOp : View<"expand"> {
  let summary = "Repeats dimensions of size 1 without a copy; -1 keeps a size.";
  let params = (ins T:$self, SymInts<>:$size);
  let varargs = 1;
  let function = 0;
  let vjp = [Vjp<["self"], "sumToLike(g, metaOf(self))">];
  let samples = [Sample<"S(3,1), (2,-1,4)", "np.broadcast_to(self, (2,3,4))">];
}
def Dlc_BroadcastToOp : Dlc_Rule<"broadcast_to"> {
  let summary = "As expand.";
  let params = (ins T:$self, SymInts<>:$size);
  let samples = [Sample<"S(3,1), (3,4)", "np.broadcast_to(self, (3,4))">];
}
def Dlc_ExpandAsOp : Dlc_Rule<"expand_as"> {
  let summary = "Expands to the shape of `other`.";
  let params = (ins T:$self, T:$other);
  let function = 0;
  let samples = [Sample<"S(3,1), S(3,4)", "np.broadcast_to(self, (3,4))">];
}
def Dlc_ViewAsOp : Dlc_Rule<"view_as"> {
  let summary = "A view with the shape of `other`.";
  let params = (ins T:$self, T:$other);
  let function = 0;
  let samples = [Sample<"S(3,4), S(12)", "self.reshape(12)">];
}
def Dlc_SqueezeOp : View<"squeeze"> {
  let summary = "Drops dimensions of size 1: those in `dim`, or all.";
  let params = (ins T:$self, IntsOpt:$dim);
  let vjp = [Vjp<["self"], "reshape(g, sizesOf(self))">];
  let samples = [Sample<"S(3,1,4,1)", "self.squeeze()">, Sample<"S(3,1,4,1), 1", "self.squeeze(1)">, Sample<"S(3,1), 0", "self">];
}
def Dlc_UnsqueezeOp : View<"unsqueeze"> {
  let summary = "Inserts a dimension of size 1 at `dim`.";
  let params = (ins T:$self, Int<>:$dim);
  let vjp = [Vjp<["self"], "squeeze(g, dimList(dim))">];
  let samples = [Sample<"S(3,4), -2", "self[:, None]">];
}
def Dlc_SelectOp : View<"select"> {
  let summary = "The slice at `index` along `dim`, without that dimension.";
  let params = (ins T:$self, Int<>:$dim, SymInt<>:$index);
  let vjp = [Vjp<["self"], "select_scatter(zerosOf(g, metaOf(self)), g, dim, index)">];
  let samples = [Sample<"S(3,4), 1, -1", "self[:, -1]">];
}
def Dlc_SliceOp : View<"slice"> {
  let summary = "Elements `start` to `end` in steps of `step` along `dim`; bounds are clamped.";
  let params = (ins T:$self, Int<"0">:$dim, SymIntOpt:$start, SymIntOpt:$end, SymInt<"1">:$step);
  let function = 0;
  let method = 0;
  let vjp = [Vjp<["self"], "slice_scatter(zerosOf(g, metaOf(self)), g, dim, start, end, step)">];
  let noSample = "Tensor.__getitem__ covers it";
}
def Dlc_NarrowOp : Dlc_Rule<"narrow"> {
  let summary = "`length` elements from `start` along `dim`.";
  let params = (ins T:$self, Int<>:$dim, SymInt<>:$start, SymInt<>:$length);
  let samples = [Sample<"S(3,4), 1, 1, 2", "self[:, 1:3]">];
}
def Dlc_FlattenOp : Dlc_Rule<"flatten"> {
  let summary = "Joins the dimensions from `start_dim` to `end_dim` into one.";
  let params = (ins T:$self, Int<"0">:$start_dim, Int<"-1">:$end_dim);
  let samples = [Sample<"S(2,3,4), 1", "self.reshape(2, 12)">, Sample<"S()", "self.reshape(1)">];
}
def Dlc_UnflattenOp : Dlc_Rule<"unflatten"> {
  let summary = "Splits one dimension into several.";
  let params = (ins T:$self, Int<>:$dim, SymInts<>:$sizes);
  let samples = [Sample<"S(2,6), 1, (3,-1)", "self.reshape(2,3,2)">];
}
def Dlc_UnfoldOp : View<"unfold"> {
  let summary = "Windows of `size` elements, `step` apart, along `dimension`; the window is a new last dimension.";
  let params = (ins T:$self, Int<>:$dimension, SymInt<>:$size, SymInt<>:$step);
  let function = 0;
  let vjp = [Vjp<["self"], "unfold_backward(g, sizesOf(self), dimension, size, step)">];
  let samples = [Sample<"S(3,7), 1, 3, 2", "np.lib.stride_tricks.sliding_window_view(self, 3, 1)[:, ::2]">];
}
def Dlc_AsStridedOp : View<"as_strided"> {
  let summary = "A view of self's storage with given sizes, strides and offset.";
  let params = (ins T:$self, SymInts<>:$size, SymInts<>:$stride, SymIntOpt:$storage_offset);
  let vjp = [Vjp<["self"], "as_strided_backward(g, sizesOf(self), size, stride, storage_offset)">];
  let samples = [Sample<"S(12), (3,2), (1,4), 2", "np.lib.stride_tricks.as_strided(self[2:], (3,2), (self.itemsize, 4 * self.itemsize))">];
}
def Dlc_DiagonalOp : View<"diagonal"> {
  let summary = "The diagonal of two dimensions, as a new last dimension.";
  let params = (ins T:$self, Int<"0">:$offset, Int<"0">:$dim1, Int<"1">:$dim2);
  let vjp = [Vjp<["self"], "diagonal_scatter(zerosOf(g, metaOf(self)), g, offset, dim1, dim2)">];
  let samples = [Sample<"S(3,4)", "np.diagonal(self)">, Sample<"S(2,3,4), 1, 0, 2", "np.diagonal(self, 1, 0, 2)">];
}
def Dlc_DetachOp : View<"detach"> {
  let summary = "A view that no gradient flows through.";
  let params = (ins T:$self);
  let differentiable = 0;
  let samples = [Sample<"S(3,4)", "self">];
}

class Move<string mnemonicName> : Dlc_Op<mnemonicName> { let kind = "structured"; }
def Dlc_CloneOp : Move<"clone"> {
  let summary = "A copy; `memory_format` chooses its strides.";
  let params = (ins T:$self, Enum<["preserve_format", "contiguous_format", "channels_last"], "preserve_format">:$memory_format);
  let kwonly = "memory_format";
  let vjp = [Vjp<["self"], "g">];
  let samples = [Sample<"S(3,4)", "self.copy()">];
}
def Dlc_ContiguousOp : Dlc_Rule<"contiguous"> {
  let summary = "self if it is laid out in `memory_format` already, else a copy that is.";
  let params = (ins T:$self, Enum<["contiguous_format", "channels_last"], "contiguous_format">:$memory_format);
  let kwonly = "memory_format";
  let function = 0;
  let samples = [Sample<"S(3,4)", "self">];
}
def Dlc_CopyOp : Move<"copy"> {
  let summary = "`src`, broadcast to the shape of `self` and converted to its dtype: what `copy_` writes.";
  let params = (ins T:$self, T:$src, Bool<"False">:$non_blocking);
  let function = 0; let method = 0; let inplace = 1;
  let vjp = [Vjp<["self"], "zeros_like(g)">, Vjp<["src"], "sumToLike(g, metaOf(src))">];
  let noSample = "Tensor.copy_ covers it";
}
def Dlc_FlipOp : Move<"flip"> {
  let summary = "Reverses the order of elements along `dims`.";
  let params = (ins T:$self, Ints<"", 1>:$dims);
  let varargs = 1;
  let vjp = [Vjp<["self"], "flip(g, dims)">];
  let samples = [Sample<"S(3,4), (0,-1)", "np.flip(self, (0,1))">];
}
def Dlc_RollOp : Dlc_Rule<"roll"> {
  let summary = "Rotates elements along `dims`; without `dims`, over the flattened tensor.";
  let params = (ins T:$self, SymInts<>:$shifts, Ints<"()", 1>:$dims);
  let samples = [Sample<"S(3,4), (1,), (1,)", "np.roll(self, 1, 1)">];
}
def Dlc_RepeatOp : Dlc_Rule<"repeat"> {
  let summary = "Repeats the tensor along each dimension.";
  let params = (ins T:$self, SymInts<>:$repeats);
  let varargs = 1;
  let function = 0;
  let samples = [Sample<"S(3,4), (2,1,3)", "np.tile(self, (2,1,3))">];
}
def Dlc_TrilOp : Move<"tril"> {
  let summary = "The lower triangle: zero above the diagonal.";
  let params = (ins T:$self, Int<"0">:$diagonal);
  let meta = "triangle";
  let vjp = [Vjp<["self"], "tril(g, diagonal)">];
  let samples = [Sample<"S(3,4)", "np.tril(self)">, Sample<"S(2,3,3), 1", "np.tril(self, 1)">];
}
def Dlc_TriuOp : Move<"triu"> {
  let summary = "The upper triangle: zero below the diagonal.";
  let params = (ins T:$self, Int<"0">:$diagonal);
  let meta = "triangle";
  let vjp = [Vjp<["self"], "triu(g, diagonal)">];
  let samples = [Sample<"S(3,4), -1", "np.triu(self, -1)">];
}
def Dlc_PadOp : Move<"pad"> {
  let summary = "Pads the last dimensions: `pad` lists pairs (before, after), last dimension first; negative pads crop.";
  let params = (ins T:$self, SymInts<>:$pad, Enum<["constant", "reflect", "replicate", "circular"], "constant">:$mode, NumOpt:$value);
  let pyModule = "nn.functional";
  let method = 0;
  let vjp = [Vjp<["self"], "pad_backward(g, sizesOf(self), pad, mode)">];
  let samples = [Sample<"S(3,4), (1,2)", "np.pad(self, ((0,0),(1,2)))">, Sample<"S(3,4), (1,0,0,2), 'constant', 3", "np.pad(self, ((0,2),(1,0)), constant_values=3)">,
                 Sample<"S(2,3,4), (2,1), 'reflect'", "np.pad(self, ((0,0),(0,0),(2,1)), mode='reflect')">,
                 Sample<"S(2,3,4), (2,1), 'replicate'", "np.pad(self, ((0,0),(0,0),(2,1)), mode='edge')">,
                 Sample<"S(2,3,4), (2,1), 'circular'", "np.pad(self, ((0,0),(0,0),(2,1)), mode='wrap')">];
}
class PartReplacement<string mnemonicName> : Move<mnemonicName> { let traitsDlc = ["Idempotent"]; }
def Dlc_SliceScatterOp : PartReplacement<"slice_scatter"> {
  let summary = "`self` with `src` in place of a slice.";
  let params = (ins T:$self, T:$src, Int<"0">:$dim, SymIntOpt:$start, SymIntOpt:$end, SymInt<"1">:$step);
  let vjp = [Vjp<["self"], "slice_scatter(g, zerosOf(g, metaOf(src)), dim, start, end, step)">,
             Vjp<["src"], "sumToLike(slice(g, dim, start, end, step), metaOf(src))">];
  let samples = [Sample<"S(3,6), S(3,2), 1, 1, 5, 2", "ref.slice_scatter(self, src, 1, 1, 5, 2)">];
}
def Dlc_SelectScatterOp : PartReplacement<"select_scatter"> {
  let summary = "`self` with `src` in place of the slice at `index` along `dim`.";
  let params = (ins T:$self, T:$src, Int<>:$dim, SymInt<>:$index);
  let vjp = [Vjp<["self"], "select_scatter(g, zerosOf(g, metaOf(src)), dim, index)">,
             Vjp<["src"], "sumToLike(select(g, dim, index), metaOf(src))">];
  let samples = [Sample<"S(3,4), S(3), 1, -1", "ref.select_scatter(self, src, 1, -1)">];
}
def Dlc_DiagonalScatterOp : PartReplacement<"diagonal_scatter"> {
  let summary = "`self` with `src` in place of a diagonal.";
  let params = (ins T:$self, T:$src, Int<"0">:$offset, Int<"0">:$dim1, Int<"1">:$dim2);
  let vjp = [Vjp<["self"], "diagonal_scatter(g, zerosOf(g, metaOf(src)), offset, dim1, dim2)">,
             Vjp<["src"], "diagonal(g, offset, dim1, dim2)">];
  let samples = [Sample<"S(3,4), S(3)", "ref.diagonal_scatter(self, src, 0, 0, 1)">];
}
def Dlc_AsStridedScatterOp : PartReplacement<"as_strided_scatter"> {
  let summary = "`self` with `src` in place of the elements that as_strided would view; self counts as row-major.";
  let params = (ins T:$self, T:$src, SymInts<>:$size, SymInts<>:$stride, SymIntOpt:$storage_offset);
  let vjp = [Vjp<["self"], "as_strided_scatter(g, zerosOf(g, metaOf(src)), size, stride, storage_offset)">,
             Vjp<["src"], "as_strided(contiguous(g), size, stride, storage_offset)">];
  let samples = [Sample<"S(12), S(3,2), (3,2), (1,4), 2", "ref.as_strided_scatter(self, src, (3,2), (1,4), 2)">];
}
def Dlc_CatOp : Move<"cat"> {
  let summary = "Joins tensors along `dim`.";
  let params = (ins TList:$tensors, Int<"0">:$dim);
  let method = 0;
  let out = 1;
  let vjp = [Vjp<["tensors"], "catGrad(g, tensors, dim, needs)">];
  let samples = [Sample<"[S(3,4), S(2,4)]", "np.concatenate(tensors)">, Sample<"[S(3,4), S(3,1), S(3,2)], -1", "np.concatenate(tensors, -1)">];
}
def Dlc_StackOp : Dlc_Rule<"stack"> {
  let summary = "Joins tensors along a new dimension `dim`.";
  let params = (ins TList:$tensors, Int<"0">:$dim);
  let method = 0;
  let samples = [Sample<"[S(3,4), S(3,4)], 1", "np.stack(tensors, 1)">];
}
def Dlc_SplitOp : Dlc_Rule<"split"> {
  let summary = "Views of `split_size` elements each along `dim`; the last may be shorter.";
  let params = (ins T:$self, SymInt<>:$split_size, Int<"0">:$dim);
  let returns = (outs OList:$out);
  let meta = "split";
  let samples = [Sample<"S(5,4), 2", "(self[:2], self[2:4], self[4:])">];
}
def Dlc_SplitWithSizesOp : Dlc_Rule<"split_with_sizes"> {
  let summary = "Views of the given sizes along `dim`.";
  let params = (ins T:$self, SymInts<>:$split_sizes, Int<"0">:$dim);
  let returns = (outs OList:$out);
  let meta = "split_with_sizes";
  let pyName = "split";
  let overload = 1;
  let samples = [Sample<"S(5,4), [3,2]", "(self[:3], self[3:])">];
}
def Dlc_ChunkOp : Dlc_Rule<"chunk"> {
  let summary = "Splits into at most `chunks` views of equal size along `dim`.";
  let params = (ins T:$self, Int<>:$chunks, Int<"0">:$dim);
  let returns = (outs OList:$out);
  let meta = "chunk";
  let samples = [Sample<"S(5,4), 2", "(self[:3], self[3:])">];
}
def Dlc_UnbindOp : Dlc_Rule<"unbind"> {
  let summary = "All slices along `dim`.";
  let params = (ins T:$self, Int<"0">:$dim);
  let returns = (outs OList:$out);
  let meta = "unbind";
  let samples = [Sample<"S(3,4), 1", "tuple(self[:, i] for i in range(4))">];
}

class MoveGradient<string mnemonicName> : Internal<mnemonicName> { let kind = "structured"; }
def Dlc_UnfoldBackwardOp : MoveGradient<"unfold_backward"> {
  let summary = "Adds windows back to where unfold took them from.";
  let params = (ins T:$grad, SymInts<>:$input_sizes, Int<>:$dim, SymInt<>:$size, SymInt<>:$step);
  let vjp = [Vjp<["grad"], "unfold(g, dim, size, step)">];
  let noSample = "the gradient of unfold";
}
def Dlc_AsStridedBackwardOp : MoveGradient<"as_strided_backward"> {
  let summary = "Adds elements back to where as_strided read them, in a row-major tensor.";
  let params = (ins T:$grad, SymInts<>:$input_sizes, SymInts<>:$size, SymInts<>:$stride, SymIntOpt:$storage_offset);
  let vjp = [Vjp<["grad"], "as_strided(contiguous(g), size, stride, storage_offset)">];
  let noSample = "the gradient of as_strided";
}
def Dlc_PadBackwardOp : MoveGradient<"pad_backward"> {
  let summary = "The gradient of pad.";
  let params = (ins T:$grad, SymInts<>:$input_sizes, SymInts<>:$pad, Str<>:$mode);
  let vjp = [Vjp<["grad"], "dlc::ops::pad(g, pad, mode)">];
  let noSample = "the gradient of pad";
}
