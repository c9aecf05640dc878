#pragma once
// What can be wrong with a data set as a whole: pictures that are there twice, classes of which one of two sets has no examples, and what
// is odd about the files.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/commands/image_scan.h"
#include "mxtrain/base/json.h"
#include "mxtrain/io/source.h"

namespace mxtrain::commands {

// A set and what was seen of its records (ScanImages). Without a source: there is none.
struct DataSet {
  const char* name = "";  // "data.train"
  const io::Source* source = nullptr;
  std::vector<ImageFacts> facts;
};

struct DataFindings {
  std::vector<std::string> findings;  // what makes a result wrong
  std::vector<std::string> notes;     // what is worth knowing
};

// The most bits of a ImageHash, of 256, in which a picture may differ from another that it is a copy of.
constexpr int kNearBits = 40;

// Compares files byte for byte, decoded pictures pixel for pixel; numbers, of which equal rows mean nothing, are left alone. A finding is a
// picture that is in both sets (the result of a validation is then too good) or has two classes; a note, one that is in a set twice.
DataFindings FindDuplicates(const DataSet& train, const DataSet& val);
// Pictures of validation that are a training picture but for their size, compression, brightness or contrast: at most kNearBits differ, and
// LookAlike agrees. A note, since two pictures of much alike things on one ground are as near. Those that FindDuplicates names are left out. Every
// pair of pictures is compared; `stop` is asked in between.
DataFindings FindNearDuplicates(const DataSet& train, const DataSet& val, const std::function<bool()>& stop);

// Classes that have examples in one set and none in the other.
std::vector<std::string> CompareClasses(const io::Source& train, const io::Source& val);

// What is worth knowing about the files of a set: those that are smaller than the net's input [C, H, W] (of unknown rank: not asked), gray
// ones among coloured ones, alpha, CMYK, EXIF orientation; and classes of which one has ten times the examples of another.
std::vector<std::string> DescribeOddities(const DataSet& set, const TShape& input);
// {"examples", "classes": {NAME: COUNT}, "pictures": {"readable", "height": [LEAST, MEDIAN, MOST], "width", "gray", "alpha", "cmyk", "turned"}}
Json Summarize(const DataSet& set);

}  // namespace mxtrain::commands
