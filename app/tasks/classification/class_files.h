// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes a ClassReport as files: tables, figures, and a sheet of the worst mistakes.
#include <string>

#include "app/report/plot/drawing.h"
#include "app/tasks/classification/class_report.h"

namespace mxtrain::tasks {

// Into `folder`, which is created: classes.csv, confusion.csv, calibration.csv, thresholds.csv,
// decisions.csv (of two classes) and mistakes.csv; confusion, classes and reliability, each as .svg
// and .png; mistakes.png if the report kept images. Of more than kMostClassesInMatrix classes
// confusion.csv holds the pairs that occur, and there is no figure of it. Throws kFileSystem.
void WriteClassFiles(const ClassReport& report, const std::string& folder);

plot::Drawing DrawConfusion(const ClassReport& report);
// With many classes, those with the lowest F1.
plot::Drawing DrawClasses(const ClassReport& report);
plot::Drawing DrawReliability(const ClassReport& report);

}  // namespace mxtrain::tasks
