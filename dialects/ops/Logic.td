// Comparisons, logical and bitwise functions, tests for special values.
include "OpBase.td"

class Compare<string mnemonicName, dag fn, string op> : Ew<mnemonicName> {
  let params = (ins T:$self, TN:$other);
  let scalar = fn;
  let promotion = PromoteToBool;
  let differentiable = 0;
  let operator = op;
}
def Dlc_EqOp : Compare<"eq", (eq_ $self, $other), "eq"> {
  let summary = "Whether elements are equal.";
  let traitsDlc = ["Commutative"];
  let samples = [Sample<"S(3,4), S(4)", "self == other">, Sample<"S(3,4), 1", "self == 1">];
}
def Dlc_NeOp : Compare<"ne", (ne_ $self, $other), "ne"> {
  let summary = "Whether elements differ.";
  let traitsDlc = ["Commutative"];
  let samples = [Sample<"S(3,4), S(4)", "self != other">];
}
def Dlc_LtOp : Compare<"lt", (lt_ $self, $other), "lt"> {
  let summary = "Whether `self` is less than `other`.";
  let samples = [Sample<"S(3,4), S(4)", "self < other">];
}
def Dlc_LeOp : Compare<"le", (le_ $self, $other), "le"> {
  let summary = "Whether `self` is at most `other`.";
  let samples = [Sample<"S(3,4), S(4)", "self <= other">];
}
def Dlc_GtOp : Compare<"gt", (gt_ $self, $other), "gt"> {
  let summary = "Whether `self` is greater than `other`.";
  let samples = [Sample<"S(3,4), S(4)", "self > other">];
}
def Dlc_GeOp : Compare<"ge", (ge_ $self, $other), "ge"> {
  let summary = "Whether `self` is at least `other`.";
  let samples = [Sample<"S(3,4), S(4)", "self >= other">];
}

class Logical<string mnemonicName, dag fn> : Ew<mnemonicName> {
  let params = (ins T:$self, T:$other);
  let scalar = fn;
  let promotion = PromoteToBool;
  let differentiable = 0;
}
def Dlc_LogicalAndOp : Logical<"logical_and", (logical_and_ $self, $other)> {
  let summary = "Whether both elements are nonzero.";
  let traitsDlc = ["Commutative", "Associative"];
  let samples = [Sample<"S(3,4), S(4)", "np.logical_and(self, other)">];
}
def Dlc_LogicalOrOp : Logical<"logical_or", (logical_or_ $self, $other)> {
  let summary = "Whether either element is nonzero.";
  let traitsDlc = ["Commutative", "Associative"];
  let samples = [Sample<"S(3,4), S(4)", "np.logical_or(self, other)">];
}
def Dlc_LogicalXorOp : Logical<"logical_xor", (logical_xor_ $self, $other)> {
  let summary = "Whether exactly one of two elements is nonzero.";
  let traitsDlc = ["Commutative", "Associative"];
  let samples = [Sample<"S(3,4), S(4)", "np.logical_xor(self, other)">];
}
def Dlc_LogicalNotOp : Predicate<"logical_not", (logical_not_ $self)> {
  let summary = "Whether each element is zero.";
  let samples = [Sample<"S(3,4)", "np.logical_not(self)">];
}

class Bitwise<string mnemonicName, dag fn, string op> : Ew<mnemonicName> {
  let params = (ins T:$self, TN:$other);
  let scalar = fn;
  let differentiable = 0;
  let dtypes = IntBoolTypes;
  let operator = op;
}
def Dlc_BitwiseAndOp : Bitwise<"bitwise_and", (and_ $self, $other), "and"> {
  let summary = "Bitwise and; logical for bools.";
  let traitsDlc = ["Commutative", "Associative", "Idempotent"];
  let samples = [Sample<"S(3,4), S(4)", "self & other">];
}
def Dlc_BitwiseOrOp : Bitwise<"bitwise_or", (or_ $self, $other), "or"> {
  let summary = "Bitwise or; logical for bools.";
  let traitsDlc = ["Commutative", "Associative", "Idempotent"];
  let samples = [Sample<"S(3,4), S(4)", "self | other">];
}
def Dlc_BitwiseXorOp : Bitwise<"bitwise_xor", (xor_ $self, $other), "xor"> {
  let summary = "Bitwise exclusive or; logical for bools.";
  let traitsDlc = ["Commutative", "Associative"];
  let samples = [Sample<"S(3,4), S(4)", "self ^ other">];
}
def Dlc_BitwiseNotOp : Ew<"bitwise_not"> {
  let summary = "Flips every bit; logical not for bools.";
  let params = (ins T:$self);
  let scalar = (not_ $self);
  let differentiable = 0;
  let dtypes = IntBoolTypes;
  let operator = "invert";
  let samples = [Sample<"S(3,4)", "~self">];
}
def Dlc_BitwiseLeftShiftOp : Bitwise<"bitwise_left_shift", (shl_ $self, $other), "lshift"> {
  let summary = "Shifts bits up by `other`; 0 once nothing is left.";
  let dtypes = IntTypes;
  let samples = [Sample<"S(3,4), P(4)", "self << other">];
}
def Dlc_BitwiseRightShiftOp : Bitwise<"bitwise_right_shift", (shr_ $self, $other), "rshift"> {
  let summary = "Shifts bits down by `other`, keeping the sign.";
  let dtypes = IntTypes;
  let samples = [Sample<"S(3,4), P(4)", "self >> other">];
}

def Dlc_IsnanOp : Predicate<"isnan", (isnan_ $self)> {
  let summary = "Whether each element is NaN.";
  let inplace = 0;
  let samples = [Sample<"S(3,4)", "np.isnan(self)">];
}
def Dlc_IsinfOp : Predicate<"isinf", (isinf_ $self)> {
  let summary = "Whether each element is infinite.";
  let inplace = 0;
  let samples = [Sample<"S(3,4)", "np.isinf(self)">];
}
def Dlc_IsfiniteOp : Predicate<"isfinite", (isfinite_ $self)> {
  let summary = "Whether each element is neither infinite nor NaN.";
  let inplace = 0;
  let samples = [Sample<"S(3,4)", "np.isfinite(self)">];
}
