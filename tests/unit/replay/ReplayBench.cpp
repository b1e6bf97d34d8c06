// How long a hit takes: prints numbers, asserts only that the calls hit.
#include "tests/unit/replay/Harness.h"
#include <chrono>

using namespace dlc;
using namespace dlc::py;
using namespace dlc::py::test;

namespace {

class ReplayBench : public Python {
protected:
  /// Best of several rounds of `n` calls, in nanoseconds a call.
  double time(const char *what, std::vector<PyObject *> args, int n = 2000) {
    double best = 1e30;
    for (int round = 0; round < 9; ++round) {
      auto start = std::chrono::steady_clock::now();
      for (int k = 0; k < n; ++k) {
        ReplayResult r = tree.run(Py_None, args.data(), static_cast<Py_ssize_t>(args.size()), nullptr);
        if (r.kind != ReplayResult::Kind::Hit) {
          ADD_FAILURE() << tree.lastMiss();
          return 0;
        }
        Py_DECREF(r.value);
      }
      std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
      best = std::min(best, spent.count() / n);
    }
    std::printf("%-60s %8.0f ns\n", what, best);
    return best;
  }
  /// A piece that only allocates its output.
  static std::shared_ptr<FakePiece> empty() {
    return std::make_shared<FakePiece>([](Span<const Tensor> in, Span<const Number>, Ints, std::vector<Tensor> &outs) {
      outs.push_back(Tensor::empty(in[0].sizes(), DType::F32));
    });
  }
  Tree tree;
};

TEST_F(ReplayBench, Nothing) {
  Writer w;
  w.ret(w.arg(0));
  tree.insert(std::move(w.path));
  time("returns its argument", {Py_None});
}

TEST_F(ReplayBench, SmallPrograms) {
  exec("class C: pass\nc = C(); c.a = 1; c.b = 'x'; c.d = {'k': 2.5}\ng = {'f': 1, 'h': 2, 'i': 3}");
  for (int inputs : {1, 10}) {
    tree.clear();
    std::vector<Obj> tensors;
    std::vector<PyObject *> args;
    Writer w;
    std::vector<Reg> tens, objs;
    for (int k = 0; k < inputs; ++k) {
      tensors.push_back(tensor({1, 2, 3, 4}));
      args.push_back(tensors.back().get());
      objs.push_back(w.arg(k));
    }
    for (int k = 0; k < inputs; ++k)
      tens.push_back(w.tensorArg(objs[static_cast<size_t>(k)], args[static_cast<size_t>(k)]));
    w.guard(Do::Mode, kNoReg).imm = modeWord();
    auto alias = std::make_shared<AliasGuard>();
    alias->tensors = objs;
    for (int k = 0; k < inputs; ++k) {
      alias->group.push_back(k);
      alias->offsets.push_back(0);
    }
    w.guard(Do::Aliases, kNoReg).data = alias;
    Reg c = w.constant(eval("c")), g = w.constant(eval("g"));
    for (const char *key : {"a", "b"})
      w.guard(Do::Equals, w.load(Do::AttrGet, c, name(key)), eval((std::string("c.") + key).c_str()));
    Reg d = w.load(Do::AttrGet, c, name("d"));
    w.isType(d, reinterpret_cast<PyObject *>(&PyDict_Type));
    w.guard(Do::Equals, w.load(Do::DictGet, d, name("k")), eval("2.5"));
    for (const char *key : {"f", "h", "i"})
      w.guard(Do::Equals, w.load(Do::DictGet, g, name(key)), eval((std::string("g['") + key + "']").c_str()));
    Instr &type = w.guard(Do::TypeAttrIs, kNoReg, eval("C"));
    type.key = name("forward");
    w.ret(w.makeTensor(w.segment(empty(), tens)));
    size_t size = w.path.body.size();
    tree.insert(std::move(w.path));
    time(str(inputs, " inputs, ", size, " instructions, a piece, a new tensor").c_str(), args);
  }
}

TEST_F(ReplayBench, FiveHundredParameters) {
  exec("class Layer: pass\nclass Model: pass\nmodel = Model()\nmodel.layers = {}");
  Obj model = eval("model"), layers = eval("model.layers");
  Writer w;
  Reg m = w.arg(0), ls = w.load(Do::AttrGet, m, name("layers"));
  w.isType(ls, reinterpret_cast<PyObject *>(&PyDict_Type));
  auto alias = std::make_shared<AliasGuard>();
  std::vector<Reg> tens;
  for (int k = 0; k < 250; ++k) {
    std::string layer = str("l", k);
    exec(str("model.layers['", layer, "'] = Layer(); model.layers['", layer, "'].params = {}").c_str());
    Obj key = name(layer.c_str()), params = eval(str("model.layers['", layer, "'].params").c_str());
    Reg l = w.load(Do::DictGet, ls, key);
    w.isType(l, eval("Layer").get());
    w.guard(Do::AttrLacks, l).key = name("weight");
    Reg p = w.load(Do::AttrGet, l, name("params"));
    w.isType(p, reinterpret_cast<PyObject *>(&PyDict_Type));
    for (const char *which : {"weight", "bias"}) {
      Obj t = tensor({1, 2, 3, 4});
      setRequiresGrad(tensorOf(t.get()), true);
      PyDict_SetItemString(params.get(), which, t.get());
      Reg r = w.load(Do::DictGet, p, name(which));
      tens.push_back(w.tensorArg(r, t.get()));
      alias->tensors.push_back(r);
      alias->group.push_back(static_cast<int32_t>(alias->group.size()));
      alias->offsets.push_back(0);
    }
  }
  w.guard(Do::Aliases, kNoReg).data = alias;
  size_t size = w.path.body.size();
  Writer withPiece = w;
  w.retConst(name("r"));
  auto start = std::chrono::steady_clock::now();
  tree.insert(std::move(w.path));
  std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  std::printf("%-60s %8.2f ms\n", "to insert the next", spent.count());
  time(str("500 parameters, ", size, " loads and guards").c_str(), {model.get()}, 200);
  tree.clear();
  withPiece.ret(withPiece.makeTensor(withPiece.segment(empty(), tens)));
  tree.insert(std::move(withPiece.path));
  time("the same and a piece of 500 inputs", {model.get()}, 200);
}

} // namespace
