// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a detector finds in an image, in pixels of its file.
#include <span>
#include <vector>

#include "app/tasks/example.h"
#include "app/tasks/scored_classes.h"
#include "mxtrain/io/boxes.h"
#include "mxtrain/metric/box_scores.h"

namespace mxtrain::tasks {

inline constexpr size_t kFoundColumns = 6;  // class, score, left, top, right, bottom
// Boxes with a lower score are not shown, counted as errors, or written, unless one is asked for.
inline constexpr double kShownScore = 0.3;

// The rows of an example that are boxes, moved from the net's image to its file and cut at its
// edges, the best first. Rows that are not finite are skipped.
std::vector<FoundBox> BoxesInFile(std::span<const float> rows, const Example& example);

// The objects of an example as its file says them: `rows` of `columns` numbers (io/boxes.h).
std::vector<TrueBox> ObjectsOf(std::span<const float> rows, size_t columns);

// Draws boxes with their classes: with scores, and without.
void DrawFound(std::span<const FoundBox> boxes, const ClassNames& names, io::Image* image);
void DrawObjects(std::span<const TrueBox> objects, const ClassNames& names, io::Image* image);

}  // namespace mxtrain::tasks
