// mxtrain infer MODEL INPUT...
#include <algorithm>
#include <fstream>
#include <iostream>
#include <numeric>

#include "app/commands/open_model.h"
#include "app/commands/pipeline_spec.h"
#include "app/commands/session.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/json.h"
#include "mxtrain/io/image_folder_source.h"

namespace mxtrain::commands {
namespace {

struct Prediction {
  std::string file;
  std::vector<std::pair<int64_t, float>> best;  // class and score, best first
};

class Infer final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("infer", "predictions for pictures");
    arguments.Option("model", &model_, "run folder, checkpoint file, or PREFIX@N for the reference system's files").Required().Takes("MODEL");
    arguments.Option("inputs", &inputs_, "folders, picture files, lists of them (.txt .lst .tsv .csv), or - for a list on stdin").Required().Takes("INPUT");
    arguments.Option("--top-k", &top_k_, "classes per picture").Positive().ShowsDefault();
    arguments.Option("--format", &format_, "table, csv or jsonl").OneOf({"table", "csv", "jsonl"}).ShowsDefault();
    arguments.Option("--output", &output_, "write there in place of stdout").Takes("FILE");
    arguments.Option("--batch", &batch_, "pictures at a time").Positive().ShowsDefault();
    arguments.Flag("--skip-bad", &skip_bad_, "exit with 0 although pictures could not be read");
    arguments.Option("--labels", &labels_, "file with a class name per line, for models that hold none").Takes("FILE");
    arguments.Option("--size", &size_, "C,H,W of the input, for models that hold none").Takes("C,H,W");
    arguments.Examples("  mxtrain infer runs/latest photos\n  ls *.jpg | mxtrain infer runs/latest - --format csv --top-k 3\n"
                "  mxtrain infer zoo/lenet@10 digits --size 1,28,28");
  }

  int Run(const CommonFlags& flags, report::Console& console) override {
    auto [runtime, model] = OpenModel(flags, model_, console);
    Complete(&model);
    const PipelineSpec spec = PipelineSpec::FromJson(model.info.pipeline);
    const std::vector<std::string> files = CollectPictures(inputs_, console);
    io::ImageListParam list;
    list.Init({}, "image_list");
    list.files = files;  // not through text: names of files may hold commas
    std::shared_ptr<const io::Source> source = io::NewImageListSource(list);
    auto iter = NewModelIter(*runtime, std::move(source), spec, model.info, std::min<int64_t>(batch_, static_cast<int64_t>(files.size())));
    Evaluation evaluation(*runtime, model.symbol, *iter, {}, nullptr, DeviceOf(flags));
    SetParameters(model, &evaluation.executor(), evaluation.MissingLabels());

    std::ofstream file;
    if (!output_.empty()) {
      file.open(output_);
      if (!file) Throw(ErrorKind::kFileSystem, "cannot write {}", output_);
    }
    std::ostream& out = output_.empty() ? std::cout : file;
    if (flags.json) format_ = "jsonl";
    const std::vector<std::string>& names = model.info.class_names;
    CatchSignals();
    Header(out, files);
    evaluation.Run(
        [&](const DataBatch& batch, const std::vector<NDArray>& outputs) {
          for (const Prediction& p : Predict(batch, outputs[0], *iter)) Print(out, names, p);
        },
        [] { return StopFlag() == 1; });
    out.flush();
    if (!out) Throw(ErrorKind::kFileSystem, "cannot write {}", output_.empty() ? "the results" : output_);
    if (StopFlag() == 1) return 128 + StopSignal();
    return ReportBad(iter->stats().bad, static_cast<int64_t>(files.size()), skip_bad_, console);
  }

 private:
  void Complete(Model* model) const {
    if (!size_.empty()) {
      const TShape shape = TShape::Parse(size_);
      for (InputInfo& input : model->info.inputs) input.shape = shape;
    }
    for (const InputInfo& input : model->info.inputs) {
      if (!input.shape.known()) Throw(ErrorKind::kUsage, "{} does not say the size of its input '{}'; give --size C,H,W", model->file, input.name);
    }
    if (labels_.empty()) return;
    std::ifstream names(labels_);
    if (!names) Throw(ErrorKind::kFileSystem, "cannot read {}", labels_);
    model->info.class_names.clear();
    for (std::string line; std::getline(names, line);) model->info.class_names.push_back(line);
  }

  std::vector<Prediction> Predict(const DataBatch& batch, const NDArray& scores, const DataIter& iter) const {
    std::vector<Prediction> predictions;
    const int64_t width = scores.shape().Size() / std::max<int64_t>(scores.shape()[0], 1);
    const std::vector<float> values = scores.ToVector();
    for (int64_t i = 0; i < batch.count; ++i) {
      Prediction p{iter.ExampleName(batch.index[static_cast<size_t>(i)]), {}};
      const float* row = values.data() + i * width;
      std::vector<int64_t> order(static_cast<size_t>(width));
      std::iota(order.begin(), order.end(), 0);
      const int64_t k = std::min<int64_t>(top_k_, width);
      std::partial_sort(order.begin(), order.begin() + k, order.end(), [row](int64_t a, int64_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
      for (int64_t j = 0; j < k; ++j) p.best.emplace_back(order[static_cast<size_t>(j)], row[order[static_cast<size_t>(j)]]);
      predictions.push_back(std::move(p));
    }
    return predictions;
  }

  void Header(std::ostream& out, const std::vector<std::string>& files) {
    for (const std::string& name : files) width_ = std::max(width_, name.size());
    if (format_ == "table") out << format("{:<{}}  prediction\n", "file", width_);
    if (format_ != "csv") return;
    out << "file";
    for (int k = 1; k <= top_k_; ++k) out << format(",class_{},score_{}", k, k);
    out << "\n";
  }

  void Print(std::ostream& out, const std::vector<std::string>& names, const Prediction& p) const {
    auto name = [&names](int64_t k) { return static_cast<size_t>(k) < names.size() ? names[static_cast<size_t>(k)] : std::to_string(k); };
    if (format_ == "jsonl") {
      Json best = Json::array();
      for (const auto& [k, score] : p.best) best.push_back({{"class", name(k)}, {"index", k}, {"score", score}});
      out << Json{{"file", p.file}, {"predictions", best}}.dump() << "\n";
    } else if (format_ == "csv") {
      out << QuoteCsv(p.file);
      for (const auto& [k, score] : p.best) out << format(",{},{}", QuoteCsv(name(k)), score);
      out << "\n";
    } else {
      out << format("{:<{}}", p.file, width_);
      for (const auto& [k, score] : p.best) out << format("  {} {:.4f}", name(k), score);
      out << "\n";
    }
  }

  std::string model_, format_ = "table", output_, labels_, size_;
  std::vector<std::string> inputs_;
  int top_k_ = 1;
  int64_t batch_ = 64;
  bool skip_bad_ = false;
  size_t width_ = 4;
};

}  // namespace

std::unique_ptr<Command> MakeInfer() { return std::make_unique<Infer>(); }

}  // namespace mxtrain::commands
