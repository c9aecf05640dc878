// SPDX-License-Identifier: Apache-2.0
// A run of images that `mxtrain train` has written, in a program of your own: the class of one
// image, as `mxtrain infer` finds it. Built with everything else.
//
//   mxtrain_example_trained_run RUN IMAGE
#include <algorithm>
#include <cstdio>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/json.h"
#include "mxtrain/io/augmenter.h"
#include "mxtrain/train/model.h"
#include "mxtrain/train/net_inputs.h"

using namespace mxtrain;

namespace {

// What a model says of how its images are prepared: resized, cropped, normalized.
std::vector<io::TransformSpec> TransformsOf(const ModelInfo& info) {
  const Json pipeline = Json::parse(info.pipeline);
  std::vector<io::TransformSpec> transforms;
  for (const Json& each : pipeline.at("transforms"))
    transforms.push_back({each.at("name"), each.at("params").get<Kwargs>()});
  return transforms;
}

void Classify(const std::string& run, const std::string& file) {
  Runtime runtime({}, BuiltinOperators());      // engine, memory, threads; outlives every array
  const Model model = LoadModel(runtime, run);  // a run's folder: its best checkpoint
  const InputInfo& input = model.info.inputs.at(0);
  const auto size = [&](int axis) { return static_cast<int>(input.shape[axis]); };

  const io::Augmenter augmenter(TransformsOf(model.info), size(0));
  const auto decoded = io::DecodeImage(ReadFile(file), {.channels = size(0)});
  if (!decoded) Throw(ErrorKind::kData, "{}: {}", file, decoded.error().reason);
  io::Image cropped, scratch;
  const auto steps = augmenter.Begin(decoded->height, decoded->width, io::RandomStream(0, 0, 0), 0,
                                     augmenter.size());                // none of which is random
  std::vector<float> planes(static_cast<size_t>(input.shape.Size()));  // [C, height, width]
  augmenter.ToPlanes(steps, *decoded,
                     {decoded->height, decoded->width, {0, 0, decoded->height, decoded->width}},
                     {size(1), size(2)}, &cropped, &scratch, planes.data());

  // The net for one image. Prediction reads no labels, but the net has them as inputs.
  std::vector<DataDesc> arrays = {{input.name, TShape{1, size(0), size(1), size(2)}}};
  for (const InputInfo& label : model.info.labels) arrays.push_back({label.name, TShape{1}});
  const auto executor = Executor::SimpleBind(
      runtime, model.symbol, EvaluationRequest(model.symbol, arrays, Context::cpu(), {}));
  SetParameters(model, executor.get(), {});
  std::vector<NDArray> batch;
  for (const std::string& name : executor->input_names()) {
    const bool is_image = name == input.name;
    batch.push_back(is_image ? NDArray::FromVector(runtime, arrays[0].shape, planes)
                             : NDArray::FromVector(runtime, {1}, {0}));
  }
  executor->Forward(batch);

  const std::vector<float> scores = executor->outputs()[0].ToVector();
  const auto best = static_cast<size_t>(std::ranges::max_element(scores) - scores.begin());
  std::printf("%s %.4f\n", model.info.class_names.at(best).c_str(),
              static_cast<double>(scores[best]));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s RUN IMAGE\n", argv[0]);
    return 2;
  }
  try {
    Classify(argv[1], argv[2]);
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
