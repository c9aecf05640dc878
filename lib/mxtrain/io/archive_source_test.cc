// SPDX-License-Identifier: Apache-2.0
// Tars are written byte by byte (tests/support/tar_bytes.h), zips and compressed tars by
// libarchive.
#include <archive.h>
#include <archive_entry.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/io/image_archive.h"
#include "mxtrain/io/source_factory.h"
#include "tests/support/tar_bytes.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::io {
namespace {

using test::TarEntry;
using test::TarOf;

std::string ImageBytes(int number, size_t size = 300) {
  std::string bytes = format("image {} ", number);
  for (size_t i = 0; bytes.size() < size; ++i)
    bytes += static_cast<char>('a' + (static_cast<size_t>(number) * 7 + i * i) % 26);
  return bytes;
}

// `filter`: "" or gzip, xz; `deflate`: of zip.
void WriteByLibarchive(const std::string& path, bool zip, const std::string& filter, bool deflate,
                       const std::vector<TarEntry>& entries) {
  archive* const a = archive_write_new();
  if (zip) {
    archive_write_set_format_zip(a);
    deflate ? archive_write_zip_set_compression_deflate(a)
            : archive_write_zip_set_compression_store(a);
  } else {
    archive_write_set_format_pax_restricted(a);
    if (filter == "gzip") archive_write_add_filter_gzip(a);
    if (filter == "xz") archive_write_add_filter_xz(a);
  }
  REQUIRE(archive_write_open_filename(a, path.c_str()) == ARCHIVE_OK);
  for (const auto& [name, bytes, type] : entries) {
    archive_entry* const entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    REQUIRE(archive_write_header(a, entry) == ARCHIVE_OK);
    REQUIRE(archive_write_data(a, bytes.data(), bytes.size()) ==
            static_cast<la_ssize_t>(bytes.size()));
    archive_entry_free(entry);
  }
  archive_write_close(a);
  archive_write_free(a);
}

// Of zip files (APPNOTE 4.4.7), bit by bit.
uint32_t Crc32(const std::string& bytes) {
  uint32_t sum = ~uint32_t{0};
  for (const char c : bytes) {
    sum ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0u);
  }
  return ~sum;
}

// A zip of stored files as Python's zipfile writes it: names that are not ASCII are marked as
// UTF-8.
std::string StoredZip(const std::vector<TarEntry>& entries) {
  const auto number = [](uint64_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i, value >>= 8) out += static_cast<char>(value & 0xff);
    return out;
  };
  std::string files, central;
  for (const auto& [name, bytes, type] : entries) {
    const bool ascii = std::ranges::all_of(name, [](char c) { return c > 0; });
    const std::string both = number(20, 2) + number(ascii ? 0 : 0x800, 2) + number(0, 2) +
                             number(0x21, 4) + number(Crc32(bytes), 4) + number(bytes.size(), 4) +
                             number(bytes.size(), 4) + number(name.size(), 2) + number(0, 2);
    central += "PK\1\2" + number(20, 2) + both + number(0, 10) + number(files.size(), 4) + name;
    files += "PK\3\4" + both + name + bytes;
  }
  return files + central + "PK\5\6" + number(0, 4) + number(entries.size(), 2) +
         number(entries.size(), 2) + number(central.size(), 4) + number(files.size(), 4) +
         number(0, 2);
}

std::vector<TarEntry> TwoClasses() {
  return {{"photos/dog/2.png", ImageBytes(2)},
          {"photos/cat/1.jpg", ImageBytes(1)},
          {"photos/dog/deep/3.jpg", ImageBytes(3, 5000)},
          {"photos/notes.txt", "no image"}};
}

void CheckTwoClasses(const std::string& path, bool held) {
  CAPTURE(path);
  CHECK(IsImageArchive(path));
  const auto source = MakeSource("image_archive", {{"path", path}});
  REQUIRE(source->size() == 3);
  CHECK(source->class_names() == std::vector<std::string>{"cat", "dog"});
  const int numbers[] = {1, 2, 3}, classes[] = {0, 1, 1};
  const char* const names[] = {"photos/cat/1.jpg", "photos/dog/2.png", "photos/dog/deep/3.jpg"};
  for (const int64_t i : {2, 0, 1, 2}) {  // in any order
    Sample sample;
    source->Read(i, &sample);
    CHECK(sample.data[0].encoded == ImageBytes(numbers[i], i == 2 ? 5000 : 300));
    CHECK(sample.labels[0].values[0] == static_cast<float>(classes[i]));
    CHECK(source->ClassOf(i) == classes[i]);
    CHECK(source->Name(i) == path + "/" + names[i]);
  }
  REQUIRE(source->warnings().size() == 1);
  CHECK(source->warnings()[0].find("1 file of " + path + " skipped, not named like a JPEG") == 0);
  CHECK((source->notes().size() == 1) == held);
}

TEST_CASE("images are read from tar and zip archives, in any order") {
  const test::TempDir folder;
  folder.Write("plain.tar", TarOf(TwoClasses()));
  CheckTwoClasses(folder.path() + "/plain.tar", false);
  struct Kind {
    const char* name;
    bool zip;
    const char* filter;
    bool deflate, held;
  };
  for (const auto& [name, zip, filter, deflate, held] :
       {Kind{"stored.zip", true, "", false, false}, Kind{"deflated.zip", true, "", true, false},
        Kind{"pax.tar", false, "", false, false}, Kind{"a.tar.gz", false, "gzip", false, true},
        Kind{"a.tar.xz", false, "xz", false, true}}) {
    const std::string path = folder.path() + "/" + name;
    WriteByLibarchive(path, zip, filter, deflate, TwoClasses());
    CheckTwoClasses(path, held);
  }
}

TEST_CASE("what leads out of an archive, links and hidden files are no images") {
  const test::TempDir folder;
  folder.Write("a.tar", TarOf({{"../cat/1.jpg", ImageBytes(1)},
                               {"/etc/cat/2.jpg", ImageBytes(2)},
                               {"cat/../../3.jpg", ImageBytes(3)},
                               {"cat/link.jpg", "/etc/passwd", '2'},
                               {"cat/.hidden.jpg", ImageBytes(4)},
                               {"__MACOSX/cat/5.jpg", ImageBytes(5)},
                               {"./cat/6.jpg", ImageBytes(6)},
                               {"dog/7.jpg", ImageBytes(7)},
                               {"dog/7.jpg", ImageBytes(8)}}));
  const auto source = MakeSource("image_archive", {{"path", folder.path() + "/a.tar"}});
  REQUIRE(source->size() == 2);
  CHECK(source->Name(0).ends_with("a.tar/cat/6.jpg"));
  Sample sample;
  source->Read(1, &sample);
  CHECK(sample.data[0].encoded == ImageBytes(8));  // the later of two
  REQUIRE(source->warnings().size() == 2);
  CHECK(source->warnings()[0].find("1 file") == 0);
  CHECK(source->warnings()[0].find("links or special files (first: cat/link.jpg)") !=
        std::string::npos);
  CHECK(source->warnings()[1].find("3 files") == 0);
  CHECK(source->warnings()[1].find("lead out of it (first: ../cat/1.jpg)") != std::string::npos);
}

TEST_CASE("parts of a data set in an archive are named, and read one by one") {
  const test::TempDir folder;
  const std::string path = folder.path() + "/a.tar";
  folder.Write("a.tar", TarOf({{"set/train/cat/1.jpg", ImageBytes(1)},
                               {"set/train/dog/2.jpg", ImageBytes(2)},
                               {"set/val/cat/3.jpg", ImageBytes(3)}}));
  const ArchiveParts parts = PartsOf(ImageArchive(path));
  CHECK(parts.train == "set/train");
  CHECK(parts.val == "set/val");
  CHECK(parts.test.empty());
  CHECK_THROWS_WITH(MakeSource("image_archive", {{"path", path}}),
                    doctest::Contains("which look like the parts of a data set; name the one to "
                                      "read: folder: set/train"));
  const auto val =
      MakeSource("image_archive", {{"path", path}, {"folder", "set/val"}, {"classes", "cat,dog"}});
  CHECK(val->size() == 1);
  CHECK(val->warnings().size() == 1);  // no dog
  CHECK_THROWS_WITH(
      MakeSource("image_archive", {{"path", path}, {"folder", "set/train"}, {"classes", "cat"}}),
      doctest::Contains("the folder 'dog' in"));
  const auto all = MakeSource("image_archive", {{"path", path}, {"labels", "False"}});
  CHECK(all->size() == 3);
  CHECK(all->label_fields().empty());
}

TEST_CASE("of a zip of many images each is read") {
  const test::TempDir dir;
  std::vector<TarEntry> entries;
  for (int i = 0; i < 60; ++i)
    entries.push_back({format("{}/{:02}.jpg", i % 2 ? "dog" : "cat", i),
                       ImageBytes(i, 200 + static_cast<size_t>(i) * 50)});
  for (const bool deflate : {true, false}) {
    const std::string path = dir.path(deflate ? "deflated.zip" : "stored.zip");
    WriteByLibarchive(path, true, "", deflate, entries);
    const ImageArchive images(path);
    REQUIRE(images.size() == 60);
    CHECK(images.held() == 0);
    std::string bytes;
    for (int64_t i = 0; i < images.size(); ++i) {
      images.Read(i, &bytes);
      const int number = std::stoi(images.Name(i).substr(4));
      CHECK(bytes == ImageBytes(number, 200 + static_cast<size_t>(number) * 50));
    }
  }
  // A damaged one is told when it is read.
  std::fstream file(dir.path("deflated.zip"), std::ios::in | std::ios::out | std::ios::binary);
  std::string all((std::istreambuf_iterator<char>(file)), {});
  const size_t name = all.find("dog/55.jpg");
  REQUIRE(name != all.npos);
  file.clear();
  file.seekp(static_cast<std::streamoff>(name) + 30);
  file.write("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 10);
  file.close();
  const ImageArchive damaged(dir.path("deflated.zip"));
  std::string bytes;
  int refused = 0;
  for (int64_t i = 0; i < damaged.size(); ++i) {
    try {
      damaged.Read(i, &bytes);
    } catch (const Error& error) {
      ++refused;
      CHECK(damaged.Name(i) == "dog/55.jpg");
      CHECK(std::string(error.what()).find("dog/55.jpg is damaged") != std::string::npos);
    }
  }
  CHECK(refused == 1);
}

// A program of the "C" locale, as this one, got no name for these from libarchive: whole classes
// were missing, "not named like a JPEG (first: )".
TEST_CASE("of a zip whose names are marked as UTF-8 each image is read") {
  const test::TempDir dir;
  std::string bytes;
  const std::vector<TarEntry> entries = {{"Bäume/Eiche 1.jpg", ImageBytes(1)},
                                         {"cat/plain.jpg", ImageBytes(2)},
                                         {"cat/ネコ.png", ImageBytes(3)},
                                         {"žena/Crème brûlée.jpg", ImageBytes(4)}};
  dir.Write("plain.zip", StoredZip(TwoClasses()));
  CheckTwoClasses(dir.path("plain.zip"), false);
  dir.Write("marked.zip", StoredZip(entries));
  const auto source = MakeSource("image_archive", {{"path", dir.path("marked.zip")}});
  CHECK(source->warnings().empty());
  CHECK(source->class_names() == std::vector<std::string>{"Bäume", "cat", "žena"});
  const ImageArchive images(dir.path("marked.zip"));
  REQUIRE(images.size() == 4);
  for (size_t i = 0; i < entries.size(); ++i) {
    CHECK(images.Name(static_cast<int64_t>(i)) == entries[i].name);
    images.Read(static_cast<int64_t>(i), &bytes);
    CHECK(bytes == ImageBytes(static_cast<int>(i) + 1));
  }
}

TEST_CASE("an archive with a name that cannot be read is refused") {
  const test::TempDir dir;
  dir.Write("nameless.zip", StoredZip({{"cat/1.jpg", ImageBytes(1)}, {"", ImageBytes(2)}}));
  CHECK_THROWS_WITH(ImageArchive(dir.path("nameless.zip")),
                    doctest::Contains("the name of the file after cat/1.jpg cannot be read"));
}

TEST_CASE("archives that are cut off or hold no images are refused") {
  const test::TempDir folder;
  const std::string whole = TarOf(TwoClasses());
  folder.Write("cut.tar", whole.substr(0, 2200));
  CHECK_THROWS_WITH(MakeSource("image_archive", {{"path", folder.path() + "/cut.tar"}}),
                    doctest::Contains("cannot be read as an archive"));
  folder.Write("none.tar", TarOf({{"a.txt", "text"}}));
  CHECK_THROWS_WITH(MakeSource("image_archive", {{"path", folder.path() + "/none.tar"}}),
                    doctest::Contains("holds no images"));
  folder.Write("flat.tar", TarOf({{"1.jpg", ImageBytes(1)}}));
  CHECK_THROWS_WITH(MakeSource("image_archive", {{"path", folder.path() + "/flat.tar"}}),
                    doctest::Contains("one folder per class is expected"));
  folder.Write("text.tar", "no archive");
  CHECK_FALSE(IsImageArchive(folder.path() + "/text.tar"));
  CHECK_THROWS_AS(MakeSource("image_archive", {{"path", folder.path()}}), Error);
}

TEST_CASE("a compressed tar that unpacks to very much is refused before it does") {
  const test::TempDir folder;
  // 32 GiB in a header of 512 bytes: nothing of it is there.
  std::string tar = TarOf({{"cat/1.bin", ""}});
  // In base 256, as GNU tar writes sizes from 8 GiB on.
  tar.replace(124, 12, std::string("\x80\0\0\0\0\0\0\x8\0\0\0\0", 12));
  unsigned sum = 0;
  tar.replace(148, 8, "        ");
  for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(tar[i]);
  tar.replace(148, 8, format("{:06o}", sum) + std::string("\0 ", 2));
  archive* const a = archive_write_new();
  archive_write_set_format_raw(a);
  archive_write_add_filter_gzip(a);
  const std::string path = folder.path() + "/bomb.tar.gz";
  REQUIRE(archive_write_open_filename(a, path.c_str()) == ARCHIVE_OK);
  archive_entry* const entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_pathname(entry, "data");
  REQUIRE(archive_write_header(a, entry) == ARCHIVE_OK);
  archive_write_data(a, tar.data(), tar.size());
  archive_entry_free(entry);
  archive_write_close(a);
  archive_write_free(a);
  CHECK_THROWS_WITH(ImageArchive{path}, doctest::Contains("holds more than 16"));
}

}  // namespace
}  // namespace mxtrain::io
