// Prints the scalars of stage regions. Each op is printed once for each block of text that needs it, at the outermost
// block in which its operands exist. f16 and bf16 values are held in float, rounded after each operation.
#include "compiler/cuda/KernelText.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

scalar::Kind KernelText::kindOf(Type type, bool isUnsigned) {
  if (type.isF64())
    return Kind::F64;
  if (isa<FloatType>(type))
    return Kind::F32;
  if (type.isIndex())
    return Kind::I64;
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return Kind::Bool;
  case 8:
    return isUnsigned ? Kind::U8 : Kind::I8;
  case 16:
    return Kind::I16;
  case 32:
    return Kind::I32;
  default:
    return Kind::I64;
  }
}

std::string KernelText::rounded(Type type, const std::string &expression) {
  if (!type.isF16() && !type.isBF16())
    return expression;
  shared_.helpers.insert(type.isF16() ? CudaHelper::Half : CudaHelper::BFloat);
  return (type.isF16() ? "dlc_round_f16(" : "dlc_round_bf16(") + expression + ")";
}

KernelText::Term KernelText::eval(Value value) {
  if (auto arg = dyn_cast<BlockArgument>(value))
    return {argName(arg.getArgNumber()), kindOf(arg.getType()), 0};
  for (unsigned level = scopes_.size(); level-- > 0;) {
    auto found = scopes_[level].memo.find(value);
    if (found != scopes_[level].memo.end())
      return found->second;
  }
  Operation *op = value.getDefiningOp();
  Term term;
  if (isa<MapOp>(op)) {
    term = evalMap(value);
  } else if (isa<ReduceOp>(op)) {
    error(op) << "its value is used before the loops that make it are complete";
    return {"0", kindOf(cast<ValType>(value.getType()).getElementType()), 0};
  } else {
    term = evalOp(op);
  }
  scopes_[term.level].memo[value] = term;
  return term;
}

// A value that the plan keeps in an output's memory is stored in the loop that makes it and loaded in later ones.
KernelText::Term KernelText::evalMap(Value stage) {
  auto map = cast<MapOp>(stage.getDefiningOp());
  Value yielded = map.getBody().front().getTerminator()->getOperand(cast<OpResult>(stage).getResultNumber());
  for (const Stash &stash : plan_.stashes) {
    if (stash.stage != stage)
      continue;
    if (innerLoop_ != stash.storeLoop)
      return loadStash(stash);
    Term term = eval(yielded);
    storeStash(stash, term);
    return {term.text, term.kind, innermost()};
  }
  return eval(yielded);
}

KernelText::Term KernelText::constantTerm(Operation *op) {
  Kind kind = kindOf(op->getResult(0).getType());
  Attribute value = cast<arith::ConstantOp>(op).getValue();
  if (auto number = dyn_cast<FloatAttr>(value))
    return {scalar::TextBuilder::literal(kind, number.getValueAsDouble()), kind, 0};
  APInt bits = cast<IntegerAttr>(value).getValue();
  return {scalar::TextBuilder::intLiteral(kind, bits.getSExtValue()), kind, 0};
}

KernelText::Term KernelText::evalOp(Operation *op) {
  if (auto use = dyn_cast<UseOp>(op))
    return eval(use.getValue());
  if (auto read = dyn_cast<ReadOp>(op))
    return evalRead(read);
  if (auto index = dyn_cast<IndexOp>(op)) {
    Term term = dimTerm(func_.getDimIndex(index.getDim()));
    return {indexKind_ == Kind::I64 ? term.text : "(long long)" + term.text, Kind::I64, term.level};
  }
  if (isa<arith::ConstantOp>(op))
    return constantTerm(op);
  SmallVector<Term> operands;
  unsigned level = 0;
  for (Value operand : op->getOperands()) {
    operands.push_back(eval(operand));
    level = std::max(level, operands.back().level);
  }
  Type type = op->getResult(0).getType();
  if (auto prim = dyn_cast<PrimOp>(op))
    return evalPrim(op, prim.getName(), operands, op->hasAttr("unsigned"));
  StringRef name = op->getName().stripDialect();
  if (isa<math::MathDialect>(op->getDialect())) {
    name = llvm::StringSwitch<StringRef>(name)
               .Case("absf", "abs")
               .Case("absi", "abs")
               .Case("roundeven", "round")
               .Case("powf", "pow")
               .Default(name);
    return evalPrim(op, name, operands, false);
  }
  // Conversions to int have one rule for what does not fit: that of the primitives.
  if (isa<arith::FPToSIOp, arith::FPToUIOp>(op))
    return evalPrim(op, std::string("to_") + scalar::shortName(kindOf(type)), operands, false);
  std::string text = arith(op, operands);
  if (text.empty()) {
    error(op) << "no CUDA text for this op";
    text = "0";
  }
  Kind kind = kindOf(type);
  return {define(level, scalar::cppName(kind), rounded(type, text)), kind, level};
}

KernelText::Term KernelText::evalPrim(Operation *op, StringRef name, ArrayRef<Term> operands, bool isUnsigned) {
  std::vector<Kind> kinds;
  std::vector<std::string> texts;
  std::string list;
  unsigned level = 0;
  for (const Term &term : operands) {
    bool asUnsigned = isUnsigned && term.kind == Kind::I8;
    kinds.push_back(asUnsigned ? Kind::U8 : term.kind);
    texts.push_back(asUnsigned ? "(unsigned char)" + term.text : term.text);
    list += (list.empty() ? "" : ", ") + texts.back();
    level = std::max(level, term.level);
  }
  std::string plain = CudaPrims::asOperator(std::string_view(name.data(), name.size()), kinds, texts);
  if (!plain.empty()) {
    Type to = op->getResult(0).getType();
    return {define(level, scalar::cppName(kindOf(to)), rounded(to, plain)), kindOf(to), level};
  }
  const CudaPrim *prim = shared_.prims.use(std::string_view(name.data(), name.size()), kinds);
  Type type = op->getResult(0).getType();
  Kind kind = kindOf(type);
  if (!prim) {
    error(op) << "there is no primitive '" << name << "' on these operands";
    return {"0", kind, level};
  }
  if (prim->raises)
    shared_.helpers.insert(CudaHelper::Raise);
  if (name == "pow" && !scalar::isFloat(kinds[0]))
    shared_.helpers.insert(CudaHelper::IntPow);
  std::string call = prim->function + "(" + (prim->raises ? "err, " : "") + list + ")";
  if (prim->result == Kind::U8 && kind == Kind::I8)
    call = "(signed char)" + call;
  else if (prim->result != kind)
    error(op) << "'" << name << "' gives " << scalar::shortName(prim->result) << " here, not " << type;
  return {define(level, scalar::cppName(kind), rounded(type, call)), kind, level};
}

//===--- arith ---===//

static std::string unsignedType(scalar::Kind kind) {
  switch (scalar::bitWidth(kind)) {
  case 1:
    return "bool";
  case 8:
    return "unsigned char";
  case 16:
    return "unsigned short";
  case 32:
    return "unsigned int";
  default:
    return "unsigned long long";
  }
}

std::string KernelText::compareInts(Operation *op, ArrayRef<Term> operands) {
  auto predicate = cast<arith::CmpIOp>(op).getPredicate();
  // In the enum's order: eq ne slt sle sgt sge ult ule ugt uge.
  static constexpr const char *kOps[] = {"==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">="};
  auto number = static_cast<unsigned>(predicate);
  std::string cast = number >= 6 ? "(" + unsignedType(operands[0].kind) + ")" : "";
  return cast + operands[0].text + " " + kOps[number] + " " + cast + operands[1].text;
}

static std::string compareFloats(Operation *op, const std::string &x, const std::string &y) {
  using P = arith::CmpFPredicate;
  std::string unordered = "(" + x + " != " + x + " || " + y + " != " + y + ")";
  auto negated = [&](const char *inverse) { return "!(" + x + " " + inverse + " " + y + ")"; };
  switch (cast<arith::CmpFOp>(op).getPredicate()) {
  case P::OEQ:
    return x + " == " + y;
  case P::OGT:
    return x + " > " + y;
  case P::OGE:
    return x + " >= " + y;
  case P::OLT:
    return x + " < " + y;
  case P::OLE:
    return x + " <= " + y;
  case P::ONE:
    return x + " < " + y + " || " + x + " > " + y;
  case P::ORD:
    return "!" + unordered;
  case P::UEQ:
    return "!(" + x + " < " + y + " || " + x + " > " + y + ")";
  case P::UGT:
    return negated("<=");
  case P::UGE:
    return negated("<");
  case P::ULT:
    return negated(">=");
  case P::ULE:
    return negated(">");
  case P::UNE:
    return x + " != " + y;
  case P::UNO:
    return unordered;
  case P::AlwaysFalse:
    return "false";
  case P::AlwaysTrue:
    return "true";
  }
  return "";
}

std::string KernelText::castText(Operation *op, const Term &x) {
  Type type = op->getResult(0).getType();
  Kind kind = kindOf(type);
  std::string to = std::string("(") + scalar::cppName(kind) + ")";
  return llvm::TypeSwitch<Operation *, std::string>(op)
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return to + x.text; })
      .Case<arith::SIToFPOp, arith::ExtSIOp, arith::IndexCastOp>([&](auto) {
        // A Bool is 0 or -1 where its sign counts.
        return x.kind == Kind::Bool ? to + "-(int)" + x.text : to + x.text;
      })
      .Case<arith::UIToFPOp, arith::ExtUIOp, arith::IndexCastUIOp>(
          [&](auto) { return to + "(" + unsignedType(x.kind) + ")" + x.text; })
      .Case<arith::TruncIOp>([&](auto) { return kind == Kind::Bool ? "(" + x.text + " & 1) != 0" : to + x.text; })
      .Case<arith::BitcastOp>([&](auto) -> std::string {
        if (kind == Kind::F32 && x.kind == Kind::I32)
          return "__int_as_float(" + x.text + ")";
        if (kind == Kind::F64 && x.kind == Kind::I64)
          return "__longlong_as_double(" + x.text + ")";
        if (kind == Kind::I32 && x.kind == Kind::F32)
          return "__float_as_int(" + x.text + ")";
        if (kind == Kind::I64 && x.kind == Kind::F64)
          return "__double_as_longlong(" + x.text + ")";
        return kind == x.kind ? x.text : "";
      })
      .Default([](Operation *) { return ""; });
}

// An expression for the op, empty if there is none.
std::string KernelText::arith(Operation *op, ArrayRef<Term> operands) {
  const std::string &x = operands[0].text;
  Kind kind = kindOf(op->getResult(0).getType());
  if (operands.size() == 1)
    return isa<arith::NegFOp>(op) ? "-(" + x + ")" : castText(op, operands[0]);
  const std::string &y = operands[1].text;
  std::string suffix = kind == Kind::F32 ? "f" : "";
  std::string own = std::string("(") + scalar::cppName(kind) + ")";
  std::string unsign = "(" + unsignedType(kind) + ")";
  std::string wide = scalar::bitWidth(kind) < 64 ? "(unsigned int)" : "(unsigned long long)";
  auto wrapping = [&](const char *o) { return own + "(" + wide + x + " " + o + " " + wide + y + ")"; };
  auto choose = [&](const char *o, const std::string &as) {
    return as + x + " " + o + " " + as + y + " ? " + x + " : " + y;
  };
  auto divide = [&](const char *name, const std::string &as) {
    shared_.helpers.insert(CudaHelper::SafeDivide);
    return own + name + "(" + as + x + ", " + as + y + ")";
  };
  auto nanWins = [&](const char *o) { return x + " " + o + " " + y + " || " + x + " != " + x + " ? " + x + " : " + y; };
  auto bits = [&](const char *o, const char *logic) {
    return kind == Kind::Bool ? x + " " + logic + " " + y : own + "(" + x + " " + o + " " + y + ")";
  };
  using R = std::string;
  return llvm::TypeSwitch<Operation *, R>(op)
      .Case<arith::AddFOp>([&](auto) { return x + " + " + y; })
      .Case<arith::SubFOp>([&](auto) { return x + " - " + y; })
      .Case<arith::MulFOp>([&](auto) { return x + " * " + y; })
      .Case<arith::DivFOp>([&](auto) { return x + " / " + y; })
      .Case<arith::RemFOp>([&](auto) { return "fmod" + suffix + "(" + x + ", " + y + ")"; })
      .Case<arith::MaximumFOp>([&](auto) { return nanWins(">"); })
      .Case<arith::MinimumFOp>([&](auto) { return nanWins("<"); })
      .Case<arith::MaxNumFOp>([&](auto) { return "fmax" + suffix + "(" + x + ", " + y + ")"; })
      .Case<arith::MinNumFOp>([&](auto) { return "fmin" + suffix + "(" + x + ", " + y + ")"; })
      .Case<arith::CmpFOp>([&](auto) { return compareFloats(op, x, y); })
      .Case<arith::CmpIOp>([&](auto) { return compareInts(op, operands); })
      .Case<arith::SelectOp>([&](auto) { return x + " ? " + y + " : " + operands[2].text; })
      .Case<arith::AddIOp>([&](auto) { return wrapping("+"); })
      .Case<arith::SubIOp>([&](auto) { return wrapping("-"); })
      .Case<arith::MulIOp>([&](auto) { return wrapping("*"); })
      .Case<arith::DivSIOp>([&](auto) { return divide("dlc_int_div", own); })
      .Case<arith::RemSIOp>([&](auto) { return divide("dlc_int_rem", own); })
      .Case<arith::DivUIOp>([&](auto) { return divide("dlc_int_div", unsign); })
      .Case<arith::RemUIOp>([&](auto) { return divide("dlc_int_rem", unsign); })
      .Case<arith::AndIOp>([&](auto) { return bits("&", "&&"); })
      .Case<arith::OrIOp>([&](auto) { return bits("|", "||"); })
      .Case<arith::XOrIOp>([&](auto) { return bits("^", "!="); })
      .Case<arith::ShLIOp>([&](auto) { return own + "(" + unsign + x + " << " + y + ")"; })
      .Case<arith::ShRSIOp>([&](auto) { return own + "(" + x + " >> " + y + ")"; })
      .Case<arith::ShRUIOp>([&](auto) { return own + "(" + unsign + x + " >> " + y + ")"; })
      .Case<arith::MaxSIOp>([&](auto) { return choose(">", ""); })
      .Case<arith::MinSIOp>([&](auto) { return choose("<", ""); })
      .Case<arith::MaxUIOp>([&](auto) { return choose(">", unsign); })
      .Case<arith::MinUIOp>([&](auto) { return choose("<", unsign); })
      .Default([](Operation *) { return R(); });
}

} // namespace dlc::compiler
