// Known functions of numbers and orders: int, float, sum, min, max, sorted, and what reads the value or the sizes of a
// tensor.
#include "python/capture/hooks/Known.h"
#include "python/capture/hooks/Lookup.h"
#include "python/capture/hooks/Symbolic.h"
#include <cstring>

namespace dlc::py {
namespace {

PyObject *arg(const CCall &c, Py_ssize_t i) { return i < c.args.n ? c.args.v[i] : nullptr; }
PyObject *keyword(const CCall &c, const char *name) {
  for (Py_ssize_t k = 0; k < c.args.numKeywords(); ++k)
    if (std::strcmp(textOf(PyTuple_GET_ITEM(c.args.kwnames, k)), name) == 0)
      return c.args.v[c.args.n + k];
  return nullptr;
}

/// The one element of a tensor as Python sees it.
Obj readElement(Session &s, PyObject *tensor) {
  ReadsValue reading(s);
  Obj plain = Obj::check(PyObject_CallMethodNoArgs(tensor, DLC_NAME("item")));
  return s.readNumber(tensorOf(tensor), plain.get());
}
Obj tensorItem(Session &s, const CCall &c) {
  return c.self && c.args.total() == 0 ? readElement(s, c.self) : c.plain();
}
/// The values of a small tensor, each read on its own.
Obj elements(Session &s, PyObject *tensor) {
  if (tensorOf(tensor).dim() == 0)
    return readElement(s, tensor);
  Obj list = Obj::check(PyList_New(0));
  for (int64_t i = 0; i < tensorOf(tensor).size(0); ++i) {
    Obj index = Obj::check(PyLong_FromLongLong(i)), row = getItem(s, tensor, index.get());
    if (PyList_Append(list.get(), elements(s, row.get()).get()) < 0)
      throw PythonError{};
  }
  return list;
}
Obj tensorList(Session &s, const CCall &c) {
  if (c.self && tensorOf(c.self).dim() == 0)
    return readElement(s, c.self);
  constexpr int64_t kMaxReads = 32;
  if (!c.self || tensorOf(c.self).numel() > kMaxReads) {
    s.fail("the values of a tensor become a list");
    return c.plain();
  }
  concretizeSizes(s, c.self);
  return elements(s, c.self);
}

/// A conversion method that a class in Python defines.
Obj userConversion(Session &s, PyObject *o, std::initializer_list<PyObject *> names) {
  if (Session::isScalar(o) || PyType_Check(o))
    return Obj();
  for (PyObject *name : names)
    if (Obj method = specialMethod(s, o, name))
      return callSpecial(s, method, o, {nullptr, 0});
  return Obj();
}

Obj newInt(Session &s, const CCall &c) {
  PyObject *o = arg(c, 0);
  if (c.args.total() != 1 || !o)
    return callPure(s, c);
  if (Py_TYPE(o) == symbolicIntType)
    return Obj::borrow(o);
  if (isTensor(o)) {
    ReadsValue reading(s);
    Obj plain = c.plain(); // errors first
    if (isIntegral(tensorOf(o).dtype()) && tensorOf(o).dtype() != DType::Bool)
      return s.readNumber(tensorOf(o), plain.get());
    Obj seen = readElement(s, o); // of a float or bool its value, which is rounded to an int, becomes a constant
    s.concretize(seen.get());
    return plain;
  }
  if (Obj made = userConversion(s, o, {DLC_NAME("__int__"), DLC_NAME("__index__"), DLC_NAME("__trunc__")}))
    return PyLong_CheckExact(made.get()) || isSymbolic(made.get()) ? made : c.plain();
  return callPure(s, c);
}

Obj newFloat(Session &s, const CCall &c) {
  PyObject *o = arg(c, 0);
  if (c.args.total() != 1 || !o)
    return callPure(s, c);
  if (isSymbolic(o))
    return symbolicFloat(s, o);
  if (isTensor(o)) {
    ReadsValue reading(s);
    Obj plain = c.plain(), seen = readElement(s, o);
    return isSymbolic(seen.get()) ? symbolicFloat(s, seen.get()) : plain;
  }
  if (Obj made = userConversion(s, o, {DLC_NAME("__float__"), DLC_NAME("__index__")}))
    return PyFloat_CheckExact(made.get()) || numberNodeOf(made.get()) ? made : c.plain();
  return callPure(s, c);
}

Obj newBool(Session &s, const CCall &c) {
  if (c.args.total() != 1 || c.args.n != 1)
    return c.plain();
  return Obj::borrow(truth(s, arg(c, 0)) ? Py_True : Py_False);
}

Obj absolute(Session &s, const CCall &c) {
  PyObject *o = arg(c, 0);
  if (!o || c.args.total() != 1)
    return c.plain();
  if (isSymbolic(o))
    return symbolicAbs(s, o);
  if (isTensor(o))
    return c.plain();
  if (Obj made = userConversion(s, o, {DLC_NAME("__abs__")}))
    return made;
  return callPure(s, c);
}

Obj powerOf(Session &s, const CCall &c) {
  return c.args.n == 2 && !c.args.kwnames ? binary(s, kPow, arg(c, 0), arg(c, 1)) : callPure(s, c);
}

bool allPlain(PyObject *list) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i)
    if (!Session::isScalar(PyList_GET_ITEM(list, i)))
      return false;
  return true;
}

Obj itemsOf(Session &s, PyObject *iterable) { return Obj::check(PySequence_List(consumable(s, iterable).get())); }

Obj sumOf(Session &s, const CCall &c) {
  PyObject *start = arg(c, 1) ? arg(c, 1) : keyword(c, "start");
  if (c.args.n < 1 || c.args.total() > 2)
    return c.plain();
  Obj items = itemsOf(s, arg(c, 0)), total = start ? Obj::borrow(start) : Obj::check(PyLong_FromLong(0));
  if (allPlain(items.get()) && Session::isScalar(total.get())) {
    PyObject *given[] = {items.get(), total.get()};
    return c.plain({given, 2});
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i)
    total = binary(s, kAdd, total.get(), PyList_GET_ITEM(items.get(), i));
  return total;
}

/// min and max, by the comparisons that CPython makes.
Obj extreme(Session &s, const CCall &c, int op) {
  PyObject *key = keyword(c, "key"), *otherwise = keyword(c, "default");
  if (c.args.n == 0 || (c.args.n > 1 && otherwise))
    return c.plain(); // raises
  Obj items;
  if (c.args.n == 1) {
    items = itemsOf(s, arg(c, 0));
  } else {
    items = Obj::check(PyList_New(0));
    for (Py_ssize_t i = 0; i < c.args.n; ++i)
      if (PyList_Append(items.get(), arg(c, i)) < 0)
        throw PythonError{};
  }
  if (PyList_GET_SIZE(items.get()) == 0)
    return otherwise ? Obj::borrow(otherwise) : c.plain();
  Obj best, bestKey;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    Obj item = Obj::borrow(PyList_GET_ITEM(items.get(), i));
    PyObject *given = item.get();
    Obj value = key && key != Py_None ? callObject(s, key, {&given, 1}) : item;
    if (best && !truth(s, compare(s, op, value.get(), bestKey.get()).get()))
      continue;
    best = item;
    bestKey = value;
  }
  return best;
}
Obj minOf(Session &s, const CCall &c) { return extreme(s, c, kLt); }
Obj maxOf(Session &s, const CCall &c) { return extreme(s, c, kGt); }

Obj anyOrAll(Session &s, const CCall &c, bool wanted) {
  if (c.args.total() != 1 || c.args.n != 1)
    return c.plain();
  Obj iterator = iterate(s, arg(c, 0));
  while (Obj item = Obj(PyIter_Next(iterator.get())))
    if (truth(s, item.get()) == wanted)
      return Obj::borrow(wanted ? Py_True : Py_False);
  if (PyErr_Occurred())
    throw PythonError{};
  return Obj::borrow(wanted ? Py_False : Py_True);
}
Obj anyOf(Session &s, const CCall &c) { return anyOrAll(s, c, true); }
Obj allOf(Session &s, const CCall &c) { return anyOrAll(s, c, false); }

/// The key of a sort through the session; without one, items must be comparable without running Python code.
ArgList sortArguments(Session &s, const CCall &c, PyObject *items) {
  ArgList list(c.args);
  bool keyed = false;
  for (Py_ssize_t k = 0; k < c.args.numKeywords(); ++k) {
    PyObject *value = c.args.v[c.args.n + k];
    if (std::strcmp(textOf(PyTuple_GET_ITEM(c.args.kwnames, k)), "key") == 0 && value != Py_None) {
      keyed = true;
      list.set(c.args.n + k, observedCallable(value, Results::Compared));
    } else {
      list.set(c.args.n + k, concretizeDeep(s, value, false));
    }
  }
  if (!keyed)
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items); ++i)
      readPure(s, PyList_GET_ITEM(items, i));
  return list;
}

Obj sortedOf(Session &s, const CCall &c) {
  if (c.args.n != 1)
    return c.plain();
  // A set's order is gone after sorting, if the items differ in their order.
  PyObject *o = arg(c, 0);
  bool set = PyAnySet_CheckExact(o) && !c.args.kwnames;
  Obj items = set ? (s.readAll(o), Obj::check(PySequence_List(o))) : itemsOf(s, o);
  ArgList list = sortArguments(s, c, items.get());
  list.set(0, s.containsSymbolic(items.get()) && !keyword(c, "key") ? concretizeDeep(s, items.get(), true) : items);
  return c.plain(list.given());
}

Obj listSort(Session &s, const CCall &c) {
  if (!c.self || !PyList_Check(c.self))
    return c.plain();
  if (s.isKnown(c.self) && keyword(c, "key") && keyword(c, "key") != Py_None)
    notKnown(s, "list.sort with a key on a list from outside");
  s.readAll(c.self);
  if (!keyword(c, "key") && s.containsSymbolic(c.self))
    s.fail("numbers that vary are sorted in place");
  ArgList list = sortArguments(s, c, c.self);
  s.beforeChange(c.self);
  Obj result = c.plain(list.given());
  ArgList all(list.given(), c.self);
  if (s.isKnown(c.self))
    s.effectCall(methodOf(c.self, "sort"), all.given().v, all.given().n, all.given().kwnames);
  return result;
}

Obj roundOf(Session &s, const CCall &c) {
  if (arg(c, 0) && isTensor(arg(c, 0)))
    return c.plain();
  if (arg(c, 0))
    if (Obj method = Session::isScalar(arg(c, 0)) ? Obj() : specialMethod(s, arg(c, 0), DLC_NAME("__round__")))
      return callSpecial(s, method, arg(c, 0), c.args.rest(1));
  if (arg(c, 0) && c.args.total() == 1 && Py_TYPE(arg(c, 0)) == symbolicIntType)
    return Obj::borrow(arg(c, 0));
  return callPure(s, c);
}

/// tensor(data): the numbers are the same in each call, the tensor is a new one.
Obj newTensor(Session &s, const CCall &c) {
  for (Py_ssize_t i = 0; i < c.args.total(); ++i)
    readOperand(s, c.args.v[i]);
  PyObject *data = arg(c, 0) ? arg(c, 0) : keyword(c, "data");
  Obj made = c.plain();
  if (s.failed() || !data || isTensor(data))
    return made;
  bool wantsGrad = requiresGrad(tensorOf(made.get()));
  if (wantsGrad)
    setRequiresGrad(tensorOf(made.get()), false);
  s.constant(made.get()); // nobody else sees this one
  Obj copy = Obj::check(PyObject_CallMethod(made.get(), "clone", nullptr));
  if (wantsGrad)
    setRequiresGrad(tensorOf(copy.get()), true);
  return copy;
}

// --- sizes of tensors

Obj tensorSize(Session &s, const CCall &c) {
  Obj sizes = c.self ? s.symbolicSizes(tensorOf(c.self)) : Obj(), plain;
  PyObject *dim = arg(c, 0) ? arg(c, 0) : keyword(c, "dim");
  if (dim && isSymbolic(dim)) {
    concretizeSizes(s, c.self);
    s.concretize(dim);
    return callConverted(c.f, c.args);
  }
  plain = c.plain(); // errors first
  if (!sizes)
    return plain;
  if (PyTuple_Check(plain.get()))
    return sizes;
  Py_ssize_t i = PyNumber_AsSsize_t(dim, nullptr);
  return Obj::borrow(PyTuple_GET_ITEM(sizes.get(), i < 0 ? i + PyTuple_GET_SIZE(sizes.get()) : i));
}

Obj tensorNumel(Session &s, const CCall &c) {
  PyObject *t = c.self ? c.self : arg(c, 0);
  Obj sizes = t && isTensor(t) ? s.symbolicSizes(tensorOf(t)) : Obj();
  if (!sizes)
    return c.plain();
  Obj product = Obj::check(PyLong_FromLong(1));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sizes.get()); ++i)
    product = binary(s, kMult, product.get(), PyTuple_GET_ITEM(sizes.get(), i));
  return product;
}

/// Properties that the guard on the tensor determines once its sizes are constants.
Obj tensorLayout(Session &s, const CCall &c) {
  PyObject *tensor = c.self ? c.self : c.args.total() ? c.args.v[0] : nullptr;
  if (tensor && isTensor(tensor)) {
    concretizeSizes(s, tensor);
    if (!s.failed() && c.name().find("storage_offset") != std::string::npos)
      s.guardPlaces(tensorOf(tensor));
  }
  for (Py_ssize_t i = 0; i < c.args.total(); ++i)
    s.concretize(c.args.v[i]);
  return callConverted(c.f, c.bound || !c.self ? c.args : ArgList(c.args, c.self).given());
}

/// Properties that the guard on the tensor determines.
Obj tensorProperty(Session &, const CCall &c) { return c.plain(); }

/// Changes of what a tensor is; of one made in the call they are part of making it.
Obj tensorChange(Session &s, const CCall &c) {
  if (c.self && s.isKnown(c.self))
    s.fail(str("`", c.name(), "` of a tensor from outside"));
  return c.plain();
}

} // namespace

void concretizeSizes(Session &s, PyObject *tensor) {
  Obj sizes = s.symbolicSizes(tensorOf(tensor));
  for (Py_ssize_t i = 0; sizes && i < PyTuple_GET_SIZE(sizes.get()); ++i)
    s.concretize(PyTuple_GET_ITEM(sizes.get(), i));
}

Handler numberHandler(const char *name) {
  static const std::pair<const char *, Handler> handlers[] = {{"int", newInt},
                                                              {"float", newFloat},
                                                              {"bool", newBool},
                                                              {"abs", absolute},
                                                              {"pow", powerOf},
                                                              {"sum", sumOf},
                                                              {"min", minOf},
                                                              {"max", maxOf},
                                                              {"any", anyOf},
                                                              {"all", allOf},
                                                              {"sorted", sortedOf},
                                                              {"list_sort", listSort},
                                                              {"round", roundOf},
                                                              {"tensor_item", tensorItem},
                                                              {"new_tensor", newTensor},
                                                              {"tensor_list", tensorList},
                                                              {"tensor_size", tensorSize},
                                                              {"tensor_numel", tensorNumel},
                                                              {"tensor_layout", tensorLayout},
                                                              {"tensor_property", tensorProperty},
                                                              {"tensor_change", tensorChange}};
  for (const auto &[known, handler] : handlers)
    if (std::strcmp(known, name) == 0)
      return handler;
  return nullptr;
}

} // namespace dlc::py
