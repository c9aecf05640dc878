// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration that `init` writes for a table of numbers and words: numbers take the ranks of
// a normal distribution and become sines and cosines of learned frequencies (Gorishniy et al. 2022,
// "On Embeddings for Numerical Features in Tabular Deep Learning"), words are categories with a
// vector each, and a residual net of fully connected layers reads both (Gorishniy et al. 2021,
// "Revisiting Deep Learning Models for Tabular Data").
#include <memory>

#include "app/tasks/recipe.h"

namespace mxtrain::tasks {

enum class TableTarget { kClasses, kNumbers };

// The table in a file, if its target is of this kind: the column that the request names, else one
// with a usual name (target, label, class, price, ...), else the last. Null for another file.
// Throws kUsage for a target that there is not, kData for a table without columns to learn from.
std::unique_ptr<Recipe> RecognizeTable(const RecipeRequest& request, TableTarget target);

}  // namespace mxtrain::tasks
