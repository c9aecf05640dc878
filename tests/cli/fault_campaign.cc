// SPDX-License-Identifier: Apache-2.0
// Runs the program again and again, each time with another fault of the file system (faults.cc),
// and looks at what is left.
//
//   fault_campaign PROGRAM LIBRARY COUNT|all|FROM..TO
//
// in a folder that holds net.yaml, photos/ and the undisturbed run `base`. Of every operation of
// train, train --resume, infer, export and eval, and of every fault that fits it, COUNT are drawn,
// always in the same order; or all; or those from FROM to TO of that order, so that several
// processes, each in a folder of its own, can share the work. Nothing is lost if
//   - the program ends by itself, with a code that the documentation promises and a reason on
//     stderr, or by the SIGKILL that was the fault;
//   - what it had to write is whole or absent;
//   - the run can be resumed, or overwritten, and then ends in the checkpoint of the undisturbed
//     run, byte for byte.
// Each loss is said. The last line is "N faults, K kills, L lost"; the exit code is 0 where L is 0.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr int kLongest = 300;  // seconds; a longer run counts as hung

std::string Contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Ending {
  int code = 0, signal = 0;  // one of them is 0
};

class Program {
 public:
  Program(std::string program, std::string library)
      : program_(std::move(program)), library_(std::move(library)) {}

  // stderr goes to the file `stderr`. `faults`: NAME=VALUE for the library; none: undisturbed.
  Ending Run(const Words& arguments, const Words& faults = {}) const {
    const pid_t child = fork();
    if (child == 0) {
      for (const auto& [name, file] : {std::pair(1, "stdout"), std::pair(2, "stderr")})
        dup2(open(file, O_WRONLY | O_CREAT | O_TRUNC, 0666), name);
      for (const std::string& one : faults) putenv(strdup(one.c_str()));
      if (!faults.empty()) setenv("LD_PRELOAD", library_.c_str(), 1);
      std::vector<char*> words{strdup(program_.c_str())};
      for (const std::string& word : arguments) words.push_back(strdup(word.c_str()));
      words.push_back(nullptr);
      alarm(kLongest);  // survives exec
      execv(program_.c_str(), words.data());
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? Ending{0, WTERMSIG(status)} : Ending{WEXITSTATUS(status), 0};
  }

 private:
  const std::string program_, library_;
};

struct Scenario {
  const char* name;
  Words command;
  std::function<void()> prepare;
  std::function<std::string()> look;  // at what the command left: what is lost, or ""
  bool changes_run;                   // which is then resumed
};

struct Case {
  const Scenario* scenario;
  long at;
  char letter;
  std::string kind;
  bool for_good;
};

// The faults that fit an operation, by its letter (faults.cc).
const Words& KindsOf(char letter) {
  static const std::map<char, Words> kinds = {
      {'o', {"EIO", "EMFILE", "ENOMEM", "EMFILE+"}},
      {'c', {"ENOSPC", "EIO", "EMFILE", "ENOMEM", "ENOSPC+", "EMFILE+"}},
      {'r', {"EIO", "short", "EIO+", "short+"}},
      {'w', {"ENOSPC", "EIO", "short", "ENOSPC+", "EIO+", "short+"}},
      {'s', {"EIO", "ENOSPC", "EIO+"}},
      {'n', {"EIO", "ENOSPC", "ENOMEM", "EIO+"}},
      {'l', {"EIO", "ENOSPC", "EIO+"}},
      {'m', {"ENOSPC", "EIO", "ENOSPC+"}},
      {'u', {"EIO", "EIO+"}},
      {'d', {"EIO", "EMFILE", "ENOMEM"}},
      {'t', {"EAGAIN", "EAGAIN+"}},
  };
  return kinds.at(letter);
}

class Campaign {
 public:
  Campaign(const std::string& program, const std::string& library)
      : program_(program, library), here_(fs::current_path().string()) {
    const auto no_run = [] { fs::remove_all("run"); };
    const auto copy_of = [](const char* from) {
      return [from] {
        fs::remove_all("run");
        fs::copy(from, "run", fs::copy_options::recursive);
      };
    };
    const auto without = [](const char* file) { return [file] { fs::remove(file); }; };
    scenarios_ = {
        {"train", Train({}), no_run, [] { return std::string(); }, true},
        {"resume", Train({"--resume"}), copy_of("half"), [] { return std::string(); }, true},
        {"eval",
         {"eval", "run", "photos", "--threads", "1"},
         copy_of("base"),
         [this] { return Same("run/checkpoints/last", "base/checkpoints/last"); },
         false},
        {"infer",
         {"infer", "base", "photos", "--format", "csv", "--output", "out.csv", "--threads", "1"},
         without("out.csv"),
         [this] { return LinesOf("out.csv"); },
         false},
        {"export",
         {"export", "base", "out.safetensors"},
         without("out.safetensors"),
         [this] { return SameOrAbsent("out.safetensors"); },
         false},
    };
  }

  void Run(const std::string& count) {
    KeepHalf();
    std::vector<Case> cases = AllCases();
    const size_t all = cases.size();
    std::mt19937 random(1);
    std::shuffle(cases.begin(), cases.end(), random);
    const size_t dots = count.find(".."), from = dots == std::string::npos ? 0 : std::stoul(count);
    const size_t to =
        count == "all" ? all : std::stoul(count.substr(dots == std::string::npos ? 0 : dots + 2));
    cases.resize(std::min(all, to));
    cases.erase(cases.begin(), cases.begin() + static_cast<long>(std::min(cases.size(), from)));
    std::cout << all << " faults are possible, " << cases.size() << " are made" << std::endl;
    for (const Case& one : cases) {
      Try(one);
      if ((faults_ + kills_) % 500 == 0) Tell();
    }
    Tell();
  }

  long lost() const { return lost_; }

 private:
  static Words Train(const Words& more) {
    Words words{"train", "net.yaml", "--out", "run", "-q", "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  Words Faults(const std::string& at, const std::string& kind) const {
    return {"FAULTS_BELOW=" + here_, "FAULTS_LOG=" + here_ + "/operations", "FAULTS_AT=" + at,
            "FAULTS_KIND=" + kind};
  }

  // The letters of all operations of a command that is left alone, which also leaves what it writes
  // as the pattern.
  std::string Operations(const Scenario& scenario) const {
    scenario.prepare();
    fs::remove("operations");
    const Ending ending = program_.Run(scenario.command, Faults("0", "EIO"));
    if (ending.code != 0 || ending.signal != 0 || !fs::exists("operations")) {
      std::cerr << scenario.name
                << " fails undisturbed, or does nothing that can be seen: " << Contents("stderr");
      std::exit(2);
    }
    for (const char* file : {"out.csv", "out.safetensors"}) {
      if (fs::exists(file)) fs::rename(file, std::string("whole-") + file);
    }
    return Contents("operations");
  }

  // A run that was killed half-way, once it had saved, to be resumed.
  void KeepHalf() {
    const size_t operations = Operations(scenarios_[0]).size();
    for (size_t tenths = 5; tenths < 10; ++tenths) {
      fs::remove_all("run");
      program_.Run(scenarios_[0].command,
                   Faults(std::to_string(operations * tenths / 10), "before"));
      if (!fs::exists("run/checkpoints/last")) continue;
      fs::rename("run", "half");
      return;
    }
    std::cerr << "no checkpoint is saved before nine tenths of the run\n", std::exit(2);
  }

  std::vector<Case> AllCases() const {
    std::vector<Case> cases;
    for (const Scenario& scenario : scenarios_) {
      const std::string letters = Operations(scenario);
      std::cout << scenario.name << ": " << letters.size() << " operations: " << letters << "\n";
      for (size_t i = 0; i < letters.size(); ++i) {
        Words kinds = KindsOf(letters[i]);
        if (letters[i] != 't') kinds.insert(kinds.end(), {"before", "after"});
        for (const std::string& kind : kinds) {
          const bool for_good = kind.ends_with('+');
          cases.push_back({&scenario, static_cast<long>(i) + 1, letters[i],
                           kind.substr(0, kind.size() - for_good), for_good});
        }
      }
    }
    return cases;
  }

  void Try(const Case& c) {
    const bool kill = c.kind == "before" || c.kind == "after";
    ++(kill ? kills_ : faults_);
    c.scenario->prepare();
    const Ending ending = program_.Run(
        c.scenario->command, Faults(std::to_string(c.at) + (c.for_good ? "+" : ""), c.kind));
    std::string loss = WrongEnding(ending, kill);
    if (loss.empty()) loss = c.scenario->look();
    // A missing validation image is reported, and may change the choice of the best epoch.
    const bool other_data =
        Contents("stderr").find(", missing from the metrics, could not be read") !=
        std::string::npos;
    if (loss.empty() && other_data) return;
    if (loss.empty() && ending.code == 0 && ending.signal == 0) loss = WrongSuccess(*c.scenario);
    if (loss.empty() && c.scenario->changes_run) loss = WrongRecovery(kill && c.at % 2 == 0);
    if (loss.empty()) return;
    ++lost_;
    std::cout << "LOST: " << c.scenario->name << ", operation " << c.at << " (" << c.letter << ") "
              << c.kind << (c.for_good ? " for good" : "") << ": " << loss << std::endl;
  }

  static std::string WrongEnding(const Ending& ending, bool kill) {
    if (ending.signal == SIGKILL && kill) return "";
    if (ending.signal != 0)
      return "ended by signal " + std::to_string(ending.signal) + ": " + Contents("stderr");
    static const std::set<int> promised = {0, 3, 4, 6, 8};
    if (!promised.contains(ending.code))
      return "exit code " + std::to_string(ending.code) + ": " + Contents("stderr");
    return ending.code != 0 && fs::file_size("stderr") == 0 ? "no reason is said" : "";
  }

  std::string WrongSuccess(const Scenario& scenario) const {
    const std::string name = scenario.name;
    if (name == "infer") return Same("out.csv", "whole-out.csv");
    if (name == "export") return Same("out.safetensors", "whole-out.safetensors");
    return Same("run/checkpoints/last", "base/checkpoints/last");
  }

  std::string WrongRecovery(bool overwrite) const {
    const Words flags =
        overwrite && fs::exists("run") ? Words{"--overwrite"} : Words{"--resume", "--or-begin"};
    // Before the first save has ended, only the temporary file may exist.
    const bool saved = fs::exists("run/checkpoints/last");
    const Ending ending = program_.Run(Train(flags));
    const std::string said = Contents("stderr");
    if (ending.code != 0 || ending.signal != 0) return flags[0] + " does not end well: " + said;
    if (saved && said.find("damaged") != std::string::npos)
      return flags[0] + " found damage: " + said;
    std::istringstream events(Contents("run/events.jsonl"));
    for (std::string line; std::getline(events, line);) {
      if (!line.starts_with('{') || !line.ends_with('}'))
        return "events.jsonl holds half a line: " + line;
    }
    return Same("run/checkpoints/last", "base/checkpoints/last");
  }

  static std::string Same(const char* a, const char* b) {
    return Contents(a) == Contents(b) ? "" : std::string(a) + " holds other bytes than " + b;
  }
  static std::string SameOrAbsent(const std::string& file) {
    return fs::exists(file) ? Same(file.c_str(), ("whole-" + file).c_str()) : "";
  }
  // Unreadable images have no line.
  static std::string LinesOf(const std::string& file) {
    std::istringstream found(Contents(file)), whole(Contents("whole-" + file));
    std::set<std::string> lines;
    for (std::string line; std::getline(whole, line);) lines.insert(line);
    for (std::string line; std::getline(found, line);) {
      if (!lines.contains(line)) return file + " holds " + line;
    }
    return "";
  }

  void Tell() const {
    std::cout << faults_ << " faults, " << kills_ << " kills, " << lost_ << " lost" << std::endl;
  }

  const Program program_;
  const std::string here_;
  std::vector<Scenario> scenarios_;
  long faults_ = 0, kills_ = 0, lost_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "fault_campaign PROGRAM LIBRARY COUNT|all|FROM..TO\n";
    return 2;
  }
  // Else the program executes itself once more, and counts from 1 again.
  setenv("GOMP_SPINCOUNT", "1000", 1);
  Campaign campaign(argv[1], argv[2]);
  campaign.Run(argv[3]);
  return campaign.lost() == 0 ? 0 : 9;
}
