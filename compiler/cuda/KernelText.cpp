// Prints the loops of one kernel: points over blocks and threads, leaf loops over the lanes of a team, reductions.
#include "compiler/cuda/KernelText.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

static constexpr unsigned kMapThreads = 256;

//===--- Text ---===//

void KernelText::open(const std::string &text) {
  Scope scope;
  scope.header = text + " {";
  scope.indent = top().indent + "  ";
  scopes_.push_back(std::move(scope));
}

void KernelText::close() {
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  line(scope.header);
  top().text += scope.text;
  line("}");
}

std::string KernelText::define(unsigned level, const std::string &type, const std::string &expression) {
  std::string name = "v" + std::to_string(count_++);
  line(level, "const " + type + " " + name + " = " + expression + ";");
  return name;
}

InFlightDiagnostic KernelText::error(Operation *op) {
  failed_ = true;
  return op->emitOpError() << "can't be printed as CUDA: ";
}

std::string KernelText::sizeOf(unsigned dim) {
  if (func_.isStaticDim(dim))
    return scalar::TextBuilder::intLiteral(indexKind_, func_.getDimSizes()[dim]);
  return argName(func_.getSizeArg(dim).getArgNumber());
}

// The variable of a dim's index, defined at the scope that binds the dim when it is first needed.
KernelText::Term KernelText::dimTerm(unsigned dim) {
  for (unsigned level = scopes_.size(); level-- > 0;) {
    auto found = scopes_[level].dims.find(dim);
    if (found == scopes_[level].dims.end())
      continue;
    std::string name = "i_" + func_.getDimName(dim).str();
    if (found->second != name) {
      line(level, std::string("const ") + indexType() + " " + name + " = " + found->second + ";");
      found->second = name;
    }
    return {name, indexKind_, level};
  }
  error(func_) << "dim '" << func_.getDimName(dim).getValue() << "' is used outside its loop";
  return {"0", indexKind_, 0};
}

std::string KernelText::product(ArrayRef<unsigned> dims) {
  std::string text;
  for (unsigned dim : dims)
    text += (text.empty() ? "" : " * ") + sizeOf(dim);
  return text.empty() ? scalar::TextBuilder::intLiteral(indexKind_, 1) : text;
}

// Splits a flat index over `dims`, the last one fastest.
void KernelText::bindDims(Scope &scope, ArrayRef<unsigned> dims, const std::string &flat) {
  // A 64-bit division is long code with a call; both numbers nearly always fit 32 bits.
  auto divided = [&](const std::string &x, const std::string &y, bool remainder) {
    if (indexKind_ == Kind::I32)
      return x + (remainder ? " % " : " / ") + y;
    shared_.helpers.insert(CudaHelper::IndexDivide);
    return std::string(remainder ? "dlc_index_mod(" : "dlc_index_div(") + x + ", " + y + ")";
  };
  for (unsigned i = 0; i < dims.size(); ++i) {
    std::string text = flat;
    ArrayRef<unsigned> inner = dims.drop_front(i + 1);
    if (!inner.empty())
      text = divided(text, inner.size() > 1 && indexKind_ == Kind::I32 ? "(" + product(inner) + ")" : product(inner),
                     false);
    if (i > 0)
      text = divided(inner.empty() || indexKind_ == Kind::I64 ? text : "(" + text + ")", sizeOf(dims[i]), true);
    scope.dims[dims[i]] = text;
  }
}

//===--- Choices ---===//

// int is enough if sizes and strides are constants and no flat index or offset passes 2^31.
bool KernelText::chooseIndexKind() {
  int64_t points = 1;
  for (int64_t size : func_.getDimSizes()) {
    if (size < 0)
      return false;
    points *= std::max<int64_t>(size, 1);
    if (points > INT32_MAX / 2)
      return false;
  }
  for (BlockArgument arg : func_.getBlock().getArguments())
    if (auto memref = dyn_cast<MemRefType>(arg.getType()))
      for (int64_t stride : getStrides(memref))
        if (ShapedType::isDynamic(stride) || std::abs(stride) * points > INT32_MAX / 2)
          return false;
  // Offsets of padded and gathered reads are formed from region scalars: only plain maps are bounded by the points.
  bool plain = true;
  func_.walk([&](ReadOp read) { plain &= read.getSyms().empty() && !read.getBound(); });
  return plain;
}

// Whether the elements that neighbouring lanes would read lie along `dims`: votes of the reads in reduces.
static bool unitStrideIn(FuncOp func, DimSet dims) {
  int votes = 0;
  for (auto reduce : func.getOps<ReduceOp>())
    reduce.walk([&](ReadOp read) {
      SmallVector<int64_t> strides = getStrides(cast<MemRefType>(read.getBuffer().getType()));
      ArrayAttr over = reduce.getOver();
      for (auto [result, stride] : llvm::zip(read.getMap().getResults(), strides)) {
        if (stride != 1)
          continue;
        for (unsigned i = 0; i < over.size(); ++i)
          if (result.isFunctionOfDim(i))
            votes += dims >> func.getDimIndex(cast<StringAttr>(over[i]).getValue()) & 1 ? 1 : -1;
      }
    });
  return votes > 0;
}

void KernelText::chooseTeam() {
  DimSet points = 0;
  SmallVector<const LoopNode *> first;
  for (const LoopItem &item : plan_.top)
    for (const LoopNode *loop : pointLoops(item)) {
      points |= DimSet(1) << loop->dim;
      if (first.empty())
        first.push_back(loop);
    }
  bool reduces = !func_.getOps<ReduceOp>().empty();
  bool serialWrite =
      llvm::any_of(plan_.sinks, [&](const Sink &sink) { return isa<WriteOp>(sink.op) && (sink.dims & ~points) != 0; });
  int64_t threads = 0;
  if (ScheduleAttr schedule = func_.getScheduleAttr())
    if (auto gpu = schedule.getFields().getAs<DictionaryAttr>("gpu"))
      if (auto number = gpu.getAs<IntegerAttr>("threads"))
        threads = number.getInt();
  if (threads < 32 || threads > 1024 || (threads & (threads - 1)))
    threads = kMapThreads;
  if (!reduces && (!serialWrite || points)) {
    team_ = Team::Thread;
    info_.threadsX = threads;
    info_.pointsPerBlock = threads;
    return;
  }
  if (points && unitStrideIn(func_, points)) {
    team_ = Team::Column;
    units_ = 32;
    lanes_ = threads / 32;
    info_.threadsX = units_;
    info_.threadsY = lanes_;
  } else {
    team_ = Team::Row;
    int64_t inner = 1;
    for (unsigned dim = 0; dim < func_.getNumDims(); ++dim)
      if (!(points >> dim & 1))
        inner = func_.isStaticDim(dim) && inner >= 0 ? inner * func_.getDimSizes()[dim] : -1;
    bool shortRows = points && inner >= 0 && inner <= 128; // a warp a row: no barrier
    lanes_ = shortRows ? 32 : threads;
    units_ = shortRows ? threads / 32 : 1;
    info_.threadsX = lanes_;
    info_.threadsY = units_;
  }
  info_.pointsPerBlock = units_;
}

// The outermost loops of a top-level item whose iterations are independent for every sink inside.
SmallVector<const LoopNode *> KernelText::pointLoops(const LoopItem &item) {
  SmallVector<const LoopNode *> loops;
  const LoopItem *at = &item;
  while (at->loop) {
    const LoopNode &node = *at->loop;
    bool parallel = node.carried.empty() && llvm::all_of(node.sinks, [&](unsigned sink) {
                      return isParallelDim(func_, plan_.sinks[sink].op, node.dim);
                    });
    if (!parallel)
      break;
    loops.push_back(&node);
    if (node.items.size() != 1)
      break;
    at = &node.items.front();
  }
  // A team of several lanes needs a loop to share: an output without reduction leaves it the innermost.
  if (team_ != Team::Thread && !loops.empty()) {
    bool hasLoop = llvm::any_of(loops.back()->items, [](const LoopItem &i) { return i.loop != nullptr; });
    if (!hasLoop)
      loops.pop_back();
  }
  return loops;
}

//===--- The kernel ---===//

void KernelText::printHeader(std::string &text) {
  std::string ints, body;
  text += "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(info_.threadsX * info_.threadsY) + ") " +
          info_.name + "(";
  unsigned last = func_.getBlock().getNumArguments() - 1;
  for (BlockArgument arg : func_.getBlock().getArguments()) {
    unsigned number = arg.getArgNumber();
    auto memref = dyn_cast<MemRefType>(arg.getType());
    if (!memref) {
      bool isFloat = arg.getType().isF64();
      ints += std::string(", long long ") + (isFloat ? argName(number) + "_bits" : argName(number));
      ++info_.numInts;
      if (isFloat)
        body += "  const double " + argName(number) + " = __longlong_as_double(" + argName(number) + "_bits);\n";
      continue;
    }
    Type element = memref.getElementType();
    bool isOut = llvm::is_contained(func_.getOuts(), number) || number == last;
    std::string type = element.isF16() || element.isBF16() ? "unsigned short" : scalar::cppName(kindOf(element));
    text += (info_.numBufs++ ? ", " : "") + std::string(isOut ? "" : "const ") + type + " *" +
            (number == last ? "err" : argName(number));
    for (auto [i, stride] : llvm::enumerate(getStrides(memref)))
      if (ShapedType::isDynamic(stride)) {
        ints += ", long long " + argName(number) + "_s" + std::to_string(i);
        ++info_.numInts;
      }
  }
  text += ints + ") {\n" + body;
}

// Opens the loop over points; after it `active` says whether this team's point is its own.
void KernelText::openPoints(ArrayRef<const LoopNode *> loops) {
  SmallVector<unsigned> dims;
  for (const LoopNode *loop : loops)
    dims.push_back(loop->dim);
  std::string type = indexType();
  guarded_ = false;
  if (dims.empty()) {
    open(team_ == Team::Thread ? "if (blockIdx.x == 0 && threadIdx.x == 0)" : "if (blockIdx.x == 0)");
    if (units_ > 1) {
      guarded_ = true;
      line("const bool active = unit == 0;");
    }
    return;
  }
  std::string points = define(innermost(), type, product(dims));
  if (team_ == Team::Thread) {
    open("for (" + type + " p = (" + type + ")blockIdx.x * " + std::to_string(info_.threadsX) + " + threadIdx.x; p < " +
         points + "; p += (" + type + ")gridDim.x * " + std::to_string(info_.threadsX) + ")");
    bindDims(top(), dims, "p");
    return;
  }
  std::string units = std::to_string(units_);
  if (units_ == 1) {
    open("for (" + type + " p = blockIdx.x; p < " + points + "; p += gridDim.x)");
  } else {
    // All threads of a block must reach its barriers: a team without a point repeats the last one and writes nothing.
    guarded_ = true;
    open("for (" + type + " base = (" + type + ")blockIdx.x * " + units + "; base < " + points + "; base += (" + type +
         ")gridDim.x * " + units + ")");
    line("const bool active = base + unit < " + points + ";");
    line("const " + type + " p = active ? base + unit : " + points + " - 1;");
  }
  bindDims(top(), dims, "p");
}

void KernelText::printPhase(const LoopItem &item) {
  SmallVector<const LoopNode *> loops = pointLoops(item);
  if (info_.pointDims.empty())
    for (const LoopNode *loop : loops)
      info_.pointDims.push_back(func_.isStaticDim(loop->dim)
                                    ? func_.getDimSizes()[loop->dim]
                                    : -int64_t(func_.getIntIndex(func_.getSizeArg(loop->dim).getArgNumber())) - 1);
  openPoints(loops);
  innerLoop_ = loops.empty() ? ~0u : loops.back()->id;
  if (!loops.empty())
    printItems(loops.back()->items);
  else if (item.loop)
    printNest(*item.loop);
  else
    printSink(item.sink);
  close();
}

LogicalResult KernelText::print(std::string &text, CudaKernel &info) {
  indexKind_ = chooseIndexKind() ? Kind::I32 : Kind::I64;
  chooseTeam();
  info_.symbol = func_.getSymName().str();
  info_.name = "k_" + info_.symbol;
  for (char &c : info_.name)
    if (!llvm::isAlnum(c))
      c = '_';
  scopes_.emplace_back();
  top().indent = "  ";
  // Outputs that share no reduction at the top may have points of their own; otherwise one block does it all in order.
  bool apart = llvm::all_of(plan_.top, [&](const LoopItem &item) {
    ArrayRef<unsigned> sinks = item.loop ? ArrayRef<unsigned>(item.loop->sinks) : ArrayRef<unsigned>();
    return item.loop && llvm::all_of(sinks, [&](unsigned sink) {
             return llvm::all_of(plan_.sinks[sink].deps, [&](unsigned d) { return llvm::is_contained(sinks, d); });
           });
  });
  if (apart) {
    for (const LoopItem &item : plan_.top)
      printPhase(item);
  } else {
    openPoints({});
    printItems(plan_.top);
    close();
  }
  if (info_.pointDims.empty())
    info_.pointDims.push_back(1);
  std::string header;
  printHeader(header);
  bool row = team_ == Team::Row;
  auto declare = [&](const char *name, const char *axis) {
    if (top().text.find(name) != std::string::npos)
      header += std::string("  const int ") + name + " = threadIdx." + axis + ";\n";
  };
  declare("lane", row ? "x" : "y");
  declare("unit", row ? "y" : "x");
  text += header + top().text + "}\n\n";
  info = info_;
  return failure(failed_);
}

//===--- Loops below the points ---===//

void KernelText::printItems(ArrayRef<LoopItem> items) {
  for (unsigned i = 0; i < items.size();) {
    if (items[i].loop) {
      printNest(*items[i++].loop);
      continue;
    }
    // All values before the first store: a store may go where a value that is still needed is kept or read from.
    ArrayRef<LoopItem> run = items.drop_front(i).take_while([](const LoopItem &item) { return !item.loop; });
    for (const LoopItem &item : run)
      if (auto write = dyn_cast<WriteOp>(plan_.sinks[item.sink].op)) {
        eval(write.getValue());
        for (Value sym : write.getSyms())
          eval(sym);
      }
    for (const LoopItem &item : run)
      printSink(item.sink);
    i += run.size();
  }
}

KernelText::Nest KernelText::nestOf(const LoopNode &node) {
  Nest nest;
  nest.loops.push_back(&node);
  while (nest.loops.back()->items.size() == 1 && nest.loops.back()->items.front().loop)
    nest.loops.push_back(nest.loops.back()->items.front().loop.get());
  nest.isLeaf = llvm::none_of(nest.loops.back()->items, [](const LoopItem &item) { return item.loop != nullptr; });
  if (!nest.isLeaf)
    nest.loops.truncate(1);
  return nest;
}

// A write that another iteration of the nest may also reach goes in order, by one lane.
bool KernelText::mustBeSerial(const Nest &nest) {
  for (const LoopNode *loop : nest.loops)
    for (unsigned sink : loop->sinks)
      if (isa<WriteOp>(plan_.sinks[sink].op) && !isParallelDim(func_, plan_.sinks[sink].op, loop->dim))
        return true;
  return false;
}

void KernelText::declareAccumulators(ArrayRef<const LoopNode *> loops) {
  for (const LoopNode *loop : loops)
    for (unsigned sink : loop->carried) {
      auto reduce = cast<ReduceOp>(plan_.sinks[sink].op);
      if (accumulators_.count(reduce.getResult(0)))
        continue;
      for (unsigned i = 0; i < reduce.getNumResults(); ++i)
        accumulators_[reduce.getResult(i)] = makeAccumulator(reduce, i);
    }
}

void KernelText::printNest(const LoopNode &node) {
  Nest nest = nestOf(node);
  SmallVector<unsigned> dims, carried;
  SmallVector<unsigned> ending; // reduces whose accumulators are declared, and so completed, here
  for (const LoopNode *loop : nest.loops) {
    dims.push_back(loop->dim);
    for (unsigned sink : loop->carried)
      if (!accumulators_.count(plan_.sinks[sink].op->getResult(0)) && !llvm::is_contained(ending, sink))
        ending.push_back(sink);
  }
  declareAccumulators(nest.loops);
  std::string type = indexType();
  bool shared = nest.isLeaf && team_ != Team::Thread;
  bool serial = shared && mustBeSerial(nest);
  if (serial && !ending.empty())
    error(func_) << "a reduction and an ordered write share a loop";
  if (serial)
    open(std::string("if (lane == 0") + (guarded_ ? " && active" : "") + ")");
  std::string name = nest.loops.size() == 1 ? "i_" + func_.getDimName(node.dim).str() : "e" + std::to_string(count_++);
  std::string total = nest.loops.size() == 1 ? sizeOf(node.dim) : define(innermost(), type, product(dims));
  bool split = shared && !serial;
  open("for (" + type + " " + name + " = " + (split ? "lane" : "0") + "; " + name + " < " + total + "; " +
       (split ? name + " += " + std::to_string(lanes_) : "++" + name) + ")");
  bindDims(top(), dims, name);
  if (nest.isLeaf)
    for (unsigned sink : nest.loops.back()->sinks)
      inLeaf_[sink] = split;
  unsigned outerLoop = std::exchange(innerLoop_, nest.loops.back()->id);
  SmallVector<unsigned> outerDims = std::exchange(nestDims_, split ? dims : SmallVector<unsigned>());
  printItems(nest.loops.back()->items);
  innerLoop_ = outerLoop;
  nestDims_ = outerDims;
  close();
  if (serial)
    close();
  for (unsigned sink : ending)
    finishReduce(sink, inLeaf_.lookup(sink));
}

//===--- Reductions ---===//

KernelText::Accumulator KernelText::makeAccumulator(ReduceOp reduce, unsigned result) {
  Combine combine = reduce.getCombine(result);
  Type yielded = reduce.getBody().front().getTerminator()->getOperand(result).getType();
  bool isUnsigned = combine == Combine::minu || combine == Combine::maxu;
  Accumulator acc;
  acc.kind = kindOf(yielded);
  acc.isPair = combine == Combine::argmin || combine == Combine::argmax;
  acc.name = "acc" + std::to_string(count_++);
  static constexpr const char *kOps[] = {"add", "mul", "min", "max", "min", "max", "and", "or", "argmin", "argmax"};
  acc.combine = std::string("dlc_") + kOps[static_cast<int>(combine)];
  acc.type = scalar::cppName(acc.kind);
  if (isUnsigned)
    acc.type = "unsigned " + std::string(acc.kind == Kind::I8 ? "char" : acc.type);
  shared_.helpers.insert(acc.isPair ? CudaHelper::Pair : CudaHelper::Combine);
  bool lowest = combine == Combine::max || combine == Combine::argmax;
  bool highest = combine == Combine::min || combine == Combine::argmin;
  int bits = scalar::bitWidth(acc.kind);
  std::string identity;
  if (isUnsigned)
    identity = "(" + acc.type + ")" + (combine == Combine::minu ? "-1" : "0");
  else if (scalar::isFloat(acc.kind))
    identity = scalar::TextBuilder::literal(acc.kind, lowest    ? -HUGE_VAL
                                                      : highest ? HUGE_VAL
                                                                : combine == Combine::mul);
  else if (lowest || highest)
    identity = scalar::TextBuilder::intLiteral(acc.kind, lowest ? INT64_MIN >> (64 - bits) : INT64_MAX >> (64 - bits));
  else
    identity = scalar::TextBuilder::intLiteral(acc.kind, combine == Combine::mul    ? 1
                                                         : combine == Combine::andi ? -1
                                                                                    : 0);
  if (acc.isPair) {
    acc.type = "dlc_pair<" + acc.type + ">";
    identity = "{" + identity + ", 9223372036854775807ll}";
  }
  line(acc.type + " " + acc.name + " = " + identity + ";");
  return acc;
}

// Position of this point over the `by` dims, in their order.
std::string KernelText::position(ReduceOp reduce) {
  std::string text;
  for (Attribute attr : reduce.getBy()) {
    unsigned dim = func_.getDimIndex(cast<StringAttr>(attr).getValue());
    std::string index = dimTerm(dim).text;
    text = text.empty() ? index : "(" + text + ") * " + sizeOf(dim) + " + " + index;
  }
  return text;
}

void KernelText::accumulate(ReduceOp reduce, unsigned sink) {
  Operation *yield = reduce.getBody().front().getTerminator();
  for (unsigned i = 0; i < reduce.getNumResults(); ++i) {
    Term value = eval(yield->getOperand(i));
    const Accumulator &acc = accumulators_[reduce.getResult(i)];
    std::string next = value.text;
    if (acc.isPair)
      next = acc.type + "{" + value.text + ", " + position(reduce) + "}";
    else if (acc.type != scalar::cppName(value.kind))
      next = "(" + acc.type + ")" + next;
    line(acc.name + " = " + acc.combine + "::join(" + acc.name + ", " + next + ");");
  }
}

void KernelText::finishReduce(unsigned sink, bool joinTeam) {
  auto reduce = cast<ReduceOp>(plan_.sinks[sink].op);
  for (unsigned i = 0; i < reduce.getNumResults(); ++i) {
    Accumulator acc = accumulators_[reduce.getResult(i)];
    accumulators_.erase(reduce.getResult(i));
    std::string value = acc.name;
    if (joinTeam) {
      bool row = team_ == Team::Row;
      shared_.helpers.insert(row ? CudaHelper::RowReduce : CudaHelper::ColumnReduce);
      std::string shape = std::to_string(lanes_) + (row ? "" : ", " + std::to_string(units_));
      value = (row ? "dlc_row_reduce<" : "dlc_column_reduce<") + acc.combine + ", " + shape + ">(" + acc.name + ")";
    }
    if (acc.isPair)
      value += ".index";
    Kind kind = acc.isPair ? Kind::I64 : acc.kind;
    if (!acc.isPair && acc.type != scalar::cppName(kind))
      value = std::string("(") + scalar::cppName(kind) + ")" + value;
    Term term{define(innermost(), scalar::cppName(kind), value), kind, innermost()};
    top().memo[reduce.getResult(i)] = term;
  }
}

void KernelText::printSink(unsigned sink) {
  if (auto reduce = dyn_cast<ReduceOp>(plan_.sinks[sink].op))
    accumulate(reduce, sink);
  else
    printWrite(cast<WriteOp>(plan_.sinks[sink].op));
}

} // namespace dlc::compiler
