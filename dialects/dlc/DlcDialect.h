// The `dlc` dialect: tensor operations, one ODS op a record of dialects/ops, a header and a file a family.
#pragma once
#include "dialects/dlc/BoxedOp.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <type_traits>

#include "dialects/dlc/DlcDialect.h.inc"

namespace dlc::ir {

/// Result types of an op from the meta function of its record. Emits the meta's error at `loc`.
llvm::LogicalResult inferTypes(llvm::StringRef name, mlir::MLIRContext *context, std::optional<mlir::Location> loc,
                               mlir::ValueRange operands, AttrLookup attrs, llvm::SmallVectorImpl<mlir::Type> &types);

/// Equal up to sizes that one of them does not know.
bool areCompatibleTypes(mlir::TypeRange a, mlir::TypeRange b);

template <class T, class = void> struct HasProperties : std::false_type {};
template <class T> struct HasProperties<T, std::void_t<typename T::Properties>> : std::true_type {};

/// What the generated inferReturnTypes of every op calls: inherent attributes are in the properties when an op is
/// built, in the dictionary when it is parsed.
template <class OpT>
llvm::LogicalResult inferByMeta(mlir::MLIRContext *context, std::optional<mlir::Location> loc,
                                mlir::ValueRange operands, mlir::DictionaryAttr attributes,
                                mlir::OpaqueProperties properties, llvm::SmallVectorImpl<mlir::Type> &types) {
  mlir::DictionaryAttr inherent;
  if constexpr (HasProperties<OpT>::value)
    if (properties)
      inherent = llvm::dyn_cast_or_null<mlir::DictionaryAttr>(
          OpT::getPropertiesAsAttr(context, *properties.template as<typename OpT::Properties *>()));
  auto lookUp = [&](llvm::StringRef name) -> mlir::Attribute {
    if (inherent)
      if (mlir::Attribute a = inherent.get(name))
        return a;
    return attributes ? attributes.get(name) : mlir::Attribute();
  };
  return inferTypes(OpT::getOperationName(), context, loc, operands, lookUp, types);
}

/// Builds the IR op of a record from its operands by parameter; attributes by name. Segment attributes are computed.
struct OpParts {
  llvm::SmallVector<llvm::SmallVector<mlir::Value, 2>, 8> operands; ///< per parameter; empty for attributes
  llvm::SmallVector<mlir::NamedAttribute> attributes;
};
/// With inferred result types unless `types` are given. Throws dlc::Error with the meta's message.
mlir::Operation *createOp(mlir::OpBuilder &b, mlir::Location loc, const OpInfo &info, const OpParts &parts,
                          llvm::ArrayRef<mlir::Type> types = {});

/// The IR element type of a dtype: bool is i1, uint8 is ui8, other integers are signless.
mlir::Type elementType(DType t, mlir::MLIRContext *context);

/// The attribute that a boxed argument of an attribute kind becomes; null for an absent one.
template <class V> mlir::Attribute attributeOf(mlir::Builder &b, const Arg<V> &a) {
  switch (a.tag) {
  case ArgTag::Int:
    return b.getI64IntegerAttr(a.i);
  case ArgTag::IntList:
    return b.getDenseI64ArrayAttr(llvm::ArrayRef<int64_t>(a.ints, a.size));
  case ArgTag::Bool:
    return b.getBoolAttr(a.b());
  case ArgTag::Float:
    return b.getF64FloatAttr(a.f);
  case ArgTag::Str:
    return b.getStringAttr(llvm::StringRef(a.chars, a.size));
  case ArgTag::DType:
    return mlir::TypeAttr::get(elementType(a.dtype, b.getContext()));
  default:
    return {};
  }
}

} // namespace dlc::ir

#define GET_OP_CLASSES
#include "dialects/dlc/DlcOps.h.inc"
