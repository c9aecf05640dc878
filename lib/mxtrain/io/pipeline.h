// SPDX-License-Identifier: Apache-2.0
#pragma once
// The input pipeline: read -> decode -> augment -> batch -> prefetch, on its own threads, with a
// bounded ring of batches.
//
// Each thread takes one example at a time from the earliest open batch (cheap examples in larger
// pieces), loads it and writes it directly into the batch's arrays. A batch's contents depend on
// the parameters, the epoch and its number, not on threads or timing.
//
// To the engine a batch is one AsyncFn that mutates the batch's arrays: its body only opens the
// slot, the pipeline's callback finishes it. A slot is reused once the caller has dropped the
// batch; the engine opens it when the readers pushed before have finished. Callbacks never wait for
// the caller, so WaitForAll terminates.
#include <memory>

#include "mxtrain/base/params.h"
#include "mxtrain/io/augmenter.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/io/multi_scale.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

inline constexpr int kMostBatch = 1 << 20;  // examples

struct MXTRAIN_API PipelineParam : Parameter<PipelineParam> {
  // Training drops the remainder of an epoch; an unreadable example is replaced by the next good
  // one in the epoch's order, and too many of them are an error. Evaluation (and inference) skips
  // nothing: the last batch is padded; an unreadable example is reported in the batch's `bad`, and
  // the batch has one example less. Padding repeats the first examples of the epoch.
  //
  // Several parts (part_index, num_parts), each with its own pipeline, have disjoint examples and
  // the same number of batches: batch k of part p is rows [p * batch_size, (p + 1) * batch_size) of
  // batch k of a single pipeline with batches of num_parts * batch_size, unless an unreadable
  // example is replaced (by another of the part) or examples are mixed. A last batch may hold no
  // example of a part. max_bad is a fraction of the whole source in every part: no part refuses
  // what a single pipeline tolerates.
  enum Mode { kTraining, kEvaluation };
  int64_t batch_size, seed, cache_bytes, mixup_epochs, cutmix_epochs, mosaic_epochs;
  enum Cache { kNone, kRam };
  int mode, part_index, num_parts, workers, prefetch, channels, cache;
  int soft_labels, bits;
  bool shuffle, balanced, keep_remainder, exact_decode;
  double max_bad, label_smoothing, mixup, cutmix, mosaic;
  std::string data_name, label_name;
  // Not configuration keys: set from the device.
  // Memory of the batches; pinned for a GPU, for asynchronous copies.
  Context memory = Context::cpu();
  // Batches hold images as 8-bit pixels, which the device normalizes (DataDesc::pixels). Batches
  // with mixed examples (mixup, cutmix, mosaic) are float32 nevertheless.
  bool pixels = false;
  bool origins = false;  // batches say where images come from (DataBatch::origins)
  // Sets what suits `device` best; nothing for the CPU.
  void Feed(Context device);

  static void Declare(Fields<PipelineParam>& f) {
    using P = PipelineParam;
    f.Add("batch_size", &P::batch_size).Required().Range(1, kMostBatch).Help("examples per batch");
    f.Add("mode", &P::mode)
        .Enum({{"training", kTraining}, {"evaluation", kEvaluation}})
        .Default(kTraining)
        .Help("how incomplete batches and bad examples are handled");
    f.Add("shuffle", &P::shuffle).Default(false).Help("a new order each epoch");
    f.Add("balanced", &P::balanced)
        .Default(false)
        .Help(
            "training: each class equally often in an epoch of the same length, examples of small "
            "classes several times; needs shuffle");
    f.Add("soft_labels", &P::soft_labels)
        .Default(0)
        .Range(0)
        .Help(
            "number of classes over which labels (class numbers) become distributions; 0: they "
            "stay numbers");
    f.Add("label_smoothing", &P::label_smoothing)
        .Default(0)
        .Range(0, 1)
        .Help("with soft_labels: fraction of a label shared by the other classes");
    f.Add("mixup", &P::mixup)
        .Default(0)
        .Range(0)
        .Help("training, with soft_labels or labels that are boxes: alpha of mixup; 0: off");
    f.Add("mixup_epochs", &P::mixup_epochs)
        .Default(-1)
        .Help("epochs with mixup, from the first; negative: all");
    f.Add("cutmix", &P::cutmix)
        .Default(0)
        .Range(0)
        .Help("training, with soft_labels: alpha of cutmix; 0: off");
    f.Add("cutmix_epochs", &P::cutmix_epochs)
        .Default(-1)
        .Help("epochs with cutmix, from the first; negative: all");
    f.Add("mosaic", &P::mosaic)
        .Default(0)
        .Range(0, 1)
        .Help(
            "training, with labels that are boxes, masks or images: probability that four examples "
            "exchange quarters of their images");
    f.Add("mosaic_epochs", &P::mosaic_epochs)
        .Default(-1)
        .Help("epochs with mosaic, from the first; negative: all");
    f.Add("seed", &P::seed).Default(0).Help("seed of order and augmentation");
    f.Add("part_index", &P::part_index)
        .Default(0)
        .Range(0)
        .Help("which part of the examples, of num_parts");
    f.Add("num_parts", &P::num_parts).Default(1).Range(1).Help("parts that share the examples");
    f.Add("workers", &P::workers)
        .Default(0)
        .Range(0, 256)
        .Help("decode threads; 0: half of the cores, at least one");
    f.Add("prefetch", &P::prefetch)
        .Default(3)
        .Range(1, 64)
        .Help("batches prepared ahead of the one in use");
    f.Add("keep_remainder", &P::keep_remainder)
        .Default(false)
        .Help("training: keep an epoch's incomplete last batch, padded");
    f.Add("max_bad", &P::max_bad)
        .Default(0.01)
        .Range(0, 1)
        .Help("training: maximum fraction of unreadable examples tolerated");
    f.Add("channels", &P::channels)
        .Default(0)
        .Range(0, 3)
        .Help("of images: 1 gray, 3 RGB, 0 as the source (files: 3)");
    f.Add("exact_decode", &P::exact_decode)
        .Default(false)
        .Help("JPEG at full size and to its end, slower");
    f.Add("bits", &P::bits)
        .Enum({{"8", 8}, {"16", 16}})
        .Default(8)
        .Help(
            "16: PNG, TIFF and PNM files of more than 8 bits per channel are not reduced to 8; "
            "only crops, resizes without antialiasing, flips and normalize can be used, and "
            "batches are "
            "float32");
    f.Add("cache", &P::cache)
        .Enum({{"none", kNone}, {"ram", kRam}})
        .Default(kNone)
        .Help(
            "ram: images are kept decoded, after the leading transforms that are not random; these "
            "alone "
            "decide the reduced size at which images are decoded, cached or not");
    f.Add("cache_bytes", &P::cache_bytes)
        .Default(0)
        .Range(0)
        .Help("memory limit of the cache; 0: half of the free memory at the start");
    f.Add("data_name", &P::data_name)
        .Default("")
        .Help("name of the data, if there is one; default: the source's");
    f.Add("label_name", &P::label_name)
        .Default("")
        .Help("name of the label, if there is one; default: the source's");
  }
};

// How many unreadable examples a training pipeline of so many tolerates.
inline int64_t ToleratedBad(double max_bad, int64_t examples) {
  return static_cast<int64_t>(max_bad * static_cast<double>(examples));
}

// Throws kConfig for parameters or transforms that do not match the source. Threads start here,
// work starts with the first Reset or Next. It may be destroyed in the middle of an epoch: examples
// being loaded are finished, the rest is discarded.
MXTRAIN_API std::unique_ptr<DataIter> NewPipeline(Runtime& runtime,
                                                  std::shared_ptr<const Source> source,
                                                  const std::vector<TransformSpec>& transforms,
                                                  const PipelineParam& param);
// The same with images of several sizes (DataIter::sizes). Throws kConfig with a cache, which keeps
// images of one size.
MXTRAIN_API std::unique_ptr<DataIter> NewMultiScalePipeline(
    Runtime& runtime, const std::shared_ptr<const Source>& source, const MultiScale& scales,
    const PipelineParam& param);

}  // namespace mxtrain::io
