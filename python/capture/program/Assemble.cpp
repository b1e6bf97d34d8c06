// From programs to a tree of steps: shared prefixes once, guards fused with the loads before them, and for every step
// at which others may run the registers that are needed afterwards.
#include "python/capture/program/Code.h"
#include <algorithm>
#include <map>

namespace dlc::py::replay {
namespace {

using Programs = std::vector<Program *>;

/// Where each register of a path was written, and whether it holds what may vanish while others run.
class Registers_ {
public:
  struct Def {
    bool written = false;
    bool borrowed = false; ///< the object belongs to a dictionary, list...
    size_t at = 0;
  };
  Def &operator[](Use u) {
    std::vector<Def> &v = kinds_[u.kind == 'o' ? 0 : u.kind == 't' ? 1 : u.kind == 's' ? 2 : 3];
    if (static_cast<size_t>(u.reg) >= v.size())
      v.resize(static_cast<size_t>(u.reg) + 1);
    return v[static_cast<size_t>(u.reg)];
  }

private:
  std::vector<Def> kinds_[4];
};

bool isLoad(Do op) { return op <= Do::GetAttr || op == Do::DictKeyAt; }
bool isStable(Do op) { return op == Do::Arg || op == Do::Callee || op == Do::Const || op == Do::GetAttr; }

/// Assembles one node and, through recursion, those below.
class NodeBuilder {
public:
  NodeBuilder(Code &code, Programs group, size_t at, Registers_ regs)
      : code_(code), group_(std::move(group)), at_(at), regs_(std::move(regs)) {}

  /// Returns what the subtree reads.
  std::unique_ptr<Node> build(std::vector<Use> &reads);

private:
  void share();
  void define(const Instr &i, size_t at);
  void check(const Instr &i, size_t at);
  const TensorGuard *shared(const TensorGuard *g);
  void add(const InstrPtr &i, size_t at);
  bool fuse(const Instr &i);
  void finish(Program &p);
  void writeDirectly();
  void fillKeeps(std::vector<Use> &reads);
  Keep keepAt(const std::vector<Use> &reads, size_t at);

  void count(char kind, Reg r);

  Code &code_;
  Programs group_;
  size_t at_;
  Registers_ regs_;
  std::unique_ptr<Node> node_ = std::make_unique<Node>();
  Program *ending_ = nullptr;
  std::vector<Programs> branches_;
  std::map<Reg, size_t> loads_;                      ///< the step that loads an object
  std::map<Reg, std::pair<size_t, size_t>> tensors_; ///< the step of a tensor's guard, and where that is on the path
  std::vector<Use> uses_;                            // scratch
  size_t firstAfterYield_ = 0;                       ///< the step after the last one that lets others run
};

Step stepOf(const Instr &i) {
  Step s;
  s.op = i.op;
  s.kind = i.kind;
  s.dst = i.dst;
  s.a = i.a;
  s.b = i.b;
  s.imm = i.imm;
  s.object = i.object.get();
  s.key = i.key.get();
  s.data = i.data.get();
  return s;
}

void NodeBuilder::check(const Instr &i, size_t at) {
  uses_.clear();
  usesOf(i, uses_);
  for (Use u : uses_)
    DLC_CHECK(u.reg >= 0 && regs_[u].written, "a program reads ", std::string(1, u.kind), u.reg,
              " before it is written: ", text(i), " at ", at);
}

void NodeBuilder::count(char kind, Reg r) {
  int32_t &n = kind == 'o' ? code_.objs : kind == 't' ? code_.tens : kind == 's' ? code_.syms : code_.nums;
  n = std::max(n, r + 1);
}

void NodeBuilder::define(const Instr &i, size_t at) {
  auto put = [&](char kind, Reg r, bool borrowed) {
    if (r == kNoReg)
      return;
    DLC_CHECK(r >= 0, "a register is negative: ", text(i));
    regs_[{kind, r}] = {true, borrowed, at};
    count(kind, r);
  };
  put(writtenKind(i.op), i.dst, i.op == Do::TensorOf || (isLoad(i.op) && !isStable(i.op)));
  if (i.op == Do::Segment) {
    for (const SegmentCall::Out &o : static_cast<const SegmentCall *>(i.data.get())->outputs)
      put('t', o.tens, false);
  } else if (i.op == Do::Eager) {
    auto *call = static_cast<const EagerCall *>(i.data.get());
    if (call->form != CallForm::Out)
      for (Reg r : call->outs)
        put('t', r, false);
  }
}

/// Moves the common prefix of the group into the node and sorts the rest into branches, newest first.
void NodeBuilder::share() {
  size_t at = at_;
  for (bool all = true; all; at += all) {
    Program *first = group_.front();
    for (Program *p : group_)
      all = all && at < p->body.size() && at < first->body.size() &&
            (p->body[at] == first->body[at] || sameInstr(*p->body[at], *first->body[at]));
    for (Program *p : group_)
      if (all)
        p->body[at] = first->body[at];
    if (all)
      node_->body.push_back(first->body[at]);
  }
  for (Program *p : group_) {
    if (at == p->body.size()) {
      DLC_CHECK(!ending_, "two programs of one body");
      ending_ = p;
      continue;
    }
    Programs *place = nullptr;
    for (Programs &b : branches_)
      if (sameInstr(*b.front()->body[at], *p->body[at]))
        place = &b;
    if (!place)
      place = &branches_.emplace_back();
    place->push_back(p);
  }
}

/// Joins a type guard with the load of its object, a tensor load with the guard of the tensor. Both happen earlier
/// then, which is as good, all guards being about the state at entry, as long as others can't run in between.
bool NodeBuilder::fuse(const Instr &i) {
  if (i.op == Do::IsType) {
    auto it = loads_.find(i.a);
    if (it == loads_.end() || it->second < firstAfterYield_ || node_->steps[it->second].object)
      return false;
    node_->steps[it->second].object = i.object.get();
    node_->origins[it->second].type = &i;
    return true;
  }
  if (i.op == Do::TensorOf) {
    auto it = tensors_.find(i.a);
    if (it == tensors_.end() || it->second.first < firstAfterYield_ || node_->steps[it->second.first].dst != kNoReg)
      return false;
    node_->steps[it->second.first].dst = i.dst;
    regs_[{'t', i.dst}].at = it->second.second;
    return true;
  }
  return false;
}

/// Parameters of one shape share one guard, which then stays in the first cache.
const TensorGuard *NodeBuilder::shared(const TensorGuard *g) {
  for (const TensorGuard *known : code_.tensorGuards)
    if (known->equals(*g))
      return known;
  if (code_.tensorGuards.size() < 64)
    code_.tensorGuards.push_back(g);
  return g;
}

void NodeBuilder::add(const InstrPtr &ptr, size_t at) {
  const Instr &i = *ptr;
  if (fuse(i))
    return;
  Step s = stepOf(i);
  switch (i.op) {
  case Do::Segment:
    s.data = &node_->segments.emplace_back(SegmentStep{static_cast<const SegmentCall *>(i.data.get()), {}, {}});
    break;
  case Do::Eager:
    s.data = &node_->eagers.emplace_back(EagerStep{static_cast<const EagerCall *>(i.data.get()), {}, {}});
    break;
  case Do::Aliases: {
    AliasStep &a = node_->aliases.emplace_back();
    a.guard = static_cast<const AliasGuard *>(i.data.get());
    std::map<int32_t, uint32_t> firstOf;
    for (uint32_t k = 0; k < a.guard->tensors.size(); ++k) {
      auto [it, isNew] = firstOf.try_emplace(a.guard->group[k], k);
      if (isNew)
        a.first.push_back(k);
      else
        a.followers.push_back({k, it->second});
    }
    s.data = &a;
    break;
  }
  case Do::Tensor: {
    auto *g = static_cast<const TensorGuard *>(i.data.get());
    s.flag = true;
    for (size_t d = 0; d < g->sizes.size(); ++d)
      s.flag &= g->sizes[d] >= 0 && d < g->strides.size() && g->strides[d] >= 0;
    DLC_CHECK(!g->type || PyType_IsSubtype(g->type, tensorType), "a tensor guard of a type that is none");
    s.object = reinterpret_cast<PyObject *>(g->type);
    s.data = shared(g);
    break;
  }
  case Do::Distinct:
    s.data = &i;
    break;
  case Do::TypeAttrIs:
    s.data = i.extra.get();
    break;
  default:
    break;
  }
  if (isLoad(i.op) && i.op != Do::Const)
    loads_[i.dst] = node_->steps.size();
  else if (i.op == Do::Tensor)
    tensors_[i.a] = {node_->steps.size(), at};
  else if (i.op == Do::Segment || i.op == Do::Eager)
    firstAfterYield_ = node_->steps.size();
  node_->steps.push_back(s);
  node_->origins.push_back({&i, nullptr});
}

/// Whether a commit instruction makes something without any effect on the outside.
bool isMaking(Do op) { return op >= Do::MakeTensor && op <= Do::Fill; }

void NodeBuilder::finish(Program &p) {
  auto leaf = std::make_unique<Leaf>();
  leaf->lastUsed = &p.lastUsed;
  leaf->hits = &p.hits;
  Registers_ regs = regs_;  // the commit's registers
  std::map<Reg, bool> late; // objects that need an effect's result
  std::vector<Use> uses;
  size_t at = p.body.size();
  DLC_CHECK(!p.commit.empty() && p.commit.back()->op == Do::Return, "a program ends without Return");
  for (const InstrPtr &ptr : p.commit) {
    const Instr &i = *ptr;
    DLC_CHECK(i.op >= Do::MakeTensor || i.op <= Do::Const, "in a commit: ", text(i));
    std::vector<Use> mine;
    usesOf(i, mine);
    bool needsEffect = false;
    for (Use u : mine) {
      DLC_CHECK(u.reg >= 0 && regs[u].written, "a program's commit reads ", std::string(1, u.kind), u.reg,
                " before it is written: ", text(i));
      needsEffect |= u.kind == 'o' && late.count(u.reg);
      if (regs[u].at < at)
        uses.push_back(u);
    }
    if (i.dst != kNoReg) {
      regs[{writtenKind(i.op), i.dst}] = {true, false, at + 1};
      count(writtenKind(i.op), i.dst);
    }
    node_->commit.push_back(ptr);
    if (i.op == Do::Return) {
      leaf->result = i.a;
      break;
    }
    bool early = (isMaking(i.op) || i.op <= Do::Const) && !needsEffect;
    if (!early && i.dst != kNoReg)
      late[i.dst] = true;
    if (!early && i.op == Do::Fill)
      late[i.a] = true;
    (early ? leaf->make : leaf->effects).push_back(stepOf(i));
    (early ? leaf->makeOrigins : leaf->effectOrigins).push_back({&i, nullptr});
  }
  leaf->keep = keepAt(uses, at);
  node_->leaf = std::move(leaf);
}

/// The borrowed registers among `reads` that were written before position `at`.
Keep NodeBuilder::keepAt(const std::vector<Use> &reads, size_t at) {
  Keep k;
  for (Use u : reads) {
    if (u.kind != 'o' && u.kind != 't')
      continue;
    Registers_::Def d = regs_[u];
    if (d.written && d.borrowed && d.at < at)
      (u.kind == 'o' ? k.objs : k.tens).push_back(u.reg);
  }
  for (std::vector<Reg> *regs : {&k.objs, &k.tens}) {
    std::sort(regs->begin(), regs->end());
    regs->erase(std::unique(regs->begin(), regs->end()), regs->end());
  }
  return k;
}

/// Walks the body backwards with what is read later.
void NodeBuilder::fillKeeps(std::vector<Use> &reads) {
  // The Keep of each step that lets others run, by the instruction it came from.
  std::map<const Instr *, Keep *> places;
  for (size_t k = 0; k < node_->steps.size(); ++k) {
    Step &s = node_->steps[k];
    Keep *place = nullptr;
    if (s.op == Do::Segment)
      place = &const_cast<SegmentStep *>(static_cast<const SegmentStep *>(s.data))->keep;
    else if (s.op == Do::Eager)
      place = &const_cast<EagerStep *>(static_cast<const EagerStep *>(s.data))->keep;
    if (place)
      places[node_->origins[k].self] = place;
  }
  for (size_t k = node_->body.size(); k-- > 0;) {
    const Instr &i = *node_->body[k];
    usesOf(i, reads); // what the step itself reads must outlive it too
    if (auto it = places.find(&i); it != places.end())
      *it->second = keepAt(reads, at_ + k);
  }
}

/// Whether making the results fails for want of memory at most, or by a symbol's value.
bool cannotMiss(const Leaf &l) {
  for (const Step &s : l.make) {
    bool sequence = s.op == Do::MakeSequence && (s.object == reinterpret_cast<PyObject *>(&PyList_Type) ||
                                                 s.object == reinterpret_cast<PyObject *>(&PyTuple_Type));
    if (s.op > Do::Const && s.op != Do::MakeTensor && s.op != Do::MakeInt && s.op != Do::MakeNumber && !sequence &&
        s.op != Do::MakeMethod && s.op != Do::MakeCell && s.op != Do::MakeSlice)
      return false;
  }
  return true;
}

bool writesInputs(const SegmentCall &c) {
  bool writes = false;
  for (const SegmentCall::Out &o : c.outputs)
    writes |= o.writeBack >= 0;
  return writes;
}

/// The last piece or op writes its inputs at once if nothing after it can miss.
void NodeBuilder::writeDirectly() {
  size_t k = node_->steps.size();
  while (k > 0 && (node_->steps[k - 1].op <= Do::Const || node_->steps[k - 1].op == Do::View ||
                   node_->steps[k - 1].op == Do::TensorOf))
    --k;
  if (k == 0)
    return;
  Step &last = node_->steps[k - 1];
  Direct *direct = nullptr;
  if (last.op == Do::Segment && writesInputs(*node_->segments.back().call))
    direct = &node_->segments.back().direct;
  else if (last.op == Do::Eager)
    direct = &node_->eagers.back().direct;
  if (!direct)
    return;
  for (; k < node_->steps.size(); ++k)
    node_->steps[k].flag = true; // a view that does not fit is then an internal error
  direct->on = node_->leaf->afterDirect = true;
  for (const std::vector<Step> *steps : {&node_->leaf->make, &node_->leaf->effects})
    for (const Step &s : *steps) {
      if (s.op == Do::MakeInt)
        direct->needs.push_back(static_cast<const DimValue *>(static_cast<const Data *>(s.data))->dim);
      else if (s.op == Do::RngTake)
        direct->needs.push_back(static_cast<const RngEffect *>(static_cast<const Data *>(s.data))->blocks);
    }
}

std::unique_ptr<Node> NodeBuilder::build(std::vector<Use> &reads) {
  share();
  node_->depth = static_cast<uint32_t>(at_);
  for (size_t k = 0; k < node_->body.size(); ++k) {
    const InstrPtr &i = node_->body[k];
    DLC_CHECK(i->op < Do::MakeTensor, "outside of a commit: ", text(*i));
    check(*i, at_ + k);
    define(*i, at_ + k);
    add(i, at_ + k);
  }
  for (Programs &b : branches_)
    node_->children.push_back(NodeBuilder(code_, b, at_ + node_->body.size(), regs_).build(reads));
  if (ending_) {
    finish(*ending_);
    for (const InstrPtr &i : node_->commit)
      usesOf(*i, reads);
  }
  if (node_->children.empty() && node_->leaf && cannotMiss(*node_->leaf))
    writeDirectly();
  fillKeeps(reads);
  return std::move(node_);
}

bool sameShape(const Program &a, const Program &b) {
  return a.nargs == b.nargs && sameScalar(a.kwnames.get(), b.kwnames.get());
}

} // namespace

CodeRef assemble(std::vector<std::shared_ptr<Program>> programs) {
  auto code = std::make_unique<Code>();
  std::vector<Programs> groups;
  for (const auto &p : programs) {
    code->objs = std::max(code->objs, p->objs);
    code->tens = std::max(code->tens, p->tens);
    code->syms = std::max(code->syms, p->syms);
    code->nums = std::max(code->nums, p->nums);
    Programs *place = nullptr;
    for (Programs &g : groups)
      if (sameShape(*g.front(), *p))
        place = &g;
    (place ? *place : groups.emplace_back()).push_back(p.get());
  }
  for (Programs &g : groups) {
    std::vector<Use> reads;
    Shape s{g.front()->nargs, g.front()->kwnames, NodeBuilder(*code, g, 0, {}).build(reads)};
    code->shapes.push_back(std::move(s));
  }
  code->programs = std::move(programs);
  return CodeRef(code.release());
}

} // namespace dlc::py::replay
