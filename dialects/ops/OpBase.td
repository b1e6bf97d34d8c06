// The classes that an op record is made of. `dialects/ops/*.td` is the only list of ops: mlir-tblgen reads these records
// for the dialect, tools/opgen (through llvm-tblgen --dump-json) for everything else. CONTRIBUTING.md explains how to
// add an op; every field is described where it is declared.
#ifndef DLC_OP_BASE
#define DLC_OP_BASE

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dlc_Dialect : Dialect {
  let name = "dlc";
  let cppNamespace = "::dlc::ir";
  let summary = "Tensor operations: what a model does.";
  let usePropertiesForAttributes = 1;
  // Families register their ops from files of their own.
  let extraClassDeclaration = [{
    template <class... Ops> void addFamily() { addOperations<Ops...>(); }
  }];
}

//===----------------------------------------------------------------------===//
// Parameter kinds
//===----------------------------------------------------------------------===//

// A kind of parameter: its constraint in the IR, its default as Python spells it, whether its operand count varies
// (then the op needs operand segments), and whether the op writes to it (then the IR op returns the new value).
class Dlc_Param<Constraint c, string paramKind, string defaultText = ""> : OpVariable<c> {
  // The enumerator of dlc::ParamKind.
  string kind = paramKind;
  string defaultValue = defaultText;
  bit multi = 0;
  bit mutated = 0;
  Constraint resultConstraint = AnyRankedTensor;
  list<string> choices = [];
  int broadcastTo = 0;
}

def Dlc_Number : AnyTypeOf<[I1, I64, F64]>;
def Dlc_TensorOrNumber : AnyTypeOf<[AnyRankedTensor, I1, I64, F64]>;
def Dlc_TensorOrNone : AnyTypeOf<[AnyRankedTensor, NoneType]>;

def T : Dlc_Param<AnyRankedTensor, "T">;
def TMut : Dlc_Param<AnyRankedTensor, "TMut"> { let mutated = 1; }
def TOpt : Dlc_Param<Optional<AnyRankedTensor>, "TOpt", "None"> { let multi = 1; }
def TOptMut : Dlc_Param<Optional<AnyRankedTensor>, "TOptMut", "None"> {
  let multi = 1; let mutated = 1; let resultConstraint = Optional<AnyRankedTensor>;
}
// A tensor or a number; a number takes part in type promotion as PyTorch's wrapped numbers do.
def TN : Dlc_Param<Dlc_TensorOrNumber, "TN">;
def TNOpt : Dlc_Param<Optional<Dlc_TensorOrNumber>, "TNOpt", "None"> { let multi = 1; }
def TList : Dlc_Param<Variadic<AnyRankedTensor>, "TList"> { let multi = 1; }
def TListMut : Dlc_Param<Variadic<AnyRankedTensor>, "TListMut"> {
  let multi = 1; let mutated = 1; let resultConstraint = Variadic<AnyRankedTensor>;
}
// The holes of `x[:, i]` are operands of type `none`.
def TOptList : Dlc_Param<Variadic<Dlc_TensorOrNone>, "TOptList"> { let multi = 1; }

// Numbers that scale or add may differ between two calls of one program, so they are operands.
class Num<string defaultText = ""> : Dlc_Param<Dlc_Number, "Num", defaultText>;
def NumOpt : Dlc_Param<Optional<Dlc_Number>, "NumOpt", "None"> { let multi = 1; }
// Sizes, indices, bounds.
class SymInt<string defaultText = ""> : Dlc_Param<Index, "SymInt", defaultText>;
def SymIntOpt : Dlc_Param<Optional<Index>, "SymIntOpt", "None"> { let multi = 1; }
class SymInts<string defaultText = ""> : Dlc_Param<Variadic<Index>, "SymInts", defaultText> { let multi = 1; }
// A generator. In the IR, the seed and the offset of its first Philox block: the op is a function of them.
def Rng : Dlc_Param<Variadic<I64>, "Rng", "None"> { let multi = 1; }

class Int<string defaultText = ""> : Dlc_Param<I64Attr, "Int", defaultText>;
def IntOpt : Dlc_Param<OptionalAttr<I64Attr>, "IntOpt", "None">;
// `n` > 0: a plain int is repeated n times.
class Ints<string defaultText = "", int n = 0> : Dlc_Param<DenseI64ArrayAttr, "IntList", defaultText> { let broadcastTo = n; }
class IntsOptN<int n> : Dlc_Param<OptionalAttr<DenseI64ArrayAttr>, "IntListOpt", "None"> { let broadcastTo = n; }
def IntsOpt : IntsOptN<1>;
class Bool<string defaultText = ""> : Dlc_Param<BoolAttr, "Bool", defaultText>;
class Float<string defaultText = ""> : Dlc_Param<F64Attr, "Float", defaultText>;
def FloatOpt : Dlc_Param<OptionalAttr<F64Attr>, "FloatOpt", "None">;
class Str<string defaultText = ""> : Dlc_Param<StrAttr, "Str", defaultText>;
class Enum<list<string> values, string defaultText = ""> : Dlc_Param<StrAttr, "Str", defaultText> { let choices = values; }
class EnumOpt<list<string> values> : Dlc_Param<OptionalAttr<StrAttr>, "StrOpt", "None"> { let choices = values; }
def DTypeA : Dlc_Param<TypeAttr, "DTypeA">;
def DTypeOpt : Dlc_Param<OptionalAttr<TypeAttr>, "DTypeOpt", "None">;
def DeviceOpt : Dlc_Param<OptionalAttr<StrAttr>, "DeviceOpt", "None">;

// Results: a tensor, or a list of them (only in records without an IR op).
class Dlc_Result<Constraint c, string resultKind> : OpVariable<c> { string kind = resultKind; }
def O : Dlc_Result<AnyRankedTensor, "Tensor">;
def OList : Dlc_Result<Variadic<AnyRankedTensor>, "TensorList">;

class IsMulti<Dlc_Param p> { int value = p.multi; }
class IsMutated<Dlc_Param p> { int value = p.mutated; }
class IsMultiResult<Dlc_Param p> { int value = !and(p.mutated, p.multi); }
class NewValue<Dlc_Param p, string paramName> {
  dag value = !if(p.mutated, !dag(outs, [p.resultConstraint], ["new_" # paramName]), (outs));
}
// What the IR needs to know of a parameter list.
class Signature<dag ps> {
  list<int> indices = !range(!size(ps));
  int multi = !foldl(0, indices, acc, i, !add(acc, IsMulti<!getdagarg<Dlc_Param>(ps, i)>.value));
  int multiResults = !foldl(0, indices, acc, i, !add(acc, IsMultiResult<!getdagarg<Dlc_Param>(ps, i)>.value));
  dag newValues = !foldl((outs), indices, acc, i,
                         !con(acc, NewValue<!getdagarg<Dlc_Param>(ps, i), !getdagname(ps, i)>.value));
}

//===----------------------------------------------------------------------===//
// Scalar functions, gradients, samples
//===----------------------------------------------------------------------===//

// A primitive of runtime/scalar (Primitives.h), whose C++ function has the name of the def, or one of the three forms
// below. `$param` names an operand.
class ScalarFn;
foreach name = ["add", "sub", "mul", "div", "neg", "abs", "min", "max", "sign", "floor", "ceil", "round", "trunc",
                "sqrt", "rsqrt", "reciprocal", "square", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin",
                "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "sigmoid", "erf", "pow", "fmod",
                "remainder", "floor_div", "trunc_div", "lerp", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor",
                "not", "shl", "shr", "truth", "logical_and", "logical_or", "logical_xor", "logical_not", "isnan",
                "isinf", "isfinite", "select", "relu", "gelu_erf", "gelu_tanh", "silu", "leaky_relu", "elu", "softplus",
                "hardtanh", "hardsigmoid", "hardswish", "mish", "log_sigmoid"] in
  def name # "_" : ScalarFn;
def const_ : ScalarFn;   // (const_ "0.5"): a literal of the type computed in
def given_ : ScalarFn;   // (given_ $p, a, b): a when the optional parameter p is present
def case_ : ScalarFn;    // (case_ $p, "x", a, "y", b): by the value of an Enum parameter; None is "None"

// `grad` gives the gradients of `wrt`; several are an std::array that looks at needs[i].
class Vjp<list<string> params, string expression> {
  list<string> wrt = params;
  string grad = expression;
}

// A call of the op in Python, and a NumPy expression of the same parameters. S(shape) makes float data in `range`
// (integers for integer dtypes), I(shape, n) indices below n, B(shape) bools, F(shape) always float.
class Sample<string arguments, string numpy, string valueRange = "-3,3"> {
  string args = arguments;
  string ref = numpy;
  string range = valueRange;
  string rtol = "";
}

class Promotion;
def PromoteNone : Promotion;     // the result has self's dtype
def PromoteArith : Promotion;    // as torch.result_type of the operands
def PromoteToFloat : Promotion;  // the same, and integers become the default float
def PromoteToBool : Promotion;   // operands as torch.result_type, result bool
def PromoteSum : Promotion;      // integers become i64
def PromoteIndex : Promotion;    // the result is i64

defvar FloatTypes = ["f32", "f64", "f16", "bf16"];
defvar IntTypes = ["u8", "i8", "i16", "i32", "i64"];
defvar NumberTypes = !listconcat(FloatTypes, IntTypes);
defvar AllTypes = !listconcat(NumberTypes, ["bool"]);
defvar IntBoolTypes = !listconcat(IntTypes, ["bool"]);

class Combine<string first, string op> {
  string identity = first;
  string function = op;
}
def NoCombine : Combine<"", "">;

//===----------------------------------------------------------------------===//
// The record
//===----------------------------------------------------------------------===//

class Dlc_Record<string mnemonicName> {
  string mnemonic = mnemonicName;
  // The only signature: PyTorch's names, order and defaults. The receiver of a method is $self.
  dag params = (ins);
  dag returns = (outs O:$out);
  // How many of the results the user sees; the rest is kept for the gradient. 0: all.
  int publicResults = 0;
  // elementwise reduce view contraction creation random index composite structured
  string kind = "composite";
  // Records with one pyName are its overloads, tried in the order of `overload`.
  string pyName = mnemonicName;
  int overload = 0;
  string pyModule = "";
  string kwonly = "";
  bit varargs = 0;
  // Which spellings exist; `x_` and `out=` are derived.
  bit function = 1;
  bit method = 1;
  bit inplace = 0;
  bit out = 0;
  string operator = "";
  Promotion promotion = PromoteNone;
  list<string> dtypes = AllTypes;
  // Operands of fixed dtype beside those that promote together.
  list<string> boolOperands = [];
  list<string> indexOperands = [];
  // The meta function: a family (elementwise, reduce, view, creation ...) or the op's own; "" for rule-only records.
  string meta = mnemonicName;
  dag scalar = (ins);
  // Values of the scalar's case_ parameter with which the op promotes as PromoteArith instead.
  list<string> arithCases = [];
  Combine combine = NoCombine;
  list<Vjp> vjp = [];
  bit differentiable = 1;
  // Has a rule in runtime/rules/Decompositions.h.
  bit composite = 0;
  // Has an eager kernel.
  bit hasKernel = 1;
  // The result's shape depends on data: the kernel allocates, capture breaks.
  bit dataDependent = 0;
  // Commutative Associative Idempotent RowWise. RowWise: a row of the result follows from the same row of the operand;
  // in a contraction of the last but one of the tensor operands (and of the addend before it). Idempotent, of an op of
  // kind structured: argument 0 with some elements replaced; its kernel may be given argument 0's memory for the result.
  list<string> traitsDlc = [];
  list<Sample> samples = [];
  // Reason why there is no sample, e.g. that the gradient samples of another op cover it.
  string noSample = "";
}

// An op that occurs in the IR.
class Dlc_Op<string mnemonicName> : Dlc_Record<mnemonicName>, Op<Dlc_Dialect, mnemonicName> {
  bit ir = 1;
  let arguments = params;
  let results = !con(returns, Signature<params>.newValues);
  let traits = !listconcat([Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>],
      !if(!gt(Signature<params>.multi, 1), [AttrSizedOperandSegments], []<Trait>),
      !if(!gt(Signature<params>.multiResults, 1), [AttrSizedResultSegments], []<Trait>));
  let assemblyFormat = "`(` operands `)` attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange lhs, ::mlir::TypeRange rhs) {
      return areCompatibleTypes(lhs, rhs);
    }
  }];
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context, ::std::optional<::mlir::Location> location, ::mlir::ValueRange operands,
        ::mlir::DictionaryAttr attributes, ::mlir::OpaqueProperties properties, ::mlir::RegionRange regions,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferByMeta<$cppClass>(context, location, operands, attributes, properties, types);
    }
  }];
}

// An op that capture replaces by its rule: no IR op, no kernel. Without a vjp its gradient is that of its rule.
class Dlc_Rule<string mnemonicName> : Dlc_Record<mnemonicName> {
  bit ir = 0;
  string summary = "";
  string description = "";
  let composite = 1;
  let hasKernel = 0;
  let meta = "";
}

class Ew<string mnemonicName> : Dlc_Op<mnemonicName> {
  let kind = "elementwise";
  let meta = "elementwise";
  let promotion = PromoteArith;
  let inplace = 1;
  let out = 1;
}
class Unary<string mnemonicName, dag fn, string grad> : Ew<mnemonicName> {
  let params = (ins T:$self);
  let scalar = fn;
  let vjp = [Vjp<["self"], grad>];
}
class FloatUnary<string mnemonicName, dag fn, string grad> : Unary<mnemonicName, fn, grad> {
  let promotion = PromoteToFloat;
}
class Binary<string mnemonicName, dag fn, string gradSelf, string gradOther> : Ew<mnemonicName> {
  let params = (ins T:$self, TN:$other);
  let scalar = fn;
  let vjp = [Vjp<["self"], gradSelf>, Vjp<["other"], gradOther>];
}
class Predicate<string mnemonicName, dag fn> : Ew<mnemonicName> {
  let params = (ins T:$self);
  let scalar = fn;
  let promotion = PromoteToBool;
  let differentiable = 0;
}
class Reduce<string mnemonicName> : Dlc_Op<mnemonicName> {
  let kind = "reduce";
  let meta = "reduce";
  let out = 1;
}
class View<string mnemonicName> : Dlc_Op<mnemonicName> {
  let kind = "view";
  let hasKernel = 0;
}
class Creation<string mnemonicName> : Dlc_Op<mnemonicName> {
  let kind = "creation";
  let meta = "creation";
  let method = 0;
  let differentiable = 0;
}
class Random<string mnemonicName> : Dlc_Op<mnemonicName> {
  let kind = "random";
  let differentiable = 0;
}
// Ops that only gradients and rules call: no Python spelling.
class Internal<string mnemonicName> : Dlc_Op<mnemonicName> {
  let function = 0;
  let method = 0;
}

#endif
