// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/mapped_file.h"

#include <doctest/doctest.h>

#include <utility>

#include "tests/support/error_message.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::test {
namespace {

TEST_CASE("a mapped file has the bytes of the file, also after it was replaced") {
  const TempDir dir;
  dir.Write("a", std::string("begin\0end", 9));
  dir.Write("b", "other");
  MappedFile first(dir.path("a"));
  std::filesystem::rename(dir.path("b"), dir.path("a"));
  CHECK(first.bytes() == std::string_view("begin\0end", 9));
  const MappedFile moved(std::move(first));
  CHECK(moved.bytes() == std::string_view("begin\0end", 9));
  CHECK(MappedFile(dir.path("a")).bytes() == "other");
}

TEST_CASE("what cannot be mapped is an error with its reason; an empty file is empty") {
  const TempDir dir;
  dir.Write("empty", "");
  CHECK(MappedFile(dir.path("empty")).bytes().empty());
  CHECK(Says(MessageOf([&] { MappedFile file(dir.path("none")); }), "No such file"));
  CHECK(Says(MessageOf([&] { MappedFile file(dir.path()); }), "it is not a file"));
}

}  // namespace
}  // namespace mxtrain::test
