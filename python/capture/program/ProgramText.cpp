// The printed form of instructions, for explain() and the log of guards.
#include "python/capture/program/Program.h"

namespace dlc::py {
namespace {

/// A short printed form that runs no Python code of the user's.
std::string nameOf(PyObject *o) {
  if (!o)
    return "nothing";
  bool scalar = o == Py_None || o == Py_Ellipsis || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) ||
                PyUnicode_CheckExact(o) || PyBytes_CheckExact(o) || PyComplex_CheckExact(o);
  if (scalar) {
    Obj text(PyObject_Repr(o));
    const char *chars = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    if (!chars) {
      PyErr_Clear();
      return "?";
    }
    std::string s = chars;
    return s.size() > 60 ? s.substr(0, 57) + "..." : s;
  }
  if (PyType_Check(o))
    return str("type ", reinterpret_cast<PyTypeObject *>(o)->tp_name);
  if (PyTuple_CheckExact(o)) {
    std::string s = "(";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o) && i < 8; ++i)
      s += (i ? ", " : "") + nameOf(PyTuple_GET_ITEM(o, i));
    return s + (PyTuple_GET_SIZE(o) > 8 ? ", ...)" : ")");
  }
  const char *name = nullptr;
  if (PyFunction_Check(o))
    name = PyUnicode_AsUTF8(reinterpret_cast<PyFunctionObject *>(o)->func_qualname);
  else if (PyCode_Check(o))
    name = PyUnicode_AsUTF8(reinterpret_cast<PyCodeObject *>(o)->co_name);
  else if (PyCFunction_Check(o))
    name = reinterpret_cast<PyCFunctionObject *>(o)->m_ml->ml_name;
  return str("<", Py_TYPE(o)->tp_name, name ? " " : "", name ? name : "", ">");
}

std::string list(const std::vector<Reg> &regs, const char *kind) {
  std::string s;
  for (Reg r : regs)
    s += str(s.empty() ? "" : ", ", kind, r);
  return s;
}

template <class C> std::string dims(const C &c) { return listStr(c); }

const char *const kNames[] = {"arg",
                              "callee",
                              "const",
                              "dict get",
                              "attribute",
                              "class attribute",
                              "slot",
                              "item",
                              "cell content",
                              "cell",
                              "function field",
                              "method self",
                              "method function",
                              "getattr",
                              "tensor of",
                              "type is",
                              "is",
                              "same object",
                              "different objects",
                              "all different",
                              "equals",
                              "length",
                              "key at",
                              "keys",
                              "set items",
                              "lacks key",
                              "lacks attribute",
                              "class attribute is",
                              "code is",
                              "tensor",
                              "storages",
                              "mode",
                              "facts",
                              "number test",
                              "number is",
                              "int",
                              "length of",
                              "size of",
                              "stride of",
                              "float",
                              "expression",
                              "number op",
                              "run",
                              "eager",
                              "view",
                              "read bool",
                              "read int",
                              "read number",
                              "size of result",
                              "new tensor",
                              "new int",
                              "new number",
                              "new sequence",
                              "new dict",
                              "new object",
                              "new function",
                              "new cell",
                              "new method",
                              "new slice",
                              "join",
                              "format",
                              "fill",
                              "call",
                              "set attribute",
                              "set item",
                              "set cell",
                              "set global",
                              "set grad",
                              "random numbers taken",
                              "effect",
                              "return"};
static_assert(sizeof(kNames) / sizeof(kNames[0]) == static_cast<size_t>(Do::Return) + 1);

const char *const kCompare[] = {"<", "<=", "==", "!=", ">", ">="};

bool writesTensor(Do op) { return op == Do::TensorOf || op == Do::View; }
bool writesSymbol(Do op) {
  return (op >= Do::SymInt && op <= Do::SymStride) || op == Do::ReadBool || op == Do::ReadInt || op == Do::SizeOf;
}
bool writesNumber(Do op) { return (op >= Do::NumFloat && op <= Do::NumOp) || op == Do::ReadNum; }
bool readsTensor(Do op) { return (op >= Do::View && op <= Do::SizeOf) || op == Do::MakeTensor; }
bool readsNumber(Do op) { return op == Do::NumTest || op == Do::NumIs || op == Do::NumOp || op == Do::MakeNumber; }

} // namespace

std::string text(const Instr &i) {
  std::string s;
  if (i.dst != kNoReg)
    s += str(writesTensor(i.op) ? "t" : writesSymbol(i.op) ? "s" : writesNumber(i.op) ? "n" : "o", i.dst, " = ");
  s += kNames[static_cast<size_t>(i.op)];
  const char *kind = readsTensor(i.op) ? "t" : readsNumber(i.op) ? "n" : "o";
  if (i.a != kNoReg)
    s += str(" ", kind, i.a);
  if (i.op == Do::NumTest)
    s += str(" ", kCompare[i.kind % 6]);
  if (i.b != kNoReg)
    s += str(" ", kind, i.b);
  if (i.key)
    s += " " + nameOf(i.key.get());
  if (i.object)
    s += " " + nameOf(i.object.get());
  if (i.op == Do::TypeAttrIs)
    s += " is " + nameOf(i.extra.get());
  switch (i.op) {
  case Do::NumTest:
    s += i.imm ? " is true" : " is false";
    break;
  case Do::Arg:
  case Do::Item:
  case Do::Cell:
  case Do::CellObject:
  case Do::SlotGet:
  case Do::FunctionGet:
  case Do::Length:
  case Do::SymSize:
  case Do::SymStride:
  case Do::SizeOf:
  case Do::Mode:
  case Do::DictKeyAt:
    s += str(" ", i.imm);
    break;
  default:
    break;
  }
  if (!i.regs.empty())
    s += str(" (", list(i.regs, "o"), ")");
  if (i.data)
    s += " " + i.data->text();
  return i.source.empty() ? s : str(s, "  [", i.source, "]");
}

std::string TensorGuard::text() const {
  std::string s = str(dtype, "[");
  for (size_t i = 0; i < sizes.size(); ++i)
    s += str(i ? ", " : "", sizes[i] < 0 ? std::string("?") : str(sizes[i]));
  s += "]";
  bool fixedStrides = true;
  for (int64_t v : strides)
    fixedStrides &= v >= 0;
  if (contiguous)
    s += " contiguous";
  else if (fixedStrides)
    s += " strides " + listStr(strides);
  s += requiresGrad ? " requires_grad" : "";
  s += hooked ? " with gradient hooks" : "";
  s += leaf ? "" : " not a leaf";
  if (bytes >= 0)
    s += str(" at element ", offset, " of ", bytes, " bytes");
  return s + (wrapped ? " from a number" : "") + (foreign ? " memory shared with others" : "");
}

std::string AliasGuard::text() const {
  std::string s;
  for (size_t i = 0; i < tensors.size(); ++i)
    s += str(i ? " " : "", "o", tensors[i], ":", group[i], offsets[i] ? str("+", offsets[i]) : std::string());
  return s;
}

std::string FactGuard::text() const {
  std::string s;
  for (const Fact &f : facts)
    s += (s.empty() ? "" : ", ") + str(f);
  return s;
}

std::string DimValue::text() const { return str(dim); }

std::string ViewOf::text() const {
  return str(dtype, " sizes ", dims(sizes), " strides ", dims(strides), " offset ", offset);
}

std::string SegmentCall::text() const {
  std::string s = str("piece of ", code ? code->numNodes() : 0, " ops (", list(inputs, "t"), ") -> (");
  for (size_t i = 0; i < outputs.size(); ++i) {
    s += i ? ", " : "";
    if (outputs[i].writeBack >= 0)
      s += str("writes t", inputs[static_cast<size_t>(outputs[i].writeBack)]);
    else
      s += outputs[i].tens == kNoReg ? std::string("-") : str("t", outputs[i].tens);
  }
  return s + ")" + (symbols.empty() ? std::string() : str(" symbols ", dims(symbols)));
}

std::string EagerCall::text() const {
  std::string s = str(op ? op->name : "?", form == CallForm::InPlace ? "_(" : "(");
  bool first = true;
  for (const GVal &v : args.values()) {
    s += str(first ? "" : ", ", "t", v.id);
    first = false;
  }
  return str(s, ") -> (", list(outs, "t"), ")");
}

std::string RngEffect::text() const { return str("by ", blocks, " blocks"); }

} // namespace dlc::py
