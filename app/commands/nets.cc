// SPDX-License-Identifier: Apache-2.0
// mxtrain nets [NAME...]: the nets that come with the program.
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "app/commands/command_list.h"
#include "app/commands/layer_costs.h"
#include "app/config/zoo.h"
#include "app/report/output.h"
#include "app/report/text_width.h"
#include "app/session/device_choice.h"
#include "app/session/session.h"
#include "mxtrain/base/error.h"
#include "mxtrain/train/loss_report.h"

namespace mxtrain::commands {
namespace {

struct NetFacts {
  std::string name;
  TShape input;  // of one image
  int64_t parameters = 0;
  double flops = 0;                     // forward, one image
  int64_t training = 0, inference = 0;  // bytes: of a batch as given, of one image
};

// "5,288,548"
std::string Grouped(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

class Nets final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments =
        line.Add("nets", "list the nets that come with the program, with their cost");
    arguments.Option("name", &names_, "nets to list; default: all").Takes("NAME");
    arguments.Option("--batch", &batch_, "images per step, for the memory that training takes")
        .Within(1, 65536)
        .ShowsDefault();
    arguments.Examples("  mxtrain nets\n  mxtrain nets resnet50 efficientnet_b0 --batch 64");
  }

  int Run(const CommonFlags& flags, console::Console& console) override {
    session::DeviceOf(flags);  // refuses several
    const std::vector<std::string> names = names_.empty() ? config::NetNames() : names_;
    for (const std::string& name : names) config::NetFile(name);  // refuses others at once
    if (flags.json) {
      Json all = Json::array();
      for (const std::string& name : names) all.push_back(ToJson(FactsOf(name, flags, console)));
      std::cout << report::JsonText(all, 2) << std::endl;
      return 0;
    }
    constexpr size_t kWhole = 82;  // columns of the table
    const bool narrow = report::ColumnsOf(STDOUT_FILENO).value_or(kWhole) < kWhole;
    if (narrow) input_width_ = 9;
    std::cout << format("{:<{}}  {:>{}}  {:>12}  {:>7}  {:>12}  {:>9}\n", "net", kNameWidth,
                        "input", input_width_, "parameters", "GFLOP",
                        format("training x{}", batch_), "inference");
    for (const std::string& name : names) Print(FactsOf(name, flags, console));
    std::cout << report::Refilled(
        "GFLOP: forward, for one image (a multiplication with its addition counts as two). Memory "
        "of arrays: of training as the net's recipe does, and of inference on one image. `net: "
        "{use: NAME}` takes a net for your own data, `mxtrain init FOLDER --net NAME --weights "
        "FILE` writes the whole recipe.\n",
        report::HelpColumns());
    return 0;
  }

 private:
  NetFacts FactsOf(const std::string& name, const CommonFlags& flags,
                   console::Console& console) const {
    ConfigArguments arguments;
    arguments.file = config::NetFile(name).string();
    arguments.overrides = {format("data.batch_size={}", batch_)};
    session::Session session(arguments, flags, console.log());
    session.BuildNet();
    NetFacts facts{name, session.net().inputs[0].shape, 0, 0, 0, 0};
    for (const LayerCost& layer : CostsOfLayers(session)) {
      facts.parameters += layer.parameters;
      facts.flops += layer.flops / batch_;
    }
    facts.training = session::TotalOf(session.BytesOfTraining(batch_));
    std::vector<InputInfo> inputs;
    for (const config::NetInput& input : session.net().inputs)
      inputs.push_back({input.name, input.shape, input.dtype});
    const Symbol predicts = PredictionsOf(session.net().symbol);
    facts.inference = session::TotalOf(session::InferenceBytes(
        session.runtime(), predicts, inputs, 1, session.ctx(), session.MakeTrainOptions().modes));
    return facts;
  }

  // Without losses whose values are no predictions: their labels may be of any size.
  static Symbol PredictionsOf(const Symbol& net) {
    const LossReport losses(net);
    std::vector<Symbol> outputs;
    for (int i = 0; i < net.NumOutputs(); ++i) {
      const bool is_value = std::ranges::any_of(losses.heads(), [i](const LossReport::Head& head) {
        return head.output == i && head.kind == LossReport::Head::Kind::kMean;
      });
      if (!is_value) outputs.push_back(net[i]);
    }
    return outputs.empty() ? net : Symbol::Group(outputs);
  }

  void Print(const NetFacts& net) const {
    const TShape& in = net.input;
    const bool is_long = net.name.size() > kNameWidth;
    const std::string input =
        in.ndim() == 3 ? format("{}x{}x{}", in[0], in[1], in[2]) : in.ToString();
    std::cout << (is_long ? format("{}\n{:>{}}", net.name, input, kNameWidth + 2 + input_width_)
                          : format("{:<{}}  {:>{}}", net.name, kNameWidth, input, input_width_))
              << format("  {:>12}  {:>7.2f}  {:>12}  {:>9}\n", Grouped(net.parameters),
                        net.flops / 1e9, FormatBytes(net.training), FormatBytes(net.inference))
              << std::flush;
  }

  Json ToJson(const NetFacts& net) const {
    Json input = Json::array();
    for (int i = 0; i < net.input.ndim(); ++i) input.push_back(net.input[i]);
    return {{"net", net.name},
            {"file", config::NetFile(net.name).string()},
            {"input", input},
            {"parameters", net.parameters},
            {"flop", net.flops},
            {"batch_size", batch_},
            {"training_bytes", net.training},
            {"inference_bytes", net.inference}};
  }

  static constexpr size_t kNameWidth = 21;  // of the table; a longer name has a line of its own
  std::vector<std::string> names_;
  size_t input_width_ = 11;  // of the table
  int batch_ = 32;
};

}  // namespace

MXTRAIN_COMMAND(nets, list) {
  list.Add(HelpGroup::kReference, 10, std::make_unique<Nets>());
}

}  // namespace mxtrain::commands
