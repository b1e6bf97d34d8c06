// Prints a program: the helpers and primitives its kernels use, then the kernels.
#include "compiler/cuda/CudaEmitter.h"

#include "compiler/cuda/KernelText.h"
#include "compiler/lower/Metadata.h"

using namespace mlir;
using dlc::ir::kernel::FuncOp;
using dlc::ir::kernel::ScheduleAttr;

namespace dlc::compiler {

// The plan wants a complete loop order and nothing of the CPU: vector width and threads are not this target's.
static LogicalResult setOrder(FuncOp func) {
  ScheduleAttr given = func.getScheduleAttr();
  SmallVector<StringRef> names = given ? given.getOrder() : SmallVector<StringRef>();
  Builder b(func.getContext());
  SmallVector<Attribute> order;
  for (StringRef name : names)
    order.push_back(b.getStringAttr(name));
  if (order.empty() && func.getNumDims() > 0) {
    SmallVector<unsigned> found = findOrder(func, -1);
    if (found.empty())
      return func.emitOpError("has no loop order that keeps every reduction in registers");
    for (unsigned dim : found)
      order.push_back(func.getDimName(dim));
  }
  SmallVector<NamedAttribute> fields{b.getNamedAttr("order", b.getArrayAttr(order))};
  for (const char *name : {"gpu", "place"})
    if (Attribute field = given ? given.getFields().get(name) : Attribute())
      fields.push_back(b.getNamedAttr(name, field));
  func.setScheduleAttr(ScheduleAttr::get(func.getContext(), b.getDictionaryAttr(fields)));
  return success();
}

FailureOr<CudaProgram> emitCuda(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = module.clone();
  CudaProgram program;
  CudaShared shared;
  std::string kernels;
  for (FuncOp func : copy->getOps<FuncOp>()) {
    if (!func.getOps<ir::kernel::ContractOp>().empty())
      return func.emitOpError("contracts: it can't be printed as CUDA");
    if (failed(setOrder(func)))
      return failure();
    FailureOr<KernelPlan> plan = planKernel(func);
    if (failed(plan))
      return failure();
    CudaKernel info;
    if (failed(KernelText(*plan, shared).print(kernels, info)))
      return failure();
    KernelInfo known = describeKernel(*plan);
    info.outputs = std::move(known.outputs);
    // Where a block has more teams than points, the spare ones read a point that another may be writing.
    if (info.threadsX == info.pointsPerBlock * info.threadsY || info.pointsPerBlock == 1)
      info.mayShare = std::move(known.mayShare);
    program.kernels.push_back(std::move(info));
  }
  program.text = cudaPrelude(shared.helpers) + shared.prims.text() + kernels;
  return program;
}

LogicalResult printCuda(ModuleOp module, llvm::raw_ostream &out) {
  FailureOr<CudaProgram> program = emitCuda(module);
  if (failed(program))
    return failure();
  out << program->text;
  return success();
}

int64_t cudaGrid(const CudaKernel &kernel, const int64_t *ints, int64_t limit) {
  int64_t points = 1;
  for (int64_t size : kernel.pointDims)
    points *= size >= 0 ? size : ints[-(size + 1)];
  int64_t blocks = (points + kernel.pointsPerBlock - 1) / kernel.pointsPerBlock;
  return std::max<int64_t>(1, std::min(blocks, limit));
}

} // namespace dlc::compiler
