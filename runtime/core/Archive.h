// Plain data as bytes and back, in one description for both directions: what is written by Writer is read by Reader in
// the same order. For the persistent cache, whose entries are checked before they are read.
#pragma once
#include "runtime/core/Dim.h"
#include "runtime/core/DType.h"
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace dlc::archive {

/// Appends to a string. Throws nothing.
class Writer {
public:
  static constexpr bool kReads = false;
  std::string bytes;

  void raw(const void *data, size_t size) { bytes.append(static_cast<const char *>(data), size); }
  template <class T> void pod(const T &v) {
    static_assert(std::is_trivially_copyable_v<T>);
    raw(&v, sizeof(v));
  }
  void text(const std::string &s) {
    pod(s.size());
    raw(s.data(), s.size());
  }
  void dim(const Dim &d) {
    pod(d.isConst());
    d.isConst() ? pod(d.value()) : poly(d.expr());
  }
  /// A vector or SmallVec; `f` writes one element.
  template <class C, class F> void list(C &c, F &&f) {
    pod(static_cast<size_t>(c.size()));
    for (auto &v : c)
      f(v);
  }

private:
  void operand(const DimAtom::Operand &o) { dim(o.expr ? Dim(0, o.expr) : Dim(o.value)); }
  void poly(const DimExpr *e) {
    pod(e->terms.size());
    for (const DimTerm &t : e->terms) {
      pod(t.coef);
      pod(t.factors.size());
      for (const DimAtom *a : t.factors) {
        pod(a->kind);
        if (a->kind == DimAtom::Kind::Symbol) {
          pod(a->symbol);
        } else {
          operand(a->lhs);
          operand(a->rhs);
        }
      }
    }
  }
};

/// Reads what a Writer wrote; throws InternalError at its end. `hints`: the values of the symbols in expressions.
class Reader {
public:
  static constexpr bool kReads = true;
  Reader(std::string_view bytes, Ints hints) : at_(bytes.data()), end_(at_ + bytes.size()), hints_(hints) {}

  bool atEnd() const { return at_ == end_; }
  std::string_view raw(size_t size) {
    DLC_CHECK(size <= static_cast<size_t>(end_ - at_), "an archive ends early");
    at_ += size;
    return {at_ - size, size};
  }
  template <class T> void pod(T &v) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(static_cast<void *>(&v), raw(sizeof(v)).data(), sizeof(v));
  }
  void text(std::string &s) { s = raw(take<size_t>()); }
  void dim(Dim &d) { d = take<bool>() ? Dim(take<int64_t>()) : poly(); }
  template <class C, class F> void list(C &c, F &&f) {
    size_t n = take<size_t>();
    DLC_CHECK(n <= static_cast<size_t>(end_ - at_), "an archive ends early"); // an element takes a byte at least
    c.resize(n);
    for (auto &v : c)
      f(v);
  }
  template <class T> T take() {
    T v;
    pod(v);
    return v;
  }

private:
  Dim operand() {
    Dim d;
    dim(d);
    return d;
  }
  Dim atom() {
    auto kind = take<DimAtom::Kind>();
    if (kind == DimAtom::Kind::Symbol) {
      uint32_t k = take<uint32_t>();
      DLC_CHECK(k < hints_.size(), "an archive names the symbol s", k, " of ", hints_.size());
      return Dim::symbol(k, hints_[k]);
    }
    Dim lhs = operand(), rhs = operand();
    return kind == DimAtom::Kind::FloorDiv ? floorDiv(lhs, rhs) : floorMod(lhs, rhs);
  }
  Dim poly() {
    Dim sum(0);
    for (size_t n = take<size_t>(); n; --n) {
      Dim product(take<int64_t>());
      for (size_t k = take<size_t>(); k; --k)
        product *= atom();
      sum += product;
    }
    return sum;
  }

  const char *at_, *end_;
  Ints hints_;
};

/// Sizes, strides.
template <class A> void fields(A &a, Dims &dims) {
  a.list(dims, [&](auto &d) { a.dim(d); });
}
/// Facts are made again by the comparisons that made them: the hints are the same, so they go the same way.
template <class A> void fields(A &a, std::vector<Fact> &facts) {
  a.list(facts, [&](Fact &f) {
    a.pod(f.kind);
    Dim d(0, f.expr);
    a.dim(d);
    f.expr = d.expr();
  });
}

} // namespace dlc::archive
