// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/holdout_groups.h"

#include <algorithm>
#include <map>
#include <optional>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/philox.h"
#include "mxtrain/io/example_files.h"
#include "mxtrain/text/substitution.h"

namespace mxtrain::io {
namespace {

// Turns a text into what the pattern's first group matched in it, or the whole pattern if it has no
// group.
text::Substitution PatternOf(const std::string& pattern) {
  constexpr const char *kBefore = "\\A[\\s\\S]*?", *kBehind = "[\\s\\S]*\\z";
  const auto with = [&](const char* bracket) {
    return text::Substitution(kBefore + (bracket + pattern) + ")" + kBehind, "$1");
  };
  try {
    text::Substitution(pattern, "");
    try {
      return with("(?:");
    } catch (const Error&) {  // there is no group 1
      return with("(");
    }
  } catch (const Error& e) {
    Throw(ErrorKind::kConfig, "holdout_group_pattern = '{}' is no regular expression: {}", pattern,
          e.what());
  }
}

// The text by which an example belongs to a group; "" if it belongs to none.
class GroupNames {
 public:
  GroupNames(const Source& source, const HoldoutParam& param, const std::string& root)
      : source_(source), root_(root), by_file_(!param.holdout_group_pattern.empty()) {
    if (by_file_) pattern_.emplace(PatternOf(param.holdout_group_pattern));
  }
  std::string Of(int64_t index) const {
    if (!by_file_) return source_.GroupOf(index);
    const std::string file = FileBelow(source_, index, root_);
    return pattern_->Apply(file).value_or("");
  }

 private:
  const Source& source_;
  const std::string& root_;
  const bool by_file_;
  std::optional<text::Substitution> pattern_;  // if by_file_
};

struct Group {
  std::vector<int64_t> members;
  std::map<size_t, double> classes;  // examples by stratum
  uint32_t draw = 0;
};

std::vector<Group> GroupsOf(const Source& source, const HoldoutParam& param,
                            const std::vector<int64_t>& group) {
  std::vector<Group> groups(static_cast<size_t>(*std::max_element(group.begin(), group.end()) + 1));
  const bool by_class = param.holdout_stratified && source.num_classes() > 0 && source.ClassOf(0);
  for (int64_t i = 0; i < source.size(); ++i) {
    Group& of = groups[static_cast<size_t>(group[static_cast<size_t>(i)])];
    of.members.push_back(i);
    of.classes[by_class ? static_cast<size_t>(*source.ClassOf(i)) : 0] += 1;
  }
  for (size_t g = 0; g < groups.size(); ++g)
    groups[g].draw =
        PhiloxAt(static_cast<uint64_t>(param.holdout_seed), StreamOf("io.holdout_groups"), 0, g);
  std::ranges::sort(groups, [](const Group& a, const Group& b) {
    if (a.members.size() != b.members.size()) return a.members.size() > b.members.size();
    return a.draw != b.draw ? a.draw < b.draw : a.members[0] < b.members[0];
  });
  return groups;
}

// A side or a fold: what it is to have of each class, less what it has.
struct Part {
  std::map<size_t, double> wanted;
  std::map<size_t, double> all;  // of the set
  std::vector<const Group*> groups = {};

  // How well a group fits, as shares of the classes.
  double Need(const Group& group) const {
    double need = 0;
    for (const auto& [k, count] : group.classes)
      need += count / all.at(k) * (wanted.at(k) - count / 2) / all.at(k);
    return need;
  }
  void Take(const Group& group) {
    for (const auto& [k, count] : group.classes) wanted[k] -= count;
    groups.push_back(&group);
  }
};

std::vector<Part> PartsOf(const std::vector<Group>& groups, const HoldoutParam& param) {
  std::map<size_t, double> all;
  for (const Group& group : groups) {
    for (const auto& [k, count] : group.classes) all[k] += count;
  }
  std::vector<double> shares = {param.holdout, 1 - param.holdout};
  if (param.holdout_folds > 0)
    shares.assign(static_cast<size_t>(param.holdout_folds), 1.0 / param.holdout_folds);
  std::vector<Part> parts;
  for (const double share : shares) {
    Part& part = parts.emplace_back(Part{all, all});
    for (auto& [k, count] : part.wanted) count *= share;
  }
  return parts;
}

}  // namespace

std::vector<int64_t> FindGroups(const Source& source, const HoldoutParam& param,
                                const std::string& root) {
  const GroupNames names(source, param, root);
  std::map<std::string, int64_t> numbers;
  std::vector<int64_t> group;
  int64_t count = 0;
  for (int64_t i = 0; i < source.size(); ++i) {
    const std::string name = names.Of(i);
    const bool own = name.empty();
    const int64_t number = own ? count : numbers.try_emplace(name, count).first->second;
    count = std::max(count, number + 1);
    group.push_back(number);
  }
  if (!numbers.empty()) return group;
  if (!param.holdout_group_pattern.empty() && source.size() > 0)
    Throw(ErrorKind::kConfig, "holdout_group_pattern = '{}' matches no file, such as '{}'",
          param.holdout_group_pattern, FileBelow(source, 0, root));
  return {};
}

std::vector<int64_t> HeldOutGroups(const Source& source, const HoldoutParam& param,
                                   const std::vector<int64_t>& group) {
  const std::vector<Group> groups = GroupsOf(source, param, group);
  std::vector<Part> parts = PartsOf(groups, param);
  if (groups.size() < parts.size())
    Throw(ErrorKind::kConfig,
          "{} of examples {} too few for {} parts of which each has whole groups",
          Counted(groups.size(), "group"), groups.size() == 1 ? "is" : "are", parts.size());
  size_t left = groups.size();
  for (const Group& next : groups) {
    // The last groups are for parts that have none.
    const auto empty = static_cast<size_t>(
        std::ranges::count_if(parts, [](const Part& part) { return part.groups.empty(); }));
    Part* best = nullptr;
    for (Part& part : parts) {
      if (left == empty && !part.groups.empty()) continue;
      if (!best || part.Need(next) > best->Need(next)) best = &part;
    }
    best->Take(next);
    --left;
  }
  std::vector<int64_t> held_out;
  for (const Group* held : parts[static_cast<size_t>(param.holdout_fold)].groups)
    held_out.insert(held_out.end(), held->members.begin(), held->members.end());
  return held_out;
}

}  // namespace mxtrain::io
