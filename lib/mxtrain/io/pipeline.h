#pragma once
// The pipeline: read -> decode -> augment -> batch -> prefetch, on threads of its own and a bounded ring of batches.
//
// Each thread takes one example at a time from the earliest batch that is still open (cheap examples in larger pieces), loads it and writes
// it straight into the batch's arrays. What a batch holds is a function of the parameters, the epoch and its number, not of threads or
// time.
//
// To the engine a batch is one AsyncFn that mutates the batch's arrays: its body only opens the slot, the pipeline's callback finishes it.
// A slot is used again when the caller has dropped the batch; the engine opens it when the readers pushed before have finished. Callbacks
// never wait for the caller, so WaitForAll ends.
#include <memory>

#include "mxtrain/base/params.h"
#include "mxtrain/io/augmenter.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct MXTRAIN_API PipelineParam : Parameter<PipelineParam> {
  // Training drops the remainder of an epoch; an example that cannot be had is replaced by the next good one in the epoch's order, and too
  // many of them are an error. Evaluation (and inference) leaves out nothing: the last batch is padded; an example that cannot be had is
  // named in the batch's `bad`, and the batch has one example less. Padding repeats the first examples of the epoch.
  enum Mode { kTraining, kEvaluation };
  int64_t batch_size, seed, cache_bytes, mixup_epochs, cutmix_epochs;
  enum Cache { kNone, kRam };
  int mode, part_index, num_parts, workers, prefetch, channels, cache;
  int soft_labels;
  bool shuffle, balanced, keep_remainder, exact_decode;
  double max_bad, label_smoothing, mixup, cutmix;
  std::string data_name, label_name;
  // These are no keys: they follow from the device.
  Context memory = Context::cpu();  // where batches lie; pinned for a GPU, which then copies them by itself
  // Pictures go into batches as pixels of 8 bits, which the device normalises (DataDesc::pixels). Not where examples are mixed, which is done to
  // numbers: these batches are float32 nevertheless.
  bool pixels = false;
  // What `device` takes best; nothing for the CPU.
  void Feed(Context device);

  static void Declare(Fields<PipelineParam>& f) {
    using P = PipelineParam;
    f.Add("batch_size", &P::batch_size).Required().Range(1, 1 << 20).Help("examples per batch");
    f.Add("mode", &P::mode)
        .Enum({{"training", kTraining}, {"evaluation", kEvaluation}})
        .Default(kTraining)
        .Help("how incomplete batches and bad examples are met");
    f.Add("shuffle", &P::shuffle).Default(false).Help("a new order each epoch");
    f.Add("balanced", &P::balanced)
        .Default(false)
        .Help("training: each class equally often in an epoch of the same length, examples of small classes several times; needs shuffle");
    f.Add("soft_labels", &P::soft_labels)
        .Default(0)
        .Range(0)
        .Help("labels, which are numbers of classes, become distributions over so many classes; 0: they stay numbers");
    f.Add("label_smoothing", &P::label_smoothing).Default(0).Range(0, 1).Help("with soft_labels: part of a label that the other classes share");
    f.Add("mixup", &P::mixup).Default(0).Range(0).Help("training, with soft_labels: alpha of mixup; 0: off");
    f.Add("mixup_epochs", &P::mixup_epochs).Default(-1).Help("epochs with mixup, from the first; negative: all");
    f.Add("cutmix", &P::cutmix).Default(0).Range(0).Help("training, with soft_labels: alpha of cutmix; 0: off");
    f.Add("cutmix_epochs", &P::cutmix_epochs).Default(-1).Help("epochs with cutmix, from the first; negative: all");
    f.Add("seed", &P::seed).Default(0).Help("of order and augmentation");
    f.Add("part_index", &P::part_index).Default(0).Range(0).Help("which part of the examples, of num_parts");
    f.Add("num_parts", &P::num_parts).Default(1).Range(1).Help("parts that share the examples");
    f.Add("workers", &P::workers).Default(0).Range(0, 256).Help("decode threads; 0: half of the cores, at least one");
    f.Add("prefetch", &P::prefetch).Default(3).Range(1, 64).Help("batches prepared ahead of the one in use");
    f.Add("keep_remainder", &P::keep_remainder).Default(false).Help("training: keep an epoch's incomplete last batch, padded");
    f.Add("max_bad", &P::max_bad).Default(0.01).Range(0, 1).Help("training: part of the examples that may be bad");
    f.Add("channels", &P::channels).Default(0).Range(0, 3).Help("of pictures: 1 gray, 3 RGB, 0 as the source (files: 3)");
    f.Add("exact_decode", &P::exact_decode).Default(false).Help("JPEG at full size and to its end, slower");
    f.Add("cache", &P::cache)
        .Enum({{"none", kNone}, {"ram", kRam}})
        .Default(kNone)
        .Help(
            "ram: pictures are kept decoded, after the transforms that draw nothing at random; what they are reduced to while decoding "
            "depends on those alone, for all pictures, kept or not");
    f.Add("cache_bytes", &P::cache_bytes).Default(0).Range(0).Help("most memory for the cache; 0: half of what is free at the start");
    f.Add("data_name", &P::data_name).Default("").Help("name of the data, where there is one; default: the source's");
    f.Add("label_name", &P::label_name).Default("").Help("name of the label, where there is one; default: the source's");
  }
};

// Throws kConfig for parameters or transforms that do not fit the source. Threads start here, work with the first Reset or Next.
// Destroying it in the middle of an epoch is legal: what is being loaded is finished, the rest is left.
MXTRAIN_API std::unique_ptr<DataIter> NewPipeline(Runtime& runtime, std::shared_ptr<const Source> source,
                                                  const std::vector<TransformSpec>& transforms, const PipelineParam& param);

}  // namespace mxtrain::io
