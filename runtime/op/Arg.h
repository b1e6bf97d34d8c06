// Boxed arguments: what a call of any op looks like to the dispatcher, the tape, the graph and the importer.
// V is the kind of value: Tensor (eager), TensorMeta (meta functions), a graph or IR value (rules, importer).
#pragma once
#include "runtime/core/Generator.h"
#include "runtime/core/Tensor.h"
#include <optional>
#include <string>
#include <string_view>

namespace dlc {

using Str = std::string_view;

/// What is in the box. `None` stands for an absent optional of any kind.
enum class ArgTag : uint8_t { None, Value, ValueList, Num, Dim, DimList, Int, IntList, Bool, Float, Str, DType, Rng };

/// One boxed argument; owns nothing (see OwnedArgs). An undefined optional value is `None`, except inside lists.
template <class V> struct Arg {
  ArgTag tag = ArgTag::None;
  DType dtype = DType::F32; // DType
  size_t size = 0;          // lists and Str
  union {
    const V *value;      // Value, ValueList
    const Dim *dims;     // DimList
    const int64_t *ints; // IntList
    const char *chars;   // Str
    Generator *rng;      // Rng (null: the default generator)
    int64_t i = 0;       // Int, Bool
    double f;            // Float
  };
  Number num; // Num
  Dim dim;    // Dim

  Arg() {}
  static Arg of(const V &v) {
    Arg a;
    a.tag = ArgTag::Value;
    a.value = &v;
    return a;
  }
  static Arg of(const std::optional<V> &v) { return v ? of(*v) : Arg(); }
  static Arg list(Span<const V> v) {
    Arg a;
    a.tag = ArgTag::ValueList;
    a.value = v.data();
    a.size = v.size();
    return a;
  }
  static Arg number(const Number &n) {
    Arg a;
    a.tag = ArgTag::Num;
    a.num = n;
    return a;
  }
  static Arg number(const std::optional<Number> &n) { return n ? number(*n) : Arg(); }
  static Arg ofDim(const Dim &d) {
    Arg a;
    a.tag = ArgTag::Dim;
    a.dim = d;
    return a;
  }
  static Arg ofDim(const std::optional<Dim> &d) { return d ? ofDim(*d) : Arg(); }
  static Arg ofDims(Span<const Dim> d) {
    Arg a;
    a.tag = ArgTag::DimList;
    a.dims = d.data();
    a.size = d.size();
    return a;
  }
  static Arg ofInt(int64_t v) {
    Arg a;
    a.tag = ArgTag::Int;
    a.i = v;
    return a;
  }
  static Arg ofInt(const std::optional<int64_t> &v) { return v ? ofInt(*v) : Arg(); }
  static Arg ofInts(Ints v) {
    Arg a;
    a.tag = ArgTag::IntList;
    a.ints = v.data();
    a.size = v.size();
    return a;
  }
  static Arg ofInts(const std::optional<Ints> &v) { return v ? ofInts(*v) : Arg(); }
  static Arg ofBool(bool v) {
    Arg a;
    a.tag = ArgTag::Bool;
    a.i = v;
    return a;
  }
  static Arg ofFloat(double v) {
    Arg a;
    a.tag = ArgTag::Float;
    a.f = v;
    return a;
  }
  static Arg ofStr(Str v) {
    Arg a;
    a.tag = ArgTag::Str;
    a.chars = v.data();
    a.size = v.size();
    return a;
  }
  static Arg ofStr(const std::optional<Str> &v) { return v ? ofStr(*v) : Arg(); }
  static Arg ofDType(DType v) {
    Arg a;
    a.tag = ArgTag::DType;
    a.dtype = v;
    return a;
  }
  static Arg ofDType(const std::optional<DType> &v) { return v ? ofDType(*v) : Arg(); }
  static Arg ofRng(Generator *g) {
    Arg a;
    a.tag = ArgTag::Rng;
    a.rng = g;
    return a;
  }

  bool isNone() const { return tag == ArgTag::None; }
  Span<const V> values() const {
    return tag == ArgTag::Value ? Span<const V>(value, 1) : Span<const V>(value, tag == ArgTag::ValueList ? size : 0);
  }
  Span<const Dim> dimList() const { return {dims, size}; }
  Ints intList() const { return {ints, size}; }
  Str str() const { return {chars, size}; }
  bool b() const { return i != 0; }
};

/// A deep copy of boxed arguments in one block of memory: what the tape and the graph keep.
template <class V> class OwnedArgs {
public:
  OwnedArgs() = default;
  explicit OwnedArgs(Span<const Arg<V>> args) {
    size_t nv = 0, nd = 0, ni = 0, nc = 0;
    for (const Arg<V> &a : args) {
      nv += a.values().size();
      nd += a.tag == ArgTag::DimList ? a.size : 0;
      ni += a.tag == ArgTag::IntList ? a.size : 0;
      nc += a.tag == ArgTag::Str ? a.size : 0;
    }
    numArgs_ = static_cast<uint32_t>(args.size());
    numValues_ = static_cast<uint32_t>(nv);
    // From the strictest alignment to the loosest.
    static_assert(alignof(Arg<V>) >= alignof(Dim) && alignof(Dim) >= alignof(V) && alignof(Dim) >= alignof(int64_t));
    block_ = static_cast<char *>(::operator new(args.size() * sizeof(Arg<V>) + nd * sizeof(Dim) + ni * sizeof(int64_t) +
                                                nv * sizeof(V) + nc + 1));
    Dim *dims = reinterpret_cast<Dim *>(block_ + args.size() * sizeof(Arg<V>));
    int64_t *ints = reinterpret_cast<int64_t *>(dims + nd);
    V *values = reinterpret_cast<V *>(ints + ni);
    char *chars = reinterpret_cast<char *>(values + nv);
    values_ = values;
    Arg<V> *to = data();
    for (Arg<V> a : args) {
      if (a.tag == ArgTag::Value || a.tag == ArgTag::ValueList)
        a.value = copy(values, a.values());
      else if (a.tag == ArgTag::DimList)
        a.dims = copy(dims, a.dimList());
      else if (a.tag == ArgTag::IntList)
        a.ints = copy(ints, a.intList());
      else if (a.tag == ArgTag::Str)
        a.chars = copy(chars, Span<const char>(a.chars, a.size));
      new (to++) Arg<V>(a);
    }
  }
  OwnedArgs(OwnedArgs &&o) noexcept { swap(o); }
  OwnedArgs(const OwnedArgs &o) : OwnedArgs(o.args()) {}
  OwnedArgs &operator=(OwnedArgs o) noexcept {
    swap(o);
    return *this;
  }
  ~OwnedArgs() {
    for (V &v : values())
      v.~V();
    ::operator delete(block_);
  }

  Span<const Arg<V>> args() const { return {data(), numArgs_}; }
  /// All values of all arguments in order; assigning through it changes the arguments.
  Span<V> values() { return {values_, numValues_}; }
  Span<const V> values() const { return {values_, numValues_}; }

private:
  Arg<V> *data() const { return reinterpret_cast<Arg<V> *>(block_); }
  void swap(OwnedArgs &o) {
    std::swap(block_, o.block_);
    std::swap(values_, o.values_);
    std::swap(numArgs_, o.numArgs_);
    std::swap(numValues_, o.numValues_);
  }
  template <class T> static const T *copy(T *&to, Span<const T> from) {
    T *first = to;
    for (const T &v : from)
      new (to++) T(v);
    return first;
  }
  char *block_ = nullptr;
  V *values_ = nullptr;
  uint32_t numArgs_ = 0, numValues_ = 0;
};

} // namespace dlc
