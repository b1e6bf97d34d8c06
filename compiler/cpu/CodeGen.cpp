// The pipeline has what our loops need and nothing else: the vectorisers are off, since kernels are vectors already.
// Compared with default<O2> it takes a seventh of the time for the same speed of the code.
#include "compiler/cpu/CodeGen.h"
#include "compiler/lower/Schedule.h"
#include "runtime/core/Knobs.h"
#include "runtime/core/PhaseTimes.h"

#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/PassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/DCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <mutex>

using namespace llvm;

namespace dlc::compiler {

static void initialiseX86() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    // Addresses are base + index already; strength reduction of them took a sixth of the compile time for nothing.
    auto &options = cl::getRegisteredOptions();
    if (auto it = options.find("disable-lsr"); it != options.end())
      static_cast<cl::opt<bool> *>(it->second)->setValue(true);
  });
}

const CpuTarget &CpuTarget::host() {
  static const CpuTarget target = [] {
    CpuTarget t;
    t.triple = sys::getProcessTriple();
    t.cpu = sys::getHostCPUName().str();
    SubtargetFeatures features;
    auto host = sys::getHostCPUFeatures();
    std::vector<std::string> names;          // sorted, so that the text is the same in every process
    bool narrow = knobs().gemmIsa == "avx2"; // as if this were a processor without AVX-512
    for (auto &entry : host) {
      bool wide = entry.first().starts_with("avx512") || entry.first().starts_with("avx10");
      names.push_back((entry.second && !(narrow && wide) ? "+" : "-") + entry.first().str());
    }
    llvm::sort(names, [](const std::string &a, const std::string &b) { return a.substr(1) < b.substr(1); });
    for (const std::string &name : names)
      features.AddFeature(name);
    t.features = features.getString();
    t.vectorBits = hostVectorBits();
    return t;
  }();
  return target;
}

Expected<std::unique_ptr<CodeGen>> CodeGen::create(const CpuTarget &target) {
  initialiseX86();
  std::string message;
  const Target *found = TargetRegistry::lookupTarget(target.triple, message);
  if (!found)
    return createStringError(message);
  std::unique_ptr<CodeGen> result(new CodeGen(target));
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Strict; // nothing is contracted; kernels say fma
  options.MCOptions.AsmVerbose = false;
  result->machine_.reset(found->createTargetMachine(target.triple, target.cpu, target.features, options, Reloc::PIC_,
                                                    CodeModel::Small, CodeGenOptLevel::Default, /*JIT=*/true));
  if (!result->machine_)
    return createStringError("no code generator for " + target.triple);
  return result;
}

CodeGen::~CodeGen() = default;

void CodeGen::setAttributes(Module &module) {
  module.setTargetTriple(target_.triple);
  module.setDataLayout(machine_->createDataLayout());
  std::string bits = std::to_string(target_.vectorBits);
  for (Function &f : module) {
    f.addFnAttr(Attribute::NoUnwind);
    if (f.isDeclaration())
      continue;
    f.addFnAttr("target-cpu", target_.cpu);
    f.addFnAttr("target-features", target_.features);
    f.addFnAttr("prefer-vector-width", bits);
    f.addFnAttr("min-legal-vector-width", bits);
    f.addFnAttr("no-trapping-math", "true");
    // A sanitized caller looks for a type signature in front of the function; that must be readable memory.
    f.setPrefixData(ConstantAggregateZero::get(ArrayType::get(Type::getInt64Ty(module.getContext()), 2)));
    for (unsigned i = 0; i < f.arg_size(); ++i) {
      if (!f.getArg(i)->getType()->isPointerTy())
        continue;
      f.addParamAttr(i, Attribute::NoAlias);
      f.addParamAttr(i, Attribute::NonNull);
      f.addParamAttr(i, Attribute::ReadOnly);
      f.addParamAttr(i, Attribute::NoCapture);
    }
  }
}

void CodeGen::optimise(Module &module) {
  LoopAnalysisManager lam;
  FunctionAnalysisManager fam;
  CGSCCAnalysisManager cgam;
  ModuleAnalysisManager mam;
  PassBuilder builder(machine_.get());
  builder.registerModuleAnalyses(mam);
  builder.registerCGSCCAnalyses(cgam);
  builder.registerFunctionAnalyses(fam);
  builder.registerLoopAnalyses(lam);
  builder.crossRegisterProxies(lam, fam, cgam, mam);

  FunctionPassManager passes;
  passes.addPass(SROAPass(SROAOptions::ModifyCFG));
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(InstCombinePass());
  passes.addPass(SimplifyCFGPass());
  LoopPassManager loops;
  loops.addPass(LoopRotatePass());
  loops.addPass(LICMPass(LICMOptions()));
  passes.addPass(createFunctionToLoopPassAdaptor(std::move(loops), /*UseMemorySSA=*/true));
  passes.addPass(GVNPass());
  passes.addPass(InstCombinePass());
  passes.addPass(SimplifyCFGPass());
  passes.addPass(DCEPass());
  for (Function &f : module)
    if (!f.isDeclaration())
      passes.run(f, fam);
}

Expected<SmallVector<char, 0>> CodeGen::compile(Module &module, bool assembly) {
  PhaseTimer optimising("LLVM opt");
  setAttributes(module);
  optimise(module);
  optimising.stop();
  PhaseTimer timer("LLVM codegen");
  SmallVector<char, 0> object;
  raw_svector_ostream stream(object);
  legacy::PassManager passes;
  CodeGenFileType type = assembly ? CodeGenFileType::AssemblyFile : CodeGenFileType::ObjectFile;
  if (machine_->addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true))
    return createStringError("the code generator can't emit this file type");
  passes.run(module);
  return object;
}

} // namespace dlc::compiler
