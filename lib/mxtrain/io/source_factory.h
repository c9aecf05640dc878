// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kinds of data sources, by name. Each is declared once, in its own source file: its parameters,
// of which configurations, `help` and the JSON schema make their keys, and what it can do.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

// A path that may be data of some kind.
struct Recognition {
  // The files have the names or the contents of this kind alone; else they may be of it.
  bool certain = false;
  // For MakeSource: the data at the path as a model is evaluated on it.
  Kwargs params;
};

struct MXTRAIN_API SourceKind {
  std::string name, help;
  // In the order in which they are written to models. A kind that configurations can name has
  // `path`, a file or folder that must be given. Other names that have a meaning to the program:
  //   root         the folder that paths in the file are relative to
  //   label_delim  separates the classes of an example whose label is a set of them
  //   classes      internal: the names of the classes, in order of their numbers, which
  //                other data has from the training set; without, the source finds and sorts them
  //   labels       internal: False if examples need no labels, as in inference
  std::vector<FieldInfo> parameters;
  // As MakeSource, for parameters of its own alone.
  std::function<std::unique_ptr<Source>(const Kwargs& kwargs)> make;
  // As `make`, for examples whose labels come from elsewhere (TargetsParam), so that those of this
  // kind need not be there. Null: `make`.
  std::function<std::unique_ptr<Source>(const Kwargs& kwargs)> make_unlabelled;
  // As `make`, for examples whose label is the class of each pixel, as the files of this kind say
  // it themselves (label = mask without targets). Null: they do not.
  std::function<std::unique_ptr<Source>(const Kwargs& kwargs)> make_masks;
  // Throws kConfig as `make` does for the text of one parameter; `owner` begins the message.
  std::function<void(std::string_view name, std::string_view text, std::string_view owner)> check;

  int64_t num_classes = 0;        // if the format of the files fixes it, else 0
  bool in_configurations = true;  // whether data.train.source can name it
  // Its examples are rows, and the inputs and labels of a net are columns, which a configuration
  // names (data.train.columns). The parameters are those of the kind csv.
  bool is_table = false;
  // Internal parameters that are found in the training data (Source::found), and that other data
  // are read with: a tokenizer.
  std::vector<std::string> carried;
  // Parameters of the training data that those stand for: other data cannot be read in another way.
  std::vector<std::string> of_training;
  // Parameters that say what of its own data a run takes; other data is taken whole.
  std::vector<std::string> of_own_data;
  // Whether class numbers depend on the data, so that other data needs the names of the training
  // set in `classes`. Null: whether it has that parameter.
  std::function<bool(const Kwargs& kwargs)> names_classes;
  // Whether a path is data of this kind; looks at names and beginnings of files, reads none whole.
  // Null: it never is without a configuration.
  std::function<std::optional<Recognition>(const std::string& path)> recognize;

  // Null if there is none of this name.
  const FieldInfo* Parameter(std::string_view parameter) const;
  bool NamesClasses(const Kwargs& kwargs) const;
};

// A kind with the parameters of Param, made by New.
template <typename Param, std::unique_ptr<Source> (*New)(const Param&)>
SourceKind SourceKindOf(std::string name, std::string help) {
  SourceKind kind;
  kind.make = [name](const Kwargs& kwargs) {
    Param param;
    param.Init(kwargs, name);
    return New(param);
  };
  kind.check = &Param::Check;
  kind.parameters = Param::Describe();
  kind.name = std::move(name);
  kind.help = std::move(help);
  return kind;
}

class MXTRAIN_API SourceTable {
 public:
  // Throws kConfig if there is one of that name, or it is for configurations and has no `path`.
  void Add(SourceKind kind);
  // Sorted by name.
  const std::vector<SourceKind>& kinds() const { return kinds_; }
  const SourceKind* Find(std::string_view name) const;  // null if there is none

 private:
  std::vector<SourceKind> kinds_;
};

// Those of the library, and what RegisterSource added.
MXTRAIN_API const SourceTable& Sources();
// A kind of another program's: before the first configuration is read, from one thread. Throws as
// SourceTable::Add.
MXTRAIN_API void RegisterSource(SourceKind kind);
// Generated from the files of this folder.
void RegisterSources(SourceTable& sources);

// At the end of the file of a kind of source, in this folder, whose name is the id:
//
//   MXTRAIN_SOURCE(mnist_source, sources) { sources.Add(...); }
//
// The build finds it at the beginning of a line and generates the list of calls.
#define MXTRAIN_SOURCE(id, sources)                                 \
  extern "C" void mxtrain_source_##id(::mxtrain::io::SourceTable&); \
  extern "C" void mxtrain_source_##id(::mxtrain::io::SourceTable& sources)

// Besides its own parameters every kind takes those of HoldoutParam (holdout_source.h) and
// TargetsParam (image_targets.h). Throws kConfig for an unknown kind (with the nearest known one)
// or parameter, and what the source itself throws.
MXTRAIN_API std::unique_ptr<Source> MakeSource(std::string_view kind, const Kwargs& kwargs);

// The kind of data at a path (- for stdin), and how to open it: the first that is certain of it;
// else `preferred` ("" for none) if it may be; else the first that may be. Null kind: none. `root`
// of stdin and of pipes is the working folder.
struct RecognizedSource {
  const SourceKind* kind = nullptr;
  Recognition recognition;
};
MXTRAIN_API RecognizedSource RecognizeSource(const std::string& path, std::string_view preferred);

}  // namespace mxtrain::io
