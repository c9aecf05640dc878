#pragma once
// What can be wrong with a data set as a whole, seen from its records alone: pictures that are there twice, and classes of which one of two
// sets has no examples.
#include <functional>
#include <string>
#include <vector>

#include "mxtrain/io/source.h"

namespace mxtrain::commands {

struct DataFindings {
  std::vector<std::string> findings;  // what makes a result wrong
  std::vector<std::string> notes;     // what is worth knowing
};

// Compares files byte for byte, decoded pictures pixel for pixel; numbers, of which equal rows mean nothing, are left alone. A finding is a
// picture that is in both sets (the result of a validation is then too good) or has two classes; a note, one that is in a set twice.
// Records that cannot be read are passed over. `val` may be null. `stop` is asked after each picture.
DataFindings FindDuplicates(const io::Source* train, const io::Source* val, const std::function<bool()>& stop);

// Classes that have examples in one set and none in the other.
std::vector<std::string> CompareClasses(const io::Source& train, const io::Source& val);

}  // namespace mxtrain::commands
