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

TEST_CASE("images without classes are identified in whatever folder they are") {
  const test::TempDir folder;
  for (const char* name : {"photos/1.png", "photos/2.png", "moved/1.png", "moved/2.png"})
    folder.Write(name, EncodedImage(2));
  folder.Write("photos.lst", "0\t1\tphotos/1.png\n1\t0\tphotos/2.png\n");
  folder.Write("moved.lst", "0\t1\tmoved/1.png\n1\t0\tmoved/2.png\n");
  folder.Write("others.lst", "0\t0\tmoved/1.png\n1\t0\tmoved/2.png\n");
  const auto print = [&](const char* list) {
    return PrintOf("list", {{"path", folder.path(list)}});
  };
  CHECK(print("photos.lst") == print("moved.lst"));
  CHECK(print("photos.lst") != print("others.lst"));
}

TEST_CASE("of fingerprints of older versions the numbers of records are compared") {
  const test::TempDir folder;
  WritePhotos(folder, "here");
  const std::string now = PrintOf("image_folder", {{"path", folder.path("here")}});
  CHECK(MayBeSameData(now, now));
  CHECK(MayBeSameData("3 records, 0123456789abcdef", now));
  CHECK(!MayBeSameData("4 records, 0123456789abcdef", now));
  CHECK(!MayBeSameData(now.substr(0, now.size() - 1) + "x", now));
}

TEST_CASE("a table is identified by its values, whatever it is called") {
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
  CHECK(PrintOf("csv", {{"path", folder.path("points.csv")},
                        {"data_fields", "data=a"},
                        {"label_fields", "label=y"}}) == first);
}

}  // namespace
}  // namespace mxtrain::io
