// SPDX-License-Identifier: Apache-2.0
// RecordIO: the file, bytes 0xff 0xfe between, what is beside it: an index, and checksums. The
// input is also written as a record, and must come back.
#include <cstdlib>
#include <filesystem>

#include "mxtrain/base/file.h"
#include "mxtrain/io/image_record.h"
#include "mxtrain/io/record_file.h"
#include "tests/fuzz/source.h"

namespace mxtrain::fuzz {

constexpr std::string_view kMagic = "\x0a\x23\xd7\xce";

std::string Repeated(std::string_view text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

std::vector<std::string> LargeInputs() {
  const std::string empty = std::string(kMagic) + std::string(4, '\0'),
                    first = std::string(kMagic) + std::string("\0\0\0\x20", 4),
                    middle = std::string(kMagic) + std::string("\0\0\0\x40", 4);
  return {
      Repeated(empty, 50'000),
      first + Repeated(middle, 50'000),
      Repeated(first, 50'000),
      Repeated(kMagic, 100'000),
      std::string(1 << 20, '\0'),
      std::string(kMagic) + std::string("\x18\0\0\0\xff\xff\xff\xff", 8) + std::string(20, '\0')};
}

void ReadRecords(const std::string& path) {
  for (const char* const kind : {"auto", "class", "boxes"})
    ReadAll("record", {{"path", path}, {"label_kind", kind}});
  MayRefuse([&] {
    const io::RecordReader reader(path);
    std::string bytes, begin;
    for (int64_t i = 0; i < reader.size(); ++i) {
      MayRefuse([&] {
        reader.Read(i, &bytes);
        reader.ReadBegin(i, 30, &begin);
        if (!bytes.starts_with(begin)) std::abort();
      });
    }
    // What is found when it is opened is told, and nothing more of one that can be read.
    if (reader.size() != io::VerifyRecords(path).records) std::abort();
  });
  MayRefuse([&] { io::VerifyRecords(path, io::ParseImageRecord); });
}

void CheckReturns(std::string_view bytes) {
  const std::string path = Scratch().path("written.rec");
  io::RecordWriter writer(path);
  for (size_t i = 0; i < 3; ++i) writer.Write(bytes.substr(std::min(i, bytes.size())));
  writer.Commit();
  const io::RecordReader reader(path);
  std::string read;
  for (size_t i = 0; i < 3; ++i) {
    reader.Read(static_cast<int64_t>(i), &read);
    if (read != bytes.substr(std::min(i, bytes.size()))) std::abort();
  }
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain::fuzz;
  const std::string_view bytes = TextOf(data, size);
  const size_t border = std::min(bytes.rfind("\xff\xfe"), size);
  const std::string_view beside = bytes.substr(std::min(border + 2, size));
  for (const char* name : {"a.rec", "bare.rec"}) Scratch().Write(name, bytes.substr(0, border));
  ReadRecords(Scratch().path("bare.rec"));
  if (!beside.empty()) {
    for (const char* name : {"a.idx", "a.rec.sums"}) {
      Scratch().Write(name, beside);
      ReadRecords(Scratch().path("a.rec"));
      std::filesystem::remove(Scratch().path(name));
    }
  }
  CheckReturns(bytes);
  return 0;
}
