// SPDX-License-Identifier: Apache-2.0
// mxtrain check CONFIG: everything that can be checked before training, including the first step;
// changes nothing.
#include <algorithm>
#include <functional>
#include <iostream>
#include <optional>
#include <set>

#include "app/commands/check_data.h"
#include "app/commands/check_tables.h"
#include "app/commands/check_texts.h"
#include "app/commands/command_list.h"
#include "app/commands/label_trial.h"
#include "app/commands/learning_rates.h"
#include "app/commands/pretrained.h"
#include "app/commands/progress.h"
#include "app/config/schema.h"
#include "app/report/output.h"
#include "app/session/device_choice.h"
#include "app/session/open_runtime.h"
#include "app/session/session.h"
#include "mxtrain/base/error.h"
#include "mxtrain/io/pipeline.h"

namespace mxtrain::commands {
namespace {

// The findings, each once; reported as they are found.
class Findings {
 public:
  explicit Findings(console::Console& console) : console_(console) {}

  void Add(LogLevel level, const std::string& text) {
    if (AddSaid(level, text)) console_.Message(level, report::Printable(text));
  }
  void Add(const DataFinding& finding) {
    if (!AddSaid(LogLevel::kWarning, finding.text)) return;
    console_.Message(LogLevel::kWarning, report::Printable(finding.text));
    if (!finding.examples.empty()) list_.back()["examples"] = finding.examples;
  }
  // Marks a finding as reported. False if it already was.
  bool AddSaid(LogLevel level, const std::string& text) {
    if (!seen_.insert(report::MessageText(text)).second) return false;
    list_.push_back(
        {{"severity", level == LogLevel::kError ? "error" : "warning"}, {"message", text}});
    return true;
  }
  // Says that a warning is none: of files that are skipped.
  void Pass(const std::string& text) { seen_.insert(report::MessageText(text)); }
  void Add(const config::DiagnosticError& error) {
    if (!seen_.insert(error.what()).second) return;
    std::cerr << error.what();
    for (Json& diagnostic : Json::parse(error.Json())) list_.push_back(std::move(diagnostic));
  }
  // Runs a part of the check; an exception becomes a finding, unless it is not about the
  // configuration or its data.
  bool Try(const std::function<void()>& part) {
    try {
      part();
      return true;
    } catch (const config::DiagnosticError& e) {
      obstacle_ = obstacle_.value_or(e.kind());
      Add(e);
    } catch (const Error& e) {
      static constexpr ErrorKind kOfTheRun[] = {ErrorKind::kConfig, ErrorKind::kData,
                                                ErrorKind::kFileSystem, ErrorKind::kDiverged};
      if (std::find(std::begin(kOfTheRun), std::end(kOfTheRun), e.kind()) == std::end(kOfTheRun))
        throw;
      obstacle_ = obstacle_.value_or(e.kind());
      Add(LogLevel::kError, e.what());
    }
    return false;
  }
  const Json& list() const { return list_; }
  // "3 findings: 1 error, 2 warnings"
  std::string Count() const {
    const auto is_error = [](const Json& finding) { return finding.at("severity") == "error"; };
    const int64_t all = static_cast<int64_t>(list_.size()),
                  errors = std::count_if(list_.begin(), list_.end(), is_error);
    if (all == 0) return "no findings";
    return format("{}: {}{}{}", Counted(all, "finding"), errors > 0 ? Counted(errors, "error") : "",
                  errors > 0 && errors < all ? ", " : "",
                  errors < all ? Counted(all - errors, "warning") : "");
  }
  bool any_error() const { return obstacle_.has_value(); }
  // The exit code: if a part of the check could not run, that of the first such error, as another
  // command would exit; else whether there are findings.
  int ExitCode() const {
    if (obstacle_) return static_cast<int>(*obstacle_);
    return list_.empty() ? 0 : static_cast<int>(ErrorKind::kCheckFailed);
  }

 private:
  std::optional<ErrorKind> obstacle_;
  console::Console& console_;
  std::set<std::string> seen_;
  Json list_ = Json::array();
};

bool Stopped() {
  return StopFlag() == 1;
}

class Check final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments =
        line.Add("check", "find problems in a configuration and its data before training");
    config_.Declare(arguments, /*required=*/false);
    arguments.Flag("--schema", &schema_,
                   "print the JSON schema of configurations, for editors; does not need CONFIG");
    arguments.Flag(
        "--strict", &strict_,
        "also report notes (small, gray or rotated images, class imbalance) as findings");
    arguments.Examples(
        "  mxtrain check config.yaml\n  mxtrain check config.yaml data.train.path=photos --json\n"
        "  mxtrain check --schema > mxtrain.schema.json\n"
        "  mxtrain check config.yaml -q && mxtrain train config.yaml\n"
        "      # 0: nothing found; 9: findings in the data; 3, 4, 7, 8: training could not start");
  }

  int Run(const CommonFlags& flags, console::Console& console) override {
    if (schema_) {
      std::cout << config::JsonSchema(*session::MakeRegistry(flags.plugins)) << "\n";
      return 0;
    }
    if (config_.file.empty()) Throw(ErrorKind::kUsage, "CONFIG is required: mxtrain check CONFIG");
    CatchSignals();
    console.ShowWarningsOnce();
    Findings findings(console);
    Json result = {{"ok", false}, {"findings", 0}};
    bool opened = false;
    findings.Try([&] {
      session::Session session(config_, session::WithoutAutoGpu(flags), console.log());
      opened = true;
      CheckAll(session, console, &findings, &result);
    });
    if (Stopped()) return 128 + StopSignal();
    // What was warned of while the session was made is a finding, too.
    for (const std::string& text : console.Warnings()) findings.AddSaid(LogLevel::kWarning, text);
    result["ok"] = findings.list().empty();
    result["findings"] = findings.list().size();
    result["diagnostics"] = findings.list();
    if (flags.json) {
      std::cout << report::JsonText(result) << std::endl;
    } else if (!flags.quiet || !findings.list().empty()) {
      if (result.contains("steps")) {
        std::cout << format(
            "{} training examples, {} for validation; {} steps; the net matches the data{}\n",
            result["train_examples"].get<int64_t>(), result["val_examples"].get<int64_t>(),
            result["steps"].get<int64_t>(), TargetsOf(result));
      }
      // Where there was nothing to check, the error says all.
      if (opened || findings.list().size() > 1)
        std::cout << format("{}{}\n", findings.Count(), NotesOf(result));
    }
    return findings.ExitCode();
  }

 private:
  // Labels that are images or lists.
  static std::string TargetsOf(const Json& result) {
    std::string text;
    for (const auto& [name, shape] : result["labels"].items()) {
      if (shape.size() > 1) text += format("; label '{}' is {}", name, shape.dump());
    }
    return text;
  }
  static std::string NotesOf(const Json& result) {
    const size_t notes = result.contains("notes") ? result["notes"].size() : 0;
    return notes > 0 ? "; " + Counted(notes, "note") : "";
  }

  // If one part fails, the others still run as far as they can.
  void CheckAll(session::Session& session, console::Console& console, Findings* findings,
                Json* result) const {
    const bool net = findings->Try([&] { session.BuildNet(); });
    std::shared_ptr<const io::Source> train, val;
    findings->Try([&] { train = session.OpenSource(/*validation=*/false); });
    findings->Try([&] { val = session.OpenSource(/*validation=*/true); });
    for (const auto& source : {train, val}) {
      for (const std::string& text : source ? source->losses() : std::vector<std::string>())
        findings->AddSaid(LogLevel::kWarning, text);
      for (const std::string& text : source ? source->warnings() : std::vector<std::string>())
        findings->Pass(text);
    }
    for (const bool validation : {false, true}) {
      const auto& source = validation ? val : train;
      if (!source || !net) continue;
      for (const std::string& text : tasks::OddLabels(session.Tasks(), *source, !validation))
        findings->Add(LogLevel::kWarning, text);
    }
    CheckData(train.get(), val.get(), net ? &session.net() : nullptr, session.config().data,
              console, findings, result);
    if (!net || Stopped()) return;
    Rehearsal rehearsal;
    bool sound = true;
    findings->Try([&] { rehearsal = Bind(session, console, findings, result); });
    for (const bool validation : {false, true}) {
      if (validation ? val : train)
        findings->Try([&] { sound = ReadAll(session, validation, console, findings) && sound; });
    }
    if (sound && !findings->any_error() && !Stopped())
      findings->Try([&] { rehearsal.trainer->Rehearse(); });
  }

  // The shape of the net's only input, if it may be an image.
  static TShape ImageInput(const config::Net& net) {
    return net.inputs.size() == 1 && net.inputs[0].shape.ndim() == 3 ? net.inputs[0].shape
                                                                     : TShape();
  }

  // The sets as they are, before any transform. `net`: null if it could not be built.
  void CheckData(const io::Source* train, const io::Source* val, const config::Net* net,
                 const config::DataConfig& data, console::Console& console, Findings* findings,
                 Json* result) const {
    const TShape input = net ? ImageInput(*net) : TShape();
    DataSet sets[] = {{"data.train", train, {}}, {"data.val", val, {}}};
    std::vector<DataFinding> notes;
    if (!strict_) (*result)["notes"] = Json::array();
    if (train && val) {
      for (const std::string& text : CompareClasses(*train, *val))
        findings->Add(LogLevel::kWarning, text);
    }
    for (DataSet& set : sets) {
      if (!set.source) continue;
      Progress progress(console, format("{}: scanning", set.name), "records", set.source->size());
      set.facts = ScanImages(*set.source, Stopped, [&progress] { progress.Add(1); });
    }
    for (const DataFindings& found :
         {FindDuplicates(sets[0], sets[1]), FindNearDuplicates(sets[0], sets[1], Stopped),
          CheckTexts(sets[0], sets[1]), CheckTable(sets[0], sets[1], data.train.columns)}) {
      for (const DataFinding& finding : found.findings) findings->Add(finding);
      notes.insert(notes.end(), found.notes.begin(), found.notes.end());
    }
    for (const DataSet& set : sets) {
      if (!set.source) continue;
      (*result)["data"][set.name] = Summarize(set);
      for (DataFinding& note : DescribeOddities(set, input, data.bits))
        notes.push_back(std::move(note));
    }
    if (Stopped()) return;
    for (const DataFinding& note : notes) {
      if (strict_) {
        findings->Add(note);
        continue;
      }
      console.Message(LogLevel::kInfo, "note: " + note.text);
      (*result)["notes"].push_back(note.text);
      if (!note.examples.empty()) (*result)["note_examples"][note.text] = note.examples;
    }
  }

  // Everything that a run does before its first step.
  struct Rehearsal {
    std::unique_ptr<DataIter> train, val;
    std::unique_ptr<Trainer> trainer;
  };
  static Rehearsal Bind(session::Session& session, console::Console& console, Findings* findings,
                        Json* result) {
    Rehearsal rehearsal{session.TrainIter(), session.ValIter(), nullptr};
    TrainOptions options = session.MakeTrainOptions();
    options.measure_kernels = false;
    session.CacheFeatures(&options);
    rehearsal.trainer = std::make_unique<Trainer>(session.runtime(), options, *rehearsal.train,
                                                  rehearsal.val.get());
    const std::string gap = TakePretrained(session, rehearsal.trainer.get(), console);
    if (!gap.empty()) findings->AddSaid(LogLevel::kWarning, gap);
    TellRates(session, console);
    (*result)["train_examples"] = rehearsal.train->examples();
    (*result)["val_examples"] = rehearsal.val ? rehearsal.val->examples() : 0;
    Json& labels = (*result)["labels"] = Json::object();
    for (const DataDesc& label : rehearsal.train->provide_label())
      labels[label.name] = std::vector<int64_t>(label.shape.begin() + 1, label.shape.end());
    (*result)["steps"] = rehearsal.trainer->total_steps();
    return rehearsal;
  }

  // Reads every example, fully decoded and transformed, and checks its labels against losses and
  // metrics. False if one fails.
  static bool ReadAll(session::Session& session, bool validation, console::Console& console,
                      Findings* findings) {
    const std::unique_ptr<DataIter> iter = session.WholeIter(validation);
    LabelTrial labels(session, *iter);
    Progress progress(console, "reading", "examples", iter->examples());
    DataBatch batch;
    std::optional<std::string> refused;  // by the first label that is
    iter->Reset(0);
    while (!Stopped() && iter->Next(&batch)) {
      for (const NDArray& array : batch.data) array.WaitToRead();
      if (!refused) refused = labels.WhyNot(batch, *iter);
      progress.Add(batch.count);
    }
    for (const auto& [name, reason] : iter->stats().bad)
      findings->Add(LogLevel::kWarning, report::NameAndReason(name, reason));
    if (!validation) findings->Try([&] { RefuseBad(session, *iter); });
    if (refused) Throw(ErrorKind::kData, "{}", *refused);
    return iter->stats().bad.empty();
  }

  // Where so many examples are unreadable that `train` ends.
  static void RefuseBad(const session::Session& session, const DataIter& iter) {
    const double max_bad = session.config().data.max_bad;
    const std::ptrdiff_t bad = std::ssize(iter.stats().bad);
    if (bad <= io::ToleratedBad(max_bad, iter.examples())) return;
    Throw(ErrorKind::kData,
          "{} of {} training examples {} unreadable, more than max_bad = {} (data.max_bad) allows: "
          "`train` will end with this error; repair or remove them, or allow more",
          bad, iter.examples(), bad == 1 ? "is" : "are", max_bad);
  }

  ConfigArguments config_;
  bool schema_ = false, strict_ = false;
};

}  // namespace

MXTRAIN_COMMAND(check, list) {
  list.Add(HelpGroup::kModel, 20, std::make_unique<Check>());
}

}  // namespace mxtrain::commands
