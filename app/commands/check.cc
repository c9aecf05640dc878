// mxtrain check CONFIG: everything that can be known before the first step; changes nothing.
#include <iostream>
#include <set>

#include "app/commands/session.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/json.h"

namespace mxtrain::commands {
namespace {

class Check final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("check", "find what is wrong with a configuration and its data, before training");
    config_.Declare(arguments);
    arguments.Examples("  mxtrain check config.yaml\n  mxtrain check config.yaml data.train.path=photos --json");
  }

  int Run(const CommonFlags& flags, report::Console& console) override {
    try {
      return RunChecks(flags, console);
    } catch (const config::DiagnosticError& e) {
      std::cerr << e.what();
      if (flags.json) std::cout << Json{{"ok", false}, {"diagnostics", Json::parse(e.Json())}}.dump() << std::endl;
    } catch (const Error& e) {
      console.Message(LogLevel::kError, e.what());
      if (flags.json) std::cout << Json{{"ok", false}, {"diagnostics", {{{"severity", "error"}, {"message", e.what()}}}}}.dump() << std::endl;
    }
    return static_cast<int>(ErrorKind::kCheckFailed);
  }

 private:
  int RunChecks(const CommonFlags& flags, report::Console& console) {
    Session session(config_, flags, console);
    session.BuildNet();
    int findings = 0;
    auto train = session.TrainIter();
    auto val = session.ValIter();
    // Binds, so that kernels, metrics, optimizer and schedule are checked as well.
    Trainer trainer(session.runtime(), session.MakeTrainOptions(), *train, val.get());
    for (DataIter* iter : {train.get(), val.get()}) {
      if (iter) findings += ReadAll(*iter, console);
    }
    if (StopFlag() == 1) return 128 + StopSignal();
    const std::string summary = format("{} training examples, {} for validation; {} steps; the net binds", train->examples(), val ? val->examples() : 0,
                                       trainer.total_steps());
    if (flags.json) {
      std::cout << Json{{"ok", findings == 0}, {"findings", findings}, {"train_examples", train->examples()}, {"val_examples", val ? val->examples() : 0},
                        {"steps", trainer.total_steps()}}.dump()
                << std::endl;
    } else {
      std::cout << summary << (findings == 0 ? "\nno findings\n" : format("\n{} findings\n", findings));
    }
    return findings == 0 ? 0 : static_cast<int>(ErrorKind::kCheckFailed);
  }

  // Reads every example once, as training will.
  static int ReadAll(DataIter& iter, report::Console& console) {
    CatchSignals();
    DataBatch batch;
    int stopped = 0;
    iter.Reset(0);
    try {
      while (StopFlag() != 1 && iter.Next(&batch)) {
        for (const NDArray& array : batch.data) array.WaitToRead();
      }
    } catch (const Error& e) {
      console.Message(LogLevel::kError, e.what());
      ++stopped;
    }
    const auto bad = iter.stats().bad;
    for (const auto& [name, reason] : bad) console.Message(LogLevel::kWarning, format("{}: {}", name, reason));
    return static_cast<int>(bad.size()) + stopped;
  }

  ConfigArguments config_;
};

}  // namespace

std::unique_ptr<Command> MakeCheck() { return std::make_unique<Check>(); }

}  // namespace mxtrain::commands
