// SPDX-License-Identifier: Apache-2.0
#pragma once
// Initial values of a net from a file: of another run, another net, or another program.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/ndarray/safetensors.h"
#include "mxtrain/ndarray/torch_file.h"

namespace mxtrain {

// Maps names in a file to names of a net by rules, applied in sequence. A pattern is a regular
// expression (ECMAScript); matches are replaced, with $1 for the first group. A rule without a
// replacement drops the array; one that transposes is for matrices, such as the [in, out] of
// GPT-2's Conv1D, which FullyConnected has as [out, in].
class MXTRAIN_API NameMap {
 public:
  struct Rule {
    std::string pattern;
    std::optional<std::string> replacement;
    bool transpose = false;
  };
  struct Mapped {
    std::optional<std::string> name;  // nothing: the array is dropped
    bool transpose = false;
  };
  NameMap() = default;  // names stay
  // Throws kConfig for an invalid regular expression.
  explicit NameMap(const std::vector<Rule>& rules);
  Mapped Map(const std::string& name) const;
  std::optional<std::string> Apply(const std::string& name) const { return Map(name).name; }
  const std::vector<Rule>& rules() const { return given_; }

 private:
  struct Compiled;
  std::vector<Rule> given_;
  std::shared_ptr<const std::vector<Compiled>> rules_;
};

// The arrays of a file by their names there; plain, on the CPU, of the file's element types.
struct WeightsFile {
  std::map<std::string, NDArray> arrays;
  TorchStates states;   // of a file of PyTorch
  UnreadArrays unread;  // of safetensors files
};
// `file`: a run folder or checkpoint (averages, if the run kept them), MXNet's PREFIX@7 or .params,
// .safetensors, or a file of PyTorch under any name (ndarray/torch_file.h). `state`: which of the
// state dicts of a file of PyTorch; "": the usual one. `depth`: as in MergeLora. Throws like the
// readers of these files, and kConfig for a state of other files.
MXTRAIN_API WeightsFile ReadWeights(Runtime& runtime, const std::string& file,
                                    const std::string& state = "", int depth = 0);

// Throws kData, naming file and array, if an array that could not be read would become one of
// `wanted`, the names in the net, without the prefix and after the map.
MXTRAIN_API void RequireRead(const UnreadArrays& unread, const std::string& prefix,
                             const NameMap& map, const std::set<std::string>& wanted,
                             const std::string& file);

// Of ReadWeights, by the names that the map gives them. Throws as Renamed, and kData for an array
// that cannot be read and that the map does not drop.
MXTRAIN_API std::map<std::string, NDArray> LoadWeights(Runtime& runtime, const std::string& file,
                                                       const NameMap& map = {});

// What wrappers of a net put before the names of its arrays: "module." of DataParallel,
// "_orig_mod." of torch.compile, "model." of a LightningModule, one after the other, or any other
// prefix up to a dot that at least half of the names have. Of these the shortest that brings the
// most of `wanted`, the names in the net, to the names in the file, after the map; "" if all bring
// as many, so that a map that removes a prefix itself keeps its meaning.
MXTRAIN_API std::string WrapperPrefix(const std::map<std::string, NDArray>& arrays,
                                      const NameMap& map, const std::set<std::string>& wanted);
// The arrays without that prefix; those that do not have it keep their names.
MXTRAIN_API std::map<std::string, NDArray> WithoutPrefix(std::map<std::string, NDArray> arrays,
                                                         const std::string& prefix);

// A matrix of float32 on the CPU.
MXTRAIN_API NDArray TransposedMatrix(const NDArray& matrix);

// The arrays under the names that the map gives them, transposed where it says so. Throws kData,
// with the file's name, for two different arrays mapped to one name, and for an array to transpose
// that is not a matrix. Equal ones become one: a file may hold what a net shares under both names.
MXTRAIN_API std::map<std::string, NDArray> Renamed(const std::map<std::string, NDArray>& arrays,
                                                   const NameMap& map, const std::string& file);

// The result of loading a file's arrays into a net.
struct MXTRAIN_API WeightsAccount {
  struct Reset {
    std::string name;
    TShape shape;
    std::optional<TShape> in_file;  // nothing: the file has no array of this name
  };
  std::vector<std::string> taken;
  std::vector<Reset> reset;         // arrays of the net that keep their initial values
  std::vector<std::string> unused;  // arrays of the file

  std::string Text() const;  // a summary in a few lines
};

// Copies every array of `from` into the one of its name in `to` if the shapes agree, or the first
// dimension and the number of elements do (a convolution over a whole image is a matrix product);
// values are converted to float32.
MXTRAIN_API WeightsAccount TakeWeights(const std::map<std::string, NDArray>& from,
                                       const std::map<std::string, NDArray>& to);

}  // namespace mxtrain
