// mxtrain eval MODEL [DATA]
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "app/commands/open_model.h"
#include "app/commands/pipeline_spec.h"
#include "app/commands/session.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/json.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;

// Counts of (true class, predicted class), and the worst mistakes.
class ClassReport {
 public:
  explicit ClassReport(std::vector<std::string> names) : names_(std::move(names)) {}

  void Add(const DataBatch& batch, const NDArray& scores, const DataIter& iter) {
    if (scores.shape().ndim() != 2 || batch.label.empty() || batch.label[0].shape().Size() != scores.shape()[0]) return;
    const int64_t classes = scores.shape()[1];
    if (counts_.empty()) counts_.assign(static_cast<size_t>(classes), std::vector<int64_t>(static_cast<size_t>(classes)));
    const std::vector<float> p = scores.ToVector(), y = batch.label[0].ToVector();
    for (int64_t i = 0; i < batch.count; ++i) {
      const float* row = p.data() + i * classes;
      const int64_t truth = static_cast<int64_t>(y[static_cast<size_t>(i)]), guess = std::max_element(row, row + classes) - row;
      if (truth < 0 || truth >= classes) continue;
      ++counts_[static_cast<size_t>(truth)][static_cast<size_t>(guess)];
      if (each_) {
        const std::string name = iter.ExampleName(batch.index[static_cast<size_t>(i)]);
        *each_ << format("{},{},{},{}\n", QuoteCsv(name), QuoteCsv(Name(truth)), QuoteCsv(Name(guess)), row[guess]);
      }
      if (guess != truth) mistakes_.push_back({row[guess], iter.ExampleName(batch.index[static_cast<size_t>(i)]), truth, guess});
    }
  }

  // From now on every example that is added is written there, as CSV.
  void WriteEach(std::ostream* out) { each_ = out; }

  bool empty() const { return counts_.empty(); }
  std::string Name(int64_t k) const { return static_cast<size_t>(k) < names_.size() ? names_[static_cast<size_t>(k)] : std::to_string(k); }

  struct Row {
    double precision, recall, f1;
    int64_t examples;
  };
  Row Of(size_t k) const {
    int64_t truths = 0, guesses = 0;
    for (size_t j = 0; j < counts_.size(); ++j) {
      truths += counts_[k][j];
      guesses += counts_[j][k];
    }
    const double hit = static_cast<double>(counts_[k][k]);
    const double precision = guesses ? hit / static_cast<double>(guesses) : 0, recall = truths ? hit / static_cast<double>(truths) : 0;
    return {precision, recall, precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0, truths};
  }

  void Print(int worst) {
    size_t width = 5;
    for (size_t k = 0; k < counts_.size(); ++k) width = std::max(width, Name(static_cast<int64_t>(k)).size());
    std::cout << format("\n{:<{}}  {:>9}  {:>7}  {:>7}  {:>8}\n", "class", width, "precision", "recall", "F1", "examples");
    for (size_t k = 0; k < counts_.size(); ++k) {
      const Row r = Of(k);
      std::cout << format("{:<{}}  {:>9.4f}  {:>7.4f}  {:>7.4f}  {:>8}\n", Name(static_cast<int64_t>(k)), width, r.precision, r.recall, r.f1, r.examples);
    }
    if (counts_.size() <= 25) {
      std::cout << "\nconfusion matrix (rows: true class, columns: predicted)\n" << std::string(width, ' ');
      for (size_t k = 0; k < counts_.size(); ++k) std::cout << format(" {:>6}", Name(static_cast<int64_t>(k)).substr(0, 6));
      std::cout << "\n";
      for (size_t k = 0; k < counts_.size(); ++k) {
        std::cout << format("{:<{}}", Name(static_cast<int64_t>(k)), width);
        for (int64_t n : counts_[k]) std::cout << format(" {:>6}", n);
        std::cout << "\n";
      }
    }
    SortMistakes();
    if (!mistakes_.empty() && worst > 0) std::cout << "\nworst mistakes\n";
    for (size_t i = 0; i < mistakes_.size() && i < static_cast<size_t>(worst); ++i) {
      const Mistake& m = mistakes_[i];
      std::cout << format("  {}: {} taken for {} ({:.3f})\n", m.name, Name(m.truth), Name(m.guess), m.score);
    }
  }

  void PrintCsv() const {
    std::cout << "class,precision,recall,f1,examples\n";
    for (size_t k = 0; k < counts_.size(); ++k) {
      const Row r = Of(k);
      std::cout << format("{},{},{},{},{}\n", QuoteCsv(Name(static_cast<int64_t>(k))), r.precision, r.recall, r.f1, r.examples);
    }
  }

  Json ToJson(int worst) {
    Json classes = Json::array(), mistakes = Json::array();
    for (size_t k = 0; k < counts_.size(); ++k) {
      const Row r = Of(k);
      classes.push_back({{"name", Name(static_cast<int64_t>(k))}, {"precision", r.precision}, {"recall", r.recall}, {"f1", r.f1}, {"examples", r.examples}});
    }
    SortMistakes();
    for (size_t i = 0; i < mistakes_.size() && i < static_cast<size_t>(worst); ++i) {
      const Mistake& m = mistakes_[i];
      mistakes.push_back({{"example", m.name}, {"true", Name(m.truth)}, {"predicted", Name(m.guess)}, {"score", m.score}});
    }
    return {{"classes", classes}, {"confusion", counts_}, {"worst_mistakes", mistakes}};
  }

 private:
  struct Mistake {
    float score;
    std::string name;
    int64_t truth, guess;
  };
  void SortMistakes() {
    std::stable_sort(mistakes_.begin(), mistakes_.end(), [](const Mistake& a, const Mistake& b) { return a.score > b.score; });
  }
  std::vector<std::string> names_;
  std::vector<std::vector<int64_t>> counts_;
  std::vector<Mistake> mistakes_;
  std::ostream* each_ = nullptr;
};

class Eval final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("eval", "metrics of a model on data with labels");
    arguments.Option("model", &model_, "run folder, checkpoint file, or PREFIX@N for the reference system's files").Required().Takes("MODEL");
    arguments.Option("data", &data_,
                    "folder with a folder per class, or of MNIST's or CIFAR's files; a list (PATH LABEL per line; - for stdin); a configuration, for its "
                    "validation data; default: that of the model's run")
        .Takes("DATA");
    arguments.Option("--metric", &metrics_, "accuracy, cross_entropy, top_k:5, ...; may repeat; default: those of the model's run").Takes("NAME").Repeats();
    arguments.Option("--batch", &batch_, "examples at a time").Positive();
    arguments.Option("--format", &format_, "table; csv: a line per class; jsonl: everything, as --json")
        .OneOf({"table", "csv", "jsonl"}).ShowsDefault();
    arguments.Option("--predictions", &predictions_, "write what the model says of each example: file, true class, predicted class, score").Takes("FILE");
    arguments.Flag("--skip-bad", &skip_bad_, "exit with 0 although examples could not be read");
    arguments.Option("--worst", &worst_, "how many of the worst mistakes to list").NotNegative().ShowsDefault();
    arguments.Examples("  mxtrain eval runs/latest\n  mxtrain eval runs/latest photos/validation --metric top_k:5 --json");
  }

  int Run(const CommonFlags& flags, report::Console& console) override {
    if (flags.json) format_ = "jsonl";
    const auto [runtime, model] = OpenModel(flags, model_, console);
    const PipelineSpec spec = PipelineSpec::FromJson(model.info.pipeline);
    auto source = Open(flags, model, spec, console);
    for (const std::string& text : source->warnings()) console.Message(LogLevel::kWarning, text);
    auto iter = NewModelIter(*runtime, std::move(source), spec, model.info, batch_ > 0 ? batch_ : std::max<int64_t>(model.info.batch_size, 1));

    Evaluation evaluation(*runtime, model.symbol, *iter, Metrics(spec), nullptr, DeviceOf(flags));
    SetParameters(model, &evaluation.executor(), evaluation.MissingLabels());
    ClassReport classes(model.info.class_names);
    std::ofstream predictions;
    if (!predictions_.empty()) {
      predictions.open(predictions_);
      predictions << "example,true,predicted,score\n";
      classes.WriteEach(&predictions);
    }
    CatchSignals();
    int64_t examples = 0;
    const NamedValues values = evaluation.Run(
        [&](const DataBatch& batch, const std::vector<NDArray>& outputs) {
          examples += batch.count;
          classes.Add(batch, outputs[0], *iter);
        },
        [] { return StopFlag() == 1; });
    if (StopFlag() == 1) return 128 + StopSignal();

    if (!predictions_.empty() && !predictions.flush()) Throw(ErrorKind::kFileSystem, "cannot write {}", predictions_);
    Print(model, values, examples, &classes);
    return ReportBad(iter->stats().bad, iter->examples(), skip_bad_, console);
  }

 private:
  std::shared_ptr<const io::Source> Open(const CommonFlags& flags, const Model& model, const PipelineSpec& spec, report::Console& console) const {
    if (data_.empty()) {
      if (spec.source.empty()) Throw(ErrorKind::kUsage, "{} names no data of its own; say which: mxtrain eval MODEL DATA", model.file);
      return io::MakeSource(spec.source, spec.source_params);
    }
    static constexpr std::pair<const char*, const char*> kSets[] = {
        {"t10k-labels-idx1-ubyte", "mnist"}, {"t10k-labels-idx1-ubyte.gz", "mnist"}, {"test_batch.bin", "cifar10"}, {"test.bin", "cifar100"}};
    for (const auto& [file, source] : kSets) {
      if (fs::exists(fs::path(data_) / file)) return io::MakeSource(source, {{"path", data_}, {"split", "test"}});
    }
    if (data_ != "-" && !fs::exists(data_)) Throw(ErrorKind::kData, "there is no file or folder {}", data_);
    const std::string ending = fs::path(data_).extension().string();
    if (ending == ".yaml" || ending == ".yml") return Session({data_, {}, {}}, flags, console).EvaluationSource();
    const bool list = data_ == "-" || fs::is_regular_file(data_);
    Kwargs kwargs{{"path", data_ == "-" ? "/dev/stdin" : data_}};
    if (data_ == "-") kwargs.emplace_back("root", ".");
    if (!model.info.class_names.empty()) kwargs.emplace_back("classes", params::Print(model.info.class_names));
    return io::MakeSource(list ? "list" : "image_folder", kwargs);
  }

  // Those of the flags, else those of the model's run, else accuracy for a model without a run (the reference system's files).
  std::vector<MetricSpec> Metrics(const PipelineSpec& run) const {
    std::vector<MetricSpec> specs;
    if (metrics_.empty() && !run.source.empty()) return run.metrics;
    for (const std::string& text : metrics_.empty() ? std::vector<std::string>{"accuracy"} : metrics_) {
      const size_t colon = text.find(':');
      MetricSpec spec{text.substr(0, colon), {}, "", ""};
      if (colon != std::string::npos) spec.params.emplace_back("k", text.substr(colon + 1));
      specs.push_back(std::move(spec));
    }
    return specs;
  }

  void Print(const Model& model, const NamedValues& values, int64_t examples, ClassReport* classes) const {
    if (format_ == "csv") return classes->PrintCsv();
    if (format_ == "jsonl") {
      Json metrics = Json::object();
      for (const auto& [name, value] : values) metrics[name] = value;
      Json result = {{"model", model.file}, {"examples", examples}, {"metrics", metrics}};
      if (!classes->empty()) result.update(classes->ToJson(worst_));
      std::cout << result.dump() << std::endl;
      return;
    }
    std::cout << format("{} on {} examples\n", model.file, examples);
    for (const auto& [name, value] : values) std::cout << format("  {:<16} {:.6f}\n", name, value);
    if (!classes->empty()) classes->Print(worst_);
  }

  std::string model_, data_, format_ = "table", predictions_;
  std::vector<std::string> metrics_;
  int64_t batch_ = 0;
  int worst_ = 10;
  bool skip_bad_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeEval() { return std::make_unique<Eval>(); }

}  // namespace mxtrain::commands
