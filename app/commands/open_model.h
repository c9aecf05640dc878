#pragma once
// What `eval` and `infer` share: a model that a user names, and the pictures.
#include <memory>
#include <string>
#include <vector>

#include "app/commands/command.h"
#include "mxtrain/io/source.h"
#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/train/model.h"

namespace mxtrain::commands {

struct OpenedModel {
  std::unique_ptr<Runtime> runtime;
  Model model;
};

// The model, in a runtime with the plug-ins of the flags and no others. Where `where` is a link, as runs/latest, it says what that leads to.
// Throws as LoadModel, and kConfig where the model was trained with a plug-in of which no flag gives a file of the same name. `inputs`: as
// LoadModel has them.
OpenedModel OpenModel(const CommonFlags& flags, const std::string& where, const std::vector<std::string>& inputs, report::Console& console);

// Throws kUsage where the two are swapped: what stands for the data is a run, or a checkpoint of one, and what stands for the model is not.
void CheckOrder(const std::string& model, const std::string& data, const std::string& command);

// The pictures of folders (with the folders inside, sorted), files, lists (.txt, .lst, .tsv, .csv: a path per line, the first column, or
// the last of the reference system's list files; relative to the list) and "-" (such a list on stdin, relative to the
// working folder); zero bytes end a path as line ends do.
// An input that is not there is kept, to be told with the pictures that cannot be read; throws kFileSystem where none is there. Empty folders and
// lists give none, which is said; throws kData for a folder whose files are all something else.
std::vector<std::string> CollectImages(const std::vector<std::string>& inputs, report::Console& console);

// Names the examples that could not be read. Returns the exit code: 0 when there are none, or with `skip`.
int ReportBad(const std::vector<std::pair<std::string, std::string>>& bad, int64_t tried, bool skip, report::Console& console);

}  // namespace mxtrain::commands
