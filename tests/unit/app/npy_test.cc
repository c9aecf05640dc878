// SPDX-License-Identifier: Apache-2.0
// The files are put together here byte by byte, as NumPy's documentation of the format describes
// them.
#include "app/report/npy.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <limits>

#include "mxtrain/base/error.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::report {
namespace {

template <typename T>
std::string Bytes(std::initializer_list<T> values) {
  std::string bytes;
  for (const T& value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

std::string File(const std::string& descr, const std::string& shape, const std::string& elements,
                 bool fortran = false, char version = 1) {
  const std::string header = "{'descr': " + descr +
                             ", 'fortran_order': " + (fortran ? "True" : "False") +
                             ", 'shape': " + shape + ", }\n";
  const auto length = static_cast<uint32_t>(header.size());
  return "\x93NUMPY" + std::string({version, '\0'}) +
         Bytes({length}).substr(0, version == 1 ? 2 : 4) + header + elements;
}

std::vector<float> ValuesOf(const std::string& file) {
  return ParseNpy(file, "x.npy").values;
}

std::string ErrorOf(const std::string& file) {
  try {
    ParseNpy(file, "x.npy");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kData);
    return error.what();
  }
  return "";
}

TEST_CASE("npy: every type of numbers, both orders of bytes, three versions") {
  const std::vector<float> two = {1, -2};
  CHECK(ValuesOf(File("'<f4'", "(2,)", Bytes<float>({1, -2}))) == two);
  CHECK(ValuesOf(File("'<f8'", "(2,)", Bytes<double>({1, -2}))) == two);
  CHECK(ValuesOf(File("'<f2'", "(2,)", Bytes<uint16_t>({0x3c00, 0xc000}))) == two);
  CHECK(ValuesOf(File("'|i1'", "(2,)", Bytes<int8_t>({1, -2}))) == two);
  CHECK(ValuesOf(File("'<i2'", "(2,)", Bytes<int16_t>({1, -2}))) == two);
  CHECK(ValuesOf(File("'<i4'", "(2,)", Bytes<int32_t>({1, -2}))) == two);
  CHECK(ValuesOf(File("'<i8'", "(2,)", Bytes<int64_t>({1, -2}))) == two);
  CHECK(ValuesOf(File("'|u1'", "(2,)", Bytes<uint8_t>({1, 200}))) == std::vector<float>{1, 200});
  CHECK(ValuesOf(File("'<u2'", "(1,)", Bytes<uint16_t>({60000}))) == std::vector<float>{60000});
  CHECK(ValuesOf(File("'<u4'", "(1,)", Bytes<uint32_t>({1 << 24}))) == std::vector<float>{1 << 24});
  CHECK(ValuesOf(File("'<u8'", "(1,)", Bytes<uint64_t>({7}))) == std::vector<float>{7});
  CHECK(ValuesOf(File("'|b1'", "(2,)", Bytes<uint8_t>({1, 0}))) == std::vector<float>{1, 0});
  CHECK(ValuesOf(File("'>f4'", "(1,)", std::string("\x3f\xc0\0\0", 4))) ==
        std::vector<float>{1.5f});
  CHECK(ValuesOf(File("'>i2'", "(1,)", std::string("\1\2", 2))) == std::vector<float>{258});
  CHECK(ValuesOf(File("'>f2'", "(1,)", std::string("\x3c\0", 2))) == std::vector<float>{1});
  for (const char version : {'\1', '\2', '\3'})
    CHECK(ValuesOf(File("'<f4'", "(2,)", Bytes<float>({1, -2}), false, version)) == two);
}

TEST_CASE("npy: shapes, in either order of axes") {
  const std::string six = Bytes<float>({0, 1, 2, 3, 4, 5});
  CHECK(ParseNpy(File("'<f4'", "(2, 3)", six), "x").dims == std::vector<int64_t>{2, 3});
  CHECK(ValuesOf(File("'<f4'", "(2, 3)", six)) == std::vector<float>{0, 1, 2, 3, 4, 5});
  // [i, j] at i + 2 j
  CHECK(ValuesOf(File("'<f4'", "(2, 3)", six, true)) == std::vector<float>{0, 2, 4, 1, 3, 5});
  // [i, j, k] at i + j + 1 * 2 k
  CHECK(ValuesOf(File("'<f4'", "(1, 2, 3)", six, true)) == std::vector<float>{0, 2, 4, 1, 3, 5});
  CHECK(ParseNpy(File("'<f4'", "()", Bytes<float>({3})), "x").dims.empty());
  CHECK(ParseNpy(File("'<f4'", "(0, 3)", ""), "x").values.empty());
}

TEST_CASE("npy: what the writer writes is read") {
  const test::TempDir folder;
  NpyWriter writer(folder.path("a.npy"), 3, TShape{2});
  const float first[] = {1, 2}, last[] = {5, 6};
  writer.Write(0, first);
  writer.Write(2, last);
  writer.Finish();
  const NpyArray array = ReadNpy(folder.path("a.npy"));
  CHECK(array.dims == std::vector<int64_t>{3, 2});
  REQUIRE(array.values.size() == 6);
  CHECK(array.values[1] == 2);
  CHECK(array.values[2] != array.values[2]);  // NaN of the row that was skipped
  CHECK(array.values[4] == 5);
}

TEST_CASE("npy: what is no array of numbers, or damaged, is refused") {
  const auto refused = [](const std::string& file, const std::string& part) {
    const std::string error = ErrorOf(file);
    CAPTURE(error);
    CHECK(error.starts_with("x.npy: "));
    CHECK(error.find(part) != std::string::npos);
  };
  const std::string whole = File("'<f4'", "(2, 3)", Bytes<float>({0, 1, 2, 3, 4, 5}));
  CHECK(ErrorOf(whole).empty());
  for (size_t cut = 0; cut < whole.size(); ++cut)
    CHECK_FALSE(ErrorOf(whole.substr(0, cut)).empty());
  refused(whole + "x", "are not the 25 bytes that follow");
  refused("a,b\n1,2\n", "not a .npy file");
  refused(File("'<c8'", "(1,)", std::string(8, '\0')), "elements of type '<c8' are not supported");
  refused(File("'<U3'", "(1,)", std::string(12, '\0')), "elements of type '<U3'");
  refused(File("'|O'", "(1,)", "x"), "elements of type '|O'");
  refused(File("[('a', '<f4')]", "(1,)", Bytes<float>({1})), "records, not numbers");
  refused(File("'<i8'", "(1,)", Bytes<int64_t>({(1 << 24) + 1})), "it holds 16777217");
  refused(File("'<u8'", "(1,)", Bytes<uint64_t>({std::numeric_limits<uint64_t>::max()})),
          "it holds 18446744073709551615");
  refused(File("'<f4'", "(4611686018427387904, 4, 3)", std::string(12, '\0')), "its header");
  refused(File("'<f4'", "(-1,)", Bytes<float>({1})), "its shape is damaged");
  refused(File("'<f4'", "(1 1)", Bytes<float>({1})), "its shape is damaged");
  std::string axes = "(";
  for (int i = 0; i < 65; ++i) axes += "1, ";
  refused(File("'<f4'", axes + ")", Bytes<float>({1})), "its shape has more than 64 axes");
  refused(File("'<f4'", "1", Bytes<float>({1})), "its shape is damaged");
  refused(File("'<f4'", "(99999999999999999999,)", ""), "its shape is damaged");
  refused(File("'<f4'", "(1,)", Bytes<float>({1}), false, 9), "version 9");
  refused("\x93NUMPY" + std::string("\2\0\xff\xff\xff\xff{}", 8), "the file ends in its header");
}

}  // namespace
}  // namespace mxtrain::report
