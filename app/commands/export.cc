// SPDX-License-Identifier: Apache-2.0
// mxtrain export MODEL OUTPUT
#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <iostream>
#include <optional>
#include <span>

#include "app/commands/command_list.h"
#include "app/commands/model_facts.h"
#include "app/commands/onnx_files.h"
#include "app/inference/bert_form.h"
#include "app/inference/cut_model.h"
#include "app/inference/gguf_model.h"
#include "app/inference/gpt2_form.h"
#include "app/inference/llama_form.h"
#include "app/inference/open_model.h"
#include "app/report/output.h"
#include "app/report/output_path.h"
#include "app/session/compute_modes.h"
#include "app/session/device_choice.h"
#include "app/session/pipeline_spec.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/read_json.h"
#include "mxtrain/io/text_files.h"
#include "mxtrain/ndarray/safetensors.h"

namespace mxtrain::commands {
namespace {

constexpr const char *kSafetensors = ".safetensors", *kOnnx = ".onnx", *kGguf = ".gguf";

class Export final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("export", "export a model for other programs");
    DeclareModel(arguments, &model_);
    arguments
        .Option(
            "output", &output_,
            "FILE.onnx: net and arrays for prediction; FILE.safetensors: parameters and auxiliary "
            "states; FILE.gguf: a language model with its tokenizer, for llama.cpp; PREFIX@N: net "
            "and arrays in MXNet's format")
        .Required()
        .Takes("OUTPUT");
    arguments.Flag("--overwrite", &overwrite_, "replace existing files");
    arguments
        .Option("--names", &names_,
                "of a .safetensors file: `own` names of the net, or those of `huggingface`, with a "
                "config.json beside it, for nets built like GPT-2, Llama or BERT; default: "
                "huggingface for nets with the names of layers of configs/text/gpt2_*.yaml, "
                "llama.yaml and bert_base.yaml, else own")
        .OneOf({"own", "huggingface"});
    arguments
        .Option("--type", &type_, "of a .gguf file: the type of its matrices; vectors stay float32")
        .OneOf({"float32", "float16", "bfloat16"})
        .ShowsDefault();
    onnx_.Declare(arguments);
    DeclareInputs(arguments, &inputs_);
    arguments.Examples(
        "  mxtrain export runs/latest lenet.onnx\n  mxtrain export runs/latest lenet.onnx "
        "--with-preprocessing --fold-batch-norm --float16\n  mxtrain export runs/latest "
        "lenet.safetensors\n  mxtrain export runs/latest zoo/lenet@10");
  }

  int Run(const CommonFlags& flags, console::Console& console) override {
    const bool safetensors = output_.ends_with(kSafetensors), onnx = output_.ends_with(kOnnx),
               gguf = output_.ends_with(kGguf);
    if (!safetensors && !onnx && !gguf && output_.find('@') == std::string::npos) {
      Throw(ErrorKind::kUsage,
            "'{}' does not name a format; use FILE.onnx, FILE.safetensors, FILE.gguf, or PREFIX@N "
            "for MXNet's files",
            output_);
    }
    if (!safetensors && !onnx && !gguf) CheckNumber();
    if (type_ != "float32" && !gguf)
      Throw(ErrorKind::kUsage, "--type is for FILE.gguf, not for {}", output_);
    if (!names_.empty() && !safetensors)
      Throw(ErrorKind::kUsage, "--names is for FILE.safetensors, not for {}", output_);
    onnx_.Check(onnx);
    const std::vector<std::string> read = inference::FilesOf(model_);
    report::RequireFree(
        safetensors || onnx || gguf
            ? std::vector{output_}
            : std::vector{Prefix() + "-symbol.json", ReferenceParamsFile(output_), LabelsFile()},
        read, overwrite_);
    auto [runtime, model, only_batch, unread, calibration] =
        inference::OpenModel(session::WithoutAutoGpu(flags), model_, inputs_, console.log());
    const int64_t batch = std::max<int64_t>(only_batch, 1);
    const std::string tokenizer =
        session::PipelineSpec::FromJson(model.info.pipeline).TokenizerText();
    if (!model.info.pipeline.empty()) {
      model.info.pipeline = session::PipelineSpec::FromJson(model.info.pipeline)
                                .OfPrediction()
                                .WithoutPaths()
                                .ToJson();
    }
    std::vector<std::string> files;
    const std::string folder = std::filesystem::path(output_).parent_path().string();
    if (!folder.empty() && !onnx) MakeFolders(folder);
    if (onnx) {
      inference::RemoveLabels(runtime->operators(), &model, console.logger());
      const std::string bytes =
          onnx_.Write(model, batch, calibration, runtime->operators(), console);
      if (!folder.empty()) MakeFolders(folder);
      WriteFileAtomically(output_, bytes);
      files = {output_};
    } else if (safetensors) {
      files = WriteSafetensors(model, folder, tokenizer, read);
    } else if (gguf) {
      inference::GgufOf(model, tokenizer, ParseDType(type_)).Write(output_);
      files = {output_};
    } else {
      if (model.info.modes.empty()) model.info.modes = session::ModesInConfig(model.info.config);
      files = SaveMxnetModel(output_, model);
      const std::string labels = WriteLabels(model);
      if (!labels.empty()) files.push_back(labels);
      if (!model.info.pipeline.empty()) console.Message(LogLevel::kInfo, HowToUse(model, batch));
    }
    if (flags.json) {
      std::cout << report::JsonText({{"files", files}}) << std::endl;
    } else {
      for (const std::string& file : files) std::cout << report::ListedName(file) << "\n";
    }
    return 0;
  }

 private:
  // The files written.
  std::vector<std::string> WriteSafetensors(const Model& model, const std::string& folder,
                                            const std::string& tokenizer,
                                            std::span<const std::string> read) const {
    std::optional<TheirForm> form;
    if (names_ != "own") form = TheirFormOf(model);
    std::vector<std::string> files = {output_};
    std::map<std::string, NDArray> arrays = model.args;
    arrays.insert(model.auxs.begin(), model.auxs.end());
    if (form) {
      arrays = inference::RenamedArrays(form->arrays, model);
      files.push_back((std::filesystem::path(folder) / "config.json").string());
      RequireFreeConfig(files[1], read);
      std::optional<text::TokenId> end;
      if (!tokenizer.empty())
        end = io::SeparatorOf(*text::TokenizerFromText(tokenizer, model.file));
      WriteFileAtomically(files[1], report::JsonText(form->config(end), 2) + "\n");
    }
    WriteFileAtomically(
        output_,
        SerializeSafetensors(arrays, {{"format", "pt"},
                                      {"net", model.symbol.ToJson()},
                                      {"pipeline", model.info.pipeline},
                                      {"classes", report::JsonText(model.info.class_names)}}));
    return files;
  }

  // As which the model is written under the names of Hugging Face, if it is.
  struct TheirForm {
    std::vector<inference::PublishedArray> arrays;
    std::function<Json(std::optional<text::TokenId> end_of_text)> config;
  };
  template <typename Form>
  static TheirForm AsTheirs(const Form& form) {
    return {form.arrays, [form](std::optional<text::TokenId> end) { return form.ConfigJson(end); }};
  }
  std::optional<TheirForm> TheirFormOf(const Model& model) const {
    std::optional<TheirForm> form;
    const Expected<inference::Gpt2Form, Refusal> gpt2 = inference::Gpt2FormOf(model);
    if (gpt2) form = AsTheirs(*gpt2);
    const Expected<inference::LlamaForm, Refusal> llama = inference::LlamaFormOf(model);
    if (llama) form = AsTheirs(*llama);
    const Expected<inference::BertForm, Refusal> bert = inference::BertFormOf(model);
    if (bert) {
      form = {bert->arrays, [config = bert->ConfigJson(model.info.class_names)](
                                std::optional<text::TokenId>) { return config; }};
    }
    if (!names_.empty() && !form) {
      Throw(ErrorKind::kUsage,
            "--names huggingface: {} is built like none of the nets that are written so: like "
            "GPT-2 it is not because {}; like Llama it is not because {}; like BERT with a "
            "classifier it is not because {}",
            model.file, gpt2.error().reason, llama.error().reason, bert.error().reason);
    }
    if (!form || (names_.empty() && !inference::HaveUsualNames(form->arrays))) return std::nullopt;
    return form;
  }

  // The name config.json is not the user's choice, so with --overwrite, too, no file but an earlier
  // export is replaced.
  void RequireFreeConfig(const std::string& path, std::span<const std::string> read) const {
    constexpr size_t kMostBytes = size_t{1} << 20;
    if (!std::filesystem::exists(path)) return;
    const Expected<FileJson, Refusal> old = ReadJson<FileJson>(ReadFile(path, kMostBytes));
    const FileJson type =
        old && old->is_object() ? old->value("model_type", FileJson()) : FileJson();
    for (const char* written : {"gpt2", "llama", "mistral", "bert"}) {
      if (type == written) return report::RequireFree(std::array{path}, read, overwrite_);
    }
    Throw(ErrorKind::kUsage,
          "{} would be replaced, and is not of an earlier export; export into a folder of its own",
          path);
  }

  void CheckNumber() const {
    const std::string number = output_.substr(output_.rfind('@') + 1);
    const bool good = !number.empty() && number.size() <= 9 &&
                      number.find_first_not_of("0123456789") == std::string::npos;
    if (!good)
      Throw(ErrorKind::kUsage, "'{}': N in PREFIX@N is a number from 0, got '{}'", output_, number);
  }

  // PREFIX-labels.txt, one class per line; "" for a model without names.
  std::string WriteLabels(const Model& model) const {
    if (model.info.class_names.empty()) return "";
    std::string text;
    for (const std::string& name : model.info.class_names)
      text +=
          (name.find_first_of("\r\n") == std::string::npos ? name : report::Printable(name)) + "\n";
    WriteFileAtomically(LabelsFile(), text);
    return LabelsFile();
  }
  std::string LabelsFile() const { return Prefix() + "-labels.txt"; }
  std::string Prefix() const { return output_.substr(0, output_.rfind('@')); }  // of PREFIX@N

  // The files tell this program how to prepare inputs; users of other programs must be told.
  std::string HowToUse(const Model& model, int64_t batch) const {
    const std::string chain = PreprocessingText(model);
    const std::string use = format("mxtrain infer {} INPUT prepares its input like the run",
                                   report::QuoteShell(output_));
    if (chain.empty()) return use;
    std::string text = format("{}; for another program: {}", use, chain);
    for (const tasks::OutputMeaning& meaning : MeaningsOf(model, batch))
      text += "; output: " + meaning.text;
    return text;
  }

  std::string model_, output_, names_, type_ = "float32";
  std::vector<std::string> inputs_;
  OnnxExport onnx_;
  bool overwrite_ = false;
};

}  // namespace

MXTRAIN_COMMAND(export, list) {
  list.Add(HelpGroup::kModel, 60, std::make_unique<Export>());
}

}  // namespace mxtrain::commands
