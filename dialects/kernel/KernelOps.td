// The `kernel` dialect: how a fused group of tensor ops is computed. Produced by compiler/fusion, consumed by
// compiler/lower (CPU) and compiler/cuda. Target-neutral: what a target may choose sits in the schedule attribute.
//
// A kernel is a list of *stages* over one named *domain*:
//
//   kernel.func @softmax(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?x?xf32, strided<[?, 1]>>,
//                        %R: index, %C: index, %err: memref<i64>)
//       domain(r = %R, c = %C) outs(%y) {
//     %m = kernel.reduce over(r, c) by(c) combine [max] : !kernel.val<f32, [r]> {
//       %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
//       kernel.yield %0 : f32
//     }
//     %e = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
//       %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
//       %1 = kernel.use %m : !kernel.val<f32, [r]> -> f32
//       %2 = arith.subf %0, %1 : f32
//       %3 = kernel.prim "exp"(%2) : (f32) -> f32
//       kernel.yield %3 : f32
//     }
//     %s = kernel.reduce over(r, c) by(c) combine [add] : !kernel.val<f32, [r]> { ... yield use %e ... }
//     %o = kernel.map over(r, c) : !kernel.val<f32, [r, c]> { ... use %e / use %s ... }
//     kernel.write %o, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
//   }
//
// Rules a producer keeps (the verifiers check those they can see):
// - Arguments: memrefs (inputs and outputs, offset 0: the pointer is the first element), `index` sizes, i64 and f64
//   scalars, and last the error slot `memref<i64>`. A memref's dynamic strides are inputs of the kernel, its dynamic
//   sizes are not: whoever needs a size (bounds of a gather) passes it as an index argument. Stride 0 is legal.
// - Binary interface: `void f(void *const *bufs, const int64_t *ints)`. bufs: one pointer a memref, in argument order.
//   ints: walking the arguments in order, one value for each dynamic stride of a memref and one for each index, i64 or
//   f64 (bit-cast) argument; after them begin and end of the parallel range (see #kernel.schedule).
// - A domain dim has a name and a size: an index argument or a constant. The domain has any number of dims, also none.
// - A stage is a value, not memory. Maps are evaluated where they are used; the schedule decides what is kept.
// - In the affine_map of a read, dims are the stage's `over` dims in order and symbols are the operands in
//   parentheses: index arguments, or scalars computed in the region (then the access is a gather). `bound` says what
//   happens to the map results listed in it: `check` sets the error slot if out of range (and reads nothing), `wrap`
//   adds the size to a negative index, then checks; `clamp` clamps; `pad` gives the pad value and never forms the
//   address. In the map of a write, dims are the dims of the value, symbols may also be `!kernel.val` operands
//   (a scatter).
// - Memory of bool is i8 with 0 or 1: a read of an i8 memref may have result i1 (tests != 0), a write of an i1 value
//   goes to an i8 memref (stores 0 or 1). There are no memrefs of i1. Unsigned u8 is i8; the op chosen carries the sign.
// - kernel.prim names and semantics are those of runtime/scalar; the unit attribute `unsigned` says that i8 operands
//   are u8. A prim may set the error slot (integer division by zero).
// - f16 and bf16 scalars may be used with arith ops and prims: each op computes in f32 and rounds once. Accumulate in
//   f32: convert with arith.extf before the reduction and arith.truncf after it.
// - Combines: max and min let NaN win; argmax and argmin give the i64 position counted over the `by` dims in order
//   (first index wins ties, NaN wins); or/and on i1 or integers; maxu/minu on unsigned. Identities are built in.
// - A reduction's kept dims must come before its `by` dims in the loop order (`order`, or the order kernel-schedule
//   finds); a kernel in which no order does that for all reductions is refused, so that every accumulator is a register.
// - kernel.contract sums the products of two scalars, each from a region of its own, over the `by` dims. What the regions
//   vary with says what a dim is: `by` dims are k; of the others, those that only lhs varies with are m (rows), only rhs
//   n (columns), both batch. A matrix product has m = (m), n = (n), k = (k); a convolution over channels-last memory has
//   m = (b, oh, ow), n = (oc), k = (kh, kw, ic), with a padded read in lhs. Reads in either region use all `over` dims.
//   A packed operand is a read whose map has `floordiv` and `mod` of a column: (k, n) -> (n floordiv 32, k, n mod 32).
//   The sum is made in the result's type: f32 of f32, f16 or bf16 scalars (converted in the regions, with arith.extf),
//   i32 of i8 or i32 ones, f64 of f64. Stages that use it are its epilogue: they are evaluated on the tile of sums.
// - A buffer that is both read and written must be read and written through the same map (in place).
#ifndef DLC_DIALECTS_KERNEL_KERNELOPS_TD
#define DLC_DIALECTS_KERNEL_KERNELOPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let summary = "Fused scalar regions over a named iteration domain, with a schedule";
  let cppNamespace = "::dlc::ir::kernel";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===--- Types and attributes ---===//

def Kernel_Val : TypeDef<Kernel_Dialect, "Val"> {
  let mnemonic = "val";
  let summary = "A stage's value: one scalar for each point of the listed dims";
  let parameters = (ins "::mlir::Type":$elementType, ArrayRefParameter<"::mlir::StringAttr">:$dims);
  let hasCustomAssemblyFormat = 1;
}

def Kernel_Combine : I32EnumAttr<"Combine", "how a reduction joins two values", [
  I32EnumAttrCase<"add", 0>, I32EnumAttrCase<"mul", 1>, I32EnumAttrCase<"min", 2>, I32EnumAttrCase<"max", 3>,
  I32EnumAttrCase<"minu", 4>, I32EnumAttrCase<"maxu", 5>, I32EnumAttrCase<"andi", 6, "and">,
  I32EnumAttrCase<"ori", 7, "or">, I32EnumAttrCase<"argmin", 8>, I32EnumAttrCase<"argmax", 9>]> {
  let cppNamespace = "::dlc::ir::kernel";
  let genSpecializedAttr = 0;
}
def Kernel_CombineAttr : EnumAttr<Kernel_Dialect, Kernel_Combine, "combine">;

def Kernel_Bound : I32EnumAttr<"Bound", "what an index out of range does", [
  I32EnumAttrCase<"clamp", 0>, I32EnumAttrCase<"wrap", 1>, I32EnumAttrCase<"check", 2>, I32EnumAttrCase<"pad", 3>]> {
  let cppNamespace = "::dlc::ir::kernel";
  let genSpecializedAttr = 0;
}
def Kernel_BoundAttr : EnumAttr<Kernel_Dialect, Kernel_Bound, "bound">;

def Kernel_Schedule : AttrDef<Kernel_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "How a kernel is run; every field is optional and completed by kernel-schedule";
  let description = [{
    `#kernel.schedule<order = [r, c], vec = {c = 8}, unroll = 4, par = [r], grain = 4096>`. Fields:
    - `order`: loop order, all dims. `vec = {dim = width}`: the one vectorised dim; width 1 = scalar code.
    - `unroll`: vectors a trip of the vectorised loop at most (independent accumulators of a reduction by it); loops
      with long bodies take fewer.
    - `tail`: `mask` (main loop and a masked tail), `single` (one body for both), or `auto` (single for long bodies).
    - `par`: the outermost dims split over threads; the range [begin, end) counts their flattened points.
    - `grain`: points of the parallel range that a task takes at least.
    - `place = {s1 = out | recompute}`: the value of the n-th stage (`s0` is the first), when loops after the one that
      computes it need it: kept in an output's memory if one fits, or computed again.
    - `micro = {m = 14, n = 32, k = 4}`: of a contraction: rows and columns of the tile of sums kept in registers (n is a
      multiple of the vector width; that of the panels if rhs comes packed), and how far the loop over k is unrolled.
    - `block = {m = 72, n = 512, k = 1536}`: rows that a task takes; columns that share a packed block of rows; points of
      the innermost k dim in a slice, between which the sums lie in memory. 0 is the whole dim; m and k must not be 0
      where memory depends on them and the size is no constant.
    - `pack = {lhs = none | block, rhs = none | block}`: whether an operand is copied, block by block, into the order in
      which the tile reads it. An operand that comes packed (see above) is read where it is. `none` needs an operand
      that is a plain read (of lhs perhaps padded by 0, of rhs perhaps widened from a shorter float); rhs contiguous in
      its columns, whose number is a constant and at least micro.n.
    - `gpu = {threads = 256, ...}`: for the CUDA emitter. `tile`, `reduce`, `split`, `fission`, `acc`, `lib`, `algo`: reserved.
  }];
  let parameters = (ins "::mlir::DictionaryAttr":$fields);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Returns the names of `order`, empty if absent.
    ::llvm::SmallVector<::llvm::StringRef> getOrder() const { return getNames("order"); }
    /// Returns the names of `par`, empty if absent.
    ::llvm::SmallVector<::llvm::StringRef> getPar() const { return getNames("par"); }
    /// Returns a list field as names.
    ::llvm::SmallVector<::llvm::StringRef> getNames(::llvm::StringRef field) const;
    /// Returns the vectorised dim's name, empty if absent.
    ::llvm::StringRef getVecDim() const;
    /// Returns the vector width, 0 if absent.
    int64_t getVecWidth() const;
    /// Returns an integer field or `otherwise`.
    int64_t getInt(::llvm::StringRef field, int64_t otherwise) const;
    /// Returns a keyword field or "".
    ::llvm::StringRef getWord(::llvm::StringRef field) const;
    /// Returns whether the field is present.
    bool has(::llvm::StringRef field) const { return static_cast<bool>(getFields().get(field)); }
    /// Returns the size for `name` (m, n or k) in the field `micro` or `block`, or `otherwise`.
    int64_t getTile(::llvm::StringRef field, ::llvm::StringRef name, int64_t otherwise) const;
    /// Returns the placement of stage number `stage` or "".
    ::llvm::StringRef getPlace(unsigned stage) const;
  }];
}

def Kernel_DimList : TypedArrayAttrBase<StrAttr, "dims of the domain">;
def Kernel_CombineList : TypedArrayAttrBase<Kernel_CombineAttr, "combines">;
def Kernel_Int : AnyTypeOf<[Index, AnySignlessInteger]>;
def Kernel_Scalar : AnyTypeOf<[AnyFloat, AnySignlessInteger, Index]>;

class Kernel_Op<string mnemonic, list<Trait> traits = []> : Op<Kernel_Dialect, mnemonic, traits>;

//===--- The kernel and its stages ---===//

def Kernel_FuncOp : Kernel_Op<"func", [Symbol, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "A kernel: arguments, a domain, stages and writes";
  let arguments = (ins SymbolNameAttr:$sym_name, Kernel_DimList:$dim_names,
    DenseI64ArrayAttr:$dim_sizes, DenseI64ArrayAttr:$outs, OptionalAttr<Kernel_Schedule>:$schedule);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Encodes "the size is argument `arg`" for dim_sizes; constants are themselves.
    static int64_t encodeSizeArg(unsigned arg) { return -static_cast<int64_t>(arg) - 1; }
    unsigned getNumDims() { return getDimSizes().size(); }
    /// Returns the name of dim `dim`.
    ::mlir::StringAttr getDimName(unsigned dim) { return ::mlir::cast<::mlir::StringAttr>(getDimNames()[dim]); }
    /// Returns the position of a dim's name, or -1.
    int getDimIndex(::llvm::StringRef name);
    /// Returns whether the size of `dim` is a constant.
    bool isStaticDim(unsigned dim) { return getDimSizes()[dim] >= 0; }
    /// Returns the index argument that is the size of `dim`; the dim must not be static.
    ::mlir::BlockArgument getSizeArg(unsigned dim) {
      return getBody().getArgument(static_cast<unsigned>(-(getDimSizes()[dim] + 1)));
    }
    /// Returns the number of an argument in the `bufs` list; it must be a memref.
    unsigned getBufIndex(unsigned arg);
    /// Returns the position in `ints` of the first value that argument `arg` takes there.
    unsigned getIntIndex(unsigned arg);
    /// Returns how many values of `ints` the arguments take (without the parallel range).
    unsigned getNumInts();
    ::mlir::Block &getBlock() { return getBody().front(); }
  }];
}

class Kernel_StageOp<string mnemonic, list<Trait> traits = []> :
    Kernel_Op<mnemonic, traits # [HasParent<"FuncOp">, SingleBlock, NoRegionArguments, RecursiveMemoryEffects]> {
  let hasVerifier = 1;
}

def Kernel_MapOp : Kernel_StageOp<"map"> {
  let summary = "One or more scalars for every point of the dims";
  let arguments = (ins Kernel_DimList:$over);
  let results = (outs Variadic<Kernel_Val>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`over` custom<Dims>($over) attr-dict `:` type($results) $body";
}

def Kernel_ReduceOp : Kernel_StageOp<"reduce"> {
  let summary = "Scalars joined along the `by` dims; one combine for each yielded scalar";
  let arguments = (ins Kernel_DimList:$over, Kernel_DimList:$by, Kernel_CombineList:$combines);
  let results = (outs Variadic<Kernel_Val>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `over` custom<Dims>($over) `by` custom<Dims>($by) `combine` custom<Combines>($combines) attr-dict `:`
    type($results) $body
  }];
  let extraClassDeclaration = [{
    Combine getCombine(unsigned result) {
      return ::mlir::cast<CombineAttr>(getCombines()[result]).getValue();
    }
  }];
}

def Kernel_ContractOp : Kernel_StageOp<"contract"> {
  let summary = "Sums over the `by` dims of the products of what two regions yield";
  let arguments = (ins Kernel_DimList:$over, Kernel_DimList:$by);
  let results = (outs Kernel_Val:$result);
  let regions = (region SizedRegion<1>:$lhs, SizedRegion<1>:$rhs);
  let assemblyFormat = [{
    `over` custom<Dims>($over) `by` custom<Dims>($by) attr-dict `:` type($result) `lhs` $lhs `rhs` $rhs
  }];
}

def Kernel_WriteOp : Kernel_Op<"write", [HasParent<"FuncOp">, AttrSizedOperandSegments]> {
  let summary = "Stores a stage's value; with `accumulate`, adds it to (combines it with) what is there, in order";
  let arguments = (ins Kernel_Val:$value, Arg<AnyMemRef, "", [MemWrite]>:$buffer, AffineMapAttr:$map,
    Variadic<AnyTypeOf<[Kernel_Val, Kernel_Int]>>:$syms, OptionalAttr<Kernel_BoundAttr>:$bound,
    OptionalAttr<DenseI64ArrayAttr>:$bound_dims, Variadic<Index>:$bound_sizes,
    OptionalAttr<Kernel_CombineAttr>:$accumulate);
  let assemblyFormat = [{
    $value `,` $buffer `[` $map `]` (`syms` `(` $syms^ `:` type($syms) `)`)?
    (`bound` $bound^ $bound_dims `of` `(` $bound_sizes `)`)? (`accumulate` $accumulate^)? attr-dict
    `:` type($value) `,` type($buffer)
  }];
  let hasVerifier = 1;
}

//===--- Inside a stage's region ---===//

def Kernel_ReadOp : Kernel_Op<"read", [AttrSizedOperandSegments]> {
  let summary = "The element of a buffer at the map's indices";
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$buffer, AffineMapAttr:$map, Variadic<Kernel_Int>:$syms,
    OptionalAttr<Kernel_BoundAttr>:$bound, OptionalAttr<DenseI64ArrayAttr>:$bound_dims,
    Variadic<Index>:$bound_sizes, Optional<Kernel_Scalar>:$pad);
  let results = (outs Kernel_Scalar:$result);
  let assemblyFormat = [{
    $buffer `[` $map `]` (`syms` `(` $syms^ `:` type($syms) `)`)?
    (`bound` $bound^ $bound_dims `of` `(` $bound_sizes `)`)? (`pad` $pad^ `:` type($pad))? attr-dict
    `:` type($buffer) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Kernel_UseOp : Kernel_Op<"use", [Pure]> {
  let summary = "The value of an earlier stage at this point; dims it lacks broadcast";
  let arguments = (ins Kernel_Val:$value);
  let results = (outs Kernel_Scalar:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Kernel_IndexOp : Kernel_Op<"index", [Pure]> {
  let summary = "The index of this point along a dim";
  let arguments = (ins StrAttr:$dim);
  let results = (outs I64:$result);
  let assemblyFormat = "custom<DimName>($dim) attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Kernel_PrimOp : Kernel_Op<"prim"> {
  let summary = "A scalar primitive of runtime/scalar, with its NaN and -0 rules";
  let arguments = (ins StrAttr:$name, Variadic<Kernel_Scalar>:$operands);
  let results = (outs Kernel_Scalar:$result);
  let assemblyFormat = "$name `(` $operands `)` attr-dict `:` functional-type($operands, $result)";
  let hasVerifier = 1;
}

def Kernel_YieldOp : Kernel_Op<"yield", [Pure, Terminator, ParentOneOf<["MapOp", "ReduceOp", "ContractOp"]>]> {
  let summary = "The scalars of a stage at one point";
  let arguments = (ins Variadic<Kernel_Scalar>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

#endif
