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
    text +=
        format("{}/{} {} {}\n", name.parent_path().filename().string(), name.filename().string(),
               source.ClassOf(index).value_or(-1), no_file ? 0 : bytes);
    if (!has_images) AppendValues(source, index, &sample, &text);
  }
  return format("{} records, {:016x}", source.size(), Checksum(text));
}

}  // namespace mxtrain::io
