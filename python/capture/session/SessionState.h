// What Session keeps; shared by its implementation files.
#pragma once
#include "python/capture/session/Session.h"
#include "runtime/autograd/TapeTemplate.h"
#include <deque>
#include <map>

namespace dlc::py {

/// Something the call did to the outside, in program order.
struct Effect {
  Instr instr;                 ///< registers not filled in yet
  std::vector<Obj> values;     ///< what its registers must hold, in the order a, b, regs (null: kNoReg)
  std::vector<Instr> prepared; ///< deferred calls: already emitted
};

/// A new tensor that leaves the function: its memory gets a register when the piece that makes it has run.
struct Leaving {
  dlc::Tensor tensor;
  Reg object = kNoReg;
  size_t at = 0; ///< the MakeTensor instruction in *out
  std::vector<Instr> *out = nullptr;
  bool done = false;
};

/// A tensor that the template of a tape reads: of a known object, or a register of tens.
struct TapeSlot {
  Reg object = kNoReg, tens = kNoReg;
  int64_t offset = 0; ///< of the tensor in its storage, in this call
};

/// A write of this call, by object, kind and key.
struct Written {
  Obj object, key, value;
  Session::Slot slot;
};

struct Session::State {
  Obj callee;
  std::set<std::string> varying;
  Path path;
  FactSink facts;
  Session *previous = nullptr;
  uint64_t previousEpoch = 0;

  std::unordered_map<PyObject *, Reg> regs;          // known objects
  std::unordered_map<PyObject *, std::string> names; // what read() called them
  std::vector<Obj> keep;                             // keeps known objects alive: their addresses are keys
  std::map<std::string, Reg> loads;                  // emitted loads by content
  std::set<std::string> guards;                      // emitted guards by content
  std::unordered_map<Reg, Obj> seen;                 // what a load's register is to the program
  std::unordered_map<PyObject *, Reg> cells;
  std::map<PyTypeObject *, std::set<Reg>> distinct; // objects of a type that must be different ones

  std::vector<Written> writes;
  std::unordered_map<PyObject *, Obj> entry;       // containers changed by this call, as they were
  std::vector<Obj> changed;                        // known objects changed
  std::vector<std::pair<Obj, Obj>> symbolicStores; // container, symbolic number
  std::vector<Effect> effects;
  std::set<const Storage *> shown; // memory that deferred calls (print) look at when the call ends

  std::unordered_map<const Storage *, Reg> storages; // whose memory a tens register holds
  std::vector<Ref<Storage>> keepStorages;
  std::map<const Storage *, PyObject *> outsideStorages; // of the tensors among the first `sharingChecked` of `keep`
  size_t sharingChecked = 0;
  bool sharing = false;                                     // two of them share one
  std::unordered_map<const TensorImpl *, TensorMeta> metas; // symbolic sizes of known tensors
  std::vector<dlc::Tensor> keepTensors;
  std::map<std::string, Reg> tensLoads;
  std::unordered_map<Reg, int64_t> tensOffsets; // where the tensors of entry registers start, in this call
  std::unordered_map<Reg, std::shared_ptr<const TensorGuard>> tensorGuards; // by the register of the object
  std::set<Reg> placed;                                                     // whose place in its storage is guarded
  std::vector<std::pair<Reg, dlc::Tensor>> aliasInputs;                     // tensor objects that pieces read
  std::set<Reg> aliasKnown;
  std::set<std::pair<int, const DimExpr *>> factsSeen;
  size_t aliasesChecked = 0;
  std::deque<NumberNode> numbers;
  std::vector<std::pair<Ref<Generator>, Dim>> draws;
  std::unordered_map<PyObject *, Dim> lengths; // of known containers, at entry
  std::set<PyObject *> reading;                // containers that readDeep() is in
  int64_t mode = 0;                            // modeWord() at entry
  bool anySymbolic = false;

  std::vector<Instr> commit;                // being emitted
  std::unordered_map<PyObject *, Reg> made; // fresh objects emitted
  std::vector<Obj> keepMade;
  Reg result = kNoReg;
  std::vector<Leaving> leaving;
  std::vector<std::pair<dlc::Tensor, Reg>> histories; // tensors that leave with a history, and their objects
  TapeCapture tape;
  std::vector<TapeSlot> tapeSlots;                          // what the tape's template may read
  std::unordered_map<const Storage *, int32_t> tapeStorage; // slot of a tensor over the storage
};

/// Content of an instruction as a key, for finding equal ones.
std::string contentOf(const Instr &i);

} // namespace dlc::py
