#pragma once
// report.html: everything about a run on one page, gathered from the files of its folder.
#include <string>

namespace mxtrain::report {

// Writes RUN/report.html from what is there: result.json, metrics.csv, plots/*.svg, samples/*.png, eval/ (tables, pictures), config.yaml,
// env.txt, command.txt. One file that needs no other and no network; readable in dark and in light. Throws kFileSystem.
void WriteHtmlReport(const std::string& run_folder);

}  // namespace mxtrain::report
