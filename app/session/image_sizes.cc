// SPDX-License-Identifier: Apache-2.0
#include "app/session/image_sizes.h"

namespace mxtrain::session {
namespace {

constexpr size_t kMostSizes = 32;  // an executor for each
constexpr double kMostScale = 16;

}  // namespace

void CheckImageSizes(const SessionView& session) {
  const config::MultiScaleConfig& c = session.config().train.multi_scale;
  if (c.scale.empty()) return;
  const auto report = [&session](const std::string& what, const std::string& help) {
    session.diagnostics.Error(session.loaded.PlaceOf("train.multi_scale.scale"),
                              "train.multi_scale: " + what, help);
  };
  const std::vector<config::NetInput>& inputs = session.net.inputs;
  if (inputs.size() != 1 || inputs[0].shape.ndim() != 3)
    return report("the net's input is not one image", "remove the key");
  if (c.scale.size() != 2 ||
      !(c.scale[0] > 0 && c.scale[0] <= c.scale[1] && c.scale[1] <= kMostScale)) {
    return report(
        "the least and the most of the sizes, as multiples of the net's input, are wanted",
        "write scale: [0.75, 1.25]");
  }
  const size_t count = ImageSizes(session.config(), session.net).size();
  if (count <= kMostSizes) return;
  report(format("{} sizes, and at most {} are possible", count, kMostSizes),
         "give a larger `multiple` or a narrower `scale`");
}

std::vector<io::ImageSize> ImageSizes(const config::Config& config, const config::Net& net) {
  const config::MultiScaleConfig& c = config.train.multi_scale;
  if (c.scale.empty()) return {};
  const TShape& input = net.inputs.at(0).shape;
  return io::SizesBeside({static_cast<int>(input[1]), static_cast<int>(input[2])}, c.scale.at(0),
                         c.scale.at(1), c.multiple);
}

config::Net WithImageSize(config::Net net, io::ImageSize size) {
  TShape& shape = net.inputs.at(0).shape;
  shape = {shape[0], size.height, size.width};
  return net;
}

}  // namespace mxtrain::session
