// Phase `scheduled`, contractions: the size of the register tile, the cache blocks, and which operands are packed.
#include "compiler/lower/ContractPlan.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

namespace {

class ContractScheduler {
public:
  ContractScheduler(FuncOp func, ContractRoles &roles, unsigned vectorBits);
  ScheduleAttr run();

private:
  void chooseTile();
  double cyclesOf(int64_t rows, int64_t vectors);
  void choosePacks();
  void chooseBlocks();
  int64_t given(StringRef field, StringRef name, int64_t otherwise) {
    return given_ ? given_.getTile(field, name, otherwise) : otherwise;
  }

  FuncOp func_;
  ContractRoles &roles_;
  ScheduleAttr given_;
  int64_t width_, registers_, bytes_;
  int64_t m_, n_, k_, innerK_; ///< -1 if unknown
  int64_t pieces_ = 0;         ///< reads and writes of matrices beside the operands
  int64_t rows_ = 1, vectors_ = 1;
  bool packLhs_ = false, packRhs_ = false;
  int64_t blockM_ = 0, blockN_ = 0, blockK_ = 0;
};

} // namespace

// Sizes that are not constants count as this.
static constexpr int64_t kUsual = 512;

ContractScheduler::ContractScheduler(FuncOp func, ContractRoles &roles, unsigned vectorBits)
    : func_(func), roles_(roles), given_(func.getScheduleAttr()) {
  Type sum = cast<ValType>(roles.op.getResult().getType()).getElementType();
  bytes_ = sum.getIntOrFloatBitWidth() / 8;
  width_ = vectorBits / 8 / bytes_;
  n_ = staticProduct(func, {roles.n});
  while (width_ > 4 && n_ > 0 && n_ <= width_ / 2)
    width_ /= 2;
  if (given_ && given_.getVecWidth())
    width_ = given_.getVecWidth();
  registers_ = vectorBits >= 512 ? 32 : 16;
  m_ = staticProduct(func, roles.m);
  SmallVector<unsigned> k(roles.kOuter);
  k.push_back(roles.kInner);
  k_ = staticProduct(func, k);
  innerK_ = staticProduct(func, {roles.kInner});
  for (auto write : func.getOps<WriteOp>()) {
    ++pieces_;
    forEachRead(write.getValue(), [&](ReadOp read) { pieces_ += read.getMap().getNumResults() > 1; });
  }
}

// Cycles of all tiles for one k: two products or two loads of a vector each; a load of a row's element is one too, and
// pointers of many rows do not fit the address registers.
double ContractScheduler::cyclesOf(int64_t rows, int64_t vectors) {
  int64_t m = m_ < 0 ? kUsual : m_, n = n_ < 0 ? kUsual : n_;
  double products = rows * vectors / 2.0, loads = (rows + vectors) / 2.0, latency = rows * vectors < 8 ? 2.0 : 0.0;
  double cycles = std::max({products, loads * 1.05, latency}) + 0.15 + 0.15 * vectors;
  double tiles = static_cast<double>((m + rows - 1) / rows);
  if (m_ < 0) { // usual sizes: few divide by an odd number of rows
    tiles = 0;
    for (int64_t usual : {8, 24, 64, 100, 128, 256, 512})
      tiles += static_cast<double>((usual + rows - 1) / rows) * kUsual / static_cast<double>(usual * 7);
  }
  tiles *= static_cast<double>((n + vectors * width_ - 1) / (vectors * width_));
  // Few rows wait for memory, so that columns past the end cost as much as others.
  if (m <= 4)
    cycles = std::max(cycles, static_cast<double>(vectors * width_ * bytes_) / 10) + 0.02 * cycles;
  double k = k_ < 0 ? kUsual : std::max<int64_t>(k_, 1);
  double around = (20.0 + 2.0 * rows + static_cast<double>(rows * vectors)) / k; // of a tile, beside the sum
  // What the epilogue reads and writes lies in short pieces, one for each row of the tile.
  around += 8.0 * rows * std::max<int64_t>(pieces_ - 1, 0) / k;
  // With several dims of rows, or padding, each row has an address of its own for each step of the outer k.
  if (roles_.m.size() > 1 && !roles_.kOuter.empty())
    around += 4.0 * rows / (innerK_ < 0 ? 64 : std::max<int64_t>(innerK_, 1));
  return (cycles + around) * tiles;
}

void ContractScheduler::chooseTile() {
  int64_t fixedRows = given("micro", "m", 0), fixedColumns = given("micro", "n", 0);
  if (!fixedColumns && roles_.packedColumns % width_ == 0 && roles_.packedColumns / width_ <= 6)
    fixedColumns = roles_.packedColumns;
  double best = 1e300;
  int64_t most = registers_ == 32 ? 6 : 3;
  for (int64_t vectors = 1; vectors <= 6; ++vectors) {
    if (fixedColumns ? vectors != fixedColumns / width_ : vectors > most)
      continue;
    for (int64_t rows = 1; rows <= 14; ++rows) {
      if (fixedRows ? rows != fixedRows : rows * vectors + vectors + 1 > registers_ && rows > 1)
        continue;
      double cycles = cyclesOf(rows, vectors);
      if (cycles > best)
        continue;
      best = cycles;
      rows_ = rows;
      vectors_ = vectors;
    }
  }
  if (fixedRows)
    rows_ = fixedRows;
  if (fixedColumns)
    vectors_ = std::max<int64_t>(1, fixedColumns / width_);
}

// A copy pays if the operand does not lie well, or is read again so often, and is so large, that its pages and the sets
// of the cache become scarce. Rows that are neighbours are read in place only by a tile that has them all and takes the
// whole sum.
void ContractScheduler::choosePacks() {
  const int64_t large = registers_ == 32 ? 1 << 20 : 256 << 10;
  constexpr int64_t kPanelsInPlace = 4, kSumInPlace = 1024, kRowsInPlace = 128;
  int64_t columns = vectors_ * width_;
  auto below = [&](int64_t x, int64_t y, int64_t limit) { return x >= 0 && y >= 0 && x * y * bytes_ <= limit; };
  bool single = n_ >= 0 && n_ <= columns;
  bool few = (n_ >= 0 && n_ <= kPanelsInPlace * columns) || below(m_, k_, large / 8);
  bool whole = roles_.lhs.byColumns && m_ >= rows_ && k_ >= 0 && k_ <= kSumInPlace && roles_.kOuter.empty();
  packLhs_ = !roles_.lhs.read || (roles_.lhsStep != 1 && !single && !(whole && few));
  bool inPlace = roles_.rhs.comesPacked ? roles_.packedColumns == columns
                                        : roles_.rhsIsContiguous && n_ >= columns &&
                                              ((m_ >= 0 && m_ <= kRowsInPlace) || below(k_, n_, large));
  packRhs_ = !roles_.rhs.read || !inPlace;
}

// What is read again and again is to lie in the second cache: a panel of rhs for all tiles of rows, and the rows of a
// slice for all panels. (Machines with 512-bit code have 1 MB of it and more, others half.)
void ContractScheduler::chooseBlocks() {
  int64_t columns = vectors_ * width_;
  const int64_t panelBytes = registers_ == 32 ? 160 << 10 : 96 << 10,
                rowsBytes = registers_ == 32 ? 640 << 10 : 192 << 10;
  int64_t most = std::max<int64_t>(64, panelBytes / (columns * bytes_));
  bool packs = packLhs_ || packRhs_;
  bool padded = roles_.lhs.read && roles_.lhs.read.getBound() && !packLhs_;
  if (innerK_ > most + most / 2) { // slices of equal length
    int64_t slices = (innerK_ + most - 1) / most;
    blockK_ = (innerK_ + slices - 1) / slices;
    blockK_ = (blockK_ + 7) / 8 * 8;
  } else if (innerK_ < 0 && (packs || padded)) {
    blockK_ = most;
  }
  int64_t length = blockK_ ? blockK_ : innerK_ > 0 ? innerK_ : most;
  // A packed operand is packed again for each block of the other's.
  int64_t fewest = packRhs_ ? 256 : 64;
  blockM_ = std::clamp<int64_t>(rowsBytes / (length * bytes_), fewest, packRhs_ && !packLhs_ ? 1024 : 256);
  if (packLhs_ && packRhs_)
    blockM_ = std::max<int64_t>(blockM_, registers_ == 32 ? 512 : 256);
  if (m_ >= 0)
    blockM_ = std::min(blockM_, std::max<int64_t>(m_, 1));
  blockM_ = (blockM_ + rows_ - 1) / rows_ * rows_;
  int64_t panels = packLhs_ ? std::max<int64_t>(1, (n_ >= 0 && n_ <= 512 ? 256 : 512) / columns) : 1;
  if (n_ >= 0)
    panels = std::clamp<int64_t>((n_ + columns - 1) / columns, 1, panels);
  blockN_ = panels * columns;
}

ScheduleAttr ContractScheduler::run() {
  chooseTile();
  choosePacks();
  chooseBlocks();
  Builder b(func_.getContext());
  NamedAttrList fields(given_ ? given_.getFields() : b.getDictionaryAttr({}));
  auto size = [&](int64_t x) { return b.getI64IntegerAttr(x); };
  auto complete = [&](StringRef field, ArrayRef<std::pair<StringRef, Attribute>> entries) {
    NamedAttrList list(given_ && given_.has(field) ? cast<DictionaryAttr>(given_.getFields().get(field))
                                                   : b.getDictionaryAttr({}));
    for (auto [name, value] : entries)
      if (!list.get(name))
        list.append(name, value);
    fields.set(field, list.getDictionary(func_.getContext()));
  };
  complete("micro", {{"m", size(rows_)}, {"n", size(vectors_ * width_)}, {"k", size(4)}});
  complete("block", {{"m", size(blockM_)}, {"n", size(blockN_)}, {"k", size(blockK_)}});
  auto word = [&](bool block) { return b.getStringAttr(block ? "block" : "none"); };
  complete("pack", {{"lhs", word(packLhs_)}, {"rhs", word(packRhs_)}});
  if (!fields.get("vec"))
    fields.set("vec", b.getDictionaryAttr(b.getNamedAttr(func_.getDimName(roles_.n), size(width_))));
  return ScheduleAttr::get(func_.getContext(), fields.getDictionary(func_.getContext()));
}

int64_t chooseColumns(FuncOp func, unsigned vectorBits) {
  ScheduleAttr schedule = completeContractSchedule(func, vectorBits);
  return schedule ? schedule.getTile("micro", "n", 0) : 0;
}

ScheduleAttr completeContractSchedule(FuncOp func, unsigned vectorBits) {
  std::string why;
  FailureOr<ContractRoles> roles = findRoles(func, why);
  if (succeeded(roles))
    return ContractScheduler(func, *roles, vectorBits).run();
  func.emitOpError() << "can't be lowered: " << why;
  return {};
}

} // namespace dlc::compiler
