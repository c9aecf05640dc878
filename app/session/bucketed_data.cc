// SPDX-License-Identifier: Apache-2.0
// data.bucket_lengths: the part of DataIters that makes batches of several lengths.
#include <algorithm>
#include <utility>

#include "app/session/data_iters.h"
#include "app/session/image_sizes.h"
#include "mxtrain/base/error.h"
#include "mxtrain/io/bucketed_iter.h"

namespace mxtrain::session {
namespace {

// Images are lists of nothing else: their width is the last axis.
bool AreImages(const io::Source& source) {
  return source.data_fields()[0].kind == io::FieldKind::kImage;
}

// The chain with another width in every letterbox of the net's size; nothing if there is none.
std::optional<std::vector<io::TransformSpec>> WithWidth(std::vector<io::TransformSpec> transforms,
                                                        const TShape& input, int64_t width) {
  bool found = false;
  for (io::TransformSpec& transform : transforms) {
    if (transform.name != "letterbox") continue;
    for (auto& [key, text] : transform.kwargs) {
      TShape size;
      if (key == "size" || key.empty()) params::Parse(text, &size);
      if (size.ndim() != 2 || size != TShape{input[1], input[2]}) continue;
      text = params::Print(TShape{input[1], width});
      found = true;
    }
  }
  return found ? std::optional(std::move(transforms)) : std::nullopt;
}

}  // namespace

std::unique_ptr<DataIter> DataIters::MakeIter(std::shared_ptr<const io::Source> source,
                                              const io::PipelineParam& param, bool validation,
                                              Pass pass) {
  const bool in_order = pass == Pass::kWhole || pass == Pass::kOnce;
  if (pass == Pass::kTraining) {
    const std::vector<io::ImageSize> sizes = ImageSizes(config(), session_.net);
    if (!sizes.empty()) return MakeScaled(source, param, sizes);
  }
  if (!config().data.bucket_lengths.empty() && !in_order)
    return MakeBucketed(std::move(source), param, validation);
  return io::NewPipeline(runtime_, std::move(source), Transforms(validation), param);
}

void DataIters::RefuseBuckets(const std::string& text, const std::string& help) const {
  session_.diagnostics.Error(session_.loaded.PlaceOf("data.bucket_lengths"),
                             "data.bucket_lengths: " + text, help);
  session_.diagnostics.ThrowIfErrors();
  Throw(ErrorKind::kBug, "{}", text);
}

std::vector<int64_t> DataIters::BucketLengths(const io::Source& source) const {
  const std::vector<config::NetInput>& inputs = session_.net.inputs;
  const bool one = inputs.size() == 1 && source.data_fields().size() == 1;
  const int wanted = one && AreImages(source) ? 3 : 1;
  if (!one || inputs[0].shape.ndim() != wanted || (wanted == 1 && source.num_tokens() == 0)) {
    RefuseBuckets("the examples are neither one image nor the ids of one text each",
                  "remove the key");
  }
  if (config().data.cache == "features")
    RefuseBuckets("data.cache: features keeps examples of one length", "remove one of the two");
  if (config().data.train.balanced)
    RefuseBuckets("data.train.balanced draws classes over all examples", "remove one of the two");
  std::vector<int64_t> lengths = config().data.bucket_lengths;
  const TShape& input = inputs[0].shape;
  const int64_t longest = input[input.ndim() - 1];
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] >= 1 && lengths[i] < longest && (i == 0 || lengths[i] > lengths[i - 1]))
      continue;
    RefuseBuckets(format("{} is not between {} and {}", lengths[i],
                         i == 0 ? "0" : format("{}, the one before,", lengths[i - 1]), longest),
                  format("name rising lengths below that of the net's input, {}, which is the last "
                         "bucket",
                         input.ToString()));
  }
  lengths.push_back(longest);
  return lengths;
}

std::unique_ptr<DataIter> DataIters::MakeBucketed(std::shared_ptr<const io::Source> source,
                                                  const io::PipelineParam& param, bool validation) {
  const std::vector<int64_t> lengths = BucketLengths(*source);
  const bool images = AreImages(*source);
  const TShape& input = session_.net.inputs[0].shape;
  const std::vector<int64_t> of_examples =
      images ? io::WidthsOfImages(*source, input[1])
             : io::LengthsOfLists(*source, static_cast<float>(source->num_tokens() - 1));
  const bool drops = param.mode == io::PipelineParam::kTraining && !param.keep_remainder;
  std::vector<io::Bucket> buckets =
      io::MakeBuckets(of_examples, lengths, drops ? param.batch_size * param.num_parts : 1);
  const std::vector<io::TransformSpec> transforms = Transforms(validation);
  std::vector<std::unique_ptr<DataIter>> iters;
  std::vector<std::string> told;
  for (const io::Bucket& bucket : buckets) {
    told.push_back(format("{} of at most {}", bucket.examples.size(), bucket.length));
    std::shared_ptr<const io::Source> own = io::NewExamplesOf(source, bucket.examples);
    if (!images) own = io::NewShortenedLists(std::move(own), bucket.length);
    auto chain = images ? WithWidth(transforms, input, bucket.length) : std::optional(transforms);
    if (!chain) {
      RefuseBuckets("no letterbox makes images of the net's size",
                    format("put letterbox: {{size: [{}, {}]}} among the transforms of {}", input[1],
                           input[2], validation ? "data.val" : "data.train"));
    }
    iters.push_back(io::NewPipeline(runtime_, std::move(own), *chain, param));
  }
  session_.log.Write(
      LogLevel::kInfo,
      format("buckets of {}: {}", validation ? "validation" : "training", join(told, ", ")));
  return io::NewBucketedIter(std::move(source), std::move(buckets), std::move(iters),
                             static_cast<uint64_t>(param.seed), param.shuffle);
}

}  // namespace mxtrain::session
