// mxtrain infer MODEL INPUT...
#include <algorithm>
#include <fstream>
#include <iostream>
#include <numeric>

#include "app/commands/open_model.h"
#include "app/commands/pipeline_spec.h"
#include "app/commands/session.h"
#include "app/report/npy.h"
#include "app/report/output.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"
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
    arguments.Option("--output-layer", &output_layer_, "write what this layer gives, in place of predictions, as .npy into --output; the names of "
                     "its rows go to stdout").Takes("NAME");
    arguments.Option("--batch", &batch_, "pictures at a time").Positive().ShowsDefault();
    arguments.Flag("--skip-bad", &skip_bad_, "exit with 0 although pictures could not be read");
    arguments.Option("--labels", &labels_, "file with a class name per line, for models that hold none").Takes("FILE");
    arguments.Option("--size", &size_, "C,H,W of the input, for models that hold none").Takes("C,H,W");
    arguments.Examples("  mxtrain infer runs/latest photos\n  ls *.jpg | mxtrain infer runs/latest - --format csv --top-k 3\n"
                "  mxtrain infer zoo/lenet@10 digits --size 1,28,28\n"
                       "  mxtrain infer runs/latest photos --output-layer flatten0 --output features.npy > names.txt");
  }

  int Run(const CommonFlags& flags, report::Console& console) override {
    CheckFlags();
    auto [runtime, model] = OpenModel(flags, model_, console);
    Complete(&model);
    if (!output_layer_.empty()) model.symbol = LayerOf(model.symbol);
    const PipelineSpec spec = PipelineSpec::FromJson(model.info.pipeline);
    const std::vector<std::string> files = CollectPictures(inputs_, console);
    io::ImageListParam list;
    list.Init({}, "image_list");
    list.files = files;  // not through text: names of files may hold commas
    std::shared_ptr<const io::Source> source = io::NewImageListSource(list);
    auto iter = NewModelIter(*runtime, std::move(source), spec, model.info, std::min<int64_t>(batch_, static_cast<int64_t>(files.size())));
    Evaluation evaluation(*runtime, model.symbol, *iter, {}, nullptr, DeviceOf(flags));
    SetParameters(model, &evaluation.executor(), evaluation.MissingLabels());
    CatchSignals();
    if (output_layer_.empty()) {
      Predictions(flags, model, files, evaluation, *iter);
    } else {
      Features(flags, files, evaluation);
    }
    if (StopFlag() == 1) return 128 + StopSignal();
    return ReportBad(iter->stats().bad, static_cast<int64_t>(files.size()), skip_bad_, console);
  }

 private:
  void CheckFlags() const {
    if (output_layer_.empty()) return;
    if (output_.empty()) Throw(ErrorKind::kUsage, "--output-layer needs --output FILE.npy: features are no text");
    if (format_ != "table" || top_k_ != 1) Throw(ErrorKind::kUsage, "--format and --top-k are of predictions; --output-layer writes .npy");
  }

  // The part of the net that ends in the layer.
  Symbol LayerOf(const Symbol& net) const {
    const Symbol internals = net.GetInternals();
    const std::vector<std::string> known = internals.ListOutputs();
    for (const std::string& name : {output_layer_, output_layer_ + "_output"}) {
      if (std::find(known.begin(), known.end(), name) != known.end()) return internals[name];
    }
    std::vector<std::string> layers;
    for (const std::string& name : known) {
      if (name.ends_with("_output")) layers.push_back(name.substr(0, name.rfind('_')));
    }
    const std::string guess = DidYouMean(output_layer_, layers);
    Throw(ErrorKind::kUsage, "the model has no layer '{}'{}", output_layer_, guess.empty() ? format("; it has {}", join(layers, ", ")) : guess);
  }

  void Features(const CommonFlags& flags, const std::vector<std::string>& files, Evaluation& evaluation) const {
    const TShape batch = evaluation.executor().outputs()[0].shape();
    const TShape row(std::span(batch.begin() + 1, static_cast<size_t>(batch.ndim() - 1)));
    report::NpyWriter writer(output_, static_cast<int64_t>(files.size()), row);
    evaluation.Run(
        [&](const DataBatch& examples, const std::vector<NDArray>& outputs) {
          const std::vector<float> values = outputs[0].ToVector();
          for (int64_t i = 0; i < examples.count; ++i) writer.Write(examples.index[static_cast<size_t>(i)], values.data() + i * row.Size());
        },
        [] { return StopFlag() == 1; });
    writer.Finish();
    if (flags.json) {
      std::vector<int64_t> shape{static_cast<int64_t>(files.size())};
      shape.insert(shape.end(), row.begin(), row.end());
      std::cout << report::JsonText({{"file", output_}, {"shape", shape}, {"rows", files}}) << "\n";
    } else {
      for (const std::string& name : files) std::cout << name << "\n";
    }
  }

  void Predictions(const CommonFlags& flags, const Model& model, const std::vector<std::string>& files, Evaluation& evaluation, const DataIter& iter) {
    std::ofstream file;
    if (!output_.empty()) {
      file.open(output_);
      if (!file) Throw(ErrorKind::kFileSystem, "cannot write {}", output_);
    }
    std::ostream& out = output_.empty() ? std::cout : file;
    if (flags.json) format_ = "jsonl";
    const std::vector<std::string>& names = model.info.class_names;
    Header(out, files);
    evaluation.Run(
        [&](const DataBatch& batch, const std::vector<NDArray>& outputs) {
          for (const Prediction& p : Predict(batch, outputs[0], iter)) Print(out, names, p);
        },
        [] { return StopFlag() == 1; });
    out.flush();
    if (!out && !output_.empty()) Throw(ErrorKind::kFileSystem, "cannot write {}", output_);
  }

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
      out << report::JsonText({{"file", p.file}, {"predictions", best}}) << "\n";
    } else if (format_ == "csv") {
      out << report::QuoteCsv(p.file);
      for (const auto& [k, score] : p.best) out << format(",{},{}", report::QuoteCsv(name(k)), score);
      out << "\n";
    } else {
      out << format("{:<{}}", p.file, width_);
      for (const auto& [k, score] : p.best) out << format("  {} {:.4f}", name(k), score);
      out << "\n";
    }
  }

  std::string model_, format_ = "table", output_, output_layer_, labels_, size_;
  std::vector<std::string> inputs_;
  int top_k_ = 1;
  int64_t batch_ = 64;
  bool skip_bad_ = false;
  size_t width_ = 4;
};

}  // namespace

std::unique_ptr<Command> MakeInfer() { return std::make_unique<Infer>(); }

}  // namespace mxtrain::commands
