// Errors as part of the interface: one exception type that knows which Python class it becomes.
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>

namespace dlc {

/// The Python exception class that a failure turns into.
enum class ErrorKind {
  Runtime,
  Type,
  Value,
  Index,
  NotImplemented,
  ZeroDivision,
  Overflow,
  Attribute,
  Memory,
  Import,
  Internal
};

/// A failure caused by the user's input (any kind but Internal) or by a bug in dlc (Internal).
/// The first line says what happened, the last what to do.
class Error : public std::runtime_error {
public:
  Error(ErrorKind kind, const std::string &message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

private:
  ErrorKind kind_;
};

/// Concatenates printed forms of its arguments.
template <class... A> std::string str(const A &...a) {
  std::ostringstream os;
  (void)(os << ... << a);
  return os.str();
}

/// Prints a sequence as `[a, b, c]`.
template <class C> std::string listStr(const C &c) {
  std::ostringstream os;
  os << '[';
  const char *sep = "";
  for (const auto &v : c) {
    os << sep << v;
    sep = ", ";
  }
  os << ']';
  return os.str();
}

template <class... A> [[noreturn]] void fail(ErrorKind kind, const A &...a) { throw Error(kind, str(a...)); }

} // namespace dlc

/// A user-facing requirement: throws dlc::Error of `kind` with the printed arguments as its message.
#define DLC_REQUIRE(cond, kind, ...)                                                                                   \
  do {                                                                                                                 \
    if (__builtin_expect(!(cond), 0))                                                                                  \
      ::dlc::fail(::dlc::ErrorKind::kind, __VA_ARGS__);                                                                \
  } while (0)

/// An invariant of dlc itself.
#define DLC_CHECK(cond, ...)                                                                                           \
  do {                                                                                                                 \
    if (__builtin_expect(!(cond), 0))                                                                                  \
      ::dlc::fail(::dlc::ErrorKind::Internal, "internal error at " __FILE__ ":", __LINE__, ": ", #cond, ": ",          \
                  ::dlc::str(__VA_ARGS__));                                                                            \
  } while (0)
