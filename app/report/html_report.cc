// SPDX-License-Identifier: Apache-2.0
#include "app/report/html_report.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "app/report/metrics_table.h"
#include "app/report/output.h"
#include "app/report/plot/chart.h"
#include "app/report/run_plots.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/read_json.h"

namespace mxtrain::report {
namespace {

namespace fs = std::filesystem;
using plot::EscapeXml;

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ground: #fff; --ink: #1a1a1a; --line: #ccc; --soft: #f4f4f4; }
@media (prefers-color-scheme: dark) { :root { --ground: #16181c; --ink: #e4e4e4; --line: #444; --soft: #22252b; } }
body { background: var(--ground); color: var(--ink); font: 15px/1.5 "DejaVu Sans", Verdana, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; border-bottom: 1px solid var(--line); margin-top: 2.5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; display: block; overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: .2rem .6rem; text-align: right; } th { background: var(--soft); vertical-align: bottom; }
td { white-space: nowrap; } td:first-child, th:first-child { text-align: left; }
pre { background: var(--soft); padding: .8rem; overflow-x: auto; }
.headline { font-size: 1.2rem; } .headline strong { font-size: 1.5rem; }
.figures { columns: 573px; column-gap: 12px; margin: .8rem 0; }
summary { cursor: pointer; margin: .5rem 0; }
figure { margin: 0 0 12px; break-inside: avoid; background: #fff; border: 1px solid var(--line); border-radius: 4px; padding: 5px; }
figure svg, figure img { display: block; max-width: 100%; height: auto; margin: 0 auto; }
)";

// Of figures that stand side by side.
constexpr double kFigureWidth = 560, kFigureHeight = 360;

using Cells = std::vector<std::string>;

// A page, built top to bottom.
class Page {
 public:
  explicit Page(const std::string& title) {
    text_ =
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
        EscapeXml(title) + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n<h1>" +
        EscapeXml(title) + "</h1>\n";
  }
  void Heading(const std::string& text) { text_ += "<h2>" + EscapeXml(text) + "</h2>\n"; }
  void Table(const Cells& head, const std::vector<Cells>& rows) {
    text_ += "<table>\n";
    if (!head.empty()) Row(head, "th");
    for (const Cells& row : rows) Row(row, "td");
    text_ += "</table>\n";
  }
  // The result in a line, and what to do with it.
  void Headline(const std::string& value, const std::string& rest, const Cells& commands) {
    text_ += "<p class=\"headline\"><strong>" + EscapeXml(value) + "</strong> " + EscapeXml(rest) +
             "</p>\n";
    if (commands.empty()) return;
    text_ += "<p>next:";
    for (const std::string& command : commands)
      text_ +=
          (&command == commands.data() ? " <code>" : ", <code>") + EscapeXml(command) + "</code>";
    text_ += "</p>\n";
  }
  // What is in between is shown when its summary is chosen.
  void BeginFolded(const std::string& summary) {
    text_ += "<details><summary>" + EscapeXml(summary) + "</summary>\n";
  }
  void EndFolded() { text_ += "</details>\n"; }
  // Figures in their own size, so that their letters have one. Those that are narrow enough stand
  // side by side where the window has room for two.
  struct Figure {
    double width;
    std::string element;
  };
  void Figures(const std::vector<Figure>& figures) {
    std::string narrow, wide;
    for (const Figure& figure : figures)
      (figure.width <= kFigureWidth ? narrow : wide) += "<figure>" + figure.element + "</figure>\n";
    if (!narrow.empty()) text_ += "<div class=\"figures\">\n" + narrow + "</div>\n";
    text_ += wide;
  }
  void Text(const std::string& text) { text_ += "<pre>" + EscapeXml(text) + "</pre>\n"; }
  std::string Take() { return std::move(text_) + "</body>\n</html>\n"; }

 private:
  void Row(const Cells& cells, const char* tag) {
    text_ += "<tr>";
    for (const std::string& cell : cells) text_ += format("<{0}>{1}</{0}>", tag, EscapeXml(cell));
    text_ += "</tr>\n";
  }
  std::string text_;
};

// A run's folder may come from others: what lies behind a link is not a part of it.
bool IsOwn(const fs::path& path, fs::file_type type) {
  std::error_code missing;
  return fs::symlink_status(path, missing).type() == type;
}
bool IsOwnFile(const fs::path& path) {
  return IsOwn(path, fs::file_type::regular);
}
bool IsOwnFolder(const fs::path& path) {
  return IsOwn(path, fs::file_type::directory);
}

// A run's own files of a folder with this extension, sorted; none if there is no such folder.
std::vector<fs::path> FilesOf(const fs::path& folder, const std::string& ending) {
  std::vector<fs::path> files;
  if (!IsOwnFolder(folder)) return files;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    if (entry.path().extension() == ending && IsOwnFile(entry.path()))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The width of the file's drawing in CSS pixels: SVG as ToSvg writes it, PNG with two pixels each.
double WidthOf(const std::string& svg) {
  const size_t at = svg.find(" width=\"");
  return at == svg.npos ? 0 : std::strtod(svg.c_str() + at + 8, nullptr);
}

Page::Figure FigureOf(const std::string& svg) {
  return {WidthOf(svg), svg};
}

// What is not a drawing of this program, whose scripts would run in the page, is named alone.
void AddDrawing(Page* page, const fs::path& file, std::vector<Page::Figure>* figures) {
  const std::string svg = ReadFile(file);
  if (plot::IsDrawing(svg))
    figures->push_back(FigureOf(svg));
  else
    page->Text(format("{} is not a drawing of mxtrain, and is not shown", file.string()));
}

void AddImages(Page* page, const fs::path& folder) {
  std::vector<Page::Figure> figures;
  for (const fs::path& file : FilesOf(folder, ".svg")) AddDrawing(page, file, &figures);
  for (const fs::path& file : FilesOf(folder, ".png")) {
    if (fs::exists(fs::path(file).replace_extension(".svg"))) continue;
    const std::string bytes = ReadFile(file);
    const auto info = io::ProbeImage(bytes);
    const double width = info ? info->width / 2.0 : 0;
    figures.push_back({width, format("<img alt=\"{}\"{} src=\"{}\">", EscapeXml(file.stem()),
                                     width > 0 ? format(" width=\"{:g}\"", width) : "",
                                     plot::PngDataUri(bytes))});
  }
  page->Figures(figures);
}

std::string TextOf(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return format("{}", value.get<int64_t>());
  return value.is_number() ? FormatNumber(value.get<double>()) : value.dump();
}

// Drawn for the page: two beside each other, and of an odd number the first, the loss, over both.
void AddCurves(Page* page, const RunCharts& charts, const fs::path& folder) {
  std::vector<plot::Chart> all;
  if (charts.loss) all.push_back(*charts.loss);
  all.insert(all.end(), charts.metrics.begin(), charts.metrics.end());
  if (charts.rate) all.push_back(*charts.rate);
  const fs::path monitor = folder / "monitor.svg";
  const bool monitored = IsOwnFolder(folder) && IsOwnFile(monitor);
  if (all.empty() && !monitored) return;
  page->Heading("curves");
  if (all.size() % 2 == 1) {
    constexpr double kBoth = 2 * kFigureWidth + 24;  // with what is between two figures
    page->Figures({FigureOf(plot::ToSvg(plot::Draw(all.front(), kBoth, kFigureHeight)))});
    all.erase(all.begin());
  }
  std::vector<Page::Figure> figures;
  for (const plot::Chart& chart : all)
    figures.push_back(FigureOf(plot::ToSvg(plot::Draw(chart, kFigureWidth, kFigureHeight))));
  if (monitored) AddDrawing(page, monitor, &figures);
  page->Figures(figures);
}

Json ReadObject(const std::string& file) {
  Json value = ReadJsonOf<Json>(file + " is damaged", ReadFile(file));
  if (!value.is_object()) Throw(ErrorKind::kData, "{} is damaged: not a JSON object", file);
  return value;
}

// How a run ended: the words of result.json, which are for programs.
std::string WordsOfEnd(const std::string& end) {
  static constexpr std::pair<const char*, const char*> kWords[] = {
      {"complete", "trained to the end"},
      {"stopped", "stopped by a signal, and saved"},
      {"no_improvement", "stopped early, without improvement (train.early_stop)"},
      {"time_limit", "time limit reached (train.time_limit)"},
      {"target", "target reached (train.early_stop.target)"},
      {"diverged", "diverged"}};
  for (const auto& [word, text] : kWords) {
    if (end == word) return text;
  }
  return end;
}

// A row of the results table, with units, which result.json omits.
Cells ResultRow(const std::string& key, const Json& value) {
  if (key == "best" && value.is_object()) {
    return {format("best {}", Words(TextOf(value.at("metric")))),
            format("{} in epoch {}", TextOf(value.at("value")), TextOf(value.at("epoch")))};
  }
  if (key == "end") return {"end", WordsOfEnd(TextOf(value))};
  if (key == "lr") return {"learning rate at the end", TextOf(value)};
  if (key == "wait_share")
    return {"waiting for data", format("{:.1f} %", 100 * value.get<double>())};
  if (key == "peak_memory_bytes" && value.is_number_integer())
    return {"peak memory of the process", FormatBytes(value.get<int64_t>())};
  return {Words(key), TextOf(value)};
}

void AddResult(Page* page, const fs::path& file) {
  std::vector<Cells> rows;
  const Json result = ReadObject(file);
  const bool timed = result.value("images_per_second", 0.0) > 0;  // a run without steps is not
  const bool brief = result.value("is_brief", false);
  for (const auto& [key, value] : result.items()) {
    // No best epoch; "stopped", which "end" covers.
    if (value.is_null() || value.is_boolean()) continue;
    if (!timed && (key == "images_per_second" || key == "wait_share")) continue;
    if (key == "timed_batches" || key == "examples") continue;  // with the speed
    if (key == "total_steps") continue;                         // with the steps
    if (key == "last") {
      for (const auto& [metric, last] : value.items())
        rows.push_back({"last " + Words(metric), TextOf(last)});
    } else if (key == "images_per_second") {
      rows.push_back({result.value("examples", "images") + "/s", TextOf(value)});
    } else {
      rows.push_back(ResultRow(key, value));
    }
    if (key == "steps" && result.contains("total_steps"))
      rows.back()[1] += format(" of {}", TextOf(result.at("total_steps")));
    if (key == "images_per_second" && brief) {
      rows.back()[1] += format(", of {} batches with their start",
                               TextOf(result.value("timed_batches", Json(0))));
    }
  }
  page->Heading("result");
  page->Table({}, rows);
}

// The best metric, when it was reached, how the run ended, and what comes next. `given`: the run's
// folder as the user names it.
void AddHeadline(Page* page, const fs::path& file, const std::string& given) {
  const Json result = ReadObject(file);
  const Json best = result.value("best", Json()), last = result.value("last", Json());
  std::string value, rest;
  if (best.is_object() && best.at("value").is_number()) {
    value = format("{} {}", Words(TextOf(best.at("metric"))), TextOf(best.at("value")));
    rest = format("in epoch {}", TextOf(best.at("epoch")));
    if (result.contains("epochs")) rest += format(" of {}", TextOf(result.at("epochs")));
    rest += ", the checkpoint `best`";
  } else if (last.is_object() && !last.empty()) {
    value = format("{} {}", Words(last.begin().key()), TextOf(last.begin().value()));
    rest = "at the end";
  } else {
    return;
  }
  if (result.contains("end")) rest += "; " + WordsOfEnd(TextOf(result.at("end")));
  const std::string name = QuoteShell(given);
  page->Headline(value, rest,
                 {format("mxtrain eval {}", name), format("mxtrain infer {} INPUT", name),
                  format("mxtrain export {} model.onnx", name)});
}

// The last epochs and the best one; of more epochs all, folded.
void AddMetrics(Page* page, const MetricsTable& table) {
  constexpr size_t kLast = 10;
  if (table.rows.empty()) return;
  page->Heading("epochs");
  std::vector<Cells> rows, all;
  const double best = table.BestEpoch();
  for (size_t i = 0; i < table.rows.size(); ++i) {
    Cells& cells = all.emplace_back();
    for (double value : table.rows[i])
      cells.push_back(std::isfinite(value)
                          ? value == std::round(value) ? format("{}", value) : FormatNumber(value)
                          : "");
    if (i + kLast >= table.rows.size() || table.rows[i][0] == best) rows.push_back(cells);
  }
  Cells head;
  for (const std::string& column : table.columns) head.push_back(Words(column));
  page->Table(head, rows);
  if (all.size() == rows.size()) return;
  page->BeginFolded(format("all {} epochs", all.size()));
  page->Table(head, all);
  page->EndFolded();
}

// The measures of each number that is predicted: a table for each head.
void AddValues(Page* page, const Json& heads) {
  for (const Json& head : heads) {
    Cells names = {"value"};
    std::vector<Cells> rows;
    for (const auto& [name, measures] : head.items()) {
      Cells& row = rows.emplace_back(Cells{name});
      for (const auto& [measure, value] : measures.items()) {
        if (rows.size() == 1) names.push_back(Words(measure));
        row.push_back(TextOf(value));
      }
    }
    page->Table(names, rows);
  }
}

void AddEvaluation(Page* page, const fs::path& report) {
  const fs::path folder = report.parent_path();
  const Json result = ReadObject(report);
  page->Heading(format("evaluation: {} on {} examples of {}", TextOf(result.at("model")),
                       TextOf(result.at("examples")),
                       TextOf(result.value("data", Json("the run's data")))));
  std::vector<Cells> rows;
  for (const auto& [name, value] : result.at("metrics").items())
    rows.push_back({Words(name), TextOf(value)});
  page->Table({"metric", "value"}, rows);
  AddValues(page, result.value("values", Json::array()));
  AddImages(page, folder);
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!IsOwnFolder(entry.path())) continue;
    page->Heading("evaluation of " + entry.path().filename().string());
    AddImages(page, entry.path());
  }
}

void AddFile(Page* page, const std::string& heading, const fs::path& file) {
  if (!IsOwnFile(file)) return;
  page->Heading(heading);
  page->Text(ReadFile(file));
}

// Of a file of JSON, if it is there. Throws kData if its values are not what the program writes.
template <typename Add>
void AddFrom(const fs::path& file, Page* page, const Add& add) {
  if (!IsOwnFile(file)) return;
  try {
    add(page, file);
  } catch (const Json::exception& e) {
    Throw(ErrorKind::kData, "{} is damaged: {}", file.string(), e.what());
  }
}

}  // namespace

void WriteHtmlReport(const std::string& run_folder) {
  const fs::path run = fs::canonical(run_folder);
  Page page(run.filename().string());
  AddFrom(run / "result.json", &page, [&](Page* to, const fs::path& file) {
    AddHeadline(to, file, run_folder);
    AddResult(to, file);
  });
  const MetricsTable table = ReadMetrics(run / "metrics.csv");
  const fs::path events = run / "events.jsonl";
  AddCurves(&page, ChartsOf(table, IsOwnFile(events) ? ReadSteps(events) : StepCurves()),
            run / "plots");
  AddMetrics(&page, table);
  if (IsOwnFolder(run / "eval")) AddFrom(run / "eval/report.json", &page, AddEvaluation);
  if (fs::is_directory(run / "samples")) page.Heading("training input");
  AddImages(&page, run / "samples");
  AddFile(&page, "command", run / "command.txt");
  AddFile(&page, "configuration", run / "config.yaml");
  AddFile(&page, "environment", run / "env.txt");
  WriteFileAtomically(run / "report.html", page.Take());
}

}  // namespace mxtrain::report
