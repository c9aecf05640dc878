// SPDX-License-Identifier: Apache-2.0
#pragma once
// report.html: one page about a run, from the files in its folder.
#include <string>

namespace mxtrain::report {

// Writes RUN/report.html from the available files: result.json, metrics.csv, plots/*.svg,
// samples/*.png, eval/ (tables, figures), config.yaml, env.txt, command.txt. Self-contained, works
// offline, with a dark and a light theme. Throws kFileSystem.
void WriteHtmlReport(const std::string& run_folder);

}  // namespace mxtrain::report
