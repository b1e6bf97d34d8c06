// Canonical polynomials over symbols. Interning takes a lock, which is fine: constants never come here.
#include "runtime/core/Dim.h"
#include "runtime/core/ForkSafe.h"
#include <map>
#include <tuple>
#include <unordered_map>

namespace dlc {
namespace {

using Factors = std::vector<const DimAtom *>;

struct FactorsLess {
  bool operator()(const Factors &a, const Factors &b) const {
    if (a.size() != b.size())
      return a.size() > b.size();
    for (size_t i = 0; i < a.size(); ++i)
      if (a[i]->id != b[i]->id)
        return a[i]->id < b[i]->id;
    return false;
  }
};
using Poly = std::map<Factors, int64_t, FactorsLess>;

struct Interner {
  ForkMutex mutex;
  std::unordered_map<std::string, const DimExpr *> exprs;
  std::unordered_map<std::string, const DimAtom *> atoms;
  uint32_t nextAtom = 1u << 20; // symbols take their own number, so that s0 sorts before s1 whatever came first
};

Interner &interner() {
  static Interner *it = new Interner; // outlives every static destructor
  return *it;
}

thread_local FactSink *currentSink = nullptr;

std::string atomText(const DimAtom &a) {
  if (a.kind == DimAtom::Kind::Symbol)
    return str("s", a.symbol);
  auto part = [](const DimAtom::Operand &o) { return o.expr ? "(" + o.expr->text + ")" : str(o.value); };
  return str("(", part(a.lhs), a.kind == DimAtom::Kind::FloorDiv ? " floordiv " : " mod ", part(a.rhs), ")");
}

const DimAtom *internAtom(DimAtom a) {
  Interner &in = interner();
  std::string key = atomText(a);
  std::lock_guard<ForkMutex> lock(in.mutex);
  const DimAtom *&slot = in.atoms[key];
  if (!slot) {
    a.id = a.kind == DimAtom::Kind::Symbol ? a.symbol : in.nextAtom++;
    slot = new DimAtom(a);
  }
  return slot;
}

std::string polyText(const Poly &p) {
  std::string out;
  for (const auto &[factors, coef] : p) {
    if (!out.empty())
      out += coef < 0 ? " - " : " + ";
    else if (coef < 0)
      out += "-";
    int64_t mag = coef < 0 ? -coef : coef;
    bool needStar = false;
    if (mag != 1 || factors.empty()) {
      out += str(mag);
      needStar = true;
    }
    for (const DimAtom *f : factors) {
      if (needStar)
        out += "*";
      out += atomText(*f);
      needStar = true;
    }
  }
  return out.empty() ? "0" : out;
}

Poly toPoly(const Dim &d) {
  Poly p;
  if (d.isConst()) {
    if (d.value())
      p[{}] = d.value();
    return p;
  }
  for (const DimTerm &t : d.expr()->terms)
    p[t.factors] = t.coef;
  return p;
}

Dim fromPoly(int64_t value, Poly p) {
  for (auto it = p.begin(); it != p.end();)
    it = it->second == 0 ? p.erase(it) : std::next(it);
  if (p.empty())
    return Dim(int64_t(0));
  if (p.size() == 1 && p.begin()->first.empty())
    return Dim(p.begin()->second);
  std::string text = polyText(p);
  Interner &in = interner();
  std::lock_guard<ForkMutex> lock(in.mutex);
  const DimExpr *&slot = in.exprs[text];
  if (!slot) {
    auto *e = new DimExpr;
    for (auto &[factors, coef] : p)
      e->terms.push_back({coef, factors});
    e->text = text;
    slot = e;
  }
  return Dim(value, slot);
}

/// p / divisor when the division is exact term by term, for a divisor of one term.
bool divideExactly(const Poly &p, const Poly &divisor, Poly &out) {
  if (divisor.size() != 1)
    return false;
  const auto &[dFactors, dCoef] = *divisor.begin();
  for (const auto &[factors, coef] : p) {
    if (coef % dCoef != 0)
      return false;
    Factors rest = factors;
    for (const DimAtom *f : dFactors) {
      auto it = std::find(rest.begin(), rest.end(), f);
      if (it == rest.end())
        return false;
      rest.erase(it);
    }
    out[rest] += coef / dCoef;
  }
  return true;
}

int64_t pyFloorDiv(int64_t a, int64_t b) {
  if (b == -1) { // the machine's division traps on the smallest number
    int64_t negated;
    DLC_REQUIRE(!__builtin_sub_overflow(int64_t(0), a, &negated), Overflow,
                "a size expression leaves 64 bits\nuse smaller numbers");
    return negated;
  }
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}
int64_t pyMod(int64_t a, int64_t b) {
  if (b == -1)
    return 0;
  int64_t r = a % b;
  return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;
}

void record(Fact::Kind kind, const Dim &difference) {
  if (currentSink && !difference.isConst())
    currentSink->add({kind, difference.expr()});
}

} // namespace

Dim Dim::symbol(uint32_t k, int64_t hint) {
  DimAtom a{DimAtom::Kind::Symbol, 0, k, {0, nullptr}, {0, nullptr}};
  Poly p;
  p[{internAtom(a)}] = 1;
  return fromPoly(hint, std::move(p));
}

Dim Dim::addSlow(const Dim &a, const Dim &b, int64_t sign) {
  Poly p = toPoly(a);
  for (const auto &[factors, coef] : toPoly(b))
    p[factors] += sign * coef;
  return fromPoly(a.value_ + sign * b.value_, std::move(p));
}

Dim Dim::mulSlow(const Dim &a, const Dim &b) {
  Poly p;
  for (const auto &[fa, ca] : toPoly(a))
    for (const auto &[fb, cb] : toPoly(b)) {
      Factors f = fa;
      f.insert(f.end(), fb.begin(), fb.end());
      std::sort(f.begin(), f.end(), [](auto *x, auto *y) { return x->id < y->id; });
      p[f] += ca * cb;
    }
  return fromPoly(a.value_ * b.value_, std::move(p));
}

bool Dim::equalSlow(const Dim &a, const Dim &b) {
  if (a.same(b))
    return true;
  Dim diff = a - b;
  bool eq = diff.value_ == 0;
  record(eq ? Fact::Kind::EqZero : Fact::Kind::NeZero, diff);
  return eq;
}

bool Dim::lessSlow(const Dim &a, const Dim &b) {
  Dim diff = a - b;
  bool less = diff.value_ < 0;
  record(less ? Fact::Kind::LtZero : Fact::Kind::GeZero, diff);
  return less;
}

int64_t Dim::concretize() const {
  if (expr_)
    (void)(*this == Dim(value_));
  return value_;
}

Dim floorDiv(const Dim &a, const Dim &b) {
  DLC_CHECK(b.value() != 0, "division of ", a, " by zero");
  int64_t value = pyFloorDiv(a.value(), b.value());
  if (a.isConst() && b.isConst())
    return Dim(value);
  if (a.same(b))
    return Dim(int64_t(1));
  Poly exact;
  if (divideExactly(toPoly(a), toPoly(b), exact))
    return fromPoly(value, std::move(exact));
  DimAtom atom{DimAtom::Kind::FloorDiv, 0, 0, {a.value(), a.expr()}, {b.value(), b.expr()}};
  Poly p;
  p[{internAtom(atom)}] = 1;
  return fromPoly(value, std::move(p));
}

Dim floorMod(const Dim &a, const Dim &b) {
  DLC_CHECK(b.value() != 0, "remainder of ", a, " by zero");
  int64_t value = pyMod(a.value(), b.value());
  if (a.isConst() && b.isConst())
    return Dim(value);
  Poly exact;
  if (divideExactly(toPoly(a), toPoly(b), exact))
    return Dim(int64_t(0));
  DimAtom atom{DimAtom::Kind::Mod, 0, 0, {a.value(), a.expr()}, {b.value(), b.expr()}};
  Poly p;
  p[{internAtom(atom)}] = 1;
  return fromPoly(value, std::move(p));
}

FactSink::FactSink() : previous_(currentSink) { currentSink = this; }
FactSink::~FactSink() { currentSink = previous_; }
void FactSink::add(Fact f) {
  if (std::find(facts_.begin(), facts_.end(), f) == facts_.end())
    facts_.push_back(f);
}

int64_t evaluate(const DimExpr *expr, Ints symbols) {
  auto operand = [&](const DimAtom::Operand &o) { return o.expr ? evaluate(o.expr, symbols) : o.value; };
  int64_t sum = 0;
  bool overflow = false;
  for (const DimTerm &t : expr->terms) {
    int64_t product = t.coef;
    for (const DimAtom *f : t.factors) {
      int64_t v;
      if (f->kind == DimAtom::Kind::Symbol) {
        DLC_CHECK(f->symbol < symbols.size(), "symbol s", f->symbol, " has no value");
        v = symbols[f->symbol];
      } else {
        int64_t rhs = operand(f->rhs);
        DLC_REQUIRE(rhs != 0, ZeroDivision, "size expression ", expr->text, " divides by zero");
        v = f->kind == DimAtom::Kind::FloorDiv ? pyFloorDiv(operand(f->lhs), rhs) : pyMod(operand(f->lhs), rhs);
      }
      overflow |= __builtin_mul_overflow(product, v, &product);
    }
    overflow |= __builtin_add_overflow(sum, product, &sum);
  }
  DLC_REQUIRE(!overflow, Overflow, "size expression ", expr->text, " does not fit in 64 bits");
  return sum;
}

bool holds(const Fact &f, Ints symbols) {
  int64_t v = evaluate(f.expr, symbols);
  switch (f.kind) {
  case Fact::Kind::EqZero:
    return v == 0;
  case Fact::Kind::NeZero:
    return v != 0;
  case Fact::Kind::LtZero:
    return v < 0;
  case Fact::Kind::GeZero:
    return v >= 0;
  }
  __builtin_unreachable();
}

std::string str(const Fact &f) {
  const char *ops[] = {" == 0", " != 0", " < 0", " >= 0"};
  return f.expr->text + ops[static_cast<int>(f.kind)];
}

} // namespace dlc
