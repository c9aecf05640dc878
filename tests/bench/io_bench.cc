// SPDX-License-Identifier: Apache-2.0
// Image throughput on one core; all methods are measured in turn in the same run:
// - decoding alone: TurboJPEG and ours;
// - each stage of ours, and the whole of ours (random_resized_crop 224, flip, normalise), exactly
//   and with scaled decode;
// - the same with OpenCV: decode, crop, resize, flip, to float. Its imdecode where the build found
//   imgcodecs, else TurboJPEG in its place.
// Then the pipeline on 1 and 2 threads, with the files' reading, without and with a cache, and
// MNIST batches. Prints a table.
//
//   io_bench MNIST_FOLDER IMAGE_FOLDER [IMAGES]         either may be "-" to skip it
#include <turbojpeg.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <string>
#include <vector>

#include "mxtrain/base/format.h"
#include "mxtrain/io/augmenter.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/pipeline.h"
#include "mxtrain/io/source_factory.h"
#include "opencv_decode.h"

namespace {

using namespace mxtrain;
using namespace mxtrain::io;

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// CPU time of this thread, so other load matters less.
double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

const std::vector<TransformSpec> kChain = {
    {"random_resized_crop", {{"", "224"}}},
    {"flip", {}},
    {"normalize", {{"mean", "0.485, 0.456, 0.406"}, {"std", "0.229, 0.224, 0.225"}}}};

// Our method for one image, to planes.
class Ours {
 public:
  explicit Ours(bool exact) : exact_(exact), augmenter_(kChain, 3), planes_(3 * 224 * 224) {}
  void Whole(const std::string& bytes, int64_t index) {
    Frame frame;
    DecodePart(bytes, index, &frame);
    augmenter_.ToPlanes(Begin(frame.height, frame.width, index), image_, frame, {224, 224}, &image_,
                        &spare_, planes_.data());
  }
  void DecodePart(const std::string& bytes, int64_t index, Frame* frame) {
    DecodeOptions options;
    options.channels = 3;
    options.exact = exact_;
    options.part = [&](int height, int width) {
      const CropResize crop = Begin(height, width, index).crop;
      return DecodeOptions::Part{crop.Needed(), crop.MinScale()};
    };
    decoder_.Decode(bytes, options, &image_, frame);
  }
  void Decode(const std::string& bytes) { decoder_.Decode(bytes, {}, &image_); }
  // For an image that is already decoded.
  void Augment(const Image& image, int64_t index) {
    const Frame frame{image.height, image.width, {0, 0, image.height, image.width}, 1};
    augmenter_.ToPlanes(Begin(image.height, image.width, index), image, frame, {224, 224}, &image_,
                        &spare_, planes_.data());
  }
  CropResize CropResizeOf(int height, int width, int64_t index) const {
    return Begin(height, width, index).crop;
  }
  void ToPlanes(const Image& image) { augmenter_.ToPlanes(image.pixels, planes_.data()); }

 private:
  Augmenter::Steps Begin(int height, int width, int64_t index) const {
    return augmenter_.Begin(height, width, RandomStream(1, 0, index), 0, augmenter_.size());
  }
  bool exact_;
  Augmenter augmenter_;
  ImageDecoder decoder_;
  Image image_, spare_;
  std::vector<float> planes_;
};

class Turbo {
 public:
  ~Turbo() { tjDestroy(handle_); }
  cv::Mat Decode(const std::string& bytes) {
    int width = 0, height = 0, subsampling = 0, space = 0;
    const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
    tjDecompressHeader3(handle_, data, bytes.size(), &width, &height, &subsampling, &space);
    cv::Mat image(height, width, CV_8UC3);
    tjDecompress2(handle_, data, bytes.size(), image.data, width, 0, height, TJPF_BGR,
                  TJFLAG_ACCURATEDCT);
    return image;
  }

 private:
  tjhandle handle_ = tjInitDecompress();
};

// The same box and the same flip, to interleaved floats of 0 .. 1.
void AugmentWithOpenCv(const cv::Mat& image, const CropResize& crop, cv::Mat* result) {
  cv::Mat resized;
  cv::resize(image(cv::Rect(crop.box.x, crop.box.y, crop.box.width, crop.box.height)), resized,
             cv::Size(224, 224), 0, 0, cv::INTER_LINEAR);
  if (crop.mirrored) cv::flip(resized, resized, 1);
  resized.convertTo(*result, CV_32F, 1 / 255.0);
}

struct Method {
  const char* name;
  std::function<void(size_t)> run;  // with image number i
  double seconds = 0;
};

// Runs all methods on each image several times; the best time of each counts.
void Interleave(size_t images, std::vector<Method>* methods) {
  constexpr int kTimes = 5;
  for (size_t i = 0; i < images; ++i) {
    std::vector<double> best(methods->size(), 1e9);
    for (int time = 0; time < kTimes; ++time) {
      for (size_t w = 0; w < methods->size(); ++w) {
        const double begin = ThreadSeconds();
        (*methods)[w].run(i);
        best[w] = std::min(best[w], ThreadSeconds() - begin);
      }
    }
    for (size_t w = 0; w < methods->size(); ++w) (*methods)[w].seconds += best[w];
  }
}

void MeasureMethods(const Source& source, size_t most) {
  cv::setNumThreads(1);
  const size_t images = std::min(most, static_cast<size_t>(source.size()));
  std::vector<std::string> files;
  std::vector<Image> decoded;
  Sample sample;
  for (size_t i = 0; i < images; ++i) {
    source.Read(static_cast<int64_t>(i) * source.size() / static_cast<int64_t>(images), &sample);
    files.push_back(sample.data[0].encoded);
    decoded.push_back(*DecodeImage(files.back()));
  }
  Turbo turbo;
  Ours exact(true), fast(false);
  Image cropped;
  cv::Mat result;
  Frame frame;
  const auto index = [](size_t i) { return static_cast<int64_t>(i); };
  const auto crop = [&](size_t i) {
    return exact.CropResizeOf(decoded[i].height, decoded[i].width, index(i));
  };
  std::vector<Method> methods = {
      {"OpenCV: the whole",
       [&](size_t i) {
         AugmentWithOpenCv(DecodeForOpenCv(files[i], [&] { return turbo.Decode(files[i]); }),
                           crop(i), &result);
       }},
      {"ours: the whole, exact", [&](size_t i) { exact.Whole(files[i], index(i)); }},
      {"ours: the whole, scaled decode", [&](size_t i) { fast.Whole(files[i], index(i)); }},
      {"TurboJPEG: decode", [&](size_t i) { turbo.Decode(files[i]); }},
      {"ours: decode", [&](size_t i) { exact.Decode(files[i]); }},
      {"ours: decode what the crop needs, exact",
       [&](size_t i) { exact.DecodePart(files[i], index(i), &frame); }},
      {"ours: decode what the crop needs, scaled",
       [&](size_t i) { fast.DecodePart(files[i], index(i), &frame); }},
      {"ours: crop, resize and flip to pixels",
       [&](size_t i) {
         Apply(
             crop(i), decoded[i],
             {decoded[i].height, decoded[i].width, {0, 0, decoded[i].height, decoded[i].width}, 1},
             &cropped);
       }},
      {"ours: pixels to normalised planes", [&](size_t) { exact.ToPlanes(cropped); }},
      {"ours: crop, resize, flip, normalise at once",
       [&](size_t i) { exact.Augment(decoded[i], index(i)); }},
  };
  Interleave(images, &methods);
  std::printf("%zu images, one core, %s\n", images, OpenCvDecoderName());
  for (const Method& method : methods) {
    std::printf("  %-46s %8.0f images/s  %5.2f x OpenCV\n", method.name,
                static_cast<double>(images) / method.seconds, methods[0].seconds / method.seconds);
  }
}

struct Stream {
  std::string name;
  std::unique_ptr<DataIter> iter;
  int64_t epoch = 0, examples = 0;
  double seconds = 0;
};

// In turns of a third of a second.
void MeasureStreams(std::vector<Stream>* streams, int turns) {
  DataBatch batch;
  for (Stream& s : *streams) {  // the first epoch fills caches
    s.iter->Reset(0);
    while (s.iter->Next(&batch)) {
    }
  }
  for (int turn = 0; turn < turns; ++turn) {
    for (Stream& s : *streams) {
      s.iter->Reset(++s.epoch);
      s.iter->Next(&batch);
      const double begin = Seconds();
      while (Seconds() - begin < 0.33) {
        if (s.iter->Next(&batch)) {
          s.examples += batch.count;
        } else {
          s.iter->Reset(++s.epoch);
        }
      }
      s.seconds += Seconds() - begin;
      batch = {};
      s.iter->Reset(0, s.iter->batches_per_epoch());  // the threads rest
    }
  }
  for (const Stream& s : *streams)
    std::printf("  %-46s %8.0f images/s\n", s.name.c_str(),
                static_cast<double>(s.examples) / s.seconds);
}

void MeasurePipeline(Runtime& runtime, const char* what,
                     const std::shared_ptr<const Source>& source,
                     const std::vector<TransformSpec>& transforms,
                     const std::vector<Kwargs>& variants) {
  std::printf("%s\n", what);
  std::vector<Stream> streams;
  for (const Kwargs& variant : variants) {
    std::string name;
    PipelineParam param;
    Kwargs kwargs{{"batch_size", "64"}, {"shuffle", "True"}};
    for (const auto& item : variant) {
      name += format("{}{} = {}", name.empty() ? "" : ", ", item.first, item.second);
      kwargs.push_back(item);
    }
    param.Init(kwargs, "io_bench");
    streams.push_back({name, NewPipeline(runtime, source, transforms, param)});
  }
  MeasureStreams(&streams, 6);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: io_bench MNIST_FOLDER|- IMAGE_FOLDER|- [IMAGES]\n");
    return 2;
  }
  const std::string mnist = argv[1], folder = argv[2];
  Runtime runtime({}, nullptr);
  if (folder != "-") {
    const std::shared_ptr<const Source> photographs =
        MakeSource("image_folder", {{"path", folder}});
    MeasureMethods(*photographs, argc == 4 ? std::stoul(argv[3]) : 300);
    MeasurePipeline(
        runtime, "pipeline, random_resized_crop 224, flip, normalise", photographs, kChain,
        {{{"workers", "1"}}, {{"workers", "2"}}, {{"workers", "1"}, {"exact_decode", "True"}}});
    MeasurePipeline(runtime, "pipeline, resize 144, random_resized_crop 128, flip, normalise",
                    photographs,
                    {{"resize", {{"", "144"}}},
                     {"random_resized_crop", {{"", "128"}, {"area", "0.35, 1"}}},
                     {"flip", {}},
                     kChain.back()},
                    {{{"workers", "1"}}, {{"workers", "1"}, {"cache", "ram"}}});
  }
  if (mnist != "-")
    MeasurePipeline(runtime, "MNIST", MakeSource("mnist", {{"path", mnist}}), {},
                    {{{"workers", "1"}}, {{"workers", "2"}}});
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
