// SPDX-License-Identifier: Apache-2.0
// mxtrain eval MODEL [DATA]
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <span>

#include "app/commands/command_list.h"
#include "app/commands/model_facts.h"
#include "app/commands/tile_flags.h"
#include "app/commands/trained_files.h"
#include "app/config/document.h"
#include "app/config/near_file.h"
#include "app/inference/file_names.h"
#include "app/inference/finite_check.h"
#include "app/inference/open_model.h"
#include "app/report/html_report.h"
#include "app/report/output.h"
#include "app/report/output_path.h"
#include "app/report/result_file.h"
#include "app/session/compute_modes.h"
#include "app/session/device_choice.h"
#include "app/session/head_tasks.h"
#include "app/session/pipeline_spec.h"
#include "app/session/session.h"
#include "app/tasks/task_list.h"
#include "app/tasks/tile_count.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/example_files.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/io/fingerprint.h"
#include "mxtrain/train/loss_report.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;

class Eval final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("eval", "evaluate a model on labelled data");
    DeclareModel(arguments, &model_);
    arguments
        .Option("data", &data_,
                "a folder with one folder per class, or with MNIST or CIFAR files; a list (PATH "
                "LABEL per line; - for stdin); a configuration, "
                "for its validation data; default: the validation data of the model's run")
        .Takes("DATA");
    arguments
        .Option("--metric", &metrics_,
                "accuracy, cross_entropy, top_k:5, ...; may be repeated; default: the metrics of "
                "the model's run")
        .Takes("NAME")
        .Repeats();
    arguments.Option("--batch", &batch_, "examples per batch").Positive();
    tiles_.Declare(arguments);
    arguments
        .Option("--format", &format_,
                "table; csv: one line per class or output; jsonl: everything, like --json")
        .OneOf({"table", "csv", "jsonl"})
        .ShowsDefault();
    arguments
        .Option(
            "--predictions", &predictions_,
            "write the prediction for each example: file, true class, predicted class, score; as "
            "CSV, or, into FILE.jsonl, as JSON lines. Heads of other kinds get files of their own: "
            "FILE-HEAD.csv")
        .Takes("FILE");
    arguments.Flag(
        "--calibrate", &calibrate_,
        "fit a temperature to each head of classes (of any number of classes thresholds, "
        "with the best F1 of each), so that scores say how often they "
        "are right, and "
        "keep it beside the checkpoint, for eval, infer and export");
    arguments.Flag("--skip-bad", &skip_bad_, "exit with 0 even if examples could not be read");
    arguments.Option("--worst", &worst_, "number of worst mistakes to list and show")
        .NotNegative()
        .ShowsDefault();
    arguments
        .Option(
            "--output", &output_,
            "write tables (CSV, JSON) and figures into this folder, which must be new or empty; "
            "default: RUN/eval if the model is a run folder, in place of the run's last "
            "evaluation")
        .Takes("DIR");
    arguments.Flag("--overwrite", &overwrite_,
                   "replace an existing file of --predictions, and files in --output");
    arguments
        .Option("overrides", &overrides_,
                "overrides if DATA is a configuration: data.val.path=photos/test")
        .Takes("key=value");
    DeclarePlaces(arguments, &places_);
    facts_.Declare(arguments);
    arguments.Examples(
        "  mxtrain eval runs/latest\n  mxtrain eval runs/latest photos/validation --metric top_k:5 "
        "--json\n"
        "  mxtrain eval model.ckpt photos/test --output results\n"
        "  mxtrain eval net.onnx --input data=x.npy --input softmax_label=y.npy");
  }

  int Run(const CommonFlags& flags, console::Console& console) override {
    if (flags.json) format_ = "jsonl";
    CheckArguments();
    inference::InputArrays arrays = facts_.TakeArrays();
    if (!arrays.empty() && !data_.empty())
      Throw(ErrorKind::kUsage, "{} beside --input NAME=FILE: give either arrays or DATA", data_);
    if (tiles_.given() && !arrays.empty())
      Throw(ErrorKind::kUsage, "--tile reads parts of images; the inputs are arrays");
    std::vector<std::string> read = inference::FilesOf(model_);
    read.insert(read.end(), {data_, facts_.labels()});
    std::ranges::move(arrays.Files(), std::back_inserter(read));
    RequireFree(read);
    const std::map<std::string, Context> places = session::ParsePlaces(places_);
    inference::OpenedModel opened =
        inference::OpenModel(flags, model_, facts_.inputs(), &arrays, console.log());
    auto& [runtime, model, only_batch, unread, calibration] = opened;
    const std::string checkpoint = calibrate_ ? CheckpointOf(model_) : "";
    if (calibrate_ && checkpoint.empty())
      Throw(ErrorKind::kUsage, "--calibrate is for runs and checkpoints; {} is neither", model_);
    facts_.Complete(&model, console);
    session::PipelineSpec spec = session::PipelineSpec::FromJson(model.info.pipeline);
    const std::optional<io::TileOptions> tiles =
        tiles_.Or(arrays.empty() ? spec.tiles : std::nullopt);
    std::shared_ptr<const io::Source> source;
    int64_t images = 0;  // or what the examples are
    if (arrays.empty()) {
      source = Open(flags, model, spec, console);
      // The model or a configuration may have named them.
      read.insert(read.end(), data_files_.begin(), data_files_.end());
      RequireFree(read);
      for (const std::string& text : source->notes()) console.Message(LogLevel::kInfo, text);
      for (const std::string& text : source->remarks()) console.Message(LogLevel::kWarning, text);
      WarnOfTrainedFiles(model, spec, *source, console);
      weights_ = io::SummarizeWeights(*source);
      if (weights_) {
        console.Message(LogLevel::kInfo,
                        format("examples have weights, {}: loss and metrics are weighted; tables "
                               "and figures count every example once",
                               weights_->ToText()));
      }
      images = source->size();
      if (tiles) source = Tiled(std::move(source), *tiles, &spec);
    } else {
      source =
          arrays.ForModel(&model, /*labels=*/true, inference::DeclaredBy(opened), console.logger());
      spec = spec.OfArrays();
      array_names_ = arrays.Names();
      images = source->size();
    }
    inference::CheckOnlyBatch(opened, source->size(), batch_);
    const int64_t size = only_batch > 0 ? only_batch : BatchOf(model, *source);
    auto iter =
        session::NewModelIter(*runtime, source, spec, model.info, size, session::DeviceOf(flags));

    Evaluation evaluation(*runtime, model.symbol, *iter, Metrics(spec), nullptr,
                          session::DeviceOf(flags),
                          session::ModesOf(model, flags, *runtime, session::DeviceOf(flags), places,
                                           console.logger()),
                          source->streams() > 0 ? model.info.carry : std::vector<std::string>());
    SetParameters(model, &evaluation.executor(), evaluation.MissingLabels());
    const report::ImageReader reader(spec.transforms);
    const Reports reports = ReportsOf(model, spec, *iter);
    if (tiles) CheckTilesOf(reports);
    for (const auto& [task, report] : reports) report->KeepImages(worst_, reader);
    for (const auto& [task, report] : reports) {
      const auto own = calibration.thresholds.find(report->head().name);
      if (own != calibration.thresholds.end()) report->UseThresholds(own->second);
    }
    if (calibrate_) RequireScores(reports);
    TellChosen(model, console);
    std::vector<std::unique_ptr<report::ResultFile>> predictions;
    if (!predictions_.empty()) predictions = OpenPredictions(reports, console);
    const LossReport losses(model.symbol);
    inference::FiniteCheck check;
    CatchSignals();
    int64_t examples = 0;
    tasks::TileCount seen;
    const NamedValues values = evaluation.Run(
        [&](const DataBatch& batch, const std::vector<NDArray>& outputs) {
          CheckFinite(losses, batch, outputs, *iter, &check);
          const tasks::Examples batch_examples(batch, *iter, source.get());
          examples += CountWhole(batch_examples, &seen);
          for (const auto& [task, report] : reports) report->Add(batch_examples, outputs);
        },
        [] { return StopFlag() == 1; });
    if (StopFlag() == 1) return 128 + StopSignal();

    for (const auto& file : predictions) file->Finish();
    Reports filled;
    for (const HeadReport& one : reports) {
      one.report->Finish();
      if (!one.report->empty()) filled.push_back(one);
    }
    if (calibrate_ && check.count() == 0) calibration.thresholds = FitThresholds(filled, console);
    const Json result = ToJson(model, values, examples, check.count(), filled);
    if (examples > 0) WriteFiles(result, filled, check.count() == 0, console);
    Print(result, model, values, filled);
    if (calibrate_ && check.count() == 0) Calibrate(filled, checkpoint, calibration, console);
    auto unreadable = iter->stats().bad;
    if (tiles) unreadable = inference::OfImages(std::move(unreadable));
    const int bad = inference::ReportBad(unreadable, images, skip_bad_, console.logger());
    const int diverged = check.ExitCode("the results are meaningless", console.logger());
    return diverged != 0 ? diverged : bad;
  }

 private:
  // The tiles of its images. Metrics measure what a net reads, which are tiles then: unless they
  // are asked for, only the reports, which join them, say how good it is.
  static std::shared_ptr<const io::Source> Tiled(std::shared_ptr<const io::Source> source,
                                                 const io::TileOptions& options,
                                                 session::PipelineSpec* spec) {
    spec->metrics.clear();
    try {
      return io::NewTiledSource(std::move(source), options);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kConfig) throw;
      Throw(ErrorKind::kUsage, "--tile: {}", error.what());
    }
  }

  struct HeadReport {
    std::string task;  // the name of its kind
    std::shared_ptr<tasks::Report> report;
  };
  // Of the heads with labels, one task after another.
  using Reports = std::vector<HeadReport>;
  static Reports ReportsOf(const Model& model, const session::PipelineSpec& spec,
                           const DataIter& iter) {
    std::vector<tasks::Head> heads = session::HeadsOf(model, spec, ShapesOf(model, iter));
    std::erase_if(heads, [](const tasks::Head& head) { return head.label.empty(); });
    Reports reports;
    for (const auto& task : tasks::TasksOf(heads, spec.task))
      reports.push_back({task->kind(), task->NewReport()});
    return reports;
  }

  static void RequireScores(const Reports& reports) {
    int64_t count = 0;
    for (const auto& [task, report] : reports) count += report->KeepScores() ? 1 : 0;
    if (count == 0)
      Throw(
          ErrorKind::kUsage,
          "--calibrate fits temperatures of classifiers, thresholds if they predict any number of "
          "classes, and no head ends with SoftmaxOutput or LogisticRegressionOutput and has a "
          "label here");
  }

  // By head; the reports use them.
  static inference::Thresholds FitThresholds(const Reports& reports, console::Console& console) {
    inference::Thresholds fitted;
    for (const auto& [task, report] : reports) {
      std::vector<double> thresholds =
          report->KeepScores() ? report->Thresholds() : std::vector<double>();
      if (thresholds.empty()) continue;
      report->UseThresholds(thresholds);
      const tasks::LabelFacts& facts = report->head().facts;
      const std::vector<std::string>& names =
          facts.all_classes.empty() ? facts.columns : facts.all_classes;
      std::string text;
      for (size_t k = 0; k < thresholds.size(); ++k) {
        text += format(
            "{}{} {:.4g}", k > 0 ? ", " : "",
            names.size() == thresholds.size() ? report::Printable(names[k]) : format("class {}", k),
            thresholds[k]);
      }
      console.Message(LogLevel::kInfo,
                      format("thresholds of '{}', with the best F1 of each class, which the table "
                             "has: {}",
                             report->head().name, text));
      fitted[report->head().name] = std::move(thresholds);
    }
    return fitted;
  }

  // The temperatures in `used` had been applied to the scores; its thresholds are the new ones.
  void Calibrate(const Reports& reports, const std::string& checkpoint,
                 const inference::HeadCalibration& used, console::Console& console) const {
    inference::HeadCalibration fitted = used;
    for (const auto& [task, report] : reports) {
      if (!report->KeepScores()) continue;
      const std::string& head = report->head().name;
      if (fitted.thresholds.contains(head)) continue;
      const auto before = used.temperatures.find(head);
      const double own = report->Temperature();
      fitted.temperatures[head] = own * (before == used.temperatures.end() ? 1 : before->second);
      console.Message(LogLevel::kInfo,
                      format("temperature of '{}': {:.4f}; the scores above were {}", head,
                             fitted.temperatures[head], own > 1 ? "too high" : "too low"));
    }
    const std::string file = inference::WriteCalibration(checkpoint, fitted);
    console.Message(
        LogLevel::kInfo,
        format("{}: used from now on by eval, infer and export; delete it to undo", file));
  }

  // What chose the checkpoint flatters it.
  void TellChosen(const Model& model, console::Console& console) const {
    if (!data_.empty() || !array_names_.empty() || model.info.val_data.empty() ||
        fs::path(model.file).filename() != "best")
      return;
    console.Message(LogLevel::kInfo,
                    "these examples chose the checkpoint `best`, which flatters it a little; other "
                    "examples say how good it is: mxtrain eval MODEL DATA");
  }

  // The examples, of tiles the images that end with one of them.
  static int64_t CountWhole(const tasks::Examples& examples, tasks::TileCount* seen) {
    int64_t count = 0;
    for (size_t i = 0; i < examples.count(); ++i) {
      const io::Tile* const tile = examples[i].tile();
      if (tile) seen->Add(*tile);
      if (!tile || seen->complete()) ++count;
    }
    return count;
  }

  static void CheckTilesOf(const Reports& reports) {
    for (const auto& [task, report] : reports) {
      if (!report->TakesTiles())
        Throw(ErrorKind::kUsage,
              "--tile is for models of boxes or masks, whose places can be joined; '{}' predicts "
              "something else",
              report->head().name);
    }
  }

  // For a batch of the data, as far as they depend on that alone.
  static Symbol::Shapes ShapesOf(const Model& model, const DataIter& iter) {
    std::map<std::string, TShape> shapes;
    const std::vector<std::string> arguments = model.symbol.ListArguments();
    for (const auto& descs : {iter.provide_data(), iter.provide_label()}) {
      for (const DataDesc& desc : descs) {
        if (std::ranges::find(arguments, desc.name) != arguments.end())
          shapes[desc.name] = desc.shape;
      }
    }
    return model.symbol.InferShape(shapes);
  }

  // Looks at the losses' outputs of each example. One without a batch axis, a sum over the batch,
  // is of all of them.
  static void CheckFinite(const LossReport& losses, const DataBatch& batch,
                          const std::vector<NDArray>& outputs, const DataIter& iter,
                          inference::FiniteCheck* check) {
    const auto rows = static_cast<size_t>(iter.batch_size());
    std::vector<std::vector<float>> heads;
    std::vector<size_t> widths;  // of an example; 0: no batch axis
    for (const LossReport::Head& head : losses.heads()) {
      const NDArray& output = outputs[static_cast<size_t>(head.output)];
      const TShape shape = output.shape();
      const bool each = shape.ndim() > 0 && shape[0] == iter.batch_size();
      heads.push_back(output.ToVector());
      widths.push_back(each ? heads.back().size() / rows : 0);
    }
    for (size_t i = 0; i < static_cast<size_t>(batch.count); ++i) {
      for (size_t h = 0; h < heads.size(); ++h) {
        const std::span<const float> all = heads[h];
        const size_t width = widths[h];
        check->Look(batch.index[i], width > 0 ? all.subspan(i * width, width) : all, iter);
      }
    }
  }

  int64_t BatchOf(const Model& model, const io::Source& source) const {
    constexpr int64_t kUsual = 64;  // of a model that says nothing
    if (batch_ > 0) return batch_;
    if (model.info.batch_size > 0) return model.info.batch_size;
    return array_names_.empty() ? 1 : std::clamp<int64_t>(source.size(), 1, kUsual);
  }

  void RequireFree(std::span<const std::string> read) const {
    report::RequireFree(std::array{predictions_}, read, overwrite_);
    report::RequireFreeFolder(output_, read, overwrite_);
  }

  // The files and folders that the parameters of a source name.
  static std::vector<std::string> FilesNamedBy(const Kwargs& params) {
    std::vector<std::string> files;
    std::error_code none;
    for (const auto& [key, value] : params) {
      if (!value.empty() && fs::exists(value, none)) files.push_back(value);
    }
    return files;
  }

  static bool IsConfiguration(const std::string& data) {
    const std::string ending = fs::path(data).extension().string();
    return ending == ".yaml" || ending == ".yml";
  }

  void CheckArguments() const {
    CheckPredictions();
    if (!data_.empty()) inference::CheckOrder(model_, data_, "eval");
    const bool value = data_.find('=') != std::string::npos && !fs::exists(data_);
    if (!value && (overrides_.empty() || IsConfiguration(data_))) return;
    const std::string given = value ? data_ : overrides_[0], model = report::QuoteShell(model_),
                      own = fs::path(model_) / "config.yaml";
    if (const size_t equals = given.find('='); given.substr(0, equals).ends_with("path")) {
      Throw(ErrorKind::kUsage, "{}: give a folder or a list by its path alone: mxtrain eval {} {}",
            given, model, report::QuoteShell(given.substr(equals + 1)));
    }
    Throw(ErrorKind::kUsage, "{} overrides a configuration, but {}: mxtrain eval {} {} {}", given,
          value ? "none is given" : data_ + " is not one", model,
          fs::exists(own) ? report::QuoteShell(own) : "CONFIG", report::QuoteShell(given));
  }

  void CheckPredictions() const {
    const std::string ending = Lower(fs::path(predictions_).extension().string());
    if (ending.empty() || ending == ".csv" || ending == ".txt" || ending == ".jsonl") return;
    Throw(ErrorKind::kUsage,
          "--predictions {}: predictions are not written as {}; name the file .csv, which "
          "spreadsheets open, or .jsonl",
          predictions_, ending);
  }
  report::EachFormat EachFormatOf() const {
    return Lower(fs::path(predictions_).extension().string()) == ".jsonl"
               ? report::EachFormat::kJsonLines
               : report::EachFormat::kCsv;
  }

  // A table of the first task, of all its heads if they share the form of their lines; each other
  // head, or task whose heads do, has a file of its own, PATH-HEAD.csv.
  std::vector<std::unique_ptr<report::ResultFile>> OpenPredictions(
      const Reports& reports, console::Console& console) const {
    std::vector<std::unique_ptr<report::ResultFile>> files;
    std::vector<std::string> names;
    for (Reports left = reports; !left.empty();) {
      Reports own = OfTask(left, left.front().task);
      if (!own.front().report->SharesLines()) own.resize(1);
      const fs::path whole(predictions_);
      const std::string head = own.front().report->head().name;
      names.push_back(files.empty()
                          ? predictions_
                          : (whole.parent_path() / format("{}-{}{}", whole.stem().string(),
                                                          inference::FileName(head),
                                                          whole.extension().string()))
                                .string());
      files.push_back(std::make_unique<report::ResultFile>(names.back()));
      for (const auto& [task, report] : own)
        report->WriteEach(
            {files.back().get(), EachFormatOf(), own.size() > 1, report == own.front().report});
      std::erase_if(left, [&own](const HeadReport& one) {
        return std::ranges::any_of(
            own, [&one](const HeadReport& other) { return other.report == one.report; });
      });
    }
    if (files.size() > 1)
      console.Message(LogLevel::kInfo,
                      format("the lines of the heads have different forms: predictions in {}",
                             join(names, ", ")));
    return files;
  }

  std::shared_ptr<const io::Source> Open(const CommonFlags& flags, const Model& model,
                                         const session::PipelineSpec& spec,
                                         console::Console& console) {
    if (data_.empty()) {
      root_ = io::RootOf(spec.source_params);
      data_files_ = FilesNamedBy(spec.source_params);
      if (!spec.NamesData())
        Throw(ErrorKind::kUsage, "{} does not name any data; give it: mxtrain eval MODEL DATA",
              model.file);
      std::shared_ptr<const io::Source> source = OwnSource(model, spec);
      WarnOfOtherData(model, *source, console);
      return source;
    }
    if (data_ != "-" && !fs::exists(data_))
      Throw(ErrorKind::kFileSystem, "there is no file or folder {}{}", data_,
            config::DidYouMeanFile(data_, config::NearFiles::kData));
    if (IsConfiguration(data_)) {
      session::Session session({data_, overrides_, {}}, session::WithoutAutoGpu(flags),
                               console.log());
      session.KeepFindings(model.info.pipeline);
      std::shared_ptr<const io::Source> source = session.EvaluationSource();
      root_ = session.RootOf(session.OpenSource(true) != nullptr);
      const config::DataConfig& data = session.config().data;
      data_files_ = FilesNamedBy(data.val.source.empty() ? data.train.params : data.val.params);
      return source;
    }
    root_ = io::RootOf({{"path", data_}});
    const io::RecognizedSource found = spec.Recognize(data_);
    if (spec.IsTable() && !fs::is_directory(data_))
      return io::MakeSource(spec.source, spec.TableParams(data_, /*with_labels=*/true));
    return io::MakeSource(found.kind->name, spec.ParamsOfOther(found, model.info.class_names,
                                                               /*with_labels=*/true));
  }

  // The data of the model's run, if it still exists.
  std::shared_ptr<const io::Source> OwnSource(const Model& model,
                                              const session::PipelineSpec& spec) const {
    try {
      return io::MakeSource(spec.source, spec.source_params);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kFileSystem) throw;
      const std::string held_out = HeldOutOf(model, spec, "FOLDER");
      Throw(e.kind(), "{}; if the run's data has moved, give its new location: {}", e.what(),
            held_out.empty() ? format("mxtrain eval {} DATA", report::QuoteShell(model_))
                             : held_out + " (the part held out in training)");
    }
  }

  // The run that the model is of; "" for none.
  static std::string RunOf(const Model& model) { return config::RunOfCheckpoint(model.file); }

  // The command that evaluates the held-out part of the run's data in a folder; "" if there is no
  // such part, or no configuration that says which.
  std::string HeldOutOf(const Model& model, const session::PipelineSpec& spec,
                        const std::string& folder) const {
    const fs::path own = fs::path(RunOf(model)) / "config.yaml";
    if (!spec.HoldsOut() || RunOf(model).empty() || !fs::exists(own)) return "";
    return format("mxtrain eval {} {} data.train.path={}", report::QuoteShell(model_),
                  report::QuoteShell(own.string()), folder);
  }

  // Examples that the run was trained on flatter it.
  void WarnOfTrainedFiles(const Model& model, const session::PipelineSpec& spec,
                          const io::Source& source, console::Console& console) const {
    if (RunOf(model).empty()) return;
    const std::vector<std::string> both = TrainedFiles::OfRun(RunOf(model)).In(source, root_);
    if (both.empty()) return;
    const std::string held_out =
        fs::is_directory(data_) ? HeldOutOf(model, spec, report::QuoteShell(data_)) : "";
    console.Message(
        LogLevel::kWarning,
        format("the run was trained on {} of these {} examples, so the metrics are too good{}",
               both.size(), source.size(),
               held_out.empty() ? "" : "; on the part held out in training: " + held_out));
  }

  // As the user gave it; else where the model's run found it.
  std::string DataName(const Model& model) const {
    if (!data_.empty()) return data_;
    if (!array_names_.empty()) return format("arrays of {}", join(array_names_, ", "));
    for (const auto& [key, value] :
         session::PipelineSpec::FromJson(model.info.pipeline).source_params) {
      if (key == "path") return value;
    }
    return "the model's own data";
  }

  static void WarnOfOtherData(const Model& model, const io::Source& source,
                              console::Console& console) {
    const std::string& then =
        model.info.val_data.empty() ? model.info.train_data : model.info.val_data;
    const std::string now = io::Fingerprint(source);
    if (then.empty() || io::MayBeSameData(then, now)) return;
    console.Message(
        LogLevel::kWarning,
        format("the data differs from what the run was evaluated on: {} then, {} now", then, now));
  }

  // The metrics of the flags, else of the model's run, else accuracy for a model without a run
  // (MXNet's files).
  std::vector<MetricSpec> Metrics(const session::PipelineSpec& run) const {
    std::vector<MetricSpec> specs;
    if (metrics_.empty() && !run.source.empty()) return run.metrics;
    for (const std::string& text :
         metrics_.empty() ? std::vector<std::string>{"accuracy"} : metrics_) {
      const size_t colon = text.find(':');
      MetricSpec spec{text.substr(0, colon), {}, "", ""};
      if (colon != std::string::npos) spec.params.emplace_back("k", text.substr(colon + 1));
      specs.push_back(std::move(spec));
    }
    return specs;
  }

  Json ToJson(const Model& model, const NamedValues& values, int64_t examples, int64_t not_finite,
              const Reports& reports) const {
    Json metrics = Json::object();
    for (const auto& [name, value] : values) metrics[name] = value;
    Json result = {{"model", model.file},
                   {"data", DataName(model)},
                   {"examples", examples},
                   {"not_finite", not_finite},
                   {"metrics", metrics}};
    if (weights_) result["weights"] = {{"mean", weights_->mean}, {"zeros", weights_->zeros}};
    for (const auto& [task, report] : reports)
      report->AddTo(&result, worst_, OfTask(reports, task).size() > 1);
    return result;
  }

  // Results that are not `finite` never replace those in the run folder. Print results even if the
  // run folder is not writable: it may belong to someone else.
  void WriteFiles(const Json& result, const Reports& reports, bool finite,
                  console::Console& console) const {
    const bool own_run = output_.empty() && fs::is_directory(model_);
    if (output_.empty() && !own_run) return;
    const std::string folder = own_run ? (fs::path(model_) / "eval").string() : output_;
    if (own_run && !finite) {
      console.Message(LogLevel::kWarning,
                      format("{} was left as it was: outputs are not finite; --output DIR writes "
                             "tables and figures of the other examples",
                             folder));
      return;
    }
    try {
      own_run ? MakeOwnFolder(folder) : MakeFolders(folder);
      WriteFileAtomically(folder + "/report.json", report::JsonText(result, 2) + "\n");
      for (const auto& [task, report] : reports)
        report->WriteFiles(OfTask(reports, task).size() > 1
                               ? folder + "/" + inference::FileName(report->head().name)
                               : folder);
      if (own_run) report::WriteHtmlReport(model_);
    } catch (const std::exception& e) {
      if (!own_run) throw;
      console.Message(
          LogLevel::kWarning,
          format(
              "tables and figures were not written ({}); choose another folder with --output DIR",
              e.what()));
      return;
    }
    console.Message(
        LogLevel::kInfo,
        format("tables and figures: {}{}", folder,
               own_run ? format(", all in {}", (fs::path(model_) / "report.html").string()) : ""));
  }

  void Print(const Json& result, const Model& model, const NamedValues& values,
             const Reports& reports) const {
    if (format_ == "csv") {
      PrintCsv(reports);
    } else if (format_ == "jsonl") {
      std::cout << report::JsonText(result) << std::endl;
    } else {
      const int64_t examples = result["examples"], not_finite = result["not_finite"];
      std::string text =
          format("{} on {} examples of {}{}\n", model.file, examples, DataName(model),
                 data_.empty() && array_names_.empty() &&
                         session::PipelineSpec::FromJson(model.info.pipeline).HoldsOut()
                     ? ", held out in training"
                     : "");
      if (not_finite > 0) text += format("  {:<16} {}\n", "not finite", not_finite);
      for (const auto& [name, value] : values)
        text += format("  {:<16} {:.6f}\n", name, tasks::UnsignedNan(value));
      for (const auto& [task, report] : reports)
        text += report->Text(worst_, OfTask(reports, task).size() > 1);
      std::cout << report::PrintableLines(text);  // names of heads are the model's
    }
  }

  // The tables of a task, one below the other; of the first task that has them.
  static void PrintCsv(const Reports& reports) {
    const auto first = std::ranges::find_if(
        reports, [](const HeadReport& one) { return !one.report->CsvHeader().empty(); });
    if (first == reports.end()) return;
    const Reports own = OfTask(reports, first->task);
    std::cout << (own.size() > 1 ? "head," : "") << first->report->CsvHeader() << "\n";
    for (const HeadReport& one : own) std::cout << one.report->CsvLines(own.size() > 1);
  }

  static Reports OfTask(const Reports& reports, const std::string& task) {
    Reports own;
    std::ranges::copy_if(reports, std::back_inserter(own),
                         [&task](const HeadReport& one) { return one.task == task; });
    return own;
  }

  ModelFacts facts_;
  TileFlags tiles_;
  std::string root_;                     // the folder that the files of the data lie in
  std::vector<std::string> data_files_;  // that are named as the data by a model or configuration
  std::string model_, data_, format_ = "table", predictions_, output_;
  std::vector<std::string> metrics_, overrides_, places_, array_names_;
  std::optional<io::WeightSummary> weights_;  // of the examples
  int64_t batch_ = 0;
  int worst_ = 20;
  bool skip_bad_ = false, overwrite_ = false, calibrate_ = false;
};

}  // namespace

MXTRAIN_COMMAND(eval, list) {
  list.Add(HelpGroup::kModel, 40, std::make_unique<Eval>());
}

}  // namespace mxtrain::commands
