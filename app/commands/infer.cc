// SPDX-License-Identifier: Apache-2.0
// mxtrain infer MODEL INPUT...
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <map>
#include <span>

#include "app/commands/command_list.h"
#include "app/commands/model_facts.h"
#include "app/commands/progress.h"
#include "app/commands/tile_flags.h"
#include "app/inference/cut_model.h"
#include "app/inference/finite_check.h"
#include "app/inference/label_files.h"
#include "app/inference/model_run.h"
#include "app/inference/open_model.h"
#include "app/inference/output_files.h"
#include "app/inference/prediction_sinks.h"
#include "app/inference/tiled_predictions.h"
#include "app/report/npy.h"
#include "app/report/output.h"
#include "app/report/output_path.h"
#include "app/session/compute_modes.h"
#include "app/session/device_choice.h"
#include "app/session/pipeline_spec.h"
#include "app/session/session.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/image_folder_source.h"

namespace mxtrain::commands {
namespace {

class Infer final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("infer", "predict images or the rows of a table");
    DeclareModel(arguments, &model_);
    arguments
        .Option(
            "inputs", &inputs_,
            "folders, image files, lists of files (.txt .lst .tsv .csv), a tar or zip archive of "
            "images, or - for a list, an image or an archive on stdin, a folder of MNIST's or "
            "CIFAR's files; for a model trained on a table: a "
            "table with its input columns, or - (for "
            "one trained on a column of images, text is a table if its first line names that "
            "column, else a list)")
        .Takes("INPUT");
    arguments
        .Option("--key", &key_,
                "for tables: the column that identifies rows in the output; default: the column of "
                "images, else row numbers, from 1")
        .Takes("COLUMN");
    arguments.Option("--top-k", &top_k_, "classes per image or row").Positive().ShowsDefault();
    arguments
        .Option("--threshold", &threshold_,
                "classes of multi-label models and boxes with at least this score are predicted, "
                "and of two classes the second one (`eval` lists what each threshold does); "
                "default: of "
                "classes what was fitted (help calibration), else 0.5, 0.3 of boxes")
        .Within(0.0, 1.0);
    arguments
        .Option("--format", &format_,
                "table, csv or jsonl; boxes also as labels that tools read: coco (one file of "
                "JSON) or yolo (text files in the new folder --output); default: by the extension "
                "of --output (.csv, .jsonl, .json for coco), else table")
        .OneOf({"table", "csv", "jsonl", "coco", "yolo"});
    arguments
        .Option("--output", &output_,
                "write to this file instead of stdout; for arrays (--input NAME=FILE) also .npy, "
                "with the outputs of the net as they are: of several into FILE-OUTPUT.npy each")
        .Takes("FILE");
    arguments
        .Option("--copy-to", &copy_to_, "copy each image into DIR/CLASS; nothing is overwritten")
        .Takes("DIR");
    arguments
        .Option("--min-score", &min_score_,
                "with --copy-to: copy images whose best score is lower into DIR/unsure")
        .Within(0.0, 1.0);
    arguments
        .Option("--annotate", &annotate_,
                "write the images into DIR with the prediction drawn on them")
        .Takes("DIR");
    arguments
        .Option("--images", &images_,
                "for models that predict images: write them into DIR as PNG, at the paths of "
                "their inputs")
        .Takes("DIR");
    arguments
        .Option("--probabilities", &probabilities_,
                "write the scores of all classes, or all values, as .npy, one row per input in "
                "their order; of several heads into FILE-HEAD.npy each")
        .Takes("FILE");
    arguments
        .Option(
            "--output-layer", &output_layer_,
            "write the output of this layer instead of predictions, as .npy into --output; the row "
            "names go to stdout; a table needs only the columns of inputs that the layer depends "
            "on, if they have names")
        .Takes("NAME");
    arguments
        .Option("--tta", &tta_,
                "average the scores of several views: flip: 2 (plain, mirrored); crops: 10 (centre "
                "and corners of a larger crop, each "
                "plain and mirrored)")
        .OneOf({"flip", "crops"});
    tiles_.Declare(arguments);
    arguments
        .Option("--batch", &batch_,
                "images per batch; default: 64, or less if their memory plan exceeds a quarter of "
                "the free memory")
        .Positive();
    arguments.Flag("--skip-bad", &skip_bad_, "exit with 0 even if images could not be read");
    arguments.Flag("--overwrite", &overwrite_, "replace existing files");
    DeclarePlaces(arguments, &places_);
    facts_.Declare(arguments);
    arguments.Examples(
        "  mxtrain infer runs/latest photos\n  ls *.jpg | mxtrain infer runs/latest - --format csv "
        "--top-k 3\n"
        "  cat photo.jpg | mxtrain infer runs/latest -\n"
        "  mxtrain infer runs/latest photos.zip\n"
        "  mxtrain infer runs/latest photos --copy-to sorted --min-score 0.8\n"
        "  mxtrain infer runs/houses new.csv --key id --output predicted.csv\n"
        "  mxtrain infer downloads/resnet@0 photos --size 3,224,224\n"
        "  mxtrain infer runs/latest photos --output-layer features --output features.npy > "
        "names.txt\n"
        "  mxtrain infer net.onnx --input left=a.npy --input right=b.npy --output scores.npy");
  }

  int Run(const CommonFlags& flags, console::Console& console) override {
    inference::InputArrays arrays = facts_.TakeArrays();
    of_arrays_ = !arrays.empty();
    CheckFlags();
    if (!of_arrays_) inference::CheckOrder(model_, inputs_[0], "infer");
    const std::vector<std::string> read = ReadFiles(arrays.Files());
    // Several outputs or heads get files of their own, whose names the model tells.
    if (format_ != "yolo" && !WritesOutputs())
      report::RequireFree(std::array{output_}, read, overwrite_, "--output FILE");
    if (tiles_.given()) CheckTiles();
    std::map<std::string, Context> places = session::ParsePlaces(places_);
    const bool labels = format_ == "coco" || format_ == "yolo";
    if (labels && flags.json)
      Throw(ErrorKind::kUsage, "--json prints predictions; --format {} writes labels", format_);
    if (flags.json) format_ = "jsonl";
    if (format_.empty()) format_ = FormatOf(Ending(output_));
    inference::OpenedModel opened =
        inference::OpenModel(flags, model_, facts_.inputs(), &arrays, console.log());
    auto& [runtime, model, only_batch, unread, calibration] = opened;
    facts_.Complete(&model, console);
    const Symbol whole = model.symbol;
    const std::vector<std::string> declared = inference::DeclaredBy(opened);
    if (!output_layer_.empty()) model.symbol = inference::LayerOf(model.symbol, output_layer_);
    inference::RemoveLabels(runtime->operators(), &model, console.logger());
    session::DropRemovedGroups(whole, model.symbol, &places);
    std::shared_ptr<const io::Source> source;
    session::PipelineSpec spec = session::PipelineSpec::FromJson(model.info.pipeline);
    if (!of_arrays_ && !spec.TokenizerText().empty())
      Throw(ErrorKind::kUsage, "{} is a language model: `mxtrain generate` continues texts with it",
            model_);
    const std::optional<io::TileOptions> tiles = tiles_.Or(spec.tiles);
    if (!OfWholeImages()) tiled_ = tiles;
    if (OfWholeImages() && !of_arrays_ && spec.tiles && tiles)
      console.Message(LogLevel::kWarning,
                      "the model was trained on tiles (data.tiles), and now reads whole images: "
                      "these outputs are not joined");
    if (of_arrays_) {
      source = arrays.ForModel(&model, /*labels=*/false, declared, console.logger());
      model.info.pipeline = spec.OfArrays().ToJson();
    }
    for (const InputInfo& input : model.info.inputs) {
      if (!input.shape.known())
        Throw(ErrorKind::kUsage, "{} does not define the size of its input '{}'; give --size C,H,W",
              model.file, input.name);
    }
    if (!of_arrays_) {
      const bool table = IsTable(spec, console);
      CheckKind(table, spec.NeedsTable());
      if (tiled_ && spec.NeedsTable())
        Throw(ErrorKind::kUsage, "--tile is for images; this model reads the rows of tables");
      source = table ? OpenTable(spec, model) : OpenExamples(spec);
      if (!source) source = OpenImages(console);
      if (source) TellOf(*source, console);
    }
    const std::vector<std::string> names = NamesOf(source.get(), spec);
    const ComputeModes modes = session::ModesOf(model, flags, *runtime, session::DeviceOf(flags),
                                                places, console.logger());
    std::optional<inference::ModelRun> run;  // none without examples
    if (source) {
      if (!tiled_) inference::CheckOnlyBatch(opened, source->size(), batch_);
      if (only_batch > 0) batch_ = least_batch_ = only_batch;
      run.emplace(*runtime, model, source,
                  inference::RunOptions{.device = session::DeviceOf(flags),
                                        .modes = modes,
                                        .batch = batch_,
                                        .least_batch = least_batch_,
                                        .views = tta_,
                                        .tiles = tiled_,
                                        .log = console.logger()});
    }
    const bool finite = !run || inference::CheckParameters(model, console.logger());
    inference::FiniteCheck check;
    CatchSignals();
    std::string shown = output_ + " holds it as it is";
    inference::ModelRun* const running = run ? &*run : nullptr;
    if (WritesOutputs()) {
      report::RequireFree(inference::OutputFiles::PathsOf(output_, model.symbol.ListOutputs()),
                          read, overwrite_);
      Outputs(model, names, running, &check, console);
    } else if (output_layer_.empty()) {
      const std::vector<inference::PredictedHead> heads = inference::PredictedHeadsOf(
          model, spec, least_batch_, {top_k_, threshold_, calibration.thresholds},
          console.logger());
      RequireFreeScores(heads, read);
      Predictions(spec, heads, names, running, &check, console);
      shown = HowShown(heads);
    } else {
      Features(flags, model, names, running, &check, console);
    }
    if (StopFlag() == 1) return Stopped(console);
    const int bad = run ? inference::ReportBad(run->Bad(), static_cast<int64_t>(names.size()),
                                               skip_bad_, console.logger())
                        : 0;
    if (!finite) return static_cast<int>(ErrorKind::kDiverged);
    const int diverged = check.ExitCode(shown, console.logger());
    return diverged != 0 ? diverged : bad;
  }

 private:
  static std::string Ending(const std::string& path) {
    return Lower(std::filesystem::path(path).extension().string());
  }
  // By the ending of --output.
  static std::string FormatOf(const std::string& ending) {
    return ending == ".csv"     ? "csv"
           : ending == ".jsonl" ? "jsonl"
           : ending == ".json"  ? "coco"
                                : "table";
  }

  int Stopped(console::Console& console) const {
    if (!output_.empty())
      console.Message(LogLevel::kWarning,
                      format("stopped before the end: {} {}", output_,
                             format_ == "yolo" ? "lacks labels" : "was not written"));
    return 128 + StopSignal();
  }

  // Whether the result is every output of the net, as numbers.
  bool WritesOutputs() const {
    return of_arrays_ && output_layer_.empty() && output_.ends_with(".npy");
  }

  std::vector<std::string> ReadFiles(const std::vector<std::string>& arrays) const {
    std::vector<std::string> read = inference::FilesOf(model_);
    read.insert(read.end(), inputs_.begin(), inputs_.end());
    read.insert(read.end(), arrays.begin(), arrays.end());
    read.push_back(facts_.labels());
    return read;
  }

  void RequireFreeScores(const std::vector<inference::PredictedHead>& heads,
                         const std::vector<std::string>& read) const {
    if (probabilities_.empty()) return;
    std::vector<std::string> written = inference::ScoreFilesOf(probabilities_, heads);
    report::RequireFree(written, read, overwrite_);
    if (format_ == "yolo") return;
    written.push_back(output_);  // once more: it may be one of them
    report::RequireFree(written, read, overwrite_);
  }

  void CheckFlags() const {
    if (min_score_ && copy_to_.empty()) {
      Throw(ErrorKind::kUsage,
            "--min-score needs --copy-to DIR (to filter a list by score: --format csv | awk -F, "
            "'NR > 1 && $NF != \"nan\" && $NF + 0 >= 0.5')");
    }
    const bool npy = output_.ends_with(".npy");
    CheckArrays();
    if (WritesOutputs()) {
      if (!format_.empty() || top_k_ != 1 || threshold_ || !probabilities_.empty())
        Throw(ErrorKind::kUsage,
              "--format, --top-k, --threshold and --probabilities are for predictions; --output {} "
              "writes what the net gives",
              output_);
      return;
    }
    if (output_layer_.empty()) {
      if (npy) {
        Throw(
            ErrorKind::kUsage,
            "--output {}: predictions are text (.csv, .jsonl, or a table); --probabilities {} "
            "writes the scores of all classes, --output-layer NAME --output {} what a layer gives",
            output_, output_, output_);
      }
      const std::string ending = Ending(output_);
      const bool text = ending.empty() || ending == ".csv" || ending == ".jsonl" ||
                        ending == ".json" || ending == ".txt" || ending == ".tsv";
      if (format_ == "yolo" && output_.empty())
        Throw(ErrorKind::kUsage,
              "--format yolo writes a file for each image: give --output FOLDER");
      if (!text && format_.empty()) {
        Throw(ErrorKind::kUsage,
              "--output {}: predictions are not written as {}; name it .csv, which spreadsheets "
              "open, .jsonl, or .txt for a table, or say what to write with --format",
              output_, ending);
      }
      return;
    }
    if (output_.empty())
      Throw(ErrorKind::kUsage, "--output-layer needs --output FILE.npy: features are not text");
    const std::filesystem::path ending = std::filesystem::path(output_).extension();
    if (!npy && !ending.empty()) {
      Throw(ErrorKind::kUsage, "--output {}: --output-layer writes .npy, not {}; give --output {}",
            output_, ending.string(),
            std::filesystem::path(output_).replace_extension(".npy").string());
    }
    const bool predicts = !format_.empty() || top_k_ != 1 || threshold_ || !copy_to_.empty() ||
                          !annotate_.empty() || !images_.empty() || !probabilities_.empty();
    if (predicts) {
      Throw(ErrorKind::kUsage,
            "--format, --top-k, --copy-to, --annotate, --images and --probabilities are for "
            "predictions; "
            "--output-layer "
            "writes .npy");
    }
  }

  // Whether what is wanted is one row for each image, or of views of it.
  bool OfWholeImages() const {
    return of_arrays_ || !output_layer_.empty() || !probabilities_.empty() || !tta_.empty();
  }
  void CheckTiles() const {
    if (OfWholeImages())
      Throw(ErrorKind::kUsage,
            "--tile joins boxes and masks of the tiles of images; it does not go with arrays, "
            "--output-layer, --probabilities and --tta");
  }

  // Either arrays or images, tables, lists.
  void CheckArrays() const {
    if (!of_arrays_) {
      if (inputs_.empty())
        Throw(
            ErrorKind::kUsage,
            "inputs is required: images, folders, a list or a table, or --input NAME=FILE.npy for "
            "every input of the net; see `mxtrain infer --help`");
      return;
    }
    if (!inputs_.empty())
      Throw(ErrorKind::kUsage, "{} beside --input NAME=FILE: give either arrays or {}", inputs_[0],
            "images, lists and tables");
    if (!copy_to_.empty() || !annotate_.empty() || !tta_.empty() || !key_.empty())
      Throw(ErrorKind::kUsage,
            "--copy-to, --annotate and --tta are for images, --key is for tables; the inputs are "
            "arrays");
  }

  // Whether the input is a table. A model that was trained on a column of images takes both.
  bool IsTable(const session::PipelineSpec& spec, console::Console& console) const {
    if (spec.NeedsTable()) return true;
    if (!spec.IsTable()) return false;
    if (!key_.empty()) return true;
    for (const std::string& input : inputs_) {
      if (inference::LooksLikeTable(input, spec)) return true;
      if (input == "-" || input.ends_with(".csv")) {
        console.Message(LogLevel::kInfo,
                        format("{} is read as a list of images: its first line has no column '{}'",
                               input == "-" ? "stdin" : input, spec.ImageColumn()));
      }
    }
    return false;
  }

  // Flags for images and for tables; `needed`: the model reads nothing else.
  void CheckKind(bool table, bool needed) const {
    if (!table && !key_.empty())
      Throw(ErrorKind::kUsage, "--key names a column of a table; this model reads images");
    if (!table) return;
    if (needed && (!copy_to_.empty() || !annotate_.empty() || !tta_.empty())) {
      Throw(ErrorKind::kUsage,
            "--copy-to, --annotate and --tta are for images; this model reads the rows of tables");
    }
    if (inputs_.size() != 1)
      Throw(ErrorKind::kUsage, "this model reads one table at a time; {} were given",
            inputs_.size());
    if (inputs_[0] != "-" && std::filesystem::is_directory(inputs_[0])) {
      Throw(ErrorKind::kUsage,
            "{}, but {} is a folder; give a file with the columns that the model was trained on",
            needed ? "this model reads tables" : "--key names a column of a table", inputs_[0]);
    }
  }

  // The rows of a table with the columns of the model's inputs; other columns are ignored.
  std::shared_ptr<const io::Source> OpenTable(const session::PipelineSpec& spec,
                                              const Model& model) const {
    Kwargs kwargs = spec.OfInputs(model.info.inputs).TableParams(inputs_[0], /*with_labels=*/false);
    kwargs.emplace_back("key", key_.empty() && spec.NeedsTable() ? "#" : key_);
    return io::MakeSource(spec.source, kwargs);
  }

  // Data of a kind that its files tell, such as those of MNIST; null for images, and lists of them.
  std::shared_ptr<const io::Source> OpenExamples(const session::PipelineSpec& spec) const {
    if (inputs_.size() != 1 && !spec.EncoderText().empty())
      Throw(ErrorKind::kUsage, "this model reads texts, of one file at a time; {} were given",
            inputs_.size());
    if (inputs_.size() != 1) return nullptr;
    // Its first bytes say what it is.
    if (inputs_[0] == "-" && spec.EncoderText().empty()) inference::KeepStdin();
    const io::RecognizedSource found = spec.Recognize(inputs_[0]);
    if (!found.kind || !(found.recognition.certain || !spec.EncoderText().empty())) return nullptr;
    std::shared_ptr<const io::Source> source =
        io::MakeSource(found.kind->name, spec.ParamsOfOther(found, {}, /*with_labels=*/false));
    const bool of_files = source->size() > 0 && !source->FileOf(0).empty();
    if (!of_files && (!copy_to_.empty() || !annotate_.empty())) {
      Throw(ErrorKind::kUsage,
            "--copy-to and --annotate are for images that are files; those of {} are not ({})",
            inputs_[0], found.kind->help);
    }
    return source;
  }

  static void TellOf(const io::Source& source, console::Console& console) {
    for (const std::string& text : source.notes()) console.Message(LogLevel::kInfo, text);
    for (const std::string& text : source.remarks()) console.Message(LogLevel::kWarning, text);
  }

  // Null if there are none.
  std::shared_ptr<const io::Source> OpenImages(console::Console& console) const {
    io::ImageListParam list;
    list.Init({}, "image_list");
    list.files = inference::CollectImages(
        inputs_, console.logger());  // not as text: file names may contain commas
    return list.files.empty() ? nullptr : io::NewImageListSource(list);
  }

  // Of the examples, in the output: files unless the rows of a table have other names.
  std::vector<std::string> NamesOf(const io::Source* source,
                                   const session::PipelineSpec& spec) const {
    std::vector<std::string> names;
    if (of_arrays_) {
      for (int64_t i = 1; i <= source->size(); ++i) names.push_back(std::to_string(i));
      return names;
    }
    const bool files = key_.empty() && !spec.NeedsTable();
    for (int64_t i = 0; source && i < source->size(); ++i) {
      names.push_back(files ? source->FileOf(i) : "");
      if (names.back().empty()) names.back() = source->Name(i);
    }
    return names;
  }

  // Runs the net over all examples, if there are any, and shows how far it is.
  void ForEach(inference::ModelRun* run, const char* what, console::Console& console,
               const inference::ModelRun::OnRow& on_row) const {
    if (!run) return;
    std::optional<Progress> progress;
    if (!output_.empty() || !isatty(STDOUT_FILENO))
      progress.emplace(console, "predicting", what, run->iter().examples());
    run->ForEach(
        on_row,
        [&progress](int64_t done) {
          if (progress) progress->Add(done);
        },
        [] { return StopFlag() == 1; });
  }

  void Features(const CommonFlags& flags, const Model& model, const std::vector<std::string>& files,
                inference::ModelRun* run, inference::FiniteCheck* check,
                console::Console& console) const {
    const TShape row = inference::RowOf(inference::ShapesOf(model, least_batch_).outputs.at(0),
                                        least_batch_, output_layer_);
    const auto rows = static_cast<int64_t>(files.size());
    report::NpyWriter writer(output_, rows, row);
    ForEach(
        run, "examples", console,
        [&](const tasks::Example& example, const std::vector<const float*>& outputs) {
          check->Look(example.index(), {outputs[0], static_cast<size_t>(row.Size())}, run->iter());
          writer.Write(example.index(), outputs[0]);
        });
    if (StopFlag() == 1) return;
    writer.Finish();
    if (flags.json) {
      std::vector<int64_t> shape{rows};
      shape.insert(shape.end(), row.begin(), row.end());
      std::cout << report::JsonText({{"file", output_}, {"shape", shape}, {"rows", files}}) << "\n";
    } else {
      for (const std::string& name : files) std::cout << report::ListedName(name) << "\n";
    }
  }

  // Every output of the net into a file of its own.
  void Outputs(const Model& model, const std::vector<std::string>& rows, inference::ModelRun* run,
               inference::FiniteCheck* check, console::Console& console) const {
    const auto examples = static_cast<int64_t>(rows.size());
    inference::OutputFiles files(output_, model.symbol.ListOutputs(),
                                 inference::ShapesOf(model, least_batch_).outputs, least_batch_,
                                 examples, console.logger());
    ForEach(run, "examples", console,
            [&](const tasks::Example& example, const std::vector<const float*>& outputs) {
              for (size_t k = 0; k < outputs.size(); ++k)
                check->Look(example.index(), {outputs[k], files.width(k)}, run->iter());
              files.Write(example.index(), outputs);
            });
    if (StopFlag() != 1) files.Finish();
  }

  void Predictions(const session::PipelineSpec& spec,
                   const std::vector<inference::PredictedHead>& heads,
                   const std::vector<std::string>& names, inference::ModelRun* run,
                   inference::FiniteCheck* check, console::Console& console) const {
    CheckAbilities(heads);
    const bool rows = of_arrays_ || spec.NeedsTable();
    const auto sinks = MakeSinks(heads, rows, names, run, console);
    const auto take = [&](int64_t index,
                          std::vector<std::unique_ptr<tasks::HeadPrediction>> of_heads) {
      inference::Prediction prediction{index, names[static_cast<size_t>(index)],
                                       run->source().FileOf(index), std::move(of_heads)};
      for (const auto& sink : sinks) sink->Take(prediction);
    };
    inference::TiledPredictions tiled(heads);
    std::vector<std::span<const float>> values(heads.size());
    ForEach(run,
            rows     ? "rows"
            : tiled_ ? "tiles"
                     : "images",
            console, [&](const tasks::Example& example, const std::vector<const float*>& outputs) {
              std::vector<std::unique_ptr<tasks::HeadPrediction>> predictions;
              for (size_t i = 0; i < heads.size(); ++i) {
                values[i] = {outputs[static_cast<size_t>(heads[i].output)],
                             static_cast<size_t>(heads[i].predictor->width())};
                check->Look(example.index(), values[i], run->iter());
              }
              if (const io::Tile* const tile = example.tile()) {
                predictions = tiled.Add(example, values);
                if (!predictions.empty()) take(tile->image, std::move(predictions));
                return;
              }
              for (size_t i = 0; i < heads.size(); ++i)
                predictions.push_back(heads[i].predictor->Predict(values[i], example));
              take(example.index(), std::move(predictions));
            });
    if (StopFlag() == 1) return;
    for (const auto& sink : sinks) sink->Finish();
  }

  using Abilities = tasks::Predictor::Abilities;
  static bool Has(const std::vector<inference::PredictedHead>& heads, bool Abilities::*ability) {
    return FirstWith(heads, ability) < heads.size();
  }
  // The first head that has it; the number of heads if none does.
  static size_t FirstWith(const std::vector<inference::PredictedHead>& heads,
                          bool Abilities::*ability) {
    const auto found = std::ranges::find_if(heads, [ability](const inference::PredictedHead& head) {
      return head.predictor->abilities().*ability;
    });
    return static_cast<size_t>(found - heads.begin());
  }

  // What the listing shows where outputs are not finite.
  static std::string HowShown(const std::vector<inference::PredictedHead>& heads) {
    std::vector<std::string> texts;
    for (const inference::PredictedHead& head : heads) {
      const std::string text = head.predictor->HowNotFinite();
      if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
    }
    return format("{}", join(texts, "; "));
  }

  void CheckAbilities(const std::vector<inference::PredictedHead>& heads) const {
    if (threshold_ && !Has(heads, &Abilities::threshold))
      Throw(ErrorKind::kUsage,
            "--threshold is for multi-label models, detectors and models of two classes; this "
            "model is none of them");
    if (top_k_ != 1 && !Has(heads, &Abilities::top_k))
      Throw(ErrorKind::kUsage,
            "--top-k is for models that predict one class of several; this model does not");
    if (!copy_to_.empty() && !Has(heads, &Abilities::sorts))
      Throw(ErrorKind::kUsage, "--copy-to sorts by class; this model predicts no classes");
    const auto joins = [](const inference::PredictedHead& head) {
      return head.predictor->abilities().tiles;
    };
    if (tiled_ && !std::ranges::all_of(heads, joins))
      Throw(ErrorKind::kUsage,
            "--tile is for models of boxes or masks, whose places can be joined; this model "
            "predicts something else");
    if (!tta_.empty() && Has(heads, &Abilities::placed)) {
      Throw(ErrorKind::kUsage,
            "--tta averages scores and values; this model predicts places in the image, which "
            "differ from view to view");
    }
    const bool makes_images = Has(heads, &Abilities::images);
    const bool draws = Has(heads, &Abilities::draws);
    if (!annotate_.empty() && !draws) {
      Throw(ErrorKind::kUsage,
            "--annotate draws predictions on the images that they are of; this model predicts "
            "images: --images DIR writes them");
    }
    if (!images_.empty() && !makes_images)
      Throw(ErrorKind::kUsage, "--images is for models that predict images; this model does not");
    if (makes_images && !draws && images_.empty() && probabilities_.empty()) {
      Throw(ErrorKind::kUsage,
            "this model predicts images: give --images DIR, which they are written into, or "
            "--probabilities FILE.npy, for numbers");
    }
  }

  std::vector<std::unique_ptr<inference::PredictionSink>> MakeSinks(
      const std::vector<inference::PredictedHead>& heads, bool rows,
      const std::vector<std::string>& names, const inference::ModelRun* run,
      console::Console& console) const {
    const Logger& log = console.logger();
    std::vector<std::unique_ptr<inference::PredictionSink>> sinks;
    const std::string what = !key_.empty() ? key_ : rows ? "row" : "file";
    if (!images_.empty()) sinks.push_back(inference::NewPredictedImages(images_, heads, log));
    if (format_ == "coco") {
      sinks.push_back(inference::NewCocoFile(output_, heads));
    } else if (format_ == "yolo") {
      const bool one_folder = inputs_.size() == 1 && std::filesystem::is_directory(inputs_[0]);
      std::vector<inference::ExampleNames> examples;
      for (size_t i = 0; i < names.size(); ++i)
        examples.push_back({run->source().FileOf(static_cast<int64_t>(i)), names[i]});
      sinks.push_back(
          inference::NewYoloFolder(output_, one_folder ? inputs_[0] : "", examples, heads, log));
    } else {
      sinks.push_back(
          inference::NewListing(output_, format_, heads, what, names, !images_.empty()));
    }
    if (!copy_to_.empty())
      sinks.push_back(inference::NewSorter(copy_to_, heads, FirstWith(heads, &Abilities::sorts),
                                           min_score_.value_or(0), log));
    if (!annotate_.empty()) sinks.push_back(inference::NewAnnotator(annotate_));
    if (!probabilities_.empty())
      sinks.push_back(
          inference::NewScoreFiles(probabilities_, heads, static_cast<int64_t>(names.size()), log));
    return sinks;
  }

  std::string model_, key_, format_, output_, output_layer_, copy_to_, annotate_, images_,
      probabilities_, tta_;
  std::vector<std::string> inputs_, places_;
  ModelFacts facts_;
  TileFlags tiles_;
  std::optional<io::TileOptions> tiled_;
  int top_k_ = 1;
  int64_t batch_ = 0;        // 0: not said
  int64_t least_batch_ = 1;  // that the net can be for; shapes of outputs are asked for it
  std::optional<double> min_score_, threshold_;
  bool skip_bad_ = false, of_arrays_ = false, overwrite_ = false;
};

}  // namespace

MXTRAIN_COMMAND(infer, list) {
  list.Add(HelpGroup::kModel, 50, std::make_unique<Infer>());
}

}  // namespace mxtrain::commands
