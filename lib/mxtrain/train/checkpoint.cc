// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/checkpoint.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/read_json.h"
#include "mxtrain/ndarray/array_stream.h"
#include "mxtrain/ndarray/torch_file.h"

namespace mxtrain {
namespace {

namespace fs = std::filesystem;
static_assert(std::endian::native == std::endian::little);
constexpr std::string_view kMagic = "MXTRAIN1";
constexpr size_t kKindBytes = 4;  // of "arg:" before an array's name
// Larger counts are not of a run, and would overflow in sums and products.
constexpr int64_t kMostSteps = int64_t{1} << 53, kMostEpochs = int64_t{1} << 31,
                  kMostBatch = int64_t{1} << 31;

Json ShapesToJson(const std::vector<InputInfo>& inputs) {
  Json list = Json::array();
  for (const InputInfo& input : inputs) {
    list.push_back({{"name", input.name},
                    {"shape", std::vector<int64_t>(input.shape.begin(), input.shape.end())},
                    {"type", NameOf(input.type)}});
  }
  return list;
}

std::vector<InputInfo> InputsFromJson(const FileJson& list) {
  std::vector<InputInfo> inputs;
  for (const FileJson& item : list) {
    inputs.push_back({item.at("name"), TShape(item.at("shape").get<std::vector<int64_t>>()),
                      ParseDType(item.at("type").get<std::string>())});
    const InputInfo& input = inputs.back();
    if (input.shape.Size() < 0)
      Throw(ErrorKind::kData, "the shape of '{}' is {}", input.name, input.shape.ToString());
  }
  return inputs;
}

Json ToJson(const LossScaleState& s) {
  return {{"scale", s.scale},
          {"good_steps", s.good_steps},
          {"steps_left_out", s.steps_skipped},
          {"at_lowest", s.at_lowest}};
}

Json ToJson(const LoraInfo& lora) {
  Json factors = Json::array(), map = Json::array();
  for (const LoraFactors& names : lora.factors) factors.push_back({names.weight, names.a, names.b});
  for (const NameMap::Rule& rule : lora.base.rules) {
    map.push_back({{"pattern", rule.pattern}, {"transpose", rule.transpose}});
    if (rule.replacement) map.back()["replacement"] = *rule.replacement;
  }
  return {{"scale", lora.scale},
          {"factors", factors},
          {"base",
           {{"file", lora.base.file},
            {"address", lora.base.address},
            {"state", lora.base.state},
            {"map", map},
            {"checksum", lora.base.checksum}}}};
}

LoraInfo LoraFromJson(const FileJson& j) {
  LoraInfo lora;
  lora.scale = j.at("scale").get<double>();
  for (const FileJson& names : j.at("factors"))
    lora.factors.push_back({names.at(0), names.at(1), names.at(2)});
  const FileJson& base = j.at("base");
  lora.base.file = base.at("file");
  lora.base.address = base.at("address");
  lora.base.state = base.at("state");
  lora.base.checksum = base.at("checksum");
  for (const FileJson& rule : base.at("map")) {
    NameMap::Rule& read = lora.base.rules.emplace_back();
    read.pattern = rule.at("pattern");
    read.transpose = rule.at("transpose").get<bool>();
    if (rule.contains("replacement")) read.replacement = rule.at("replacement").get<std::string>();
  }
  return lora;
}

Json HeaderOf(const Checkpoint& c) {
  const ModelInfo& m = c.model;
  const TrainState& s = c.state;
  Json best = Json::array();
  for (const BestValue& b : s.best) {
    if (!b.value) continue;
    best.push_back({{"value", *b.value}, {"metric", b.metric}, {"epoch", b.epoch}});
    if (b.loss) best.back()["loss"] = *b.loss;
  }
  return {{"format", 1},
          {"model",
           {{"symbol", m.symbol_json},
            {"inputs", ShapesToJson(m.inputs)},
            {"labels", ShapesToJson(m.labels)},
            {"classes", m.class_names},
            {"pipeline", m.pipeline},
            {"config", m.config},
            {"train_data", m.train_data},
            {"val_data", m.val_data},
            {"batch_size", m.batch_size},
            {"kernel_choices", m.kernel_choices},
            {"lora", m.lora ? ToJson(*m.lora) : Json()},
            {"carry", m.carry}}},
          {"state",
           {{"step", s.step},
            {"epoch", s.epoch},
            {"step_in_epoch", s.step_in_epoch},
            {"open", s.open},
            {"first_epoch", s.first_epoch},
            {"first_step", s.first_step},
            {"unfrozen_step", s.unfrozen_step},
            {"total_steps", s.total_steps},
            {"batches_per_step", s.batches_per_step},
            {"ended_early", s.ended_early},
            {"random_step", s.random_step},
            {"random_calls", s.random_calls},
            {"seed", s.seed},
            {"threads", s.threads},
            {"metrics", s.metric_states},
            {"loss", s.loss_state},
            {"schedule", s.schedule_state},
            {"early_stop", s.early_stop_state},
            {"examples_in_epoch", s.examples_in_epoch},
            {"average_updates", s.average_updates},
            {"loss_scale", s.loss_scale ? ToJson(*s.loss_scale) : Json()},
            {"best", best}}}};
}

// A count, at most `most`; `otherwise` if an older file lacks it.
int64_t CountFromJson(const FileJson& j, const char* key, int64_t most,
                      std::optional<int64_t> otherwise = std::nullopt) {
  const auto found = j.find(key);
  if (otherwise && found == j.end()) return *otherwise;
  const FileJson& value = j.at(key);
  if (const std::optional<int64_t> count = IntegerIn(value, 0, most)) return *count;
  Throw(ErrorKind::kData, "\"{}\" is {}, not a number from 0 to {}", key,
        value.dump(-1, ' ', false, FileJson::error_handler_t::replace), most);
}

// The examples of the current epoch are counted from its steps.
void RequireCountable(const TrainState& s, int64_t batch_size) {
  const int64_t per_step = std::max<int64_t>(batch_size, 1) * s.batches_per_step;
  if (s.step_in_epoch <= kMostSteps / per_step) return;
  Throw(ErrorKind::kData, "\"step_in_epoch\" is {}, too many for steps of {} examples",
        s.step_in_epoch, per_step);
}

LossScaleState LossScaleFromJson(const FileJson& j) {
  return {j.at("scale"), CountFromJson(j, "good_steps", kMostSteps),
          CountFromJson(j, "steps_left_out", kMostSteps),
          CountFromJson(j, "at_lowest", kMostSteps)};
}

TrainState StateFromJson(const FileJson& j) {
  TrainState s;
  s.step = CountFromJson(j, "step", kMostSteps);
  s.epoch = CountFromJson(j, "epoch", kMostEpochs);
  // Above `step` in a run that was resumed with smaller batches.
  s.step_in_epoch = CountFromJson(j, "step_in_epoch", kMostSteps);
  s.open = j.value("open", s.step_in_epoch > 0);
  // The next one if the current one is complete.
  s.first_epoch = CountFromJson(j, "first_epoch", s.epoch + 1, 0);
  s.first_step = CountFromJson(j, "first_step", s.step, 0);
  s.unfrozen_step = CountFromJson(j, "unfrozen_step", s.step, 0);
  s.total_steps = CountFromJson(j, "total_steps", kMostSteps, 0);
  s.batches_per_step = std::max<int64_t>(1, CountFromJson(j, "batches_per_step", kMostBatch, 1));
  s.ended_early = j.value("ended_early", false);
  s.random_step = j.at("random_step");
  s.random_calls = j.value("random_calls", uint64_t{0});  // missing in older files
  s.seed = j.at("seed");
  s.threads = j.at("threads");
  s.metric_states = j.at("metrics").get<std::vector<std::string>>();
  s.loss_state = j.at("loss");
  s.schedule_state = j.value("schedule", "");
  s.early_stop_state = j.value("early_stop", "");
  s.examples_in_epoch = CountFromJson(j, "examples_in_epoch", kMostSteps);
  s.average_updates = CountFromJson(j, "average_updates", kMostSteps, 0);
  if (const FileJson scale = j.value("loss_scale", FileJson()); !scale.is_null())
    s.loss_scale = LossScaleFromJson(scale);
  const FileJson& best = j.at("best");
  for (const FileJson& b : best.is_object() ? FileJson::array({best}) : best) {
    s.best.push_back(
        {b.at("metric"), b.at("value").get<double>(), CountFromJson(b, "epoch", kMostEpochs)});
    if (b.contains("loss")) s.best.back().loss = b.at("loss").get<double>();  // not in older files
  }
  return s;
}

ModelInfo ModelFromJson(const FileJson& m) {
  ModelInfo model;
  model.symbol_json = m.at("symbol");
  model.inputs = InputsFromJson(m.at("inputs"));
  model.labels = InputsFromJson(m.at("labels"));
  model.class_names = m.at("classes").get<std::vector<std::string>>();
  model.pipeline = m.at("pipeline");
  model.config = m.at("config");
  model.train_data = m.value("train_data", "");  // missing in older files
  model.val_data = m.value("val_data", "");
  model.batch_size = CountFromJson(m, "batch_size", kMostBatch);
  model.kernel_choices = m.value("kernel_choices", KernelChoices::Table());
  if (const FileJson lora = m.value("lora", FileJson()); !lora.is_null())
    model.lora = LoraFromJson(lora);
  model.carry = m.value("carry", std::vector<std::string>());
  return model;
}

constexpr uint64_t kFrameBytes = 32;  // magic, two lengths, checksum

[[noreturn]] void Damaged(const std::string& path, const char* why) {
  Throw(ErrorKind::kData, "{} is not a complete checkpoint: {}", path, why);
}

// Reads a checkpoint sequentially, with a running checksum.
class CheckpointReader {
 public:
  // Reads up to the arrays.
  explicit CheckpointReader(const std::string& path) : file_(path) {
    const bool weights = path.ends_with(".safetensors") || path.ends_with(".params") ||
                         path.ends_with(".pth") || path.ends_with(".pt");
    std::string magic(std::min<uint64_t>(kMagic.size(), file_.size()), '\0');
    Read(magic);
    if (magic != kMagic && (weights || IsTorchFile(ReadBeginMaybeGzip(path, 512))))
      Throw(ErrorKind::kData,
            "{} holds only weights, without a net: use train.weights to start a training with them",
            path);
    if (file_.size() < kFrameBytes) Damaged(path, "it is too short");
    if (magic != kMagic) Damaged(path, "it does not begin as one");
    const uint64_t inside = file_.size() - kFrameBytes, header_bytes = ReadNumber();
    if (header_bytes > inside) Damaged(path, "it ends early");
    header_.resize(header_bytes);
    Read(header_);
    array_bytes_ = ReadNumber();
    if (array_bytes_ != inside - header_bytes) Damaged(path, "it ends early");
  }

  const std::string& header() const { return header_; }

  // Reads the rest of the file. Throws kData if the checksum does not match.
  void Check() {
    std::string piece(static_cast<size_t>(std::min(LeftToSum(), kPieceBytes)), '\0');
    while (LeftToSum() > 0) {
      piece.resize(static_cast<size_t>(std::min<uint64_t>(LeftToSum(), piece.size())));
      Read(piece);
    }
    const uint64_t sum = sum_.value();
    if (ReadNumber() != sum) Damaged(file_.path(), "its checksum does not match its contents");
  }
  // Like Check, and indexes the arrays. Throws kData if they are malformed.
  ArrayIndex Index() {
    std::optional<ArrayIndex> index;
    std::exception_ptr failure;
    try {
      index.emplace([this](std::span<char> to) { Read(to); }, array_bytes_, file_.path());
    } catch (const Error&) {
      failure = std::current_exception();
    }
    Check();  // a damaged file is reported as such, whatever its contents
    if (failure) std::rethrow_exception(failure);
    return *std::move(index);
  }
  // After Index, which returned `index`: reads the arrays in a second pass.
  NamedArrays Load(const ArrayIndex& index, Runtime& runtime) {
    file_.Rewind();
    std::string before(static_cast<size_t>(kFrameBytes - sizeof(uint64_t) + header_.size()), '\0');
    Read(before);
    return index.Load(runtime, [this](std::span<char> to) { Read(to); });
  }

 private:
  static constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

  void Read(std::span<char> to) {
    if (file_.Read(to) != to.size()) Damaged(file_.path(), "it was truncated while it was read");
    sum_.Add({to.data(), to.size()});
    at_ += to.size();
  }
  uint64_t LeftToSum() const { return file_.size() - sizeof(uint64_t) - at_; }
  uint64_t ReadNumber() {
    uint64_t value = 0;
    Read({reinterpret_cast<char*>(&value), sizeof value});
    return value;
  }

  FileReader file_;
  RunningChecksum sum_;
  std::string header_;
  uint64_t array_bytes_ = 0, at_ = 0;
};

// The result of `read` on the header. Any error in it is reported for the file.
template <typename Read>
auto FromHeader(const std::string& path, std::string_view header, const Read& read) {
  try {
    return read(ReadJsonOf("its header", header));
  } catch (const FileJson::exception& e) {
    Throw(ErrorKind::kData, "{} was written by another version: {}", path, e.what());
  } catch (const Error& e) {
    Throw(ErrorKind::kData, "{} is not a complete checkpoint: {}", path, e.what());
  }
}

// The checkpoint's map for arrays of this kind; null for an unknown kind.
std::map<std::string, NDArray>* MapOf(std::string_view kind, Checkpoint* c) {
  if (kind == "arg:") return &c->args;
  if (kind == "aux:") return &c->auxs;
  if (kind == "avg:") return &c->averages;
  if (kind == "res:") return &c->residuals;
  if (kind == "car:") return &c->carried;
  return kind == "opt:" ? &c->optimizer : nullptr;
}

// Sorts arrays into the checkpoint by the prefix of their names.
void TakeArrays(const NamedArrays& arrays, const std::string& path, Checkpoint* c) {
  if (arrays.names.size() != arrays.arrays.size())
    Throw(ErrorKind::kData, "{} is not a complete checkpoint: its {} arrays have no names", path,
          arrays.arrays.size());
  for (size_t i = 0; i < arrays.arrays.size(); ++i) {
    const std::string& name = arrays.names[i];
    std::map<std::string, NDArray>* map = MapOf(std::string_view(name).substr(0, kKindBytes), c);
    if (!map)
      Throw(ErrorKind::kData,
            "{} is not a complete checkpoint: the array '{}' is neither arg:, aux:, opt:, avg:, "
            "res: nor car:",
            path, name);
    if (arrays.arrays[i].empty())
      Throw(ErrorKind::kData, "{} is not a complete checkpoint: the array '{}' has no shape", path,
            name);
    if (!map->emplace(name.substr(kKindBytes), arrays.arrays[i]).second)
      Throw(ErrorKind::kData, "{} is not a complete checkpoint: the array '{}' appears twice", path,
            name);
  }
}

// For tests of killed processes: delay of a save between writing and renaming.
void LingerInSave() {
  if (const char* text = std::getenv("MXTRAIN_SAVE_DELAY_MS"))
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(text)));
}

}  // namespace

void SaveCheckpoint(const std::string& path, const Checkpoint& checkpoint) {
  NamedArrays arrays;
  auto add = [&arrays](const char* prefix, const std::map<std::string, NDArray>& from) {
    for (const auto& [name, array] : from) {
      arrays.names.push_back(prefix + name);
      arrays.arrays.push_back(array);
    }
  };
  add("arg:", checkpoint.args);
  add("aux:", checkpoint.auxs);
  add("opt:", checkpoint.optimizer);
  add("avg:", checkpoint.averages);
  add("res:", checkpoint.residuals);
  add("car:", checkpoint.carried);
  // A path that is not UTF-8 is stored with U+FFFD.
  const std::string header =
      HeaderOf(checkpoint).dump(-1, ' ', false, Json::error_handler_t::replace);
  FileWriter file(path);
  RunningChecksum sum;
  const auto write = [&](std::string_view bytes) {
    sum.Add(bytes);
    file.Write(bytes);
  };
  const auto write_number = [&](uint64_t value) {
    write({reinterpret_cast<const char*>(&value), sizeof value});
  };
  write(kMagic);
  write_number(header.size());
  write(header);
  write_number(BytesOf(arrays));
  WriteArrays(arrays, write);
  write_number(sum.value());
  file.Commit();
}

Checkpoint LoadCheckpoint(Runtime& runtime, const std::string& path) {
  CheckpointReader file(path);
  const ArrayIndex index = file.Index();
  Checkpoint c = FromHeader(path, file.header(), [](const FileJson& header) {
    Checkpoint checkpoint{ModelFromJson(header.at("model")),
                          StateFromJson(header.at("state")),
                          {},
                          {},
                          {},
                          {},
                          {},
                          {}};
    RequireCountable(checkpoint.state, checkpoint.model.batch_size);
    return checkpoint;
  });
  TakeArrays(file.Load(index, runtime), path, &c);
  return c;
}

bool IsCheckpoint(const std::string& path) {
  return std::filesystem::is_regular_file(path) &&
         ReadBeginMaybeGzip(path, kMagic.size()) == kMagic;
}

ModelInfo PeekModel(const std::string& path) {
  const CheckpointReader file(path);
  return FromHeader(path, file.header(),
                    [](const FileJson& header) { return ModelFromJson(header.at("model")); });
}

TrainState PeekState(const std::string& path) {
  CheckpointReader file(path);
  file.Check();
  return FromHeader(path, file.header(),
                    [](const FileJson& header) { return StateFromJson(header.at("state")); });
}

void CheckpointFolder::Save(const Checkpoint& checkpoint, const std::vector<std::string>& names,
                            int keep) const {
  fs::create_directories(path_);
  const std::string fresh = File("last.new");
  SaveCheckpoint(fresh, checkpoint);
  LingerInSave();
  std::error_code ignored;
  // Puts a file's bytes under another name, replacing an old file atomically.
  auto give_name = [&](const std::string& file, const std::string& name) {
    const std::string beside = File(name + ".new");
    fs::remove(beside, ignored);
    std::error_code failed;
    fs::create_hard_link(file, beside, failed);
    if (failed) fs::copy_file(file, beside, fs::copy_options::overwrite_existing);
    fs::rename(beside, File(name));
  };
  for (const std::string& name : names) give_name(fresh, name);
  if (fs::exists(File("last"))) give_name(File("last"), "previous");
  fs::rename(fresh, File("last"));
  RemoveAbandonedFiles(path_);

  if (keep <= 0) return;
  std::vector<std::string> epochs;
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("epoch-") && !name.ends_with(".new")) epochs.push_back(name);
  }
  // By number: names are longer from epoch 10000 on.
  std::sort(epochs.begin(), epochs.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b);
  });
  for (size_t i = 0; i + static_cast<size_t>(keep) < epochs.size(); ++i)
    fs::remove(File(epochs[i]), ignored);
}

Checkpoint CheckpointFolder::LoadLast(Runtime& runtime, std::vector<std::string>* warnings) const {
  if (fs::exists(File("last"))) {
    try {
      return LoadCheckpoint(runtime, File("last"));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kData) throw;
      warnings->push_back(e.what());
    }
  }
  const auto [step, file] = NewestBesideLast();
  warnings->push_back(
      format("{} is missing or damaged; continuing from {} (step {})", File("last"), file, step));
  return LoadCheckpoint(runtime, file);
}

template <typename Peek>
auto CheckpointFolder::PeekedBy(const Peek& peek) const {
  if (fs::exists(File("last"))) {
    try {
      return peek(File("last"));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kData) throw;
    }
  }
  return peek(NewestBesideLast().second);
}

ModelInfo CheckpointFolder::PeekLast() const {
  return PeekedBy(PeekModel);
}

TrainState CheckpointFolder::PeekLastState() const {
  return PeekedBy(PeekState);
}

std::pair<int64_t, std::string> CheckpointFolder::NewestBesideLast() const {
  // Includes files under temporary names: a process may have been killed between writing and
  // renaming.
  std::vector<std::pair<int64_t, std::string>> whole;
  if (fs::is_directory(path_)) {
    for (const auto& entry : fs::directory_iterator(path_)) {
      if (entry.path().filename() == "last" || !entry.is_regular_file()) continue;
      try {
        whole.emplace_back(PeekState(entry.path()).step, entry.path().string());
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::kData) throw;
      }
    }
  }
  if (whole.empty())
    Throw(ErrorKind::kData, "{} holds no complete checkpoint to resume from; start a new run",
          path_);
  return *std::max_element(whole.begin(), whole.end());
}

}  // namespace mxtrain
