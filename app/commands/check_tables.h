// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of a table as a whole: columns that teach nothing or give the answer away, numbers far
// from all others, rows that contradict each other.
#include "app/commands/check_data.h"
#include "app/config/config.h"

namespace mxtrain::commands {

// `columns`: of data.train. Of the training rows, in the units of the table:
// - a column that is the same in every row, one that is a label, or a label of numbers apart from a
//   factor and an offset, and one that tells a label alone (each of its values, of which there are
//   far fewer than rows, or each of as many intervals as there are classes, has one label) are
//   findings;
// - numbers that are more than kFar times the middle half's width away from it, if they are few,
//   rows with the inputs of another row and another class, and validation rows that are training
//   rows are notes.
// Inputs that are images are no columns. Nothing for data that is no table.
inline constexpr double kFar = 20;
DataFindings CheckTable(const DataSet& train, const DataSet& val,
                        const std::vector<config::Column>& columns);

}  // namespace mxtrain::commands
