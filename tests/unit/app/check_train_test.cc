// SPDX-License-Identifier: Apache-2.0
// If `check` passes, `train` starts: configurations on small data, unchanged and after random
// edits. A run of one step exits with 0, or with 7 if it diverges. MXTRAIN_CHECK_EDITS sets the
// number of edits, MXTRAIN_CHECK_SEED the first seed.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "app/commands/command_list.h"
#include "app/commands/distributed_run.h"
#include "app/config/document.h"
#include "config_test.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/io/image.h"
#include "tests/support/build_paths.h"

namespace mxtrain::test {
namespace {

namespace fs = std::filesystem;
using config::Value;

// Bytes of addresses that this process has taken; under AddressSanitizer they are terabytes before
// anything is allocated.
rlim_t AddressSpace() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// Redirects stderr and stdout into a file and limits memory, since an edit may request any amount.
class Aside {
 public:
  explicit Aside(const fs::path& file) {
    const int to = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (int fd : {1, 2}) {
      kept_[fd - 1] = dup(fd);
      dup2(to, fd);
    }
    close(to);
    getrlimit(RLIMIT_AS, &limit_);
    const rlimit bounded{AddressSpace() + (rlim_t{6} << 30), limit_.rlim_max};
    setrlimit(RLIMIT_AS, &bounded);
  }
  ~Aside() {
    std::fflush(nullptr);
    setrlimit(RLIMIT_AS, &limit_);
    for (int fd : {1, 2}) {
      dup2(kept_[fd - 1], fd);
      close(kept_[fd - 1]);
    }
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

 private:
  int kept_[2];
  rlimit limit_;
};

// The exit code of `mxtrain WORDS`.
int RunCommand(std::vector<std::string> words) {
  std::atomic<bool> leaving{false};
  commands::DistributedRun alone(&leaving);
  commands::CommandLine line("mxtrain", "", [] { return std::string(); });
  commands::CommandList all({"mxtrain", line, alone});
  commands::RegisterCommands(all);
  all.Declare(line);
  words.insert(words.begin(), "mxtrain");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  int exit_code = 0;
  const int named = line.Parse(static_cast<int>(argv.size()), argv.data(), &exit_code);
  if (named < 0) return exit_code;
  commands::CommonFlags flags;
  flags.device = "cpu";
  flags.threads = 1;
  console::ConsoleOptions console_options;
  console_options.color = console::Choice::kNever;
  console_options.progress = console::Progress::kNone;
  console::Console console(console_options);
  try {
    return all[static_cast<size_t>(named)].Run(flags, console);
  } catch (const config::DiagnosticError& e) {
    console.Message(LogLevel::kError, e.what());
    return static_cast<int>(e.kind());
  } catch (const Error& e) {
    console.Message(LogLevel::kError, e.what());
    return static_cast<int>(e.kind());
  } catch (const std::bad_alloc&) {
    return static_cast<int>(ErrorKind::kMemory);
  } catch (const std::exception& e) {
    console.Message(LogLevel::kError, e.what());
    return static_cast<int>(ErrorKind::kBug);
  }
}

// Configurations and their data in one folder.
class Examples {
 public:
  Examples() {
    std::string points = "a,b,c,y\n", things = "a,b,colour,shape,weight\n",
                houses = "note;size;age;price\n", tags;
    const auto number = [](int i) { return std::to_string(i); };
    for (int i = 0; i < 40; ++i) {
      points += number(i % 3) + "," + number(i * 7 % 5) + "," + number(i * 3 % 4) + "," +
                number(i % 2) + "\n";
      things += number(i % 7) + "," + number(i % 5) + (i % 7 > 3 ? ",red," : ",blue,") +
                (i % 5 > 2 ? "round," : "long,") + number(i) + "\n";
      houses += "\"n;" + number(i) + "\";" + number(50 + i * 37 % 100) + ";" + number(i * 13 % 40) +
                ";" + number(100000 + i * 500) + "\n";
    }
    for (int i = 0; i < 12; ++i) {
      io::Image image;
      image.Resize(10, 8 + i % 3, 3);
      for (size_t k = 0; k < image.pixels.size(); ++k)
        image.pixels[k] = static_cast<uint8_t>(k * static_cast<size_t>(i + 3));
      const std::string name = format("{}/{}.png", i % 2 ? "dark" : "light", i);
      fs::create_directories(folder_.path() / "photos" / (i % 2 ? "dark" : "light"));
      folder_.Write("photos/" + name, io::EncodePng(image));
      tags += "photos/" + name + (i % 3 ? ",odd;dark\n" : ",odd\n");
    }
    folder_.Write("points.csv", points);
    folder_.Write("things.csv", things);
    folder_.Write("houses.csv", houses);
    folder_.Write("tags.csv", tags);
    Add(R"(
net: {input: [3], layers: [{FullyConnected: {num_hidden: 8}}, {Activation: {act_type: relu}}, {FullyConnected: {num_hidden: 2}}, {SoftmaxOutput: {name: softmax}}]}
data:
  batch_size: 4
  train: {source: csv, path: points.csv, columns: {data: [a, b, c], softmax_label: y}, shuffle: true}
  val: {split: 0.25}
train: {epochs: 2, optimizer: {name: sgd, lr: 0.05, momentum: 0.9}, lr_schedule: {name: cosine, warmup_epochs: 1}, metrics: [accuracy, cross_entropy], clip: {norm: 1}}
)");
    Add(R"(
net: {input: [2], layers: [{FullyConnected: {num_hidden: 4}}, {Activation: {act_type: tanh}}, {FullyConnected: {num_hidden: 1}}, {LinearRegressionOutput: {name: price}}]}
data:
  batch_size: 8
  train: {source: csv, path: houses.csv, columns: {data: [size, age], price_label: price}, normalize: auto, missing: mean, delimiter: ";"}
  val: {source: csv, path: houses.csv, columns: {data: [size, age], price_label: price}}
train: {epochs: 2, optimizer: {name: adam, lr: 0.01}, ema: {decay: 0.9}, early_stop: {patience: 2}, grad_accum: 2}
)");
    Add(R"(
net:
  input: [2]
  layers:
    - FullyConnected: {name: hidden, num_hidden: 6}
    - Dropout: {name: drop, p: 0.2}
    - FullyConnected: {num_hidden: "${classes}"}
    - SoftmaxOutput: {name: colour}
    - FullyConnected: {inputs: drop, num_hidden: 2}
    - SoftmaxOutput: {name: shape}
    - FullyConnected: {inputs: drop, num_hidden: 1}
    - MAERegressionOutput: {name: weight, grad_scale: 0.5}
data:
  batch_size: 5
  train: {source: csv, path: things.csv, columns: {data: [a, b], colour_label: colour, shape_label: shape, weight_label: weight}}
train: {epochs: 1, metrics: [{name: accuracy, output: shape}, {name: rmse, output: weight}], best: {metric: rmse}, lr_mult: {hidden_*: 0.1}}
)");
    Add(R"(
net:
  input: [3, 8, 8]
  layers:
    - Convolution: {num_filter: 4, kernel: 3, pad: 1}
    - BatchNorm
    - Activation: {act_type: relu}
    - Pooling: {pool_type: max, kernel: 2, stride: 2}
    - repeat: {count: 2, layers: [{Convolution: {num_filter: 4, kernel: [3, 3], pad: [1, 1]}}, {LeakyReLU: {act_type: leaky}}]}
    - Flatten
    - FullyConnected: {num_hidden: "${classes}"}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 2
  train: {source: image_folder, path: photos, transforms: [{random_resized_crop: 8}, flip, {normalize: auto}], shuffle: true}
  val: {split: 0.3, transforms: [{resize: [8, 8]}, {normalize: auto}]}
train: {epochs: 2, mixup: {alpha: 0.2}, class_weights: [1, 2], initializer: {name: xavier}, save: {every: 1epoch, keep: 2}}
)");
    Add(R"(
net: {input: [3, 8, 8], layers: [Flatten, {FullyConnected: {num_hidden: "${classes}"}}, {LogisticRegressionOutput: {name: tags}}]}
data:
  batch_size: 4
  train: {source: list, path: tags.csv, label_delim: ";", transforms: [{resize: [8, 8]}], shuffle: true}
train: {epochs: 1, optimizer: {name: rmsprop, lr: 0.01}, metrics: [multilabel_f1, auc], weights: null}
)");
    AddShipped("siamese/pairs.yaml", 16, {{"train", SourceDir() / "configs/siamese/pairs.csv"}});
    AddShipped("regression/smooth_l1.yaml", 16,
               {{"train", SourceDir() / "configs/regression/points.csv"}});
    AddShipped("quickstart.yaml", 2,
               {{"train", folder_.path() / "photos"}, {"val", folder_.path() / "photos"}});
    WriteDigits();
    for (const char* file : {"mnist/mlp.yaml", "mnist/lenet.yaml"})
      AddShipped(file, 4, {{"train", folder_.path()}, {"val", folder_.path()}});
    WriteCifar();
    AddShipped("cifar/resnet20.yaml", 2, {{"train", folder_.path()}, {"val", folder_.path()}});
  }

  size_t size() const { return trees_.size(); }
  const Value& operator[](size_t i) const { return trees_[i]; }
  fs::path path() const { return folder_.path(); }

  struct Codes {
    int check = 0, train = 0;
    std::string said;  // by train
  };
  // Exit codes of `check`, and of one step of `train` if check finds no error; warnings do not
  // prevent training.
  Codes Try(const Value& tree) const { return Try(config::ToYaml(tree)); }
  Codes Try(const std::string& text) const {
    const std::string file = (folder_.path() / "config.yaml").string(),
                      out = (folder_.path() / "out").string(),
                      log = (folder_.path() / "log").string();
    folder_.Write("config.yaml", text);
    Codes codes;
    {
      const Aside aside(log);
      codes.check = RunCommand({"check", file});
      if (codes.check != 0 && codes.check != 9) return codes;
      codes.train = RunCommand({"train", file, "train.max_steps=1", "--out", out, "--overwrite"});
    }
    codes.said = ReadFile(log);
    return codes;
  }

 private:
  // A complete shipped configuration, on our data.
  void AddShipped(const std::string& file, int batch,
                  const std::vector<std::pair<std::string, fs::path>>& paths) {
    config::LoadRequest request;
    request.files = {(SourceDir() / "configs" / file).string()};
    request.overrides = {format("data.batch_size={}", batch)};
    for (const auto& [set, path] : paths)
      request.overrides.push_back(format("data.{}.path={}", set, path.string()));
    config::Diagnostics diagnostics(std::make_shared<config::SourceMap>());
    trees_.push_back(config::LoadDocument(request, &diagnostics));
  }

  // Eight images of 28x28 in MNIST's files, for each of the two sets.
  void WriteDigits() const {
    const auto big_endian = [](uint32_t value) {
      std::string bytes;
      for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
      return bytes;
    };
    std::string pixels = big_endian(2051) + big_endian(8) + big_endian(28) + big_endian(28),
                labels = big_endian(2049) + big_endian(8);
    for (int i = 0; i < 8; ++i) {
      for (int k = 0; k < 28 * 28; ++k) pixels += static_cast<char>(k * (i + 3));
      labels += static_cast<char>(i);
    }
    for (const char* set : {"train", "t10k"}) {
      folder_.Write(format("{}-images-idx3-ubyte", set), pixels);
      folder_.Write(format("{}-labels-idx1-ubyte", set), labels);
    }
  }

  // Four images in each of CIFAR-10's files.
  void WriteCifar() const {
    std::string records;
    for (int i = 0; i < 4; ++i) {
      records += static_cast<char>(i);
      for (int k = 0; k < 3 * 32 * 32; ++k) records += static_cast<char>(k * (i + 3));
    }
    folder_.Write("test_batch.bin", records);
    for (int i = 1; i <= 5; ++i) folder_.Write(format("data_batch_{}.bin", i), records);
  }

  void Add(const std::string& text) {
    auto sources = std::make_shared<config::SourceMap>();
    config::Diagnostics diagnostics(sources);
    trees_.push_back(
        config::ParseYaml(sources->AddFile("example.yaml", text, folder_.path()), &diagnostics));
  }

  TemporaryFolder folder_;
  std::vector<Value> trees_;
};

// One random edit of a tree: an element is removed, replaced, duplicated, swapped with its
// neighbour or renamed.
class Editor {
 public:
  explicit Editor(uint64_t seed) : random_(seed) {}

  std::string Edit(Value* tree) {
    std::vector<Spot> spots;
    Collect(tree, "", &spots);
    for (;;) {
      Spot& spot = spots[Below(spots.size())];
      if (const std::string done = Change(&spot); !done.empty()) return done;
    }
  }

 private:
  struct Spot {
    Value* value;
    std::string path;
  };
  size_t Below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  static void Collect(Value* value, const std::string& path, std::vector<Spot>* spots) {
    spots->push_back({value, path});
    for (size_t i = 0; i < value->list.size(); ++i)
      Collect(&value->list[i], format("{}.{}", path, i), spots);
    for (config::Member& member : value->members)
      Collect(&member.value, path + "." + member.key, spots);
  }

  std::string Change(Spot* spot) {
    Value& value = *spot->value;
    if (value.is_map() && !value.members.empty()) {
      const size_t at = Below(value.members.size());
      const std::string path = spot->path + "." + value.members[at].key;
      switch (Below(3)) {
        case 0:
          value.members.erase(value.members.begin() + static_cast<ptrdiff_t>(at));
          return path + " is taken away";
        case 1:
          value.members[at].key += "x";
          return path + " is called otherwise";
        default:
          std::swap(value.members[at].value, value.members[Below(value.members.size())].value);
          return path + " is exchanged";
      }
    }
    if (value.is_list() && !value.list.empty()) {
      const size_t at = Below(value.list.size());
      const std::string path = format("{}.{}", spot->path, at);
      switch (Below(3)) {
        case 0:
          value.list.erase(value.list.begin() + static_cast<ptrdiff_t>(at));
          return path + " is taken away";
        case 1: {
          const Value copy = value.list[at];
          value.list.insert(value.list.begin() + static_cast<ptrdiff_t>(at), copy);
          return path + " is written twice";
        }
        default:
          std::swap(value.list[at], value.list[Below(value.list.size())]);
          return path + " is exchanged";
      }
    }
    if (!value.is_scalar()) return "";
    static const std::vector<std::string> kTexts = {"-1",
                                                    "0",
                                                    "1",
                                                    "2",
                                                    "3",
                                                    "7",
                                                    "0.5",
                                                    "-0.5",
                                                    "1e-30",
                                                    "1e30",
                                                    "1000000000",
                                                    "9223372036854775807",
                                                    ".inf",
                                                    "-.inf",
                                                    ".nan",
                                                    "true",
                                                    "false",
                                                    "null",
                                                    "word",
                                                    "data",
                                                    "a",
                                                    "y",
                                                    "softmax_label",
                                                    "accuracy",
                                                    "auto",
                                                    "none",
                                                    "relu",
                                                    "sgd"};
    static const std::vector<Value> kOthers = {
        Value::List({}), Value::Map({}), Value{},
        Value::List({Value::Scalar("1"), Value::Scalar("2")}), Value::Scalar("", {}, true)};
    const size_t k = Below(kTexts.size() + kOthers.size());
    value = k < kTexts.size() ? Value::Scalar(kTexts[k]) : kOthers[k - kTexts.size()];
    return spot->path + " is " + config::ToFlow(value);
  }

  std::mt19937_64 random_;
};

int FromEnvironment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

TEST_CASE("check passes the examples, and train starts") {
  const Examples examples;
  for (size_t i = 0; i < examples.size(); ++i) {
    CAPTURE(config::ToYaml(examples[i]));
    const Examples::Codes codes = examples.Try(examples[i]);
    CAPTURE(ReadFile((examples.path() / "log").string()));
    // Images that are in both sets are worth a warning.
    const bool passes = codes.check == 0 || codes.check == 9;
    CHECK(passes);
    CHECK(codes.train == 0);
  }
}

TEST_CASE("train starts if check passes after an edit") {
  const Examples examples;
  const int edits = FromEnvironment("MXTRAIN_CHECK_EDITS", 80),
            first = FromEnvironment("MXTRAIN_CHECK_SEED", 0);
  int passed = 0;
  for (int seed = first; seed < first + edits; ++seed) {
    Value tree = examples[static_cast<size_t>(seed) % examples.size()];
    Editor editor(static_cast<uint64_t>(seed));
    std::string edit = editor.Edit(&tree);
    if (seed % 3 == 0) edit += ", " + editor.Edit(&tree);
    const Examples::Codes codes = examples.Try(tree);
    CAPTURE(seed);
    CAPTURE(edit);
    CAPTURE(codes.said);
    CHECK_MESSAGE(codes.check != 1, ReadFile((examples.path() / "log").string()));
    const bool begins = codes.train == 0 || codes.train == 7;
    CHECK(begins);
    passed += codes.check == 0 || codes.check == 9;
  }
  CHECK(passed > edits / 20);
  MESSAGE(passed, " of ", edits, " edits passed");
}

TEST_CASE("train starts with malformed configurations that check passes") {
  const Examples examples;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(SourceDir() / "tests" / "cli" / "bad_configs")) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().filename().string());
    const Examples::Codes codes = examples.Try(ReadFile(entry.path().string()));
    CAPTURE(codes.said);
    CHECK(codes.check != 1);
    const bool begins = codes.train == 0 || codes.train == 7;
    CHECK(begins);
  }
}

}  // namespace
}  // namespace mxtrain::test
