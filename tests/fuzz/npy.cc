// SPDX-License-Identifier: Apache-2.0
// NumPy files, as given with --input NAME=FILE.npy; also with a length of the header that fits.
#include "app/report/npy.h"

#include <algorithm>

#include "tests/fuzz/fuzz_target.h"

namespace mxtrain::fuzz {
namespace {

std::string FileOf(const std::string& shape, const std::string& elements, bool fortran = false) {
  const std::string header = format("{{'descr': '|u1', 'fortran_order': {}, 'shape': ({}), }}\n",
                                    fortran ? "True" : "False", shape);
  std::string length;
  for (int i = 0; i < 4; ++i) length += static_cast<char>(header.size() >> 8 * i & 0xff);
  return "\x93NUMPY" + std::string("\2\0", 2) + length + header + elements;
}

}  // namespace

std::vector<std::string> LargeInputs() {
  std::string axes;
  for (int i = 0; i < 200'000; ++i) axes += "1,";
  return {FileOf(axes + "200000", std::string(200'000, '\1'), true),
          FileOf("9223372036854775807, 9223372036854775807", std::string(1 << 20, '\0')),
          FileOf(std::string(400'000, ' '), "\1"), FileOf(std::string(400'000, '9'), "\1")};
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain;
  using namespace mxtrain::fuzz;
  std::string bytes(TextOf(data, size));
  MayRefuse([&] { report::ParseNpy(bytes, "input"); });
  constexpr size_t kBefore = 10;  // magic, version, two bytes of length
  if (bytes.size() < kBefore || bytes[6] != 1) return 0;
  const size_t end = bytes.find('\n', kBefore),
               length =
                   std::min<size_t>(0xffff, (end == bytes.npos ? bytes.size() : end) - kBefore);
  bytes[8] = static_cast<char>(length & 0xff);
  bytes[9] = static_cast<char>(length >> 8);
  MayRefuse([&] { report::ParseNpy(bytes, "input"); });
  return 0;
}
