// Types and attributes of the kernel dialect: text form, accessors, and the rules of a schedule.
#include "dialects/kernel/KernelDialect.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace dlc::ir::kernel;

#include "dialects/kernel/KernelDialect.cpp.inc"
#include "dialects/kernel/KernelEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/kernel/KernelTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/kernel/KernelAttrs.cpp.inc"

void KernelDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/kernel/KernelTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/kernel/KernelAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/kernel/KernelOps.cpp.inc"
      >();
}

Type ValType::parse(AsmParser &parser) {
  Type element;
  SmallVector<StringAttr> dims;
  auto parseDim = [&]() -> ParseResult {
    StringRef name;
    if (parser.parseKeyword(&name))
      return failure();
    dims.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  };
  if (parser.parseLess() || parser.parseType(element) || parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim) || parser.parseGreater())
    return {};
  return get(parser.getContext(), element, dims);
}

void ValType::print(AsmPrinter &printer) const {
  printer << "<" << getElementType() << ", [";
  llvm::interleaveComma(getDims(), printer, [&](StringAttr dim) { printer << dim.getValue(); });
  printer << "]>";
}

//===--- Schedule ---===//

// A field's value: an integer, a word, [words], or {name = value, ...}.
static ParseResult parseField(AsmParser &parser, Attribute &value) {
  Builder b(parser.getContext());
  if (succeeded(parser.parseOptionalLBrace())) {
    SmallVector<NamedAttribute> fields;
    auto parseEntry = [&]() -> ParseResult {
      StringRef name;
      Attribute inner;
      if (parser.parseKeyword(&name) || parser.parseEqual() || parseField(parser, inner))
        return failure();
      fields.emplace_back(b.getStringAttr(name), inner);
      return success();
    };
    if (parser.parseCommaSeparatedList(parseEntry) || parser.parseRBrace())
      return failure();
    value = b.getDictionaryAttr(fields);
    return success();
  }
  if (succeeded(parser.parseOptionalLSquare())) {
    SmallVector<Attribute> items;
    if (failed(parser.parseOptionalRSquare())) {
      auto parseItem = [&]() -> ParseResult { return parseField(parser, items.emplace_back()); };
      if (parser.parseCommaSeparatedList(parseItem) || parser.parseRSquare())
        return failure();
    }
    value = b.getArrayAttr(items);
    return success();
  }
  int64_t number;
  OptionalParseResult isNumber = parser.parseOptionalInteger(number);
  if (isNumber.has_value()) {
    value = b.getI64IntegerAttr(number);
    return *isNumber;
  }
  StringRef word;
  if (parser.parseKeyword(&word))
    return failure();
  value = b.getStringAttr(word);
  return success();
}

static void printField(AsmPrinter &printer, Attribute value) {
  if (auto dict = dyn_cast<DictionaryAttr>(value)) {
    printer << "{";
    llvm::interleaveComma(dict, printer, [&](NamedAttribute entry) {
      printer << entry.getName().getValue() << " = ";
      printField(printer, entry.getValue());
    });
    printer << "}";
  } else if (auto list = dyn_cast<ArrayAttr>(value)) {
    printer << "[";
    llvm::interleaveComma(list, printer, [&](Attribute item) { printField(printer, item); });
    printer << "]";
  } else if (auto number = dyn_cast<IntegerAttr>(value)) {
    printer << number.getInt();
  } else {
    printer << cast<StringAttr>(value).getValue();
  }
}

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  Builder b(parser.getContext());
  NamedAttrList fields;
  SMLoc loc = parser.getCurrentLocation();
  auto parseEntry = [&]() -> ParseResult {
    StringRef name;
    Attribute value;
    SMLoc fieldLoc = parser.getCurrentLocation();
    if (parser.parseKeyword(&name) || parser.parseEqual() || parseField(parser, value))
      return failure();
    if (fields.get(name))
      return parser.emitError(fieldLoc) << "schedule field '" << name << "' is given twice";
    fields.append(name, value);
    return success();
  };
  if (parser.parseLess())
    return {};
  if (failed(parser.parseOptionalGreater()))
    if (parser.parseCommaSeparatedList(parseEntry) || parser.parseGreater())
      return {};
  return parser.getChecked<ScheduleAttr>(loc, parser.getContext(), fields.getDictionary(parser.getContext()));
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(getFields(), printer, [&](NamedAttribute entry) {
    printer << entry.getName().getValue() << " = ";
    printField(printer, entry.getValue());
  });
  printer << ">";
}

/// `micro` and `block` give sizes for m, n and k; `pack` says it for lhs and rhs.
static LogicalResult verifyTiles(function_ref<InFlightDiagnostic()> emitError, StringRef field, DictionaryAttr tiles) {
  if (!tiles)
    return emitError() << "schedule field '" << field << "' must be {name = value, ...}";
  for (NamedAttribute entry : tiles) {
    StringRef name = entry.getName();
    if (field == "pack") {
      auto word = llvm::dyn_cast<StringAttr>(entry.getValue());
      if ((name != "lhs" && name != "rhs") || !word || (word != "none" && word != "block"))
        return emitError() << "schedule field 'pack' must say none or block for lhs or rhs";
      continue;
    }
    auto size = llvm::dyn_cast<IntegerAttr>(entry.getValue());
    if ((name != "m" && name != "n" && name != "k") || !size || size.getInt() < (field == "micro" ? 1 : 0))
      return emitError() << "schedule field '" << field << "' must give sizes for m, n and k";
  }
  return success();
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError, DictionaryAttr fields) {
  for (NamedAttribute field : fields) {
    StringRef name = field.getName();
    Attribute value = field.getValue();
    if (name == "order" || name == "par") {
      auto list = llvm::dyn_cast<ArrayAttr>(value);
      if (!list || !llvm::all_of(list, [](Attribute item) { return llvm::isa<StringAttr>(item); }))
        return emitError() << "schedule field '" << name << "' must be a list of dims";
    } else if (name == "vec") {
      auto dict = llvm::dyn_cast<DictionaryAttr>(value);
      auto width = dict && dict.size() == 1 ? llvm::dyn_cast<IntegerAttr>(dict.begin()->getValue()) : IntegerAttr();
      if (!width || width.getInt() < 1 || width.getInt() > 64 || (width.getInt() & (width.getInt() - 1)))
        return emitError() << "schedule field 'vec' must be {dim = width}, width a power of two up to 64";
    } else if (name == "unroll" || name == "acc" || name == "grain" || name == "fission" || name == "split") {
      auto number = llvm::dyn_cast<IntegerAttr>(value);
      if (!number || number.getInt() < 1)
        return emitError() << "schedule field '" << name << "' must be a positive integer";
      if (name == "unroll" && number.getInt() > 16)
        return emitError() << "schedule field 'unroll' must be at most 16";
    } else if (name == "tail") {
      auto word = llvm::dyn_cast<StringAttr>(value);
      if (!word || (word != "mask" && word != "single" && word != "auto"))
        return emitError() << "schedule field 'tail' must be mask, single or auto";
    } else if (name == "place" || name == "tile" || name == "gpu") {
      if (!llvm::isa<DictionaryAttr>(value))
        return emitError() << "schedule field '" << name << "' must be {name = value, ...}";
      if (name != "place")
        continue;
      for (NamedAttribute entry : llvm::cast<DictionaryAttr>(value)) {
        auto word = llvm::dyn_cast<StringAttr>(entry.getValue());
        if (!word || (word != "out" && word != "recompute"))
          return emitError() << "placement of '" << entry.getName().getValue() << "' must be out or recompute";
      }
    } else if (name == "micro" || name == "block" || name == "pack") {
      if (failed(verifyTiles(emitError, name, llvm::dyn_cast<DictionaryAttr>(value))))
        return failure();
    } else if (name != "reduce" && name != "lib" && name != "algo") {
      return emitError() << "unknown schedule field '" << name << "'";
    }
  }
  return success();
}

SmallVector<StringRef> ScheduleAttr::getNames(StringRef field) const {
  SmallVector<StringRef> names;
  if (auto list = getFields().getAs<ArrayAttr>(field))
    for (Attribute item : list)
      names.push_back(llvm::cast<StringAttr>(item).getValue());
  return names;
}

StringRef ScheduleAttr::getVecDim() const {
  auto vec = getFields().getAs<DictionaryAttr>("vec");
  return vec ? vec.begin()->getName().getValue() : StringRef();
}

int64_t ScheduleAttr::getVecWidth() const {
  auto vec = getFields().getAs<DictionaryAttr>("vec");
  return vec ? llvm::cast<IntegerAttr>(vec.begin()->getValue()).getInt() : 0;
}

int64_t ScheduleAttr::getInt(StringRef field, int64_t otherwise) const {
  auto number = getFields().getAs<IntegerAttr>(field);
  return number ? number.getInt() : otherwise;
}

StringRef ScheduleAttr::getWord(StringRef field) const {
  auto word = getFields().getAs<StringAttr>(field);
  return word ? word.getValue() : StringRef();
}

int64_t ScheduleAttr::getTile(StringRef field, StringRef name, int64_t otherwise) const {
  auto tiles = getFields().getAs<DictionaryAttr>(field);
  auto size = tiles ? tiles.getAs<IntegerAttr>(name) : IntegerAttr();
  return size ? size.getInt() : otherwise;
}

StringRef ScheduleAttr::getPlace(unsigned stage) const {
  auto place = getFields().getAs<DictionaryAttr>("place");
  auto word = place ? place.getAs<StringAttr>("s" + std::to_string(stage)) : StringAttr();
  return word ? word.getValue() : StringRef();
}
