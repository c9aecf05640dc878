// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the sources of image files: files with labels, read on demand. Private to io.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct ImageTable {
  std::vector<std::string> paths;
  std::vector<float> labels;                  // label_width of each image
  int64_t label_width = 0;                    // 0: no labels; 1: a scalar
  std::vector<std::string> classes;           // empty: the labels are not classes
  bool label_sets = false;                    // a label is 0 or 1 per class, not a class number
  std::vector<float> weights;                 // of each labelled image (example_weight.h); or none
  std::vector<std::string> warnings, losses;  // of the source
};

// The bytes of an encoded image: a regular file of at most 256 MiB, else kFileSystem or kData.
std::string ReadImageFile(const std::string& path);

// Fields: data (images of any size) and, if there are labels, softmax_label, () or [label_width],
// and the weights.
std::unique_ptr<Source> NewImageFiles(ImageTable table);

// Converts written labels to numbers: integers from 0 are class numbers, other words are class
// names, sorted (or in the order of `given`, which then also bounds the numbers). `place(i)` names
// the line of word i in messages. Throws kData for a label outside the classes, and for words that
// make more than 10000 classes, most of one label.
struct ClassLabels {
  std::vector<float> labels;
  std::vector<std::string> classes;
};
ClassLabels NumberClasses(const std::vector<std::string>& words,
                          const std::vector<std::string>& given,
                          const std::function<std::string(size_t)>& place);

// The same for labels with any number of classes, separated by `delim`: rows of 0 or 1 per class,
// [words, classes].
ClassLabels NumberClassSets(const std::vector<std::string>& words, const std::string& delim,
                            const std::vector<std::string>& given,
                            const std::function<std::string(size_t)>& place);

}  // namespace mxtrain::io
