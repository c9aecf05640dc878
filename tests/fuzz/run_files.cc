// SPDX-License-Identifier: Apache-2.0
// Files of a run's folder that commands read: metrics.csv, result.json, events.jsonl and
// eval/report.json. Each input is read as all of them, by the table of runs, the curves and the
// report.
#include <filesystem>

#include "app/report/html_report.h"
#include "app/report/run_plots.h"
#include "app/report/run_summary.h"
#include "tests/fuzz/fuzz_target.h"

namespace mxtrain::fuzz {

std::vector<std::string> LargeInputs() {
  std::string columns = "epoch", measures = "epoch", rows = "epoch,val_loss,best\n",
              best = R"({"stopped":false,"best":null)", rates;
  for (int i = 0; i < 50'000; ++i) {
    columns += ',';
    best += format(R"(,"{}":{})", i, i);
    rows += format("{},1,1\n", i);
    rates += format("{{\"epoch\":{0},\"rates\":[[{0},0.1],[{0},0.2]]}}\n", i);
  }
  for (int i = 0; i < 1'900; ++i) measures += format(",val_{}", i);
  std::string narrow;
  for (int i = 0; i < 50'000; ++i) narrow += "1\n";
  const std::string deep(100'000, '[');
  return {columns + "\n" + narrow,
          measures + "\n" + narrow,
          rows,
          best + "}",
          rates,
          R"({"stopped":false,"best":)" + deep,
          R"({"rates":)" + deep + "\n"};
}

void Read(const std::string& run) {
  MayRefuse([&] {
    const report::RunSummary summary = report::ReadRun(run);
    report::NameOf(summary.state);
    for (const std::string& measure : summary.metrics.Measures())
      report::LastValue(summary.metrics, measure);
  });
  MayRefuse([&] {
    const report::RunCharts charts = report::ChartsOf(report::ReadMetrics(run + "/metrics.csv"),
                                                      report::ReadSteps(run + "/events.jsonl"));
    for (const auto& chart : {charts.loss, charts.rate}) {
      if (chart) plot::ToSvg(plot::Draw(*chart));
    }
    for (const plot::Chart& chart : charts.metrics) plot::ToSvg(plot::Draw(chart));
  });
  MayRefuse([&] { report::WriteHtmlReport(run); });
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain::fuzz;
  static const std::string run = [] {
    Scratch().MakeFolder("run/eval");
    Scratch().Write("run/config.yaml", "name: run\n");
    return Scratch().path("run");
  }();
  const auto write = [](const std::string& name, std::string_view text) {
    Scratch().Write("run/" + name, text);
  };
  const std::string_view text = TextOf(data, size);
  constexpr const char* kMetrics = "epoch,lr,val_loss,best\n1,0.1,2.5,1\n2,0.1,2.4,0\n";
  write("metrics.csv", text);
  Read(run);
  write("metrics.csv", kMetrics);
  for (const char* name : {"result.json", "events.jsonl", "eval/report.json"}) {
    write(name, text);
    Read(run);
    std::filesystem::remove(run + "/" + name);
  }
  return 0;
}
