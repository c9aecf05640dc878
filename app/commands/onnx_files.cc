// SPDX-License-Identifier: Apache-2.0
#include "app/commands/onnx_files.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "app/inference/open_model.h"
#include "app/report/list_item.h"
#include "app/report/output.h"
#include "app/session/head_tasks.h"
#include "app/session/pipeline_spec.h"
#include "app/tasks/task_list.h"
#include "mxtrain/base/error.h"
#include "mxtrain/io/augmenter.h"
#include "mxtrain/onnx/export.h"
#include "mxtrain/onnx/model_file.h"
#include "mxtrain/onnx/preprocessing.h"
#include "mxtrain/onnx/standardization.h"
#include "mxtrain/onnx/thresholds.h"
#include "mxtrain/text/text_encoder.h"
#include "mxtrain/text/tokenizer.h"
#include "mxtrain/train/loss_report.h"

namespace mxtrain::commands {
namespace {

// The parameters of a transform by name, as written or by default.
class StepParams {
 public:
  explicit StepParams(const io::TransformSpec& spec) : spec_(spec) {
    const std::vector<io::TransformInfo> known = io::ListTransforms();
    const auto info = std::ranges::find(known, spec.name, &io::TransformInfo::name);
    if (info == known.end()) Throw(ErrorKind::kConfig, "there is no transform '{}'", spec.name);
    for (const FieldInfo& field : info->parameters) values_[field.name] = field.default_text;
    for (const auto& [key, value] : spec.kwargs)
      values_[key.empty() ? info->parameters.front().name : key] = value;
  }

  const std::string& Text(const std::string& name) const { return values_.at(name); }
  bool Is(const std::string& name, const std::string& value) const { return Text(name) == value; }
  template <typename T>
  T Get(const std::string& name) const {
    T value{};
    params::Parse(Text(name), &value);
    return value;
  }
  [[noreturn]] void Refuse(const std::string& why) const {
    Throw(ErrorKind::kConfig,
          "the transform {} cannot be exported to ONNX: {}; export without --with-preprocessing",
          spec_.name, why);
  }

 private:
  const io::TransformSpec& spec_;
  std::map<std::string, std::string> values_;
};

onnx::PixelStep StepOf(const io::TransformSpec& spec) {
  const StepParams params(spec);
  onnx::PixelStep step;
  if (spec.name != "resize" && spec.name != "center_crop")
    params.Refuse("only resize, center_crop and normalize have equivalents");
  if (!params.Is("rounding", "torchvision"))
    params.Refuse("sizes and positions are rounded as in older checkpoints");
  const bool crop = spec.name == "center_crop";
  const auto size = params.Get<TShape>("size");
  step.height = size.ndim() > 0 ? size[0] : 0;
  step.width = size.ndim() > 0 ? size[size.ndim() - 1] : 0;
  if (crop) {
    step.fraction = params.Get<double>("fraction");
    step.kind = step.fraction > 0 ? onnx::PixelStep::kCenterFraction : onnx::PixelStep::kCenterCrop;
    return step;
  }
  step.kind = size.ndim() == 1 ? onnx::PixelStep::kResizeShorter : onnx::PixelStep::kResize;
  step.antialias = params.Get<bool>("antialias");
  static constexpr std::pair<const char*, onnx::PixelStep::Method> kMethods[] = {
      {"bilinear", onnx::PixelStep::kLinear},
      {"bicubic", onnx::PixelStep::kCubic},
      {"cubic", onnx::PixelStep::kCubic},
      {"area", onnx::PixelStep::kArea},
      {"auto", onnx::PixelStep::kAuto}};
  const auto method = std::ranges::find_if(
      kMethods, [&params](const auto& each) { return params.Is("interpolation", each.first); });
  if (method == std::end(kMethods))
    params.Refuse(format("interpolation {} has no equivalent", params.Text("interpolation")));
  // auto with antialias is bilinear.
  step.method = method->second == onnx::PixelStep::kAuto && step.antialias
                    ? onnx::PixelStep::kLinear
                    : method->second;
  return step;
}

onnx::Preprocessing PreprocessingOf(const Model& model) {
  onnx::Preprocessing result;
  if (model.info.pipeline.empty())
    Throw(ErrorKind::kConfig,
          "{} does not say how its input is prepared; export without --with-preprocessing",
          model.file);
  const session::PipelineSpec spec = session::PipelineSpec::FromJson(model.info.pipeline);
  if (model.info.inputs.size() != 1 || model.info.inputs[0].shape.ndim() != 3)
    Throw(ErrorKind::kConfig,
          "--with-preprocessing is for models with one input of images [C, H, W]");
  if (spec.bits > 8)
    Throw(ErrorKind::kConfig,
          "--with-preprocessing: the model would take 8 bits per channel, but {} was trained with "
          "data.bits: {}; export without it",
          model.file, spec.bits);
  for (const io::TransformSpec& transform : spec.transforms) {
    if (transform.name != "normalize") result.steps.push_back(StepOf(transform));
  }
  const io::Augmenter augmenter(spec.transforms, static_cast<int>(model.info.inputs[0].shape[0]));
  for (const double value : augmenter.normalization().mean)
    result.mean.push_back(static_cast<float>(value));
  for (const double value : augmenter.normalization().std)
    result.std.push_back(static_cast<float>(value));
  return result;
}

// Whether images may be decoded otherwise than other programs do it.
bool DecodesSmaller(const std::string& pipeline) {
  const session::PipelineSpec spec = session::PipelineSpec::FromJson(pipeline);
  return !spec.exact_decode && std::ranges::any_of(spec.transforms, [](const auto& transform) {
    return transform.name == "resize";
  });
}

std::set<std::string> NamesOf(const Model& model) {
  std::set<std::string> names;
  for (const auto* arrays : {&model.args, &model.auxs}) {
    for (const auto& [name, array] : *arrays) names.insert(name);
  }
  return names;
}

// How the numbers of a table were standardized, by input and output of the net.
struct TableUnits {
  std::map<std::string, Standardization> inputs, outputs;
  bool fills_missing = false;  // a missing number is the mean of its column
};

// What missing numbers become is given after the transforms of columns, which the file will do.
void RestoreMeans(session::PipelineSpec* spec) {
  std::vector<std::string> means, restored;  // FIELD=MEAN
  params::Parse(spec->TextOf("field_means"), &means);
  std::map<std::string, size_t> columns;  // of each field so far
  for (const std::string& item : means) {
    const std::string field = item.substr(0, item.find('='));
    const size_t column = columns[field]++;
    const std::optional<Standardization> units = spec->UnitsOf(field);
    double mean = 0;
    params::Parse(item.substr(field.size() + 1), &mean);
    if (units && !units->transforms.empty()) mean = units->transforms[column].Invert(mean);
    restored.push_back(format("{}={}", field, params::Print(mean)));
  }
  for (auto& [key, text] : spec->source_params) {
    if (key == "field_means") text = params::Print(restored);
  }
}

// Takes it from what the model says of its data: its file will do it.
TableUnits TakeUnits(Model* model, int64_t batch) {
  session::PipelineSpec spec = session::PipelineSpec::FromJson(model->info.pipeline);
  if (!spec.IsTable()) return {};
  TableUnits units;
  units.fills_missing = spec.TextOf("missing") == "mean";
  for (const InputInfo& input : model->info.inputs) {
    if (const auto of = spec.UnitsOf(input.name)) units.inputs.emplace(input.name, *of);
  }
  const std::vector<std::string> names = model->symbol.ListOutputs();
  for (const tasks::Head& head :
       session::HeadsOf(*model, spec, inference::ShapesOf(*model, batch))) {
    if (!head.is_value_of_loss() && head.facts.units)
      units.outputs.emplace(names[static_cast<size_t>(head.output)], *head.facts.units);
  }
  const bool fills = spec.TextOf("missing") == "mean";
  if (fills) RestoreMeans(&spec);
  std::erase_if(spec.source_params, [fills](const auto& param) {
    return param.first == "field_stds" || param.first == "field_transforms" ||
           (param.first == "field_means" && !fills);
  });
  model->info.pipeline = spec.ToJson();
  return units;
}

// A file that takes float32 standardizes what float32 holds; the source of tables does it before.
void WarnOfLostDigits(const TableUnits& units, console::Console& console) {
  constexpr double kTold = 1.0 / (1 << 10);
  for (const auto& [input, of] : units.inputs) {
    for (size_t k = 0; k < of.mean.size(); ++k) {
      if (std::abs(of.mean[k]) * std::numeric_limits<float>::epsilon() <= of.std[k] * kTold)
        continue;
      console.Message(
          LogLevel::kWarning,
          format("column {} of '{}' has numbers about {:.9g} with a deviation of {:.3g}: "
                 "the file takes float32, which does not tell them apart, and predicts "
                 "otherwise than `infer`; train on a column from which a constant is "
                 "subtracted",
                 k + 1, input, of.mean[k], of.std[k]));
    }
  }
}

// Those of heads, by the names of their outputs.
onnx::OutputThresholds ThresholdsOf(const Model& model, int64_t batch,
                                    const inference::Thresholds& of_heads) {
  onnx::OutputThresholds thresholds;
  if (of_heads.empty()) return thresholds;
  const session::PipelineSpec spec = session::PipelineSpec::FromJson(model.info.pipeline);
  const std::vector<std::string> names = model.symbol.ListOutputs();
  for (const tasks::Head& head : session::HeadsOf(model, spec, inference::ShapesOf(model, batch))) {
    const auto own = of_heads.find(head.name);
    if (own != of_heads.end() && !head.is_value_of_loss())
      thresholds.emplace(names[static_cast<size_t>(head.output)], own->second);
  }
  return thresholds;
}

// The outputs of scores of classes of which an example may have several.
std::vector<std::string> MultilabelOutputs(const Model& model) {
  const std::vector<std::string> names = model.symbol.ListOutputs();
  std::vector<std::string> outputs;
  const LossReport losses(model.symbol);
  for (const LossReport::Head& head : losses.heads()) {
    if (head.kind == LossReport::Head::Kind::kLogistic)
      outputs.push_back(names[static_cast<size_t>(head.output)]);
  }
  return outputs;
}

// Words by input and column, in the order of their codes, from 1.
Json CategoriesOf(const Model& model, const session::PipelineSpec& spec) {
  Json categories = Json::object();
  for (const InputInfo& input : model.info.inputs) {
    const std::vector<std::string> columns = spec.ColumnsOf(input.name);
    for (const auto& [column, words] : spec.WordsOf(input.name))
      categories[input.name][columns.at(column)] = words;
  }
  return categories;
}

// The transforms but `normalize`.
std::string TransformsText(const session::PipelineSpec& spec) {
  std::string text;
  for (const io::TransformSpec& transform : spec.transforms) {
    if (transform.name == "normalize") continue;
    text += (text.empty() ? "" : ", ") + transform.name;
    for (const auto& [key, value] : transform.kwargs) text += format(" {}={}", key, value);
    if (transform.name == "letterbox") text += " (the image at the upper left)";
  }
  return text;
}

// What becomes of an image until the net reads it.
std::string PixelsText(const session::PipelineSpec& spec, const InputInfo& input) {
  const std::string transforms = TransformsText(spec);
  const int64_t channels = input.shape[0];
  const auto levels = io::Augmenter(spec.transforms, static_cast<int>(channels)).normalization();
  return format(
      "{} pixels, upright (EXIF orientation applied){}{}, (pixel / {} - mean) / std with "
      "mean=({:.9g}) std=({:.9g}), float32 [N, {}, {}, {}]",
      channels == 1   ? "gray"
      : channels == 3 ? "RGB"
                      : "image",
      transforms.empty() ? "" : ", ", transforms,
      spec.bits > 8 ? "255 or, of 16 bits, 65535" : "255", fmt::join(levels.mean, ", "),
      fmt::join(levels.std, ", "), channels, input.shape[1], input.shape[2]);
}

bool IsImageOfTable(const session::PipelineSpec& spec, const InputInfo& input) {
  constexpr int kAxes = 3;
  std::vector<std::string> images;
  if (const std::string text = spec.TextOf("picture_fields"); !text.empty())
    params::Parse(text, &images);
  return input.shape.ndim() == kAxes && std::ranges::find(images, input.name) != images.end();
}

std::string PreprocessingOfTable(const Model& model, const session::PipelineSpec& spec) {
  std::vector<std::string> means;  // FIELD=MEAN
  if (spec.TextOf("missing") == "mean") params::Parse(spec.TextOf("field_means"), &means);
  const auto has_means = [&means](const std::string& field) {
    return std::ranges::any_of(
        means, [&](const std::string& item) { return item.starts_with(field + "="); });
  };
  std::string text;
  for (const InputInfo& input : model.info.inputs) {
    if (IsImageOfTable(spec, input)) {
      text += format("{}'{}': {} of the table, images: {}", text.empty() ? "" : "; ", input.name,
                     report::ColumnsText(spec.ColumnsOf(input.name)), PixelsText(spec, input));
      continue;
    }
    std::vector<int64_t> dims(input.shape.begin(), input.shape.end());
    text += format("{}'{}' [{}]: {} of the table", text.empty() ? "" : "; ", input.name,
                   dims.empty() ? "N" : format("N, {}", fmt::join(dims, ", ")),
                   report::ColumnsText(spec.ColumnsOf(input.name)));
    const std::optional<Standardization> units = spec.UnitsOf(input.name);
    text +=
        units ? format(", each standardized, ({} - mean) / std with {}",
                       units->transforms.empty() ? "x" : "transform(x)", report::UnitsText(*units))
              : format(", as they are{}",
                       has_means(input.name) ? ", nan where a cell is missing" : "");
    if (!spec.WordsOf(input.name).empty())
      text +=
          "; words as codes, from 1 in the order of `categories` in the metadata, and 0 for others";
  }
  return text;
}

std::string PreprocessingOfTexts(const Model& model, const session::PipelineSpec& spec) {
  const text::TextEncoder encoder = text::TextEncoder::FromText(spec.EncoderText(), model.file);
  const InputInfo& input = model.info.inputs[0];
  return format(
      "'{}' [N, {}]: ids of texts as numbers, {}{}{}, cut, or padded at the end with {}; "
      "`text_encoder` in the metadata holds the tokenizer",
      input.name, input.shape.ndim() > 0 ? input.shape[0] : 1, encoder.Describe(),
      encoder.options().lowercase ? ", in small letters" : "",
      encoder.options().split_punctuation ? ", punctuation marks apart" : "", encoder.padding());
}

std::string PreprocessingOfTokens(const Model& model, const session::PipelineSpec& spec) {
  const text::TokenizerPtr tokenizer = text::TokenizerFromText(spec.TokenizerText(), model.file);
  const InputInfo& input = model.info.inputs[0];
  return format(
      "'{}' [N, {}]: ids of tokens as numbers, {}; `tokenizer` in the metadata holds the tokenizer",
      input.name, input.shape.ndim() > 0 ? input.shape[0] : 1, tokenizer->Describe());
}

}  // namespace

std::vector<tasks::OutputMeaning> MeaningsOf(const Model& model, int64_t batch) {
  std::vector<tasks::OutputMeaning> meanings;
  const session::PipelineSpec spec = session::PipelineSpec::FromJson(model.info.pipeline);
  std::vector<tasks::Head> heads = session::HeadsOf(model, spec, inference::ShapesOf(model, batch));
  std::erase_if(heads, [](const tasks::Head& head) { return head.is_value_of_loss(); });
  for (const auto& task : tasks::TasksOf(heads, spec.task)) {
    if (auto meaning = task->MeaningOfOutput()) meanings.push_back(std::move(*meaning));
  }
  return meanings;
}

std::string PreprocessingText(const Model& model) {
  const session::PipelineSpec spec = session::PipelineSpec::FromJson(model.info.pipeline);
  if (spec.NeedsTable()) return PreprocessingOfTable(model, spec);
  if (!spec.EncoderText().empty() && !model.info.inputs.empty())
    return PreprocessingOfTexts(model, spec);
  if (!spec.TokenizerText().empty() && !model.info.inputs.empty())
    return PreprocessingOfTokens(model, spec);
  const std::vector<InputInfo>& inputs = model.info.inputs;
  const bool one_image = inputs.size() == 1 && inputs[0].shape.ndim() == 3;
  return one_image ? PixelsText(spec, inputs[0]) : TransformsText(spec);
}

void OnnxExport::Declare(Arguments& arguments) {
  arguments.Flag(
      "--with-preprocessing", &with_preprocessing_,
      "for .onnx: the model takes uint8 pixels [N, height, width, channels] and resizes, "
      "crops and normalizes them itself");
  arguments.Flag("--fold-batch-norm", &fold_batch_norm_,
                 "for .onnx: multiply batch norms into the weights before them");
  arguments.Flag("--float16", &float16_,
                 "for .onnx: store arrays in float16, half the size; arithmetic stays float32");
}

void OnnxExport::Check(bool onnx) const {
  if (!onnx && (with_preprocessing_ || fold_batch_norm_ || float16_))
    Throw(ErrorKind::kUsage,
          "--with-preprocessing, --fold-batch-norm and --float16 are for FILE.onnx");
  if (onnx && !onnx::HasOnnxFiles()) onnx::ReadModel("");  // says why
}

std::string OnnxExport::Write(Model model, int64_t batch,
                              const inference::HeadCalibration& calibration,
                              const OperatorRegistry& operators, console::Console& console) const {
  std::optional<onnx::Preprocessing> preprocessing;  // refused before anything is said
  if (with_preprocessing_) preprocessing = PreprocessingOf(model);
  const onnx::OutputThresholds thresholds = ThresholdsOf(model, batch, calibration.thresholds);
  const TableUnits units = TakeUnits(&model, batch);
  onnx::ExportRequest request;
  request.operators = &operators;
  request.symbol = model.symbol;
  request.args = &model.args;
  request.auxs = &model.auxs;
  for (const InputInfo& input : model.info.inputs) {
    if (!input.shape.known())
      Throw(ErrorKind::kUsage,
            "{} does not define the size of its input '{}'; export a run or a checkpoint",
            model.file, input.name);
    request.inputs.push_back({input.name, input.shape, input.type});
  }
  request.metadata["classes"] = report::JsonText(model.info.class_names);
  if (!model.info.pipeline.empty()) {
    request.metadata["pipeline"] = model.info.pipeline;
    const session::PipelineSpec spec = session::PipelineSpec::FromJson(model.info.pipeline);
    const std::string encoder = spec.EncoderText(), tokenizer = spec.TokenizerText();
    if (!encoder.empty()) request.metadata["text_encoder"] = encoder;
    if (!tokenizer.empty()) request.metadata["tokenizer"] = tokenizer;
    request.metadata["preprocessing"] =
        with_preprocessing_ ? "in the model, which takes RGB pixels, uint8 [N, height, width, "
                              "channels], upright (EXIF orientation applied)"
                            : PreprocessingText(model);
    if (const Json categories = CategoriesOf(model, spec); !categories.empty())
      request.metadata["categories"] = report::JsonText(categories);
    const std::string& text = request.metadata["preprocessing"];
    if (!text.empty()) console.Message(LogLevel::kInfo, "input: " + text);
  }
  for (const tasks::OutputMeaning& meaning : MeaningsOf(model, batch)) {
    std::string& text = request.metadata[meaning.key];
    if (meaning.key != "classes") text += (text.empty() ? "" : "; ") + meaning.text;
    console.Message(LogLevel::kInfo,
                    format("output: {}; the metadata of the file hold `preprocessing` and `{}`",
                           meaning.text, meaning.key));
  }
  if (!calibration.temperatures.empty()) {
    request.metadata["temperatures"] = report::JsonText(Json(calibration.temperatures));
    console.Message(LogLevel::kInfo,
                    "scores are divided by the temperature in the model, as `infer` does");
  }
  if (const std::vector<std::string> outputs = MultilabelOutputs(model); !outputs.empty())
    request.metadata["multilabel"] = report::JsonText(outputs);
  if (!thresholds.empty()) request.metadata["thresholds"] = report::JsonText(Json(thresholds));
  onnx::Model file = onnx::ExportModel(request);
  if (!model.info.pipeline.empty() && DecodesSmaller(model.info.pipeline)) {
    console.Message(LogLevel::kInfo,
                    "large JPEG files are decoded at a smaller size here, and whole by other "
                    "programs, so that scores may differ; data.exact_decode: true in training "
                    "avoids it");
  }
  if (fold_batch_norm_) {
    const int folded = onnx::FoldBatchNorm(&file);
    console.Message(LogLevel::kInfo, format("folded {} batch norms into weights", folded));
  }
  if (float16_) onnx::StoreInFloat16(&file, NamesOf(model));
  if (preprocessing) onnx::AddPreprocessing(*preprocessing, &file);
  onnx::AddStandardization(units.inputs, units.outputs, units.fills_missing, &file);
  if (!units.inputs.empty() || !units.outputs.empty()) {
    console.Message(LogLevel::kInfo,
                    "the model standardizes the numbers of the table itself, and gives numbers in "
                    "their own units");
  }
  WarnOfLostDigits(units, console);
  for (const auto& [scores, labels] : onnx::AddThresholds(thresholds, &file)) {
    console.Message(
        LogLevel::kInfo,
        format("output: '{}' [N, classes] is 1 where '{}' is at least the threshold of the class, "
               "else 0; the metadata of the file hold `thresholds`",
               labels, scores));
  }
  return onnx::WriteModel(std::move(file));
}

}  // namespace mxtrain::commands
