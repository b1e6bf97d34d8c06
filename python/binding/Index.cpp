// Subscripts: `x[...]` and `x[...] = v` as slice, select, unsqueeze and index records; iteration and `in`.
#include "python/binding/Internal.h"

namespace dlc::py {
namespace {

using A = Arg<Tensor>;

Tensor sliceOf(const Tensor &t, int64_t dim, std::optional<Dim> start, std::optional<Dim> end, int64_t step) {
  static const OpInfo &op = opNamed("slice");
  return call(op, A::of(t), A::ofInt(dim), A::ofDim(start), A::ofDim(end), A::ofDim(Dim(step)));
}
Tensor selectOf(const Tensor &t, int64_t dim, Dim index) {
  static const OpInfo &op = opNamed("select");
  return call(op, A::of(t), A::ofInt(dim), A::ofDim(index));
}
Tensor unsqueezeOf(const Tensor &t, int64_t dim) {
  static const OpInfo &op = opNamed("unsqueeze");
  return call(op, A::of(t), A::ofInt(dim));
}

std::optional<Dim> bound(PyObject *o) {
  if (o == Py_None)
    return std::nullopt;
  Dim v;
  DLC_REQUIRE(toDim(o, v), Type, "slice indices must be integers or None or have an __index__ method, not ",
              Py_TYPE(o)->tp_name);
  return v;
}

/// The subscript taken apart: a view by the basic items, and the tensors of the advanced ones by its dimensions.
struct Subscript {
  Tensor view;
  bool changed = false;        ///< some op was applied
  std::vector<Tensor> indices; ///< per dimension of `view`, undefined for a whole one; empty without advanced items
  int64_t at = 0;              ///< next dimension
};

void addIndex(Subscript &s, Tensor index) {
  s.indices.resize(static_cast<size_t>(s.at));
  s.indices.push_back(std::move(index));
  ++s.at;
}

/// A size to compare, symbolic in a session.
Dim sizeOf(const Tensor &t, int64_t d) { return t.meta().sizes[static_cast<size_t>(d)]; }

void addMask(Subscript &s, const Tensor &mask) {
  static const OpInfo &nonzero = opNamed("nonzero");
  for (int64_t d = 0; d < mask.dim(); ++d)
    DLC_REQUIRE(s.at + d < s.view.dim() && sizeOf(mask, d) == sizeOf(s.view, s.at + d), Index, "the bool index ",
                describe(mask), " does not match the indexed tensor ", describe(s.view), " at dim ", d);
  if (mask.dim() == 0) { // a new dimension of size 1, taken or not
    s.view = unsqueezeOf(s.view, s.at);
    s.changed = true;
    Tensor rows = call(nonzero, A::of(unsqueezeOf(mask, 0)));
    addIndex(s, selectOf(rows, 1, 0));
    return;
  }
  Tensor rows = call(nonzero, A::of(mask));
  for (int64_t d = 0; d < mask.dim(); ++d)
    addIndex(s, selectOf(rows, 1, d));
}

void addTensor(Subscript &s, const Tensor &t) {
  DLC_REQUIRE(!isFloat(t.dtype()), Index, "tensors used as indices must be integer or bool, not ", t.dtype());
  if (t.dtype() == DType::Bool || t.dtype() == DType::U8) {
    addMask(s, castTo(t, DType::Bool));
  } else if (t.dim() == 0) {
    noteValueRead();
    s.view = selectOf(s.view, s.at, t.item().toInt());
    s.changed = true;
  } else {
    addIndex(s, castTo(t, DType::I64));
  }
}

/// How many dimensions of the indexed tensor an item consumes.
int64_t consumes(PyObject *item) {
  if (item == Py_None || item == Py_Ellipsis || PyBool_Check(item))
    return 0;
  if (isTensor(item) && (tensorOf(item).dtype() == DType::Bool || tensorOf(item).dtype() == DType::U8))
    return tensorOf(item).dim();
  return 1;
}

void addItem(Subscript &s, PyObject *item, int64_t total) {
  int64_t dim = s.at;
  Dim v;
  if (item == Py_None) {
    s.view = unsqueezeOf(s.view, dim);
    s.changed = true;
    ++s.at;
  } else if (item == Py_Ellipsis) {
    s.at += total;
  } else if (PySlice_Check(item)) {
    auto *slice = reinterpret_cast<PySliceObject *>(item);
    int64_t step = slice->step == Py_None ? 1 : requireInt(slice->step, "slice", "step");
    DLC_REQUIRE(step > 0, Value, "slice step must be positive, not ", step, "\nuse flip() to reverse a dimension");
    if (slice->start != Py_None || slice->stop != Py_None || step != 1) {
      s.view = sliceOf(s.view, dim, bound(slice->start), bound(slice->stop), step);
      s.changed = true;
    }
    ++s.at;
  } else if (PyBool_Check(item)) {
    addMask(s, Tensor::scalar(Number(item == Py_True), DType::Bool));
  } else if (isTensor(item)) {
    addTensor(s, tensorOf(item));
  } else if (PyList_Check(item) || PyTuple_Check(item) || isTypedBuffer(item) || PyRange_Check(item)) {
    Tensor t = tensorFromData(item, std::nullopt);
    if (t.numel() == 0 && isFloat(t.dtype()))
      t = castTo(t, DType::I64); // an empty list
    addTensor(s, t);
  } else {
    DLC_REQUIRE(toDim(item, v), Index, "a tensor cannot be indexed by ", Py_TYPE(item)->tp_name,
                "\nuse ints, slices, None, ..., lists, and integer or bool tensors");
    s.view = selectOf(s.view, dim, v);
    s.changed = true;
  }
}

Subscript takeApart(const Tensor &self, PyObject *key) {
  Subscript s;
  s.view = self;
  Py_ssize_t n = PyTuple_Check(key) ? PyTuple_GET_SIZE(key) : 1;
  auto item = [&](Py_ssize_t i) { return PyTuple_Check(key) ? PyTuple_GET_ITEM(key, i) : key; };
  int64_t used = 0, ellipses = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    used += consumes(item(i));
    ellipses += item(i) == Py_Ellipsis;
  }
  DLC_REQUIRE(used <= self.dim(), Index, "too many indices (", used, ") for a tensor of sizes ", listStr(self.sizes()));
  DLC_REQUIRE(ellipses <= 1, Index, "an index can only have a single ellipsis ('...')");
  for (Py_ssize_t i = 0; i < n; ++i)
    addItem(s, item(i), self.dim() - used);
  return s;
}

PyObject *getItem(PyObject *self, PyObject *key) {
  return guarded([&] {
    const Tensor &t = tensorOf(self);
    if (PyLong_CheckExact(key) && t.dim() > 0)
      return wrap(selectOf(t, 0, requireInt(key, "index", "index")));
    if (isTensor(key) && tensorOf(key).dtype() == DType::Bool && t.dim() > 0 &&
        tensorOf(key).meta().sizes == t.meta().sizes) {
      static const OpInfo &select = opNamed("masked_select");
      return wrap(call(select, A::of(t), A::of(tensorOf(key))));
    }
    Subscript s = takeApart(t, key);
    if (!s.indices.empty()) {
      static const OpInfo &index = opNamed("index");
      return wrap(call(index, A::of(s.view), A::list(Span<const Tensor>(s.indices.data(), s.indices.size()))));
    }
    if (!s.changed) { // x[...] and x[:] are new views of the whole
      static const OpInfo &expand = opNamed("expand");
      Dims sizes = t.meta().sizes;
      return wrap(call(expand, A::of(t), A::ofDims(Span<const Dim>(sizes.data(), sizes.size()))));
    }
    return wrap(s.view);
  });
}

/// The assigned value as a tensor of self's dtype, without leading dimensions of size 1 that self has not.
Tensor valueFor(const Tensor &target, int64_t rank, PyObject *value) {
  Tensor v = isTensor(value) ? tensorOf(value) : tensorFromData(value, std::nullopt);
  while (v.dim() > rank && sizeOf(v, 0) == 1)
    v = selectOf(v, 0, 0);
  return castTo(v, target.dtype());
}

void assignBasic(const Tensor &view, PyObject *value) {
  static const OpInfo &fill = opNamed("fill"), &copy = opNamed("copy");
  Number n;
  if (toNumber(value, n))
    callInPlace(fill, view, A::of(Tensor(n)));
  else
    callInPlace(copy, view, A::of(valueFor(view, view.dim(), value)), A::ofBool(false));
}

/// x[mask] = number, as masked_fill: no data-dependent shapes.
void assignMasked(const Tensor &self, Tensor mask, const Number &n) {
  static const OpInfo &fill = opNamed("masked_fill");
  for (int64_t d = 0; d < mask.dim(); ++d)
    DLC_REQUIRE(d < self.dim() && sizeOf(mask, d) == sizeOf(self, d), Index, "the bool index ", describe(mask),
                " does not match the indexed tensor ", describe(self), " at dim ", d);
  while (mask.dim() < self.dim())
    mask = unsqueezeOf(mask, mask.dim());
  callInPlace(fill, self, A::of(mask), A::of(Tensor(n)));
}

int setItem(PyObject *self, PyObject *key, PyObject *value) {
  return guarded([&]() -> int {
    const Tensor &t = tensorOf(self);
    DLC_REQUIRE(value, Type, "Tensor does not support deleting items");
    Number n;
    if (isTensor(key) && tensorOf(key).dtype() == DType::Bool && toNumber(value, n)) {
      assignMasked(t, tensorOf(key), n);
      return 0;
    }
    Subscript s = takeApart(t, key);
    if (s.indices.empty()) {
      assignBasic(s.view, value);
      return 0;
    }
    static const OpInfo &put = opNamed("index_put");
    Tensor v = valueFor(t, t.dim() + 64, value);
    callInPlace(put, s.view, A::list(Span<const Tensor>(s.indices.data(), s.indices.size())), A::of(v),
                A::ofBool(false));
    return 0;
  });
}

PyObject *iterate(PyObject *self) {
  return guarded([&]() -> PyObject * {
    DLC_REQUIRE(tensorOf(self).dim() > 0, Type, "iteration over a 0-d tensor");
    Obj parts = Obj::check(PyObject_CallMethod(self, "unbind", "i", 0));
    return PyObject_GetIter(parts.get());
  });
}

int contains(PyObject *self, PyObject *element) {
  return guarded([&]() -> int {
    Number n;
    DLC_REQUIRE(isTensor(element) || toNumber(element, n), Runtime, "`in` needs a tensor or a number, not ",
                Py_TYPE(element)->tp_name);
    Obj same = Obj::check(PyObject_RichCompare(self, element, Py_EQ));
    static const OpInfo &any = opNamed("any");
    noteValueRead();
    return call(any, A::of(tensorOf(same.get())), A(), A::ofBool(false)).item().toBool();
  });
}

} // namespace

void addIndexSlots(std::vector<PyType_Slot> &slots) {
  slots.push_back({Py_mp_subscript, reinterpret_cast<void *>(getItem)});
  slots.push_back({Py_mp_ass_subscript, reinterpret_cast<void *>(setItem)});
  slots.push_back({Py_tp_iter, reinterpret_cast<void *>(iterate)});
  slots.push_back({Py_sq_contains, reinterpret_cast<void *>(contains)});
}

} // namespace dlc::py
