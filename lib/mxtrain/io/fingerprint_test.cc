// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/fingerprint.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "mxtrain/io/image.h"
#include "mxtrain/io/source_factory.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::io {
namespace {

std::string EncodedImage(int side) {
  Image image;
  image.Resize(side, side, 1);
  return EncodePng(image);
}

void WritePhotos(const test::TempDir& folder, const std::string& root) {
  for (const char* name : {"cat/1.png", "cat/2.png", "dog/1.png"})
    folder.Write(root + "/" + name, EncodedImage(2));
}

std::string PrintOf(const std::string& kind, const Kwargs& kwargs) {
  return Fingerprint(*MakeSource(kind, kwargs));
}

TEST_CASE("a folder of images is identified by names, classes and sizes, wherever it is") {
  const test::TempDir folder;
  WritePhotos(folder, "here");
  WritePhotos(folder, "there");
  const auto print = [&](const char* root) {
    return PrintOf("image_folder", {{"path", folder.path(root)}});
  };
  const std::string first = print("here");
  CHECK(first.starts_with("3 records, "));
  CHECK(print("there") == first);
  std::filesystem::rename(folder.path("there/cat/2.png"), folder.path("there/cat/3.png"));
  CHECK(print("there") != first);
  std::filesystem::rename(folder.path("there/cat/3.png"), folder.path("there/dog/2.png"));
  CHECK(print("there") != first);
  std::filesystem::rename(folder.path("there/dog/2.png"), folder.path("there/cat/2.png"));
  CHECK(print("there") == first);
  folder.Write("there/cat/2.png", EncodedImage(40));
  CHECK(print("there") != first);
  std::filesystem::remove(folder.path("there/cat/2.png"));
  CHECK(print("there").starts_with("2 records, "));
}

TEST_CASE("a table is identified by its values") {
  const test::TempDir folder;
  folder.Write("points.csv", "a,y\n1,0\n2,1\n");
  folder.Write("other.csv", "a,y\n1,0\n3,1\n");
  const auto print = [&](const char* file) {
    std::filesystem::copy_file(folder.path(file), folder.path("table.csv"),
                               std::filesystem::copy_options::overwrite_existing);
    return PrintOf("csv", {{"path", folder.path("table.csv")},
                           {"data_fields", "data=a"},
                           {"label_fields", "label=y"}});
  };
  const std::string first = print("points.csv");
  CHECK(print("points.csv") == first);
  CHECK(print("other.csv") != first);
}

}  // namespace
}  // namespace mxtrain::io
