// SPDX-License-Identifier: Apache-2.0
// Kinds of sources: what they declare, and which paths they recognize.
#include "mxtrain/io/source_factory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "mxtrain/base/error.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_checks.h"

using namespace mxtrain;
using namespace mxtrain::io;
using namespace mxtrain::test;

namespace {

struct EmptyParam : Parameter<EmptyParam> {
  std::string path, mark;
  int64_t count;
  static void Declare(Fields<EmptyParam>& f) {
    f.Add("path", &EmptyParam::path).IsPath().Required().Help("a file");
    f.Add("count", &EmptyParam::count).Default(3).Range(1, 9).Help("how many");
    f.Add("mark", &EmptyParam::mark).Default("").Internal().Help("of the program");
  }
};

std::unique_ptr<Source> NewEmptySource(const EmptyParam&) {
  return nullptr;
}

SourceKind EmptyKind(const std::string& name) {
  return SourceKindOf<EmptyParam, NewEmptySource>(name, "nothing");
}

std::string WhyNotAdded(SourceKind kind) {
  SourceTable table;
  table.Add(EmptyKind("empty"));
  try {
    table.Add(std::move(kind));
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
}

std::string Recognized(const std::string& path, std::string_view preferred = "") {
  const RecognizedSource found = RecognizeSource(path, preferred);
  if (!found.kind) return "none";
  std::string text = found.kind->name + (found.recognition.certain ? "!" : "");
  for (const auto& [key, value] : found.recognition.params) {
    if (key != "path") text += format(" {}={}", key, value);
  }
  return text;
}

}  // namespace

TEST_CASE("a table of sources keeps them by name") {
  SourceTable table;
  for (const char* name : {"b", "c", "a"}) table.Add(EmptyKind(name));
  CHECK(table.kinds()[0].name == "a");
  CHECK(table.kinds()[2].name == "c");
  CHECK(table.Find("b")->help == "nothing");
  CHECK(table.Find("d") == nullptr);
  CHECK(WhyNotAdded(EmptyKind("empty")) == "there are two data sources of the name 'empty'");
  SourceKind lost = EmptyKind("lost");
  lost.parameters.erase(lost.parameters.begin());
  CHECK(WhyNotAdded(lost) == "the data source 'lost' has no path");
  lost.in_configurations = false;
  CHECK(WhyNotAdded(lost).empty());
}

TEST_CASE("a kind of source describes and checks its parameters") {
  const SourceKind kind = EmptyKind("empty");
  CHECK(kind.Parameter("path")->type == "path");
  CHECK(kind.Parameter("path")->required);
  CHECK(kind.Parameter("mark")->internal);
  CHECK(!kind.Parameter("count")->internal);
  CHECK(kind.Parameter("none") == nullptr);
  CHECK(!kind.NamesClasses({}));
  kind.check("count", "9", "data.train");
  const auto why = [&kind](const char* name, const char* text) {
    try {
      kind.check(name, text, "data.train");
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  CheckHas(why("count", "10"), "data.train: count = '10': 10 is out of range (1 .. 9)");
  CheckHas(why("count", "x"), "data.train: count = 'x': expected an integer");
  CheckHas(why("cuont", "1"), "did you mean 'count'?");
}

TEST_CASE("every kind for configurations has a path, and unique parameters with help") {
  for (const SourceKind& kind : Sources().kinds()) {
    CAPTURE(kind.name);
    CHECK(!kind.help.empty());
    CHECK(kind.Parameter("path")->type == (kind.in_configurations ? "path" : "string"));
    for (const FieldInfo& field : kind.parameters) {
      CAPTURE(field.name);
      CHECK(!field.help.empty());
      CHECK(kind.Parameter(field.name) == &field);
      CHECK(!field.name.starts_with("holdout"));
    }
  }
  CHECK(Sources().Find("image_folder")->NamesClasses({}));
  CHECK(Sources().Find("list")->NamesClasses({}));
  CHECK(Sources().Find("record")->NamesClasses({}));
  CHECK(!Sources().Find("mnist")->NamesClasses({}));
  CHECK(!Sources().Find("csv")->NamesClasses({}));
  CHECK(Sources().Find("csv")->NamesClasses({{"label_delim", ";"}}));
}

TEST_CASE("paths are recognized by their files") {
  const TempDir dir;
  dir.Write("mnist/t10k-labels-idx1-ubyte", "");
  dir.Write("packed/t10k-labels-idx1-ubyte.gz", "");
  dir.Write("ten/test_batch.bin", "");
  dir.Write("hundred/test.bin", "");
  dir.Write("photos/a/1.png", "");
  dir.Write("list.txt", "");
  CHECK(Recognized(dir.path("mnist")) == "mnist! split=test");
  CHECK(Recognized(dir.path("packed"), "image_folder") == "mnist! split=test");
  CHECK(Recognized(dir.path("ten")) == "cifar10! split=test");
  CHECK(Recognized(dir.path("hundred")) == "cifar100! split=test");
  CHECK(Recognized(dir.path("photos"), "mnist") == "image_folder");
  CHECK(Recognized(dir.path("list.txt"), "csv") == "list");
  CHECK(Recognized("/dev/null", "image_folder") == "list root=.");
  CHECK(Recognized("-", "image_folder") == "list root=.");
}
