// SPDX-License-Identifier: Apache-2.0
// The keys under `train`. A key is listed only if the program acts on it.
#include "app/config/schema_train.h"
#include "app/config/schema_kinds.h"
#include "mxtrain/train/watch.h"

namespace mxtrain::config {
namespace {

Section<MixConfig> MixSection(const std::string& what) {
  Section<MixConfig> s;
  s.Add("alpha", &MixConfig::alpha)
      .Required()
      .Range(0, 100)
      .Help("mix pairs of examples (" + what +
            ") and their labels, in a proportion drawn from Beta(alpha, alpha); 0: off")
      .Also({"beta", "lambda", "a"});
  s.Add("off_epochs", &MixConfig::off_epochs)
      .Default(0)
      .Range(0)
      .Help("epochs at the end of the run without mixing")
      .Also({"off_epoch", "mixup_off_epoch", "until_epoch"});
  return s;
}

Section<MosaicConfig> MosaicSection() {
  Section<MosaicConfig> s;
  s.Add("probability", &MosaicConfig::probability)
      .Required()
      .Range(0, 1)
      .Help(
          "exchange quarters of the images of four examples, with their boxes or masks, in so many "
          "of them; 0: off")
      .Also({"p", "prob", "mosaic_prob"});
  s.Add("off_epochs", &MosaicConfig::off_epochs)
      .Default(0)
      .Range(0)
      .Help("epochs at the end of the run without it")
      .Also({"close_mosaic", "no_aug_epochs"});
  return s;
}

Section<MultiScaleConfig> MultiScaleSection() {
  using C = MultiScaleConfig;
  Section<C> s;
  s.Add("scale", &C::scale)
      .Required()
      .Help(
          "least and most of the sizes of training images, as multiples of the net's input, such "
          "as "
          "[0.75, 1.25]; evaluation keeps the net's size")
      .Also({"range", "scales", "ratio_range"});
  s.Add("multiple", &C::multiple)
      .Default(32)
      .Range(1, 4096)
      .Help("their shorter sides, and the longer ones, are multiples of so many pixels")
      .Also({"stride", "divisor", "size_divisor", "step"});
  s.Add("batches", &C::batches)
      .Default(10)
      .Range(1)
      .Help("so many batches, one after the other, have the same size")
      .Also({"every", "interval", "random_size_interval"});
  s.Add("off_epochs", &C::off_epochs)
      .Default(0)
      .Range(0)
      .Help("epochs at the end of the run with images of the net's size alone")
      .Also({"no_aug_epochs"});
  return s;
}

Section<EarlyStopConfig> EarlyStopSection() {
  Section<EarlyStopConfig> s;
  s.Add("patience", &EarlyStopConfig::patience)
      .Default(0)
      .Range(0)
      .Help(
          "stop after this many epochs without improvement of the `best` metric; an epoch that "
          "equals "
          "the best one with a lower loss improves it; 0: never; short: early_stop: 5, on the "
          "command line train.early_stop=5")
      .Also({"early_stopping_patience", "stop_after"});
  s.Add("target", &EarlyStopConfig::target)
      .Default({})
      .Help(
          "stop when the `best` metric reaches this value, from below, or from above if lower is "
          "better; 0.9 is 90 %")
      .Also({"until", "goal", "baseline", "stopping_threshold"});
  s.Add("min_delta", &EarlyStopConfig::min_delta)
      .Default(0)
      .Range(0)
      .Help("smallest change that counts as an improvement")
      .Also({"delta", "threshold", "min_change"});
  return s;
}

// How long a run is, and what a step of it is.
void AddLength(Section<TrainConfig>& s) {
  using C = TrainConfig;
  s.Add("epochs", &C::epochs)
      .Default(10)
      .Range(0)
      .Help("passes over the training data; 0: save the model of train.weights unchanged")
      .Also({"num_epochs", "max_epochs", "max_epoch", "num_epoch", "n_epochs"});
  s.Add("max_steps", &C::max_steps)
      .Default(0)
      .Range(0)
      .Help("stop after this many steps; 0: no limit")
      .Also({"max_iter", "num_steps", "max_iters", "iterations"});
  s.Add("time_limit", &C::time_limit)
      .Default({})
      .Help(
          "stop after this time, for example 90min, then evaluate and save; the run can be "
          "continued with --resume; the learning rate schedule still spans all epochs; 0: no limit")
      .Also({"max_time", "time", "timeout", "max_hours"});
  s.Below("early_stop", &C::early_stop, EarlyStopSection(),
          "stop the run when it no longer improves, or is good enough", false, "patience",
          {"early_stopping", "EarlyStopping", "patience"});
  s.Add("grad_accum", &C::grad_accum)
      .Default(1)
      .Range(1, 1 << 20)
      .Help(
          "batches whose gradients are summed before each update, as if they were one large batch; "
          "steps count updates")
      .Also({"grad_accum_steps", "gradient_accumulation_steps", "accumulate_grad_batches",
             "iter_size", "subdivisions", "accumulate", "nbs"});
}

Section<EmaConfig> EmaSection() {
  Section<EmaConfig> s;
  s.Add("decay", &EmaConfig::decay)
      .Required()
      .Range(0, 1)
      .Help(
          "decay of the moving averages of weights and statistics, which evaluation and users of "
          "checkpoints read: a = d a + (1 - d) w after each step, d = min(decay, t / (t + 9)) "
          "after t steps")
      .Also({"ema_decay", "beta", "model_ema_decay"});
  return s;
}

Section<FreezeConfig> FreezeSection() {
  Section<FreezeConfig> s;
  s.Add("layers", &FreezeConfig::layers)
      .Default({})
      .Help(
          "name patterns of parameters that are not updated; without global_stats batch norm "
          "statistics still change where something before them learns")
      .Also({"parameters", "patterns"});
  s.Add("except", &FreezeConfig::except)
      .Default({})
      .Help("name patterns of parameters that learn all the same; alone: all others are frozen")
      .Also({"but", "unfrozen", "train_only"});
  s.Add("epochs", &FreezeConfig::epochs)
      .Default(0)
      .Range(0)
      .Help(
          "epochs from the beginning of the run for which they are frozen, to train a new head "
          "first; 0: all")
      .Also({"freeze_epochs", "until", "unfreeze_epoch"});
  s.Add("warmup", &FreezeConfig::warmup)
      .Default(FreezeConfig().warmup)
      .Range(0, 1)
      .Help(
          "with epochs: the fraction of the steps after them in which the learning rate of these "
          "parameters rises from 0 to the schedule's, which may be at its peak; 0: at once")
      .Also({"warm_up", "warmup_fraction", "unfreeze_warmup"});
  s.Add("global_stats", &FreezeConfig::global_stats)
      .Default(false)
      .Help(
          "frozen batch norms normalize by their moving averages, as in evaluation, and do not "
          "change them")
      .Also({"use_global_stats", "freeze_bn", "bn_eval"});
  return s;
}

Section<LoraConfig> LoraSection() {
  Section<LoraConfig> s;
  s.Add("layers", &LoraConfig::layers)
      .Required()
      .Help(
          "name patterns of FullyConnected and Convolution layers: each gets a product of two "
          "small "
          "matrices added to its weight, which learn; everything else is frozen, with batch norms "
          "that use their stored statistics, and stays in the file of train.weights")
      .Also({"target_modules", "targets", "modules"});
  s.Add("rank", &LoraConfig::rank)
      .Default(8)
      .Range(1, 1 << 16)
      .Help("rows of the first matrix, columns of the second")
      .Also({"r", "lora_r", "lora_rank", "dim"});
  s.Add("alpha", &LoraConfig::alpha)
      .Default(16)
      .Range(0)
      .Help("the product is multiplied by alpha / rank")
      .Also({"lora_alpha"});
  s.Add("dropout", &LoraConfig::dropout)
      .Default(0)
      .Range(0, 0.99)
      .Help("fraction of the layer's inputs that the first matrix does not see, in training")
      .Also({"lora_dropout", "p"});
  s.Add("whole", &LoraConfig::whole)
      .Default({})
      .Help(
          "name patterns of parameters that learn themselves, and are in checkpoints: those of a "
          "new head")
      .Also({"modules_to_save", "also", "full"});
  return s;
}

// How parameters are updated, and which.
void AddUpdates(Section<TrainConfig>& s) {
  using C = TrainConfig;
  s.Add("optimizer", &C::optimizer)
      .Default({"sgd", {}, {}})
      .Kinds(OptimizerKinds())
      .Help("how parameters are updated")
      .Also({"optim", "solver"});
  s.Add("lr_schedule", &C::lr_schedule)
      .Default({"constant", {}, {}})
      .Kinds(LrScheduleKinds())
      .Help("how the learning rate changes")
      .Also({"scheduler", "lr_scheduler", "lr_policy"});
  s.Add("lr_mult", &C::lr_mult)
      .Default({})
      .Help(
          "learning rate multipliers by parameter name pattern, {fc*: 10, conv1_*: 0.1}; the last "
          "match wins, 0 freezes")
      .Also({"lr_multipliers", "param_groups", "layer_lr", "lr_scale"});
  s.Add("lr_decay", &C::lr_decay)
      .Default(1)
      .Range(0.01, 1)
      .Help(
          "factor of the learning rate from each group of layers to the one before it, counted "
          "from "
          "the head, in addition to lr_mult; 0.65 to 0.9 for transformers and ConvNeXt; 1: off")
      .Also({"layer_decay", "layerwise_lr_decay", "llrd", "discriminative_lr"});
  s.Below("freeze", &C::freeze, FreezeSection(), "parameters that do not learn", false, "layers",
          {"frozen", "freeze_layers", "frozen_stages", "stopbackward"});
  s.Below("lora", &C::lora, LoraSection(), "low-rank adaptation of the net of train.weights", false,
          "layers", {"peft", "adapter", "adapters", "lora_config"});
  s.Below("ema", &C::ema, EmaSection(), "exponential moving average of the weights", false,
          "decay");
}

// What examples and classes count in the loss.
void AddLoss(Section<TrainConfig>& s) {
  using C = TrainConfig;
  s.Below("mixup", &C::mixup, MixSection("as a weighted sum"), "mix examples and labels", false,
          "alpha");
  s.Below("cutmix", &C::cutmix, MixSection("a box of one pasted into the other"),
          "mix examples and labels", false, "alpha");
  s.Below("mosaic", &C::mosaic, MosaicSection(), "join parts of images", false, "probability");
  s.Below("multi_scale", &C::multi_scale, MultiScaleSection(), "images of several sizes", false,
          "scale", {"multiscale", "random_size", "multi_scale_training"});
  s.Add("class_weights", &C::class_weights)
      .Default({})
      .Help(
          "weights of the classes in SoftmaxOutput's loss: auto (examples / (classes * examples of "
          "the class)), a number for each class, or {class: number}")
      .Also({"class_weight", "weight_classes", "pos_weight", "loss_weights", "cls_weights",
             "class_loss_weights"});
}

Section<WeightsConfig> WeightsSection() {
  Section<WeightsConfig> s;
  s.Add("file", &WeightsConfig::file)
      .IsPath()
      .Default("")
      .Help(
          "a run folder, a checkpoint, PREFIX@7 or .params of MXNet, .safetensors (of several "
          "files: .safetensors.index.json), or .pth of PyTorch; https://... and "
          "hf://OWNER/REPO/FILE are downloaded once; parameters that it lacks, or has in another "
          "shape, are re-initialized")
      .Also({"path", "checkpoint"});
  s.Describe("sha256", "string",
             "SHA-256 of the file in hexadecimal digits (of an index: of the index alone); any "
             "other file is refused; the same as file: FILE#sha256=DIGITS");
  s.Add("map", &WeightsConfig::map)
      .IsPath()
      .Default("")
      .Help(
          "YAML list of [pattern, replacement]: regular expressions that turn names in the file "
          "into names of the net; null as the replacement drops an array, a third element, "
          "transpose, transposes it")
      .Also({"names", "name_map"});
  s.Add("state", &WeightsConfig::state)
      .Default("")
      .Help(
          "which of several state dicts in a file of PyTorch, by its key (model_ema, "
          "state_dict_ema, generator.params); default: state_dict, model, or another usual key")
      .Also({"state_dict", "checkpoint_key", "model_key", "key"});
  s.Add("partial", &WeightsConfig::partial)
      .Default(false)
      .Help(
          "take what fits also from weights of another net; otherwise a file that lacks more than "
          "a tenth of the arrays before the last layers is an error")
      .Also({"ignore_mismatched_sizes", "allow_missing"});
  return s;
}

// Where parameters begin.
void AddInitialValues(Section<TrainConfig>& s) {
  using C = TrainConfig;
  s.Add("initializer", &C::initializer)
      .Default({"xavier", {}, {}})
      .Kinds(InitializerKinds())
      .Help("how weights are initialized")
      .Also({"init", "weight_init"});
  s.Below("weights", &C::weights, WeightsSection(), "initial weights from a file, for fine-tuning",
          false, "file",
          {"pretrained", "pretrained_model", "pretrained_weights", "init_from", "load", "finetune",
           "fine_tune", "snapshot_weights"});
  s.Add("initializers", &C::initializers)
      .Default({})
      .Kinds(InitializerKinds())
      .Help(
          "initializers by parameter name pattern, {fc*_weight: {normal: 0.01}}; the last match "
          "wins");
}

void AddMetrics(Section<TrainConfig>& s) {
  s.Add("metrics", &TrainConfig::metrics)
      .Default({})
      .Kinds(MetricKinds())
      .Help(
          "metrics; the default depends on the first loss: accuracy for SoftmaxOutput, rmse and "
          "mae for regressions, multilabel_accuracy for LogisticRegressionOutput")
      .Also({"metric", "eval_metric"});
}

// How the device computes: rounding, kernels, memory.
void AddComputation(Section<TrainConfig>& s) {
  using C = TrainConfig;
  s.Add("math", &C::math)
      .Default("fast")
      .Choices({"fast", "exact", "tf32"})
      .Help(
          "fast: allow kernels with rounding errors up to four times those of plain sums, and on a "
          "GPU of compute capability 8.0 or later round the factors of float32 products to 10 bits "
          "of fraction (TF32); exact: plain sums in float32; tf32: what fast is there");
  s.Add("measure_kernels", &C::measure_kernels)
      .Default(true)
      .Help(
          "on a GPU: time cuDNN's kernels for each convolution when training begins, and keep the "
          "fastest, also in checkpoints; if false, or with --deterministic, cuDNN's heuristics "
          "choose")
      .Also({"cudnn_benchmark", "benchmark", "cudnn_tune", "autotune", "tune"});
  s.Add("memory_budget", &C::memory_budget)
      .Default({})
      .Help(
          "memory limit for activations and gradients together: a size such as 2GiB, or 75% of "
          "what they take without a limit; what does not fit is recomputed; 0: no limit")
      .Also({"memory_limit", "max_memory", "recompute", "gradient_checkpointing"});
  s.Add("amp", &C::amp)
      .Default("off")
      .Choices({"off", "bf16", "fp16"})
      .Help(
          "mixed precision, in training and evaluation: convolutions, matrix products and the "
          "operators between them compute in bfloat16 (bf16) or float16 (fp16, on GPUs, with "
          "dynamic loss scaling: a step that overflows is skipped); weights, statistics, losses "
          "and updates stay float32")
      .Also({"mixed_precision", "precision", "dtype", "autocast", "half", "bf16", "fp16",
             "loss_scale", "grad_scaler"});
}

Section<BestConfig> BestSection() {
  Section<BestConfig> s;
  s.Add("metric", &BestConfig::metric)
      .Default({})
      .Help(
          "metric that selects the best checkpoint, by default the first; further metrics of a "
          "list get their own, best-METRIC")
      .Also({"monitor"});
  return s;
}

Section<MonitorConfig> MonitorSection() {
  Section<MonitorConfig> s;
  s.Add("pattern", &MonitorConfig::pattern)
      .Default("")
      .Help(
          "names of arrays, with * and ?: outputs of layers (fc1_output), gradients "
          "(fc1_backward_weight), parameters and statistics after the step (fc1_weight); empty: "
          "none")
      .Also({"layers", "name", "names"});
  s.Add("every", &MonitorConfig::every)
      .Default(100)
      .Range(1)
      .Help("steps from one with rows to the next; the others are as fast as without a monitor")
      .Also({"interval", "freq", "period"});
  s.Add("statistics", &MonitorConfig::statistics)
      .Default({"rms"})
      .Choices(StatisticNames())
      .Help(
          "columns of the table: rms (norm / sqrt(size)), norm, mean, std, min, max, abs_mean, "
          "abs_max, of the finite values; zeros, their fraction; nonfinite, the number of the "
          "others")
      .Also({"statistic", "stat", "stats", "stat_func"});
  return s;
}

Section<SaveConfig> SaveSection() {
  Section<SaveConfig> s;
  s.Add("every", &SaveConfig::every)
      .Default({1, Interval::Unit::kEpochs})
      .Help("how often: 10min, 500steps, 1epoch")
      .Also({"save_period", "save_freq", "period", "snapshot", "checkpoint_every"});
  s.Add("keep", &SaveConfig::keep)
      .Default(3)
      .Range(1)
      .Help("how many numbered checkpoints to keep")
      .Also({"save_top_k", "max_to_keep", "save_total_limit"});
  return s;
}

// What is reported and saved.
void AddRecords(Section<TrainConfig>& s) {
  using C = TrainConfig;
  s.Below("best", &C::best, BestSection(), "which checkpoint is kept as best", false, "metric");
  s.Add("report_every", &C::report_every)
      .Default(0)
      .Range(0)
      .Help(
          "steps between reports in events.jsonl, TensorBoard and the terminal; 0: by time, at "
          "most five per second")
      .Also({"display", "log_interval", "log_every", "log_every_n_steps", "logging_steps",
             "print_freq", "disp_freq"});
  s.Below("monitor", &C::monitor, MonitorSection(),
          "statistics of what the net computes, in monitor.csv and plots/monitor of the run", false,
          "pattern", {"watch"});
  s.Below("save", &C::save, SaveSection(), "checkpoints", false, "every",
          {"checkpoint", "checkpoints", "model_checkpoint"});
}

Section<ClipConfig> ClipSection() {
  Section<ClipConfig> s;
  s.Add("value", &ClipConfig::value)
      .Default({})
      .Range(0)
      .Help("bound on each element of the gradient")
      .Also({"clip_gradient", "clip_value", "clipvalue"});
  s.Add("norm", &ClipConfig::norm)
      .Default({})
      .Range(0)
      .Help("bound on the norm of the whole gradient")
      .Also({"clip_norm", "clipnorm", "global_clipnorm", "max_norm", "max_grad_norm",
             "clip_gradients"});
  return s;
}

Section<CompressionConfig> CompressionSection() {
  using C = CompressionConfig;
  Section<C> s;
  s.Add("type", &C::type)
      .Default("none")
      .Choices({"none", "2bit"})
      .Help(
          "2bit: of each gradient only the threshold with its sign, or 0, is sent; the rest is "
          "added to the next step's");
  s.Add("threshold", &C::threshold)
      .Default(0.5)
      .Range(1e-30, 1e30)
      .OnlyFor("type", {"2bit"})
      .Help("of gradients summed over the examples of a process");
  return s;
}

Section<KVStoreConfig> KVStoreSection() {
  Section<KVStoreConfig> s;
  s.Add("type", &KVStoreConfig::type)
      .Default("auto")
      .Choices({"auto", "local", "device", "dist_sync", "dist_device_sync", "dist_async"})
      .Help(
          "where gradients are summed: local: on the first device; device: between GPUs with NCCL; "
          "dist_sync: between the processes that mpirun or srun started; dist_device_sync: between "
          "their GPUs; dist_async: as dist_sync, but none waits for the others' gradients; auto: "
          "device if there are several GPUs")
      .Also({"strategy"});
  s.Add("workers", &KVStoreConfig::workers)
      .Default(1)
      .Range(1, 1024)
      .Help("logical workers that share a batch on one device")
      .Also({"num_workers"});
  s.Add("batch", &KVStoreConfig::batch)
      .Default("global")
      .Choices({"global", "per_rank"})
      .Help("dist_*: whether data.batch_size is that of all processes, or of each");
  s.Add("scale_lr", &KVStoreConfig::scale_lr)
      .Default(false)
      .Help("dist_sync: multiply the learning rate by the number of processes");
  s.Add("sync_batch_norm", &KVStoreConfig::sync_batch_norm)
      .Default(false)
      .Help(
          "batch norm takes its statistics over the whole batch, of all workers and processes; "
          "false: each of its own part")
      .Also({"sync_bn"});
  s.Add("wire", &KVStoreConfig::wire)
      .Default("float32")
      .Choices({"float32", "bfloat16"})
      .Help(
          "how gradients travel between processes (dist_*) or GPUs (device); bfloat16: half as "
          "many bytes, with 8 bits of precision");
  s.Below("compression", &KVStoreConfig::compression, CompressionSection(),
          "dist_sync: MXNet's gradient compression", false, "type",
          {"gradient_compression", "compression_params"});
  s.Add("shard_states", &KVStoreConfig::shard_states)
      .Default(false)
      .Help(
          "dist_sync: each process keeps the optimizer's states of a part of the parameters, and "
          "updates these")
      .Also({"zero", "zero_stage", "sharded_optimizer"});
  s.Add("timeout", &KVStoreConfig::timeout)
      .Default({600})
      .Range(1)
      .Help("dist_*: how long a process waits for the others before it ends with exit code 10");
  s.Add("staleness", &KVStoreConfig::staleness)
      .Default(0)
      .Range(0, 10'000)
      .Help(
          "dist_async: the most updates of a parameter by other processes between the read of its "
          "value and the update computed from it; 0: 4 for each of them")
      .Also({"max_staleness", "staleness_bound"});
  return s;
}

// What happens to gradients before the update.
void AddGradients(Section<TrainConfig>& s) {
  using C = TrainConfig;
  s.Below("clip", &C::clip, ClipSection(), "gradient clipping; one of the two", false);
  s.Below(
      "kvstore", &C::kvstore, KVStoreSection(),
      "how workers and processes sum their gradients and update the weights (a store of arrays by "
      "keys)",
      false, "type");
}

}  // namespace

Section<TrainConfig> TrainSection() {
  Section<TrainConfig> s;
  AddLength(s);
  AddUpdates(s);
  AddLoss(s);
  AddInitialValues(s);
  AddMetrics(s);
  AddComputation(s);
  AddRecords(s);
  AddGradients(s);
  return s;
}

}  // namespace mxtrain::config
