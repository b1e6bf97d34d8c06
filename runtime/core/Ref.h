// Intrusive reference counting: one word a handle, no control block.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace dlc {

/// Base of objects held by Ref. Starts with a count of 0; the first Ref makes it 1.
class RefCounted {
public:
  void retain() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  /// Returns true if the caller dropped the last reference and must destroy the object.
  bool dropRef() const { return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  uint32_t refCount() const { return refs_.load(std::memory_order_acquire); }

protected:
  RefCounted() = default;
  RefCounted(const RefCounted &) : refs_(0) {}
  ~RefCounted() = default;

private:
  mutable std::atomic<uint32_t> refs_{0};
};

/// Shared ownership of a RefCounted object; T's deleter is `delete`.
template <class T> class Ref {
public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T *p) : p_(p) {
    if (p_)
      p_->retain();
  }
  Ref(const Ref &o) : Ref(o.p_) {}
  Ref(Ref &&o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U, class = std::enable_if_t<std::is_convertible_v<U *, T *>>> Ref(const Ref<U> &o) : Ref(o.get()) {}
  Ref &operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() {
    if (p_ && p_->dropRef())
      delete p_;
  }
  T *get() const { return p_; }
  T *operator->() const { return p_; }
  T &operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  friend bool operator==(const Ref &a, const Ref &b) { return a.p_ == b.p_; }
  friend bool operator!=(const Ref &a, const Ref &b) { return a.p_ != b.p_; }

private:
  T *p_ = nullptr;
};

template <class T, class... A> Ref<T> makeRef(A &&...a) { return Ref<T>(new T(std::forward<A>(a)...)); }

} // namespace dlc
