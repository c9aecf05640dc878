// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is looked for in labels that are one class of several.
#include <optional>
#include <string>
#include <vector>

#include "app/tasks/head.h"
#include "app/tasks/task.h"
#include "mxtrain/io/source.h"

namespace mxtrain::tasks {

// Compares the classes of the data with those of the head: an error if the data has more, a warning
// if it has fewer.
std::optional<Finding> CompareClassCount(const Head& head, const std::vector<std::string>& classes);

// What is odd about the classes of the training examples: that all are of one class, or that a
// class has none, as class 0 where labels are numbered from 1. Labels that are no classes of the
// net do not count.
std::vector<std::string> OddClasses(const Head& head, const io::Source& training);

}  // namespace mxtrain::tasks
