// Roles of a contraction's dims and accesses, and the plan of its loops from a complete schedule.
#include "compiler/lower/ContractPlan.h"
#include "compiler/lower/KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

int64_t staticProduct(FuncOp func, ArrayRef<unsigned> dims) {
  int64_t product = 1;
  for (unsigned dim : dims) {
    if (!func.isStaticDim(dim))
      return -1;
    product *= func.getDimSizes()[dim];
  }
  return product;
}

static int positionOf(FuncOp func, ReadOp read, unsigned dim) {
  for (auto [i, name] : llvm::enumerate(getOver(read->getParentOp())))
    if (func.getDimIndex(cast<StringAttr>(name).getValue()) == static_cast<int>(dim))
      return static_cast<int>(i);
  return -1;
}

int64_t staticStep(FuncOp func, ReadOp read, unsigned dim) {
  int position = positionOf(func, read, dim);
  if (position < 0)
    return 0;
  int64_t step = 0;
  SmallVector<int64_t> strides = getStrides(cast<MemRefType>(read.getBuffer().getType()));
  for (auto [expr, stride] : llvm::zip(read.getMap().getResults(), strides)) {
    if (!expr.isFunctionOfDim(position))
      continue;
    LinearIndex linear = toLinear(expr, read.getMap().getNumDims(), read.getMap().getNumSymbols());
    if (!linear.valid || ShapedType::isDynamic(stride))
      return ShapedType::kDynamic;
    step += stride * linear.dims[position];
  }
  return step;
}

namespace {

class RoleFinder {
public:
  RoleFinder(FuncOp func, std::string &why) : func_(func), deps_(computeDeps(func)), why_(why) {}
  FailureOr<ContractRoles> run();

private:
  LogicalResult checkStages();
  LogicalResult checkWrites(DimSet kept);
  void splitDims();
  bool writesAlongRows();
  void chooseColumn();
  void chooseInner();
  ReadOp matchRead(Value yield, bool mayConvert);
  bool isPlainIndex(ReadOp read, unsigned result);
  bool boundsFit(ReadOp read);
  int64_t packedColumns(ReadOp read);
  LogicalResult fail(const Twine &text) {
    why_ = text.str();
    return failure();
  }
  Value yieldOf(unsigned region) { return roles_.op->getRegion(region).front().getTerminator()->getOperand(0); }

  FuncOp func_;
  llvm::DenseMap<Value, DimSet> deps_;
  std::string &why_;
  ContractRoles roles_;
  SmallVector<unsigned> n_, k_;
};

} // namespace

// One sum and its epilogue: every write goes over exactly the points of the sum.
LogicalResult RoleFinder::checkStages() {
  auto contracts = func_.getOps<ContractOp>();
  if (std::distance(contracts.begin(), contracts.end()) != 1 || !func_.getOps<ReduceOp>().empty())
    return fail("a kernel with a contraction has no other reduction");
  roles_.op = *contracts.begin();
  bool reads = false;
  for (unsigned region = 0; region < 2; ++region) {
    auto check = [&](ReadOp read) {
      auto arg = cast<BlockArgument>(read.getBuffer());
      reads |= llvm::is_contained(func_.getOuts(), arg.getArgNumber());
    };
    roles_.op->getRegion(region).walk(check);
    roles_.op->getRegion(region).walk([&](UseOp use) { forEachRead(use.getValue(), check); });
  }
  if (reads)
    return fail("the operands of a contraction can't be read from an output");
  DimSet kept = toSet(func_, roles_.op.getOver()) & ~toSet(func_, roles_.op.getBy());
  return checkWrites(kept);
}

LogicalResult RoleFinder::checkWrites(DimSet kept) {
  for (auto write : func_.getOps<WriteOp>()) {
    DimSet dims = 0;
    for (StringAttr name : write.getValue().getType().getDims())
      dims |= DimSet(1) << func_.getDimIndex(name.getValue());
    if (dims != kept)
      return fail("a write after a contraction must go over the dims of the sum");
    for (unsigned dim = 0; dim < func_.getNumDims(); ++dim)
      if ((kept >> dim & 1) && !isParallelDim(func_, write, dim))
        return fail("a write after a contraction must have a place for each sum");
    for (Operation *user : write.getBuffer().getUsers()) {
      auto read = dyn_cast<ReadOp>(user);
      if (read && (read.getMap() != write.getMap() || !read.getSyms().empty() || !write.getSyms().empty()))
        return fail("an output that is read must be read where it is written");
    }
  }
  return success();
}

// What only lhs varies with are rows, what only rhs varies with columns; a product of a matrix and a vector has
// columns.
void RoleFinder::splitDims() {
  roles_.lhs.yield = yieldOf(0);
  roles_.rhs.yield = yieldOf(1);
  DimSet by = toSet(func_, roles_.op.getBy());
  for (Attribute name : roles_.op.getOver()) {
    unsigned dim = func_.getDimIndex(cast<StringAttr>(name).getValue());
    bool left = deps_.lookup(roles_.lhs.yield) >> dim & 1, right = deps_.lookup(roles_.rhs.yield) >> dim & 1;
    if (by >> dim & 1)
      k_.push_back(dim);
    else if (left == right)
      roles_.outer.push_back(dim);
    else
      (left ? roles_.m : n_).push_back(dim);
  }
  ReadOp packed = matchRead(roles_.rhs.yield, true);
  bool keep = packed && !n_.empty() && packedColumns(packed);
  if (!keep && !roles_.m.empty() && (n_.empty() || writesAlongRows())) {
    std::swap(roles_.lhs, roles_.rhs);
    std::swap(roles_.m, n_);
  }
}

// Whether the sums are neighbours in memory along rows but along no column.
bool RoleFinder::writesAlongRows() {
  bool rows = false, columns = false;
  for (auto write : func_.getOps<WriteOp>()) {
    auto dims = write.getValue().getType().getDims();
    SmallVector<int64_t> strides = getStrides(cast<MemRefType>(write.getBuffer().getType()));
    for (auto [i, name] : llvm::enumerate(dims))
      for (auto [expr, stride] : llvm::zip(write.getMap().getResults(), strides))
        if (stride == 1 && expr == getAffineDimExpr(i, func_.getContext())) {
          unsigned dim = func_.getDimIndex(name.getValue());
          rows |= llvm::is_contained(roles_.m, dim);
          columns |= llvm::is_contained(n_, dim);
        }
  }
  return rows && !columns;
}

// A map result that is linear, or a column's panel or place in its panel.
bool RoleFinder::isPlainIndex(ReadOp read, unsigned result) {
  AffineMap map = read.getMap();
  return toLinear(map.getResult(result), map.getNumDims(), map.getNumSymbols()).valid;
}

bool RoleFinder::boundsFit(ReadOp read) {
  if (!read.getBound())
    return true;
  auto pad = read.getPad() ? read.getPad().getDefiningOp<arith::ConstantOp>() : arith::ConstantOp();
  if (read.getBound() != Bound::pad || !pad)
    return false;
  auto number = dyn_cast<FloatAttr>(pad.getValue());
  return number && number.getValue().isPosZero();
}

// The read that `yield` is, if its address is a sum of multiples of dims and it needs no code for each element.
ReadOp RoleFinder::matchRead(Value yield, bool mayConvert) {
  Operation *def = yield.getDefiningOp();
  if (mayConvert && isa_and_nonnull<arith::ExtFOp>(def))
    def = def->getOperand(0).getDefiningOp();
  auto read = dyn_cast_or_null<ReadOp>(def);
  if (!read || read->getParentOp() != roles_.op || read.getResult().getType().isInteger(1) || !boundsFit(read))
    return {};
  for (Value sym : read.getSyms())
    if (deps_.lookup(sym) != 0 || (!isa<BlockArgument>(sym) && !sym.getDefiningOp<arith::ConstantOp>()))
      return {};
  bool plain = true;
  for (unsigned i = 0; i < read.getMap().getNumResults(); ++i)
    plain &= isPlainIndex(read, i);
  return plain || packedColumns(read) ? read : ReadOp();
}

// Matches (.., n floordiv C, .., n mod C), all else linear, the last of stride 1. Returns C or 0.
int64_t RoleFinder::packedColumns(ReadOp read) {
  int64_t panel = 0, place = 0;
  SmallVector<int64_t> strides = getStrides(cast<MemRefType>(read.getBuffer().getType()));
  int panelDim = -1, placeDim = -2;
  for (auto [i, expr] : llvm::enumerate(read.getMap().getResults())) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    bool divides = binary && (binary.getKind() == AffineExprKind::FloorDiv || binary.getKind() == AffineExprKind::Mod);
    if (!divides) {
      if (!isPlainIndex(read, i))
        return 0;
      continue;
    }
    auto dim = dyn_cast<AffineDimExpr>(binary.getLHS());
    auto by = dyn_cast<AffineConstantExpr>(binary.getRHS());
    if (!dim || !by || by.getValue() <= 0)
      return 0;
    bool isPanel = binary.getKind() == AffineExprKind::FloorDiv;
    (isPanel ? panel : place) = by.getValue();
    (isPanel ? panelDim : placeDim) = static_cast<int>(dim.getPosition());
    if (!isPanel && strides[i] != 1)
      return 0;
  }
  return panel == place && panelDim == placeDim && !read.getBound() ? panel : 0;
}

void RoleFinder::chooseColumn() {
  unsigned chosen = n_.back();
  ReadOp read = matchRead(roles_.rhs.yield, true);
  roles_.packedColumns = read ? packedColumns(read) : 0;
  if (roles_.packedColumns) {
    for (AffineExpr expr : read.getMap().getResults())
      if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr); binary && binary.getKind() == AffineExprKind::Mod)
        chosen = func_.getDimIndex(
            cast<StringAttr>(roles_.op.getOver()[cast<AffineDimExpr>(binary.getLHS()).getPosition()]).getValue());
    roles_.rhsIsContiguous = true;
  } else if (read && !read.getBound()) {
    for (unsigned dim : n_)
      if (staticStep(func_, read, dim) == 1) {
        chosen = dim;
        roles_.rhsIsContiguous = true;
      }
  }
  roles_.rhs.read = read && !read.getBound() ? read : ReadOp();
  roles_.rhs.comesPacked = roles_.packedColumns != 0;
  roles_.n = chosen;
  for (unsigned dim : n_)
    if (dim != chosen)
      roles_.outer.push_back(dim);
}

// The innermost loop goes along the last k dim in which lhs is contiguous. A padded lhs must not be bounded along it.
void RoleFinder::chooseInner() {
  ReadOp read = matchRead(roles_.lhs.yield, false);
  if (read && packedColumns(read))
    read = {};
  unsigned inner = k_.back();
  for (unsigned dim : k_)
    if (read && staticStep(func_, read, dim) == 1)
      inner = dim;
  ArrayRef<int64_t> bounded = read && read.getBound() ? *read.getBoundDims() : ArrayRef<int64_t>();
  if (!bounded.empty())
    for (int64_t result : bounded)
      if (read && read.getMap().getResult(result).isFunctionOfDim(positionOf(func_, read, inner)))
        read = {};
  if (read && read.getBound() && ShapedType::isDynamic(staticStep(func_, read, inner)))
    read = {};
  roles_.lhs.read = read;
  roles_.kInner = inner;
  for (unsigned dim : k_)
    if (dim != inner)
      roles_.kOuter.push_back(dim);
  roles_.lhsStep = read ? staticStep(func_, read, inner) : ShapedType::kDynamic;
  bool alongRows = read && !roles_.m.empty() && staticStep(func_, read, roles_.m.back()) == 1;
  roles_.lhs.byColumns = alongRows && roles_.lhsStep != 1 && roles_.m.size() == 1 && !read.getBound();
}

FailureOr<ContractRoles> RoleFinder::run() {
  if (failed(checkStages()))
    return failure();
  splitDims();
  if (n_.empty())
    return fail("a contraction needs a dim that only one operand varies with");
  chooseColumn();
  chooseInner();
  return roles_;
}

FailureOr<ContractRoles> findRoles(FuncOp func, std::string &why) { return RoleFinder(func, why).run(); }

bool canContract(FuncOp func) {
  std::string why;
  return succeeded(findRoles(func, why));
}

// Through memory a tile costs some cycles a vector more, but the epilogue's code is there once and not for each row.
void chooseEpilogue(KernelPlan &plan) {
  constexpr unsigned kShort = 8;
  constexpr int64_t kLongSum = 256;
  ContractPlan &c = *plan.contract;
  unsigned cost = 0;
  for (const Sink &sink : plan.sinks)
    cost += estimateSinkCost(plan, sink);
  SmallVector<unsigned> k(c.kOuter);
  k.push_back(c.kInner);
  int64_t products = staticProduct(plan.func, k);
  c.direct = !c.sliced() && cost <= kShort && products >= 0 && products < kLongSum;
}

// All tiles of a panel together ask for what the next panel reads: packed panels lie one behind the other, in place it
// is the next columns of each row, and a panel that is to be transposed lies in lines of its own.
static void choosePrefetch(ContractPlan &c, int64_t rows) {
  int64_t tiles = (std::min(rows < 0 ? c.blockRows : rows, c.blockRows) + c.rows - 1) / c.rows;
  auto share = [&](int64_t all) { return (all + tiles - 1) / tiles; };
  if (tiles <= 1 && c.rhs.comesPacked && !c.rhs.block) { // one pass over all panels, as through memory
    c.prefetches = c.unroll * c.vectors;
    c.prefetch = ContractPlan::Stream;
    return;
  }
  if (tiles <= 1 || (c.rhs.block && c.blockPanels == 1 && !c.rhs.transposes))
    return;
  if (c.rhs.transposes && c.blockPanels == 1 && !c.sliced() && c.unroll * c.vectors >= 4) {
    // A line has 16 of k: for each trip as many lines as it has columns of k, of 16 columns each.
    for (c.prefetches = 1; c.prefetches < share(c.unroll * c.vectors); c.prefetches *= 2)
      ;
    c.prefetch = ContractPlan::Lines;
  } else if (c.rhs.block || c.rhs.comesPacked) {
    c.prefetches = share(c.unroll * c.vectors);
    c.prefetch = ContractPlan::Panel;
  } else {
    c.prefetches = share(c.unroll);
    c.prefetch = ContractPlan::Rows;
  }
}

/// What the schedule says, as it stands.
static void readSchedule(ContractPlan &c, ScheduleAttr schedule) {
  c.width = static_cast<unsigned>(schedule.getVecWidth());
  c.rows = schedule.getTile("micro", "m", 1);
  c.vectors = schedule.getTile("micro", "n", c.width) / c.width;
  c.unroll = schedule.getTile("micro", "k", 4);
  auto pack = schedule.getFields().getAs<DictionaryAttr>("pack");
  auto blocked = [&](StringRef side) {
    auto word = pack.getAs<StringAttr>(side);
    return word && word.getValue() == "block";
  };
  c.lhs.block = blocked("lhs");
  c.rhs.block = blocked("rhs");
  c.blockRows = schedule.getTile("block", "m", 0);
  c.blockPanels = std::max<int64_t>(schedule.getTile("block", "n", 0) / c.columns(), 1);
  c.blockK = schedule.getTile("block", "k", 0);
}

/// Sizes of blocks, and what follows from them. `roles`: those of the kernel.
static void completePlan(FuncOp func, ContractPlan &c, const ContractRoles &roles) {
  int64_t inner = staticProduct(func, {c.kInner}), rows = staticProduct(func, c.m);
  if (inner >= 0 && c.blockK >= inner)
    c.blockK = 0;
  c.slicesOuter = !c.kOuter.empty() && (c.blockK != 0 || c.lhs.block || c.rhs.block);
  c.packK = c.blockK ? c.blockK : std::max<int64_t>(inner, 1);
  if (c.blockRows == 0)
    c.blockRows = rows >= 0 ? std::max<int64_t>(rows, 1) : ContractPlan::kAllRows;
  c.blockRows = (c.blockRows + c.rows - 1) / c.rows * c.rows;
  // Blocks are transposed in squares, so panels end with a whole one.
  auto transposes = [&](const ContractOperand &x) {
    ReadOp read = x.read;
    return x.block && read && read.getResult() == x.yield && c.width <= 16 && !read.getBound() &&
           x.yield.getType() == cast<ValType>(c.op.getResult().getType()).getElementType() &&
           staticStep(func, read, c.kInner) == 1;
  };
  c.rhs.transposes = transposes(c.rhs) && !roles.rhsIsContiguous && !roles.rhs.comesPacked;
  c.lhs.transposes = transposes(c.lhs);
  if (c.rhs.transposes || c.lhs.transposes)
    c.packK = (c.packK + c.width - 1) / c.width * c.width;
  c.shiftsRows = c.lhs.byColumns && !c.lhs.block && !c.sliced() && rows >= c.rows;
  choosePrefetch(c, rows);
  while (c.rows * c.vectors * c.sets < 8 && c.sets < c.unroll)
    c.sets *= 2;
}

/// Why the tile or the blocks can't be, or nothing.
static std::string findFault(FuncOp func, ContractPlan &c, const ContractRoles &roles) {
  constexpr int64_t kMostScratch = int64_t(1) << 26; // elements
  if (c.rhs.comesPacked && !c.rhs.block && roles.packedColumns != c.columns())
    return "comes with panels of " + std::to_string(roles.packedColumns) + " columns: micro.n must be that";
  if ((!c.lhs.read && !c.lhs.block) || (!c.rhs.block && !(c.rhs.read && roles.rhsIsContiguous)))
    return "must pack an operand that the tile can't read in place";
  if (!c.rhs.block && !c.rhs.comesPacked && staticProduct(func, {c.n}) < c.columns())
    return "must pack rhs unless its columns are a constant, at least micro.n";
  bool padded = c.lhs.read && c.lhs.read.getBound() && !c.lhs.block;
  bool needsK = c.lhs.block || c.rhs.block || padded, needsRows = c.sliced() || c.lhs.block;
  if ((needsK && !c.blockK && staticProduct(func, {c.kInner}) < 0) ||
      (needsRows && c.blockRows >= ContractPlan::kAllRows))
    return "needs sizes of blocks along dims whose size is not a constant";
  auto large = [&](bool used, int64_t x, int64_t y) { return used && (x > kMostScratch || y > kMostScratch / x); };
  if (large(c.lhs.block, c.blockRows, c.packK) || large(c.rhs.block, c.blockPanels * c.columns(), c.packK) ||
      large(c.sliced(), c.blockRows, c.blockPanels * c.columns()))
    return "has blocks that are too large";
  return "";
}

LogicalResult planContract(KernelPlan &plan) {
  FuncOp func = plan.func;
  std::string why;
  FailureOr<ContractRoles> roles = findRoles(func, why);
  if (failed(roles))
    return func.emitOpError() << "can't be lowered: " << why;
  ScheduleAttr schedule = func.getScheduleAttr();
  if (!schedule || !schedule.has("micro") || !schedule.has("block") || !schedule.has("pack") || !schedule.has("vec"))
    return func.emitOpError() << "has an incomplete schedule; run kernel-schedule first";
  int64_t width = schedule.getVecWidth(), columns = schedule.getTile("micro", "n", width);
  if (columns % width || func.getDimIndex(schedule.getVecDim()) != static_cast<int>(roles->n))
    return func.emitOpError() << "must be vectorised along '" << func.getDimName(roles->n).getValue()
                              << "' with micro.n a multiple of the width";
  if (columns / width * schedule.getTile("micro", "m", 1) > 64 || schedule.getTile("micro", "k", 4) > 64)
    return func.emitOpError() << "has a tile that no machine's registers hold";
  auto c = std::make_shared<ContractPlan>();
  c->op = roles->op;
  c->lhs = roles->lhs;
  c->rhs = roles->rhs;
  c->outer = roles->outer;
  c->m = roles->m;
  c->n = roles->n;
  c->kOuter = roles->kOuter;
  c->kInner = roles->kInner;
  readSchedule(*c, schedule);
  completePlan(func, *c, *roles);
  if (std::string fault = findFault(func, *c, *roles); !fault.empty())
    return func.emitOpError() << fault;
  plan.vecDim = static_cast<int>(c->n);
  plan.width = c->width;
  plan.order.append(c->outer);
  plan.order.append(c->m);
  plan.order.push_back(c->n);
  plan.par = plan.order;
  plan.contract = c;
  return success();
}

} // namespace dlc::compiler
