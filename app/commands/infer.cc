// SPDX-License-Identifier: Apache-2.0
// mxtrain infer MODEL INPUT...
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <numeric>

#include "app/commands/answers.h"
#include "app/commands/command_list.h"
#include "app/commands/cut_model.h"
#include "app/commands/finite_check.h"
#include "app/commands/model_facts.h"
#include "app/commands/open_model.h"
#include "app/commands/output_files.h"
#include "app/commands/predictions.h"
#include "app/commands/progress.h"
#include "app/commands/views.h"
#include "app/report/npy.h"
#include "app/report/output.h"
#include "app/session/batch_fit.h"
#include "app/session/compute_modes.h"
#include "app/session/device_choice.h"
#include "app/session/pipeline_spec.h"
#include "app/session/session.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/image_folder_source.h"
#include "mxtrain/optimizer/optimizer.h"

namespace mxtrain::commands {
namespace {

class Infer final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("infer", "predict images or the rows of a table");
    DeclareModel(arguments, &model_);
    arguments
        .Option("inputs", &inputs_,
                "folders, image files, lists of files (.txt .lst .tsv .csv), or - for a list on "
                "stdin, a folder of MNIST's or CIFAR's files; for a model trained on a table: a "
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
        .Option(
            "--threshold", &threshold_,
            "for multi-label models: classes with at least this score are predicted; default: 0.5")
        .Within(0.0, 1.0);
    arguments
        .Option(
            "--format", &format_,
            "table, csv or jsonl; default: by the extension of --output (.csv, .jsonl), else table")
        .OneOf({"table", "csv", "jsonl"});
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
                "write the images into DIR with class and score drawn on them")
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
    arguments
        .Option("--batch", &batch_,
                "images per batch; default: 64, or less if their memory plan exceeds a quarter of "
                "the free memory")
        .Positive();
    arguments.Flag("--skip-bad", &skip_bad_, "exit with 0 even if images could not be read");
    DeclarePlaces(arguments, &places_);
    facts_.Declare(arguments);
    arguments.Examples(
        "  mxtrain infer runs/latest photos\n  ls *.jpg | mxtrain infer runs/latest - --format csv "
        "--top-k 3\n"
        "  mxtrain infer runs/latest photos --copy-to sorted --min-score 0.8\n"
        "  mxtrain infer runs/houses new.csv --key id --output predicted.csv\n"
        "  mxtrain infer downloads/resnet@0 photos --size 3,224,224\n"
        "  mxtrain infer runs/latest photos --output-layer flatten0 --output features.npy > "
        "names.txt\n"
        "  mxtrain infer net.onnx --input left=a.npy --input right=b.npy --output scores.npy");
  }

  int Run(const CommonFlags& flags, report::Console& console) override {
    InputArrays arrays = facts_.TakeArrays();
    of_arrays_ = !arrays.empty();
    CheckFlags();
    if (!of_arrays_) CheckOrder(model_, inputs_[0], "infer");
    std::map<std::string, Context> places = session::ParsePlaces(places_);
    if (format_.empty())
      format_ = output_.ends_with(".csv") ? "csv" : output_.ends_with(".jsonl") ? "jsonl" : "table";
    if (flags.json) format_ = "jsonl";
    OpenedModel opened = OpenModel(flags, model_, facts_.inputs(), &arrays, console);
    auto& [runtime, model, only_batch, unread] = opened;
    facts_.Complete(&model, console);
    const Symbol whole = model.symbol;
    const std::vector<std::string> declared = DeclaredBy(opened);
    if (!output_layer_.empty()) model.symbol = LayerOf(model.symbol, output_layer_);
    RemoveLabels(runtime->operators(), &model, console);
    session::DropRemovedGroups(whole, model.symbol, &places);
    Net net;
    session::PipelineSpec spec = session::PipelineSpec::FromJson(model.info.pipeline);
    if (of_arrays_) {
      net.source = arrays.ForModel(&model, /*labels=*/false, declared, console);
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
      net.source = table ? OpenTable(spec, model) : OpenExamples(spec);
      if (!net.source) net.source = OpenImages(console);
      if (net.source) TellOf(*net.source, console);
    }
    const std::vector<std::string> names = NamesOf(net.source.get(), spec);
    const ComputeModes modes = session::ModesOf(model, flags, *runtime, session::DeviceOf(flags),
                                                places, console.logger());
    if (net.source) {
      CheckOnlyBatch(opened, net.source->size(), batch_);
      if (only_batch > 0) batch_ = least_batch_ = only_batch;
      net.iter = NewIter(*runtime, model, net.source, session::DeviceOf(flags), modes, console);
    }
    if (net.iter) {
      CheckRows(model, net.iter->batch_size());
      net.evaluation.emplace(*runtime, model.symbol, *net.iter, std::vector<MetricSpec>{}, nullptr,
                             session::DeviceOf(flags), modes);
      SetParameters(model, &net.evaluation->executor(), net.evaluation->MissingLabels());
    }
    const bool finite = !net.iter || TellNonFinite(model, console);
    FiniteCheck check;
    CatchSignals();
    std::string shown = output_ + " holds it as it is";
    if (WritesOutputs()) {
      Outputs(model, names, &net, &check, console);
    } else if (output_layer_.empty()) {
      const std::vector<AnswerHead> heads = AnswersOf(model, spec, least_batch_, console);
      Predictions(spec, heads, names, &net, &check, console);
      shown = HowShown(heads);
    } else {
      Features(flags, model, names, &net, &check, console);
    }
    if (StopFlag() == 1) return Stopped(console);
    const int bad = net.iter ? ReportBad(net.iter->stats().bad, static_cast<int64_t>(names.size()),
                                         skip_bad_, console)
                             : 0;
    if (!finite) return static_cast<int>(ErrorKind::kDiverged);
    const int diverged = check.ExitCode(shown, console);
    return diverged != 0 ? diverged : bad;
  }

 private:
  // The outputs of one example.
  using OnRow = std::function<void(int64_t index, const std::vector<const float*>& outputs)>;
  // The examples and the net that processes them; all empty if there are no examples.
  struct Net {
    std::shared_ptr<const io::Source> source;
    std::unique_ptr<DataIter> iter;
    std::optional<Evaluation> evaluation;
  };

  static bool IsMask(const std::map<std::string, Attrs>& attrs, const std::string& name,
                     const std::vector<float>& values) {
    const auto own = attrs.find(name);
    return own != attrs.end() && FindMultipliers(name, own->second, {}).lr == 0 &&
           std::ranges::none_of(values, [](float value) { return std::isnan(value); });
  }

  // Warns if a parameter is not finite, as after a training that diverged. False if so. One that
  // training leaves alone may be infinite, as masks are.
  static bool TellNonFinite(const Model& model, report::Console& console) {
    const auto attrs = model.symbol.ListAttrs();
    for (const auto* arrays : {&model.args, &model.auxs}) {
      for (const auto& [name, array] : *arrays) {
        const std::vector<float> values = array.ToVector();
        const auto bad = std::find_if(values.begin(), values.end(),
                                      [](float value) { return !std::isfinite(value); });
        if (bad != values.end() && IsMask(attrs, name, values)) continue;
        if (bad == values.end()) continue;
        console.Message(
            LogLevel::kWarning,
            format("{}: the parameter '{}' contains {}, so predictions are meaningless; "
                   "use a checkpoint from before the training diverged",
                   model.file, name, *bad));
        return false;
      }
    }
    return true;
  }

  // Throws kUsage for an output whose part for an example changes with the size of the batch.
  void CheckRows(const Model& model, int64_t batch) const {
    const std::vector<TShape> least = OutputShapes(model, least_batch_),
                              whole = OutputShapes(model, batch);
    const std::vector<std::string> names = model.symbol.ListOutputs();
    for (size_t k = 0; k < names.size(); ++k) {
      if (least[k].ndim() == 0 || least[k][0] != least_batch_) continue;  // RowOf refuses it
      if (least[k].Size() * batch == whole[k].Size() * least_batch_) continue;
      Throw(ErrorKind::kUsage,
            "the output '{}' is {} for a batch of {} and {} for a batch of {}: an example has no "
            "part of it of its own",
            HeadName(names[k]), whole[k].ToString(), batch, least[k].ToString(), least_batch_);
    }
  }

  int Stopped(report::Console& console) const {
    if (!output_.empty())
      console.Message(LogLevel::kWarning,
                      format("stopped before the end: {} was not written", output_));
    return 128 + StopSignal();
  }

  // Whether the result is every output of the net, as numbers.
  bool WritesOutputs() const {
    return of_arrays_ && output_layer_.empty() && output_.ends_with(".npy");
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
      const std::string ending = Lower(std::filesystem::path(output_).extension().string());
      const bool text = ending.empty() || ending == ".csv" || ending == ".jsonl" ||
                        ending == ".txt" || ending == ".tsv";
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
                          !annotate_.empty() || !probabilities_.empty();
    if (predicts) {
      Throw(ErrorKind::kUsage,
            "--format, --top-k, --copy-to, --annotate and --probabilities are for predictions; "
            "--output-layer "
            "writes .npy");
    }
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
  bool IsTable(const session::PipelineSpec& spec, report::Console& console) const {
    if (spec.NeedsTable()) return true;
    if (!spec.IsTable()) return false;
    if (!key_.empty()) return true;
    for (const std::string& input : inputs_) {
      if (LooksLikeTable(input, spec)) return true;
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
    if (inputs_.size() != 1) return nullptr;
    const io::RecognizedSource found = io::RecognizeSource(inputs_[0], spec.source);
    if (!found.kind || !found.recognition.certain) return nullptr;
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

  static void TellOf(const io::Source& source, report::Console& console) {
    for (const std::string& text : source.notes()) console.Message(LogLevel::kInfo, text);
    for (const std::string& text : source.remarks()) console.Message(LogLevel::kWarning, text);
  }

  // Null if there are none.
  std::shared_ptr<const io::Source> OpenImages(report::Console& console) const {
    io::ImageListParam list;
    list.Init({}, "image_list");
    list.files = CollectImages(inputs_, console);  // not as text: file names may contain commas
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

  // Batches of the examples, one per view if there are several views.
  std::unique_ptr<DataIter> NewIter(Runtime& runtime, const Model& model,
                                    std::shared_ptr<const io::Source> source, Context device,
                                    const ComputeModes& modes, report::Console& console) {
    session::PipelineSpec spec = session::PipelineSpec::FromJson(model.info.pipeline);
    ModelInfo info = model.info;
    if (tta_ == "crops") WidenForCrops(&spec, &info);
    const int64_t wanted =
        batch_ > 0 ? batch_ : BatchWithinMemory(runtime, model, device, modes, console);
    const int64_t batch = std::min(wanted, source->size());
    // Views are created on the host.
    const Context batches_for = tta_.empty() ? device : Context::cpu();
    auto iter = session::NewModelIter(runtime, std::move(source), spec, info, batch, batches_for);
    if (tta_.empty()) return iter;
    auto views = std::make_unique<ViewsIter>(runtime, std::move(iter), model.info.inputs[0].shape,
                                             tta_ == "crops");
    views_ = views->views();
    return views;
  }

  static int64_t BatchWithinMemory(Runtime& runtime, const Model& model, Context device,
                                   const ComputeModes& modes, report::Console& console) {
    constexpr int64_t kMost = 64;  // larger batches are not faster
    const auto bytes_of = [&](int64_t batch) {
      return session::InferenceBytes(runtime, model.symbol, model.info.inputs, batch, device,
                                     modes);
    };
    const auto memory_of = [&](Context of) { return session::FreeBytes(runtime, of) / 4; };
    const session::BatchFit fit = session::PowerOfTwoWithin(memory_of, kMost, bytes_of);
    if (fit.limit)
      console.Message(LogLevel::kInfo, format("{} examples per batch, to fit the free memory of {}",
                                              fit.batch, fit.limit->ToString()));
    return fit.batch;
  }

  // Runs the net over all examples; `on_row` gets the outputs for each readable one, averaged over
  // the views.
  void ForEach(Net* net, int64_t examples, const char* what, report::Console& console,
               const OnRow& on_row) const {
    if (!net->evaluation) return;
    std::vector<MeanOfViews> means(net->evaluation->executor().outputs().size(),
                                   MeanOfViews(views_));
    std::vector<std::vector<float>> values(means.size());
    std::vector<const float*> row(means.size());
    std::optional<Progress> progress;
    if (!output_.empty() || !isatty(STDOUT_FILENO))
      progress.emplace(console, "predicting", what, examples);
    net->evaluation->Run(
        [&](const DataBatch& batch, const std::vector<NDArray>& outputs) {
          bool whole = true;
          for (size_t k = 0; k < outputs.size(); ++k) {
            values[k] = outputs[k].ToVector();
            whole = means[k].Add(&values[k]) && whole;
          }
          if (!whole) return;
          const auto rows = static_cast<size_t>(net->iter->batch_size());
          for (size_t i = 0; i < static_cast<size_t>(batch.count); ++i) {
            for (size_t k = 0; k < row.size(); ++k)
              row[k] = values[k].data() + i * (values[k].size() / rows);
            on_row(batch.index[i], row);
          }
          if (progress) progress->Add(batch.count);
        },
        [] { return StopFlag() == 1; });
  }

  void Features(const CommonFlags& flags, const Model& model, const std::vector<std::string>& files,
                Net* net, FiniteCheck* check, report::Console& console) const {
    const TShape row = RowOf(OutputShapes(model, least_batch_).at(0), least_batch_, output_layer_);
    const auto rows = static_cast<int64_t>(files.size());
    report::NpyWriter writer(output_, rows, row);
    ForEach(net, rows, "examples", console,
            [&](int64_t index, const std::vector<const float*>& outputs) {
              check->Look(index, {outputs[0], static_cast<size_t>(row.Size())}, *net->iter);
              writer.Write(index, outputs[0]);
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
  void Outputs(const Model& model, const std::vector<std::string>& rows, Net* net,
               FiniteCheck* check, report::Console& console) const {
    const auto examples = static_cast<int64_t>(rows.size());
    OutputFiles files(output_, model.symbol.ListOutputs(), OutputShapes(model, least_batch_),
                      least_batch_, examples, console);
    ForEach(net, examples, "examples", console,
            [&](int64_t index, const std::vector<const float*>& outputs) {
              for (size_t k = 0; k < outputs.size(); ++k)
                check->Look(index, {outputs[k], files.width(k)}, *net->iter);
              files.Write(index, outputs);
            });
    if (StopFlag() != 1) files.Finish();
  }

  void Predictions(const session::PipelineSpec& spec, const std::vector<AnswerHead>& heads,
                   const std::vector<std::string>& names, Net* net, FiniteCheck* check,
                   report::Console& console) const {
    CheckAnswers(heads);
    const bool rows = of_arrays_ || spec.NeedsTable();
    const auto sinks = MakeSinks(heads, rows, names, console);
    std::vector<std::vector<float>> in_units(heads.size());
    ForEach(net, static_cast<int64_t>(names.size()), rows ? "rows" : "images", console,
            [&](int64_t index, const std::vector<const float*>& outputs) {
              Prediction prediction{
                  index, names[static_cast<size_t>(index)], net->source->FileOf(index), {}};
              for (size_t h = 0; h < heads.size(); ++h) {
                const float* scores = outputs[static_cast<size_t>(heads[h].output)];
                if (heads[h].units) {
                  in_units[h].assign(scores, scores + heads[h].width);
                  heads[h].units->Restore(&in_units[h]);
                  scores = in_units[h].data();
                }
                const auto width = static_cast<size_t>(heads[h].width);
                const bool finite = check->Look(index, {scores, width}, *net->iter);
                prediction.heads.push_back({scores, finite, {}});
                if (finite || heads[h].answer == Answer::kValues)
                  prediction.heads[h].best = Best(heads[h].answer, scores, heads[h].width);
              }
              for (const auto& sink : sinks) sink->Take(prediction);
            });
    if (StopFlag() == 1) return;
    for (const auto& sink : sinks) sink->Finish();
  }

  static bool Has(const std::vector<AnswerHead>& heads, Answer answer) {
    return std::any_of(heads.begin(), heads.end(),
                       [answer](const AnswerHead& head) { return head.answer == answer; });
  }

  // What the listing shows where outputs are not finite.
  static std::string HowShown(const std::vector<AnswerHead>& heads) {
    const bool values = Has(heads, Answer::kValues),
               classes = Has(heads, Answer::kOneClass) || Has(heads, Answer::kAnyClasses);
    return !values ? "no class is predicted, and the score is shown as nan"
           : classes
               ? "no class is predicted from such scores; values are shown as nan, inf or -inf"
               : "the values are shown as nan, inf or -inf";
  }

  // The head that sorts: the first that predicts classes.
  static size_t ClassHead(const std::vector<AnswerHead>& heads) {
    const auto found = std::find_if(heads.begin(), heads.end(), [](const AnswerHead& head) {
      return head.answer != Answer::kValues;
    });
    return found == heads.end() ? 0 : static_cast<size_t>(found - heads.begin());
  }

  void CheckAnswers(const std::vector<AnswerHead>& heads) const {
    if (threshold_ && !Has(heads, Answer::kAnyClasses))
      Throw(ErrorKind::kUsage, "--threshold is for multi-label models; this model is not one");
    if (top_k_ != 1 && !Has(heads, Answer::kOneClass))
      Throw(ErrorKind::kUsage,
            "--top-k is for models that predict one class of several; this model does not");
    if (!copy_to_.empty() && heads[ClassHead(heads)].answer == Answer::kValues)
      Throw(ErrorKind::kUsage, "--copy-to sorts by class; this model predicts values");
  }

  std::vector<std::unique_ptr<PredictionSink>> MakeSinks(const std::vector<AnswerHead>& heads,
                                                         bool rows,
                                                         const std::vector<std::string>& names,
                                                         report::Console& console) const {
    std::vector<std::unique_ptr<PredictionSink>> sinks;
    const std::string what = !key_.empty() ? key_ : rows ? "row" : "file";
    sinks.push_back(NewListing(output_, format_, heads, what, names, top_k_));
    if (!copy_to_.empty())
      sinks.push_back(
          NewSorter(copy_to_, heads, ClassHead(heads), min_score_.value_or(0), console));
    if (!annotate_.empty()) sinks.push_back(NewAnnotator(annotate_, heads));
    if (!probabilities_.empty())
      sinks.push_back(
          NewScoreFiles(probabilities_, heads, static_cast<int64_t>(names.size()), console));
    return sinks;
  }

  // The classes with the highest scores, best first; or those at or above the threshold; or all
  // values.
  std::vector<std::pair<int64_t, float>> Best(Answer answer, const float* scores,
                                              int64_t classes) const {
    std::vector<std::pair<int64_t, float>> best;
    if (answer == Answer::kValues) {
      for (int64_t j = 0; j < classes; ++j) best.emplace_back(j, scores[j]);
      return best;
    }
    std::vector<int64_t> order(static_cast<size_t>(classes));
    std::iota(order.begin(), order.end(), 0);
    const bool any = answer == Answer::kAnyClasses;
    const auto least = static_cast<float>(threshold_.value_or(0.5));
    const int64_t k = any ? std::count_if(scores, scores + classes,
                                          [least](float score) { return score >= least; })
                          : std::min<int64_t>(top_k_, classes);
    std::partial_sort(order.begin(), order.begin() + k, order.end(),
                      [scores](int64_t a, int64_t b) {
                        return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
                      });
    for (int64_t j = 0; j < k; ++j)
      best.emplace_back(order[static_cast<size_t>(j)], scores[order[static_cast<size_t>(j)]]);
    return best;
  }

  std::string model_, key_, format_, output_, output_layer_, copy_to_, annotate_, probabilities_,
      tta_;
  std::vector<std::string> inputs_, places_;
  ModelFacts facts_;
  int top_k_ = 1, views_ = 1;
  int64_t batch_ = 0;        // 0: not said
  int64_t least_batch_ = 1;  // that the net can be for; shapes of outputs are asked for it
  std::optional<double> min_score_, threshold_;
  bool skip_bad_ = false, of_arrays_ = false;
};

}  // namespace

MXTRAIN_COMMAND(infer, list) {
  list.Add(HelpGroup::kModel, 50, std::make_unique<Infer>());
}

}  // namespace mxtrain::commands
