// The one parser of op calls: Python arguments to boxed arguments, driven by the generated table.
#pragma once
#include "python/binding/Internal.h"
#include "python/binding/PyTable.h"
#include "runtime/op/Dispatcher.h"
#include <deque>

namespace dlc::py {

/// How a call is spelled.
enum class Spelling : uint8_t { Function, Method, Inplace, Operator };

/// Arguments as the interpreter hands them over; `self` (methods) comes before args[0].
struct CallArgs {
  PyObject *self;
  PyObject *const *args;
  Py_ssize_t nargs;
  PyObject *kwnames;
};

/// Boxed arguments of one call and what they point to. Storage is left uninitialised and made as needed:
/// clearing it would cost more than parsing.
class ArgFrame {
public:
  static constexpr size_t kMaxArgs = 24, kMaxWrapped = 6, kMaxLists = 6;
  ArgFrame() {}
  ~ArgFrame() { reset(); }
  ArgFrame(const ArgFrame &) = delete;

  void reset();
  Arg<Tensor> *args() { return reinterpret_cast<Arg<Tensor> *>(args_); }
  void set(size_t i, const Arg<Tensor> &a) { new (args() + i) Arg<Tensor>(a); }
  /// A number as a 0-d wrapped tensor that lives as long as the frame.
  const Tensor &wrapNumber(const Number &n);
  Sizes &newInts();
  Dims &newDims();
  std::vector<Tensor> &newTensors();

private:
  alignas(Arg<Tensor>) unsigned char args_[kMaxArgs * sizeof(Arg<Tensor>)];
  alignas(Tensor) unsigned char wrapped_[kMaxWrapped * sizeof(Tensor)];
  alignas(Sizes) unsigned char ints_[kMaxLists * sizeof(Sizes)];
  alignas(Dims) unsigned char dims_[kMaxLists * sizeof(Dims)];
  size_t numWrapped_ = 0, numInts_ = 0, numDims_ = 0;
  std::unique_ptr<std::deque<std::vector<Tensor>>> lists_;
};

/// What the parser takes beside the op's own parameters.
struct CallExtras {
  PyObject *out = nullptr;
  bool requiresGrad = false;
};

/// The op and its public name with everything resolved once at start.
struct BoundOverload {
  const PyOverload *table;
  const OpInfo *op;
  const PyParam *params;
  const PyParam *full; ///< of a signature with `slots`: the op's own parameters, for their defaults
  uint8_t numParams, kwonly;
  bool varargs;
  PyObject **names; ///< interned, one per parameter
};
struct BoundFunction {
  const PyFunction *table;
  BoundOverload *overloads;
  uint8_t numOverloads;
};

/// Tries the overloads in order; returns the one that fits with its boxed arguments in `frame`, or throws TypeError
/// that lists the signatures (null instead if `quiet`: an operator that does not know the other operand).
const BoundOverload *parseCall(const BoundFunction &fn, Spelling spelling, const CallArgs &call, ArgFrame &frame,
                               CallExtras &extras, bool quiet);

/// Parses and runs; the result as Python sees it.
PyObject *callOp(const BoundFunction &fn, Spelling spelling, const CallArgs &call);

} // namespace dlc::py
