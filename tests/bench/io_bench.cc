// How fast the pipeline delivers: MNIST batches (gather and scale) and photographs (decode, resize, crop, flip, normalise), by number of
// decode threads. Beside it what decoding alone takes on one thread. Prints a table.
//
//   io_bench MNIST_FOLDER IMAGE_FOLDER      either may be "-" to leave it out
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "mxtrain/base/format.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/pipeline.h"
#include "mxtrain/io/source_factory.h"

namespace {

using namespace mxtrain;
using namespace mxtrain::io;

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Batches for about a second, after the first ones.
double ExamplesPerSecond(DataIter& iter) {
  constexpr double kSeconds = 1.5;
  int64_t examples = 0, epoch = 0;
  DataBatch batch;
  iter.Reset(epoch);
  iter.Next(&batch);
  const double begin = Seconds();
  while (Seconds() - begin < kSeconds) {
    if (iter.Next(&batch)) {
      examples += batch.count;
    } else {
      iter.Reset(++epoch);
    }
  }
  return static_cast<double>(examples) / (Seconds() - begin);
}

void Measure(Runtime& runtime, const char* what, std::shared_ptr<const Source> source, const std::vector<TransformSpec>& transforms,
             const char* exact) {
  for (const int workers : {1, 2}) {
    PipelineParam param;
    param.Init({{"batch_size", "64"}, {"shuffle", "True"}, {"workers", std::to_string(workers)}, {"exact_decode", exact}}, "io_bench");
    const auto iter = NewPipeline(runtime, source, transforms, param);
    std::printf("%-44s %d thread%s %10.0f examples/s\n", what, workers, workers == 1 ? " " : "s", ExamplesPerSecond(*iter));
  }
}

// The ceiling: files in memory, full size, nothing else.
void MeasureDecoding(const Source& source) {
  std::vector<Sample> samples(std::min<size_t>(200, static_cast<size_t>(source.size())));
  for (size_t i = 0; i < samples.size(); ++i) source.Read(static_cast<int64_t>(i), &samples[i]);
  ImageDecoder decoder;
  Image image;
  const double begin = Seconds();
  for (const Sample& sample : samples) decoder.Decode(sample.data[0].encoded, {}, &image);
  std::printf("%-44s 1 thread  %10.0f examples/s\n", "decoding alone, full size",
              static_cast<double>(samples.size()) / (Seconds() - begin));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fprintf(stderr, "usage: io_bench MNIST_FOLDER|- IMAGE_FOLDER|-\n");
    return 2;
  }
  const std::string mnist = argv[1], folder = argv[2];
  Runtime runtime({}, nullptr);
  if (mnist != "-") Measure(runtime, "MNIST", MakeSource("mnist", {{"path", mnist}}), {}, "False");
  if (folder == "-") return 0;
  const std::shared_ptr<const Source> photographs = MakeSource("image_folder", {{"path", folder}});
  const std::vector<TransformSpec> transforms = {{"resize", {{"", "144"}}},
                                                 {"random_resized_crop", {{"", "128"}, {"area", "0.35, 1"}}},
                                                 {"flip", {}},
                                                 {"normalize", {{"mean", "0.5"}}}};
  MeasureDecoding(*photographs);
  Measure(runtime, "photographs, resize 144, crop 128, flip", photographs, transforms, "False");
  Measure(runtime, "the same, decoded exactly", photographs, transforms, "True");
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
