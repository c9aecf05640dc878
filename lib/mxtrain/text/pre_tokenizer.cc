// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/pre_tokenizer.h"

#include <optional>
#include <string>
#include <utility>

#include "mxtrain/text/internal/matcher.h"
#include "mxtrain/text/internal/onig_pattern.h"
#include "mxtrain/text/internal/splitters.h"
#include "mxtrain/text/internal/unicode_class.h"
#include "mxtrain/text/internal/utf8.h"

namespace mxtrain::text {
namespace {

constexpr size_t kMostPreTokenizers = 32;

// What becomes of a match, as `tokenizers` names it.
enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

Behavior BehaviorOf(const JsonNode& node) {
  static const std::pair<const char*, Behavior> kNames[] = {
      {"Removed", Behavior::kRemoved},
      {"Isolated", Behavior::kIsolated},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
      {"Contiguous", Behavior::kContiguous}};
  for (const auto& [name, behavior] : kNames) {
    if (node.Text() == name) return behavior;
  }
  node.Fail("the behavior '" + node.Text() + "' is not covered");
}

using Spans = std::vector<Matcher::Span>;

// Joins spans by the rule; what is left is pieces.
void ApplyBehavior(Behavior behavior, Spans* spans) {
  Spans joined;
  bool last_was_match = false;
  const auto append = [&](const Matcher::Span& span, bool joins) {
    if (joins && !joined.empty())
      joined.back().end = span.end;
    else
      joined.push_back(span);
    last_was_match = span.is_match;
  };
  switch (behavior) {
    case Behavior::kIsolated:
      return;
    case Behavior::kRemoved:
      std::erase_if(*spans, [](const Matcher::Span& span) { return span.is_match; });
      return;
    case Behavior::kContiguous:
      for (const Matcher::Span& span : *spans) append(span, span.is_match == last_was_match);
      break;
    case Behavior::kMergedWithPrevious:
      for (const Matcher::Span& span : *spans) append(span, span.is_match && !last_was_match);
      break;
    case Behavior::kMergedWithNext:
      // A match joins what follows it, unless that is a match too.
      for (const Matcher::Span& span : *spans) append(span, !span.is_match && last_was_match);
      break;
  }
  spans->swap(joined);
}

class SplitStep final : public PreTokenizer::Step {
 public:
  SplitStep(Matcher matcher, Behavior behavior, bool invert = false)
      : matcher_(std::move(matcher)), behavior_(behavior), invert_(invert) {}

  void Split(std::string_view text, PieceSink* sink) const override {
    Spans spans;
    matcher_.Find(text, &spans);
    if (invert_) {
      for (Matcher::Span& span : spans) span.is_match = !span.is_match;
    }
    ApplyBehavior(behavior_, &spans);
    for (const Matcher::Span& span : spans)
      sink->Put(text.substr(span.begin, span.end - span.begin));
  }

 private:
  const Matcher matcher_;
  const Behavior behavior_;
  const bool invert_;
};

// The patterns that match all of a text, so that only its pieces count.
class KnownSplitStep final : public PreTokenizer::Step {
 public:
  explicit KnownSplitStep(KnownPattern pattern) : pattern_(pattern) {}

  void Split(std::string_view text, PieceSink* sink) const override {
    while (!text.empty()) {
      const size_t bytes = FirstPiece(pattern_, text);
      sink->Put(text.substr(0, bytes));
      text.remove_prefix(bytes);
    }
  }
  // The other patterns have pieces of punctuation with the ends of lines behind it.
  bool EndsPieceAtLine() const override { return pattern_ == KnownPattern::kGpt2; }

 private:
  const KnownPattern pattern_;
};

class PrefixSpaceStep final : public PreTokenizer::Step {
 public:
  void Split(std::string_view text, PieceSink* sink) const override {
    if (text.starts_with(' ')) return sink->Put(text);
    sink->Put(" " + std::string(text));
  }
};

// The sink of a step: the next step, and at the end the sink of the caller.
class NextStep final : public PieceSink {
 public:
  using Steps = std::vector<std::unique_ptr<const PreTokenizer::Step>>;
  NextStep(const Steps& steps, size_t index, PieceSink* last)
      : steps_(steps), index_(index), last_(last) {}

  void Put(std::string_view text) override {
    if (index_ == steps_.size()) return last_->Put(text);
    NextStep next(steps_, index_ + 1, last_);
    steps_[index_]->Split(text,
                          index_ + 1 == steps_.size() ? last_ : static_cast<PieceSink*>(&next));
  }

 private:
  const Steps& steps_;
  const size_t index_;
  PieceSink* const last_;
};

std::unique_ptr<const PreTokenizer::Step> MakeSplit(const JsonNode& node) {
  const JsonNode pattern = node.At("pattern");
  const Behavior behavior = BehaviorOf(node.At("behavior"));
  const bool invert = node.BoolOr("invert", false);
  const auto regex = pattern.value().is_object() ? pattern.Find("Regex") : std::nullopt;
  const auto known = regex ? KnownPatternOf(regex->Text()) : std::nullopt;
  // All of a text is matched: isolated, or what is not a match removed.
  const bool keeps_matches =
      (behavior == Behavior::kIsolated && !invert) || (behavior == Behavior::kRemoved && invert);
  if (known && keeps_matches) return std::make_unique<KnownSplitStep>(*known);
  return std::make_unique<SplitStep>(Matcher::OfJson(pattern), behavior, invert);
}

uint32_t OneCharacter(const JsonNode& node) {
  const std::string& text = node.Text();
  if (text.empty() || DecodeCodePoint(text).bytes != text.size())
    node.Fail("expected one character");
  return DecodeCodePoint(text).value;
}

}  // namespace

PreTokenizer::PreTokenizer(const JsonNode& node) {
  AddSteps(node);
}

void PreTokenizer::AddSteps(const JsonNode& node) {
  const std::string& type = node.Type();
  if (byte_level_ && type != "Sequence")
    node.Fail("a pre-tokenizer after ByteLevel, which gets its characters, is not covered");
  const auto characters = [this](std::function<bool(uint32_t)> predicate, Behavior behavior) {
    steps_.push_back(
        std::make_unique<SplitStep>(Matcher::OfCharacters(std::move(predicate)), behavior));
  };
  if (type == "Sequence") {
    const JsonNode all = node.At("pretokenizers");
    for (size_t i = 0; i < all.ArraySize(); ++i) AddSteps(all.At(i));
  } else if (type == "ByteLevel") {
    AddByteLevel(node);
  } else if (type == "Split") {
    steps_.push_back(MakeSplit(node));
  } else if (type == "Digits") {
    characters(IsNumeric, node.BoolOr("individual_digits", false) ? Behavior::kIsolated
                                                                  : Behavior::kContiguous);
  } else if (type == "Punctuation") {
    const auto behavior = node.Find("behavior");
    characters(IsPunctuation, behavior ? BehaviorOf(*behavior) : Behavior::kIsolated);
  } else if (type == "WhitespaceSplit") {
    characters(IsWhiteSpace, Behavior::kRemoved);
  } else if (type == "Whitespace") {
    // Words of letters, marks, digits and connectors, and runs of what is neither that nor white
    // space.
    const std::string word = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d})";
    steps_.push_back(std::make_unique<SplitStep>(
        Matcher::OfRegex("[" + word + "]+|[^" + word + FromOniguruma(R"([\s])").substr(1) + "+"),
        Behavior::kRemoved, /*invert=*/true));
  } else if (type == "BertPreTokenizer") {
    characters(IsWhiteSpace, Behavior::kRemoved);
    characters(IsPunctuation, Behavior::kIsolated);
  } else if (type == "CharDelimiterSplit") {
    const uint32_t delimiter = OneCharacter(node.At("delimiter"));
    characters([delimiter](uint32_t c) { return c == delimiter; }, Behavior::kRemoved);
  } else {
    node.Fail("the pre-tokenizer '" + type + "' is not covered");
  }
  if (steps_.size() > kMostPreTokenizers) node.Fail("there are too many pre-tokenizers");
}

void PreTokenizer::AddByteLevel(const JsonNode& node) {
  if (node.BoolOr("add_prefix_space", true)) steps_.push_back(std::make_unique<PrefixSpaceStep>());
  if (node.BoolOr("use_regex", true))
    steps_.push_back(std::make_unique<KnownSplitStep>(KnownPattern::kGpt2));
  byte_level_ = true;
}

void PreTokenizer::Split(std::string_view text, PieceSink* sink) const {
  if (!text.empty()) NextStep(steps_, 0, sink).Put(text);
}

}  // namespace mxtrain::text
