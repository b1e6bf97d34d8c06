// Span and SmallVec: the two containers of the runtime's public signatures.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace dlc {

/// A view of `size` consecutive objects that somebody else owns.
template <class T> class Span {
public:
  using value_type = std::remove_const_t<T>;
  constexpr Span() = default;
  constexpr Span(T *data, size_t size) : data_(data), size_(size) {}
  template <class U, size_t N, class = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
  constexpr Span(U (&a)[N]) : data_(a), size_(N) {}
  template <class C, class = decltype(std::declval<C &>().data())>
  constexpr Span(C &c) : data_(c.data()), size_(c.size()) {}
  template <class C, class = decltype(std::declval<const C &>().data()),
            class = std::enable_if_t<std::is_const_v<T>, C>>
  constexpr Span(const C &c) : data_(c.data()), size_(c.size()) {}
  /// Lives until the end of the full expression only.
  template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
  constexpr Span(std::initializer_list<value_type> l) : data_(l.begin()), size_(l.size()) {}

  constexpr T *data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T &operator[](size_t i) const { return data_[i]; }
  constexpr T *begin() const { return data_; }
  constexpr T *end() const { return data_ + size_; }
  constexpr T &front() const { return data_[0]; }
  constexpr T &back() const { return data_[size_ - 1]; }
  constexpr Span slice(size_t from, size_t n) const { return Span(data_ + from, n); }
  std::vector<value_type> vec() const { return std::vector<value_type>(begin(), end()); }

private:
  T *data_ = nullptr;
  size_t size_ = 0;
};

template <class A, class B> bool equal(Span<A> a, Span<B> b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

/// A vector whose first `N` elements need no allocation.
template <class T, unsigned N = 6> class SmallVec {
public:
  using value_type = T;
  SmallVec() = default;
  explicit SmallVec(size_t n, const T &v = T()) { resize(n, v); }
  SmallVec(std::initializer_list<T> l) { append(l.begin(), l.end()); }
  template <class It, class = typename std::iterator_traits<It>::iterator_category> SmallVec(It first, It last) {
    append(first, last);
  }
  SmallVec(Span<const T> s) { append(s.begin(), s.end()); }
  SmallVec(const SmallVec &o) { append(o.begin(), o.end()); }
  SmallVec(SmallVec &&o) noexcept { take(o); }
  SmallVec &operator=(const SmallVec &o) {
    if (this != &o) {
      clear();
      append(o.begin(), o.end());
    }
    return *this;
  }
  SmallVec &operator=(SmallVec &&o) noexcept {
    if (this != &o) {
      destroy();
      take(o);
    }
    return *this;
  }
  ~SmallVec() { destroy(); }

  T *data() { return data_; }
  const T *data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T *begin() { return data_; }
  T *end() { return data_ + size_; }
  const T *begin() const { return data_; }
  const T *end() const { return data_ + size_; }
  T &operator[](size_t i) { return data_[i]; }
  const T &operator[](size_t i) const { return data_[i]; }
  T &front() { return data_[0]; }
  const T &front() const { return data_[0]; }
  T &back() { return data_[size_ - 1]; }
  const T &back() const { return data_[size_ - 1]; }

  void push_back(T v) {
    reserve(size_ + 1);
    new (data_ + size_++) T(std::move(v));
  }
  template <class... A> T &emplace_back(A &&...a) {
    push_back(T(std::forward<A>(a)...));
    return back();
  }
  void pop_back() { data_[--size_].~T(); }
  template <class It> void append(It first, It last) {
    if constexpr (kTrivial && std::is_pointer_v<It> &&
                  std::is_same_v<std::remove_const_t<std::remove_pointer_t<It>>, T>) {
      size_t n = static_cast<size_t>(last - first);
      reserve(size_ + n);
      if (n)
        std::memcpy(static_cast<void *>(data_ + size_), first, n * sizeof(T));
      size_ += n;
    } else {
      for (; first != last; ++first)
        push_back(*first);
    }
  }
  void insert(size_t at, T v) {
    push_back(std::move(v));
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(size_t at) {
    std::move(begin() + at + 1, end(), begin() + at);
    pop_back();
  }
  void resize(size_t n, const T &v = T()) {
    while (size_ > n)
      pop_back();
    reserve(n);
    while (size_ < n)
      push_back(v);
  }
  void clear() {
    if constexpr (std::is_trivially_destructible_v<T>)
      size_ = 0;
    else
      while (size_)
        pop_back();
  }
  void reserve(size_t n) {
    if (n <= capacity_)
      return;
    size_t cap = std::max<size_t>(n, capacity_ * 2);
    T *fresh = static_cast<T *>(::operator new(cap * sizeof(T)));
    for (size_t i = 0; i < size_; ++i) {
      new (fresh + i) T(std::move(data_[i]));
      data_[i].~T();
    }
    release();
    data_ = fresh;
    capacity_ = cap;
  }
  friend bool operator==(const SmallVec &a, const SmallVec &b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }
  friend bool operator!=(const SmallVec &a, const SmallVec &b) { return !(a == b); }

private:
  T *inlineData() { return reinterpret_cast<T *>(inline_); }
  void release() {
    if (data_ != inlineData())
      ::operator delete(data_);
  }
  void destroy() {
    clear();
    release();
    data_ = inlineData();
    capacity_ = N;
  }
  /// Assumes *this is empty and inline.
  void take(SmallVec &o) {
    if (o.data_ != o.inlineData()) {
      data_ = o.data_;
      size_ = o.size_;
      capacity_ = o.capacity_;
      o.data_ = o.inlineData();
      o.size_ = 0;
      o.capacity_ = N;
    } else if constexpr (kTrivial) {
      std::memcpy(static_cast<void *>(data_), o.data_, o.size_ * sizeof(T));
      size_ = o.size_;
      o.size_ = 0;
    } else {
      for (T &v : o)
        push_back(std::move(v));
      o.clear();
    }
  }
  static constexpr bool kTrivial = std::is_trivially_copyable_v<T>;

  alignas(T) unsigned char inline_[N * sizeof(T)];
  T *data_ = inlineData();
  size_t size_ = 0, capacity_ = N;
};

using Sizes = SmallVec<int64_t>;
using Ints = Span<const int64_t>;

} // namespace dlc
