#include "app/commands/check_data.h"

#include <map>
#include <optional>
#include <unordered_map>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"

namespace mxtrain::commands {
namespace {

constexpr size_t kMostNamed = 5;  // of one kind of finding

struct Record {
  const io::Source* source;
  int64_t index;
  std::string Name() const { return source->Name(index); }
  std::optional<int> Class() const { return source->ClassOf(index); }
  std::string NameAndClass() const {
    const auto k = Class();
    return k ? format("{} ({})", Name(), source->class_names()[static_cast<size_t>(*k)]) : Name();
  }
};

// Of the pictures of a record; none where it has no picture, or cannot be read.
std::optional<uint64_t> Fingerprint(const io::Source& source, int64_t index, io::Sample* sample) {
  try {
    source.Read(index, sample);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kData && e.kind() != ErrorKind::kFileSystem) throw;
    return std::nullopt;
  }
  std::string sums;
  for (size_t i = 0; i < sample->data.size(); ++i) {
    if (source.data_fields()[i].kind != io::FieldKind::kPicture) continue;
    const io::FieldValue& value = sample->data[i];
    const std::string_view pixels(reinterpret_cast<const char*>(value.pixels.data()), value.pixels.size());
    sums += format("{:016x}{} ", Checksum(pixels.empty() ? std::string_view(value.encoded) : pixels), value.encoded.size() + pixels.size());
  }
  if (sums.empty()) return std::nullopt;
  return Checksum(sums);
}

// "COUNT WHAT: first; second; and N more"
std::optional<std::string> Told(const std::vector<std::string>& all, const std::string& what) {
  if (all.empty()) return std::nullopt;
  std::vector<std::string> named(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kMostNamed)));
  if (all.size() > kMostNamed) named.push_back(format("and {} more", all.size() - kMostNamed));
  return format("{} {}: {}", all.size(), what, join(named, "; "));
}

}  // namespace

DataFindings FindDuplicates(const io::Source* train, const io::Source* val, const std::function<bool()>& stop) {
  std::unordered_map<uint64_t, Record> first;  // of each picture
  std::vector<std::string> shared, contradicting, repeated;
  io::Sample sample;
  for (const io::Source* source : {train, val}) {
    for (int64_t i = 0; source && i < source->size() && !stop(); ++i) {
      const auto fingerprint = Fingerprint(*source, i, &sample);
      if (!fingerprint) continue;
      const Record record{source, i};
      const auto [same, is_new] = first.try_emplace(*fingerprint, record);
      if (is_new) continue;
      const Record& other = same->second;
      const bool classes_differ =
          record.Class() && other.Class() && source->class_names() == other.source->class_names() && *record.Class() != *other.Class();
      if (classes_differ) {
        contradicting.push_back(format("{} is {}", record.NameAndClass(), other.NameAndClass()));
      } else {
        (other.source == source ? repeated : shared).push_back(format("{} is {}", record.Name(), other.Name()));
      }
    }
  }
  DataFindings found;
  if (auto text = Told(shared, "validation pictures are training pictures too, which makes the validation too good"))
    found.findings.push_back(*text);
  if (auto text = Told(contradicting, "pictures are in two classes")) found.findings.push_back(*text);
  if (auto text = Told(repeated, "pictures are there more than once")) found.notes.push_back(*text);
  return found;
}

std::vector<std::string> CompareClasses(const io::Source& train, const io::Source& val) {
  std::map<std::string, std::pair<int64_t, int64_t>> counts;  // examples to train on, and to validate
  const auto count = [&counts](const io::Source& source, int64_t std::pair<int64_t, int64_t>::*member) {
    for (int64_t i = 0; i < source.size(); ++i) {
      if (const auto k = source.ClassOf(i)) ++(counts[source.class_names()[static_cast<size_t>(*k)]].*member);
    }
  };
  count(train, &std::pair<int64_t, int64_t>::first);
  count(val, &std::pair<int64_t, int64_t>::second);
  std::vector<std::string> findings;
  for (const auto& [name, of] : counts) {
    if (of.second == 0) findings.push_back(format("class '{}' has {} training examples and none for validation", name, of.first));
    if (of.first == 0) findings.push_back(format("class '{}' has {} examples for validation and none to train on", name, of.second));
  }
  return findings;
}

}  // namespace mxtrain::commands
