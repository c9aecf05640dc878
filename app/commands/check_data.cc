// SPDX-License-Identifier: Apache-2.0
#include "app/commands/check_data.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "mxtrain/base/error.h"
#include "mxtrain/device/cpu/parallel.h"
#include "mxtrain/io/example_weight.h"

namespace mxtrain::commands {
namespace {

constexpr size_t kMostNamed = 5;    // of one kind of finding
constexpr int64_t kImbalance = 10;  // ratio from which class imbalance is reported

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

std::unordered_set<uint64_t> ChecksumsOf(const DataSet& set) {
  std::unordered_set<uint64_t> sums;
  for (const ImageFacts& facts : set.facts) {
    if (facts.readable) sums.insert(facts.checksum);
  }
  return sums;
}

// The nearest training image by hash, and the number of bits that differ.
std::pair<size_t, int> Nearest(const std::vector<ImageFacts>& train, const ImageHash& hash) {
  std::pair<size_t, int> nearest{0, std::numeric_limits<int>::max()};
  for (size_t i = 0; i < train.size(); ++i) {
    if (!train[i].hash) continue;
    const int bits = Distance(*train[i].hash, hash);
    if (bits < nearest.second) nearest = {i, bits};
  }
  return nearest;
}

std::map<std::string, int64_t> CountClasses(const io::Source& source) {
  std::map<std::string, int64_t> counts;
  for (const std::string& name : source.class_names()) counts[name] = 0;
  for (int64_t i = 0; i < source.size(); ++i) {
    if (const auto k = source.ClassOf(i)) ++counts[source.class_names()[static_cast<size_t>(*k)]];
  }
  return counts;
}

// Names of the readable images for which the predicate holds.
template <typename IsSo>
std::vector<std::string> NamesOf(const DataSet& set, const IsSo& is_so) {
  std::vector<std::string> names;
  for (size_t i = 0; i < set.facts.size(); ++i) {
    if (set.facts[i].readable && is_so(set.facts[i]))
      names.push_back(set.source->Name(static_cast<int64_t>(i)));
  }
  return names;
}

bool IsGray(const ImageFacts& facts) {
  return facts.channels <= 2;
}
bool HasAlpha(const ImageFacts& facts) {
  return facts.channels == 2 || (facts.channels == 4 && !facts.cmyk);
}
bool IsDeep(const ImageFacts& facts) {
  return facts.bits > 8;
}

std::optional<std::string> DescribeWeights(const io::Source& source) {
  constexpr double kFar = 2;
  constexpr double kLargeShare = 0.2, kManyTimes = 10;
  const std::optional<io::WeightSummary> weights = io::SummarizeWeights(source);
  if (!weights) return std::nullopt;
  const double share = weights->Share();
  const auto others = static_cast<double>(weights->examples - weights->zeros - 1);
  if (others > 0 && share > kLargeShare && share * others > kManyTimes * (1 - share)) {
    return format(
        "{} has the weight {:.4g}, {:.0f} % of those of all {} examples together: it outweighs "
        "them; is it a slip?",
        source.Name(weights->heaviest), weights->most, 100 * share, weights->examples);
  }
  if (weights->mean > kFar || weights->mean < 1 / kFar) {
    return format(
        "weights of the examples are {:.4g} on average, and so are steps {} than without "
        "them: divide the column by {:.4g}, or the learning rate",
        weights->mean, weights->mean > 1 ? "larger" : "smaller", weights->mean);
  }
  if (2 * weights->zeros > weights->examples)
    return format("{} of {} examples have the weight 0, and are read for nothing", weights->zeros,
                  weights->examples);
  return std::nullopt;
}

std::optional<std::string> DescribeImbalance(const io::Source& source) {
  const std::map<std::string, int64_t> counts = CountClasses(source);
  if (counts.size() < 2) return std::nullopt;
  const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end(), by_count);
  if (least->second == 0 || most->second < kImbalance * least->second) return std::nullopt;
  return format(
      "class '{}' has {} and '{}' {}, {} times as many: check the metrics of each class, "
      "not only accuracy",
      least->first, Counted(least->second, "example"), most->first, most->second,
      most->second / least->second);
}

// Least, median and most of a member.
Json RangeOf(const std::vector<ImageFacts>& facts, int ImageFacts::*member) {
  std::vector<int> values;
  for (const ImageFacts& f : facts) {
    if (f.readable) values.push_back(f.*member);
  }
  if (values.empty()) return nullptr;
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values.back()};
}

}  // namespace

void AddTold(std::vector<std::string> all, const std::string& noun, const std::string& one,
             const std::string& many, std::vector<DataFinding>* findings,
             const std::string& before) {
  if (all.empty()) return;
  std::string text = format("{}{} {}: {}", before, Counted(all.size(), noun),
                            all.size() == 1 ? one : many, FirstOf(all, kMostNamed, "; "));
  findings->push_back({std::move(text), std::move(all)});
}

DataFindings FindDuplicates(const DataSet& train, const DataSet& val) {
  std::unordered_map<uint64_t, Record> first;  // of each image
  std::vector<std::string> shared, contradicting, repeated;
  for (const DataSet* set : {&train, &val}) {
    for (size_t i = 0; i < set->facts.size(); ++i) {
      if (!set->facts[i].readable) continue;
      const Record record{set->source, static_cast<int64_t>(i)};
      const auto [same, is_new] = first.try_emplace(set->facts[i].checksum, record);
      if (is_new) continue;
      const Record& other = same->second;
      const bool classes_differ = record.Class() && other.Class() &&
                                  record.source->class_names() == other.source->class_names() &&
                                  *record.Class() != *other.Class();
      if (classes_differ) {
        contradicting.push_back(format("{} is {}", record.NameAndClass(), other.NameAndClass()));
      } else {
        (other.source == record.source ? repeated : shared)
            .push_back(format("{} is {}", record.Name(), other.Name()));
      }
    }
  }
  DataFindings found;
  AddTold(shared, "validation image",
          "is also a training image, which makes validation results too good",
          "are also training images, which makes validation results too good", &found.findings);
  AddTold(contradicting, "image", "is in two classes", "are in two classes", &found.findings);
  AddTold(repeated, "image", "occurs more than once", "occur more than once", &found.notes);
  return found;
}

DataFindings FindNearDuplicates(const DataSet& train, const DataSet& val,
                                const std::function<bool()>& stop) {
  const std::unordered_set<uint64_t> known = ChecksumsOf(train);
  // Of each validation image.
  std::vector<std::pair<size_t, int>> nearest(val.facts.size(), {0, kNearBits + 1});
  ParallelFor(static_cast<int64_t>(val.facts.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end) && !stop(); ++i) {
      const ImageFacts& facts = val.facts[i];
      if (facts.hash && !known.contains(facts.checksum))
        nearest[i] = Nearest(train.facts, *facts.hash);
    }
  });
  std::vector<std::string> near;
  for (size_t i = 0; i < nearest.size() && !stop(); ++i) {
    const auto [j, bits] = nearest[i];
    const auto index = static_cast<int64_t>(i), other = static_cast<int64_t>(j);
    if (bits > kNearBits || !LookAlike(*val.source, index, *train.source, other)) continue;
    near.push_back(format("{} is like {} ({} of 256 bits differ)", val.source->Name(index),
                          train.source->Name(other), bits));
  }
  DataFindings found;
  AddTold(near, "validation image", "looks like a copy of a training image; inspect it",
          "look like copies of training images; inspect them", &found.notes);
  return found;
}

std::vector<std::string> CompareClasses(const io::Source& train, const io::Source& val) {
  // Examples to train on, and to validate.
  std::map<std::string, std::pair<int64_t, int64_t>> counts;
  for (const auto& [name, count] : CountClasses(train)) counts[name].first = count;
  for (const auto& [name, count] : CountClasses(val)) counts[name].second = count;
  std::vector<std::string> findings;
  for (const auto& [name, of] : counts) {
    if (of.first > 0 && of.second == 0)
      findings.push_back(format("class '{}' has {} and none for validation", name,
                                Counted(of.first, "training example")));
    if (of.first == 0 && of.second > 0)
      findings.push_back(format("class '{}' has {} for validation and none to train on", name,
                                Counted(of.second, "example")));
  }
  return findings;
}

std::vector<DataFinding> DescribeOddities(const DataSet& set, const TShape& input, int bits) {
  std::vector<DataFinding> told;
  const auto add = [&](const std::vector<std::string>& names, const std::string& one,
                       const std::string& many) {
    if (names.empty()) return;
    told.push_back(
        {format("{}: {} of {} {}: {}", set.name, names.size(), Counted(set.facts.size(), "image"),
                names.size() == 1 ? one : many, FirstOf(names, kMostNamed, "; ")),
         names});
  };
  if (input.ndim() == 3) {
    const auto is_smaller = [&input](const ImageFacts& f) {
      return f.height < input[1] || f.width < input[2];
    };
    const std::string wanted =
        format("smaller than the net's input of {}x{} and", input[2], input[1]);
    add(NamesOf(set, is_smaller), format("is {} is enlarged", wanted),
        format("are {} are enlarged", wanted));
  }
  const std::vector<std::string> gray = NamesOf(set, IsGray);
  const auto readable = static_cast<size_t>(
      std::count_if(set.facts.begin(), set.facts.end(), [](const auto& f) { return f.readable; }));
  if (gray.size() < readable)
    add(gray, "is gray, the others are in colour", "are gray, the others are in colour");
  add(NamesOf(set, HasAlpha), "has an alpha channel and is blended onto white",
      "have an alpha channel and are blended onto white");
  add(NamesOf(set, [](const ImageFacts& f) { return f.cmyk; }),
      "is CMYK, whose colours are converted only approximately; convert it to RGB",
      "are CMYK, whose colours are converted only approximately; convert them to RGB");
  add(NamesOf(set, [](const ImageFacts& f) { return f.orientation != 1; }),
      "is stored rotated or mirrored (EXIF orientation); it is read upright, which not every tool "
      "does",
      "are stored rotated or mirrored (EXIF orientation); they are read upright, which not every "
      "tool does");
  const std::vector<std::string> deep = NamesOf(set, IsDeep);
  if (bits == 8) {
    add(deep, "has 16 bits per channel, of which 8 are kept; data.bits: 16 keeps all",
        "have 16 bits per channel, of which 8 are kept; data.bits: 16 keeps all");
  } else if (deep.empty() && readable > 0) {
    told.push_back({format("{}: none of {} has more than 8 bits per channel; data.bits: 16 is of "
                           "no use",
                           set.name, Counted(set.facts.size(), "image")),
                    {}});
  }
  if (const auto text = DescribeWeights(*set.source))
    told.push_back({format("{}: {}", set.name, *text), {}});
  if (const auto text = DescribeImbalance(*set.source))
    told.push_back({format("{}: {}", set.name, *text), {}});
  return told;
}

Json Summarize(const DataSet& set) {
  Json summary = {{"examples", set.source->size()}};
  if (set.source->num_classes() > 0) summary["classes"] = CountClasses(*set.source);
  if (const auto weights = io::SummarizeWeights(*set.source)) {
    summary["weights"] = {{"least", weights->least},
                          {"mean", weights->mean},
                          {"most", weights->most},
                          {"zeros", weights->zeros}};
  }
  if (set.facts.empty()) return summary;
  const auto count = [&set](const auto& is_so) { return NamesOf(set, is_so).size(); };
  summary["pictures"] = {{"readable", count([](const ImageFacts&) { return true; })},
                         {"height", RangeOf(set.facts, &ImageFacts::height)},
                         {"width", RangeOf(set.facts, &ImageFacts::width)},
                         {"gray", count(IsGray)},
                         {"alpha", count(HasAlpha)},
                         {"cmyk", count([](const ImageFacts& f) { return f.cmyk; })},
                         {"turned", count([](const ImageFacts& f) { return f.orientation != 1; })},
                         {"deep", count(IsDeep)}};
  return summary;
}

}  // namespace mxtrain::commands
