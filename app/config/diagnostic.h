// SPDX-License-Identifier: Apache-2.0
#pragma once
// Errors and warnings about a configuration, shown like those of a compiler:
//
//   net.yaml:7:21: error: Convolution has no parameter 'num_filters'
//       7 |     - Convolution: {num_filters: 20, kernel: 5}
//         |                     ^~~~~~~~~~~
//         help: did you mean 'num_filter'? (required, integer: number of output channels)
//
// All diagnostics are collected and reported together, ordered by position, each once.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/config/source_map.h"
#include "mxtrain/base/error.h"

namespace mxtrain::config {

enum class Severity { kError, kWarning };

struct Diagnostic {
  Severity severity = Severity::kError;
  Place place;
  std::string message;
  std::string help;                // what to do; may be empty
  std::vector<std::string> notes;  // "in block 'bottleneck', used at net.yaml:31"
};

// One diagnostic in the format above, ending in a line feed. Columns of the output count
// characters, not bytes. Control characters of names, values and lines are escaped (printable.h).
std::string Render(const Diagnostic& diagnostic, const SourceMap& sources);
std::string Render(std::span<const Diagnostic> diagnostics, const SourceMap& sources);
// For a log, which says the severity itself: without it and without the final line feed.
std::string RenderForLog(const Diagnostic& diagnostic, const SourceMap& sources);
// [{"severity", "file", "line", "column", "length", "message", "help", "notes"}]: the format of
// --json.
std::string RenderJson(std::span<const Diagnostic> diagnostics, const SourceMap& sources);

// Thrown when a configuration is invalid: what() is the rendered text of all diagnostics.
class DiagnosticError : public Error {
 public:
  DiagnosticError(std::vector<Diagnostic> diagnostics, std::shared_ptr<const SourceMap> sources);
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  std::string Json() const { return RenderJson(diagnostics_, *sources_); }

 private:
  std::vector<Diagnostic> diagnostics_;
  std::shared_ptr<const SourceMap> sources_;
};

// Collects diagnostics. Owned by the code that loads a configuration.
class Diagnostics {
 public:
  explicit Diagnostics(std::shared_ptr<SourceMap> sources) : sources_(std::move(sources)) {}
  SourceMap& sources() { return *sources_; }
  const SourceMap& sources() const { return *sources_; }
  const std::shared_ptr<SourceMap>& shared_sources() const { return sources_; }

  void Error(const Place& place, std::string message, std::string help = "",
             std::vector<std::string> notes = {});
  void Warning(const Place& place, std::string message, std::string help = "",
               std::vector<std::string> notes = {});
  void Add(Diagnostic diagnostic);

  int num_errors() const { return num_errors_; }
  // Limit of the errors; the last one throws DiagnosticError. At most as many warnings are kept.
  static constexpr int kMost = 100;
  // In order of position; duplicates (same place and message) are dropped.
  std::vector<Diagnostic> Sorted() const;
  void ThrowIfErrors() const;  // DiagnosticError with all errors and warnings
  // Removes the warnings and returns them in order of position: they are shown by the caller, not
  // again with later errors.
  std::vector<Diagnostic> TakeWarnings();

 private:
  std::shared_ptr<SourceMap> sources_;
  std::vector<Diagnostic> found_;
  int num_errors_ = 0, num_warnings_ = 0;
};

}  // namespace mxtrain::config
