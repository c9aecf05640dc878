#pragma once
// First values of a net from a file: of another run, of another net, or of another program.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

// How the names in a file become names of a net: rules in order, each applied to what the one before left. A pattern is a regular expression
// (ECMAScript); what it finds becomes the replacement, in which $1 stands for the first group. A rule without a replacement drops the array.
class MXTRAIN_API NameMap {
 public:
  struct Rule {
    std::string pattern;
    std::optional<std::string> replacement;
  };
  NameMap() = default;                              // names stay
  explicit NameMap(const std::vector<Rule>& rules);  // throws kConfig for a pattern that is no regular expression
  std::optional<std::string> Apply(const std::string& name) const;  // nothing: the array is dropped

 private:
  struct Compiled;
  std::shared_ptr<const std::vector<Compiled>> rules_;
};

// Parameters and auxiliary states by the names that they have in the net; plain, on the CPU, of the file's element types. `file`: a run
// folder or checkpoint (averages, where the run kept them), PREFIX@7 or .params of the reference system, .safetensors. Throws kData for a pickle (.pt, .pth, ...), which could
// run anything, and for two arrays that come to one name; else as the readers of these files.
MXTRAIN_API std::map<std::string, NDArray> LoadWeights(Runtime& runtime, const std::string& file, const NameMap& map = {});

// What became of the arrays of a file and of a net.
struct MXTRAIN_API WeightsAccount {
  struct Reset {
    std::string name;
    TShape shape;
    std::optional<TShape> in_file;  // nothing: the file has no array of this name
  };
  std::vector<std::string> taken;
  std::vector<Reset> reset;         // arrays of the net that keep their initial values
  std::vector<std::string> unused;  // arrays of the file

  std::string Text() const;  // in a few lines, for people
};

// Copies every array of `from` into those of its name in `to`, where the shapes agree or the first dimension and the number of elements do
// (a convolution over a whole image is a matrix product); values are converted to float32.
MXTRAIN_API WeightsAccount TakeWeights(const std::map<std::string, NDArray>& from, const std::map<std::string, NDArray>& to);

}  // namespace mxtrain
