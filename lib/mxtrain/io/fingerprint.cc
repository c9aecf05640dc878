// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/fingerprint.h"

#include <algorithm>
#include <filesystem>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostRecords = 10'000;
constexpr std::string_view kContent = "content ";  // not in fingerprints of older versions

bool HasImage(const Source& source) {
  const auto is_image = [](const FieldSpec& field) { return field.kind == FieldKind::kImage; };
  return std::any_of(source.data_fields().begin(), source.data_fields().end(), is_image);
}

void AppendValues(const Source& source, int64_t index, Sample* sample, std::string* text) {
  source.Read(index, sample);
  for (const auto* fields : {&sample->data, &sample->labels}) {
    for (const FieldValue& field : *fields)
      text->append(reinterpret_cast<const char*>(field.values.data()), field.values.size_bytes());
  }
}

}  // namespace

std::string Fingerprint(const Source& source) {
  std::string text;
  for (const std::string& name : source.class_names()) text += name + "\n";
  const bool has_images = HasImage(source);
  const int64_t records = std::min(source.size(), kMostRecords);
  Sample sample;
  for (int64_t i = 0; i < records; ++i) {
    const int64_t index = i * source.size() / records;
    const fs::path name = source.Name(index);
    std::error_code no_file;
    const auto bytes = fs::file_size(name, no_file);
    text += format("{} {}", source.ClassOf(index).value_or(-1), has_images && !no_file ? bytes : 0);
    if (has_images)
      text += format(" {}\n", name.filename().string());
    else
      AppendValues(source, index, &sample, &text);
  }
  return format("{} records, {}{:016x}", source.size(), kContent, Checksum(text));
}

bool MayBeSameData(const std::string& before, const std::string& now) {
  if (before == now) return true;
  if (before.find(kContent) != before.npos) return false;
  return before.substr(0, before.find(',')) == now.substr(0, now.find(','));
}

}  // namespace mxtrain::io
