// SPDX-License-Identifier: Apache-2.0
// mxtrain generate MODEL
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <span>
#include <sstream>

#include "app/commands/command_list.h"
#include "app/commands/model_facts.h"
#include "app/inference/cut_model.h"
#include "app/inference/open_model.h"
#include "app/inference/text_generator.h"
#include "app/inference/text_writer.h"
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
    arguments
        .Option("--prompt", &prompt_,
                "the text to continue, or the question to answer; default: a new line")
        .Takes("TEXT");
    arguments
        .Option("--prompt-file", &prompt_file_, "a file with the text to continue; - for stdin")
        .Takes("FILE");
    arguments
        .Option("--prompts", &prompts_,
                "a file with a text to continue on each line; - for stdin. With --json each gives "
                "a line")
        .Takes("FILE");
    arguments
        .Option("--system", &system_,
                "of a model that was trained on conversations: what the system says before the "
                "question")
        .Takes("TEXT");
    arguments.Flag("--raw", &raw_,
                   "of a model that was trained on conversations: continue the prompt as it is, "
                   "instead of answering it as a question");
    arguments.Option("--batch", &batch_, "prompts of --prompts to continue at once")
        .Positive()
        .ShowsDefault();
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
    arguments
        .Option("--keep", &options_.keep,
                "of a text that has become longer than the model reads, the tokens that stay; the "
                "window then fills again; default: half of it")
        .Positive();
    arguments.Flag("--no-cache", &no_cache_,
                   "compute each token from the whole window, without a cache of keys and values");
    arguments.Examples(
        "  mxtrain generate runs/latest --prompt \"ROMEO:\"\n  mxtrain generate runs/latest "
        "--temperature 0.8 --top-k 200 --max-tokens 500 --seed 7");
  }

  int Run(const CommonFlags& flags, console::Console& console) override {
    if (!prompt_.empty() + !prompt_file_.empty() + !prompts_.empty() > 1)
      Throw(ErrorKind::kUsage, "--prompt, --prompt-file and --prompts: give one of them");
    if (std::ranges::count(stops_, "") > 0)
      Throw(ErrorKind::kUsage, "--stop: a text of no characters is everywhere");
    sampling_.seed = flags.seed.value_or(0);
    auto [runtime, model, only_batch, unread, calibration] =
        inference::OpenModel(flags, model_, {}, console.log());
    inference::RemoveLabels(runtime->operators(), &model, console.logger());
    const text::TokenizerPtr tokenizer = inference::TokenizerOf(model);
    const std::optional<text::ChatFormat> chat =
        raw_ ? std::nullopt : inference::ChatFormatOf(model);
    if (!chat && !system_.empty()) {
      Throw(ErrorKind::kUsage, "--system: {}",
            raw_ ? "with --raw there is none"
                 : model.file + " was not trained on conversations (data.train.source: chat)");
    }
    if (chat && prompt_.empty() + prompt_file_.empty() + prompts_.empty() == 3) {
      Throw(ErrorKind::kUsage,
            "{} answers questions: give one with --prompt, or --raw to continue a text",
            model.file);
    }
    const std::vector<std::string> prompts = Prompts();
    options_.rows = std::min(batch_, std::ssize(prompts));
    options_.caches = !no_cache_;
    const Context device = session::DeviceOf(flags);
    inference::TextGenerator generator(
        *runtime, model, tokenizer->vocabulary_size(), device,
        session::ModesOf(model, flags, *runtime, device, {}, console.logger()), options_,
        console.logger());
    std::vector<GrowingText> texts = Begin(*tokenizer, chat, prompts, generator.length());
    CatchSignals();
    inference::TextWriter writer(*tokenizer, sampling_, max_tokens_);
    const auto rows = static_cast<size_t>(options_.rows);
    for (size_t first = 0; first < texts.size() && StopFlag() == 0; first += rows) {
      const auto group = std::span(texts).subspan(first, std::min(rows, texts.size() - first));
      const bool streams = texts.size() == 1 && !flags.json;
      if (streams && !chat) std::cout << Shown(group[0].prompt) << std::flush;
      writer.Write(&generator, group, static_cast<int64_t>(first), [&] {
        if (streams) std::cout << Shown(group[0].stream.Next()) << std::flush;
        return StopFlag() == 0;
      });
      for (GrowingText& text : group) {
        if (!flags.json && !streams) {
          std::cout << (&text != texts.data() ? "\n" : "") << Shown(text.prompt)
                    << (chat ? "\n" : "");
        }
        Print(text, streams, flags.json);
      }
    }
    std::cout << std::flush;
    return StopFlag() == 1 ? 128 + StopSignal() : 0;
  }

 private:
  using GrowingText = inference::GrowingText;

  std::vector<std::string> Prompts() const {
    constexpr size_t kMostBytes = size_t{1} << 26;
    const auto read = [](const std::string& file) {
      return ReadFile(file == "-" ? "/dev/stdin" : file, kMostBytes, Readable::kFileOrPipe);
    };
    if (!prompt_file_.empty()) return {read(prompt_file_)};
    if (prompts_.empty()) return {prompt_.empty() ? "\n" : prompt_};
    std::vector<std::string> lines;
    std::istringstream text(read(prompts_));
    for (std::string line; std::getline(text, line);) {
      if (line.ends_with('\r')) line.pop_back();
      if (!line.empty()) lines.push_back(line);
    }
    if (lines.empty()) Throw(ErrorKind::kData, "{}: there is no prompt in it", prompts_);
    return lines;
  }

  // Of a conversation: up to where its answer begins.
  text::Ids IdsOf(const text::Tokenizer& tokenizer, const std::optional<text::ChatFormat>& chat,
                  const std::string& prompt) const {
    if (!chat) return io::EncodeBeginning(tokenizer, prompt);
    text::Ids ids;
    if (!system_.empty()) chat->Encode(tokenizer, {text::ChatRole::kSystem, system_}, &ids);
    const std::string_view question = Trim(prompt, "\r\n");  // of a file
    chat->Encode(tokenizer, {text::ChatRole::kUser, std::string(question)}, &ids);
    chat->BeginAnswer(tokenizer, &ids);
    return ids;
  }

  std::vector<GrowingText> Begin(const text::Tokenizer& tokenizer,
                                 const std::optional<text::ChatFormat>& chat,
                                 const std::vector<std::string>& prompts, int64_t most) const {
    std::vector<GrowingText> texts;
    std::vector<std::string> stops = stops_;
    if (chat) stops.push_back(chat->end());
    for (const std::string& prompt : prompts) {
      text::Ids ids = IdsOf(tokenizer, chat, prompt);
      const std::string which = prompts.size() == 1
                                    ? "the prompt"
                                    : format("prompt {} ('{}')", texts.size() + 1,
                                             report::Printable(prompt.substr(0, 40)));
      if (ids.empty()) Throw(ErrorKind::kUsage, "{} has no token", which);
      if (std::ssize(ids) > most) {
        Throw(ErrorKind::kUsage, "{} has {}, and the model reads at most {}", which,
              Counted(std::ssize(ids), "token"), most);
      }
      texts.push_back({prompt, inference::TextStream(tokenizer, stops, std::move(ids))});
    }
    return texts;
  }

  // On a terminal printable: a model of others may have learnt what terminals obey.
  static std::string Shown(std::string_view text) {
    return isatty(STDOUT_FILENO) != 0 ? report::PrintableLines(text) : std::string(text);
  }

  static void Print(GrowingText& text, bool streamed, bool json) {
    const std::string rest(text.stream.Last());
    if (json) {
      std::cout << report::JsonText({{"prompt", text.prompt},
                                     {"text", text.stream.text()},
                                     {"tokens", text.tokens},
                                     {"ended_by", inference::NameOf(text.end)}})
                << "\n";
    } else {
      std::cout << Shown(streamed ? rest : text.stream.text()) << "\n";
    }
  }

  std::string model_, prompt_, prompt_file_, prompts_, system_;
  std::vector<std::string> stops_;
  inference::SamplingOptions sampling_;
  inference::GenerationOptions options_;
  int64_t max_tokens_ = 200, batch_ = 8;
  bool no_cache_ = false, raw_ = false;
};

}  // namespace

MXTRAIN_COMMAND(generate, list) {
  list.Add(HelpGroup::kModel, 55, std::make_unique<Generate>());
}

}  // namespace mxtrain::commands
