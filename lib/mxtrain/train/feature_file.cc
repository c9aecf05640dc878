// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/feature_file.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/json.h"
#include "mxtrain/base/read_json.h"
#include "mxtrain/device/cpu/onednn/version.h"

namespace mxtrain {
namespace {

constexpr std::string_view kMagicOfFeatures = "mxtrain features 1\n";

constexpr uint64_t kPieceOfRows = 1 << 20;  // bytes

template <typename T>
std::string_view BytesOfAll(std::span<const T> items) {
  return {reinterpret_cast<const char*>(items.data()), items.size_bytes()};
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

[[noreturn]] void ThrowDamaged(const std::string& path) {
  Throw(ErrorKind::kData, "{} is damaged", path);
}

template <typename T>
void ReadWhole(FileReader& file, std::span<T> to) {
  const std::span<char> bytes(reinterpret_cast<char*>(to.data()), to.size_bytes());
  if (file.Read(bytes) < bytes.size()) ThrowDamaged(file.path());
}
uint64_t ReadNumber(FileReader& file) {
  uint64_t number = 0;
  ReadWhole(file, std::span(&number, 1));
  return number;
}
void WriteNumber(uint64_t number, FileWriter* file) {
  file->Write({reinterpret_cast<const char*>(&number), sizeof number});
}

// The fields of a header; those that are not of their types make it damaged.
struct HeaderFields {
  std::string key;
  int64_t numbers, examples;
  bool any_place;
};
HeaderFields FieldsOf(const std::string& path, const std::string& text) {
  const Json header = ReadJsonOf<Json>(path + " is damaged", text);
  const auto field = [&](const char* name, bool (Json::*is_right)() const noexcept) -> const Json& {
    if (!header.is_object() || !header.contains(name)) ThrowDamaged(path);
    const Json& value = header.at(name);
    if (!(value.*is_right)()) ThrowDamaged(path);
    return value;
  };
  return {field("key", &Json::is_string).get<std::string>(),
          field("numbers", &Json::is_number_unsigned).get<int64_t>(),
          field("examples", &Json::is_number_unsigned).get<int64_t>(),
          field("any_place", &Json::is_boolean).get<bool>()};
}

}  // namespace

std::string FeatureKey(Runtime& runtime, const TrainOptions& options, const FeatureCut& cut,
                       const std::map<std::string, NDArray>& args,
                       const std::map<std::string, NDArray>& auxs, const DataIter& examples,
                       bool validation) {
  const Context device = options.workers[0];
  Backend& backend = runtime.backend(device);
  const DeviceInfo info = backend.Describe(device.id);
  Json libraries = {{"oneDNN", OneDnnVersion()}};
  for (const Version& v : backend.Versions()) libraries[v.of] = v.version;
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
              {"device", {static_cast<int>(device.type), info.name, info.capability}},
              {"libraries", libraries},
              {"threads", backend.threads()},
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

FeatureFile::FeatureFile(const std::string& folder, std::string key, int64_t numbers, Logger log)
    : path_(format("{}/{:016x}.features", folder, Checksum(key))),
      key_(std::move(key)),
      numbers_(numbers),
      log_(std::move(log)) {
  MakeFolders(folder);
  if (!std::filesystem::exists(path_)) return;
  try {
    Open();
  } catch (const Error& e) {
    Clear();
    log_.Warning("{}; the features are computed again", e.what());
  }
}

std::string FeatureFile::Header(int64_t examples, bool any_place) const {
  return Json{
      {"key", key_}, {"numbers", numbers_}, {"examples", examples}, {"any_place", any_place}}
      .dump();
}

void FeatureFile::Open() {
  auto file = std::make_unique<FileReader>(path_);
  const auto require = [this](bool holds) {
    if (!holds) ThrowDamaged(path_);
  };
  std::string magic(kMagicOfFeatures.size(), '\0');
  ReadWhole(*file, std::span(magic));
  require(magic == kMagicOfFeatures);
  const uint64_t length = ReadNumber(*file);
  require(length < file->size());
  std::string text(length, '\0');
  ReadWhole(*file, std::span(text));
  const HeaderFields header = FieldsOf(path_, text);
  if (header.key != key_) return;  // another one of equal checksum: is replaced
  require(header.numbers == numbers_ && text == Header(header.examples, header.any_place));
  const auto count = static_cast<uint64_t>(header.examples);
  const uint64_t row = sizeof(uint64_t) + static_cast<uint64_t>(numbers_) * sizeof(float);
  const uint64_t before = magic.size() + sizeof length + length, sum = sizeof(uint64_t);
  require(count <= file->size() / row && file->size() == before + count * row + sum);
  identities_.resize(count);
  ReadWhole(*file, std::span(identities_));
  rows_at_ = before + count * sizeof(uint64_t);
  any_place_ = header.any_place;
  file_ = std::move(file);
}

bool FeatureFile::HoldsInOrder(const std::vector<std::optional<uint64_t>>& identities) const {
  size_t row = 0;
  for (const std::optional<uint64_t>& identity : identities) {
    if (!identity || row == identities_.size() || identities_[row++] != *identity) return false;
  }
  return row == identities_.size();
}

void FeatureFile::ReadRows(const Take& take) const {
  if (!file_) return;
  const size_t rows = identities_.size() - added_.size(), one = static_cast<size_t>(numbers_);
  RunningChecksum sum;
  sum.Add(BytesOfAll(std::span(identities_).first(rows)));
  file_->Rewind();
  std::vector<char> skipped(std::min(rows_at_, kPieceOfRows));
  for (uint64_t at = 0; at < rows_at_;) {
    const uint64_t bytes = std::min<uint64_t>(skipped.size(), rows_at_ - at);
    ReadWhole(*file_, std::span(skipped).first(bytes));
    at += bytes;
  }
  const size_t most = std::max<size_t>(1, kPieceOfRows / (one * sizeof(float)));
  std::vector<float> piece(std::min(most, rows) * one);
  for (size_t row = 0; row < rows;) {
    const size_t count = std::min(most, rows - row);
    const std::span<float> numbers = std::span(piece).first(count * one);
    ReadWhole(*file_, numbers);
    sum.Add(BytesOfAll(std::span<const float>(numbers)));
    for (size_t k = 0; k < count; ++k, ++row) take(identities_[row], numbers.subspan(k * one, one));
  }
  if (ReadNumber(*file_) != sum.value()) ThrowDamaged(path_);
}

bool FeatureFile::Read(const Take& take) {
  MXTRAIN_ASSERT(added_.empty());
  try {
    ReadRows(take);
    return true;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kData && e.kind() != ErrorKind::kFileSystem) throw;
    Clear();
    log_.Warning("{}; the features are computed again", e.what());
    return false;
  }
}

void FeatureFile::Clear() {
  file_.reset();
  identities_.clear();
  added_.clear();
  any_place_ = true;
}

void FeatureFile::Add(uint64_t identity, std::span<const float> numbers) {
  MXTRAIN_ASSERT(std::ssize(numbers) == numbers_);
  identities_.push_back(identity);
  added_.push_back(numbers);
}

void FeatureFile::Save(bool any_place) const {
  const std::string header = Header(examples(), any_place);
  FileWriter file(path_);
  file.Write(kMagicOfFeatures);
  WriteNumber(header.size(), &file);
  file.Write(header);
  RunningChecksum sum;
  const auto write = [&](std::string_view bytes) {
    file.Write(bytes);
    sum.Add(bytes);
  };
  write(BytesOfAll(std::span(identities_)));
  ReadRows([&](uint64_t, std::span<const float> numbers) { write(BytesOfAll(numbers)); });
  for (const std::span<const float> numbers : added_) write(BytesOfAll(numbers));
  WriteNumber(sum.value(), &file);
  file.Commit();
}

}  // namespace mxtrain
