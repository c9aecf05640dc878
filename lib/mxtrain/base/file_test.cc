// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>

#include "mxtrain/base/error.h"
#include "mxtrain/base/stream_path.h"

namespace mxtrain {
namespace {

namespace fs = std::filesystem;

class TempFolder {
 public:
  TempFolder()
      : path_(fs::temp_directory_path() / ("mxtrain_file_test_" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~TempFolder() { fs::remove_all(path_); }
  std::string File(const std::string& name) const { return (path_ / name).string(); }
  int64_t Count() const {
    return std::distance(fs::directory_iterator(path_), fs::directory_iterator());
  }

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
const unsigned char kGzip[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
                               0xff, 0x2b, 0xc8, 0x49, 0xcc, 0xcc, 0x53, 0x28, 0x49,
                               0xad, 0x28, 0xd1, 0x51, 0x28, 0xc0, 0xca, 0xe6, 0x02,
                               0x00, 0x82, 0x05, 0x44, 0xf1, 0x23, 0x00, 0x00, 0x00};
std::string Gzip() {
  return std::string(reinterpret_cast<const char*>(kGzip), sizeof kGzip);
}

TEST_CASE("an atomic write replaces the whole file and leaves no temporary file") {
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

TEST_CASE("a write that fails leaves the old file and no temporary file") {
  const TempFolder folder;
  fs::create_directory(folder.File("sub"));
  // Cannot replace a folder.
  CHECK(KindOf([&] { WriteFileAtomically(folder.File("sub"), "x"); }) == ErrorKind::kFileSystem);
  CHECK(folder.Count() == 1);
  CHECK(KindOf([&] { WriteFileAtomically(folder.File("none/a"), "x"); }) == ErrorKind::kFileSystem);
}

TEST_CASE("a file written in pieces appears at the end, or never") {
  const TempFolder folder;
  const std::string path = folder.File("a.bin"), large(200'000, 'x');
  WriteFileAtomically(path, "old");
  {
    FileWriter file(path);
    file.Write("begin ");
    file.Write(large);
    file.Write(" end");
    CHECK(ReadFile(path) == "old");
  }
  CHECK(ReadFile(path) == "old");
  CHECK(folder.Count() == 1);
  FileWriter file(path);
  for (const std::string& piece : {std::string("begin "), large, std::string(" end")})
    file.Write(piece);
  file.Commit();
  CHECK(ReadFile(path) == "begin " + large + " end");
  CHECK(folder.Count() == 1);
}

// `path` now links to `foreign`, which contains "foreign".
void Link(const std::string& path, const std::string& foreign) {
  WriteFileAtomically(foreign, "foreign");
  fs::create_symlink(foreign, path);
}

TEST_CASE("no writer follows a link to another file") {
  const TempFolder folder;
  const std::string foreign = folder.File("foreign"), own = folder.File("own"),
                    beside = own + ".tmp-" + std::to_string(getpid());
  SUBCASE("the file to replace") {
    Link(own, foreign);
    WriteFileAtomically(own, "mine");
    CHECK(ReadFile(own) == "mine");
    CHECK_FALSE(fs::is_symlink(own));
  }
  SUBCASE("the temporary name") {
    Link(beside, foreign);
    WriteFileAtomically(own, "mine");
    CHECK(ReadFile(own) == "mine");
    CHECK_FALSE(fs::exists(beside));
  }
  SUBCASE("a leftover temporary file of the same name and process") {
    WriteFileAtomically(beside, "left");
    fs::create_hard_link(beside, foreign);
    WriteFileAtomically(own, "mine");
    CHECK(ReadFile(foreign) == "left");
    WriteFileAtomically(foreign, "foreign");
  }
  SUBCASE("a log") {
    Link(own, foreign);
    CHECK_THROWS_WITH_AS(
        FileAppender{own},
        ("cannot open " + own + ": it is a symbolic link, which is not allowed here; remove it")
            .c_str(),
        Error);
  }
  SUBCASE("a log with a second name") {
    WriteFileAtomically(foreign, "foreign");
    fs::create_hard_link(foreign, own);
    FileAppender(own).Append(", mine");
    CHECK(ReadFile(own) == "foreign, mine");
  }
  SUBCASE("a new file") {
    Link(own, foreign);
    CHECK(KindOf([&] { FileAppender(own, FileAppender::Begin::kNew); }) == ErrorKind::kFileSystem);
  }
  SUBCASE("an owned folder") {
    fs::create_directory(folder.File("other"));
    fs::create_directory_symlink(folder.File("other"), own);
    CHECK_THROWS_WITH_AS(
        MakeOwnFolder(own),
        ("cannot create the folder " + own + ": a symbolic link is in its place; remove it")
            .c_str(),
        Error);
    WriteFileAtomically(foreign, "foreign");
  }
  CHECK(ReadFile(foreign) == "foreign");
}

TEST_CASE("a log grows by complete records, also when it is continued") {
  const TempFolder folder;
  const std::string path = folder.File("log");
  FileAppender(path).Append("one\n");
  FileAppender log(path);
  log.Append("two\n");
  CHECK(ReadFile(path) == "one\ntwo\n");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit ten{10, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &ten);
  std::string text;
  try {
    log.Append("three\n");
  } catch (const Error& error) {
    text = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  CHECK(text == "cannot write " + path +
                    ": File too large; the file size limit was reached (ulimit -f, or that of the "
                    "file system); raise it");
  CHECK(ReadFile(path) == "one\ntwo\n");
}

TEST_CASE("pipes and devices are rejected without blocking") {
  const TempFolder folder;
  const std::string pipe = folder.File("pipe"), link = folder.File("link");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  fs::create_symlink("/dev/zero", link);
  CHECK_THROWS_WITH_AS(ReadFile(pipe),
                       ("cannot read " + pipe + ": it is a pipe, not a regular file").c_str(),
                       Error);
  CHECK_THROWS_WITH_AS(ReadFile(link),
                       ("cannot read " + link + ": it is a device, not a regular file").c_str(),
                       Error);
  CHECK_THROWS_WITH_AS(WriteFileAtomically(pipe, "x"),
                       ("cannot write " + pipe + ": it is a pipe, not a regular file").c_str(),
                       Error);
  CHECK_THROWS_WITH_AS(WriteFileAtomically("/dev/null", "x"),
                       "cannot write /dev/null: it is a device, not a regular file", Error);
  CHECK_THROWS_WITH_AS(FileAppender{pipe},
                       ("cannot write " + pipe + ": it is a pipe, not a regular file").c_str(),
                       Error);
  std::thread writer([&] {
    const FileDescriptor end(pipe, O_WRONLY, "open");
    CHECK(write(end.get(), "through", 7) == 7);
  });
  CHECK(ReadFile(pipe, 100, Readable::kFileOrPipe) == "through");
  writer.join();
}

TEST_CASE("names of what a process has open are streams, and no rename replaces them") {
  const TempFolder folder;
  for (const char* path : {"/dev/null", "/dev/fd/1", "/proc/self/fd/1", "/dev/stdout"})
    CHECK_MESSAGE(IsStream(path), path);
  const std::string file = folder.File("file"), link = folder.File("link"),
                    out = folder.File("out"), pipe = folder.File("pipe");
  WriteFileAtomically(file, "old");
  fs::create_symlink(file, link);
  fs::create_symlink("/proc/self/fd/1", out);
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(IsStream(out));
  CHECK(IsStream(pipe));
  for (const std::string& path :
       {file, link, folder.File("none"), folder.File("no/where"), std::string(),
        std::string("none"), std::string("a\0b", 3), folder.File("")})
    CHECK_MESSAGE(!IsStream(path), path);
  // As root a rename would replace /dev/stdout for the whole machine.
  for (const std::string& path : {out, std::string("/proc/self/fd/1")})
    CHECK_THROWS_AS(WriteFileAtomically(path, "new"), Error);
  CHECK(fs::is_symlink(out));
}

TEST_CASE("a file larger than the limit is not read") {
  const TempFolder folder;
  const std::string path = folder.File("a");
  WriteFileAtomically(path, kText);
  CHECK(ReadFile(path, kText.size()) == kText);
  CHECK_THROWS_WITH_AS(ReadFile(path, kText.size() - 1),
                       (path + " has more than 34 bytes, the limit for reading").c_str(), Error);
  fs::resize_file(path, uintmax_t{1} << 40);  // sparse: takes no space
  CHECK(KindOf([&] { ReadFile(path, size_t{1} << 30); }) == ErrorKind::kData);
}

TEST_CASE("a name with a NUL is not truncated there") {
  const TempFolder folder;
  const std::string path = folder.File(std::string("a\0b", 3));
  WriteFileAtomically(folder.File("a"), kText);
  CHECK(KindOf([&] { ReadFile(path); }) == ErrorKind::kFileSystem);
  CHECK(KindOf([&] { WriteFileAtomically(path, "x"); }) == ErrorKind::kFileSystem);
  CHECK(KindOf([&] { MakeFolders(path); }) == ErrorKind::kFileSystem);
  CHECK(ReadFile(folder.File("a")) == kText);
}

TEST_CASE("a name of full length can be written") {
  const TempFolder folder;
  const std::string path = folder.File(std::string(255, 'n'));
  WriteFileAtomically(path, kText);
  CHECK(ReadFile(path) == kText);
  CHECK(folder.Count() == 1);
}

TEST_CASE("a link is replaced, everything else is kept") {
  const TempFolder folder;
  const std::string link = folder.File("latest");
  CHECK(ReplaceLink("one", link));
  CHECK(ReplaceLink("two", link));
  CHECK(fs::read_symlink(link) == "two");
  fs::remove(link);
  fs::create_directory(link);
  CHECK_FALSE(ReplaceLink("three", link));
  CHECK(folder.Count() == 1);
}

TEST_CASE("errors name missing files and folders") {
  const TempFolder folder;
  const std::string path = folder.File("missing");
  CHECK_THROWS_WITH_AS(ReadFile(path),
                       ("cannot open " + path + ": No such file or directory").c_str(), Error);
  CHECK_THROWS_WITH_AS(ReadFile(folder.File("")),
                       ("cannot read " + folder.File("") + ": it is a folder").c_str(), Error);
}

TEST_CASE("gzip is decompressed, plain bytes pass, limits hold") {
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

TEST_CASE("damaged gzip is an error wherever it is truncated, and when its checksum is wrong") {
  const TempFolder folder;
  const std::string path = folder.File("a.gz");
  for (size_t size = 3; size < sizeof kGzip; ++size) {
    WriteFileAtomically(path, Gzip().substr(0, size));
    CAPTURE(size);
    CHECK_THROWS_WITH_AS(
        ReadMaybeGzip(path, 1000),
        (path + " is damaged: its gzip data are truncated or fail the checksum").c_str(), Error);
  }
  std::string flipped = Gzip();
  flipped[flipped.size() - 6] ^= 1;
  WriteFileAtomically(path, flipped);
  CHECK(KindOf([&] { ReadMaybeGzip(path, 1000); }) == ErrorKind::kData);
}

TEST_CASE("consecutive gzip members are one file") {
  const TempFolder folder;
  WriteFileAtomically(folder.File("a.gz"), Gzip() + Gzip());
  CHECK(ReadMaybeGzip(folder.File("a.gz"), 1000) == kText + kText);
}

TEST_CASE("the beginning of a file, plain or gzip") {
  const TempFolder folder;
  const std::string packed = folder.File("a.gz"), plain = folder.File("a");
  WriteFileAtomically(packed, Gzip() + Gzip());
  WriteFileAtomically(plain, kText + kText);
  const size_t all = 2 * kText.size();
  for (size_t size = 0; size <= all + 1; ++size) {
    CAPTURE(size);
    CHECK(ReadBeginMaybeGzip(packed, size) == (kText + kText).substr(0, size));
    CHECK(ReadBeginMaybeGzip(plain, size) == (kText + kText).substr(0, size));
  }
  WriteFileAtomically(packed, Gzip().substr(0, 20));
  CHECK(KindOf([&] { ReadBeginMaybeGzip(packed, 1000); }) == ErrorKind::kData);
}

TEST_CASE("temporary files of killed processes are removed, and nothing else") {
  const TempFolder folder;
  // Linux has no process number this high; the other process is alive; the rest are not files of
  // WriteFileAtomically.
  const std::vector<std::string> stay = {"last",
                                         "last.tmp-" + std::to_string(getpid()),
                                         "last.tmp-",
                                         "last.tmp-4194305x",
                                         "last.tmp--4194305",
                                         "4194305",
                                         "last.tmp-0"};
  for (const std::string& name : stay) WriteFileAtomically(folder.File(name), kText);
  for (const char* name : {"last.tmp-4194305", "best.new.tmp-4194306"})
    WriteFileAtomically(folder.File(name), kText);
  fs::create_directory(folder.File("folder.tmp-4194305"));
  fs::create_symlink("last", folder.File("latest.tmp-4194305"));
  CHECK(RemoveAbandonedFiles(fs::path(folder.File("last")).parent_path().string()) == 3);
  for (const std::string& name : stay) {
    CAPTURE(name);
    CHECK(fs::exists(folder.File(name)));
  }
  CHECK(fs::exists(folder.File("folder.tmp-4194305")));
  CHECK_FALSE(fs::exists(folder.File("last.tmp-4194305")));
  CHECK_FALSE(fs::exists(folder.File("best.new.tmp-4194306")));
  CHECK(RemoveAbandonedFiles(folder.File("absent")) == 0);
}

TEST_CASE("the checksum depends on every byte") {
  CHECK(Checksum("") == 0x2d06800538d394c2ull);  // XXH3-64 of nothing, from its specification
  CHECK(Checksum("abc") != Checksum("abd"));
  CHECK(Crc32("") == 0);
  CHECK(Crc32("123456789") == 0xcbf43926u);  // the check value of its specifications
  const std::string text(1000, 'x');
  RunningChecksum sum;
  CHECK(sum.value() == Checksum(""));
  for (size_t at = 0; at < text.size(); at += 7) sum.Add(std::string_view(text).substr(at, 7));
  CHECK(sum.value() == Checksum(text));
}

}  // namespace
}  // namespace mxtrain
