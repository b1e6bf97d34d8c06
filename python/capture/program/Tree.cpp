// The programs of one function: trying them, adding and dropping them, and what is said about them.
#include "python/capture/program/Tree.h"
#include "python/capture/program/Code.h"
#include "runtime/core/Knobs.h"
#include <map>
#include <unordered_set>

namespace dlc::py {

using namespace replay;

struct Tree::State {
  CodeRef code;
  std::vector<std::unique_ptr<Frame>> frames; ///< not in use
  TreeStats stats;
  int64_t clock = 0;
  bool saidLimit = false;
  // The last run that missed. The code is kept for its instructions' sake until the next insertion.
  CodeRef failedCode;
  std::vector<Failure> failed;
  std::string missText;                    ///< of a miss before the last insertion
  std::map<std::string, int64_t> failures; ///< how often a source's guards failed
};

namespace {

template <class V> void grow(V &v, int32_t n) {
  if (v.size() < static_cast<size_t>(n))
    v.resize(static_cast<size_t>(n));
}
void fit(Frame &f, const Code &code) {
  grow(f.objs, code.objs);
  grow(f.tens, code.tens);
  grow(f.syms, code.syms);
  grow(f.nums, code.nums);
}

/// The registers of one run, taken from the tree's stock and given back.
class FrameLease {
public:
  FrameLease(std::vector<std::unique_ptr<Frame>> &stock, const Code &code) {
    if (!stock.empty()) {
      frame_ = std::move(stock.back());
      stock.pop_back();
    } else {
      frame_ = std::make_unique<Frame>();
    }
    fit(*frame_, code);
  }
  /// Drops what the run held. May run finalizers, hence other runs.
  void release() {
    Frame &f = *frame_;
    f.undo.clear();
    f.drawn.clear();
    f.bumps.clear();
    f.failed.clear();
    f.outs.clear();
    f.undoMark = 0;
    f.ranAny = false;
    f.ownedTens.clear();
    while (!f.owned.empty()) {
      PyObject *o = f.owned.back();
      f.owned.pop_back();
      Py_DECREF(o);
    }
  }
  Frame &operator*() { return *frame_; }
  std::unique_ptr<Frame> take() { return std::move(frame_); }

private:
  std::unique_ptr<Frame> frame_;
};

struct Mark {
  explicit Mark(const Frame &f)
      : undo(f.undo.size()), previous(f.undoMark), drawn(f.drawn.size()), bumps(f.bumps.size()) {}
  void restore(Frame &f) const {
    rollBack(f, undo);
    f.undoMark = previous;
    f.drawn.resize(drawn);
    f.bumps.resize(bumps);
  }
  size_t undo, previous, drawn, bumps;
};

/// Tries a node and what follows it. Everything is put back before Miss is returned.
Commit walk(Node &n, Frame &f, PyObject *&result, Leaf *&taken) {
  Mark mark(f);
  f.undoMark = mark.undo;
  Commit outcome = Commit::Miss;
  try {
    if (execute(n, f)) {
      size_t count = n.children.size(), first = n.lastHit < count ? n.lastHit : 0;
      for (size_t k = 0; k < count && outcome == Commit::Miss; ++k) {
        size_t child = k == 0 ? first : k <= first ? k - 1 : k;
        outcome = walk(*n.children[child], f, result, taken);
        if (outcome == Commit::Done)
          n.lastHit = child;
      }
      if (outcome == Commit::Miss && n.leaf) {
        outcome = commit(*n.leaf, f, result);
        if (outcome == Commit::Done)
          taken = n.leaf.get();
      }
    }
  } catch (...) { // out of memory, Ctrl-C
    setPythonErrorFromCurrentException();
    outcome = Commit::Raised;
  }
  if (outcome != Commit::Done)
    mark.restore(f);
  return outcome;
}

bool sameNames(PyObject *a, PyObject *b) {
  if (a == b)
    return true;
  Py_ssize_t n = a ? PyTuple_GET_SIZE(a) : 0;
  if (n != (b ? PyTuple_GET_SIZE(b) : 0))
    return false;
  return n == 0 || sameScalar(a, b);
}

Node *rootFor(Code &code, Py_ssize_t nargs, PyObject *kwnames) {
  for (Shape &s : code.shapes)
    if (s.nargs == nargs && sameNames(s.kwnames.get(), kwnames))
      return s.node.get();
  return nullptr;
}

void setArguments(Frame &f, PyObject *callee, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  f.callee = callee;
  f.args = args;
  f.numArgs = static_cast<size_t>(nargs) + static_cast<size_t>(kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
}

bool isGuard(Do op) { return (op >= Do::IsType && op <= Do::NumIs) || op == Do::DictGet || op == Do::AttrGet; }

/// Drops the least recently used program but for the first, which is new.
void dropOldest(std::vector<std::shared_ptr<replay::Program>> &all) {
  size_t oldest = 1;
  for (size_t k = 2; k < all.size(); ++k)
    if (all[k]->lastUsed < all[oldest]->lastUsed)
      oldest = k;
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(oldest));
}

std::string mostOften(const std::map<std::string, int64_t> &failures) {
  std::string most = "no single source";
  int64_t count = 0;
  for (const auto &[source, n] : failures)
    if (n > count) {
      count = n;
      most = source;
    }
  return most;
}

/// Calls f(node, depth in the tree) for all nodes.
template <class F> void forEachNode(const Node &n, int depth, F &&f) {
  f(n, depth);
  for (const auto &c : n.children)
    forEachNode(*c, depth + 1, f);
}

} // namespace

Tree::Tree() : state_(std::make_unique<State>()) {}
Tree::~Tree() = default;

bool Tree::empty() const { return !state_->code || state_->code->programs.empty(); }

ReplayResult Tree::run(PyObject *callee, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  State &st = *state_;
  if (!st.code)
    return {ReplayResult::Kind::Miss};
  CodeRef code = st.code; // others may insert or clear while the GIL is given up
  Node *root = rootFor(*code.get(), nargs, kwnames);
  if (!root) {
    ++st.stats.misses;
    st.failed.clear();
    st.missText = "no program for this number of arguments";
    return {ReplayResult::Kind::Miss};
  }
  FrameLease lease(st.frames, *code.get());
  Frame &f = *lease;
  setArguments(f, callee, args, nargs, kwnames);
  ReplayResult r{ReplayResult::Kind::Miss};
  Leaf *leaf = nullptr;
  Commit outcome = walk(*root, f, r.value, leaf);
  if (outcome == Commit::Done) {
    r.kind = ReplayResult::Kind::Hit;
    ++st.stats.hits;
    ++*leaf->hits;
    *leaf->lastUsed = ++st.clock;
  } else {
    st.stats.rollbacks += f.ranAny;
    if (outcome == Commit::Raised) {
      r.kind = ReplayResult::Kind::Raised;
    } else {
      ++st.stats.misses;
      st.failed = f.failed;
      st.failedCode = code;
      for (const std::string &source : failedSources())
        ++st.failures[source];
    }
  }
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  if (outcome == Commit::Raised)
    PyErr_Fetch(&type, &value, &trace); // finalizers run with no error set
  lease.release();
  if (outcome == Commit::Raised)
    PyErr_Restore(type, value, trace);
  st.frames.push_back(lease.take());
  return r;
}

CodeRef Tree::tryOut(Frame &f, PyObject *callee, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  CodeRef code = state_->code;
  Node *root = code ? rootFor(*code.get(), nargs, kwnames) : nullptr;
  if (!root)
    return code;
  fit(f, *code.get());
  setArguments(f, callee, args, nargs, kwnames);
  PyObject *result = nullptr;
  Leaf *leaf = nullptr;
  if (walk(*root, f, result, leaf) == Commit::Raised)
    PyErr_Clear(); // Python's run will say
  return code;
}

void Tree::insert(Path path) {
  State &st = *state_;
  auto program = std::make_shared<replay::Program>();
  auto move = [](std::vector<Instr> &from, std::vector<InstrPtr> &to) {
    for (Instr &i : from) {
      if (i.key && PyUnicode_CheckExact(i.key.get())) { // look-ups compare pointers first
        PyObject *key = i.key.release();
        PyUnicode_InternInPlace(&key);
        i.key = Obj(key);
      }
      to.push_back(std::make_shared<const Instr>(std::move(i)));
    }
  };
  move(path.body, program->body);
  move(path.commit, program->commit);
  program->objs = path.objs;
  program->tens = path.tens;
  program->syms = path.syms;
  program->nums = path.nums;
  program->nargs = path.nargs;
  if (path.kwnames && PyTuple_GET_SIZE(path.kwnames.get()) > 0)
    program->kwnames = path.kwnames;
  program->lastUsed = ++st.clock;

  std::vector<std::shared_ptr<replay::Program>> all{program};
  auto sameBody = [&](const replay::Program &o) {
    bool same = o.nargs == program->nargs && sameNames(o.kwnames.get(), program->kwnames.get()) &&
                o.body.size() == program->body.size();
    for (size_t k = 0; same && k < o.body.size(); ++k)
      same = sameInstr(*o.body[k], *program->body[k]);
    return same;
  };
  if (st.code)
    for (const auto &p : st.code->programs)
      if (!sameBody(*p)) // the new one knows better
        all.push_back(p);
  if (all.size() > kMaxPaths) {
    dropOldest(all);
    if (!std::exchange(st.saidLimit, true)) {
      std::string most = mostOften(st.failures);
      if (onLimit)
        onLimit(most);
      else
        logLine("recompiles", str("a compiled function has ", +kMaxPaths, " programs, the least recently used one is ",
                                  "dropped from now on: ", most, " keeps changing"));
    }
  }
  CodeRef old = st.code, fresh = assemble(std::move(all));
  st.missText = lastMiss();
  st.failed.clear();
  CodeRef failed = std::exchange(st.failedCode, CodeRef()); // dropped when all is in order again
  st.code = fresh;
  st.stats.paths = static_cast<int64_t>(fresh->programs.size());
}

void Tree::clear() {
  State &st = *state_;
  st.failed.clear();
  st.stats.paths = 0;
  CodeRef failed = std::exchange(st.failedCode, CodeRef());
  CodeRef code = std::exchange(st.code, CodeRef()); // dropped when the tree is already empty
}

std::vector<std::string> Tree::failedSources() const {
  std::vector<std::string> out;
  for (const Failure &f : state_->failed) {
    if (f.instr->source.empty())
      continue;
    if (!f.sizes)
      out.push_back(f.instr->source);
    for (int d = 0; d < 64; ++d)
      if (f.sizes >> d & 1)
        out.push_back(str("size ", d, " of ", f.instr->source));
  }
  return out;
}

std::string Tree::lastMiss() const {
  if (state_->failed.empty())
    return state_->missText;
  const Instr &i = *state_->failed.back().instr;
  std::string where = locText(i.loc);
  return text(i) + (where.empty() ? "" : " (" + where + ")");
}

TreeStats Tree::stats() const { return state_->stats; }

std::string Tree::explain() const {
  std::string out;
  if (!state_->code)
    return out;
  auto line = [&](const Instr &i, int depth, const char *tag) {
    std::string where = locText(i.loc);
    out += std::string(static_cast<size_t>(2 * depth + 2), ' ') + tag + text(i) +
           (where.empty() ? "" : "  # " + where) + "\n";
  };
  for (const Shape &s : state_->code->shapes) {
    out += str("call with ", s.nargs, " positional arguments");
    for (Py_ssize_t k = 0; s.kwnames && k < PyTuple_GET_SIZE(s.kwnames.get()); ++k)
      out += str(k ? ", " : " and ", PyUnicode_AsUTF8(PyTuple_GET_ITEM(s.kwnames.get(), k)), "=");
    out += "\n";
    forEachNode(*s.node, 0, [&](const Node &n, int depth) {
      for (const InstrPtr &i : n.body)
        line(*i, depth, isGuard(i->op) ? "guard " : "");
      if (n.leaf)
        out += str(std::string(static_cast<size_t>(2 * depth + 2), ' '), "-- result (", *n.leaf->hits, " hits)\n");
      for (const InstrPtr &i : n.commit)
        line(*i, depth, "");
    });
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> Tree::guards() const {
  std::vector<std::pair<std::string, std::string>> out;
  if (state_->code)
    for (const Shape &s : state_->code->shapes)
      forEachNode(*s.node, 0, [&](const Node &n, int) {
        for (const InstrPtr &i : n.body)
          if (isGuard(i->op))
            out.push_back({text(*i), locText(i->loc)});
      });
  return out;
}

int Tree::traverse(visitproc visit, void *arg) const {
  if (!state_ || !state_->code)
    return 0;
  int rc = 0;
  auto instr = [&](const InstrPtr &i) {
    for (PyObject *o : {i->object.get(), i->key.get(), i->extra.get()})
      if (o && !rc)
        rc = visit(o, arg);
    if (!rc && i->data && i->data.use_count() == 1)
      rc = i->data->traverse(visit, arg);
  };
  for (const Shape &s : state_->code->shapes)
    forEachNode(*s.node, 0, [&](const Node &n, int) {
      for (const InstrPtr &i : n.body)
        instr(i);
      for (const InstrPtr &i : n.commit)
        instr(i);
    });
  return rc;
}

} // namespace dlc::py
