// SPDX-License-Identifier: Apache-2.0
#pragma once
// Classes that files write as numbers, with a list of their names beside. Private to io.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mxtrain::io {

// What the numbers in the files of a data set mean.
class NumberedClasses {
 public:
  // `given`: the classes of the training set, or none. `names_file`: "" for none; without one, or
  // if it has none of the given names, the numbers are those of `given`; without these either, they
  // are names themselves, up to `last`, the largest in the files, and at most `most` of them.
  NumberedClasses(const std::vector<std::string>& given, const std::string& names_file,
                  int64_t last, int64_t most);

  const std::vector<std::string>& names() const { return classes_; }
  // The class, among names(), of a number from 0. Throws kData if it has none; `place` names where
  // the number is.
  int64_t NumberOf(int64_t number, const std::function<std::string()>& place) const;

 private:
  [[noreturn]] void ThrowNoName(int64_t number, const std::string& place) const;

  std::string file_;                // of the names; empty if they are given
  std::vector<std::string> names_;  // of the numbers in the files
  std::vector<std::string> classes_;
  std::vector<int64_t> numbers_;  // of names_ among classes_; -1: none
  int64_t most_ = 0;
  bool unnamed_ = false;
};

}  // namespace mxtrain::io
