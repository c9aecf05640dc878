// SPDX-License-Identifier: Apache-2.0
// mxtrain generate MODEL
#include <algorithm>
#include <iostream>

#include "app/commands/command_list.h"
#include "app/commands/model_facts.h"
#include "app/inference/cut_model.h"
#include "app/inference/open_model.h"
#include "app/inference/text_generator.h"
#include "app/report/output.h"
#include "app/session/compute_modes.h"
#include "app/session/device_choice.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/text_files.h"

namespace mxtrain::commands {
namespace {

class Generate final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("generate", "continue a text with a language model");
    DeclareModel(arguments, &model_);
    arguments.Option("--prompt", &prompt_, "the text to continue; default: a new line")
        .Takes("TEXT");
    arguments
        .Option("--prompt-file", &prompt_file_, "a file with the text to continue; - for stdin")
        .Takes("FILE");
    arguments.Option("--max-tokens", &max_tokens_, "tokens to generate at most")
        .Positive()
        .ShowsDefault();
    arguments
        .Option("--temperature", &sampling_.temperature,
                "below 1 the text is more probable, above 1 less; 0: the most probable token each "
                "time")
        .Within(0.0, 100.0)
        .ShowsDefault();
    arguments.Option("--top-k", &sampling_.top_k, "only the K most probable tokens; 0: all of them")
        .NotNegative()
        .ShowsDefault();
    arguments
        .Option("--top-p", &sampling_.top_p,
                "only the most probable tokens that together have this probability")
        .Within(0.0, 1.0)
        .ShowsDefault();
    arguments
        .Option("--stop", &stops_,
                "end before this text; may be repeated. The end of a text, if the tokenizer has "
                "one, ends it anyway")
        .Takes("TEXT")
        .Repeats();
    arguments.Examples(
        "  mxtrain generate runs/latest --prompt \"ROMEO:\"\n  mxtrain generate runs/latest "
        "--temperature 0.8 --top-k 200 --max-tokens 500 --seed 7");
  }

  int Run(const CommonFlags& flags, console::Console& console) override {
    if (!prompt_.empty() && !prompt_file_.empty())
      Throw(ErrorKind::kUsage, "--prompt and --prompt-file: give one of them");
    if (std::ranges::count(stops_, "") > 0)
      Throw(ErrorKind::kUsage, "--stop: a text of no characters is everywhere");
    sampling_.seed = flags.seed.value_or(0);
    auto [runtime, model, only_batch, unread] =
        inference::OpenModel(flags, model_, {}, console.log());
    inference::RemoveLabels(runtime->operators(), &model, console.logger());
    const text::TokenizerPtr tokenizer = inference::TokenizerOf(model);
    const Context device = session::DeviceOf(flags);
    inference::TextGenerator generator(
        *runtime, model, tokenizer->vocabulary_size(), device,
        session::ModesOf(model, flags, *runtime, device, {}, console.logger()));
    const std::string prompt = Prompt();
    text::Ids ids = io::EncodeBeginning(*tokenizer, prompt);
    if (ids.empty()) Throw(ErrorKind::kUsage, "the prompt has no token");
    if (std::ssize(ids) > generator.length()) {
      Throw(ErrorKind::kUsage, "the prompt has {}, and the model reads at most {}",
            Counted(std::ssize(ids), "token"), generator.length());
    }
    CatchSignals();
    const size_t prompted = ids.size();
    const std::string written = Continue(*tokenizer, &generator, &ids, flags.json ? "" : prompt);
    if (flags.json) {
      std::cout << report::JsonText({{"prompt", prompt},
                                     {"text", written},
                                     {"tokens", static_cast<int64_t>(ids.size() - prompted)}})
                << "\n";
    }
    std::cout << std::flush;
    return StopFlag() == 1 ? 128 + StopSignal() : 0;
  }

 private:
  std::string Prompt() const {
    if (prompt_file_.empty()) return prompt_.empty() ? "\n" : prompt_;
    return ReadFile(prompt_file_ == "-" ? "/dev/stdin" : prompt_file_, size_t{1} << 26,
                    Readable::kFileOrPipe);
  }

  // Adds tokens until there are enough, one ends the text, or a stop is written, and returns their
  // text; prints it as it comes, after `shown`, unless that is empty.
  std::string Continue(const text::Tokenizer& tokenizer, inference::TextGenerator* generator,
                       text::Ids* ids, const std::string& shown) const {
    const bool prints = !shown.empty();
    if (prints) std::cout << shown << std::flush;
    inference::TokenSampler sampler(sampling_);
    const std::vector<text::TokenId> unused = UnusedIds(tokenizer);
    const std::optional<text::TokenId> end_of_text = io::SeparatorOf(tokenizer);
    const std::string before = tokenizer.Decode(*ids);
    std::string text;
    size_t printed = 0;
    for (int64_t k = 0; k < max_tokens_ && StopFlag() == 0; ++k) {
      const std::span<float> probabilities = generator->After(*ids);
      for (const text::TokenId id : unused) probabilities[id] = 0;
      const auto next = static_cast<text::TokenId>(sampler.Draw(probabilities, k));
      if (next == end_of_text) break;
      ids->push_back(next);
      const std::string whole = tokenizer.Decode(*ids);  // as it follows the prompt
      text = whole.substr(std::min(before.size(), whole.size()));
      const size_t end = StopIn(text);
      if (end != std::string::npos) {
        text.resize(end);
        break;
      }
      const size_t sure = SureOf(text);
      if (prints && sure > printed) std::cout << text.substr(printed, sure - printed) << std::flush;
      printed = std::max(printed, sure);
    }
    if (prints) std::cout << text.substr(std::min(printed, text.size())) << "\n";
    return text;
  }

  // Ids that no token has, where a vocabulary has gaps.
  static std::vector<text::TokenId> UnusedIds(const text::Tokenizer& tokenizer) {
    std::vector<text::TokenId> unused;
    for (int64_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
      try {
        tokenizer.TokenOf(static_cast<text::TokenId>(id));
      } catch (const Error&) {
        unused.push_back(static_cast<text::TokenId>(id));
      }
    }
    return unused;
  }

  // Where the first stop begins.
  size_t StopIn(const std::string& text) const {
    size_t first = std::string::npos;
    for (const std::string& stop : stops_) first = std::min(first, text.find(stop));
    return first;
  }

  // How much of a text can be printed: not what may become a stop, or a character that lacks bytes.
  size_t SureOf(const std::string& text) const {
    size_t sure = text.size();
    for (const std::string& stop : stops_) {
      for (size_t part = std::min(stop.size(), text.size()); part > 0; --part) {
        if (text.ends_with(std::string_view(stop).substr(0, part))) {
          sure = std::min(sure, text.size() - part);
          break;
        }
      }
    }
    constexpr size_t kLongest = 4;  // bytes of a character
    for (size_t back = 1; back <= std::min(kLongest, sure); ++back) {
      const auto byte = static_cast<unsigned char>(text[sure - back]);
      if ((byte & 0xC0) == 0x80) continue;
      const size_t wanted = byte < 0x80 ? 1 : byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
      return wanted > back ? sure - back : sure;
    }
    return sure;
  }

  std::string model_, prompt_, prompt_file_;
  std::vector<std::string> stops_;
  inference::SamplingOptions sampling_;
  int64_t max_tokens_ = 200;
};

}  // namespace

MXTRAIN_COMMAND(generate, list) {
  list.Add(HelpGroup::kModel, 55, std::make_unique<Generate>());
}

}  // namespace mxtrain::commands
