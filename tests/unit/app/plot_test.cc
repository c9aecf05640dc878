// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "app/report/plot/axis.h"
#include "app/report/plot/chart.h"
#include "app/report/plot/drawing.h"
#include "app/report/plot/font.h"
#include "app/report/plot/free_place.h"
#include "mxtrain/base/format.h"

namespace mxtrain::plot {
namespace {

// Whether a point lies within a polygon: the even-odd rule, by crossings of a ray to the right.
bool Inside(const std::vector<Point>& polygon, double x, double y) {
  bool inside = false;
  for (size_t i = 0, j = polygon.size() - 1; i < polygon.size(); j = i++) {
    const Point &a = polygon[i], &b = polygon[j];
    if ((a.y > y) != (b.y > y) && x < a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x)) inside = !inside;
  }
  return inside;
}

double Darkness(const io::Image& image, int x, int y) {
  return 1 - image.row(y)[3 * x] / 255.0;
}

double TotalDarkness(const io::Image& image) {
  double sum = 0;
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) sum += Darkness(image, x, y);
  }
  return sum;
}

int Count(const std::string& text, const std::string& what) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE(
    "ticks are at 1, 2 or 5 times a power of ten, within the axis, about as many as requested") {
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{
           {0, 1}, {-3, 7}, {0.001, 0.0013}, {12345, 99999}, {-1e-5, 1e-5}, {5, 5}}) {
    for (int count : {2, 5, 9}) {
      const Axis axis({}, {low, high}, count);
      REQUIRE(!axis.ticks().empty());
      CHECK(static_cast<int>(axis.ticks().size()) <= count + 1);
      for (size_t i = 0; i < axis.ticks().size(); ++i) {
        const double place = axis.Place(axis.ticks()[i].value);
        CHECK(place >= -1e-6);
        CHECK(place <= 1 + 1e-6);
        if (i == 0) continue;
        const double step = axis.ticks()[i].value - axis.ticks()[i - 1].value;
        const double digit = step / std::pow(10, std::floor(std::log10(step) + 1e-6));
        CHECK(std::min({std::abs(digit - 1), std::abs(digit - 2), std::abs(digit - 5)}) < 1e-3);
        CHECK(axis.ticks()[i].text != axis.ticks()[i - 1].text);
        // The text matches the position.
        CHECK(std::abs(std::stod(axis.ticks()[i].text) - axis.ticks()[i].value) < 1e-3 * step);
      }
    }
  }
}

TEST_CASE("axes of whole numbers, logarithmic axes, axes without data") {
  const Axis whole({.whole = true}, {1, 3}, 9);
  for (const Axis::Tick& tick : whole.ticks()) CHECK(tick.value == std::round(tick.value));
  const Axis log({.log = true}, {1e-5, 1, 0, -1}, 8);
  CHECK(log.ticks().front().text == "10⁻⁵");
  CHECK(log.ticks().back().text == "1");
  CHECK(!log.Shows(0));
  CHECK(log.Place(1e-3) - log.Place(1e-4) == doctest::Approx(log.Place(1e-1) - log.Place(1e-2)));
  const Axis narrow({.log = true}, {0.2, 0.4}, 8);
  CHECK(narrow.ticks().size() >= 2);
  CHECK(!Axis({}, {}, 5).ticks().empty());
  CHECK(!Axis({}, {std::numeric_limits<double>::quiet_NaN()}, 5)
             .Shows(std::numeric_limits<double>::infinity()));
}

TEST_CASE("values near the limits of double are not shown, and give no coordinates without end") {
  const double most = std::numeric_limits<double>::max(),
               least = std::numeric_limits<double>::denorm_min();
  for (const bool log : {false, true}) {
    const Axis axis({.log = log}, {most, -most, least, 1, 2}, 8);
    for (const double value : {most, -most}) CHECK(!axis.Shows(value));
    CHECK(axis.Shows(2));
    CHECK(axis.Place(1) >= 0);
    CHECK(axis.Place(2) <= 1);
    for (const Axis::Tick& tick : axis.ticks()) CHECK(std::isfinite(axis.Place(tick.value)));
  }
  CHECK(Axis({}, {-9e299, std::nextafter(-9e299, 0.0)}, 8).ticks().size() <= 100);
  Chart chart;
  chart.series.push_back({.name = "loss", .points = {{1, most}, {2, -most}, {3, 1}, {4, 2}}});
  CHECK(ToSvg(Draw(chart)).find("nan") == std::string::npos);
}

TEST_CASE("ticks are at given values, epochs end at whole ones, bytes have one unit") {
  const auto texts = [](const Axis& axis) {
    std::vector<std::string> all;
    for (const Axis::Tick& tick : axis.ticks()) all.push_back(tick.text);
    return all;
  };
  using Texts = std::vector<std::string>;
  CHECK(texts(Axis({.ticks = {64, 32, 32}}, {32, 64}, 8)) == Texts{"32", "64"});
  CHECK(texts(Axis({.log = true, .ticks = {0.001, 0.03, 1}}, {0.001, 1}, 8)) ==
        Texts{"0.001", "0.03", "1"});
  // Too near each other for their texts: as without them.
  CHECK(texts(Axis({.ticks = {1, 1.01, 2}}, {1, 2}, 8)) == texts(Axis({}, {1, 2}, 8)));
  CHECK(texts(Axis({.whole = true}, {0, 0.98}, 9)) == Texts{"0", "1"});
  CHECK(texts(Axis({.bytes = true, .low = 0}, {3 * 1048576.0}, 4)).front() == "0 MiB");
  CHECK(texts(Axis({.bytes = true, .low = 0, .high = 4096}, {}, 4)) ==
        Texts{"0 KiB", "1 KiB", "2 KiB", "3 KiB", "4 KiB"});
  CHECK(texts(Axis({.bytes = true, .ticks = {536870912, 2147483648}}, {536870912, 2147483648},
                   4)) == Texts{"0.5 GiB", "2 GiB"});
}

TEST_CASE("a constant is drawn flat in the middle of its axis") {
  for (const double value : {0.02, 0.0, -3.0, 1e-7}) {
    const Axis axis({}, {value, value, value}, 6);
    CHECK(axis.Place(value) == doctest::Approx(0.5));
    CHECK(axis.ticks().size() >= 2);
  }
}

TEST_CASE("no curve crosses the text of a mark") {
  Chart chart{.title = "loss", .subtitle = "", .x = {}, .y = {}, .series = {}, .marks = {}};
  chart.series = {{.name = "a", .points = {{0, 0}, {1, 5}, {2, 5}}}};
  for (const double x : {0.0, 0.7, 2.0}) {
    chart.marks = {{x, "a long text of the mark"}};
    const Drawing drawing = Draw(chart);
    double highest = drawing.height(), text = 0, left = 0, right = 0;
    for (const Drawing::Shape& shape : drawing.shapes()) {
      if (const auto* line = std::get_if<Drawing::Line>(&shape);
          line && line->stroke.width == 2 && line->points.size() == 3) {
        for (const Point& p : line->points) highest = std::min(highest, p.y);
      }
      if (const auto* t = std::get_if<Drawing::Text>(&shape); t && t->text == chart.marks[0].text) {
        text = t->at.y;
        const double half = TextWidth(t->text, t->style.size) / 2;
        left = t->at.x - half, right = t->at.x + half;
      }
    }
    CHECK(text + 3 < highest);  // with what is below the baseline
    CHECK(left >= 0);
    CHECK(right <= drawing.width());
  }
}

TEST_CASE("a name stands where nothing crosses it, as near the middle as it can") {
  CHECK(FreePlace(0, 100, 20, {}) == 50);
  CHECK(FreePlace(0, 100, 20, {{45, 47}}) == doctest::Approx(57));
  CHECK(FreePlace(0, 100, 20, {{55, 57}, {10, 12}}) == doctest::Approx(45));
  CHECK(FreePlace(0, 100, 20, {{-10, 85}}) == std::nullopt);
  CHECK(FreePlace(0, 100, 20, {{-10, 80}, {30, 40}}) == doctest::Approx(90));
  CHECK(FreePlace(0, 10, 20, {}) == std::nullopt);
}

TEST_CASE("names are shortened in the middle, to the width that there is") {
  const std::string name = "abcdefghijklmnopqrstuvwxyz_0017.jpg";
  CHECK(FitName(name, 12, 1000) == name);
  for (const double width : {40.0, 80.0, 120.0}) {
    const std::string shorter = FitName(name, 12, width);
    CHECK(TextWidth(shorter, 12) <= width);
    CHECK(TextWidth(shorter, 12) > width - 25);
    const size_t at = shorter.find("\u2026");
    REQUIRE(at != std::string::npos);
    CHECK(name.starts_with(shorter.substr(0, at)));
    CHECK(name.ends_with(shorter.substr(at + 3)));
  }
  CHECK(FitName(name, 12, 1) == "\u2026");
  CHECK(FitName("", 12, -1).empty());
  CHECK(FitName("帽子帽子帽子帽子", 12, 40).find("\u2026") != std::string::npos);
}

TEST_CASE("the raster covers the same fraction of each pixel as the polygon") {
  constexpr int kSize = 24, kSamples = 32;
  std::mt19937 random(7);
  std::uniform_real_distribution<double> place(-4, 28);
  for (int round = 0; round < 30; ++round) {
    std::vector<Point> triangle;
    for (int i = 0; i < 3; ++i) triangle.push_back({place(random), place(random)});
    Drawing drawing(kSize, kSize);
    drawing.AddArea(triangle, kBlack);
    const io::Image image = ToImage(drawing, 1);
    double worst = 0;
    for (int y = 0; y < kSize; ++y) {
      for (int x = 0; x < kSize; ++x) {
        double inside = 0;
        for (int k = 0; k < kSamples * kSamples; ++k) {
          inside += Inside(triangle, x + (k % kSamples + 0.5) / kSamples,
                           y + (k / kSamples + 0.5) / kSamples)
                        ? 1
                        : 0;
        }
        worst = std::max(worst, std::abs(inside / (kSamples * kSamples) - Darkness(image, x, y)));
      }
    }
    CHECK(worst < 0.04);
  }
}

TEST_CASE("lines have their width, dashes their length") {
  Drawing straight(100, 20), dashed(100, 20);
  straight.AddLine({{10, 10}, {90, 10}}, {kBlack, 3});
  dashed.AddLine({{10, 10}, {50, 10}, {90, 10}}, {kBlack, 3, {5, 5}});
  CHECK(TotalDarkness(ToImage(straight, 1)) == doctest::Approx(240).epsilon(0.01));
  CHECK(TotalDarkness(ToImage(straight, 2)) == doctest::Approx(960).epsilon(0.01));
  CHECK(TotalDarkness(ToImage(dashed, 1)) == doctest::Approx(120).epsilon(0.05));
}

TEST_CASE("text: widths add up, any bytes are drawn, long text is truncated") {
  CHECK(TextWidth("", 12) == 0);
  CHECK(TextWidth("mm", 12) == doctest::Approx(2 * TextWidth("m", 12)));
  CHECK(TextWidth("m", 24) == doctest::Approx(2 * TextWidth("m", 12)));
  CHECK(TextWidth("i", 12) < TextWidth("m", 12));
  // Bytes that are not UTF-8.
  CHECK(TextWidth("\xff\xc3", 12) == doctest::Approx(2 * TextWidth("\uFFFD", 12)));
  CHECK(!TextOutline("ß", 12).empty());
  CHECK(TextOutline(" ", 12).empty());
  const std::string cut = FitText("a name that is too long for its place", 12, 80);
  CHECK(TextWidth(cut, 12) <= 80);
  CHECK(cut.ends_with("…"));
  CHECK(FitText("short", 12, 80) == "short");
  Drawing drawing(60, 20);
  drawing.AddText({30, 15}, "O", {.anchor = Anchor::kMiddle});
  const io::Image image = ToImage(drawing, 1);
  CHECK(TotalDarkness(image) > 15);
  CHECK(Darkness(image, 30, 10) < 0.1);  // the hole of the letter
}

TEST_CASE("an SVG contains the same shapes, with everything escaped") {
  Drawing drawing(40, 30);
  drawing.AddText({1, 2}, "a<b>&\"\xff\x01");
  drawing.AddBox({0, 0}, 10, 10, kBlue, 0.5, "tip & more");
  drawing.AddImage({0, 0}, 4, 4, io::Image{1, 1, 3, {1, 2, 3}, {}});
  const std::string svg = ToSvg(drawing);
  CHECK(svg.find("a&lt;b&gt;&amp;&quot;\uFFFD </text>") != std::string::npos);
  CHECK(svg.find("<title>tip &amp; more</title>") != std::string::npos);
  CHECK(svg.find("fill-opacity=\"0.5\"") != std::string::npos);
  CHECK(svg.find("href=\"data:image/png;base64,iVBORw0KGgo") != std::string::npos);
  CHECK(PngDataUri("Man").ends_with(",TWFu"));  // RFC 4648
  CHECK(PngDataUri("Ma").ends_with(",TWE="));
  CHECK(PngDataUri("M").ends_with(",TQ=="));
  CHECK_THROWS_WITH(SaveAs(drawing, "figure.jpg"),
                    doctest::Contains("use one of these extensions"));
}

TEST_CASE("a chart draws and labels every curve, interrupted at missing values") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  Chart chart{.title = "loss",
              .subtitle = "",
              .x = {.label = "epoch"},
              .y = {.label = "loss"},
              .series = {},
              .marks = {{2, "best"}}};
  chart.series = {{.name = "training", .points = {{1, 3}, {2, 2}, {3, none}, {4, 1}, {5, 0.5}}},
                  {.name = "columns",
                   .points = {{1, 1}, {2, 2}},
                   .kind = Chart::Series::Kind::kColumns,
                   .width = 1}};
  const std::string svg = ToSvg(Draw(chart));
  for (const char* text : {">loss<", ">training<", ">columns<", ">best<", ">epoch<"})
    CHECK(Count(svg, text) >= 1);
  CHECK(Count(svg, "stroke=\"#0072b2\"") == 3);  // two pieces, and the sample in the legend
  CHECK(Count(svg, "fill=\"#d55e00\"") == 3);    // two columns, and the sample
  CHECK(Count(svg, "nan") == 0);
  const Drawing both = Stack(Draw(chart), Draw(chart));
  CHECK(both.height() == 2 * Draw(chart).height());
  CHECK(both.shapes().size() == 2 * Draw(chart).shapes().size());
}

TEST_CASE("a heat map of few classes shows its numbers, one of many its shades") {
  for (const size_t n : {2, 80}) {
    HeatMap map{.title = "t",
                .subtitle = "",
                .row_label = "true",
                .column_label = "predicted",
                .value_label = "part",
                .names = {},
                .shades = {},
                .texts = {}};
    for (size_t k = 0; k < n; ++k) {
      map.names.push_back(format("class{}", k));
      map.shades.emplace_back(n, 0.0)[k] = 1;
      map.texts.emplace_back(n)[k] = "77";
    }
    const std::string svg = ToSvg(Draw(map));
    CHECK(Count(svg, ">77<") == (n == 2 ? 2 : 0));
    CHECK(Count(svg, "<image") == (n == 2 ? 0 : 1));
    CHECK(Count(svg, ">class1<") == (n == 2 ? 2 : 0));
  }
}

TEST_CASE("labels of axes stay on the page, and clear of the title") {
  // Where a text is, as a box: left, top, right, bottom.
  const auto box = [](const Drawing::Text& text) {
    const double width = TextWidth(text.text, text.style.size),
                 before = text.style.anchor == Anchor::kMiddle ? width / 2
                          : text.style.anchor == Anchor::kEnd  ? width
                                                               : 0;
    const double size = text.style.size;
    return text.style.upwards ? std::array{text.at.x - size, text.at.y + before - width, text.at.x,
                                           text.at.y + before}
                              : std::array{text.at.x - before, text.at.y - size * 0.75,
                                           text.at.x - before + width, text.at.y};
  };
  std::vector<Drawing> drawings;
  for (const size_t n : {1, 2, 3, 12}) {
    HeatMap map{.title = "confusion matrix",
                .subtitle = "15 examples, accuracy 0.3333 (0.152 to 0.583)",
                .row_label = "true class",
                .column_label = "predicted class",
                .value_label = "fraction of the true class",
                .names = {},
                .shades = {},
                .texts = {}};
    for (size_t k = 0; k < n; ++k) {
      map.names.push_back(format("class{}", k));
      map.shades.emplace_back(n, 0.0);
      map.texts.emplace_back(n);
    }
    drawings.push_back(Draw(map));
  }
  for (const double most : {57700.0, 60000.0, 12345678.0, 0.5}) {
    BarChart bars{.title = "2 runs",
                  .subtitle = "",
                  .names = {"lr=0.1", "lr=0.2"},
                  .series = {{"rmse", {most, most / 2}}},
                  .values = {.label = "rmse"}};
    drawings.push_back(Draw(bars));
  }
  for (const Drawing& drawing : drawings) {
    std::vector<std::array<double, 4>> boxes;
    for (const Drawing::Shape& shape : drawing.shapes()) {
      if (const auto* text = std::get_if<Drawing::Text>(&shape)) boxes.push_back(box(*text));
    }
    REQUIRE(boxes.size() > 4);
    for (const auto& [left, top, right, bottom] : boxes) {
      CHECK(left >= 0);
      CHECK(top >= 0);
      CHECK(right <= drawing.width());
      CHECK(bottom <= drawing.height());
    }
    for (size_t i = 0; i < boxes.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        const bool apart = boxes[i][2] <= boxes[k][0] || boxes[k][2] <= boxes[i][0] ||
                           boxes[i][3] <= boxes[k][1] || boxes[k][3] <= boxes[i][1];
        CHECK(apart);
      }
    }
  }
}

}  // namespace mxtrain::plot
