// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/feature_file.h"

#include <cstring>
#include <filesystem>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/json.h"
#include "mxtrain/base/read_json.h"

namespace mxtrain {
namespace {

constexpr std::string_view kMagicOfFeatures = "mxtrain features 1\n";

template <typename T>
std::string_view BytesOfAll(const std::vector<T>& items) {
  return {reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T)};
}

template <typename T>
void AddBytes(std::span<const T> items, RunningChecksum* sum) {
  const uint64_t size = items.size();
  sum->Add({reinterpret_cast<const char*>(&size), sizeof size});  // fields do not run together
  sum->Add({reinterpret_cast<const char*>(items.data()), items.size_bytes()});
}

uint64_t ChecksumOfArrays(const std::map<std::string, NDArray>& arrays) {
  RunningChecksum sum;
  for (const auto& [name, array] : arrays) {
    sum.Add(format("{} {} {}\n", name, array.shape().ToString(), NameOf(array.dtype())));
    const NDArray here = array.Copy(Context::cpu());
    here.WaitToRead();
    sum.Add({static_cast<const char*>(here.data().data),
             static_cast<size_t>(here.shape().Size() * SizeOf(here.dtype()))});
  }
  return sum.value();
}

uint64_t ChecksumOfRecord(const io::Sample& sample) {
  RunningChecksum sum;
  for (const auto* fields : {&sample.data, &sample.labels}) {
    for (const io::FieldValue& field : *fields) {
      AddBytes(std::span<const char>(field.encoded), &sum);
      AddBytes(field.pixels, &sum);
      AddBytes(field.values, &sum);
      AddBytes(std::span<const uint8_t>(field.classes.pixels), &sum);
    }
  }
  return sum.value();
}

uint64_t NumberAt(std::string_view bytes) {
  uint64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

}  // namespace

std::string FeatureKey(Runtime& runtime, const TrainOptions& options, const FeatureCut& cut,
                       const std::map<std::string, NDArray>& args,
                       const std::map<std::string, NDArray>& auxs, const DataIter& examples,
                       bool validation) {
  const Context device = options.workers[0];
  Json arrays = Json::array();
  for (const DataDesc& desc : ArraysOf(examples))
    arrays.push_back(
        {desc.name, desc.shape.ToString(), NameOf(desc.array_type()), desc.pixels.has_value()});
  return Json{{"trunk", cut.trunk.ToJson()},
              {"parameters", {ChecksumOfArrays(args), ChecksumOfArrays(auxs)}},
              {"features", cut.names},
              {"inputs", cut.inputs},
              {"arrays", arrays},
              {"preparation", options.features->preparation(validation)},
              {"validation", validation},
              {"device", static_cast<int>(device.type)},
              {"threads", runtime.backend(device).threads()},
              {"deterministic", options.modes.deterministic},
              {"fuse", options.modes.fuse},
              {"math", static_cast<int>(options.modes.math)}}
      .dump();
}

std::vector<std::optional<uint64_t>> RecordIdentities(const io::Source& source) {
  std::vector<std::optional<uint64_t>> identities(static_cast<size_t>(source.size()));
  io::Sample sample;
  for (int64_t i = 0; i < source.size(); ++i) {
    try {
      source.Read(i, &sample);
      identities[static_cast<size_t>(i)] = ChecksumOfRecord(sample);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kData && e.kind() != ErrorKind::kFileSystem) throw;
    }
  }
  return identities;
}

FeatureFile::FeatureFile(const std::string& folder, std::string key, int64_t numbers,
                         const Logger& log)
    : path_(format("{}/{:016x}.features", folder, Checksum(key))),
      key_(std::move(key)),
      numbers_(numbers) {
  MakeFolders(folder);
  if (!std::filesystem::exists(path_)) return;
  try {
    Load(ReadFile(path_));
  } catch (const Error& e) {
    Clear();
    log.Warning("{}; the features are computed again", e.what());
  }
}

void FeatureFile::Load(const std::string& bytes) {
  const auto require = [this](bool holds) {
    if (!holds) Throw(ErrorKind::kData, "{} is damaged", path_);
  };
  std::string_view rest = bytes;
  require(rest.starts_with(kMagicOfFeatures));
  rest.remove_prefix(kMagicOfFeatures.size());
  require(rest.size() >= sizeof(uint64_t));
  const uint64_t length = NumberAt(rest);
  rest.remove_prefix(sizeof length);
  require(length <= rest.size());
  const Json header = ReadJsonOf<Json>(path_ + " is damaged", std::string(rest.substr(0, length)));
  rest.remove_prefix(length);
  if (header.value("key", "") != key_) return;  // another one of equal checksum: is replaced
  require(header.value("numbers", int64_t{0}) == numbers_);
  const auto count = header.value("examples", uint64_t{0});
  const uint64_t numbers = count * static_cast<uint64_t>(numbers_);
  const uint64_t body = count * sizeof(uint64_t) + numbers * sizeof(float);
  require(count <= rest.size() && rest.size() == body + sizeof(uint64_t));
  require(Checksum(rest.substr(0, body)) == NumberAt(rest.substr(body)));
  identities_.resize(count);
  std::memcpy(identities_.data(), rest.data(), count * sizeof(uint64_t));
  values_.resize(numbers);
  std::memcpy(values_.data(), rest.data() + count * sizeof(uint64_t), numbers * sizeof(float));
  any_place_ = header.value("any_place", false);
  for (size_t row = 0; row < identities_.size(); ++row)
    rows_.emplace(identities_[row], static_cast<int64_t>(row));
}

bool FeatureFile::HoldsInOrder(const std::vector<std::optional<uint64_t>>& identities) const {
  size_t row = 0;
  for (const std::optional<uint64_t>& identity : identities) {
    if (!identity || row == identities_.size() || identities_[row++] != *identity) return false;
  }
  return row == identities_.size();
}

std::span<const float> FeatureFile::Find(uint64_t identity) const {
  const auto row = rows_.find(identity);
  if (row == rows_.end()) return {};
  return {values_.data() + row->second * numbers_, static_cast<size_t>(numbers_)};
}

void FeatureFile::Clear() {
  identities_.clear();
  values_.clear();
  rows_.clear();
}

void FeatureFile::Add(uint64_t identity, std::span<const float> numbers) {
  MXTRAIN_ASSERT(std::ssize(numbers) == numbers_);
  rows_.emplace(identity, std::ssize(identities_));
  identities_.push_back(identity);
  values_.insert(values_.end(), numbers.begin(), numbers.end());
}

void FeatureFile::Save(bool any_place) {
  const std::string header = Json{
      {"key", key_},
      {"numbers", numbers_},
      {"examples", examples()},
      {"any_place", any_place}}.dump();
  const auto add = [](FileWriter* file, uint64_t number) {
    file->Write({reinterpret_cast<const char*>(&number), sizeof number});
  };
  FileWriter file(path_);
  file.Write(kMagicOfFeatures);
  add(&file, header.size());
  file.Write(header);
  RunningChecksum sum;
  for (const std::string_view part : {BytesOfAll(identities_), BytesOfAll(values_)}) {
    file.Write(part);
    sum.Add(part);
  }
  add(&file, sum.value());
  file.Commit();
}

}  // namespace mxtrain
