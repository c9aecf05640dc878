// SPDX-License-Identifier: Apache-2.0
// Archives of images: the list, every image, the parts of a data set, and the source.
#include <cstdlib>

#include "mxtrain/io/image_archive.h"
#include "tests/fuzz/source.h"
#include "tests/support/tar_bytes.h"

namespace mxtrain::fuzz {

std::vector<std::string> LargeInputs() {
  std::vector<test::TarEntry> entries;
  for (int i = 0; i < 2000; ++i) entries.push_back({"a/" + std::to_string(i) + ".jpg", "x"});
  const std::string many = test::TarOf(entries);
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += "a/";
  return {many, many.substr(0, many.size() / 2),
          std::string("PK\x03\x04", 4) + std::string(1 << 20, '\0'),
          test::TarOf({{deep + "1.jpg", std::string(1 << 20, 'x')}})};
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain;
  using namespace mxtrain::fuzz;
  Scratch().Write("a.tar.xz", TextOf(data, size));  // a name by which every form is opened
  const std::string path = Scratch().path("a.tar.xz");
  io::IsImageArchive(path);
  MayRefuse([&] {
    const io::ImageArchive archive(path);
    std::string bytes, again;
    for (int64_t i = 0; i < archive.size(); ++i) {
      const std::string& name = archive.Name(i);
      if (name.starts_with('/') || ("/" + name + "/").find("/../") != std::string::npos)
        std::abort();
      MayRefuse([&] {
        archive.Read(i, &bytes);
        archive.Read(i, &again);
        if (bytes != again) std::abort();
      });
    }
    io::PartsOf(archive);
  });
  ReadAll("image_archive", {{"path", path}});
  return 0;
}
