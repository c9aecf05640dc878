// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of a data set as a whole: duplicate images, classes missing from one of the two sets,
// unusual files.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/commands/image_scan.h"
#include "mxtrain/base/json.h"
#include "mxtrain/io/source.h"

namespace mxtrain::commands {

// A set and the facts about its records (ScanImages). No source: the set does not exist.
struct DataSet {
  const char* name = "";  // "data.train"
  const io::Source* source = nullptr;
  std::vector<ImageFacts> facts;
};

// What is so of some examples: a sentence that names the first ones, and all of them.
struct DataFinding {
  std::string text;
  std::vector<std::string> examples;  // empty: it is not about examples
};

struct DataFindings {
  std::vector<DataFinding> findings;  // problems that make results wrong
  std::vector<DataFinding> notes;     // worth knowing
};

// "3 images are in two classes: a; b; c", unless there are none. `one`, `many`: what is so of one,
// and of several; `before`: what the sentence begins with.
void AddTold(std::vector<std::string> all, const std::string& noun, const std::string& one,
             const std::string& many, std::vector<DataFinding>* findings,
             const std::string& before = "");

// The maximum number of bits of an ImageHash, of 256, in which a copy may differ from its original.
constexpr int kNearBits = 40;

// Compares files byte for byte and decoded images pixel for pixel; skips numbers, where equal rows
// mean nothing. An image in both sets (validation results are then too good) or in two classes is a
// finding; one that is in a set twice is a note.
DataFindings FindDuplicates(const DataSet& train, const DataSet& val);
// Validation images that equal a training image except for size, compression, brightness or
// contrast: at most kNearBits differ, and LookAlike agrees. A note, since images of similar objects
// on the same background are as near. Those found by FindDuplicates are skipped. Every pair of
// images is compared; `stop` is polled in between.
DataFindings FindNearDuplicates(const DataSet& train, const DataSet& val,
                                const std::function<bool()>& stop);

// Classes that have examples in one set and none in the other.
std::vector<std::string> CompareClasses(const io::Source& train, const io::Source& val);

// Notes about the files of a set: images smaller than the net's input [C, H, W] (skipped if its
// rank is unknown), gray images among coloured ones, alpha, CMYK, EXIF orientation, more bits per
// channel than the `bits` of data.bits, or none with as many; weights of examples that are far from
// 1 on average; and classes of which one has ten times the examples of another.
std::vector<DataFinding> DescribeOddities(const DataSet& set, const TShape& input, int bits);
// {"examples", "classes": {NAME: COUNT}, "weights": {"least", "mean", "most", "zeros"}, "pictures":
// {"readable", "height": [LEAST, MEDIAN, MOST], "width", "gray", "alpha", "cmyk", "turned",
// "deep"}}
Json Summarize(const DataSet& set);

}  // namespace mxtrain::commands
