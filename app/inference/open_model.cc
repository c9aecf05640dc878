// SPDX-License-Identifier: Apache-2.0
#include "app/inference/open_model.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>
#include <span>
#include <sstream>

#include "app/config/near_file.h"
#include "app/inference/temperatures.h"
#include "app/report/output.h"
#include "app/report/run_folder.h"
#include "app/session/device_choice.h"
#include "app/session/open_runtime.h"
#include "app/session/plugin_trust.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/params.h"
#include "mxtrain/base/read_json.h"
#include "mxtrain/base/text.h"
#include "mxtrain/device/kernel_choices.h"
#include "mxtrain/io/augmenter.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/image_archive.h"
#include "mxtrain/io/image_folder_source.h"
#include "mxtrain/io/image_formats.h"
#include "mxtrain/io/list_line.h"
#include "mxtrain/onnx/import.h"
#include "mxtrain/onnx/model_file.h"
#include "mxtrain/onnx/preprocessing.h"
#include "mxtrain/onnx/thresholds.h"
#include "mxtrain/train/lora_bases.h"

namespace mxtrain::inference {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostListBytes = size_t{4} << 30;
constexpr const char* kStdin = "/dev/stdin";
constexpr size_t kTold = 512;                         // bytes of stdin that tell what it is
constexpr size_t kMostRecordBytes = size_t{1} << 20;  // of the header of a table
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool IsList(const fs::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".txt" || ending == ".lst" || ending == ".tsv" || ending == ".csv";
}

bool Exists(const fs::path& path) {
  std::error_code ignored;  // a text that cannot be a path
  return fs::exists(path, ignored);
}

// The path in a line of a list; "" for none. A line that is the name of a file is used whole, even
// with commas or spaces.
std::string PathInLine(std::string_view line, const fs::path& root) {
  const std::string_view text = Trim(line, " \t\r");
  if (text.empty() || text[0] == '#') return "";
  const char separator = io::ListSeparator(text);
  if (separator != '\t' && Exists(root / line)) return std::string(line);
  if (separator != '\t' && Exists(root / text)) return std::string(text);
  const std::vector<std::string_view> cells = io::SplitListLine(text);
  if (cells.empty()) return "";
  // Without labels: a missing file with spaces in its name.
  return std::string(separator == ' ' && !Exists(root / cells[0]) ? text : cells[0]);
}

// Lines, or the zero-terminated paths of `find -print0`.
void ReadList(std::istream& in, const std::string& name, const fs::path& root,
              std::vector<std::string>* files) {
  int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    if (++number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
    std::istringstream parts(line);
    for (std::string part; std::getline(parts, part, '\0');) {
      const std::string path = PathInLine(part, root);
      if (path.empty()) continue;
      io::CheckPath(path, [&] { return format("{}:{}", name, number); });
      files->push_back(root.empty() ? path : (root / path).string());
    }
  }
}

void AddFolder(const std::string& folder, std::vector<std::string>* files, const Logger& log) {
  io::ImageListParam param;
  param.Init({}, "image_list");
  param.path = folder;
  param.recursive = true;
  const auto source = io::NewImageListSource(param);
  for (const std::string& text : source->remarks()) log.Write(LogLevel::kWarning, text);
  for (int64_t i = 0; i < source->size(); ++i) files->push_back(source->Name(i));
}

}  // namespace

namespace {

// A folder without files, and without links to folders that may hold some; it may contain folders.
bool IsEmpty(const std::string& folder) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (!at->is_directory(error) || at->is_symlink()) return false;
  }
  return !error;
}

// Moves the rest of stdin into memory, from where it can be read any number of times. Returns its
// beginning.
std::string BufferStdin() {
  const int memory = memfd_create("stdin", MFD_CLOEXEC);
  if (memory < 0) Throw(ErrorKind::kFileSystem, "cannot read stdin: {}", ReasonOf(errno));
  const auto check = [memory](bool done) {
    if (done) return;
    const int error = errno;
    close(memory);
    Throw(ErrorKind::kFileSystem, "cannot read stdin: {}", ReasonOf(error));
  };
  std::string beginning;
  std::vector<char> block(size_t{1} << 16);
  for (;;) {
    const ssize_t count = read(STDIN_FILENO, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    check(count >= 0);
    if (count == 0) break;
    const auto bytes = static_cast<size_t>(count);
    beginning.append(block.data(), std::min(bytes, kMostRecordBytes - beginning.size()));
    check(write(memory, block.data(), bytes) == count);
  }
  check(lseek(memory, 0, SEEK_SET) == 0 && dup2(memory, STDIN_FILENO) == STDIN_FILENO);
  close(memory);
  return beginning;
}

// An image, or a list, told by the first bytes.
void AddStdin(std::vector<std::string>* files) {
  const std::string begin = BufferStdin();
  if (io::ProbeImage(begin)) return files->push_back(kStdin);
  if (io::BeginsArchive(begin)) Throw(ErrorKind::kUsage, "stdin is an archive; give it alone");
  // Zeros separate the paths of `find -print0`.
  const bool text = std::ranges::none_of(begin.substr(0, kTold), [](unsigned char c) {
    return c != 0 && c < ' ' && c != '\n' && c != '\r' && c != '\t';
  });
  if (!text) {
    const auto why = io::ProbeImage(begin);
    Throw(ErrorKind::kData,
          "stdin is no list of paths, no archive (tar, zip), and no image that can be read: {}",
          why.error().reason);
  }
  ReadList(std::cin, "stdin", "", files);
}

// The current target of a link such as runs/latest.
void SayWhich(const std::string& where, const std::string& file, const Logger& log) {
  const std::string run = FollowLink(where);
  if (run == where) return;
  log.Write(LogLevel::kInfo,
            format("model: {}{}", file,
                   report::RunFolder::IsBusy(run) ? ", from a run that is still training" : ""));
}

bool IsOnnx(const std::string& where) {
  std::error_code none;
  return fs::is_regular_file(where, none) && !IsCheckpoint(where) &&
         Lower(fs::path(where).extension().string()) == ".onnx";
}

// Names what cannot be a model for what it is, and says what to do.
void RefuseOtherFiles(const std::string& where) {
  const fs::path path(where);
  std::error_code none;
  if (path.filename() == "latest" && !fs::exists(fs::symlink_status(path, none))) {
    Throw(ErrorKind::kFileSystem,
          "there is no {}: no run has saved anything yet; `mxtrain train CONFIG` makes one", where);
  }
  if (!fs::exists(path, none) && where.find('@') == std::string::npos) {
    Throw(ErrorKind::kFileSystem, "there is no run or checkpoint {}{}", where,
          config::DidYouMeanFile(where));
  }
  if (!fs::is_regular_file(path, none) || IsCheckpoint(where)) return;
  const std::string ending = Lower(path.extension().string()), name = report::QuoteShell(where);
  if (ending == ".yaml" || ending == ".yml") {
    Throw(ErrorKind::kData,
          "{} is a configuration, not a trained model; train it with `mxtrain train {}`, then give "
          "the run folder, such as runs/latest",
          where, name);
  }
  if (IsOnnx(where)) {
    Throw(ErrorKind::kData,
          "{} is an ONNX file, not a run or checkpoint; `mxtrain import {}` shows its layers, and "
          "the key net.onnx takes it as a net to train",
          where, name);
  }
  if (io::HasImageEnding(where)) {
    Throw(ErrorKind::kData,
          "{} is an image, not a model; give the model first: a run folder or a checkpoint", where);
  }
}

// "; whole: runs/a/checkpoints/last (step 20)": of the checkpoints beside a damaged one of a run,
// newest first.
std::string WholeBeside(const std::string& file) {
  std::vector<std::pair<int64_t, std::string>> whole;
  std::error_code none;
  const fs::path folder = fs::path(file).parent_path();
  if (folder.filename() != "checkpoints") return "";
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    if (entry.path() == file || !IsCheckpoint(entry.path().string())) continue;
    try {
      whole.emplace_back(PeekState(entry.path().string()).step, entry.path().string());
    } catch (const Error&) {  // damaged, too
    }
  }
  std::sort(whole.rbegin(), whole.rend());
  std::vector<std::string> names;
  for (const auto& [step, name] : whole) names.push_back(format("{} (step {})", name, step));
  return names.empty() ? "" : "; whole: " + FirstOf(names, 3);
}

// Throws kData, with the checkpoints that could be taken instead, if the file is damaged.
void RequireUndamaged(const std::string& file) {
  try {
    PeekState(file);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kData) throw;
    Throw(e.kind(), "{}{}", e.what(), WholeBeside(file));
  }
}

}  // namespace

void CheckOrder(const std::string& model, const std::string& data, const std::string& command) {
  const auto of_run = [](const fs::path& path) {
    std::error_code error;
    return fs::is_directory(path / "checkpoints", error) ||
           (path.parent_path().filename() == "checkpoints" && fs::is_regular_file(path, error));
  };
  if (of_run(model) || !of_run(data)) return;
  Throw(ErrorKind::kUsage, "{} is a model; the model must come first: mxtrain {} {} {}", data,
        command, report::QuoteShell(data), report::QuoteShell(model));
}

namespace {

// Without what a checkpoint is based on.
std::vector<std::string> OwnFilesOf(const std::string& where) {
  const size_t at = where.rfind('@');
  if (at == std::string::npos || fs::exists(where)) return {where};
  return {where.substr(0, at) + "-symbol.json", ReferenceParamsFile(where)};
}

}  // namespace

std::vector<std::string> FilesOf(const std::string& where) {
  std::vector<std::string> files = OwnFilesOf(where);
  try {
    for (const std::string& base : BaseFilesOf(CheckpointOf(where))) {
      const std::vector<std::string> more = OwnFilesOf(base);
      files.insert(files.end(), more.begin(), more.end());
    }
  } catch (const Error&) {
    // It cannot be opened either.
  }
  return files;
}

std::vector<std::string> DeclaredBy(const OpenedModel& opened) {
  std::vector<std::string> names = opened.unread;
  for (const auto* list : {&opened.model.info.inputs, &opened.model.info.labels}) {
    for (const InputInfo& input : *list) names.push_back(input.name);
  }
  return names;
}

Symbol::Shapes ShapesOf(const Model& model, int64_t batch) {
  std::map<std::string, TShape> shapes;
  for (const InputInfo& input : model.info.inputs) {
    std::vector<int64_t> dims{batch};
    dims.insert(dims.end(), input.shape.begin(), input.shape.end());
    shapes[input.name] = TShape(std::span<const int64_t>(dims));
  }
  return model.symbol.InferShape(shapes);
}

void CheckOnlyBatch(const OpenedModel& opened, int64_t examples, int64_t wanted) {
  const int64_t only = opened.only_batch;
  if (only == 0) return;
  if (wanted != 0 && wanted != only)
    Throw(ErrorKind::kUsage, "--batch {}: {} is for a batch of {} alone", wanted, opened.model.file,
          only);
  if (examples == only) return;
  Throw(
      ErrorKind::kData,
      "{} is for a batch of {} alone, not for {}: give it {}, or export the model with a batch of "
      "any size",
      opened.model.file, only, Counted(examples, "example"), only);
}

namespace {

// The shape of one example that an array gives an input of an ONNX file; nothing if the file has
// all lengths.
std::optional<TShape> OpenShape(const onnx::ModelValue& input, const TShape& array,
                                const std::string& file) {
  const auto example = std::span(input.dims).subspan(input.dims.empty() ? 0 : 1);
  // A single number for each example may be [N] or [N, 1].
  if (input.has_shape && array.Size() == 1 && std::ranges::count(example, 1) == std::ssize(example))
    return std::nullopt;
  std::vector<std::string> dims;
  bool open = !input.has_shape, fits = open || std::ssize(example) == array.ndim();
  for (size_t i = 0; i < example.size(); ++i) {
    const bool dynamic = example[i] < 0;
    open = open || dynamic;
    fits = fits && (dynamic || example[i] == array[static_cast<int>(i)]);
    dims.push_back(dynamic ? "?" : std::to_string(example[i]));
  }
  if (!fits) {
    Throw(ErrorKind::kData,
          "{}: an example of the input '{}' has the shape [{}], one of the array has {}", file,
          input.name, join(dims, ", "), array.ToString());
  }
  return open ? std::optional(array) : std::nullopt;
}

// The first axis that the inputs of a net have in the file; 0 if they differ in it, or leave it
// open.
int64_t FixedBatch(const onnx::Model& file, const onnx::ImportedNet& net) {
  std::set<int64_t> lengths;
  for (const auto& input : net.inputs) {
    const auto in_file = std::ranges::find(file.inputs, input.in_file, &onnx::ModelValue::name);
    lengths.insert(in_file->dims.empty() ? 0 : in_file->dims[0]);
  }
  return lengths.size() == 1 ? std::max<int64_t>(*lengths.begin(), 0) : 0;
}

// For any batch, or else (*only_batch is not 0) for that of the file alone.
onnx::ImportedNet Imported(const onnx::Model& file, const OperatorRegistry& registry,
                           onnx::ImportOptions options, int64_t* only_batch) {
  try {
    return onnx::ImportModel(file, registry, options);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    options.any_batch = false;
    try {
      onnx::ImportedNet net = onnx::ImportModel(file, registry, options);
      *only_batch = FixedBatch(file, net);
      if (*only_batch > 0) return net;
    } catch (const Error&) {
      // The first reason is the reason.
    }
    throw;
  }
}

std::string MetadataOf(const onnx::Model& model, const char* key) {
  const auto found = model.metadata.find(key);
  return found == model.metadata.end() ? "" : found->second;
}

// Of a file of `export --with-preprocessing`, for images: they are prepared here, where their sizes
// differ and EXIF orientations are known, as the pipeline in the metadata says.
void TakePixelsOff(const std::string& file, onnx::Model* model) {
  const session::PipelineSpec spec =
      session::PipelineSpec::FromJson(MetadataOf(*model, "pipeline"));
  const std::vector<int64_t> pixels =
      model->inputs.size() == 1 ? model->inputs[0].dims : std::vector<int64_t>();
  if (pixels.size() == 4 && (pixels[3] == 1 || pixels[3] == 3)) {
    const bool fixed = pixels[1] > 0 && pixels[2] > 0;
    const TShape size =
        io::Augmenter(spec.transforms, static_cast<int>(pixels[3]))
            .OutputShape(fixed ? TShape{pixels[3], pixels[1], pixels[2]} : TShape());
    if (onnx::RemovePreprocessing(size[1], size[2], model)) return;
  }
  Throw(ErrorKind::kConfig,
        "{} prepares images itself, in nodes that are not as `export --with-preprocessing` wrote "
        "them; images can be given to a file that was exported without it, or to the run",
        file);
}

// What a file of this program says of its outputs of scores of which an example may have several:
// their names, and from which score on each class is predicted.
struct MultilabelOutputs {
  std::set<std::string> names;
  onnx::OutputThresholds thresholds;
};

// A file without these metadata, or of a program that means something else by them, says nothing.
MultilabelOutputs MultilabelOutputsOf(const onnx::Model& model) {
  MultilabelOutputs outputs;
  const auto names = ReadJson<FileJson>(MetadataOf(model, "multilabel"));
  for (const FileJson& name : names && names->is_array() ? *names : FileJson::array()) {
    if (name.is_string()) outputs.names.insert(name.get<std::string>());
  }
  const auto thresholds = ReadJson<FileJson>(MetadataOf(model, "thresholds"));
  if (!thresholds || !thresholds->is_object()) return outputs;
  for (const auto& [name, of_classes] : thresholds->items()) {
    const bool numbers =
        of_classes.is_array() &&
        std::ranges::all_of(of_classes, [](const auto& of) { return of.is_number(); });
    if (!numbers) continue;
    outputs.names.insert(name);
    outputs.thresholds[name] = of_classes.template get<std::vector<double>>();
  }
  return outputs;
}

void ReadOnnx(const std::string& file, OpenedModel* opened, InputArrays* arrays,
              const Logger& log) {
  Runtime& runtime = *opened->runtime;
  onnx::Model read = onnx::ReadModel(file);
  onnx::RemoveThresholds(&read);  // what comes from the scores is no score
  const bool takes_pixels = MetadataOf(read, "preprocessing").starts_with("in the model");
  if (takes_pixels && arrays->empty()) TakePixelsOff(file, &read);
  const std::map<std::string, TShape> shapes = arrays->Shapes();
  const std::vector<std::string> in_net = onnx::InputNames(read);
  onnx::ImportOptions options;
  const MultilabelOutputs multilabel = MultilabelOutputsOf(read);
  options.logistic = multilabel.names;
  std::map<std::string, std::string> names;
  for (size_t i = 0; i < read.inputs.size(); ++i) {
    const onnx::ModelValue& input = read.inputs[i];
    names[input.name] = in_net[i];
    auto array = shapes.find(input.name);
    if (array == shapes.end()) array = shapes.find(in_net[i]);
    if (array == shapes.end()) continue;
    if (const auto shape = OpenShape(input, array->second, file))
      options.shapes[input.name] = *shape;
  }
  Model& model = opened->model;
  model.file = file;
  try {
    const onnx::ImportedNet net = Imported(read, runtime.operators(), options, &opened->only_batch);
    for (const std::string& note : net.notes) log.Write(LogLevel::kWarning, note);
    model.symbol = onnx::ToSymbol(net, runtime.operators());
    const std::vector<std::string> heads = model.symbol.ListOutputs();
    for (size_t i = 0; i < std::min(read.outputs.size(), heads.size()); ++i) {
      const auto own = multilabel.thresholds.find(read.outputs[i].name);
      if (own != multilabel.thresholds.end())
        opened->calibration.thresholds[HeadName(heads[i])] = own->second;
    }
    for (const auto& input : net.inputs)
      model.info.inputs.push_back({input.name, input.shape, input.type});
    for (const std::string& name : in_net) {
      if (std::ranges::find(net.inputs, name, &onnx::ImportedNet::Input::name) == net.inputs.end())
        opened->unread.push_back(name);
    }
    const std::vector<std::string> auxs = model.symbol.ListAuxiliaryStates();
    for (auto& [name, array] : onnx::ArraysOf(net, runtime)) {
      const bool aux = std::ranges::find(auxs, name) != auxs.end();
      (aux ? model.auxs : model.args)[name] = array;
    }
  } catch (const Error&) {
    RethrowWithPrefix(std::current_exception(), file);
  }
  const std::set<std::string> inputs(in_net.begin(), in_net.end());
  for (const std::string& name : model.symbol.ListArguments()) {
    if (!model.args.contains(name) && !inputs.contains(name))
      model.info.labels.push_back({name, TShape(), DType::kFloat32});
  }
  // Of a file that this program wrote; with arrays, one with the preprocessing in the net takes
  // pixels.
  if (!takes_pixels || arrays->empty()) model.info.pipeline = MetadataOf(read, "pipeline");
  // How other images are prepared is for --size, --mean and --std to say.
  if (arrays->empty() && model.info.pipeline.empty()) {
    for (InputInfo& input : model.info.inputs) input.shape = TShape();
  }
  const Expected<FileJson, Refusal> list = ReadJson<FileJson>(MetadataOf(read, "classes"));
  for (const FileJson& name : list && list->is_array() ? *list : FileJson::array()) {
    if (name.is_string()) model.info.class_names.push_back(name.get<std::string>());
  }
  arrays->Rename(names);
}

}  // namespace

OpenedModel OpenModel(const session::ComputeOptions& flags, const std::string& where,
                      const std::vector<std::string>& inputs, InputArrays* arrays,
                      const std::shared_ptr<Log>& log) {
  if (IsOnnx(where)) {
    OpenedModel opened;
    if (!inputs.empty())
      Throw(ErrorKind::kUsage, "{} declares its own inputs; --input takes NAME=FILE.npy", where);
    opened.runtime = session::MakeRuntime(
        flags, flags.seed.value_or(0),
        session::MakeRegistry(flags.plugins, session::DeviceOf(flags).type), log);
    ReadOnnx(where, &opened, arrays, log->For("program"));
    return opened;
  }
  std::vector<std::string> named = inputs;
  if (const size_t at = where.find('@'); at != std::string::npos && !fs::exists(where)) {
    // Of files without a description of the inputs; labels are recognized by their names.
    for (const std::string& name : arrays->Names()) {
      if (!name.ends_with("label")) named.push_back(name);
    }
  }
  return OpenModel(flags, where, named, log);
}

OpenedModel OpenModel(const session::ComputeOptions& flags, const std::string& where,
                      const std::vector<std::string>& inputs, const std::shared_ptr<Log>& log) {
  OpenedModel opened;
  RefuseOtherFiles(where);
  if (const std::string file = CheckpointOf(where); !file.empty()) {
    RequireUndamaged(file);  // before reading its configuration
    session::RequirePluginsNamed(session::PluginsOf(PeekModel(file).config), flags.plugins, file);
  }
  const Context device = session::DeviceOf(flags);
  opened.runtime = session::MakeRuntime(flags, flags.seed.value_or(0),
                                        session::MakeRegistry(flags.plugins, device.type), log);
  opened.model = LoadModel(*opened.runtime, where, inputs);
  if (KernelChoices* choices = ChoicesOf(opened.runtime->backend(device)))
    choices->Keep(opened.model.info.kernel_choices);
  SayWhich(where, opened.model.file, log->For("program"));
  opened.calibration = ReadCalibration(CheckpointOf(where), log->For("program"));
  if (!opened.calibration.temperatures.empty()) {
    opened.model.symbol = WithTemperatures(opened.runtime->operators(), opened.model.symbol,
                                           opened.calibration.temperatures);
  }
  return opened;
}

std::vector<std::string> CollectImages(const std::vector<std::string>& inputs, const Logger& log) {
  std::vector<std::string> files, missing;
  for (const std::string& input : inputs) {
    if (input == "-") {
      AddStdin(&files);
    } else if (fs::is_directory(input)) {
      if (!IsEmpty(input)) AddFolder(input, &files, log);
    } else if (!fs::exists(input)) {
      missing.push_back(input);
      files.push_back(input);
    } else if (IsList(input)) {
      std::istringstream list(ReadFile(input, kMostListBytes, Readable::kFileOrPipe));
      ReadList(list, input, fs::path(input).parent_path(), &files);
    } else if (io::IsImageArchive(input)) {
      Throw(ErrorKind::kUsage, "{} is an archive; give it alone", input);
    } else {
      files.push_back(input);
    }
  }
  if (!missing.empty() && missing.size() == files.size())
    Throw(ErrorKind::kFileSystem, "there is no file or folder {}{}", FirstOf(missing, 3),
          config::DidYouMeanFile(missing[0]));
  if (files.empty()) log.Write(LogLevel::kInfo, "no images found: nothing to predict");
  return files;
}

void KeepStdin() {
  BufferStdin();
}

bool LooksLikeTable(const std::string& input, const session::PipelineSpec& spec) {
  if (input == "-") return spec.BeginsTable(BufferStdin());
  std::error_code none;
  if (fs::is_directory(input, none) || !fs::exists(input, none)) return false;
  if (!fs::is_regular_file(input, none)) return true;  // a pipe, which can be read only once
  if (!IsList(input)) return input.ends_with(".gz");
  return spec.BeginsTable(ReadBeginMaybeGzip(input, kMostRecordBytes));
}

std::vector<std::pair<std::string, std::string>> OfImages(
    std::vector<std::pair<std::string, std::string>> bad) {
  std::set<std::string> seen;
  std::erase_if(bad, [&seen](const auto& example) { return !seen.insert(example.first).second; });
  return bad;
}

int ReportBad(const std::vector<std::pair<std::string, std::string>>& bad, int64_t tried, bool skip,
              const Logger& log) {
  for (const auto& [name, reason] : bad)
    log.Write(LogLevel::kWarning, report::NameAndReason(name, reason));
  if (bad.empty()) return 0;
  const std::string text =
      format("{} of {} could not be read", bad.size(), Counted(tried, "example"));
  const bool all = static_cast<int64_t>(bad.size()) == tried;  // nothing is left to tolerate them
  log.Write(skip ? LogLevel::kWarning : LogLevel::kError,
            skip || all ? text : text + "; --skip-bad tolerates them");
  return skip ? 0 : static_cast<int>(ErrorKind::kData);
}

}  // namespace mxtrain::inference
