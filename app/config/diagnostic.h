#pragma once
// Findings about a configuration, shown as a compiler shows them:
//
//   net.yaml:7:21: error: Convolution has no parameter 'num_filters'
//       7 |     - Convolution: {num_filters: 20, kernel: 5}
//         |                     ^~~~~~~~~~~
//         help: did you mean 'num_filter'? (required, integer: number of output channels)
//
// All findings are collected and reported in one go, in order of position, each once.
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

// One finding in the form above, ending in a line feed. Columns of the output count characters, not bytes.
std::string Render(const Diagnostic& diagnostic, const SourceMap& sources);
std::string Render(std::span<const Diagnostic> diagnostics, const SourceMap& sources);
// [{"severity", "file", "line", "column", "length", "message", "help", "notes"}]: the form of --json.
std::string RenderJson(std::span<const Diagnostic> diagnostics, const SourceMap& sources);

// What stops a command because of its configuration: what() is the rendered text of every finding.
class DiagnosticError : public Error {
 public:
  DiagnosticError(std::vector<Diagnostic> diagnostics, std::shared_ptr<const SourceMap> sources);
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  std::string Json() const { return RenderJson(diagnostics_, *sources_); }

 private:
  std::vector<Diagnostic> diagnostics_;
  std::shared_ptr<const SourceMap> sources_;
};

// Collects findings. Owned by whoever loads a configuration.
class Diagnostics {
 public:
  explicit Diagnostics(std::shared_ptr<SourceMap> sources) : sources_(std::move(sources)) {}
  SourceMap& sources() { return *sources_; }
  const SourceMap& sources() const { return *sources_; }
  const std::shared_ptr<SourceMap>& shared_sources() const { return sources_; }

  void Error(const Place& place, std::string message, std::string help = "", std::vector<std::string> notes = {});
  void Warning(const Place& place, std::string message, std::string help = "", std::vector<std::string> notes = {});
  void Add(Diagnostic diagnostic);

  int num_errors() const { return num_errors_; }
  static constexpr int kMost = 100;  // errors, at the last of which DiagnosticError is thrown; as many warnings are kept
  // In order of position; of several with the same place and message only the first.
  std::vector<Diagnostic> Sorted() const;
  void ThrowIfErrors() const;  // DiagnosticError with everything found, warnings too

 private:
  std::shared_ptr<SourceMap> sources_;
  std::vector<Diagnostic> found_;
  int num_errors_ = 0, num_warnings_ = 0;
};

}  // namespace mxtrain::config
