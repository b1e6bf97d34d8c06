// Ops of the kernel dialect: the text form of kernel.func and the verifiers.
#include "dialects/kernel/KernelDialect.h"

#include "llvm/ADT/StringSet.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace dlc::ir::kernel;

//===--- Custom directives of the assembly formats ---===//

static ParseResult parseDimName(OpAsmParser &parser, StringAttr &dim) {
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  dim = parser.getBuilder().getStringAttr(name);
  return success();
}

static void printDimName(OpAsmPrinter &printer, Operation *, StringAttr dim) { printer << dim.getValue(); }

static ParseResult parseDims(OpAsmParser &parser, ArrayAttr &dims) {
  SmallVector<Attribute> names;
  auto parseOne = [&]() -> ParseResult {
    StringAttr name;
    if (parseDimName(parser, name))
      return failure();
    names.push_back(name);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseOne))
    return failure();
  dims = parser.getBuilder().getArrayAttr(names);
  return success();
}

static void printDims(OpAsmPrinter &printer, Operation *, ArrayAttr dims) {
  printer << "(";
  llvm::interleaveComma(dims, printer, [&](Attribute dim) { printer << cast<StringAttr>(dim).getValue(); });
  printer << ")";
}

static ParseResult parseCombines(OpAsmParser &parser, ArrayAttr &combines) {
  SmallVector<Attribute> list;
  auto parseOne = [&]() -> ParseResult {
    StringRef word;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&word))
      return failure();
    std::optional<Combine> combine = symbolizeCombine(word);
    if (!combine)
      return parser.emitError(loc) << "unknown combine '" << word << "'";
    list.push_back(CombineAttr::get(parser.getContext(), *combine));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  combines = parser.getBuilder().getArrayAttr(list);
  return success();
}

static void printCombines(OpAsmPrinter &printer, Operation *, ArrayAttr combines) {
  printer << "[";
  llvm::interleaveComma(combines, printer,
                        [&](Attribute item) { printer << stringifyCombine(cast<CombineAttr>(item).getValue()); });
  printer << "]";
}

#define GET_OP_CLASSES
#include "dialects/kernel/KernelOps.cpp.inc"

//===--- Helpers ---===//

SmallVector<int64_t> dlc::ir::kernel::getStrides(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(getStridesAndOffset(type, strides, offset)))
    strides.assign(type.getRank(), ShapedType::kDynamic);
  return strides;
}

bool dlc::ir::kernel::isStage(Operation *op) { return isa<MapOp, ReduceOp, ContractOp>(op); }

ArrayAttr dlc::ir::kernel::getOver(Operation *stage) {
  if (auto map = dyn_cast<MapOp>(stage))
    return map.getOver();
  if (auto contract = dyn_cast<ContractOp>(stage))
    return contract.getOver();
  return cast<ReduceOp>(stage).getOver();
}

int FuncOp::getDimIndex(StringRef name) {
  for (auto [i, dim] : llvm::enumerate(getDimNames()))
    if (cast<StringAttr>(dim).getValue() == name)
      return static_cast<int>(i);
  return -1;
}

unsigned FuncOp::getBufIndex(unsigned arg) {
  unsigned index = 0;
  for (BlockArgument other : getBody().getArguments().take_front(arg))
    index += isa<MemRefType>(other.getType());
  return index;
}

static unsigned intsOf(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  return memref ? llvm::count(getStrides(memref), ShapedType::kDynamic) : 1;
}

unsigned FuncOp::getIntIndex(unsigned arg) {
  unsigned index = 0;
  for (BlockArgument other : getBody().getArguments().take_front(arg))
    index += intsOf(other.getType());
  return index;
}

unsigned FuncOp::getNumInts() { return getIntIndex(getBody().getNumArguments()); }

//===--- kernel.func ---===//

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &b = parser.getBuilder();
  StringAttr name;
  SmallVector<OpAsmParser::Argument> args;
  if (parser.parseSymbolName(name, "sym_name", result.attributes) ||
      parser.parseArgumentList(args, AsmParser::Delimiter::Paren, /*allowType=*/true, /*allowAttrs=*/false))
    return failure();
  auto parseArgRef = [&](int64_t &index) -> ParseResult {
    OpAsmParser::UnresolvedOperand ref;
    if (parser.parseOperand(ref))
      return failure();
    for (auto [i, arg] : llvm::enumerate(args))
      if (arg.ssaName.name == ref.name && arg.ssaName.number == ref.number) {
        index = static_cast<int64_t>(i);
        return success();
      }
    return parser.emitError(ref.location) << "not an argument of the kernel";
  };
  SmallVector<Attribute> dimNames;
  SmallVector<int64_t> sizes, outs;
  auto parseDim = [&]() -> ParseResult {
    StringAttr dim;
    int64_t value;
    if (parseDimName(parser, dim) || parser.parseEqual())
      return failure();
    dimNames.push_back(dim);
    OptionalParseResult constant = parser.parseOptionalInteger(value);
    if (constant.has_value()) {
      if (failed(*constant) || value < 0)
        return parser.emitError(parser.getCurrentLocation()) << "a dim's size can't be negative";
      sizes.push_back(value);
      return success();
    }
    if (parseArgRef(value))
      return failure();
    sizes.push_back(encodeSizeArg(static_cast<unsigned>(value)));
    return success();
  };
  auto parseOut = [&]() -> ParseResult { return parseArgRef(outs.emplace_back()); };
  if (parser.parseKeyword("domain") || parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseDim) ||
      parser.parseKeyword("outs") || parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseOut) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  result.addAttribute("dim_names", b.getArrayAttr(dimNames));
  result.addAttribute("dim_sizes", b.getDenseI64ArrayAttr(sizes));
  result.addAttribute("outs", b.getDenseI64ArrayAttr(outs));
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, args))
    return failure();
  if (body->empty()) {
    Block &block = body->emplaceBlock();
    for (auto &arg : args)
      block.addArgument(arg.type, b.getUnknownLoc());
  }
  return success();
}

void FuncOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << "(";
  llvm::interleaveComma(getBody().getArguments(), printer,
                        [&](BlockArgument arg) { printer.printRegionArgument(arg); });
  printer << ") domain(";
  llvm::interleaveComma(llvm::seq<unsigned>(0, getNumDims()), printer, [&](unsigned dim) {
    printer << getDimName(dim).getValue() << " = ";
    if (isStaticDim(dim))
      printer << getDimSizes()[dim];
    else
      printer.printOperand(getSizeArg(dim));
  });
  printer << ") outs(";
  llvm::interleaveComma(getOuts(), printer, [&](int64_t out) { printer.printOperand(getBody().getArgument(out)); });
  printer << ")";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"sym_name", "dim_names", "dim_sizes", "outs"});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

static LogicalResult verifyArguments(FuncOp func) {
  Block &block = func.getBlock();
  if (block.getNumArguments() == 0)
    return func.emitOpError("needs the error slot 'memref<i64>' as last argument");
  auto slot = dyn_cast<MemRefType>(block.getArguments().back().getType());
  if (!slot || slot.getRank() != 0 || !slot.getElementType().isInteger(64))
    return func.emitOpError("needs the error slot 'memref<i64>' as last argument");
  for (BlockArgument arg : block.getArguments()) {
    Type type = arg.getType();
    if (auto memref = dyn_cast<MemRefType>(type)) {
      SmallVector<int64_t> strides;
      int64_t offset;
      if (failed(getStridesAndOffset(memref, strides, offset)) || offset != 0)
        return func.emitOpError() << "argument #" << arg.getArgNumber()
                                  << " must have strided layout with offset 0, has " << type;
      Type element = memref.getElementType();
      bool known = element.isF32() || element.isF64() || element.isF16() || element.isBF16() || element.isInteger(8) ||
                   element.isInteger(16) || element.isInteger(32) || element.isInteger(64);
      if (!known)
        return func.emitOpError() << "argument #" << arg.getArgNumber() << " has unsupported element type " << element
                                  << (element.isInteger(1) ? "; bool buffers are i8" : "");
    } else if (!type.isIndex() && !type.isF64() && !type.isInteger(64)) {
      return func.emitOpError() << "argument #" << arg.getArgNumber() << " must be a memref, index, i64 or f64, is "
                                << type;
    }
  }
  return success();
}

LogicalResult FuncOp::verify() {
  if (failed(verifyArguments(*this)))
    return failure();
  Block &block = getBlock();
  if (getDimNames().size() != getDimSizes().size())
    return emitOpError("needs one size for each dim");
  llvm::StringSet<> names;
  for (unsigned dim = 0; dim < getNumDims(); ++dim) {
    if (!names.insert(getDimName(dim).getValue()).second)
      return emitOpError() << "names dim '" << getDimName(dim).getValue() << "' twice";
    if (isStaticDim(dim))
      continue;
    int64_t arg = -(getDimSizes()[dim] + 1);
    if (arg >= block.getNumArguments() || !block.getArgument(arg).getType().isIndex())
      return emitOpError() << "size of dim '" << getDimName(dim).getValue() << "' must be an index argument";
  }
  for (int64_t out : getOuts()) {
    if (out < 0 || out >= block.getNumArguments() || !isa<MemRefType>(block.getArgument(out).getType()))
      return emitOpError("outs must be memref arguments");
    BlockArgument arg = block.getArgument(out);
    auto writes = llvm::count_if(arg.getUsers(), [](Operation *user) { return isa<WriteOp>(user); });
    if (writes != 1)
      return emitOpError() << "output #" << out << " must be written by exactly one kernel.write, has " << writes;
  }
  for (Operation &op : block) {
    bool scalar = isPure(&op) && op.getNumRegions() == 0 && !isa<UseOp, IndexOp>(op);
    if (!isStage(&op) && !isa<WriteOp>(op) && !scalar)
      return op.emitOpError("can't stand in a kernel outside a stage");
  }
  if (ScheduleAttr schedule = getScheduleAttr()) {
    SmallVector<StringRef> order = schedule.getOrder(), used = schedule.getPar();
    if (!order.empty() && order.size() != getNumDims())
      return emitOpError("schedule order must name every dim once");
    used.append(order);
    if (!schedule.getVecDim().empty())
      used.push_back(schedule.getVecDim());
    for (StringRef name : used)
      if (getDimIndex(name) < 0)
        return emitOpError() << "schedule names unknown dim '" << name << "'";
  }
  return success();
}

//===--- Stages ---===//

static LogicalResult verifyDims(Operation *op, FuncOp func, ArrayAttr dims, StringRef what) {
  llvm::StringSet<> seen;
  for (Attribute dim : dims) {
    StringRef name = cast<StringAttr>(dim).getValue();
    if (func.getDimIndex(name) < 0)
      return op->emitOpError() << what << " names '" << name << "', which is no dim of the domain";
    if (!seen.insert(name).second)
      return op->emitOpError() << what << " names '" << name << "' twice";
  }
  return success();
}

static LogicalResult verifyRegion(Operation *op, unsigned region = 0) {
  for (Operation &inner : op->getRegion(region).front()) {
    bool allowed = isa<ReadOp, UseOp, IndexOp, PrimOp, YieldOp>(inner) ||
                   (inner.getNumRegions() == 0 && isPure(&inner) && inner.getDialect() &&
                    (inner.getDialect()->getNamespace() == "arith" || inner.getDialect()->getNamespace() == "math"));
    if (!allowed)
      return inner.emitOpError("can't stand in a stage: only reads, uses and scalar ops");
    for (Value operand : inner.getOperands())
      if (isa<ValType>(operand.getType()) && !isa<UseOp>(inner))
        return inner.emitOpError("takes a stage's value only through kernel.use");
  }
  if (!isa<YieldOp>(op->getRegion(region).front().back()))
    return op->emitOpError("region must end in kernel.yield");
  return success();
}

static LogicalResult verifyResult(Operation *op, unsigned i, Type element, ArrayRef<Attribute> dims) {
  auto type = cast<ValType>(op->getResult(i).getType());
  if (type.getElementType() != element)
    return op->emitOpError() << "result #" << i << " must have element type " << element << ", has "
                             << type.getElementType();
  if (!std::equal(type.getDims().begin(), type.getDims().end(), dims.begin(), dims.end()))
    return op->emitOpError() << "result #" << i << " must have the dims that are left, in order";
  return success();
}

LogicalResult MapOp::verify() {
  auto func = cast<FuncOp>((*this)->getParentOp());
  if (failed(verifyDims(*this, func, getOver(), "over")) || failed(verifyRegion(*this)))
    return failure();
  Operation *yield = getBody().front().getTerminator();
  if (yield->getNumOperands() != getNumResults() || getNumResults() == 0)
    return emitOpError("must yield one scalar for each result");
  for (auto [i, value] : llvm::enumerate(yield->getOperands()))
    if (failed(verifyResult(*this, i, value.getType(), getOver().getValue())))
      return failure();
  return success();
}

static LogicalResult verifyCombine(ReduceOp op, unsigned i, Type yielded) {
  bool isFloat = isa<FloatType>(yielded);
  switch (op.getCombine(i)) {
  case Combine::andi:
  case Combine::ori:
  case Combine::minu:
  case Combine::maxu:
    if (isFloat)
      return op.emitOpError() << "combine '" << stringifyCombine(op.getCombine(i)) << "' needs integers";
    break;
  default:
    if (yielded.isInteger(1) || yielded.isIndex())
      return op.emitOpError() << "combine '" << stringifyCombine(op.getCombine(i)) << "' can't take " << yielded;
  }
  return success();
}

/// Checks the dims of a stage that combines along `by`; `kept` gets those that are left, in order.
static LogicalResult verifyBy(Operation *op, ArrayAttr over, ArrayAttr by, SmallVector<Attribute> &kept) {
  auto func = cast<FuncOp>(op->getParentOp());
  if (failed(verifyDims(op, func, over, "over")) || failed(verifyDims(op, func, by, "by")))
    return failure();
  if (by.empty())
    return op->emitOpError("must reduce by at least one dim");
  for (Attribute dim : over)
    if (!llvm::is_contained(by, dim))
      kept.push_back(dim);
  if (kept.size() + by.size() != over.size())
    return op->emitOpError("by must be a subset of over");
  return success();
}

LogicalResult ReduceOp::verify() {
  SmallVector<Attribute> kept;
  if (failed(verifyBy(*this, getOver(), getBy(), kept)) || failed(verifyRegion(*this)))
    return failure();
  Operation *yield = getBody().front().getTerminator();
  if (yield->getNumOperands() != getNumResults() || getCombines().size() != getNumResults() || getNumResults() == 0)
    return emitOpError("must have one yielded scalar and one combine for each result");
  for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
    bool isArg = getCombine(i) == Combine::argmax || getCombine(i) == Combine::argmin;
    Type element = isArg ? IntegerType::get(getContext(), 64) : value.getType();
    if (failed(verifyCombine(*this, i, value.getType())) || failed(verifyResult(*this, i, element, kept)))
      return failure();
  }
  return success();
}

/// The scalar types whose products may be summed in `sum`.
static bool mayContract(Type yielded, Type sum) {
  if (sum.isF32() || sum.isF64())
    return yielded == sum;
  return sum.isInteger(32) && (yielded.isInteger(8) || yielded.isInteger(32));
}

LogicalResult ContractOp::verify() {
  SmallVector<Attribute> kept;
  if (failed(verifyBy(*this, getOver(), getBy(), kept)))
    return failure();
  Type sum = cast<ValType>(getResult().getType()).getElementType();
  for (unsigned region = 0; region < 2; ++region) {
    StringRef side = region ? "rhs" : "lhs";
    if (failed(verifyRegion(*this, region)))
      return failure();
    Operation *yield = (*this)->getRegion(region).front().getTerminator();
    if (yield->getNumOperands() != 1)
      return emitOpError() << side << " must yield one scalar";
    if (Type yielded = yield->getOperand(0).getType(); !mayContract(yielded, sum))
      return emitOpError() << side << " yields " << yielded << ", which can't be summed in " << sum;
  }
  return verifyResult(*this, 0, sum, kept);
}

//===--- Accesses ---===//

static LogicalResult verifyAccess(Operation *op, MemRefType memref, Type element, AffineMap map, size_t dims,
                                  size_t syms) {
  if (map.getNumDims() != dims || map.getNumSymbols() != syms)
    return op->emitOpError() << "map must have " << dims << " dims and " << syms << " symbols, has " << map.getNumDims()
                             << " and " << map.getNumSymbols();
  if (static_cast<int64_t>(map.getNumResults()) != memref.getRank())
    return op->emitOpError() << "map must have " << memref.getRank() << " results for " << memref;
  Type stored = memref.getElementType();
  if (element != stored && !(element.isInteger(1) && stored.isInteger(8)))
    return op->emitOpError() << "element " << element << " does not match buffer of " << stored;
  return success();
}

static LogicalResult verifyBound(Operation *op, std::optional<ArrayRef<int64_t>> dims, size_t sizes, bool hasBound,
                                 int64_t rank) {
  if (!hasBound)
    return sizes == 0 && !dims ? success() : op->emitOpError("has bound dims or sizes without bound");
  if (!dims || dims->size() != sizes || sizes == 0)
    return op->emitOpError("bound needs the list of checked indices and one size for each");
  for (int64_t dim : *dims)
    if (dim < 0 || dim >= rank)
      return op->emitOpError() << "bound names index #" << dim << " of a buffer of rank " << rank;
  return success();
}

LogicalResult ReadOp::verify() {
  Operation *stage = (*this)->getParentOp();
  if (!isStage(stage))
    return emitOpError("must stand in a stage");
  auto memref = cast<MemRefType>(getBuffer().getType());
  if (!isa<BlockArgument>(getBuffer()))
    return emitOpError("must read an argument of the kernel");
  if (failed(verifyAccess(*this, memref, getResult().getType(), getMap(), dlc::ir::kernel::getOver(stage).size(),
                          getSyms().size())) ||
      failed(verifyBound(*this, getBoundDims(), getBoundSizes().size(), getBound().has_value(), memref.getRank())))
    return failure();
  bool pads = getBound() == Bound::pad;
  if (pads != static_cast<bool>(getPad()))
    return emitOpError("needs a pad value exactly when bound is pad");
  if (pads && getPad().getType() != getResult().getType())
    return emitOpError("pad value must have the result's type");
  return success();
}

LogicalResult WriteOp::verify() {
  auto memref = cast<MemRefType>(getBuffer().getType());
  auto func = cast<FuncOp>((*this)->getParentOp());
  auto arg = dyn_cast<BlockArgument>(getBuffer());
  if (!arg || !llvm::is_contained(func.getOuts(), arg.getArgNumber()))
    return emitOpError("must write an output of the kernel");
  ValType type = getValue().getType();
  if (failed(verifyAccess(*this, memref, type.getElementType(), getMap(), type.getDims().size(), getSyms().size())) ||
      failed(verifyBound(*this, getBoundDims(), getBoundSizes().size(), getBound().has_value(), memref.getRank())))
    return failure();
  bool scatters = false;
  for (Value sym : getSyms())
    if (auto val = dyn_cast<ValType>(sym.getType())) {
      scatters = true;
      if (!val.getElementType().isInteger(64))
        return emitOpError("index values of a scatter must be i64");
    }
  if (getBound() == Bound::pad || getBound() == Bound::clamp)
    return emitOpError("bound of a write must be check or wrap");
  if (getAccumulate() == Combine::argmax || getAccumulate() == Combine::argmin)
    return emitOpError("can't accumulate by argmax or argmin");
  for (unsigned dim = 0; dim < getMap().getNumDims() && !scatters && !getAccumulate(); ++dim)
    if (!getMap().isFunctionOfDim(dim))
      return emitOpError() << "writes one place for all of dim '" << type.getDims()[dim].getValue()
                           << "'; only an accumulating write may";
  return success();
}

LogicalResult UseOp::verify() {
  Operation *stage = (*this)->getParentOp();
  ValType type = getValue().getType();
  if (!isStage(stage))
    return emitOpError("must stand in a stage");
  if (getResult().getType() != type.getElementType())
    return emitOpError() << "result must be " << type.getElementType();
  for (StringAttr dim : type.getDims())
    if (!llvm::is_contained(dlc::ir::kernel::getOver(stage), dim))
      return emitOpError() << "value has dim '" << dim.getValue() << "', which this stage does not";
  return success();
}

LogicalResult IndexOp::verify() {
  Operation *stage = (*this)->getParentOp();
  if (!isStage(stage) || !llvm::is_contained(dlc::ir::kernel::getOver(stage), getDimAttr()))
    return emitOpError() << "'" << getDim() << "' is no dim of the stage";
  return success();
}

LogicalResult PrimOp::verify() {
  if (!isKnownPrim(getName()))
    return emitOpError() << "unknown primitive '" << getName() << "'";
  return success();
}
