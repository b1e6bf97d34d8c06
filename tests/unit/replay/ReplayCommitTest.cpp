// Running pieces and ending calls: what a piece wrote is put back when a later guard fails, random numbers are taken
// only by calls that succeed, effects happen in order and stop where one raises.
#include "python/capture/program/Audit.h"
#include "python/capture/program/Compat.h"
#include "tests/unit/replay/Harness.h"
#include <thread>

using namespace dlc;
using namespace dlc::py;
using namespace dlc::py::test;

namespace {

class ReplayCommit : public Python {
protected:
  Tree tree;
};

/// A piece that doubles its input in place.
std::shared_ptr<FakePiece> doubler(bool isShort = true) {
  return std::make_shared<FakePiece>(
      [](Span<const Tensor> in, Span<const Number>, Ints, std::vector<Tensor> &outs) {
        for (int64_t k = 0; k < in[0].numel(); ++k)
          in[0].dataAs<float>()[k] *= 2;
        outs.push_back(in[0]);
      },
      isShort);
}
void writesInput(SegmentCall &c) {
  c.outputs[0].tens = kNoReg;
  c.outputs[0].writeBack = 0;
  c.outputs[0].versionBumps = 1;
}

TEST_F(ReplayCommit, ObjectsHaveNoDictUnlessAsked) {
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
  exec("class C: pass\nc = C(); c.x = 1");
  EXPECT_NE(compat::instanceOf(eval("c").get()).values, nullptr);
#endif
}

TEST_F(ReplayCommit, APieceRunsAndItsOutputIsFresh) {
  Obj x = tensor({1, 2});
  for (bool isShort : {true, false}) {
    tree.clear();
    Writer w;
    Reg a = w.arg(0), t = w.tensorArg(a, x.get());
    w.ret(w.makeTensor(w.segment(adder(isShort), {t, t})));
    tree.insert(std::move(w.path));
    Obj r1 = call(tree, {x.get()}), r2 = call(tree, {x.get()});
    EXPECT_EQ(valuesOf(r1.get()), (std::vector<float>{2, 4}));
    EXPECT_NE(r1.get(), r2.get());
    EXPECT_NE(tensorOf(r1.get()).data(), tensorOf(r2.get()).data());
  }
}

TEST_F(ReplayCommit, ALastPieceWritesAtOnceAnEarlierOneCanBeTakenBack) {
  Obj x = tensor({1, 2});
  Writer w;
  Reg a = w.arg(0), b = w.arg(1), t = w.tensorArg(a, x.get());
  w.segment(doubler(), {t}, writesInput);
  w.guard(Do::Is, b, Obj::borrow(Py_True));
  w.retConst(name("r"));
  tree.insert(std::move(w.path));
  uint32_t version = tensorOf(x.get()).storage().version();
  misses(tree, {x.get(), Py_False});
  EXPECT_EQ(valuesOf(x.get()), (std::vector<float>{1, 2}));
  EXPECT_EQ(tensorOf(x.get()).storage().version(), version);
  call(tree, {x.get(), Py_True});
  EXPECT_EQ(valuesOf(x.get()), (std::vector<float>{2, 4}));
  EXPECT_EQ(tensorOf(x.get()).storage().version(), version + 1);
  EXPECT_EQ(tree.stats().rollbacks, 1);
}

TEST_F(ReplayCommit, BranchesAreTakenBackOneByOne) {
  // Doubles, then by the argument doubles once or twice more; the branch tried first fails after it has written.
  Obj x = tensor({1, 2});
  auto first = doubler(), second = doubler(), third = doubler();
  for (bool more : {false, true}) {
    Writer w;
    Reg a = w.arg(0), b = w.arg(1), t = w.tensorArg(a, x.get());
    w.segment(first, {t}, writesInput);
    w.segment(second, {t}, [&](SegmentCall &c) {
      writesInput(c);
      c.wholeStorage = {more}; // another piece as far as the tree knows
    });
    if (more)
      w.segment(third, {t}, writesInput);
    w.guard(Do::Is, b, Obj::borrow(more ? Py_True : Py_False));
    w.retConst(name(more ? "more" : "less"));
    tree.insert(std::move(w.path));
  }
  uint32_t version = tensorOf(x.get()).storage().version();
  Obj r = call(tree, {x.get(), Py_False});
  EXPECT_STREQ(PyUnicode_AsUTF8(r.get()), "less");
  EXPECT_EQ(valuesOf(x.get()), (std::vector<float>{4, 8}));
  EXPECT_EQ(tensorOf(x.get()).storage().version(), version + 2);
  EXPECT_EQ(first->runs, 1);
  r = call(tree, {x.get(), Py_True});
  EXPECT_EQ(valuesOf(x.get()), (std::vector<float>{32, 64}));
  misses(tree, {x.get(), Py_None});
  EXPECT_EQ(valuesOf(x.get()), (std::vector<float>{32, 64}));
}

TEST_F(ReplayCommit, APieceThatFailsIsAMissOutOfMemoryIsNot) {
  Obj x = tensor({1, 2});
  std::function<void()> failure;
  auto piece =
      std::make_shared<FakePiece>([&](Span<const Tensor> in, Span<const Number>, Ints, std::vector<Tensor> &outs) {
        if (failure)
          failure();
        outs.push_back(in[0]);
      });
  Writer w;
  Reg a = w.arg(0), t = w.tensorArg(a, x.get());
  w.segment(doubler(), {t}, writesInput);
  w.segment(piece, {t});
  w.retConst(name("r"));
  tree.insert(std::move(w.path));
  failure = [] { fail(ErrorKind::Index, "index out of range"); };
  misses(tree, {x.get()});
  EXPECT_EQ(valuesOf(x.get()), (std::vector<float>{1, 2}));
  for (int kind = 0; kind < 2; ++kind) {
    failure = [&] { kind ? throw std::bad_alloc() : fail(ErrorKind::Memory, "no memory"); };
    call(tree, {x.get()}, ReplayResult::Kind::Raised);
    EXPECT_TRUE(PyErr_ExceptionMatches(PyExc_MemoryError));
    PyErr_Clear();
    EXPECT_EQ(valuesOf(x.get()), (std::vector<float>{1, 2}));
  }
  failure = nullptr;
  call(tree, {x.get()});
  EXPECT_EQ(valuesOf(x.get()), (std::vector<float>{2, 4}));
}

TEST_F(ReplayCommit, SymbolsReachThePiece) {
  Obj x = tensor({1, 2, 3});
  std::vector<int64_t> seen;
  auto piece = std::make_shared<FakePiece>(
      [&](Span<const Tensor> in, Span<const Number> numbers, Ints symbols, std::vector<Tensor> &outs) {
        seen = symbols.vec();
        seen.push_back(numbers[0].toInt());
        outs.push_back(in[0]);
      });
  piece->refuse = [](Ints symbols) { return symbols[0] == 10; };
  Writer w;
  Reg a = w.arg(0), t = w.tensorArg(a, x.get(), true), s = w.path.syms++;
  w.body(Do::SymSize, s, a).imm = 0;
  Dim n = Dim::symbol(0, 3);
  w.segment(piece, {t}, [&](SegmentCall &c) {
    c.symbols = {n * Dim(2)};
    SegmentCall::Number_ number;
    number.source.kind = trace::NumberSource::Kind::Session;
    number.dim = n + Dim(1);
    c.numbers = {number};
  });
  Reg size = w.path.objs++;
  auto value = std::make_shared<DimValue>();
  value->dim = n * n;
  w.commit(Do::MakeInt, size).data = value;
  w.ret(size);
  tree.insert(std::move(w.path));
  EXPECT_EQ(PyLong_AsLong(call(tree, {x.get()}).get()), 9);
  EXPECT_EQ(seen, (std::vector<int64_t>{6, 4}));
  EXPECT_EQ(PyLong_AsLong(call(tree, {tensor({1, 2}).get()}).get()), 4);
  misses(tree, {tensor({1, 2, 3, 4, 5}).get()});
}

TEST_F(ReplayCommit, RandomNumbersAreTakenBySuccessOnly) {
  auto generator = makeRef<Generator>(5);
  generator->setOffset(100);
  std::vector<int64_t> offsets;
  auto piece =
      std::make_shared<FakePiece>([&](Span<const Tensor>, Span<const Number> numbers, Ints, std::vector<Tensor> &outs) {
        EXPECT_EQ(numbers[0].toInt(), 5);
        offsets.push_back(numbers[1].toInt());
        outs.push_back(Tensor::empty({1}, DType::F32));
      });
  Writer w;
  Reg a = w.arg(0);
  for (int k = 0; k < 2; ++k)
    w.segment(piece, {}, [&](SegmentCall &c) {
      c.numbers.resize(2);
      c.numbers[0].source.kind = trace::NumberSource::Kind::Seed;
      c.numbers[1].source.kind = trace::NumberSource::Kind::Offset;
      c.numbers[0].source.generator = c.numbers[1].source.generator = generator.get();
      c.numbers[1].source.blocks = 3;
    });
  w.guard(Do::Is, a, Obj::borrow(Py_None));
  auto take = std::make_shared<RngEffect>();
  take->generator = generator;
  take->blocks = 6;
  w.commit(Do::RngTake, kNoReg).data = take;
  w.retConst(name("r"));
  tree.insert(std::move(w.path));
  misses(tree, {Py_True});
  EXPECT_EQ(generator->offset(), 100u);
  call(tree, {Py_None});
  EXPECT_EQ(generator->offset(), 106u);
  EXPECT_EQ(offsets, (std::vector<int64_t>{100, 103, 100, 103}));
}

TEST_F(ReplayCommit, EagerOpsRunAndAreTakenBack) {
  Obj x = tensor({1, 2});
  const OpInfo &add = opNamed("add");
  std::vector<Arg<GVal>> args(add.params.size());
  GVal self{0};
  args[0] = Arg<GVal>::of(self);
  args[1] = Arg<GVal>::of(self);
  if (args.size() > 2)
    args[2] = Arg<GVal>::number(Number(1));
  for (CallForm form : {CallForm::Functional, CallForm::InPlace}) {
    tree.clear();
    Obj y = tensor({1, 2});
    Writer w;
    Reg a = w.arg(0), b = w.arg(1);
    ASSERT_EQ(w.tensorArg(a, x.get()), 0);
    auto op = std::make_shared<EagerCall>();
    op->op = &add;
    op->form = form;
    op->args = OwnedArgs<GVal>(Span<const Arg<GVal>>(args.data(), args.size()));
    Reg out = w.path.tens++;
    op->outs = {out};
    w.body(Do::Eager, kNoReg).data = op;
    w.guard(Do::Is, b, Obj::borrow(Py_None));
    if (form == CallForm::Functional)
      w.ret(w.makeTensor(out));
    else
      w.ret(a);
    tree.insert(std::move(w.path));
    misses(tree, {y.get(), Py_True});
    EXPECT_EQ(valuesOf(y.get()), (std::vector<float>{1, 2}));
    EXPECT_EQ(valuesOf(call(tree, {y.get(), Py_None}).get()), (std::vector<float>{2, 4}));
  }
}

TEST_F(ReplayCommit, ReadsOfResultsChooseTheBranch) {
  Obj x = tensor({1});
  for (bool positive : {true, false}) {
    Writer w;
    Reg a = w.arg(0), t = w.tensorArg(a, x.get()), sum = w.segment(adder(), {t});
    Reg n = w.path.nums++, zero = w.path.nums++, s = w.path.syms++;
    w.body(Do::ReadNum, n, sum);
    w.body(Do::ReadBool, s, sum);
    auto nothing = std::make_shared<DimValue>();
    w.body(Do::NumDim, zero).data = nothing;
    Instr &test = w.guard(Do::NumTest, n);
    test.b = zero;
    test.kind = Py_GT;
    test.imm = positive;
    Reg twice = w.path.nums++, made = w.path.objs++;
    Instr &op = w.body(Do::NumOp, twice, n);
    op.b = n;
    op.kind = static_cast<uint8_t>(NumKind::Add);
    w.commit(Do::MakeNumber, made, positive ? twice : n);
    w.ret(made);
    tree.insert(std::move(w.path));
  }
  EXPECT_EQ(PyFloat_AsDouble(call(tree, {tensor({1.5}).get()}).get()), 3);
  EXPECT_EQ(PyFloat_AsDouble(call(tree, {tensor({-1.5}).get()}).get()), -1.5);
  EXPECT_EQ(tree.stats().rollbacks, 0);
}

TEST_F(ReplayCommit, EffectsHappenInOrderAndStopWhereOneRaises) {
  exec("log = []\nclass C: pass\nc = C()\nd = {}\n"
       "def effect(x):\n  log.append((x, getattr(c, 'x', None), dict(d)))\n  if x == 'raise': raise KeyError('k')\n");
  Writer w;
  Reg a = w.arg(0);
  Reg f = w.constant(eval("effect")), c = w.constant(eval("c")), d = w.constant(eval("d")),
      one = w.constant(name("one"));
  auto callIt = [&](Reg x) { w.commit(Do::Call, kNoReg, f).regs = {x}; };
  callIt(one);
  Instr &attr = w.commit(Do::SetAttr, kNoReg, c);
  attr.key = name("x");
  attr.b = one;
  callIt(a);
  Instr &item = w.commit(Do::SetItem, kNoReg, d);
  item.b = one;
  item.regs = {a};
  callIt(one);
  w.ret(a);
  tree.insert(std::move(w.path));
  call(tree, {name("fine").get()});
  EXPECT_EQ(
      PyObject_IsTrue(eval("log == [('one', None, {}), ('fine', 'one', {}), ('one', 'one', {'one': 'fine'})]").get()),
      1);
  exec("log.clear(); d.clear(); del c.x");
  call(tree, {name("raise").get()}, ReplayResult::Kind::Raised);
  EXPECT_TRUE(PyErr_ExceptionMatches(PyExc_KeyError));
  PyErr_Clear();
  EXPECT_EQ(
      PyObject_IsTrue(eval("log == [('one', None, {}), ('raise', 'one', {})] and d == {} and c.x == 'one'").get()), 1);
}

TEST_F(ReplayCommit, DroppedObjectsGoAfterTheLastEffect) {
  exec("seen = []\nclass D:\n  def __del__(self): seen.append((c.x, c.y))\nclass C: pass\nc = C(); c.x = D(); c.y = 0");
  Writer w;
  Reg a = w.arg(0), c = w.constant(eval("c"));
  for (const char *key : {"x", "y"}) {
    Instr &set = w.commit(Do::SetAttr, kNoReg, c);
    set.key = name(key);
    set.b = a;
  }
  w.ret(a);
  tree.insert(std::move(w.path));
  call(tree, {Py_None});
  EXPECT_EQ(PyObject_IsTrue(eval("seen == [(None, None)]").get()), 1);
}

TEST_F(ReplayCommit, StoresOfEveryKind) {
  exec("g = {'n': 1}\nl = [1, 2]\nclass C:\n  __slots__ = ('s', '__dict__')\nc = C(); c.s = 1; c.t = 2\n"
       "def outer():\n  v = 1\n  def f(): return v\n  return f\nf = outer()");
  Writer w;
  Reg a = w.arg(0), g = w.constant(eval("g")), l = w.constant(eval("l")), c = w.constant(eval("c"));
  Reg cell = w.constant(eval("f.__closure__[0]")), zero = w.constant(Obj(PyLong_FromLong(0)));
  Instr &global = w.commit(Do::SetGlobal, kNoReg, g);
  global.key = name("m");
  global.b = a;
  w.commit(Do::SetGlobal, kNoReg, g).key = name("n"); // deleted
  Instr &item = w.commit(Do::SetItem, kNoReg, l);
  item.b = zero;
  item.regs = {a};
  w.commit(Do::SetCell, kNoReg, cell).b = a;
  Instr &slot = w.commit(Do::SetAttr, kNoReg, c);
  slot.key = name("s");
  slot.b = a;
  w.commit(Do::SetAttr, kNoReg, c).key = name("t"); // deleted
  w.ret(a);
  tree.insert(std::move(w.path));
  call(tree, {name("v").get()});
  EXPECT_EQ(PyObject_IsTrue(
                eval("g == {'m': 'v'} and l == ['v', 2] and f() == 'v' and c.s == 'v' and not hasattr(c, 't')").get()),
            1);
}

TEST_F(ReplayCommit, AStoreToAClassIsSeenByItsInstances) {
  exec("class C: n = 0\nc = C()\ndef get(): return c.n\nfor k in range(100): get()");
  Writer w;
  Reg a = w.arg(0);
  Instr &set = w.commit(Do::SetAttr, kNoReg, w.constant(eval("C")));
  set.key = name("n");
  set.b = a;
  w.ret(a);
  tree.insert(std::move(w.path));
  call(tree, {name("v").get()});
  EXPECT_STREQ(PyUnicode_AsUTF8(eval("get()").get()), "v");
}

TEST_F(ReplayCommit, ResultsOfEveryKind) {
  exec("import collections\nP = collections.namedtuple('P', 'x y')\nclass C:\n  prop = property(lambda s: 9)\ndef "
       "code(u=1): return u");
  Writer w;
  Reg a = w.arg(0);
  auto make = [&](Do op, const char *object, std::vector<Reg> regs, const char *key = nullptr) {
    Reg r = w.path.objs++;
    Instr &i = w.commit(op, r);
    i.object = object ? eval(object) : Obj();
    i.key = key ? eval(key) : Obj();
    i.regs = std::move(regs);
    return r;
  };
  Reg k = w.constant(name("k")), none = w.constant(Obj::borrow(Py_None)), glob = w.constant(globals_);
  Reg fname = w.constant(name("made")), defaults = w.constant(eval("(5,)"));
  Reg list = make(Do::MakeSequence, "list", {a, k}), pair = make(Do::MakeSequence, "P", {a, list});
  Reg set = make(Do::MakeSequence, "set", {k}), frozen = make(Do::MakeSequence, "frozenset", {k});
  Reg dict = make(Do::MakeDict, "dict", {k, pair}), od = make(Do::MakeDict, "collections.OrderedDict", {k, a, a, k});
  Reg obj = make(Do::MakeObject, "C", {a, a}, "('attr', 'prop')");
  Reg fn = make(Do::MakeFunction, "code.__code__", {glob, fname, defaults, none, none, none});
  Reg slice = make(Do::MakeSlice, nullptr, {none, k, none}), textReg = make(Do::MakeText, nullptr, {k, k});
  Reg size = make(Do::MakeSequence, "C.Size if hasattr(C, 'Size') else tuple", {});
  Reg cyclic = make(Do::MakeSequence, "list", {});
  w.commit(Do::Fill, kNoReg, cyclic).regs = {cyclic, a};
  w.ret(make(Do::MakeSequence, "tuple", {list, pair, set, frozen, dict, od, obj, fn, slice, textReg, size, cyclic}));
  tree.insert(std::move(w.path));
  Obj r = call(tree, {name("v").get()});
  ASSERT_TRUE(r);
  PyDict_SetItemString(globals_.get(), "r", r.get());
  exec("l, p, s, fs, d, od, o, f, sl, t, sz, cy = r\n"
       "assert l == ['v', 'k'] and p == ('v', l) and type(p) is P and p.y is l\n"
       "assert s == {'k'} and type(fs) is frozenset and d == {'k': p} and list(od) == ['k', 'v']\n"
       "assert type(od) is collections.OrderedDict and o.attr == 'v' and type(o) is C and o.prop == 9 and o.__dict__ "
       "== {'attr': 'v', 'prop': 'v'}\n"
       "assert f() == 5 and f.__name__ == 'made' and sl == slice(None, 'k', None) and t == 'kk'\n"
       "assert cy[0] is cy and cy[1] == 'v'\n");
}

TEST_F(ReplayCommit, AMakeThatFailsIsAMissBeforeAnyEffect) {
  exec("log = []");
  Writer w;
  Reg a = w.arg(0), append = w.constant(eval("log.append"));
  w.commit(Do::Call, kNoReg, append).regs = {a};
  Reg set = w.path.objs++;
  Instr &make = w.commit(Do::MakeSequence, set);
  make.object = eval("set");
  make.regs = {a};
  w.ret(set);
  tree.insert(std::move(w.path));
  call(tree, {name("v").get()});
  misses(tree, {eval("[]").get()}); // not hashable
  EXPECT_EQ(evalInt("len(log)"), 1);
}

TEST_F(ReplayCommit, CtrlCBeforeTheCommitChangesNothing) {
  exec("import signal\nlog = []\ndef onSignal(*a): raise KeyboardInterrupt\nsignal.signal(signal.SIGINT, onSignal)");
  Obj x = tensor({1, 2});
  auto interrupt =
      std::make_shared<FakePiece>([&](Span<const Tensor> in, Span<const Number>, Ints, std::vector<Tensor> &outs) {
        PyErr_SetInterrupt();
        outs.push_back(in[0]);
      });
  for (bool direct : {false, true}) { // the interrupt comes before the last piece, which writes, or before the commit
    tree.clear();
    Writer w;
    Reg a = w.arg(0), t = w.tensorArg(a, x.get());
    if (!direct)
      w.segment(doubler(), {t}, writesInput);
    w.segment(interrupt, {t});
    if (direct)
      w.segment(doubler(), {t}, writesInput);
    w.commit(Do::Call, kNoReg, w.constant(eval("log.append"))).regs = {a};
    w.ret(a);
    tree.insert(std::move(w.path));
    call(tree, {x.get()}, ReplayResult::Kind::Raised);
    EXPECT_TRUE(PyErr_ExceptionMatches(PyExc_KeyboardInterrupt));
    PyErr_Clear();
    EXPECT_EQ(valuesOf(x.get()), (std::vector<float>{1, 2}));
    EXPECT_EQ(evalInt("len(log)"), 0);
  }
  exec("signal.signal(signal.SIGINT, signal.SIG_DFL)");
}

TEST_F(ReplayCommit, OthersMayChangeEverythingWhileAPieceRuns) {
  exec("class C: pass\nc = C(); c.v = [1, 2, 3]; c.t = None");
  Obj x = tensor({1, 2});
  PyDict_SetItemString(globals_.get(), "t", tensor({5, 6}).get());
  exec("c.t = t; del t");
  auto piece = std::make_shared<FakePiece>(
      [&](Span<const Tensor> in, Span<const Number>, Ints, std::vector<Tensor> &outs) {
        std::thread other([&] {
          HoldGil hold;
          PyRun_SimpleString("pass");
          Obj done(PyRun_String("c.v = None; c.t = None", Py_file_input, globals_.get(), globals_.get()));
          tree.clear();
          Writer w;
          w.retConst(name("other"));
          tree.insert(std::move(w.path));
        });
        other.join();
        Tensor sum = Tensor::empty({2}, DType::F32);
        for (int k = 0; k < 2; ++k)
          sum.dataAs<float>()[k] = in[0].dataAs<float>()[k];
        outs.push_back(sum);
      },
      false);
  Writer w;
  Reg a = w.arg(0), v = w.load(Do::AttrGet, a, name("v")), t = w.load(Do::AttrGet, a, name("t"));
  Reg in = w.tensorArg(t, eval("c.t").get()), out = w.makeTensor(w.segment(piece, {in}));
  Reg both = w.path.objs++;
  Instr &make = w.commit(Do::MakeSequence, both);
  make.object = eval("tuple");
  make.regs = {v, out};
  w.ret(both);
  tree.insert(std::move(w.path));
  Obj r = call(tree, {eval("c").get()});
  ASSERT_TRUE(r);
  EXPECT_EQ(PyList_GET_SIZE(PyTuple_GET_ITEM(r.get(), 0)), 3);
  EXPECT_EQ(valuesOf(PyTuple_GET_ITEM(r.get(), 1)), (std::vector<float>{5, 6}));
  EXPECT_EQ(tree.stats().paths, 1);
  Obj other = call(tree, {});
  EXPECT_STREQ(PyUnicode_AsUTF8(other.get()), "other");
}

TEST_F(ReplayCommit, AnEffectMayCallTheFunctionAgain) {
  exec("depth = [0]\ndef again(): pass");
  Writer w;
  Reg a = w.arg(0);
  w.commit(Do::Call, kNoReg, a);
  w.retConst(name("r"));
  tree.insert(std::move(w.path));
  static Tree *running;
  static int depth;
  running = &tree;
  depth = 0;
  static PyMethodDef def{"again",
                         [](PyObject *self, PyObject *) -> PyObject * {
                           if (++depth > 3)
                             Py_RETURN_NONE;
                           PyObject *args[] = {self ? PyTuple_GET_ITEM(self, 0) : Py_None};
                           Obj me(PyCFunction_New(&def, self));
                           args[0] = me.get();
                           return running->run(Py_None, args, 1, nullptr).value;
                         },
                         METH_NOARGS, nullptr};
  Obj fn(PyCFunction_New(&def, nullptr));
  call(tree, {fn.get()});
  EXPECT_EQ(depth, 4);
  EXPECT_EQ(tree.stats().hits, 4);
}

/// Doubles x in place, stores its argument, returns twice the sum: and what Python might do instead.
TEST_F(ReplayCommit, APreviewChangesNothingAndSeesEveryDifference) {
  exec("class C: pass\nc = C(); c.n = 0; d = {}");
  Obj x = tensor({1, 2});
  auto generator = makeRef<Generator>(5);
  Writer w;
  Reg a = w.arg(0), b = w.arg(1), t = w.tensorArg(a, x.get());
  Reg sum = w.segment(adder(), {t, t});
  w.segment(doubler(), {t}, writesInput);
  Reg c = w.constant(eval("c")), d = w.constant(eval("d"));
  Instr &attr = w.commit(Do::SetAttr, kNoReg, c);
  attr.key = name("n");
  attr.b = b;
  Instr &item = w.commit(Do::SetItem, kNoReg, d);
  item.b = b;
  item.regs = {a};
  auto take = std::make_shared<RngEffect>();
  take->generator = generator;
  take->blocks = 2;
  w.commit(Do::RngTake, kNoReg).data = take;
  Reg out = w.makeTensor(sum), pair = w.path.objs++;
  Instr &make = w.commit(Do::MakeSequence, pair);
  make.object = eval("list");
  make.regs = {out, b};
  w.ret(pair);
  tree.insert(std::move(w.path));

  Obj one(PyLong_FromLong(1));
  PyDict_SetItemString(globals_.get(), "x", x.get());
  struct Case {
    const char *python, *difference;
    float doubled, sum;
  } cases[] = {{"", "", 2, 2},
               {"c.n = 2", "attribute n", 2, 2},
               {"del c.n", "attribute n", 2, 2},
               {"d[1] = None", "item", 2, 2},
               {"result = tuple", "result: a list, Python has a tuple", 2, 2},
               {"", "written in place", 3, 2},
               {"", "result[0]: other values", 2, 5}};
  for (const Case &k : cases) {
    exec("c.n = 0; d.clear(); result = list");
    tensorOf(x.get()).dataAs<float>()[0] = 1;
    tensorOf(x.get()).dataAs<float>()[1] = 2;
    PyObject *args[] = {x.get(), one.get()};
    auto p = preview(tree, Py_None, args, 2, nullptr);
    ASSERT_TRUE(p);
    EXPECT_EQ(valuesOf(x.get()), (std::vector<float>{1, 2}));
    EXPECT_EQ(evalInt("c.n"), 0);
    EXPECT_EQ(evalInt("len(d)"), 0);
    EXPECT_EQ(generator->offset() % 2, 0u);
    // What Python does.
    exec("c.n = 1; d[1] = x");
    exec(k.python);
    for (int e = 0; e < 2; ++e)
      tensorOf(x.get()).dataAs<float>()[e] *= k.doubled;
    tensorOf(x.get()).storage().bumpVersion();
    generator->take(2);
    PyDict_SetItemString(globals_.get(), "y", tensor({k.sum, 4}).get());
    std::string found = p->compare(eval("result([y, 1])").get());
    if (*k.difference)
      EXPECT_NE(found.find(k.difference), std::string::npos) << k.python << ": " << found;
    else
      EXPECT_EQ(found, "");
  }
  PyObject *args[] = {x.get(), Py_None};
  EXPECT_TRUE(preview(tree, Py_None, args, 2, nullptr));
  args[0] = Py_None;
  EXPECT_FALSE(preview(tree, Py_None, args, 2, nullptr));
  auto p = preview(tree, Py_None, (args[0] = x.get(), args), 2, nullptr);
  EXPECT_NE(p->compare(Py_None).find("random numbers"), std::string::npos);
  EXPECT_EQ(tree.stats().hits, 0);
}

} // namespace
