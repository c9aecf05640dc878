// SPDX-License-Identifier: Apache-2.0
// train.multi_scale: the part of DataIters that makes images of several sizes.
#include <algorithm>
#include <utility>

#include "app/session/data_iters.h"
#include "app/session/image_sizes.h"
#include "app/session/shape_check.h"
#include "mxtrain/base/error.h"

namespace mxtrain::session {

void DataIters::RefuseScales(const std::string& text, const std::string& help) const {
  session_.diagnostics.Error(session_.loaded.PlaceOf("train.multi_scale.scale"),
                             "train.multi_scale: " + text, help);
  session_.diagnostics.ThrowIfErrors();
  Throw(ErrorKind::kBug, "{}", text);
}

std::unique_ptr<DataIter> DataIters::MakeScaled(const std::shared_ptr<const io::Source>& source,
                                                const io::PipelineParam& param,
                                                const std::vector<io::ImageSize>& sizes) {
  const config::TrainConfig& train = config().train;
  const config::MultiScaleConfig& c = train.multi_scale;
  if (!config().data.bucket_lengths.empty())
    RefuseScales("data.bucket_lengths has sizes of its own", "remove one of the two");
  if (config().data.cache != "none") {
    RefuseScales(format("data.cache: {} keeps images of one size", config().data.cache),
                 "remove one of the two");
  }
  const TShape& input = session_.net.inputs[0].shape;
  const io::ImageSize usual{static_cast<int>(input[1]), static_cast<int>(input[2])};
  const std::vector<io::TransformSpec> chain = Transforms(false);
  io::MultiScale scales{{}, c.batches};
  if (c.off_epochs > 0) scales.epochs = EpochOfEnd(c.off_epochs);
  std::vector<std::string> told;
  for (const io::ImageSize& size : sizes) {
    if (size.height == usual.height && size.width == usual.width)
      scales.usual = scales.chains.size();
    try {
      scales.chains.push_back(io::ScaledTransforms(chain, usual, size));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kConfig) throw;
      RefuseScales(e.what(),
                   format("let them end with one that names the net's size, such as resize: [{}, "
                          "{}], letterbox or random_resized_crop",
                          input[1], input[2]));
    }
    const TShape image{input[0], size.height, size.width};
    if (!TakesSize(session_.net, session_.net.inputs[0], image)) {
      RefuseScales(format("the net does not take images of {} with the same parameters, as "
                          "convolutions do and a fully connected layer on pixels does not",
                          image.ToString()),
                   "remove the key, or give a `multiple` that fits the net's strides");
    }
    told.push_back(size.height == size.width ? format("{}", size.height)
                                             : format("{}x{}", size.height, size.width));
  }
  const bool off = c.off_epochs > 0 && c.off_epochs >= train.epochs;
  if (sizes.size() == 1 || off) {
    session_.log.Write(
        LogLevel::kWarning,
        off ? format("train.multi_scale is off in the last {}, and the run has {}: all images have "
                     "the net's size; lower train.multi_scale.off_epochs",
                     Counted(c.off_epochs, "epoch"), train.epochs)
            : format("train.multi_scale: no other size than the net's, {}, is in the range; give a "
                     "wider scale or a smaller `multiple`",
                     told[0]));
  } else {
    session_.log.Write(
        LogLevel::kInfo,
        format("sizes of training images: {}; another one {}", join(told, ", "),
               c.batches == 1 ? "in each batch" : format("every {} batches", c.batches)));
  }
  return io::NewMultiScalePipeline(runtime_, source, scales, param);
}

}  // namespace mxtrain::session
