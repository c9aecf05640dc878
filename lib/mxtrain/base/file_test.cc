#include "mxtrain/base/file.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "mxtrain/base/error.h"

namespace mxtrain {
namespace {

namespace fs = std::filesystem;

class TempFolder {
 public:
  TempFolder() : path_(fs::temp_directory_path() / ("mxtrain_file_test_" + std::to_string(getpid()))) { fs::create_directories(path_); }
  ~TempFolder() { fs::remove_all(path_); }
  std::string File(const std::string& name) const { return (path_ / name).string(); }
  int64_t Count() const { return std::distance(fs::directory_iterator(path_), fs::directory_iterator()); }

 private:
  fs::path path_;
};

ErrorKind KindOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.kind();
  }
  return ErrorKind::kBug;
}

const std::string kText = "plain text, plain text, plain text\n";
// The same text as written by gzip.
const unsigned char kGzip[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xff, 0x2b, 0xc8, 0x49, 0xcc, 0xcc, 0x53, 0x28, 0x49,
                               0xad, 0x28, 0xd1, 0x51, 0x28, 0xc0, 0xca, 0xe6, 0x02, 0x00, 0x82, 0x05, 0x44, 0xf1, 0x23, 0x00, 0x00, 0x00};
std::string Gzip() {
  return std::string(reinterpret_cast<const char*>(kGzip), sizeof kGzip);
}

TEST_CASE("an atomic write replaces the file whole and leaves nothing beside it") {
  const TempFolder folder;
  const std::string path = folder.File("a.bin");
  std::string large(1 << 20, 'x');
  large[12345] = '\0';
  WriteFileAtomically(path, "old");
  WriteFileAtomically(path, large);
  CHECK(ReadFile(path) == large);
  WriteFileAtomically(path, "");
  CHECK(ReadFile(path).empty());
  CHECK(folder.Count() == 1);
}

TEST_CASE("a write that fails leaves the old file and nothing beside it") {
  const TempFolder folder;
  fs::create_directory(folder.File("sub"));
  CHECK(KindOf([&] { WriteFileAtomically(folder.File("sub"), "x"); }) == ErrorKind::kFileSystem);  // cannot replace a folder
  CHECK(folder.Count() == 1);
  CHECK(KindOf([&] { WriteFileAtomically(folder.File("none/a"), "x"); }) == ErrorKind::kFileSystem);
}

TEST_CASE("missing files and folders are named") {
  const TempFolder folder;
  const std::string path = folder.File("missing");
  CHECK_THROWS_WITH_AS(ReadFile(path), ("cannot open " + path + ": No such file or directory").c_str(), Error);
  CHECK_THROWS_WITH_AS(ReadFile(folder.File("")), ("cannot read " + folder.File("") + ": it is a folder").c_str(), Error);
}

TEST_CASE("gzip is unpacked, plain bytes pass, limits hold") {
  const TempFolder folder;
  const std::string packed = folder.File("a.gz"), plain = folder.File("a");
  WriteFileAtomically(packed, Gzip());
  WriteFileAtomically(plain, kText);
  CHECK(ReadMaybeGzip(packed, 1000) == kText);
  CHECK(ReadMaybeGzip(plain, 1000) == kText);
  CHECK(ReadMaybeGzip(packed, kText.size()) == kText);
  CHECK(KindOf([&] { ReadMaybeGzip(packed, kText.size() - 1); }) == ErrorKind::kData);
  CHECK(KindOf([&] { ReadMaybeGzip(plain, kText.size() - 1); }) == ErrorKind::kData);
}

TEST_CASE("damaged gzip is an error wherever it is cut, and when its check sum is wrong") {
  const TempFolder folder;
  const std::string path = folder.File("a.gz");
  for (size_t size = 3; size < sizeof kGzip; ++size) {
    WriteFileAtomically(path, Gzip().substr(0, size));
    CAPTURE(size);
    CHECK_THROWS_WITH_AS(ReadMaybeGzip(path, 1000), (path + " is damaged: its gzip data end early or do not check").c_str(), Error);
  }
  std::string flipped = Gzip();
  flipped[flipped.size() - 6] ^= 1;
  WriteFileAtomically(path, flipped);
  CHECK(KindOf([&] { ReadMaybeGzip(path, 1000); }) == ErrorKind::kData);
}

TEST_CASE("gzip members one after another are one file") {
  const TempFolder folder;
  WriteFileAtomically(folder.File("a.gz"), Gzip() + Gzip());
  CHECK(ReadMaybeGzip(folder.File("a.gz"), 1000) == kText + kText);
}

TEST_CASE("what killed processes left beside their files is removed, and nothing else") {
  const TempFolder folder;
  // Linux numbers no process so high; this one lives; the others are no files of WriteFileAtomically.
  const std::vector<std::string> stay = {
      "last", "last.tmp-" + std::to_string(getpid()), "last.tmp-", "last.tmp-4194305x", "last.tmp--4194305", "4194305", "last.tmp-0"};
  for (const std::string& name : stay) WriteFileAtomically(folder.File(name), kText);
  for (const char* name : {"last.tmp-4194305", "best.new.tmp-4194306"}) WriteFileAtomically(folder.File(name), kText);
  fs::create_directory(folder.File("folder.tmp-4194305"));
  CHECK(RemoveAbandonedFiles(fs::path(folder.File("last")).parent_path().string()) == 2);
  for (const std::string& name : stay) {
    CAPTURE(name);
    CHECK(fs::exists(folder.File(name)));
  }
  CHECK(fs::exists(folder.File("folder.tmp-4194305")));
  CHECK_FALSE(fs::exists(folder.File("last.tmp-4194305")));
  CHECK_FALSE(fs::exists(folder.File("best.new.tmp-4194306")));
  CHECK(RemoveAbandonedFiles(folder.File("absent")) == 0);
}

TEST_CASE("the check sum depends on every byte") {
  CHECK(Checksum("") == 0x2d06800538d394c2ull);  // XXH3-64 of nothing, from its specification
  CHECK(Checksum("abc") != Checksum("abd"));
}

}  // namespace
}  // namespace mxtrain
