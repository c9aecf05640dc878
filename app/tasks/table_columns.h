// SPDX-License-Identifier: Apache-2.0
#pragma once
// What recipes make of the columns of a table.
#include <set>
#include <string>

#include "mxtrain/io/find_table_columns.h"

namespace mxtrain::tasks {

// A column's name as that of a layer or an input, in small letters, and not yet *used.
std::string LayerNameOf(const std::string& column, std::set<std::string>* used);

// Whether a target is one of classes: words, or numbers from 0 without gaps.
bool HoldsClasses(const io::TableColumn& column);

// "2 classes: no (31), yes (15)"; many are only counted.
std::string ClassesText(const io::TableColumn& column);

// All cells that are no numbers are with decimal commas, in a table that has decimal points, too.
bool MixesDecimalCommas(const io::TableColumn& column);

// Throws kData for a target whose words are numbers to a reader. `file`: the table, for the
// message.
void RefuseNumberLike(const io::TableColumn& target, const std::string& file);

// Why a column is none to learn from: "the same in every row"; "" if it is.
std::string WhyNoInput(const io::TableColumn& column);

}  // namespace mxtrain::tasks
