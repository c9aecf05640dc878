// SPDX-License-Identifier: Apache-2.0
#include "app/commands/pipeline_spec.h"

#include <doctest/doctest.h>

namespace mxtrain::commands {
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

}  // namespace
}  // namespace mxtrain::commands
