// SPDX-License-Identifier: Apache-2.0
// The order of an epoch, and how several iterators share it.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "mxtrain/io/image_record.h"
#include "mxtrain/io/internal/batch_plan.h"
#include "mxtrain/io/internal/epoch_order.h"
#include "mxtrain/io/record_file.h"
#include "tests/support/error_message.h"
#include "tests/support/pipeline_data.h"
#include "tests/support/tar_bytes.h"

namespace mxtrain::test {
namespace {

size_t At(int64_t index) {
  return static_cast<size_t>(index);
}

TEST_CASE("an order is a permutation, in which every example may be first") {
  for (const int64_t size : {1, 2, 7, 100}) {
    std::vector<int64_t> order = EpochOrder(size, {9, true}, 4);
    std::sort(order.begin(), order.end());
    CHECK(order == EpochOrder(size, {9, false}, 4));
    for (int64_t i = 0; i < size; ++i) CHECK(order[At(i)] == i);
  }
  std::vector<int> first(10);
  for (int64_t epoch = 0; epoch < 5000; ++epoch) ++first[At(EpochOrder(10, {3, true}, epoch)[0])];
  CHECK(*std::min_element(first.begin(), first.end()) > 400);
  CHECK(*std::max_element(first.begin(), first.end()) < 600);
}

// Row r of batch k of a single iterator with batches of `together` is position k * together + r;
// its padding continues from the beginning.
TEST_CASE("batches of parts are the slices of the batches of a single iterator") {
  for (int64_t size = 1; size <= 40; ++size) {
    const std::vector<int64_t> order = EpochOrder(size, {9, true}, size);
    for (int64_t parts = 1; parts <= 7; ++parts) {
      for (int64_t rows = 1; rows <= 4; ++rows) {
        const int64_t together = parts * rows, batches = (size + together - 1) / together;
        int64_t examples = 0;
        for (int64_t part = 0; part < parts; ++part) {
          const EpochPlan plan{0, rows, batches, part, parts, order};
          std::vector<int64_t> own;
          for (int64_t k = 0; k < batches; ++k) {
            for (int64_t row = 0; row < rows; ++row) {
              const int64_t position = k * together + part * rows + row;
              REQUIRE((row < plan.count(k)) == (position < size));
              if (row < plan.count(k)) own.push_back(order[At(position)]);
              REQUIRE(plan.index(k, row) == order[At(position % size)]);
            }
          }
          REQUIRE(plan.examples() == static_cast<int64_t>(own.size()));
          examples += plan.examples();
          for (int64_t i = 0; i < plan.examples(); ++i) {
            for (int64_t step = 0; step < plan.examples(); ++step)
              REQUIRE(plan.index(i / rows, i % rows, step) ==
                      own[At((i + step) % plan.examples())]);
          }
        }
        REQUIRE(examples == size);
      }
    }
  }
}

constexpr int64_t kExamples = 11;

// Writes kExamples examples to the folder, and returns the parameters of the source over them.
Kwargs WriteExamples(const std::string& kind, const TempDir& dir) {
  Image image;
  image.Resize(2, 3, 1);
  const auto number = [](int64_t i) { return static_cast<char>(i); };
  const auto cifar = [&](const std::string& name, size_t labels, int64_t begin, int64_t end) {
    std::string bytes;
    for (int64_t i = begin; i < end; ++i)
      bytes.append(labels, number(i % 10)).append(3072, number(20 * i));
    dir.Write(name, bytes);
  };
  const std::map<std::string, std::function<void()>> writers = {
      {"mnist",
       [&] {
         std::string images("\0\0\x8\x3\0\0\0\xb\0\0\0\x1\0\0\0\x2", 16),
             labels("\0\0\x8\x1\0\0\0\xb", 8);
         for (int64_t i = 0; i < kExamples; ++i) {
           images += std::string(2, number(20 * i));
           labels += number(i % 10);
         }
         dir.Write("train-images-idx3-ubyte", images);
         dir.Write("train-labels-idx1-ubyte", labels);
       }},
      {"cifar10",
       [&] {
         for (int64_t i = 0; i < 5; ++i)
           cifar(format("data_batch_{}.bin", i + 1), 1, 2 * i, i < 4 ? 2 * i + 2 : kExamples);
       }},
      {"cifar100", [&] { cifar("train.bin", 2, 0, kExamples); }},
      {"csv",
       [&] {
         std::string lines = "size,label\n";
         for (int64_t i = 0; i < kExamples; ++i)
           lines += format("{},{}\n", 0.5 * static_cast<double>(i), i % 3);
         dir.Write("table.csv", lines);
       }},
      {"list",
       [&] {
         std::string lines;
         for (int64_t i = 0; i < kExamples; ++i) lines += format("{}.png {}\n", i, i % 3);
         dir.Write("list.txt", lines);
       }},
      {"image_folder", [] {}},
      {"image_list", [] {}},
      {"image_archive",
       [&] {
         std::vector<TarEntry> entries;
         for (int64_t i = 0; i < kExamples; ++i) {
           std::fill(image.pixels.begin(), image.pixels.end(), static_cast<uint8_t>(20 * i));
           entries.push_back({format("{}/{:03}.png", "abc"[i % 3], i), EncodePng(image)});
         }
         dir.Write("a.tar", TarOf(entries));
       }},
      {"voc",
       [&] {
         for (int64_t i = 0; i < kExamples; ++i) {
           dir.Write(format("{}.xml", i),
                     format("<annotation><object><name>{}</name><bndbox><xmin>0</xmin><ymin>0"
                            "</ymin><xmax>{}</xmax><ymax>2</ymax></bndbox></object></annotation>",
                            "abc"[i % 3], 0.25 * static_cast<double>(i)));
         }
       }},
      {"yolo",
       [&] {
         for (int64_t i = 0; i < kExamples; ++i)
           dir.Write(format("{}.txt", i), format("{} 0.5 0.5 0.{} 1\n", i % 3, 10 + i));
       }},
      {"coco",
       [&] {
         std::vector<std::string> images, objects;
         for (int64_t i = 0; i < kExamples; ++i) {
           images.push_back(format(R"({{"id": {}, "file_name": "{}.png"}})", i, i));
           objects.push_back(format(
               R"({{"image_id": {}, "category_id": {}, "bbox": [0, 0, {}, 2]}})", i, i % 3, i));
         }
         dir.Write("boxes.json", format(R"({{"images": [{}], "annotations": [{}], "categories": [
                          {{"id": 0, "name": "a"}}, {{"id": 1, "name": "b"}},
                          {{"id": 2, "name": "c"}}]}})",
                                        join(images, ", "), join(objects, ", ")));
       }},
      {"box_csv",
       [&] {
         std::string lines = "image,x1,y1,x2,y2,class\n";
         for (int64_t i = 0; i < kExamples; ++i)
           lines += format("{}.png,0,0,{},2,{}\n", i, i, "abc"[i % 3]);
         dir.Write("boxes.csv", lines);
       }},
      {"labelled_text",
       [&] {
         std::string lines = "label,text\n";
         for (int64_t i = 0; i < kExamples; ++i)
           lines += format("{},word{} more\n", "abc"[i % 3], i);
         dir.Write("texts.csv", lines);
       }},
      {"chat",
       [&] {
         std::string lines;  // each fills a row
         for (int64_t i = 0; i < kExamples; ++i)
           lines += format("{{\"prompt\": \"{:04}\", \"completion\": \"a\"}}\n", i);
         dir.Write("chats.jsonl", lines);
       }},
      {"text_lines",
       [&] {
         std::string lines;
         for (int64_t i = 0; i < kExamples; ++i) lines += format("{}.png line {}\n", i, i);
         dir.Write("lines.txt", lines);
       }},
      {"text",
       [&] { dir.Write("text.txt", std::string("a text of 12").substr(0, kExamples + 1)); }},
      {"record",
       [&] {
         RecordWriter writer(dir.path("a.rec"));
         for (int64_t i = 0; i < kExamples; ++i) {
           std::fill(image.pixels.begin(), image.pixels.end(), static_cast<uint8_t>(20 * i));
           writer.Write(ImageRecordBytes({{static_cast<float>(i % 3)}, 0, 0, EncodePng(image)}));
         }
         writer.Commit();
       }},
  };
  REQUIRE_MESSAGE(writers.contains(kind), "no examples for the source " << kind);
  writers.at(kind)();
  for (int64_t i = 0; i < kExamples; ++i) {
    std::fill(image.pixels.begin(), image.pixels.end(), static_cast<uint8_t>(20 * i));
    if (kind == "image_folder") dir.Write(format("{}/{}.png", "abc"[i % 3], i), EncodePng(image));
    static const std::set<std::string> kFlat = {"list", "image_list", "voc",       "yolo",
                                                "coco", "box_csv",    "text_lines"};
    if (kFlat.contains(kind)) dir.Write(format("{}.png", i), EncodePng(image));
  }
  if (kind == "csv") return {{"path", dir.path("table.csv")}, {"label_columns", "label"}};
  if (kind == "coco") return {{"path", dir.path("boxes.json")}};
  if (kind == "box_csv") return {{"path", dir.path("boxes.csv")}};
  if (kind == "labelled_text") return {{"path", dir.path("texts.csv")}, {"length", "2"}};
  if (kind == "chat")
    return {{"path", dir.path("chats.jsonl")}, {"tokenizer", "bytes"}, {"length", "65"}};
  if (kind == "text_lines") return {{"path", dir.path("lines.txt")}};
  if (kind == "text") return {{"path", dir.path("text.txt")}, {"length", "1"}};
  if (kind == "list") return {{"path", dir.path("list.txt")}};
  if (kind == "image_archive") return {{"path", dir.path("a.tar")}};
  return {{"path", dir.path()}};
}

Kwargs Join(Kwargs left, const Kwargs& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// Rows [begin, end) of a batch of `rows`.
Copied SliceOf(const Copied& batch, int64_t rows, int64_t begin, int64_t end) {
  const auto rows_of = [&](const std::vector<float>& all) {
    const int64_t width = static_cast<int64_t>(all.size()) / rows;
    return std::vector<float>(all.begin() + begin * width, all.begin() + end * width);
  };
  const int64_t first = std::min(begin, batch.count), last = std::min(end, batch.count);
  return {rows_of(batch.data),
          rows_of(batch.label),
          {batch.index.begin() + first, batch.index.begin() + last},
          last - first};
}

// Returns how often each example occurs, over all parts.
std::vector<int> CheckParts(Runtime& runtime, const std::shared_ptr<const Source>& source,
                            const Kwargs& kwargs, int64_t parts, int64_t rows) {
  const int64_t together = parts * rows;
  const auto make = [&](int64_t batch_size, const Kwargs& part) {
    return NewPipeline(runtime, source, {},
                       Param(Join(Join(kwargs, part), {{"batch_size", format("{}", batch_size)},
                                                       {"seed", "3"},
                                                       {"workers", "1"},
                                                       {"prefetch", "1"}})));
  };
  const auto single = make(together, {});
  single->Reset(2);
  const std::vector<Copied> expected = RunOut(*single);
  std::vector<int> seen(At(source->size()));
  for (int64_t part = 0; part < parts; ++part) {
    CAPTURE(part);
    const auto iter =
        make(rows, {{"part_index", format("{}", part)}, {"num_parts", format("{}", parts)}});
    CHECK(iter->examples() == source->size());
    CHECK(iter->batches_per_epoch() == single->batches_per_epoch());
    iter->Reset(2);
    const std::vector<Copied> batches = RunOut(*iter);
    REQUIRE(batches.size() == expected.size());
    for (size_t k = 0; k < batches.size(); ++k)
      CHECK((batches[k] == SliceOf(expected[k], together, part * rows, (part + 1) * rows)));
    for (const int64_t i : Indices(batches)) ++seen[At(i)];
  }
  return seen;
}

TEST_CASE("parts of every source are disjoint and complete") {
  Runtime runtime = MakeRuntime();
  for (const SourceKind& info : Sources().kinds()) {
    const TempDir dir;
    const Kwargs written = WriteExamples(info.name, dir);
    for (const Kwargs& holdout : {Kwargs{}, Kwargs{{"holdout", "0.3"}}}) {
      const std::shared_ptr<const Source> source = MakeSource(info.name, Join(written, holdout));
      const int64_t size = source->size();
      CHECK((holdout.empty() ? size == kExamples : size > 5 && size < kExamples));
      for (const auto& [parts, rows] :
           std::vector<std::pair<int64_t, int64_t>>{{1, 3}, {2, 2}, {3, 1}, {5, 1}, {7, 3}}) {
        for (const char* shuffle : {"False", "True"}) {
          INFO(info.name << ", " << size << " examples, " << parts << " parts, batches of " << rows
                         << ", shuffle " << shuffle);
          const auto check = [&](const Kwargs& more) {
            return CheckParts(runtime, source, Join({{"shuffle", shuffle}}, more), parts, rows);
          };
          for (const Kwargs& all :
               {Kwargs{{"mode", "evaluation"}}, Kwargs{{"keep_remainder", "True"}}})
            CHECK(check(all) == std::vector<int>(At(size), 1));
          if (parts * rows > size) continue;
          const std::vector<int> seen = check({});
          CHECK(std::count(seen.begin(), seen.end(), 1) == size / (parts * rows) * parts * rows);
          CHECK(*std::max_element(seen.begin(), seen.end()) == 1);
          if (source->ClassOf(0) && std::string(shuffle) == "True") check({{"balanced", "True"}});
        }
      }
    }
  }
}

std::unique_ptr<DataIter> PartOf(Runtime& runtime, const std::shared_ptr<const Source>& source,
                                 int part, int parts, const Kwargs& more) {
  return NewPipeline(
      runtime, source, {},
      Param(Join({{"part_index", format("{}", part)}, {"num_parts", format("{}", parts)}}, more)));
}

TEST_CASE("parts without examples deliver padding, in as many batches as the others") {
  Runtime runtime = MakeRuntime();
  const auto source = std::make_shared<Counting>(3);
  const std::vector<std::vector<float>> data = {{0, 1}, {2, 0}, {1, 2}, {0, 1}, {2, 0}};
  for (const Kwargs& mode : {Kwargs{{"mode", "evaluation"}}, Kwargs{{"keep_remainder", "True"}}}) {
    for (int part = 0; part < 5; ++part) {
      CAPTURE(part);
      const auto iter = PartOf(runtime, source, part, 5, Join({{"batch_size", "2"}}, mode));
      CHECK(iter->batches_per_epoch() == 1);
      DataBatch batch;
      REQUIRE(iter->Next(&batch));
      CHECK(batch.count == (part == 0 ? 2 : part == 1 ? 1 : 0));
      CHECK(batch.data[0].ToVector() == data[At(part)]);
      CHECK(batch.label[0].ToVector() == data[At(part)]);
      CHECK(batch.index.size() == static_cast<size_t>(batch.count));
      CHECK_FALSE(iter->Next(&batch));
    }
  }
  CHECK(MessageOf([&] {
          PartOf(runtime, source, 0, 2, {{"batch_size", "2"}});
        }) == "batch_size = 2 in each of 2 parts is more than the 3 examples; use a smaller one");
}

TEST_CASE("a part continues anywhere, from the middle of another epoch") {
  Runtime runtime = MakeRuntime();
  const auto source = std::make_shared<Counting>(23);
  for (int part = 0; part < 3; ++part) {
    const Kwargs kwargs = {
        {"batch_size", "3"}, {"shuffle", "True"}, {"keep_remainder", "True"}, {"workers", "2"}};
    const auto run = PartOf(runtime, source, part, 3, kwargs);
    run->Reset(4);
    const std::vector<Copied> whole = RunOut(*run);
    REQUIRE(whole.size() == 3);
    CHECK(whole[2].count == (part == 0 ? 3 : part == 1 ? 2 : 0));
    const auto seek = PartOf(runtime, source, part, 3, kwargs);
    for (const size_t first : {1, 2, 3, 0}) {
      DataBatch batch;
      seek->Reset(1);
      REQUIRE(seek->Next(&batch));
      seek->Reset(4, static_cast<int64_t>(first));
      for (size_t k = first; k < whole.size(); ++k) {
        REQUIRE(seek->Next(&batch));
        CHECK((CopyOf(batch) == whole[k]));
      }
      CHECK_FALSE(seek->Next(&batch));
    }
  }
}

TEST_CASE("a bad example is replaced by one of the same part") {
  Runtime runtime = MakeRuntime();
  const auto source = std::make_shared<Counting>(12);
  const auto part = [&](int index, const char* max_bad) {
    return PartOf(runtime, source, index, 2, {{"batch_size", "2"}, {"max_bad", max_bad}});
  };
  // Part 0 has 0, 1, 4, 5, 8 and 9.
  source->broken = {1, 4, 9};
  CHECK(Indices(RunOut(*part(0, "0.25"))) == std::vector<int64_t>{0, 5, 5, 5, 8, 0});
  CHECK(Indices(RunOut(*part(1, "0"))) == std::vector<int64_t>{2, 3, 6, 7, 10, 11});
  CHECK(MessageOf([&] { RunOut(*part(0, "0.2")); }).starts_with("3 of 12 examples are unreadable"));
  source->broken = {0, 1, 4, 5, 8, 9};
  CHECK(MessageOf([&] { RunOut(*part(0, "0.5")); }) ==
        "none of the 6 examples of part 0 of 2 can be read; the last is number 9: broken");
  // Padding is replaced by any example.
  const auto few = std::make_shared<Counting>(3);
  few->broken = {1};
  const auto padding = PartOf(
      runtime, few, 2, 3, {{"batch_size", "2"}, {"keep_remainder", "True"}, {"max_bad", "0.4"}});
  DataBatch batch;
  REQUIRE(padding->Next(&batch));
  CHECK(batch.count == 0);
  CHECK(batch.bad.empty());
  CHECK(batch.data[0].ToVector() == std::vector<float>{2, 2});
}

}  // namespace
}  // namespace mxtrain::test
