// The guard program and the tree: each load and guard hits on the state it was made from and misses after exactly what
// it guards has changed; programs share prefixes; running leaves reference counts alone.
#include "tests/unit/replay/Harness.h"
#include <structmember.h>

using namespace dlc;
using namespace dlc::py;
using namespace dlc::py::test;

namespace {

class Replay : public Python {
protected:
  /// One program: f(arg 0) with the instructions that `write` adds, returning 7.
  void program(const std::function<void(Writer &, Reg)> &write) {
    Writer w;
    Reg a = w.arg(0);
    write(w, a);
    w.retConst(Obj(PyLong_FromLong(7)));
    tree.insert(std::move(w.path));
  }
  /// Hits now; after `change` it misses; after `undo` it hits again (if given).
  void check(const char *subject, const char *change, const char *undo = nullptr, const char *unrelated = nullptr) {
    for (int k = 0; k < 3; ++k)
      EXPECT_EQ(PyLong_AsLong(call(tree, {eval(subject).get()}).get()), 7);
    if (unrelated) {
      exec(unrelated);
      call(tree, {eval(subject).get()});
    }
    exec(change);
    misses(tree, {eval(subject).get()});
    misses(tree, {eval(subject).get()});
    if (undo) {
      exec(undo);
      call(tree, {eval(subject).get()});
    }
  }
  Tree tree;
};

TEST_F(Replay, TypeOfAnArgument) {
  exec("x = 1");
  program([](Writer &w, Reg a) { w.isType(a, reinterpret_cast<PyObject *>(&PyLong_Type)); });
  check("x", "x = True", "x = 2");
}

TEST_F(Replay, NumberOfArguments) {
  program([](Writer &, Reg) {});
  call(tree, {Py_None});
  misses(tree, {Py_None, Py_None});
  misses(tree, {});
}

TEST_F(Replay, KeywordNames) {
  Writer w;
  w.arg(0);
  w.path.nargs = 0;
  w.path.kwnames = eval("('x',)");
  w.retConst(name("r"));
  tree.insert(std::move(w.path));
  PyObject *args[] = {Py_None};
  Obj same = eval("tuple(['x'])"), other = eval("('y',)");
  ReplayResult r = tree.run(Py_None, args, 0, same.get());
  EXPECT_EQ(r.kind, ReplayResult::Kind::Hit);
  Py_XDECREF(r.value);
  EXPECT_EQ(tree.run(Py_None, args, 0, other.get()).kind, ReplayResult::Kind::Miss);
  EXPECT_EQ(tree.run(Py_None, args, 1, nullptr).kind, ReplayResult::Kind::Miss);
}

TEST_F(Replay, DictEntry) {
  exec("d = {'a': 1, 'b': 2}");
  program([&](Writer &w, Reg a) {
    Reg v = w.load(Do::DictGet, a, name("a"));
    w.guard(Do::Equals, v, Obj(PyLong_FromLong(1)));
  });
  check("d", "d['a'] = 5", "d['a'] = 1", "d['b'] = 3; d['c'] = 4");
  check("d", "del d['a']", "d = {'a': 1}");
}

TEST_F(Replay, DictEntryOfAnObjectKey) {
  exec("class K: pass\nk = K(); d = {k: 'v'}; pair = (d, k)");
  program([&](Writer &w, Reg a) {
    Reg d = w.load(Do::Item, a, {}, 0), k = w.load(Do::Item, a, {}, 1), v = w.path.objs++;
    w.body(Do::DictGet, v, d).b = k;
    w.guard(Do::Equals, v, name("v"));
  });
  check("pair", "d[k] = 'w'", "d[k] = 'v'");
  check("pair", "pair = (d, K())", "pair = (d, k)");
}

TEST_F(Replay, AbsentKeyAndOrder) {
  exec("d = {'a': 1, 'b': 2}");
  program([&](Writer &w, Reg a) {
    w.guard(Do::DictLacks, a).key = name("z");
    w.guard(Do::DictKeys, a, eval("('a', 'b')"));
    Reg k = w.load(Do::DictKeyAt, a, {}, 1);
    w.guard(Do::Equals, k, name("b"));
  });
  check("d", "d['z'] = 1", "del d['z']", "d['a'] = 9");
  check("d", "d = {'b': 1, 'a': 2}", "d = {'a': 1, 'b': 2}");
}

TEST_F(Replay, OrderOfAnOrderedDict) {
  exec("import collections; d = collections.OrderedDict(a=1, b=2)");
  program([&](Writer &w, Reg a) {
    w.guard(Do::DictKeys, a, eval("('a', 'b')"));
    Reg k = w.load(Do::DictKeyAt, a, {}, 0);
    w.guard(Do::Equals, k, name("a"));
  });
  check("d", "d.move_to_end('a')", "d.move_to_end('b')");
}

TEST_F(Replay, SetInItsOrder) {
  exec("s = {1, 2}");
  program([&](Writer &w, Reg a) { w.guard(Do::SetItems, a, eval("(1, 2)")); });
  check("s", "s.add(3)", "s.remove(3)");
  check("s", "s = {1, True, 3}");
}

TEST_F(Replay, InstanceAttributeWithoutADict) {
  exec("class C: pass\nc = C(); c.x = 1; c.y = 2");
  program([&](Writer &w, Reg a) {
    Reg v = w.load(Do::AttrGet, a, name("x"));
    w.guard(Do::Equals, v, Obj(PyLong_FromLong(1)));
    w.guard(Do::AttrLacks, a).key = name("z");
  });
  check("c", "c.x = 5", "c.x = 1", "c.y = 7");
  check("c", "del c.x", "c.x = 1");
  check("c", "c.z = 1", "del c.z");
  check("c", "c.__dict__['x'] = 3", "c.__dict__['x'] = 1"); // the dictionary has been made now
  check("c", "c.z = 1", "del c.z");
  check("c", "c = C()", "c.x = 1; c.y = 2");
}

TEST_F(Replay, StoresOfOptimizedCodeAreSeen) {
  // Stores of warm bytecode take other ways than a first one: into the values of an object, into its dictionary by a
  // remembered position, into a dict, a global, a class.
  exec("class C: pass\nplain = C(); plain.x = 0\nfull = C(); full.x = 0; full.__dict__\nd = {'x': 0}\nlive = True\n"
       "def attr(o, v): o.x = v\ndef item(o, v): o['x'] = v\n"
       "def glob(o, v):\n  global live\n  live = v\n"
       "for k in range(200): attr(plain, 0); item(d, 0); glob(None, 0)\n"
       "def attrFull(o, v): o.x = v\nfor k in range(200): attrFull(full, 0)\n"
       "def klass(o, v): o.x = v\nclass K: x = 0\nfor k in range(200): klass(K, 0)\n"
       "both = (plain, full, d, globals(), K)");
  program([&](Writer &w, Reg a) {
    Obj zero(PyLong_FromLong(0));
    Do loads[] = {Do::AttrGet, Do::AttrGet, Do::DictGet, Do::DictGet, Do::TypeGet};
    for (int k = 0; k < 5; ++k) {
      Reg o = w.load(Do::Item, a, {}, k);
      w.guard(Do::Equals, w.load(loads[k], o, name(k == 3 ? "live" : "x")), zero);
    }
  });
  exec("live = 0");
  const char *changes[] = {"attr(plain, 1)", "attrFull(full, 1)", "item(d, 1)", "glob(None, 1)", "klass(K, 1)"};
  const char *undo[] = {"attr(plain, 0)", "attrFull(full, 0)", "item(d, 0)", "glob(None, 0)", "klass(K, 0)"};
  Obj both = eval("both");
  for (int k = 0; k < 5; ++k) {
    call(tree, {both.get()});
    call(tree, {both.get()});
    exec(changes[k]);
    misses(tree, {both.get()});
    exec(undo[k]);
    call(tree, {both.get()});
  }
}

TEST_F(Replay, AbsentAttributeOfObjectsThatShareKeys) {
  exec("class C: pass\na = C(); a.x = 1; b = C(); b.x = 1");
  program([&](Writer &w, Reg a) { w.guard(Do::AttrLacks, a).key = name("late"); });
  call(tree, {eval("a").get()});
  call(tree, {eval("b").get()});
  exec("b.late = 1");
  call(tree, {eval("a").get()});
  misses(tree, {eval("b").get()});
}

TEST_F(Replay, GettersInC) {
  Obj x = tensor({1, 2}), y = tensor({1, 2, 3});
  exec("def f(): pass\ndef g(): pass\ng.__defaults__ = (1,)");
  program([&](Writer &w, Reg a) {
    Reg t = w.load(Do::Item, a, {}, 0), f = w.load(Do::Item, a, {}, 1);
    w.guard(Do::Equals, w.load(Do::GetAttr, t, name("ndim")), Obj(PyLong_FromLong(1)));
    w.guard(Do::Is, w.load(Do::GetAttr, t, name("grad")), Obj::borrow(Py_None));
    w.guard(Do::Is, w.load(Do::GetAttr, f, name("__defaults__")), Obj::borrow(Py_None));
  });
  PyDict_SetItemString(globals_.get(), "x", x.get());
  PyDict_SetItemString(globals_.get(), "y", y.get());
  check("(x, f)", "p = x.grad; x.grad = x + 1", "x.grad = None");
  call(tree, {eval("(y, f)").get()});
  misses(tree, {eval("(y, g)").get()});
  misses(tree, {eval("(1, f)").get()});
}

TEST_F(Replay, SlotOfAnObject) {
  exec("class C:\n  __slots__ = ('x',)\nc = C(); c.x = 'v'");
  int64_t offset = reinterpret_cast<PyMemberDescrObject *>(eval("C.x").get())->d_member->offset;
  program([&](Writer &w, Reg a) {
    Reg v = w.load(Do::SlotGet, a, {}, offset);
    w.guard(Do::Equals, v, name("v"));
  });
  check("c", "c.x = 'w'", "c.x = 'v'");
  check("c", "del c.x", "c.x = 'v'");
}

TEST_F(Replay, ClassAttribute) {
  exec("class B: x = 1\nclass C(B): pass\nc = C()");
  program([&](Writer &w, Reg a) {
    w.isType(a, eval("C").get());
    Instr &g = w.guard(Do::TypeAttrIs, kNoReg, eval("C"));
    g.key = name("x");
    g.extra = eval("B.__dict__['x']");
    Instr &none = w.guard(Do::TypeAttrIs, kNoReg, eval("C"));
    none.key = name("nope");
  });
  check("c", "B.x = 2000", "B.x = 1", "B.y = 3");
  check("c", "C.x = 3000", "del C.x");
  check("c", "B.nope = 1", "del B.nope");
}

TEST_F(Replay, TypeGetLooksThroughTheMro) {
  exec("class B: x = 'v'\nclass C(B): pass");
  program([&](Writer &w, Reg a) {
    Reg v = w.load(Do::TypeGet, a, name("x"));
    w.guard(Do::Equals, v, name("v"));
  });
  check("C", "C.x = 'w'", "del C.x");
}

TEST_F(Replay, FunctionsAndCells) {
  exec("def make(n):\n  def f(a=1, *, b=2): return n\n  return f\nf = make('v'); g = make('v')");
  program([&](Writer &w, Reg a) {
    w.guard(Do::CodeIs, a, eval("f.__code__"));
    Reg cell = w.load(Do::Cell, a, {}, 0);
    w.guard(Do::Equals, cell, name("v"));
    Reg d = w.load(Do::FunctionGet, a, {}, static_cast<int64_t>(FunctionField::Defaults));
    Reg i = w.load(Do::Item, d, {}, 0);
    w.guard(Do::Equals, i, Obj(PyLong_FromLong(1)));
  });
  check("f", "f.__closure__[0].cell_contents = 'w'", "f.__closure__[0].cell_contents = 'v'");
  check("f", "f.__defaults__ = (2,)", "f.__defaults__ = (1,)");
  check("f", "f.__defaults__ = None", "f.__defaults__ = (1,)");
  check("f", "old = f.__code__; f.__code__ = make.__code__.__class__.replace(old, co_name='z')", "f.__code__ = old");
}

TEST_F(Replay, BoundMethods) {
  exec("class C:\n  def m(self): pass\nc = C(); d = C(); m = c.m");
  program([&](Writer &w, Reg a) {
    Reg s = w.load(Do::MethodSelf, a), f = w.load(Do::MethodFunc, a);
    w.guard(Do::Is, s, eval("c"));
    w.guard(Do::Is, f, eval("C.m"));
  });
  check("m", "m = d.m", "m = c.m");
}

TEST_F(Replay, ScalarsByTypeAndValue) {
  struct Case {
    const char *value, *same, *other;
  } cases[] = {{"10**20", "10**20", "10**20 + 1"},
               {"1.5", "3.0 / 2", "1"},
               {"0.0", "0.0", "-0.0"},
               {"float('nan')", "float('nan')", "0.0"},
               {"'ab'", "'a' + chr(98)", "'ac'"},
               {"b'ab'", "bytes([97, 98])", "b'aa'"},
               {"1", "1", "True"},
               {"1", "1", "1.0"},
               {"None", "None", "False"},
               {"2j", "1j + 1j", "2"}};
  for (const Case &c : cases) {
    tree.clear();
    program([&](Writer &w, Reg a) { w.guard(Do::Equals, a, eval(c.value)); });
    call(tree, {eval(c.same).get()});
    misses(tree, {eval(c.other).get()});
  }
}

TEST_F(Replay, NoUserCodeRunsInAGuard) {
  exec("class Loud(int):\n  def __eq__(self, o): raise RuntimeError\n  __hash__ = int.__hash__\nx = 5");
  program([&](Writer &w, Reg a) { w.guard(Do::Equals, a, Obj(PyLong_FromLong(5))); });
  check("x", "x = Loud(5)", "x = 5");
}

TEST_F(Replay, IdentityOfObjects) {
  exec("o = object(); p = (o, o)");
  program([&](Writer &w, Reg a) {
    Reg x = w.load(Do::Item, a, {}, 0), y = w.load(Do::Item, a, {}, 1);
    w.guard(Do::Same, x).b = y;
  });
  check("p", "p = (o, object())", "p = [o, o]");
  tree.clear();
  exec("p = (o, object())");
  program([&](Writer &w, Reg a) {
    Reg x = w.load(Do::Item, a, {}, 0), y = w.load(Do::Item, a, {}, 1);
    w.guard(Do::NotSame, x).b = y;
  });
  check("p", "p = (o, o)");
}

TEST_F(Replay, Lengths) {
  for (const char *value :
       {"[1, 2]", "(1, 2)", "{1: 1, 2: 2}", "{1, 2}", "'ab'", "__import__('collections').deque([1, 2])"}) {
    tree.clear();
    PyDict_SetItemString(globals_.get(), "x", eval(value).get());
    program([&](Writer &w, Reg a) { w.guard(Do::Length, a).imm = 2; });
    check("x", "x = x * 2 if isinstance(x, (str, tuple)) else type(x)()");
  }
}

TEST_F(Replay, ModeOfTheThread) {
  program([&](Writer &w, Reg) { w.guard(Do::Mode, kNoReg).imm = modeWord(); });
  call(tree, {Py_None});
  {
    GradModeScope off(false);
    misses(tree, {Py_None});
  }
  call(tree, {Py_None});
}

TEST_F(Replay, TensorProperties) {
  Obj x = tensor({1, 2, 3});
  program([&](Writer &w, Reg a) { w.tensorArg(a, x.get()); });
  call(tree, {x.get()});
  call(tree, {tensor({4, 5, 6}).get()});
  misses(tree, {tensor({1, 2}).get()});
  EXPECT_EQ(tree.failedSources(), std::vector<std::string>{"size 0 of guard 0"});
  Obj other(wrap(Tensor::empty({3}, DType::F64)));
  misses(tree, {other.get()});
  EXPECT_EQ(tree.failedSources(), std::vector<std::string>{"guard 0"});
  Obj strided(wrap(Tensor::emptyStrided({3}, {2}, DType::F32)));
  misses(tree, {strided.get()});
  misses(tree, {Py_None});
  Obj grad = tensor({1, 2, 3});
  setRequiresGrad(tensorOf(grad.get()), true);
  misses(tree, {grad.get()});
  Obj result(wrap(ops::mul(tensorOf(grad.get()), tensorOf(grad.get()))));
  misses(tree, {result.get()});
  tensorOf(x.get()).storage().markForeign();
  misses(tree, {x.get()});
}

TEST_F(Replay, FreeSizesAndFacts) {
  Obj x = tensor({1, 2, 3, 4});
  program([&](Writer &w, Reg a) {
    w.tensorArg(a, x.get(), true);
    Reg s = w.path.syms++;
    w.body(Do::SymSize, s, a).imm = 0;
    FactSink sink;
    bool even = floorMod(Dim::symbol(0, 4), Dim(2)) == Dim(0);
    EXPECT_TRUE(even);
    auto facts = std::make_shared<FactGuard>();
    facts->facts = sink.take();
    w.guard(Do::Facts, kNoReg).data = facts;
  });
  call(tree, {x.get()});
  call(tree, {tensor({1, 2}).get()});
  misses(tree, {tensor({1, 2, 3}).get()});
  Obj strided(wrap(Tensor::emptyStrided({4}, {2}, DType::F32)));
  misses(tree, {strided.get()});
}

TEST_F(Replay, AliasesOfTensors) {
  Obj base = tensor({1, 2, 3, 4});
  Tensor b = tensorOf(base.get());
  auto part = [&](int64_t offset) { return Obj(wrap(Tensor::viewOf(b.storageRef(), {2}, {1}, offset, DType::F32))); };
  Writer w;
  Reg x = w.arg(0), y = w.arg(1), z = w.arg(2);
  auto g = std::make_shared<AliasGuard>();
  g->tensors = {x, y, z};
  g->group = {0, 0, 1};
  g->offsets = {0, 2, 0};
  w.guard(Do::Aliases, kNoReg).data = g;
  w.retConst(name("r"));
  tree.insert(std::move(w.path));
  Obj p0 = part(0), p2 = part(2), p1 = part(1), other = tensor({1, 2}), third = tensor({1, 2});
  for (int k = 0; k < 2; ++k) {
    call(tree, {p0.get(), p2.get(), other.get()});
    call(tree, {p0.get(), p2.get(), third.get()});
    misses(tree, {p0.get(), p1.get(), other.get()});
    misses(tree, {p0.get(), p2.get(), p1.get()});
    misses(tree, {p0.get(), other.get(), third.get()});
  }
}

TEST_F(Replay, DistinctStoragesOfManyTensors) {
  std::vector<Obj> tensors;
  for (int k = 0; k < 40; ++k)
    tensors.push_back(tensor({float(k)}));
  Writer w;
  auto g = std::make_shared<AliasGuard>();
  std::vector<PyObject *> args;
  for (int k = 0; k < 40; ++k) {
    g->tensors.push_back(w.arg(k));
    g->group.push_back(k);
    g->offsets.push_back(0);
    args.push_back(tensors[static_cast<size_t>(k)].get());
  }
  w.guard(Do::Aliases, kNoReg).data = g;
  w.retConst(name("r"));
  tree.insert(std::move(w.path));
  call(tree, args);
  for (size_t k : {size_t(0), size_t(17), size_t(39)}) { // one other tensor, one that is there already
    std::vector<PyObject *> changed = args;
    Obj fresh = tensor({-1});
    changed[k] = fresh.get();
    call(tree, changed);
    changed[(k + 5) % 40] = fresh.get();
    misses(tree, changed);
    changed = args;
    changed[k] = args[(k + 1) % 40];
    misses(tree, changed);
  }
  std::vector<Obj> others;
  for (size_t k = 0; k < 30; ++k)
    args[k] = others.emplace_back(tensor({float(k)})).get();
  call(tree, args);
  args[3] = args[35];
  misses(tree, args);
  std::swap(args[3], args[2]);
  misses(tree, args);
}

TEST_F(Replay, ProgramsShareAndPart) {
  exec("class C: pass\nc = C(); c.x = 1; d = C(); d.x = 2; e = C(); e.x = 3");
  for (int v = 1; v <= 3; ++v) {
    Writer w;
    Reg a = w.arg(0), x = w.load(Do::AttrGet, a, name("x"));
    w.guard(Do::Equals, x, Obj(PyLong_FromLong(v))).source = "c.x";
    w.retConst(Obj(PyLong_FromLong(10 * v)));
    if (v > 1) {
      misses(tree, {eval(v == 2 ? "d" : "e").get()});
      for (const std::string &source : tree.failedSources())
        EXPECT_EQ(source, "c.x");
    }
    tree.insert(std::move(w.path));
  }
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(PyLong_AsLong(call(tree, {eval("c").get()}).get()), 10);
    EXPECT_EQ(PyLong_AsLong(call(tree, {eval("d").get()}).get()), 20);
    EXPECT_EQ(PyLong_AsLong(call(tree, {eval("e").get()}).get()), 30);
  }
  EXPECT_EQ(tree.stats().paths, 3);
  // The load is in the tree once.
  std::string text = tree.explain();
  EXPECT_EQ(text.find("'x'"), text.rfind("'x'")) << text;
}

TEST_F(Replay, TheSameProgramReplacesTheOldOne) {
  for (int v = 1; v <= 2; ++v) {
    Writer w;
    Reg a = w.arg(0);
    w.isType(a, reinterpret_cast<PyObject *>(Py_TYPE(Py_None)));
    w.retConst(Obj(PyLong_FromLong(v)));
    tree.insert(std::move(w.path));
  }
  EXPECT_EQ(PyLong_AsLong(call(tree, {Py_None}).get()), 2);
  EXPECT_EQ(tree.stats().paths, 1);
}

TEST_F(Replay, TheLeastRecentlyUsedProgramGoes) {
  std::string told;
  int times = 0;
  tree.onLimit = [&](const std::string &source) {
    told = source;
    ++times;
  };
  for (int v = 0; v < Tree::kMaxPaths + 3; ++v) {
    if (v)
      misses(tree, {Obj(PyLong_FromLong(1000 + v)).get()});
    Writer w;
    Reg a = w.arg(0);
    w.guard(Do::Equals, a, Obj(PyLong_FromLong(1000 + v))).source = "arg 0";
    w.retConst(Obj(PyLong_FromLong(v)));
    tree.insert(std::move(w.path));
    call(tree, {Obj(PyLong_FromLong(1000)).get()}); // stays in use
  }
  EXPECT_EQ(tree.stats().paths, Tree::kMaxPaths);
  EXPECT_EQ(times, 1);
  EXPECT_EQ(told, "arg 0");
  misses(tree, {Obj(PyLong_FromLong(1001)).get()});
  call(tree, {Obj(PyLong_FromLong(1000)).get()});
  call(tree, {Obj(PyLong_FromLong(1000 + Tree::kMaxPaths + 2)).get()});
}

TEST_F(Replay, ReferenceCountsStay) {
  exec("class C: pass\nc = C(); c.d = {'k': [1.5]}");
  Obj x = tensor({1, 2}), y = tensor({1, 2, 3}), c = eval("c"), d = eval("c.d"), l = eval("c.d['k']");
  Writer w;
  Reg a = w.arg(0), b = w.arg(1), dict = w.load(Do::AttrGet, a, name("d")), list = w.load(Do::DictGet, dict, name("k"));
  Reg item = w.load(Do::Item, list, {}, 0);
  Reg t = w.tensorArg(b, x.get()), sum = w.segment(adder(false), {t, t});
  w.guard(Do::Equals, item, Obj(PyFloat_FromDouble(1.5)));
  Reg out = w.makeTensor(sum), pair = w.path.objs++;
  Instr &make = w.commit(Do::MakeSequence, pair);
  make.object = Obj::borrow(reinterpret_cast<PyObject *>(&PyTuple_Type));
  make.regs = {out, list, b};
  w.ret(pair);
  tree.insert(std::move(w.path));
  auto counts = [&] {
    return std::vector<Py_ssize_t>{Py_REFCNT(x.get()), Py_REFCNT(y.get()),
                                   Py_REFCNT(c.get()), Py_REFCNT(d.get()),
                                   Py_REFCNT(l.get()), static_cast<Py_ssize_t>(tensorOf(x.get()).impl()->refCount())};
  };
  std::vector<Py_ssize_t> before = counts();
  for (int k = 0; k < 1000; ++k) {
    call(tree, {c.get(), x.get()});
    misses(tree, {c.get(), y.get()});
    PyList_SetItem(l.get(), 0, PyFloat_FromDouble(2.5));
    misses(tree, {c.get(), x.get()});
    PyList_SetItem(l.get(), 0, PyFloat_FromDouble(1.5));
  }
  EXPECT_EQ(counts(), before);
  EXPECT_EQ(tree.stats().hits, 1000);
  EXPECT_EQ(tree.stats().misses, 2000);
  EXPECT_EQ(tree.stats().rollbacks, 1000);
}

TEST_F(Replay, TheCollectorSeesWhatIsHeld) {
  Obj o = eval("object()");
  program([&](Writer &w, Reg a) { w.guard(Do::Is, a, o); });
  std::pair<PyObject *, int> found{o.get(), 0};
  auto visit = [](PyObject *seen, void *arg) {
    auto *f = static_cast<std::pair<PyObject *, int> *>(arg);
    f->second += seen == f->first;
    return 0;
  };
  tree.traverse(visit, &found);
  EXPECT_EQ(found.second, 1);
  misses(tree, {Py_None}); // what failed is remembered, the object is still seen once
  found.second = 0;
  tree.traverse(visit, &found);
  EXPECT_EQ(found.second, 1);
  Py_ssize_t held = Py_REFCNT(o.get());
  tree.clear();
  EXPECT_EQ(Py_REFCNT(o.get()), held - 1);
}

TEST_F(Replay, BrokenProgramsAreRefused) {
  Writer w;
  w.arg(0);
  w.guard(Do::Is, 5, Obj::borrow(Py_None));
  w.retConst(name("r"));
  EXPECT_THROW(tree.insert(std::move(w.path)), Error);
  Writer open;
  open.arg(0);
  EXPECT_THROW(tree.insert(std::move(open.path)), Error);
  EXPECT_TRUE(tree.empty());
}

} // namespace
