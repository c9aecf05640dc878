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
#include "mxtrain/base/json.h"

namespace mxtrain {
namespace {

namespace fs = std::filesystem;
static_assert(std::endian::native == std::endian::little);
constexpr std::string_view kMagic = "MXTRAIN1";

void AppendU64(uint64_t value, std::string* out) { out->append(reinterpret_cast<const char*>(&value), sizeof value); }

uint64_t ReadU64(std::string_view bytes, size_t at) {
  uint64_t value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Json ToJson(const std::vector<InputInfo>& inputs) {
  Json list = Json::array();
  for (const InputInfo& input : inputs) {
    list.push_back({{"name", input.name}, {"shape", std::vector<int64_t>(input.shape.begin(), input.shape.end())}, {"type", NameOf(input.type)}});
  }
  return list;
}

std::vector<InputInfo> InputsFromJson(const Json& list) {
  std::vector<InputInfo> inputs;
  for (const Json& item : list) {
    inputs.push_back({item.at("name"), TShape(item.at("shape").get<std::vector<int64_t>>()), ParseDType(item.at("type").get<std::string>())});
  }
  return inputs;
}

Json ToJson(const LossScaleState& s) {
  return {{"scale", s.scale}, {"good_steps", s.good_steps}, {"steps_left_out", s.steps_left_out}, {"at_lowest", s.at_lowest}};
}

LossScaleState LossScaleFromJson(const Json& j) { return {j.at("scale"), j.at("good_steps"), j.at("steps_left_out"), j.at("at_lowest")}; }

Json HeaderOf(const Checkpoint& c) {
  const ModelInfo& m = c.model;
  const TrainState& s = c.state;
  Json best = Json::array();
  for (const BestValue& b : s.best) {
    if (b.value) best.push_back({{"value", *b.value}, {"metric", b.metric}, {"epoch", b.epoch}});
  }
  return {{"format", 1},
          {"model",
           {{"symbol", m.symbol_json},
            {"inputs", ToJson(m.inputs)},
            {"labels", ToJson(m.labels)},
            {"classes", m.class_names},
            {"pipeline", m.pipeline},
            {"config", m.config},
            {"train_data", m.train_data},
            {"val_data", m.val_data},
            {"batch_size", m.batch_size},
            {"kernel_choices", m.kernel_choices}}},
          {"state",
           {{"step", s.step},
            {"epoch", s.epoch},
            {"step_in_epoch", s.step_in_epoch},
            {"open", s.open},
            {"first_epoch", s.first_epoch},
            {"first_step", s.first_step},
            {"total_steps", s.total_steps},
            {"batches_per_step", s.batches_per_step},
            {"ended_early", s.ended_early},
            {"random_step", s.random_step},
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

TrainState StateFromJson(const Json& j) {
  TrainState s;
  s.step = j.at("step");
  s.epoch = j.at("epoch");
  s.step_in_epoch = j.at("step_in_epoch");
  s.open = j.value("open", s.step_in_epoch > 0);
  s.first_epoch = j.value("first_epoch", int64_t{0});
  s.first_step = j.value("first_step", int64_t{0});
  s.total_steps = j.value("total_steps", int64_t{0});
  s.batches_per_step = j.value("batches_per_step", int64_t{1});
  s.ended_early = j.value("ended_early", false);
  s.random_step = j.at("random_step");
  s.seed = j.at("seed");
  s.threads = j.at("threads");
  s.metric_states = j.at("metrics").get<std::vector<std::string>>();
  s.loss_state = j.at("loss");
  s.schedule_state = j.value("schedule", "");
  s.early_stop_state = j.value("early_stop", "");
  s.examples_in_epoch = j.at("examples_in_epoch");
  s.average_updates = j.value("average_updates", int64_t{0});
  if (const Json scale = j.value("loss_scale", Json()); !scale.is_null()) s.loss_scale = LossScaleFromJson(scale);
  const Json& best = j.at("best");
  for (const Json& b : best.is_object() ? Json::array({best}) : best) s.best.push_back({b.at("metric"), b.at("value").get<double>(), b.at("epoch")});
  return s;
}

ModelInfo ModelFromJson(const Json& m) {
  ModelInfo model;
  model.symbol_json = m.at("symbol");
  model.inputs = InputsFromJson(m.at("inputs"));
  model.labels = InputsFromJson(m.at("labels"));
  model.class_names = m.at("classes").get<std::vector<std::string>>();
  model.pipeline = m.at("pipeline");
  model.config = m.at("config");
  model.train_data = m.value("train_data", "");  // older files do not say
  model.val_data = m.value("val_data", "");
  model.batch_size = m.at("batch_size");
  model.kernel_choices = m.value("kernel_choices", KernelChoices::Table());
  return model;
}

// The two parts of a file, checked as far as `check_sum` says.
struct Parts {
  std::string bytes;
  std::string_view header, arrays;
};

Parts ReadParts(const std::string& path, bool check_sum) {
  Parts parts;
  parts.bytes = ReadFile(path);
  const std::string_view all = parts.bytes;
  auto damaged = [&](const char* why) { Throw(ErrorKind::kData, "{} is no whole checkpoint: {}", path, why); };
  const bool weights = path.ends_with(".safetensors") || path.ends_with(".params");
  if (weights && !all.starts_with(kMagic)) Throw(ErrorKind::kData, "{} holds weights alone, of no net: train.weights begins a training with them", path);
  if (all.size() < 32) damaged("it is too short");
  if (!all.starts_with(kMagic)) damaged("it does not begin as one");
  const uint64_t header = ReadU64(all, 8);
  if (header > all.size() - 32) damaged("it ends early");
  const uint64_t arrays = ReadU64(all, 16 + header);
  if (arrays != all.size() - 32 - header) damaged("it ends early");
  if (check_sum && Checksum(all.substr(0, all.size() - 8)) != ReadU64(all, all.size() - 8)) damaged("its checksum does not fit its contents");
  parts.header = all.substr(16, header);
  parts.arrays = all.substr(24 + header, arrays);
  return parts;
}

Json ParseHeader(const std::string& path, std::string_view header) {
  try {
    return Json::parse(header);
  } catch (const std::exception& e) {
    Throw(ErrorKind::kData, "{} is no whole checkpoint: {}", path, e.what());
  }
}

// For tests of killed processes: how long a save lingers between writing and renaming.
void LingerInSave() {
  if (const char* text = std::getenv("MXTRAIN_SAVE_DELAY_MS")) std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(text)));
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
  // A path that is not UTF-8 keeps its place with U+FFFD in it.
  const std::string header = HeaderOf(checkpoint).dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string body = SerializeArrays(arrays);
  std::string bytes(kMagic);
  bytes.reserve(header.size() + body.size() + 32);
  AppendU64(header.size(), &bytes);
  bytes += header;
  AppendU64(body.size(), &bytes);
  bytes += body;
  AppendU64(Checksum(bytes), &bytes);
  WriteFileAtomically(path, bytes);
}

Checkpoint LoadCheckpoint(Runtime& runtime, const std::string& path) {
  const Parts parts = ReadParts(path, true);
  const Json header = ParseHeader(path, parts.header);
  Checkpoint c;
  try {
    c.model = ModelFromJson(header.at("model"));
    c.state = StateFromJson(header.at("state"));
  } catch (const nlohmann::json::exception& e) {
    Throw(ErrorKind::kData, "{} was written by another version: {}", path, e.what());
  }
  const NamedArrays arrays = DeserializeArrays(runtime, parts.arrays, path);
  for (size_t i = 0; i < arrays.arrays.size(); ++i) {
    const std::string kind = arrays.names[i].substr(0, 4), name = arrays.names[i].substr(4);
    (kind == "arg:" ? c.args : kind == "aux:" ? c.auxs : kind == "avg:" ? c.averages : c.optimizer)[name] = arrays.arrays[i];
  }
  return c;
}

ModelInfo PeekModel(const std::string& path) {
  const Parts parts = ReadParts(path, false);
  try {
    return ModelFromJson(ParseHeader(path, parts.header).at("model"));
  } catch (const nlohmann::json::exception& e) {
    Throw(ErrorKind::kData, "{} was written by another version: {}", path, e.what());
  }
}

TrainState PeekState(const std::string& path) {
  const Parts parts = ReadParts(path, true);
  const Json header = ParseHeader(path, parts.header);
  try {
    return StateFromJson(header.at("state"));
  } catch (const nlohmann::json::exception& e) {
    Throw(ErrorKind::kData, "{} was written by another version: {}", path, e.what());
  }
}

void CheckpointFolder::Save(const Checkpoint& checkpoint, const std::vector<std::string>& names, int keep) const {
  fs::create_directories(path_);
  const std::string fresh = File("last.new");
  SaveCheckpoint(fresh, checkpoint);
  LingerInSave();
  std::error_code ignored;
  // The bytes of a file under another name too. What had that name is there until the moment in which the new one is.
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
  // By number: from epoch 10000 on the names are longer.
  std::sort(epochs.begin(), epochs.end(), [](const std::string& a, const std::string& b) { return std::pair(a.size(), a) < std::pair(b.size(), b); });
  for (size_t i = 0; i + static_cast<size_t>(keep) < epochs.size(); ++i) fs::remove(File(epochs[i]), ignored);
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
  warnings->push_back(format("{} is missing or damaged; going on from {} (step {})", File("last"), file, step));
  return LoadCheckpoint(runtime, file);
}

ModelInfo CheckpointFolder::PeekLast() const {
  if (fs::exists(File("last"))) {
    try {
      return PeekModel(File("last"));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kData) throw;
    }
  }
  return PeekModel(NewestBesideLast().second);
}

std::pair<int64_t, std::string> CheckpointFolder::NewestBesideLast() const {
  // Files under a temporary name count: a process may have been killed between writing and renaming.
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
  if (whole.empty()) Throw(ErrorKind::kData, "{} holds no whole checkpoint to resume from; start the run anew", path_);
  return *std::max_element(whole.begin(), whole.end());
}

}  // namespace mxtrain
