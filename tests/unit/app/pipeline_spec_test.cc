// SPDX-License-Identifier: Apache-2.0
#include "app/session/pipeline_spec.h"

#include <doctest/doctest.h>

#include "tests/support/temp_dir.h"

namespace mxtrain::session {
namespace {

TEST_CASE("an older pipeline without rounding keeps the earlier rounding; a new one names it") {
  const std::string before =
      R"({"source":"image_folder","params":[],"transforms":[{"name":"resize","params":[["size","36"]]},)"
      R"({"name":"flip","params":[]},{"name":"center_crop","params":[["","32"]]}],"metrics":[],"exact_decode":true})";
  const PipelineSpec spec = PipelineSpec::FromJson(before);
  REQUIRE(spec.transforms.size() == 3);
  CHECK(spec.transforms[0].kwargs == Kwargs{{"size", "36"}, {"rounding", "earlier"}});
  CHECK(spec.transforms[1].kwargs.empty());
  CHECK(spec.transforms[2].kwargs == Kwargs{{"", "32"}, {"rounding", "earlier"}});

  PipelineSpec now = spec;
  now.transforms = {{"resize", {{"size", "36"}}}, {"center_crop", {{"", "32"}}}};
  const PipelineSpec again = PipelineSpec::FromJson(now.ToJson());
  CHECK(again.transforms[0].kwargs == Kwargs{{"size", "36"}});
  CHECK(again.transforms[1].kwargs == Kwargs{{"", "32"}});
  CHECK(PipelineSpec::FromJson(spec.ToJson()).transforms[0].kwargs == spec.transforms[0].kwargs);
}

TEST_CASE("another table is read like the run's, with or without labels") {
  PipelineSpec spec;
  spec.source = "csv";
  spec.source_params = {{"path", "/runs/old.csv"},
                        {"picture_fields", "(data)"},
                        {"data_fields", "(data=file)"},
                        {"label_fields", "(softmax_label=y)"},
                        {"delimiter", ";"},
                        {"field_classes", "(softmax_label=a)"},
                        {"holdout", "0.1"}};
  CHECK_FALSE(spec.NeedsTable());
  const test::TempDir folder;
  folder.Write("new.csv", "file\n");
  const std::string file = folder.path("new.csv");
  CHECK(spec.TableParams(file, false) == Kwargs{{"path", file},
                                                {"picture_fields", "(data)"},
                                                {"data_fields", "(data=file)"},
                                                {"delimiter", ";"}});
  const Kwargs from_stdin = spec.TableParams("-", true);
  CHECK(from_stdin.front() == Kwargs::value_type{"path", "/dev/stdin"});
  CHECK(from_stdin.back() == Kwargs::value_type{"root", "."});
  CHECK(from_stdin.size() == 7);
  // Numbers beside the image, and two images.
  spec.source_params[2].second = "(data=file, size=width)";
  CHECK(spec.NeedsTable());
  spec.source_params[1].second = "(left, right)";
  spec.source_params[2].second = "(left=a, right=b)";
  CHECK(spec.NeedsTable());
  spec.source = "list";
  CHECK_FALSE(spec.NeedsTable());
}

TEST_CASE("a table of some of the inputs lacks the columns of the others") {
  PipelineSpec spec;
  spec.source = "csv";
  spec.source_params = {{"picture_fields", "(photo)"},
                        {"data_fields", "(photo=file, size=width, \"size=height, m\")"},
                        {"field_shapes", "(size=2)"}};
  const auto of = [&spec](const char* input) {
    return spec.OfInputs({{input, TShape{2}, DType::kFloat32}}).source_params;
  };
  CHECK(of("size") == Kwargs{{"picture_fields", "()"},
                             {"data_fields", "(size=width, \"size=height, m\")"},
                             {"field_shapes", "(size=2)"}});
  CHECK(of("photo") == Kwargs{{"picture_fields", "(photo)"},
                              {"data_fields", "(photo=file)"},
                              {"field_shapes", "(size=2)"}});
  // Numbered columns: whether the first line is a header depends on the images.
  spec.source_params[1].second = "(photo=0, size=1)";
  CHECK(of("size") == spec.source_params);
}

TEST_CASE("a table begins with a record that names the run's column of images") {
  PipelineSpec spec;
  spec.source = "csv";
  spec.source_params = {{"picture_fields", "(data)"}, {"data_fields", "(data=file)"}};
  CHECK(spec.ImageColumn() == "file");
  CHECK(spec.BeginsTable("id,file\n1,a.png\n"));
  CHECK(spec.BeginsTable("file"));
  CHECK(spec.BeginsTable("\xef\xbb\xbf\n\"id\"; \"file\"\r\n1;\"cut"));
  CHECK_FALSE(spec.BeginsTable(""));
  CHECK_FALSE(spec.BeginsTable("a.png,1\nfile,2\n"));
  CHECK_FALSE(spec.BeginsTable("id,files\n1,a.png\n"));
  CHECK_FALSE(spec.BeginsTable("\"file\n"));
  spec.source_params.emplace_back("delimiter", ":");
  CHECK(spec.BeginsTable("id:file\n"));
  CHECK_FALSE(spec.BeginsTable("id,file\n"));
  // A column without a name.
  spec.source_params = {{"picture_fields", "(data)"}, {"data_fields", "(data=1)"}};
  CHECK(spec.BeginsTable("7,a.png\n"));
  CHECK_FALSE(spec.BeginsTable("a.png\nb.png\n"));
}

}  // namespace
}  // namespace mxtrain::session
