// Helpers that the files of the binding give each other about tensors.
#pragma once
#include "python/binding/Binding.h"
#include "runtime/autograd/Autograd.h"
#include <optional>
#include <vector>

namespace dlc::py {

/// The op of that name; throws if there is none. Call sites keep the result.
const OpInfo &opNamed(const char *name);
/// Runs `op` with or without the GIL, by how much work it is.
void runOp(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form);
/// Runs an op of one result.
template <class... A> Tensor call(const OpInfo &op, const A &...args) {
  const Arg<Tensor> boxed[] = {args...};
  SmallVec<Tensor, 3> outs;
  runOp(op, Span<const Arg<Tensor>>(boxed, sizeof...(A)), outs, CallForm::Functional);
  return outs[0];
}
/// Runs the in-place form of an op on `self`, which is its first argument.
template <class... A> void callInPlace(const OpInfo &op, const Tensor &self, const A &...args) {
  const Arg<Tensor> boxed[] = {Arg<Tensor>::of(self), args...};
  SmallVec<Tensor, 3> outs{self};
  runOp(op, Span<const Arg<Tensor>>(boxed, sizeof...(A) + 1), outs, CallForm::InPlace);
}

/// A dim counted from the end made positive. Throws IndexError.
int64_t wrapDim(int64_t d, int64_t rank, const char *op);
/// A new tensor from nested sequences, numbers, NumPy arrays or tensors; the dtype of the data unless given.
Tensor tensorFromData(PyObject *data, std::optional<DType> dtype);
/// Zero-copy view of an object with the buffer protocol (a NumPy array). Throws for layouts that dlc has not.
Tensor tensorFromBuffer(PyObject *array, const char *op);
/// True for NumPy arrays and scalars and other typed buffers, but not bytes or tensors.
bool isTypedBuffer(PyObject *o);
/// `t` as dtype, the same tensor if it has it.
Tensor castTo(const Tensor &t, DType dtype);

/// Binds the op table and adds its methods and in-place forms; before initTensor.
void collectOpMethods();
/// Whether a Python function or method is one of the op table.
bool isOpFunction(const PyMethodDef *def);
void addOperatorSlots(std::vector<PyType_Slot> &slots);
void addIndexSlots(std::vector<PyType_Slot> &slots);
/// Adds the methods of conversion and autograd; before initTensor.
void collectConvertMethods();
void collectAutogradMethods();
void collectDlpackMethods();
void initDlpack(PyObject *module);

} // namespace dlc::py
