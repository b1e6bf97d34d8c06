// Autograd as Python sees it: attributes and methods of tensors, backward and grad, grad mode objects, hooks.
#include "python/binding/Internal.h"

namespace dlc::py {
namespace {

PyTypeObject *nodeType, *handleType;

// --- gradient functions

struct PyNode {
  PyObject_HEAD Ref<GradNode> node;
};

PyObject *wrapNode(Ref<GradNode> node) {
  if (!node)
    Py_RETURN_NONE;
  PyObject *self = nodeType->tp_alloc(nodeType, 0);
  if (self)
    new (&reinterpret_cast<PyNode *>(self)->node) Ref<GradNode>(std::move(node));
  return self;
}
GradNode &nodeOf(PyObject *self) { return *reinterpret_cast<PyNode *>(self)->node; }
void nodeFree(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  reinterpret_cast<PyNode *>(self)->node.~Ref<GradNode>();
  type->tp_free(self);
  Py_DECREF(type);
}
PyObject *nodeName(PyObject *self, PyObject *) {
  return guarded([&] { return PyUnicode_FromString(nodeOf(self).name().c_str()); });
}
PyObject *nodeRepr(PyObject *self) {
  return guarded([&] {
    return PyUnicode_FromFormat("<%s object at %p>", nodeOf(self).name().c_str(), static_cast<void *>(&nodeOf(self)));
  });
}
PyObject *nodeNext(PyObject *self, void *) {
  return guarded([&]() -> PyObject * {
    GradNode &node = nodeOf(self);
    Obj tuple = Obj::check(PyTuple_New(static_cast<Py_ssize_t>(node.edges.size())));
    for (size_t i = 0; i < node.edges.size(); ++i) {
      Obj pair = Obj::check(Py_BuildValue("(NI)", wrapNode(node.edges[i].node), node.edges[i].index));
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), pair.release());
    }
    return tuple.release();
  });
}
PyObject *nodeCompare(PyObject *a, PyObject *b, int op) {
  if (Py_TYPE(b) != nodeType || (op != Py_EQ && op != Py_NE))
    Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((&nodeOf(a) == &nodeOf(b)) == (op == Py_EQ));
}
Py_hash_t nodeHash(PyObject *self) { return _Py_HashPointer(&nodeOf(self)); }

PyMethodDef nodeMethods[] = {{"name", nodeName, METH_NOARGS, "The name of the gradient function."}, {}};
PyGetSetDef nodeGetters[] = {{"next_functions", nodeNext, nullptr, "Where its results go.", nullptr}, {}};
PyType_Slot nodeSlots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(nodeFree)},
                           {Py_tp_repr, reinterpret_cast<void *>(nodeRepr)},
                           {Py_tp_richcompare, reinterpret_cast<void *>(nodeCompare)},
                           {Py_tp_hash, reinterpret_cast<void *>(nodeHash)},
                           {Py_tp_methods, nodeMethods},
                           {Py_tp_getset, nodeGetters},
                           {0, nullptr}};
PyType_Spec nodeSpec = {"dlc.GradNode", sizeof(PyNode), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        nodeSlots};

// --- hooks

/// A Python callable shared by a hook in the tape and its handle; dropping it from any thread is safe.
struct HookState {
  PyObject *callable;
  explicit HookState(PyObject *c) : callable(Py_NewRef(c)) {}
  HookState(const HookState &) = delete;
  ~HookState() {
    if (!callable || !Py_IsInitialized())
      return;
    HoldGil hold;
    Py_CLEAR(callable);
  }
};
struct PyHandle {
  PyObject_HEAD std::shared_ptr<HookState> state;
};
void handleFree(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  reinterpret_cast<PyHandle *>(self)->state.~shared_ptr();
  type->tp_free(self);
  Py_DECREF(type);
}
PyObject *handleRemove(PyObject *self, PyObject *) {
  Py_CLEAR(reinterpret_cast<PyHandle *>(self)->state->callable);
  Py_RETURN_NONE;
}
PyMethodDef handleMethods[] = {{"remove", handleRemove, METH_NOARGS, "Takes the hook away."}, {}};
PyType_Slot handleSlots[] = {
    {Py_tp_dealloc, reinterpret_cast<void *>(handleFree)}, {Py_tp_methods, handleMethods}, {0, nullptr}};
PyType_Spec handleSpec = {"dlc.HookHandle", sizeof(PyHandle), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                          handleSlots};

PyObject *registerHook(PyObject *self, PyObject *callable) {
  return guarded([&] {
    DLC_REQUIRE(PyCallable_Check(callable), Type, "register_hook: `hook` must be callable, not ",
                Py_TYPE(callable)->tp_name);
    DLC_REQUIRE(requiresGrad(tensorOf(self)), Runtime, "register_hook: the tensor does not require grad");
    auto state = std::make_shared<HookState>(callable);
    addHook(tensorOf(self), [state](const Tensor &g) -> Tensor {
      HoldGil hold;
      if (!state->callable)
        return Tensor();
      Obj keep = Obj::borrow(state->callable), arg = Obj::check(wrap(g));
      PyObject *one[] = {arg.get()};
      Obj r = Obj::check(callPython(keep.get(), one, 1, nullptr));
      DLC_REQUIRE(r.get() == Py_None || isTensor(r.get()), Type, "a tensor hook must return a Tensor or None, not ",
                  Py_TYPE(r.get())->tp_name);
      return r.get() == Py_None ? Tensor() : tensorOf(r.get());
    });
    PyObject *handle = handleType->tp_alloc(handleType, 0);
    if (handle)
      new (&reinterpret_cast<PyHandle *>(handle)->state) std::shared_ptr<HookState>(std::move(state));
    return handle;
  });
}

// --- attributes

int setBool(PyObject *value, const char *what, bool &out) {
  if (!value || !PyBool_Check(value)) {
    PyErr_Format(PyExc_RuntimeError, "%s must be a bool", what);
    return -1;
  }
  out = value == Py_True;
  return 0;
}
PyObject *getRequiresGrad(PyObject *self, void *) { return PyBool_FromLong(requiresGrad(tensorOf(self))); }
int setRequiresGradAttr(PyObject *self, PyObject *value, void *) {
  bool on;
  if (setBool(value, "requires_grad", on) < 0)
    return -1;
  return guarded([&] { return setRequiresGrad(tensorOf(self), on), 0; });
}
PyObject *getGrad(PyObject *self, void *) {
  GradMeta *meta = gradMetaOrNull(tensorOf(self));
  return guarded([&] { return wrap(meta ? meta->grad : Tensor()); });
}
int setGrad(PyObject *self, PyObject *value, void *) {
  return guarded([&] {
    const Tensor &t = tensorOf(self);
    if (!value || value == Py_None) {
      if (GradMeta *meta = gradMetaOrNull(t))
        meta->grad = Tensor();
      return 0;
    }
    DLC_REQUIRE(isTensor(value), Type, "grad must be a Tensor or None, not ", Py_TYPE(value)->tp_name);
    const Tensor &g = tensorOf(value);
    DLC_REQUIRE(g.sizes() == t.sizes() && g.dtype() == t.dtype(), Runtime, "grad: a gradient of ", describe(g),
                " cannot belong to a tensor of ", describe(t), "\ngive it the tensor's shape and dtype");
    gradMetaOf(t).grad = g;
    return 0;
  });
}
PyObject *getGradFn(PyObject *self, void *) {
  return guarded([&] { return wrapNode(gradFunction(tensorOf(self))); });
}
PyObject *getIsLeaf(PyObject *self, void *) { return PyBool_FromLong(isLeaf(tensorOf(self))); }
PyObject *getRetainsGrad(PyObject *self, void *) {
  GradMeta *meta = gradMetaOrNull(tensorOf(self));
  return PyBool_FromLong(meta && meta->retainsGrad && !isLeaf(tensorOf(self)));
}
PyObject *getData(PyObject *self, void *) {
  return guarded([&] { return wrap(detach(tensorOf(self))); });
}
/// `t.data = other`: the tensor now views other's memory; its gradient record stays.
int setData(PyObject *self, PyObject *value, void *) {
  return guarded([&] {
    DLC_REQUIRE(value && isTensor(value), Type, "data must be a Tensor");
    TensorImpl *to = tensorOf(self).impl();
    const TensorImpl *from = tensorOf(value).impl();
    DLC_REQUIRE(!requiresGrad(tensorOf(self)) || isFloat(from->dtype), Runtime,
                "data: a tensor that requires grad must have a floating dtype, not ", from->dtype);
    to->storage = from->storage;
    to->sizes = from->sizes;
    to->strides = from->strides;
    to->offset = from->offset;
    to->dtype = from->dtype;
    tensorOf(self).copyTrace(tensorOf(value));
    return 0;
  });
}

PyGetSetDef getters[] = {
    {"requires_grad", getRequiresGrad, setRequiresGradAttr, "Whether gradients are recorded.", nullptr},
    {"grad", getGrad, setGrad, "The gradient accumulated by backward(), or None.", nullptr},
    {"_grad", getGrad, setGrad, "The gradient, without a warning.", nullptr},
    {"grad_fn", getGradFn, nullptr, "The gradient function, None for a leaf.", nullptr},
    {"is_leaf", getIsLeaf, nullptr, "True if no recorded op made the tensor.", nullptr},
    {"retains_grad", getRetainsGrad, nullptr, "True if a non-leaf keeps its gradient.", nullptr},
    {"data", getData, setData, "The same memory outside of the graph.", nullptr},
    {}};

// --- methods

/// None, a tensor, or a sequence of them, as one vector.
std::vector<Tensor> tensorList(PyObject *o, const char *what) {
  std::vector<Tensor> list;
  if (!o || o == Py_None)
    return list;
  if (isTensor(o))
    return {tensorOf(o)};
  Obj seq = Obj::check(PySequence_Fast(o, "expected a tensor or a sequence of tensors"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq.get()); ++i) {
    PyObject *item = PySequence_Fast_GET_ITEM(seq.get(), i);
    DLC_REQUIRE(isTensor(item) || item == Py_None, Type, what, " must be tensors, not ", Py_TYPE(item)->tp_name);
    list.push_back(item == Py_None ? Tensor() : tensorOf(item));
  }
  return list;
}

bool flag(PyObject *o, bool otherwise) { return !o || o == Py_None ? otherwise : PyObject_IsTrue(o) == 1; }

void runBackward(const std::vector<Tensor> &roots, std::vector<Tensor> grads, PyObject *retain, PyObject *create) {
  DLC_REQUIRE(grads.empty() || grads.size() == roots.size(), Runtime, "backward: ", grads.size(), " gradients for ",
              roots.size(), " tensors");
  grads.resize(roots.size());
  bool createGraph = flag(create, false), retainGraph = flag(retain, createGraph);
  ReleaseGil release(!currentInterceptor());
  backward({roots.data(), roots.size()}, {grads.data(), grads.size()}, retainGraph, createGraph);
}

PyObject *backwardMethod(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&]() -> PyObject * {
    DLC_ARGS("backward", 0, 3, "gradient", "retain_graph", "create_graph", "inputs");
    DLC_REQUIRE(!slot[3] || slot[3] == Py_None, NotImplemented,
                "backward: `inputs` is not supported\nuse dlc.autograd.grad");
    runBackward({tensorOf(self)}, tensorList(slot[0], "gradient"), slot[1], slot[2]);
    Py_RETURN_NONE;
  });
}
PyObject *backwardFn(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&]() -> PyObject * {
    DLC_ARGS("backward", 1, 4, "tensors", "grad_tensors", "retain_graph", "create_graph");
    runBackward(tensorList(slot[0], "tensors"), tensorList(slot[1], "grad_tensors"), slot[2], slot[3]);
    Py_RETURN_NONE;
  });
}
PyObject *gradFn(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&]() -> PyObject * {
    DLC_ARGS("grad", 2, 6, "outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "allow_unused");
    std::vector<Tensor> roots = tensorList(slot[0], "outputs"), inputs = tensorList(slot[1], "inputs"),
                        grads = tensorList(slot[2], "grad_outputs");
    DLC_REQUIRE(grads.empty() || grads.size() == roots.size(), Runtime, "grad: ", grads.size(), " gradients for ",
                roots.size(), " outputs");
    grads.resize(roots.size());
    bool create = flag(slot[4], false), retain = flag(slot[3], create), unused = flag(slot[5], false);
    std::vector<Tensor> results;
    {
      ReleaseGil release(!currentInterceptor());
      results = grad({roots.data(), roots.size()}, {inputs.data(), inputs.size()}, {grads.data(), grads.size()}, retain,
                     create, unused);
    }
    Obj tuple = Obj::check(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
    for (size_t i = 0; i < results.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), Obj::check(wrap(std::move(results[i]))).release());
    return tuple.release();
  });
}

PyObject *requiresGradMethod(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&] {
    DLC_ARGS("requires_grad_", 0, 1, "requires_grad");
    setRequiresGrad(tensorOf(self), flag(slot[0], true));
    return Py_NewRef(self);
  });
}
PyObject *retainGradMethod(PyObject *self, PyObject *) {
  return guarded([&]() -> PyObject * {
    retainGrad(tensorOf(self));
    Py_RETURN_NONE;
  });
}
PyObject *detachInPlaceMethod(PyObject *self, PyObject *) {
  return guarded([&] {
    detachInPlace(tensorOf(self));
    return Py_NewRef(self);
  });
}

const PyMethodDef *methods() {
  static PyMethodDef defs[] = {
      fastMethod("backward", backwardMethod, "Accumulates gradients into the .grad of the leaves."),
      fastMethod("requires_grad_", requiresGradMethod, "Sets requires_grad; returns self."),
      {"register_hook", registerHook, METH_O, "Calls `hook` with the tensor's gradient; it may return another."},
      {"retain_grad", retainGradMethod, METH_NOARGS, "Keeps .grad of a non-leaf."},
      {"detach_", detachInPlaceMethod, METH_NOARGS, "Takes the tensor out of the graph; returns self."},
      {}};
  return defs;
}

// --- grad mode: `with no_grad():`, `@no_grad()`, `set_grad_enabled(False)`

struct PyGradMode {
  PyObject_HEAD bool target, immediate;
  uint64_t saved; ///< what was on before each nested entry, one bit each
};
PyGradMode *modeOf(PyObject *o) { return reinterpret_cast<PyGradMode *>(o); }

PyObject *modeEnter(PyObject *self, PyObject *) {
  PyGradMode *m = modeOf(self);
  if (!m->immediate)
    m->saved = m->saved << 1 | gradEnabled();
  setGradEnabled(m->target);
  Py_RETURN_NONE;
}
PyObject *modeExit(PyObject *self, PyObject *const *, Py_ssize_t) {
  PyGradMode *m = modeOf(self);
  setGradEnabled(m->saved & 1);
  if (!m->immediate)
    m->saved >>= 1;
  Py_RETURN_FALSE;
}
/// As a decorator: the function in a wrapper that enters the mode around each call.
PyObject *decorate(bool target, PyObject *function) {
  Obj module = Obj::check(PyImport_ImportModule("dlc._decorators"));
  return PyObject_CallMethod(module.get(), "with_grad_mode", "OO", target ? Py_True : Py_False, function);
}
PyObject *modeCall(PyObject *self, PyObject *args, PyObject *) {
  return guarded([&]() -> PyObject * {
    DLC_REQUIRE(PyTuple_GET_SIZE(args) == 1, Type, "a grad mode decorates one function");
    if (modeOf(self)->immediate)
      setGradEnabled(modeOf(self)->saved & 1);
    return decorate(modeOf(self)->target, PyTuple_GET_ITEM(args, 0));
  });
}
PyObject *newMode(PyTypeObject *type, bool target, bool immediate) {
  PyObject *self = type->tp_alloc(type, 0);
  if (self) {
    *modeOf(self) = {modeOf(self)->ob_base, target, immediate, gradEnabled()};
    if (immediate)
      setGradEnabled(target);
  }
  return self;
}
template <bool Target> PyObject *modeNew(PyTypeObject *type, PyObject *args, PyObject *) {
  return guarded([&] {
    if (PyTuple_GET_SIZE(args) == 1 && PyCallable_Check(PyTuple_GET_ITEM(args, 0)))
      return decorate(Target, PyTuple_GET_ITEM(args, 0)); // @no_grad without parentheses
    return newMode(type, Target, false);
  });
}
PyObject *setModeNew(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static const char *names[] = {"mode", nullptr};
  int mode;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "p:set_grad_enabled", const_cast<char **>(names), &mode))
    return nullptr;
  return newMode(type, mode, true);
}
PyObject *inferenceNew(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static const char *names[] = {"mode", nullptr};
  PyObject *mode = Py_True;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:inference_mode", const_cast<char **>(names), &mode))
    return nullptr;
  return guarded([&] {
    if (!PyBool_Check(mode) && PyCallable_Check(mode))
      return decorate(false, mode);
    return newMode(type, PyObject_IsTrue(mode) != 1 && gradEnabled(), false);
  });
}
void modeFree(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef modeMethods[] = {
    {"__enter__", modeEnter, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(modeExit)), METH_FASTCALL, nullptr},
    {}};

void addMode(PyObject *module, const char *fullName, newfunc make, const char *doc) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void *>(make)},
                         {Py_tp_dealloc, reinterpret_cast<void *>(modeFree)},
                         {Py_tp_call, reinterpret_cast<void *>(modeCall)},
                         {Py_tp_methods, modeMethods},
                         {Py_tp_doc, const_cast<char *>(doc)},
                         {0, nullptr}};
  PyType_Spec spec = {fullName, sizeof(PyGradMode), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  Obj type = Obj::check(PyType_FromSpec(&spec));
  if (PyModule_AddObjectRef(module, fullName + 4, type.get()) < 0)
    throw PythonError{};
}

PyObject *isGradEnabled(PyObject *, PyObject *) { return PyBool_FromLong(gradEnabled()); }

PyMethodDef functions[] = {fastMethod("grad", gradFn, "Gradients of `outputs` with respect to `inputs`."),
                           fastMethod("backward", backwardFn, "Accumulates gradients of several tensors."),
                           {"is_grad_enabled", isGradEnabled, METH_NOARGS, "Whether ops are recorded for gradients."},
                           {}};

} // namespace

void collectAutogradMethods() {
  addMethods(methods());
  addGetters(getters);
}

void initAutograd(PyObject *module) {
  installAutograd();
  nodeType = reinterpret_cast<PyTypeObject *>(Obj::check(PyType_FromSpec(&nodeSpec)).release());
  handleType = reinterpret_cast<PyTypeObject *>(Obj::check(PyType_FromSpec(&handleSpec)).release());
  addMode(module, "dlc.no_grad", modeNew<false>,
          "No gradients are recorded inside; a context manager and a decorator.");
  addMode(module, "dlc.enable_grad", modeNew<true>,
          "Gradients are recorded inside; a context manager and a decorator.");
  addMode(module, "dlc.set_grad_enabled", setModeNew,
          "Sets gradient recording at once; as a context manager, until its end.");
  addMode(module, "dlc.inference_mode", inferenceNew, "As no_grad.");
  if (PyModule_AddFunctions(module, functions) < 0)
    throw PythonError{};
}

} // namespace dlc::py
