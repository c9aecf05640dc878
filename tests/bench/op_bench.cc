// SPDX-License-Identifier: Apache-2.0
// Operators alone, on plain float32 arrays: the time of a forward pass (in training, without the
// arrays that a backward pass would need) and of a backward pass. Prints one JSON line for each;
// op_bench.py sets them beside PyTorch's.
//
//   op_bench [--list] [--filter REGEX] [--size small|medium|large] [--threads N]
//
// --list prints the cases instead, as JSON lines. A case that this build's operators do not take is
// skipped, with the reason on stderr.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <functional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/clock.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/json.h"
#include "op_run.h"

namespace {

using namespace mxtrain;
using namespace mxtrain::bench;

constexpr const char* kUsage =
    "usage: op_bench [--list] [--filter REGEX] [--size small|medium|large] [--threads N]\n";

struct Options {
  bool list = false;
  std::regex filter{""};  // of the names
  std::string size;       // empty: all
  int threads = 0;        // 0: all that the process may use
};

int ParseThreads(std::string_view text) {
  int threads = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (status != std::errc() || end != text.data() + text.size() || threads < 1)
    Throw(ErrorKind::kUsage, "--threads {}: expected a number above 0", text);
  return threads;
}

Options ParseOptions(const std::vector<std::string>& args) {
  Options options;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--list") {
      options.list = true;
      continue;
    }
    if (i + 1 == args.size()) Throw(ErrorKind::kUsage, "{}", kUsage);
    const std::string &key = args[i], &value = args[++i];
    if (key == "--filter") {
      options.filter = std::regex(value);
    } else if (key == "--size" && IsSize(value)) {
      options.size = value;
    } else if (key == "--threads") {
      options.threads = ParseThreads(value);
    } else {
      Throw(ErrorKind::kUsage, "{}", kUsage);
    }
  }
  return options;
}

struct Timing {
  double best_ns, median_ns;  // of a call
};

// Times `run` in samples, at least five and 20 ms of them. A sample is one call, or so many that it
// lasts 20 us; with `prepare`, which runs untimed before each sample, always one.
Timing Measure(const std::function<void()>& run, const std::function<void()>& prepare) {
  constexpr int64_t kSampleNs = 20'000, kTotalNs = 20'000'000;
  constexpr size_t kSamples = 5;
  const auto sample = [&](int64_t calls) {
    if (prepare) prepare();
    const int64_t begin = SteadyNanoseconds();
    for (int64_t i = 0; i < calls; ++i) run();
    return SteadyNanoseconds() - begin;
  };
  sample(1);  // touches the memory, fills caches
  const int64_t once = std::max<int64_t>(sample(1), 1);
  const int64_t calls = prepare ? 1 : std::max<int64_t>(kSampleNs / once, 1);
  std::vector<double> times;
  for (int64_t total = 0; times.size() < kSamples || total < kTotalNs;) {
    const int64_t ns = sample(calls);
    times.push_back(static_cast<double>(ns) / static_cast<double>(calls));
    total += ns;
  }
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2]};
}

void PrintLine(const Json& line) {
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

Json Describe(const std::vector<TensorSpec>& specs) {
  Json shapes = Json::array();
  for (const TensorSpec& spec : specs)
    shapes.push_back(std::vector<int64_t>(spec.shape.begin(), spec.shape.end()));
  return shapes;
}

void List(const OpCase& c, const OpSignature& signature) {
  Json kwargs = Json::object(), values = Json::array();
  for (const auto& [key, value] : c.kwargs) kwargs[key] = value;
  for (size_t i = 0; i < signature.in.size(); ++i) {
    const Values& v = c.values[std::min(i, c.values.size() - 1)];
    values.push_back(Json{{"low", v.low}, {"high", v.high}, {"integers", v.integers}});
  }
  PrintLine({{"case", c.name},
             {"size", c.size},
             {"op", c.op},
             {"kwargs", kwargs},
             {"shapes", Describe(signature.in)},
             {"auxiliaries", Describe(signature.aux)},
             {"values", values},
             {"gradients", ComputedGradients(signature)}});
}

void PrintTiming(const OpCase& c, const char* pass, const OpRun& run, int64_t bytes,
                 const Timing& timing) {
  PrintLine({{"case", c.name},
             {"size", c.size},
             {"pass", pass},
             {"kernel", run.kernel()},
             {"layout", run.layout()},
             {"ns_best", timing.best_ns},
             {"ns_median", timing.median_ns},
             {"bytes", bytes}});
}

void TimeForward(const OpCase& c, const OpSignature& signature, Runtime& runtime) {
  const auto run = NewOpRun(c, signature, false, runtime);
  const Timing timing = Measure([&] { run->Forward(); }, {});
  PrintTiming(c, "forward", *run, run->forward_bytes(), timing);
}

void TimeBackward(const OpCase& c, const OpSignature& signature, Runtime& runtime) {
  const std::vector<bool> computed = ComputedGradients(signature);
  if (std::find(computed.begin(), computed.end(), true) == computed.end()) return;
  const auto run = NewOpRun(c, signature, true, runtime);
  const auto forward = [&] { run->Forward(); };
  if (!run->alternates()) forward();
  const Timing timing =
      Measure([&] { run->Backward(); }, run->alternates() ? forward : std::function<void()>());
  PrintTiming(c, "backward", *run, run->backward_bytes(), timing);
}

// Reports why a case cannot run, instead of ending the program.
void Try(const OpCase& c, const char* what, const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    std::fprintf(stderr, "op_bench: %s, %s, %s: skipped: %s\n", c.name.c_str(), c.size.c_str(),
                 what, error.what());
  }
}

void Run(const Options& options) {
  RuntimeOptions runtime_options;
  runtime_options.engine = "naive";
  runtime_options.threads = options.threads;
  Runtime runtime(std::move(runtime_options), BuiltinOperators());
  for (const OpCase& c : OpCases()) {
    if (!options.size.empty() && c.size != options.size) continue;
    if (!std::regex_search(c.name, options.filter)) continue;
    OpSignature signature;
    Try(c, "shapes", [&] { signature = Infer(c, runtime.operators()); });
    if (!signature.property) continue;
    if (options.list) {
      List(c, signature);
      continue;
    }
    Try(c, "forward", [&] { TimeForward(c, signature, runtime); });
    Try(c, "backward", [&] { TimeBackward(c, signature, runtime); });
  }
}

}  // namespace

int main(int argc, char** argv) try {
  Run(ParseOptions({argv + 1, argv + argc}));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "op_bench: %s\n", error.what());
  return 1;
}
