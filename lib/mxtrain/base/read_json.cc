// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/read_json.h"

#include <limits>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"

namespace mxtrain {
namespace {

constexpr size_t kDeepest = 64, kMostOrderedKeys = 10'000;

// Looks for what the parser accepts silently, and keeps the reason why a text is refused.
class JsonRules final : public nlohmann::json_sax<FileJson> {
 public:
  explicit JsonRules(size_t most_keys) : most_keys_(most_keys) {}
  const std::string& problem() const { return problem_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(FileJson::binary_t&) override { return true; }
  bool start_object(size_t) override { return Open(); }
  bool start_array(size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(std::string& name) override {
    if (!levels_.back().insert(name).second)
      problem_ = format("the key '{}' is there twice in one object", Shortened(name));
    else if (levels_.back().size() > most_keys_)
      problem_ = format("an object has more than {} keys", most_keys_);
    return problem_.empty();
  }
  bool parse_error(size_t place, const std::string&, const nlohmann::detail::exception&) override {
    problem_ = format("it is not JSON at its byte {}", place);
    return false;
  }

 private:
  bool Open() {
    levels_.emplace_back();
    if (levels_.size() <= kDeepest) return true;
    problem_ = format("it is nested more than {} deep", kDeepest);
    return false;
  }
  bool Close() {
    levels_.pop_back();
    return true;
  }

  const size_t most_keys_;
  std::vector<std::unordered_set<std::string>> levels_;  // the keys of the objects that are open
  std::string problem_;
};

}  // namespace

template <typename J>
Expected<J, Refusal> ReadJson(std::string_view text) {
  constexpr bool kOrdered = std::is_same_v<J, Json>;
  JsonRules rules(kOrdered ? kMostOrderedKeys : std::numeric_limits<size_t>::max());
  if (!FileJson::sax_parse(text, &rules)) return Refusal{rules.problem()};
  return J::parse(text);
}
template Expected<FileJson, Refusal> ReadJson(std::string_view text);
template Expected<Json, Refusal> ReadJson(std::string_view text);

template <typename J>
J ReadJsonOf(const std::string& name, std::string_view text) {
  Expected<J, Refusal> read = ReadJson<J>(text);
  if (!read) Throw(ErrorKind::kData, "{}: {}", name, read.error().reason);
  return std::move(*read);
}
template FileJson ReadJsonOf(const std::string& name, std::string_view text);
template Json ReadJsonOf(const std::string& name, std::string_view text);

}  // namespace mxtrain
