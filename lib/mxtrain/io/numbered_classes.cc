// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/numbered_classes.h"

#include <algorithm>
#include <unordered_map>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/class_names.h"

namespace mxtrain::io {
NumberedClasses::NumberedClasses(const std::vector<std::string>& given,
                                 const std::string& names_file, int64_t last, int64_t most)
    : file_(names_file),
      names_(names_file.empty() ? given : ReadClassNames(names_file)),
      most_(most) {
  const auto is_given = [&given](const std::string& name) {
    return std::ranges::find(given, name) != given.end();
  };
  if (!given.empty() && std::ranges::none_of(names_, is_given)) names_ = given, file_.clear();
  if (names_.empty()) {
    for (int64_t k = 0; k <= std::min(last, most - 1); ++k) names_.push_back(std::to_string(k));
    unnamed_ = true;
  }
  classes_ = given.empty() ? names_ : given;
  std::unordered_map<std::string, int64_t> number_of;
  for (size_t k = 0; k < classes_.size(); ++k)
    number_of.emplace(classes_[k], static_cast<int64_t>(k));
  for (const std::string& name : names_) {
    const auto found = number_of.find(name);
    numbers_.push_back(found == number_of.end() ? -1 : found->second);
  }
}

int64_t NumberedClasses::NumberOf(int64_t number, const std::function<std::string()>& place) const {
  if (number >= std::ssize(names_)) ThrowNoName(number, place());
  const int64_t found = numbers_[static_cast<size_t>(number)];
  if (found >= 0) return found;
  Throw(ErrorKind::kData, "{}: the class {} ('{}' by {}) is not one of the {} classes ({})",
        place(), number, Shortened(names_[static_cast<size_t>(number)]), file_, classes_.size(),
        Shortened(FirstOf(classes_, 20), 500));
}

void NumberedClasses::ThrowNoName(int64_t number, const std::string& place) const {
  if (unnamed_) {
    Throw(ErrorKind::kData,
          "{}: the class {} makes more than {} classes; name them if there are so many", place,
          number, most_);
  }
  Throw(ErrorKind::kData, "{}: the class {} has no name; the names{} are {}, counted from 0", place,
        number, file_.empty() ? "" : " in " + file_, Shortened(FirstOf(names_, 20), 500));
}

}  // namespace mxtrain::io
