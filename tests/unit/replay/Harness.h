// An embedded interpreter and short ways to write replay programs.
#pragma once
#include "python/capture/program/Tree.h"
#include "runtime/op/Functional.h"
#include <functional>
#include <gtest/gtest.h>

extern "C" PyObject *PyInit__C();

namespace dlc::py::test {

/// Starts Python once, with dlc's types, and runs source text in a namespace of its own.
class Python : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    if (!Py_IsInitialized()) {
      PyImport_AppendInittab("_C", PyInit__C);
      Py_InitializeEx(0);
    }
    Obj module(PyImport_ImportModule("_C"));
    ASSERT_TRUE(module) << error();
  }
  void SetUp() override {
    globals_ = Obj(PyDict_New());
    PyDict_SetItemString(globals_.get(), "__builtins__", PyEval_GetBuiltins());
    Obj module(PyImport_ImportModule("_C"));
    PyDict_SetItemString(globals_.get(), "C", module.get());
  }
  void TearDown() override { EXPECT_FALSE(PyErr_Occurred()) << error(); }

  void exec(const char *code) {
    Obj done(PyRun_String(code, Py_file_input, globals_.get(), globals_.get()));
    ASSERT_TRUE(done) << error();
  }
  Obj eval(const char *code) {
    Obj value(PyRun_String(code, Py_eval_input, globals_.get(), globals_.get()));
    EXPECT_TRUE(value) << code << ": " << error();
    return value;
  }
  int64_t evalInt(const char *code) { return PyLong_AsLongLong(eval(code).get()); }
  static std::string error() {
    if (!PyErr_Occurred())
      return "";
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    Obj t(type), v(value), tb(trace), text(PyObject_Str(value ? value : type));
    return str(reinterpret_cast<PyTypeObject *>(type)->tp_name, ": ", text ? PyUnicode_AsUTF8(text.get()) : "?");
  }
  static Obj name(const char *s) { return Obj(PyUnicode_InternFromString(s)); }
  static Obj tensor(std::vector<float> values) {
    int64_t n = static_cast<int64_t>(values.size());
    Tensor t = Tensor::empty(Ints(&n, 1), DType::F32);
    std::copy(values.begin(), values.end(), t.dataAs<float>());
    return Obj(wrap(std::move(t)));
  }
  static std::vector<float> valuesOf(PyObject *o) {
    const Tensor &t = tensorOf(o);
    return {t.dataAs<float>(), t.dataAs<float>() + t.numel()};
  }
  Obj globals_;
};

/// A piece that does what a function says.
class FakePiece final : public trace::PieceCode {
public:
  using Body =
      std::function<void(Span<const Tensor> in, Span<const Number> numbers, Ints symbols, std::vector<Tensor> &outs)>;
  explicit FakePiece(Body body, bool isShort = true) : body_(std::move(body)), short_(isShort) {}
  bool accepts(Ints symbols) const override { return !refuse || !refuse(symbols); }
  void run(Span<const Tensor> in, Span<const Number> numbers, Ints symbols, std::vector<Tensor> &outs) override {
    ++runs;
    body_(in, numbers, symbols, outs);
  }
  size_t numNodes() const override { return 1; }
  bool isShort() const override { return short_; }
  std::function<bool(Ints)> refuse;
  int runs = 0;

private:
  Body body_;
  bool short_;
};

/// Writes a Path instruction by instruction.
class Writer {
public:
  Path path;
  Instr &body(Do op, Reg dst, Reg a = kNoReg) { return add(path.body, op, dst, a); }
  Instr &commit(Do op, Reg dst, Reg a = kNoReg) { return add(path.commit, op, dst, a); }
  Reg arg(int64_t i) {
    Reg r = path.objs++;
    body(Do::Arg, r).imm = i;
    path.nargs = std::max<Py_ssize_t>(path.nargs, i + 1);
    return r;
  }
  Reg load(Do op, Reg a, const Obj &key = {}, int64_t imm = 0) {
    Reg r = path.objs++;
    Instr &i = body(op, r, a);
    i.key = key;
    i.imm = imm;
    i.source = str("source ", r);
    return r;
  }
  Reg constant(const Obj &o) {
    Reg r = path.objs++;
    body(Do::Const, r).object = o;
    return r;
  }
  Instr &guard(Do op, Reg a, const Obj &object = {}) {
    Instr &i = body(op, kNoReg, a);
    i.object = object;
    i.source = str("guard ", a);
    return i;
  }
  void isType(Reg a, PyObject *type) { guard(Do::IsType, a, Obj::borrow(type)); }
  /// Type, tensor guard and tensor register of a tensor argument like `like`.
  Reg tensorArg(Reg a, PyObject *like, bool freeSizes = false) {
    isType(a, reinterpret_cast<PyObject *>(Py_TYPE(like)));
    auto g = std::make_shared<TensorGuard>();
    const Tensor &t = tensorOf(like);
    g->type = Py_TYPE(like);
    g->dtype = t.dtype();
    g->sizes = t.sizes();
    g->strides = t.strides();
    g->requiresGrad = requiresGrad(t);
    g->leaf = isLeaf(t);
    g->contiguous = t.isContiguous();
    if (freeSizes)
      for (size_t d = 0; d < g->sizes.size(); ++d)
        g->sizes[d] = g->strides[d] = -1;
    guard(Do::Tensor, a).data = g;
    Reg r = path.tens++;
    body(Do::TensorOf, r, a);
    return r;
  }
  /// A piece over tensor registers with one new output.
  Reg segment(std::shared_ptr<trace::PieceCode> code, std::vector<Reg> inputs,
              const std::function<void(SegmentCall &)> &more = nullptr) {
    auto call = std::make_shared<SegmentCall>();
    call->code = std::move(code);
    call->inputs = std::move(inputs);
    Reg r = path.tens++;
    call->outputs.push_back({r, -1, 0});
    if (more)
      more(*call);
    body(Do::Segment, kNoReg).data = call;
    return r;
  }
  Reg makeTensor(Reg t) {
    Reg r = path.objs++;
    commit(Do::MakeTensor, r, t);
    return r;
  }
  void ret(Reg a) { commit(Do::Return, kNoReg, a); }
  void retConst(const Obj &o) {
    Reg r = path.objs++;
    commit(Do::Const, r).object = o;
    ret(r);
  }

private:
  Instr &add(std::vector<Instr> &to, Do op, Reg dst, Reg a) {
    Instr &i = to.emplace_back();
    i.op = op;
    i.dst = dst;
    i.a = a;
    return i;
  }
};

/// Runs a tree on arguments; returns the result, or null for a miss or an error.
inline Obj call(Tree &tree, std::vector<PyObject *> args, ReplayResult::Kind expect = ReplayResult::Kind::Hit,
                PyObject *callee = Py_None) {
  ReplayResult r = tree.run(callee, args.data(), static_cast<Py_ssize_t>(args.size()), nullptr);
  EXPECT_EQ(static_cast<int>(r.kind), static_cast<int>(expect)) << tree.lastMiss();
  return Obj(r.value);
}
inline void misses(Tree &tree, std::vector<PyObject *> args) { call(tree, args, ReplayResult::Kind::Miss); }

/// A piece that adds its inputs.
inline std::shared_ptr<FakePiece> adder(bool isShort = true) {
  return std::make_shared<FakePiece>(
      [](Span<const Tensor> in, Span<const Number>, Ints, std::vector<Tensor> &outs) {
        Tensor sum = Tensor::empty(in[0].sizes(), DType::F32);
        for (int64_t k = 0; k < sum.numel(); ++k) {
          float v = 0;
          for (const Tensor &t : in)
            v += t.dataAs<float>()[k];
          sum.dataAs<float>()[k] = v;
        }
        outs.push_back(sum);
      },
      isShort);
}

} // namespace dlc::py::test
