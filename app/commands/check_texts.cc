// SPDX-License-Identifier: Apache-2.0
#include "app/commands/check_texts.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"

namespace mxtrain::commands {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";

// In small letters (of ASCII), with one blank for each white space.
std::string PlainWords(const std::string& text) {
  std::string plain;
  for (std::string_view rest = Trim(text, kWhiteSpace); !rest.empty();) {
    const size_t end = std::min(rest.find_first_of(kWhiteSpace), rest.size());
    if (!plain.empty()) plain += ' ';
    plain += Lower(std::string(rest.substr(0, end)));
    rest = Trim(rest.substr(end), kWhiteSpace);
  }
  return plain;
}

struct TextPlace {
  const io::Source* source;
  int64_t index;
  std::string Name() const { return source->Name(index); }
  std::string Class() const {
    const auto k = source->ClassOf(index);
    return k ? source->class_names()[static_cast<size_t>(*k)] : "";
  }
};

// Whether texts are what the net reads.
bool HoldsTexts(const io::Source& source) {
  if (source.num_tokens() == 0) return false;
  for (int64_t i = 0; i < source.size(); ++i) {
    if (!source.TextOf(i).empty()) return true;
  }
  return false;
}

}  // namespace

DataFindings CheckTexts(const DataSet& train, const DataSet& val) {
  std::unordered_map<std::string, TextPlace> first;  // of each text
  std::vector<std::string> shared, contradicting, repeated, empty, cut;
  for (const DataSet* set : {&train, &val}) {
    if (!set->source || !HoldsTexts(*set->source)) continue;
    for (int64_t i = 0; i < set->source->size(); ++i) {
      const TextPlace place{set->source, i};
      if (set->source->IsCut(i)) cut.push_back(place.Name());
      std::string plain = PlainWords(set->source->TextOf(i));
      if (plain.empty()) {
        empty.push_back(place.Name());
        continue;
      }
      const auto [same, is_new] = first.try_emplace(std::move(plain), place);
      if (is_new) continue;
      const TextPlace& other = same->second;
      if (place.Class() != other.Class()) {
        contradicting.push_back(
            format("{} ({}) is {} ({})", place.Name(), place.Class(), other.Name(), other.Class()));
      } else {
        (other.source == place.source ? repeated : shared)
            .push_back(format("{} is {}", place.Name(), other.Name()));
      }
    }
  }
  DataFindings found;
  AddTold(shared, "text",
          "of validation is also one of training, which makes validation results too good",
          "of validation are also ones of training, which makes validation results too good",
          &found.findings);
  AddTold(contradicting, "text", "is in two classes", "are in two classes", &found.findings);
  AddTold(empty, "text", "is empty", "are empty", &found.notes);
  AddTold(repeated, "text", "occurs more than once", "occur more than once", &found.notes);
  AddTold(cut, "text", "is longer than the net's input and is cut",
          "are longer than the net's input and are cut", &found.notes);
  return found;
}

}  // namespace mxtrain::commands
