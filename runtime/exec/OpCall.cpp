// Boxes the arguments of one call on the stack.
#include "runtime/exec/OpCall.h"

namespace dlc {

OpCall::OpCall(const OpInfo &op, Span<const Arg<CallSlot>> args, uint32_t dimsAt, uint32_t rngAt, uint32_t firstOut)
    : op_(op), args_(args), dimsAt_(dimsAt), rngAt_(rngAt), firstOut_(firstOut) {
  DLC_CHECK(op.kernel, op.name, " has no eager kernel");
  for (const Arg<CallSlot> &a : args_.args()) {
    numValues_ += a.values().size();
    numDims_ += a.tag == ArgTag::Dim ? 1 : a.tag == ArgTag::DimList ? a.size : 0;
  }
}

static size_t numberAt(const Number &n) { return reinterpret_cast<uintptr_t>(n.ref()) - 1; }

/// Attributes are the same for every V.
static Arg<Tensor> attribute(const Arg<CallSlot> &a) {
  Arg<Tensor> out;
  out.tag = a.tag;
  out.dtype = a.dtype;
  out.size = a.size;
  if (a.tag == ArgTag::Float)
    out.f = a.f;
  else if (a.tag == ArgTag::Str)
    out.chars = a.chars;
  else if (a.tag == ArgTag::IntList)
    out.ints = a.ints;
  else
    out.i = a.i;
  return out;
}

//===--- Archive ---===//

namespace {

/// One boxed argument in both directions; what it points to is kept in `values`, `dims`, `ints` and `chars` when read.
struct BoxedArg {
  Arg<CallSlot> arg;
  std::vector<CallSlot> values;
  Dims dims;
  std::vector<int64_t> ints;
  std::string chars;

  explicit BoxedArg(const Arg<CallSlot> &a = {}) : arg(a), values(a.values().vec()) {
    if (a.tag == ArgTag::DimList)
      dims = a.dimList();
    if (a.tag == ArgTag::IntList)
      ints = a.intList().vec();
    if (a.tag == ArgTag::Str)
      chars = std::string(a.str());
  }

  template <class A> void fields(A &a) {
    a.pod(arg.tag);
    a.pod(arg.dtype);
    a.pod(arg.size);
    a.list(values, [&](CallSlot &v) { a.pod(v); });
    archive::fields(a, dims);
    a.list(ints, [&](int64_t &v) { a.pod(v); });
    a.text(chars);
    if (arg.tag == ArgTag::Int || arg.tag == ArgTag::Bool || arg.tag == ArgTag::Float)
      a.pod(arg.i);
    a.pod(arg.num); // a ref() is the position of an integer
    a.dim(arg.dim);
  }

  /// After reading: points into this object.
  const Arg<CallSlot> &get() {
    if (arg.tag == ArgTag::Value || arg.tag == ArgTag::ValueList)
      arg.value = values.data();
    else if (arg.tag == ArgTag::DimList)
      arg.dims = dims.data();
    else if (arg.tag == ArgTag::IntList)
      arg.ints = ints.data();
    else if (arg.tag == ArgTag::Str)
      arg.chars = chars.data();
    return arg;
  }
};

} // namespace

void OpCall::write(archive::Writer &out) const {
  out.text(op_.name);
  out.pod(dimsAt_);
  out.pod(rngAt_);
  out.pod(firstOut_);
  out.pod(args_.args().size());
  for (const Arg<CallSlot> &a : args_.args())
    BoxedArg(a).fields(out);
}

std::unique_ptr<OpCall> OpCall::read(archive::Reader &in) {
  std::string name;
  in.text(name);
  const OpInfo *op = findOp(name);
  DLC_CHECK(op, "an archived plan calls ", name, ", which is no op");
  uint32_t dimsAt = in.take<uint32_t>(), rngAt = in.take<uint32_t>(), firstOut = in.take<uint32_t>();
  std::vector<BoxedArg> boxes;
  in.list(boxes, [&](BoxedArg &box) { box.fields(in); });
  std::vector<Arg<CallSlot>> args;
  for (BoxedArg &box : boxes)
    args.push_back(box.get());
  return std::make_unique<OpCall>(*op, Span<const Arg<CallSlot>>(args.data(), args.size()), dimsAt, rngAt, firstOut);
}

void OpCall::run(Span<Tensor> tensors, Ints ints) const {
  SmallVec<Arg<Tensor>, 12> args;
  SmallVec<Tensor, 8> values;
  SmallVec<Dim, 16> dims;
  args.reserve(args_.args().size());
  values.reserve(numValues_);
  dims.reserve(numDims_);
  Generator generator;
  auto tensorOf = [&](const CallSlot &s) {
    if (s.tensor >= 0)
      return tensors[s.tensor];
    return s.number >= 0 ? Tensor(Number::fromRaw(s.category, ints[s.number])) : Tensor();
  };
  auto takeDims = [&](size_t n) {
    size_t first = dims.size();
    for (size_t k = 0; k < n; ++k)
      dims.push_back(Dim(ints[dimsAt_ + first + k]));
    return dims.data() + first;
  };
  for (const Arg<CallSlot> &a : args_.args()) {
    Arg<Tensor> out;
    switch (a.tag) {
    case ArgTag::Value:
      if (a.value->tensor >= 0)
        out = Arg<Tensor>::of(tensors[a.value->tensor]);
      else {
        values.push_back(tensorOf(*a.value));
        out = Arg<Tensor>::of(values.back());
      }
      break;
    case ArgTag::ValueList: {
      size_t first = values.size();
      for (const CallSlot &s : a.values())
        values.push_back(tensorOf(s));
      out = Arg<Tensor>::list(Span<const Tensor>(values.data() + first, a.size));
      break;
    }
    case ArgTag::Num:
      out = Arg<Tensor>::number(a.num.ref() ? Number::fromRaw(a.num.category(), ints[numberAt(a.num)]) : a.num);
      break;
    case ArgTag::Dim:
      out = Arg<Tensor>::ofDim(*takeDims(1));
      break;
    case ArgTag::DimList:
      out = Arg<Tensor>::ofDims(Span<const Dim>(takeDims(a.size), a.size));
      break;
    case ArgTag::Rng:
      generator.manualSeed(static_cast<uint64_t>(ints[rngAt_]));
      generator.setOffset(static_cast<uint64_t>(ints[rngAt_ + 1]));
      out = Arg<Tensor>::ofRng(&generator);
      break;
    default:
      out = attribute(a);
      break;
    }
    args.push_back(out);
  }
  op_.kernel(Span<const Arg<Tensor>>(args.data(), args.size()), tensors.slice(firstOut_, tensors.size() - firstOut_));
}

} // namespace dlc
