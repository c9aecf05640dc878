// SPDX-License-Identifier: Apache-2.0
#include "app/config/document.h"

#include <doctest/doctest.h>

#include "app/config/load.h"
#include "app/config/schema.h"
#include "config_test.h"
#include "mxtrain/base/json.h"
#include "shape_operators.h"

namespace mxtrain::test {
namespace {

using config::Value;

// What every configuration needs, without `train`.
const std::string kNet =
    "net: {input: [4], layers: [{FullyConnected: {num_hidden: 2}}, SoftmaxOutput]}\n";
const std::string kRest = kNet + "data: {train: {source: mnist, path: digits}}\n";

TEST_CASE("precedence: command line, later files, earlier files, included files") {
  TemporaryFolder folder;
  folder.Write("parts/base.yaml",
               "train: {epochs: 1, max_steps: 7, optimizer: {lr: 0.5, momentum: 0.1}}\nseed: 3\n");
  folder.Write("parts/middle.yaml", "include: base.yaml\ntrain: {epochs: 2}\n");
  folder.Write("main.yaml",
               "include: [parts/middle.yaml]\ntrain: {optimizer: {lr: 0.25}}\n" + kRest);
  folder.Write("more.yaml", "train: {save: {every: 500steps}}\n");
  config::LoadRequest request;
  request.files = {"main.yaml", "more.yaml"};
  request.overrides = {"train.save.keep=9", "data.batch_size=8"};
  request.working_folder = folder.path();
  auto sources = std::make_shared<config::SourceMap>();
  config::Diagnostics diagnostics(sources);
  const config::LoadedConfig loaded = config::LoadConfig(request, &diagnostics);
  CHECK(config::Render(diagnostics.Sorted(), *sources) == "");
  const config::Config& c = loaded.config;
  CHECK(c.name == "main");
  CHECK(c.seed == 3);
  CHECK(c.train.epochs == 2);
  CHECK(c.train.max_steps == 7);
  CHECK(c.train.optimizer.params == Kwargs{{"lr", "0.25"}, {"momentum", "0.1"}});
  CHECK(c.train.save.every == config::Interval{500, config::Interval::Unit::kSteps});
  CHECK(c.train.save.keep == 9);
  CHECK(c.data.batch_size == 8);
  CHECK(c.data.train.path() == (folder.path() / "digits").string());

  const std::string origins = config::OriginText(loaded.origins, *sources);
  auto origin_of = [&](const std::string& key) {
    for (const config::KeyOrigin& origin : loaded.origins) {
      if (origin.path == key) return sources->Origin(origin.place);
    }
    return std::string("absent");
  };
  CHECK(origin_of("train.epochs") == "parts/middle.yaml:2:17");
  CHECK(origin_of("train.optimizer.momentum") == "parts/base.yaml:1:65");
  CHECK(origin_of("train.save.keep") == "command line");
  CHECK(origin_of("data.workers") == "default");
  CHECK(origin_of("net.layers.0.FullyConnected.num_hidden") == "main.yaml:3:58");
  CHECK(origins.find("train.save.every") != std::string::npos);
}

TEST_CASE("a command line value for a section sets its selector key and keeps the others") {
  TemporaryFolder folder;
  folder.Write("main.yaml", kRest +
                                "train: {weights: {file: a.safetensors, map: names.yaml}, save: "
                                "{every: 2epochs, keep: 7}, "
                                "best: {metric: accuracy}, optimizer: {name: adam, beta1: 0.5}}\n");
  config::LoadRequest request;
  request.files = {"main.yaml"};
  request.overrides = {"train.weights=b.safetensors", "train.save=500steps",
                       "train.best=[accuracy]", "train.optimizer=sgd"};
  request.working_folder = folder.path();
  auto sources = std::make_shared<config::SourceMap>();
  config::Diagnostics diagnostics(sources);
  const config::TrainConfig train = config::LoadConfig(request, &diagnostics).config.train;
  CHECK(config::Render(diagnostics.Sorted(), *sources) == "");
  CHECK(train.weights.file == (folder.path() / "b.safetensors").string());
  CHECK(train.weights.map == (folder.path() / "names.yaml").string());
  CHECK(train.save.every == config::Interval{500, config::Interval::Unit::kSteps});
  CHECK(train.save.keep == 7);
  CHECK(train.best.metric == std::vector<std::string>{"accuracy"});
  CHECK(train.optimizer.name == "sgd");  // no section: one kind in place of another
  request.overrides = {"train.weights=null"};
  CHECK(config::LoadConfig(request, &diagnostics).config.train.weights.map.empty());
}

TEST_CASE("a map on the command line replaces all that the files say of its key") {
  const auto load = [](const std::string& data, const std::string& train,
                       std::vector<std::string> overrides) {
    const Outcome o = LoadText(format("{}data: {{train: {{source: image_folder, path: x}}, {}}}\n"
                                      "train: {{{}}}\n",
                                      kNet, data, train),
                               std::move(overrides));
    CHECK(o.text == "");
    return o.loaded;
  };
  const std::string split = "val: {split: 0.1, stratified: false, shuffle: true}";
  const std::string folder = "val: {source: image_folder, path: y, transforms: [flip]}";
  // One way to validate in place of another, whichever it was.
  config::SourceConfig val =
      load(split, "", {"data.val={source: image_folder, path: /z}"}).config.data.val;
  CHECK(val.source == "image_folder");
  CHECK(val.path() == "/z");
  CHECK_FALSE(val.shuffle);
  val = load(folder, "", {"data.val={folds: 3}", "data.val.fold=1"}).config.data.val;
  CHECK(val.source.empty());
  CHECK(val.transforms.empty());
  CHECK(val.folds == 3);
  CHECK(val.fold == 1);
  // The parameters of one kind are not those of another.
  const config::LoadedConfig adam =
      load(split, "optimizer: {name: sgd, lr: 0.1, momentum: 0.9}, save: {every: 2epochs, keep: 7}",
           {"train.optimizer={name: adam, lr: 0.001}", "train.save={every: 500steps}"});
  CHECK(adam.config.train.optimizer.name == "adam");
  CHECK(adam.config.train.optimizer.params == Kwargs{{"lr", "0.001"}});
  CHECK(adam.config.train.save.keep == 3);  // the default
  CHECK(adam.config.data.val.holdout == 0.1);
}

TEST_CASE("errors in an included file name it; the resolved configuration stands alone") {
  TemporaryFolder folder;
  const std::string blocks =
      "blocks:\n  dense:\n    params: {width}\n    layers:\n"
      "      - FullyConnected: {num_hidden: ";
  folder.Write("common/blocks.yaml", blocks + "\"${width}\"}\n");
  folder.Write("common/bare.yaml", blocks + "${width}}\n");
  folder.Write("common/wrong.yaml", blocks + "\"${widht}\"}\n");
  const auto load = [&folder](const std::string& file) {
    config::LoadRequest request;
    request.files = {file};
    request.working_folder = folder.path();
    return LoadAndBuild(request, *ShapeOperators());
  };
  for (const char* included : {"blocks", "bare", "wrong"}) {
    folder.Write(format("nets/{}.yaml", included),
                 format("include: ../common/{}.yaml\nnet: {{input: [4], layers: [{{dense: {{width: "
                        "3}}}}, SoftmaxOutput]}}\ndata: {{train: {{source: mnist, path: x}}}}\n",
                        included));
  }
  const Outcome good = load("nets/blocks.yaml");
  CHECK(good.text == "");
  CHECK(load("nets/bare.yaml")
            .text.find("common/bare.yaml:5:38: error: quote \"${width}\" inside {...} or [...]: "
                       "YAML reads { as the beginning of a mapping\n") != std::string::npos);
  CHECK(load("nets/wrong.yaml")
            .text.find("common/wrong.yaml:5:41: error: there is no 'widht' "
                       "here\n") != std::string::npos);
  folder.Write("alone/config.yaml", config::ToYaml(good.loaded.resolved));
  const Outcome alone = load("alone/config.yaml");
  CHECK(alone.text == "");
  CHECK(alone.net.symbol.ListArguments() == good.net.symbol.ListArguments());
}

TEST_CASE("a long chain of includes is not taken for a circle") {
  TemporaryFolder folder;
  for (int i = 0; i < 30; ++i)
    folder.Write(std::to_string(i) + ".yaml", "include: " + std::to_string(i + 1) + ".yaml\n");
  folder.Write("30.yaml", "seed: 1\n");
  config::LoadRequest request;
  request.files = {"0.yaml"};
  request.working_folder = folder.path();
  config::Diagnostics diagnostics(std::make_shared<config::SourceMap>());
  try {
    config::LoadConfig(request, &diagnostics);
  } catch (const config::DiagnosticError&) {
  }
  const std::string text = config::Render(diagnostics.Sorted(), diagnostics.sources());
  CHECK(text.find("files include one another more than 20 deep") != std::string::npos);
  CHECK(text.find("includes itself") == std::string::npos);
}

TEST_CASE("null removes values of an included file: a variable, a parameter of another kind") {
  TemporaryFolder folder;
  folder.Write(
      "base.yaml",
      "vars: {width: 2, classes: 7}\ntrain: {lr_schedule: {name: cosine, warmup_epochs: 5}}\n"
      "net: {input: [4], layers: [{FullyConnected: {num_hidden: \"${classes}\"}}, SoftmaxOutput]}\n"
      "data: {train: {source: mnist, path: digits, split: test}}\n");
  folder.Write("main.yaml",
               "include: base.yaml\nvars: {classes: null}\ntrain: {lr_schedule: {name: one_cycle, "
               "warmup_epochs: null}}\n"
               "data: {train: {source: image_folder, split: null}}\n");
  config::LoadRequest request;
  request.files = {"main.yaml"};
  request.working_folder = folder.path();
  const Outcome o = LoadAndBuild(request, *BuiltinOperators());
  CHECK(o.text == "");
  CHECK(o.loaded.config.train.lr_schedule.name == "one_cycle");
  CHECK(o.loaded.config.train.lr_schedule.params.empty());
  const Symbol::Shapes shapes = o.net.symbol.InferShape(config::BatchShapes(o.net, 2));
  REQUIRE(shapes.complete);
  CHECK(shapes.outputs[0] == TShape{2, 1000});  // the classes of the data, not the 7 of the file
}

TEST_CASE(
    "a variable that nothing reads is misspelt: on the command line, or near that of a file") {
  TemporaryFolder folder;
  folder.Write("base.yaml", "vars: {width: 2, unread: 3, depth: 1}\n" + kRest);
  folder.Write("plain.yaml", kRest);
  const auto load = [&](const std::string& text, std::vector<std::string> overrides) {
    folder.Write("main.yaml", text);
    config::LoadRequest request;
    request.files = {"main.yaml"};
    request.overrides = std::move(overrides);
    request.working_folder = folder.path();
    config::Diagnostics diagnostics(std::make_shared<config::SourceMap>());
    config::LoadConfig(request, &diagnostics);
    std::string found;
    for (const config::Diagnostic& d : diagnostics.Sorted()) {
      found += format("{}: {}: {}\n", d.severity == config::Severity::kError ? "error" : "warning",
                      d.message, d.help);
    }
    return found;
  };
  const std::string include = "include: base.yaml\n";
  // Declared by the file that is included, or read by an expression.
  CHECK(load(include, {"vars.width=5", "vars.unread=4"}) == "");
  CHECK(load(include + "train: {epochs: \"${2 * epochs_}\"}\n", {"vars.epochs_=5"}) == "");
  CHECK(load(include + "vars: {depth: 4, width: null}\n", {}) == "");
  CHECK(load(include, {"vars.widht=5"}) ==
        "error: nothing reads the variable 'widht': did you mean 'vars.width'?\n");
  CHECK(load(include, {"vars.other=5"}) ==
        "error: nothing reads the variable 'other': the configuration has the variables width, "
        "unread, depth\n");
  CHECK(load("include: plain.yaml\n", {"vars.other=5"}) ==
        "error: nothing reads the variable 'other': the configuration has no variables\n");
  // Files may have variables for others.
  CHECK(load(include + "vars: {other: 5}\n", {}) == "");
  CHECK(load(include + "vars: {widht: 5}\n", {}) ==
        "warning: nothing reads the variable 'widht': did you mean 'width'?\n");
  CHECK(load("vars: {width: 5, widht: 6}\n" + kRest, {}) == "");  // of one file
  CHECK(load("vars: {own: 5}\n" + kRest, {"vars.own=6"}) == "");
}

TEST_CASE(
    "validation data is read as training data: other keys are errors, and none are the same") {
  const auto load = [](const std::string& train, const std::string& val,
                       std::vector<std::string> overrides = {}) {
    return LoadText(
        "net: {input: [4], layers: [{FullyConnected: {num_hidden: 2}}, SoftmaxOutput]}\n"
        "data:\n  train: {source: labelled_text, path: a.tsv" +
            train + "}\n  val: {source: labelled_text, path: b.tsv" + val + "}\n",
        std::move(overrides));
  };
  const Outcome same = load(", lowercase: true, ngrams: 2, buckets: 9", "");
  CHECK(same.text == "");
  CHECK(same.loaded.config.data.val.Param("lowercase") == "True");
  CHECK(same.loaded.config.data.val.Param("ngrams") == "2");
  const Value& written = *same.loaded.resolved.Get("data")->Get("val");
  CHECK(written.Get("lowercase")->text == "true");
  CHECK(written.Get("buckets")->text == "9");
  CHECK(load(", lowercase: true", ", lowercase: true").text == "");
  const Outcome other = load(", lowercase: true", ", lowercase: false, tokenizer: words");
  REQUIRE(other.diagnostics.size() == 1);
  CHECK(other.diagnostics[0].message ==
        "data.val.lowercase: validation data is read as the training data, where it is true");
  CHECK(other.diagnostics[0].help == "remove it, or set data.train.lowercase");
  CHECK(other.diagnostics[0].place.line == 4);
  CHECK(load("", "", {"data.val.tokenizer_file=a.json"}).diagnostics[0].message ==
        "data.val.tokenizer_file: validation data is read as the training data, where it is not "
        "given");
}

TEST_CASE("the resolved configuration reads back to itself") {
  TemporaryFolder folder;
  folder.Write(
      "main.yaml",
      "name: 'yes: no'\nvars: {width: 8}\nblocks:\n  unit:\n    params: {width, deep: true}\n    "
      "layers:\n"
      "      - FullyConnected: {num_hidden: \"${min(width, 9)}\"}\n" +
          std::string("net:\n  input: [4]\n  layers:\n    - unit: {width: \"${width}\"}\n    - "
                      "SoftmaxOutput: {name: softmax}\n") +
          "data: {batch_size: \"${width}\", train: {source: image_folder, path: images, "
          "transforms: "
          "[flip, {resize: 40}, {normalize: "
          "{mean: [0.5], std: [0.25]}}]}}\n"
          "train: {lr_schedule: {name: multistep, milestones: [1, 2]}, clip: {norm: 1}}\n");
  auto load = [&](const std::string& file) {
    config::LoadRequest request;
    request.files = {file};
    request.working_folder = folder.path();
    Outcome outcome;
    outcome.sources = std::make_shared<config::SourceMap>();
    config::Diagnostics diagnostics(outcome.sources);
    outcome.loaded = config::LoadConfig(request, &diagnostics);
    CHECK(config::Render(diagnostics.Sorted(), *outcome.sources) == "");
    return outcome;
  };
  const Outcome first = load("main.yaml");
  CHECK(first.loaded.config.name == "yes: no");
  CHECK(first.loaded.config.data.batch_size == 8);
  CHECK(first.loaded.config.data.train.transforms.size() == 3);
  CHECK(first.loaded.config.data.train.transforms[2].params ==
        Kwargs{{"mean", "(0.5,)"}, {"std", "(0.25,)"}});
  const std::string yaml = config::ToYaml(first.loaded.resolved);
  folder.Write("runs/1/config.yaml", yaml);
  const Outcome second = load("runs/1/config.yaml");
  CHECK(config::ToYaml(second.loaded.resolved) == yaml);
  CHECK(second.loaded.config.data.train.path() == first.loaded.config.data.train.path());
}

TEST_CASE("names that look like numbers are written as texts, numbers as numbers") {
  TemporaryFolder folder;
  folder.Write(
      "main.yaml",
      "name: 010\nvars: {width: 08, rate: 1e-1}\n"
      "blocks:\n  007: {inputs: 1e1, params: {p: 5e-1}, layers: [{Dropout: {name: 0x1, p: "
      "\"${p}\", inputs: 1e1}}], outputs: 0x1}\n"
      "net:\n  inputs: {1e3: [04]}\n  layers:\n"
      "    - FullyConnected: {name: 010, num_hidden: \"${width}\", inputs: 1e3, attrs: "
      "{weight_lr_mult: 0.5}}\n"
      "    - 007: {name: 1e2, p: 25e-2, inputs: [010]}\n"
      "    - repeat: {count: 02, layers: [{FullyConnected: {name: \"${i}_0\", num_hidden: 03}}]}\n"
      "    - 007\n"
      "    - SoftmaxOutput: {name: 1e5}\n"
      "  outputs: [1e5]\n"
      "data: {train: {source: csv, path: x.csv, columns: {1e3: [010, 1e4], 1e5_label: 0}}}\n"
      "train: {lr_mult: {010_weight: 5e-1, 1_0_weight: 1}, metrics: [{name: accuracy, output: "
      "1e5}], optimizer: {lr: 1e-4}}\n");
  const auto load = [&](const std::string& file) {
    config::LoadRequest request;
    request.files = {file};
    request.working_folder = folder.path();
    return LoadAndBuild(request, *BuiltinOperators());
  };
  const Outcome first = load("main.yaml");
  REQUIRE(first.text == "");
  const std::string yaml = config::ToYaml(first.loaded.resolved);
  CAPTURE(yaml);
  folder.Write("run/config.yaml", yaml);
  const Outcome second = load("run/config.yaml");
  REQUIRE(second.text == "");
  CHECK(config::ToYaml(second.loaded.resolved) == yaml);
  CHECK(second.net.symbol.ToJson() == first.net.symbol.ToJson());
  for (const config::LoadedConfig* loaded : {&first.loaded, &second.loaded}) {
    CHECK(loaded->config.name == "010");
    CHECK(loaded->config.train.metrics->front().params == Kwargs{{"output", "1e5"}});
    CHECK(loaded->config.data.train.columns[0].columns == std::vector<std::string>{"010", "1e4"});
    CHECK(loaded->config.train.lr_mult ==
          config::PatternNumbers{{"010_weight", 0.5}, {"1_0_weight", 1.0}});
  }
  for (const char* part : {"name: \"010\"", "outputs: [\"1e5\"]", "output: \"1e5\"", "\"007\"",
                           "lr: 1.0e-4", "rate: 1.0e-1", "num_hidden: 3"}) {
    CAPTURE(part);
    CHECK(yaml.find(part) != std::string::npos);
  }
}

struct TagParam : Parameter<TagParam> {
  std::string text;
  int number;
  static void Declare(Fields<TagParam>& f) {
    f.Add("text", &TagParam::text).Required().Help("a text");
    f.Add("number", &TagParam::number).Default(0).Help("a number");
  }
};
class Tag : public PropertyWithParam<TagParam> {
 public:
  std::string TypeString() const override { return "Tag"; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    UnifyShape((*in)[0], &(*out)[0], "Tag", "output");
    return (*out)[0].known();
  }
};

TEST_CASE("a text parameter that looks like a number keeps its digits, also from a run's file") {
  const auto operators = ShapeOperators();
  operators->AddProperty("Tag", {}, [] { return std::make_unique<Tag>(); });
  TemporaryFolder folder;
  folder.Write("main.yaml",
               "blocks:\n  tagged: {layers: [{Tag: {text: 1e3}}]}\n"
               "net:\n  input: [4]\n  layers:\n    - Tag: {name: tag, text: 010, number: 010}\n"
               "    - tagged\n    - MakeLoss\n"
               "data: {train: {source: mnist, path: .}}\n");
  const auto load = [&](const std::string& file) {
    config::LoadRequest request;
    request.files = {file};
    request.working_folder = folder.path();
    Outcome outcome = LoadAndBuild(request, *operators);
    CHECK(outcome.text == "");
    config::MarkTexts(outcome.net.texts, &outcome.loaded.resolved);
    return outcome;
  };
  const Outcome first = load("main.yaml");
  const std::string yaml = config::ToYaml(first.loaded.resolved);
  CAPTURE(yaml);
  for (const char* part : {"text: \"010\"", "number: 10", "text: \"1e3\""})
    CHECK(yaml.find(part) != std::string::npos);
  folder.Write("run/config.yaml", yaml);
  const Outcome second = load("run/config.yaml");
  CHECK(config::ToYaml(second.loaded.resolved) == yaml);
  CHECK(second.net.symbol.ToJson() == first.net.symbol.ToJson());
  CHECK(first.net.symbol.ToJson().find("\"010\"") != std::string::npos);
}

TEST_CASE("what is written means the same to parsers of YAML 1.1 and 1.2") {
  const auto written = [](const std::string& text) { return config::ToFlow(Value::Scalar(text)); };
  const auto number_of = [](const std::string& text) { return Value::Scalar(text).AsNumber(); };
  const std::pair<std::string, std::string> numbers[] = {
      {"4e-06", "4.0e-06"}, {"1E5", "1.0e+5"},     {"-2.5e7", "-2.5e+7"}, {"5.", "5.0"},
      {"-.5", "-0.5"},      {"+.25e3", "0.25e+3"}, {"010", "10"},         {"-0", "-0"},
      {"007.5", "7.5"},     {"0.125", "0.125"},    {"32", "32"},          {".inf", ".inf"},
      {"inf", ".inf"},      {"-inf", "-.inf"},     {"0e0", "0.0e+0"}};
  for (const auto& [text, wanted] : numbers) {
    CAPTURE(text);
    CHECK(written(text) == wanted);
    CHECK(number_of(wanted) == number_of(text));
  }
  for (const std::string text : {"off", "No", "Y", "yes", ".NaN", "0x10", "0o17", "1_000", "1:30",
                                 "+.inf", "2024-01-31", "1.2.3", "0b11"})
    CHECK(written(text) == "\"" + text + "\"");
  for (const std::string text : {"true", "none", "nearest", "10min", "75%", "3rd", "bf16"})
    CHECK(written(text) == text);
  CHECK(config::ToFlow(Value::Scalar("1e5", {}, true)) == "\"1e5\"");  // a text
  CHECK(config::ToFlow(Value::Map({{"y", {}, Value::Scalar("1")}})) == "{\"y\": 1}");
}

TEST_CASE("environment, overrides typed as YAML, and unsetting") {
  Outcome o = LoadText(
      "train: {optimizer: {lr: \"${LEARNING_RATE}\", momentum: 0.9}, epochs: \"${EPOCHS:-4}\"}\n" +
          kRest,
      {"train.optimizer.momentum=null", "train.metrics=[{name: top_k, k: 3}]",
       "net.layers.0.FullyConnected.num_hidden=5", "seed=18446744073709"});
  CHECK(o.text == "");
  CHECK(o.loaded.config.train.optimizer.params == Kwargs{{"lr", "0.25"}});
  CHECK(o.loaded.config.train.epochs == 4);
  CHECK(o.loaded.config.seed == 18446744073709u);
  CHECK(o.loaded.config.train.metrics->front().params == Kwargs{{"k", "3"}});
  const Symbol::Shapes shapes = o.net.symbol.InferShape(config::BatchShapes(o.net, 2));
  CHECK(shapes.outputs[0] == TShape{2, 5});
}

TEST_CASE("quotes around ${...} are for YAML; quotes around a number make it a text") {
  Outcome o = LoadText(
      "vars: {epochs: \"${EPOCHS:-4}\", label: \"32\"}\n"
      "name: \"run ${label}\"\n"
      "train:\n  epochs: \"${epochs}\"\n  max_steps: ${epochs}\n  ema: \"${DECAY:-}\"\n"
      "  optimizer: {lr: \"${LEARNING_RATE}\"}\n  metrics: [\"${METRIC:-accuracy}\"]\n" +
      kRest);
  CHECK(o.text == "");
  CHECK(o.loaded.config.name == "run 32");
  CHECK(o.loaded.config.train.epochs == 4);
  CHECK(o.loaded.config.train.max_steps == 4);
  CHECK_FALSE(o.loaded.config.train.ema.decay);
  CHECK(o.loaded.config.train.optimizer.params == Kwargs{{"lr", "0.25"}});
  CHECK(o.loaded.config.train.metrics->front().name == "accuracy");
  CHECK(LoadText("train: {epochs: \"32\"}\n" + kRest)
            .text.find("expected an integer, got the text '32'") != std::string::npos);
}

TEST_CASE("a configuration in an older checkpoint may have ${...} without quotes") {
  const config::Value read = config::ParseResolved(
      "checkpoint",
      "train: {math: exact}\nnet:\n  layers:\n    - unit: {width: ${2 * width}, name: u${i}}\n"
      "    - other:\n        project: ${i == 0 ? 1 : 2}\n");
  CHECK(read.Get("train")->Get("math")->text == "exact");
  const std::vector<config::Value>& layers = read.Get("net")->Get("layers")->list;
  CHECK(layers[0].Get("unit")->Get("width")->text == "${2 * width}");
  CHECK(layers[0].Get("unit")->Get("name")->text == "u${i}");
  CHECK(layers[1].Get("other")->Get("project")->text == "${i == 0 ? 1 : 2}");
}

TEST_CASE("normalize: imagenet becomes its numbers") {
  const auto load = [](const std::string& normalize) {
    return LoadText(
        "net: {input: [3, 8, 8], layers: [Flatten, {FullyConnected: {num_hidden: 2}}, "
        "SoftmaxOutput]}\n"
        "data: {train: {source: image_folder, path: x, transforms: [flip, {normalize: " +
        normalize + "}]}}\n");
  };
  for (const char* form : {"imagenet", "{from: imagenet}", "\"${STATISTICS:-imagenet}\""}) {
    CAPTURE(form);
    const Outcome o = load(form);
    CHECK(o.text == "");
    REQUIRE(o.loaded.config.data.train.transforms.size() == 2);
    CHECK(o.loaded.config.data.train.transforms[1].params ==
          Kwargs{{"mean", "(0.485, 0.456, 0.406)"}, {"std", "(0.229, 0.224, 0.225)"}});
    CHECK(config::ToYaml(o.loaded.resolved)
              .find("{name: normalize, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}") !=
          std::string::npos);
  }
  CHECK(load("{from: imagenet, std: 1}")
            .text.find("normalize: imagenet has its own mean and std: remove the others") !=
        std::string::npos);
  CHECK(load("imagenot").text.find("expected given, auto, imagenet, got 'imagenot'") !=
        std::string::npos);
}

TEST_CASE("aliases and merge keys") {
  Outcome o = LoadText("vars: {a: &w 3}\n" + kNet +
                       "data: {train: &set {source: mnist, path: x}, val: {<<: *set, split: test}, "
                       "batch_size: *w}\n");
  CHECK(o.text == "");
  CHECK(o.loaded.config.data.batch_size == 3);
  CHECK(o.loaded.config.data.val.Param("split") == "test");
  CHECK(o.loaded.config.data.val.source == "mnist");
}

TEST_CASE("an alias bomb is refused at once") {
  std::string bomb = "vars: {}\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string p = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + p + ", " + p + ", " + p +
            ", " + p + ", " + p + ", " + p + ", " + p + ", " + p + "]\n";
  }
  CHECK(LoadText(bomb).text.find("error: more than 100000 values after expanding aliases") !=
        std::string::npos);
}

TEST_CASE("a huge line is not a huge message, and what is wrong in it can be seen") {
  const std::string words(1 << 20, 'x');
  std::string text = LoadText(words).text;
  CHECK(text.find("error: a configuration is a map of keys, got 'xxx") != std::string::npos);
  CHECK(text.size() < 1000);
  std::string numbers = "{";
  for (int i = 0; i < 200'000; ++i) numbers += format("k{}: 1, ", i);
  text = LoadText(numbers + "}").text;
  CHECK(text.find("error: more than 100000 values: is this a configuration?") != std::string::npos);
  CHECK(text.find("alias") == std::string::npos);
  CHECK(text.size() < 1000);
  // The line is shown from a little before the error, which is marked.
  const std::string keys = "{a: [" + std::string(300, '1') + "], \xc3\xa4: 2, b: 3, b: 4, c: [" +
                           std::string(300, '1') + "]}";
  text = LoadText(keys).text;
  const size_t error = text.find("net.yaml:1:321: error: duplicate key 'b'");
  REQUIRE(error != std::string::npos);
  const size_t line = text.find("    1 | ...111", error), mark = text.find("^", line);
  REQUIRE(mark != std::string::npos);
  const std::string shown = text.substr(line, text.find('\n', line) - line);
  const size_t column = mark - text.rfind('\n', mark) - 1;
  CHECK(shown.ends_with("111..."));
  CHECK(shown.substr(column + 1, 5) == "b: 4,");  // after a letter of two bytes
}

TEST_CASE("small texts with huge expansions are refused where they grow") {
  std::string doubling = "vars:\n  v0: a long text to begin with\n";
  for (int i = 1; i <= 40; ++i) doubling += format("  v{}: ${{v{}}}${{v{}}}\n", i, i - 1, i - 1);
  CHECK(LoadText(doubling + kRest)
            .text.find(
                "net.yaml:8:12: error: the text grows to 1600 bytes; expressions may add 1024\n") !=
        std::string::npos);

  std::string copies = "a0: &a0 " + std::string(100'000, 'x') + "\na: [*a0";
  for (int i = 0; i < 200; ++i) copies += ", *a0";
  CHECK(LoadText(copies + "]\n")
            .text.find("error: anchors and aliases hold more than 16 MiB of text") !=
        std::string::npos);
  std::string anchors = "a: " + std::string();
  for (int i = 0; i < 400; ++i) anchors += format("&a{} [", i);
  for (int i = 0; i < 1000; ++i) anchors += "x, ";
  CHECK(LoadText(anchors + std::string(400, ']') + "\n")
            .text.find("error: more than 100000 values after expanding aliases") !=
        std::string::npos);

  // Repeats of nothing, blocks in blocks, outputs that double at each block: all of them a few
  // lines.
  std::string layers = "- FullyConnected: {num_hidden: 1, when: false}";
  for (int i = 0; i < 4; ++i)
    layers = format("- repeat: {{count: 5000, index: i{}, layers: [{}]}}", i, layers.substr(2));
  CHECK(BuildLayers("    " + layers + "\n")
            .text.find(
                "error: the net has more than 1000000 values after expanding blocks and repeats") !=
        std::string::npos);
  std::string nested = "blocks:\n  b0: {layers: [Flatten]}\n",
              twice = "blocks:\n  b0: {layers: [{Flatten: {name: x}}], outputs: [x, x]}\n";
  for (int i = 1; i <= 300; ++i) nested += format("  b{}: {{layers: [b{}]}}\n", i, i - 1);
  for (int i = 1; i <= 40; ++i)
    twice += format("  b{}: {{layers: [{{b{}: {{name: x}}}}], outputs: [x, x]}}\n", i, i - 1);
  CHECK(BuildLayers("    - b300\n", nested).text.find("is nested in 100 others") !=
        std::string::npos);
  CHECK(BuildLayers("    - b40\n    - Concat: {inputs: [b400]}\n", twice)
            .text.find("passes through too many outputs of blocks") != std::string::npos);
}

TEST_CASE("only the first of very many errors are reported") {
  std::string keys;
  for (int i = 0; i < 1000; ++i) keys += format("unknown{}: 1\n", i);
  const std::string text = LoadText(keys + kRest).text;
  CHECK(text.find("unknown key 'unknown99'") != std::string::npos);
  CHECK(text.find("unknown key 'unknown100'") == std::string::npos);
  CHECK(text.find("error: stopped after 100 errors\n") != std::string::npos);
}

TEST_CASE("files that include each other again and again are refused") {
  TemporaryFolder folder;
  for (int i = 1; i < 18; ++i)
    folder.Write(format("{}.yaml", i), format("include: [{}.yaml, {}.yaml]\n", i - 1, i - 1));
  folder.Write("0.yaml", "seed: 1\n");
  config::LoadRequest request;
  request.files = {"17.yaml"};
  request.working_folder = folder.path();
  config::Diagnostics diagnostics(std::make_shared<config::SourceMap>());
  CHECK_THROWS_WITH(config::LoadDocument(request, &diagnostics),
                    doctest::Contains("more than 1000 files are included"));
}

TEST_CASE("deep nesting, odd bytes and random damage never crash") {
  CHECK(LoadText(std::string(100000, '[')).text.find("error:") != std::string::npos);
  CHECK(LoadText(std::string(100000, '{')).text.find("error:") != std::string::npos);
  CHECK(LoadText("a: \xff\xfe\n").text.find("this is not UTF-8 text") != std::string::npos);
  CHECK(LoadText(std::string("a: \0b\n", 6)).text.find("control character 0x00") !=
        std::string::npos);
  const std::string good =
      "vars: {w: 8}\ntrain: {epochs: 3, optimizer: {name: sgd, lr: 0.1}}\n" + kRest;
  uint32_t state = 12345;
  for (int round = 0; round < 300; ++round) {
    std::string damaged = good;
    for (int edit = 0; edit < 3; ++edit) {
      state = state * 1664525u + 1013904223u;
      const size_t at = (state >> 8) % damaged.size();
      static constexpr char kBytes[] = "{}[]:,#&*!|>'\"%@`$\n\t -?x0";
      if (state & 1) {
        damaged.erase(at, 1);
      } else {
        damaged.insert(at, 1, kBytes[(state >> 4) % (sizeof kBytes - 1)]);
      }
    }
    LoadText(damaged);
  }
}

TEST_CASE("JSON schema and the list of keys come from the table") {
  const Json schema = Json::parse(config::JsonSchema(*ShapeOperators()));
  CHECK(schema["properties"]["train"]["properties"]["epochs"]["default"] == 10);
  // A file that includes another one need not give everything itself.
  CHECK_FALSE(schema["properties"]["data"]["properties"]["train"].contains("required"));
  CHECK(schema["additionalProperties"] == false);
  CHECK(schema["properties"]["net"]["properties"]["layers"]["$ref"] == "#/$defs/layers");
  CHECK(schema["$defs"]["Convolution"]["properties"].contains("num_filter"));
  const Json number = {{"anyOf", {{{"type", "integer"}}, {{"const", "None"}}}}};
  CHECK(schema["$defs"]["Convolution"]["properties"]["num_filter"]["anyOf"][0] == number);
  bool seen = false;
  for (const config::KeyInfo& key : config::DescribeKeys()) {
    CHECK_MESSAGE(!key.help.empty(), key.path);
    seen = seen || key.path == "train.save.every";
  }
  CHECK(seen);
}

TEST_CASE("diagnostics as JSON") {
  auto sources = std::make_shared<config::SourceMap>();
  config::Diagnostics diagnostics(sources);
  const int file = sources->AddFile("n.yaml", "\xC3\xBC: x\n", ".");
  diagnostics.Error({file, 1, 5, 1}, "bad", "do this");
  const Json list = Json::parse(config::RenderJson(diagnostics.Sorted(), *sources));
  CHECK(list[0]["file"] == "n.yaml");
  CHECK(list[0]["line"] == 1);
  CHECK(list[0]["column"] == 4);  // characters, not bytes
  CHECK(list[0]["severity"] == "error");
  try {
    diagnostics.ThrowIfErrors();
    FAIL("must throw");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    CHECK(std::string(error.what()) ==
          "n.yaml:1:4: error: bad\n    1 | \xC3\xBC: x\n      |    ^\n      help: do this\n");
  }
}

}  // namespace
}  // namespace mxtrain::test
