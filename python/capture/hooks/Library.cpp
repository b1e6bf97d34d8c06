// Known functions of the standard library whose kind depends on their arguments: heaps, counting, and methods that
// subscripts use.
#include "python/capture/hooks/Known.h"
#include "python/capture/hooks/Lookup.h"
#include "python/capture/hooks/Symbolic.h"
#include <cstring>

namespace dlc::py {
namespace {

PyObject *arg(const CCall &c, Py_ssize_t i) { return i < c.args.n ? c.args.v[i] : nullptr; }

/// dict.__getitem__ and list.__getitem__ as functions.
Obj itemMethod(Session &s, const CCall &c) {
  if (c.args.total() == 1 && c.args.n == 1 && c.self && (PyDict_Check(c.self) || PyList_Check(c.self)))
    return getBaseItem(s, c.self, arg(c, 0));
  return c.plain(); // raises
}

/// set.__contains__ and frozenset.__contains__.
Obj containsMethod(Session &s, const CCall &c) {
  if (c.args.total() != 1 || c.args.n != 1 || !c.self || !PyAnySet_CheckExact(c.self))
    return callPure(s, c);
  return compare(s, kIn, arg(c, 0), c.self);
}

/// heapq: items are compared by C, so they must be numbers, texts or tuples of such.
Obj changeHeap(Session &s, const CCall &c) {
  PyObject *heap = arg(c, 0);
  if (c.args.kwnames || !heap || !PyList_CheckExact(heap))
    return c.plain(); // raises, or is no heap of the program's
  if (s.isKnown(heap))
    s.readAll(heap);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(heap); ++i)
    readPure(s, PyList_GET_ITEM(heap, i));
  if (s.containsSymbolic(heap))
    concretizeDeep(s, heap, true);
  ArgList list(c.args);
  for (Py_ssize_t i = 1; i < c.args.n; ++i) {
    readPure(s, arg(c, i));
    list.set(i, concretizeDeep(s, arg(c, i), true));
  }
  bool known = s.isKnown(heap);
  s.beforeChange(heap);
  Obj result = c.plain(list.given());
  if (known)
    s.effectCall(c.f, list.given().v, list.given().n, nullptr);
  return result;
}

/// What Counter(iterable) and update do.
Obj countElements(Session &s, const CCall &c) {
  if (c.args.total() != 2 || c.args.n != 2 || s.isKnown(arg(c, 0)) || !PyDict_Check(arg(c, 0))) {
    notKnown(s, c.name());
    return c.plain();
  }
  Obj items = Obj::check(PySequence_List(consumable(s, arg(c, 1)).get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i)
    checkKey(s, PyList_GET_ITEM(items.get(), i));
  ArgList list(c.args);
  list.set(1, concretizeDeep(s, items.get(), true));
  return c.plain(list.given());
}

} // namespace

Handler libraryHandler(const char *name) {
  static const std::pair<const char *, Handler> handlers[] = {{"item_method", itemMethod},
                                                              {"contains_method", containsMethod},
                                                              {"heap", changeHeap},
                                                              {"count_elements", countElements}};
  for (const auto &[known, handler] : handlers)
    if (std::strcmp(known, name) == 0)
      return handler;
  return nullptr;
}

} // namespace dlc::py
