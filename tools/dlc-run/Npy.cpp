// The header is a Python dict as text after a magic string and its length.
#include "Npy.h"
#include <cstring>
#include <fstream>

namespace dlc {

static const std::pair<const char *, DType> kDescriptions[] = {
    {"<f4", DType::F32}, {"<f8", DType::F64}, {"<f2", DType::F16}, {"<i8", DType::I64}, {"<i4", DType::I32},
    {"<i2", DType::I16}, {"|i1", DType::I8},  {"|u1", DType::U8},  {"|b1", DType::Bool}};

Tensor readNpy(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  char magic[10] = {};
  in.read(magic, sizeof magic);
  DLC_REQUIRE(in && !std::memcmp(magic, "\x93NUMPY\x01", 7), Value, path,
              ": not a version 1 .npy file\nSave it with numpy.save.");
  uint16_t length;
  std::memcpy(&length, magic + 8, 2);
  std::string header(length, ' ');
  in.read(header.data(), length);
  DLC_REQUIRE(header.find("'fortran_order': False") != std::string::npos, Value, path,
              ": not row-major\nSave a C-contiguous array.");
  Sizes sizes;
  for (size_t at = header.find('(') + 1; at < header.size() && header[at] != ')';) {
    if (std::isdigit(static_cast<unsigned char>(header[at]))) {
      char *end;
      sizes.push_back(std::strtoll(header.c_str() + at, &end, 10));
      at = static_cast<size_t>(end - header.c_str());
    } else {
      ++at;
    }
  }
  for (auto &[text, dtype] : kDescriptions)
    if (header.find(std::string("'") + text + "'") != std::string::npos) {
      Tensor t = Tensor::empty(Ints(sizes), dtype);
      std::streamsize bytes = static_cast<std::streamsize>(t.numel()) * static_cast<std::streamsize>(itemSize(dtype));
      if (bytes)
        in.read(t.dataAs<char>(), bytes);
      DLC_REQUIRE(in, Value, path, ": the file is too short\nSave it again.");
      return t;
    }
  fail(ErrorKind::Value, path, ": a dtype that dlc does not have\nConvert it first.");
}

void writeNpy(const std::string &path, const Tensor &t) {
  std::string descr;
  for (auto &[text, dtype] : kDescriptions)
    if (dtype == t.dtype())
      descr = text;
  DLC_REQUIRE(!descr.empty(), Value, path, ": .npy has no ", nameOf(t.dtype()), "\nConvert it first.");
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (int64_t s : t.sizes())
    header += std::to_string(s) + ",";
  header += "), }";
  header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  uint16_t length = static_cast<uint16_t>(header.size());
  std::ofstream out(path, std::ios::binary);
  out.write("\x93NUMPY\x01\x00", 8);
  out.write(reinterpret_cast<const char *>(&length), 2);
  out << header;
  out.write(t.dataAs<char>(),
            static_cast<std::streamsize>(t.numel()) * static_cast<std::streamsize>(itemSize(t.dtype())));
}

} // namespace dlc
