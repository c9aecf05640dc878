// SPDX-License-Identifier: Apache-2.0
// Folders of images as disks and file servers hold them: links, folders of the system, parts of
// data sets, names composed in two ways.
#include <doctest/doctest.h>

#include <filesystem>

#include "mxtrain/base/error.h"
#include "mxtrain/io/folder_names.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/internal/composition.h"
#include "mxtrain/io/source_factory.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_checks.h"

using namespace mxtrain;
using namespace mxtrain::io;
using namespace mxtrain::test;

namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

void WriteImages(const TempDir& dir, const Strings& names) {
  Image image;
  image.Resize(1, 1, 1);
  for (const std::string& name : names) dir.Write(name, EncodePng(image));
}

void Link(const TempDir& dir, const std::string& target, const std::string& name) {
  fs::create_directory_symlink(target, dir.path(name));
}

// Paths below the folder.
Strings Names(const Source& source, const TempDir& dir) {
  Strings names;
  for (int64_t i = 0; i < source.size(); ++i)
    names.push_back(source.Name(i).substr(dir.path().size() + 1));
  return names;
}

std::unique_ptr<Source> OpenFolder(const TempDir& dir, const std::string& folder = "photos",
                                   const Kwargs& more = {}) {
  Kwargs kwargs{{"path", dir.path(folder)}};
  kwargs.insert(kwargs.end(), more.begin(), more.end());
  return MakeSource("image_folder", kwargs);
}

}  // namespace

TEST_CASE("image_folder: links to folders are followed, each folder once, and none upwards") {
  const TempDir dir;
  WriteImages(dir, {"photos/blue/1.png", "photos/red/2.png", "photos/red/deep/3.png", "disk/4.png",
                    "disk/more/5.png", "other/6.png"});
  Link(dir, "../../disk", "photos/red/linked");
  Link(dir, "../../disk/more", "photos/red/again");  // is in the one before, in order
  Link(dir, "deep", "photos/red/a_link_to_deep");
  Link(dir, "..", "disk/more/back");  // a loop, which leads to no new folder
  const auto loops = OpenFolder(dir);
  CHECK(Names(*loops, dir) == Strings{"photos/blue/1.png", "photos/red/2.png",
                                      "photos/red/again/5.png", "photos/red/deep/3.png",
                                      "photos/red/linked/4.png"});
  CHECK(loops->warnings().empty());
  fs::remove(dir.path("disk/more/back"));
  const auto plain = OpenFolder(dir);
  CHECK(Names(*plain, dir) == Strings{"photos/blue/1.png", "photos/red/2.png",
                                      "photos/red/again/5.png", "photos/red/deep/3.png",
                                      "photos/red/linked/4.png"});

  Link(dir, "..", "photos/red/up");
  Link(dir, ".", "photos/red/self");
  Link(dir, "nowhere", "photos/red/dangling");
  const auto up = OpenFolder(dir);
  CHECK(up->size() == 5);
  REQUIRE(up->warnings().size() == 2);
  CheckHas(up->warnings()[0], "1 file skipped, not named like");
  CheckHas(up->warnings()[1], "2 links not followed: a link to a folder that it lies in (first: " +
                                  dir.path("photos/red/self"));

  // A class that is a link itself, with a link back to the folder of the classes.
  Link(dir, "../other", "photos/gray");
  Link(dir, dir.path("photos"), "other/all");
  const auto linked = OpenFolder(dir);
  CHECK(Names(*linked, dir)[1] == "photos/gray/6.png");
  CHECK(linked->size() == 6);
  const auto flat = MakeSource("image_list", {{"path", dir.path("photos")}, {"recursive", "True"}});
  CHECK(flat->size() == 6);
}

TEST_CASE("image_folder: folders of file servers are skipped by name, which is said once") {
  const TempDir dir;
  WriteImages(dir, {"photos/blue/1.png", "photos/blue/@eaDir/1.png", "photos/red/2.png",
                    "photos/red/@eaDir/2.png/SYNOPHOTO_THUMB.png", "photos/@eaDir/x.png",
                    "photos/__MACOSX/blue/._1.png", "photos/red/.thumbnails/2.png"});
  const auto source = OpenFolder(dir);
  CHECK(source->class_names() == Strings{"blue", "red"});
  CHECK(Names(*source, dir) == Strings{"photos/blue/1.png", "photos/red/2.png"});
  REQUIRE(source->warnings().size() == 1);
  CheckHas(
      source->warnings()[0],
      "4 folders of the system skipped by name, with what is in it, such as thumbnails (first: " +
          dir.path("photos/@eaDir"));
}

TEST_CASE("the names of parts of a data set") {
  for (const char* name : {"train", "Training", "TRAIN", "seg_train", "train2017", "TrainingSet",
                           "train-images", "train_data", "images.train"})
    CHECK_MESSAGE(SplitOf(name) == Split::kTrain, name);
  for (const char* name : {"val", "Valid", "Validation", "dev", "val2017", "validation_set"})
    CHECK_MESSAGE(SplitOf(name) == Split::kVal, name);
  for (const char* name : {"test", "Testing", "seg_test", "TestSet"})
    CHECK_MESSAGE(SplitOf(name) == Split::kTest, name);
  for (const char* name : {"", "cat", "trainer", "train station", "bullet_train", "valley", "seg",
                           "train_test", "developer", "images", "\xc3\xa9train"})
    CHECK_MESSAGE(SplitOf(name) == Split::kNone, name);
}

TEST_CASE("image_folder: parts of a data set that are taken for classes are told of") {
  const TempDir dir;
  WriteImages(dir, {"scans/Testing/cat/1.png", "scans/Testing/dog/2.png",
                    "scans/Training/cat/3.png", "scans/Training/dog/4.png"});
  const auto source = OpenFolder(dir, "scans");
  CHECK(source->num_classes() == 2);
  REQUIRE(source->warnings().size() == 1);
  CheckHas(source->warnings()[0], "are Testing, Training, which look like the parts of a data set");
  CheckHas(source->warnings()[0], "give one as the path: " + dir.path("scans/Training"));
  WriteImages(dir, {"vehicles/train/1.png", "vehicles/val/2.png"});  // classes of these names
  CHECK(OpenFolder(dir, "vehicles")->warnings().empty());
}

TEST_CASE("texts that differ only in the composition of letters") {
  const std::pair<const char*, const char*> same[] = {
      {"caf\u00e9", "cafe\u0301"},
      {"\u00c5ngstr\u00f6m", "A\u030angstro\u0308m"},
      {"ph\u1ed9", "pho\u0323\u0302"},  // Vietnamese: two marks
      {"\u1ead", "a\u0323\u0302"},
      {"\u0439", "\u0438\u0306"},                                // Cyrillic
      {"\u0390", "\u03b9\u0308\u0301"},                          // Greek: two marks
      {"\u304c\u3071", "\u304b\u3099\u306f\u309a"},              // kana
      {"\ud55c\uae00", "\u1112\u1161\u11ab\u1100\u1173\u11af"},  // Hangul
      {"\uac00", "\u1100\u1161"},
  };
  for (const auto& [composed, apart] : same) {
    CHECK(Decomposed(composed) == apart);
    CHECK(Decomposed(apart) == apart);
    CheckHas(ComposedDifferently(composed, {"other", apart}), "it looks like '");
  }
  CHECK(Decomposed("plain \xff") == "plain \xff");
  CHECK(Decomposed("\u00f8\u0142\u4e2d") == "\u00f8\u0142\u4e2d");  // have no parts
  CHECK(ComposedDifferently("caf\u00e9", {"caf\u00e9", "cafe"}).empty());
}

TEST_CASE("classes whose names differ only in the composition of letters: said how") {
  const TempDir dir;
  const std::string composed = "caf\u00e9", apart = "cafe\u0301";
  WriteImages(dir, {"train/" + composed + "/1.png", "train/tea/2.png", "val/" + apart + "/3.png",
                    "val/tea/4.png", "both/" + composed + "/1.png", "both/" + apart + "/2.png"});
  try {
    OpenFolder(dir, "val", {{"classes", params::Print(OpenFolder(dir, "train")->class_names())}});
    FAIL("no error");
  } catch (const Error& error) {
    CheckHas(error.what(), "the folder '" + apart + "' in");
    CheckHas(error.what(),
             "it looks like '" + composed +
                 "', but its accented letters are written letters and marks apart "
                 "(Unicode NFD, as macOS writes names), and there as one character each "
                 "(Unicode NFC): write both in the same way");
  }
  CheckHas(OpenFolder(dir, "both")->warnings().at(0), "is one of its own; it looks like '");
  dir.Write("list.txt", "a.png\t" + apart + "\n");
  try {
    MakeSource("list", {{"path", dir.path("list.txt")}, {"classes", "(" + composed + ", tea)"}});
    FAIL("no error");
  } catch (const Error& error) {
    CheckHas(error.what(), "list.txt:1: the label '" + apart + "' is not one of the 2 classes");
    CheckHas(error.what(), "it looks like '" + composed + "'");
  }
}
