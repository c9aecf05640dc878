// SPDX-License-Identifier: Apache-2.0
// Boxes of objects as XML (Pascal VOC), text (YOLO), JSON (COCO) and a table, and masks of objects
// as JSON (COCO): each input is read as all of them.
#include <cmath>
#include <cstdlib>

#include "mxtrain/io/boxes.h"
#include "mxtrain/io/image.h"
#include "tests/fuzz/source.h"

namespace mxtrain::fuzz {

std::vector<std::string> LargeInputs() {
  std::string lines, objects, rows = "file,class,xmin,ymin,xmax,ymax\n", boxes, polygons, corners;
  for (int i = 0; i < 20'000; ++i) {
    lines += format("{} 0.5 0.5 0.25 0.25\n", i % 100);
    objects +=
        "<object><name>a</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2"
        "</ymax></bndbox></object>";
    rows += format("a.png,c{},1,1,2,2\n", i % 100);
    boxes += format(R"({}{{"id": {}, "image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2]}})",
                    i > 0 ? "," : "", i);
    polygons += format("{}[0,0,6,0,6,4]", i > 0 ? "," : "");
    corners += format("{},0,", 6 * (i % 2));
  }
  const auto masked = [](const std::string& segmentation) {
    return R"({"images": [{"id": 1, "file_name": "a.png"}], "categories": [{"id": 1, "name": "c"}], )"
           R"("annotations": [{"image_id": 1, "category_id": 1, "segmentation": )" +
           segmentation + "}]}";
  };
  return {
      masked("[" + polygons + "]"),
      masked("[[" + corners + "0,4]]"),
      lines,
      "<annotation>" + objects + "</annotation>",
      rows,
      R"({"images": [{"id": 1, "file_name": "a.png"}], "categories": [{"id": 1, "name": "c"}], )"
      R"("annotations": [)" +
          boxes + "]}",
      std::string(200'000, '['),
      std::string(200'000, '<')};
}

// Rows have a class of the source's, and coordinates that are numbers.
void ReadBoxes(std::string_view kind, const Kwargs& kwargs) {
  ReadAll(kind, kwargs);
  MayRefuse([&] {
    const std::unique_ptr<io::Source> source = io::MakeSource(kind, kwargs);
    const auto columns = static_cast<size_t>(source->label_fields()[0].shape[1]);
    io::Sample sample;
    for (int64_t i = 0; i < source->size(); ++i) {
      const std::span<const float> rows = source->LabelOf(i, 0, &sample);
      if (rows.size() % columns != 0) std::abort();
      for (size_t r = 0; r < rows.size(); r += columns) {
        if (io::BoxRow(&rows[r]).label >= static_cast<float>(source->num_classes())) std::abort();
        for (size_t c = 0; c < columns; ++c) {
          if (std::isnan(rows[r + c])) std::abort();
        }
      }
    }
  });
}

// Pixels have a class of the source's or none, and there are as many as in the image.
void ReadMasks(const std::string& file) {
  MayRefuse([&] {
    const auto source = io::MakeSource("coco", {{"path", file}, {"label", "mask"}});
    io::Sample sample;
    for (int64_t i = 0; i < source->size(); ++i) {
      MayRefuse([&] {
        source->Read(i, &sample);
        const io::Image& classes = sample.labels[0].classes;
        const auto image = io::ProbeImage(sample.data[0].encoded);
        if (!image || image->height != classes.height || image->width != classes.width)
          std::abort();
        for (const uint8_t k : classes.pixels) {
          if (k != io::kNoClass && k >= source->num_classes()) std::abort();
        }
      });
    }
  });
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain::fuzz;
  static const bool has_image = [] {
    mxtrain::io::Image image;
    image.Resize(4, 6, 1);
    Scratch().Write("a.png", mxtrain::io::EncodePng(image));
    return true;
  }();
  if (!has_image) std::abort();
  const std::string_view text = TextOf(data, size);
  for (const char* const file : {"a.xml", "a.txt", "boxes.json", "boxes.csv"})
    Scratch().Write(file, text);
  for (const char* const kind : {"voc", "yolo"}) ReadBoxes(kind, {{"path", Scratch().path()}});
  ReadBoxes("coco", {{"path", Scratch().path("boxes.json")}});
  ReadMasks(Scratch().path("boxes.json"));
  ReadBoxes("box_csv", {{"path", Scratch().path("boxes.csv")}});
  ReadBoxes("yolo", {{"path", Scratch().path()}, {"classes", "(cat, dog)"}});
  return 0;
}
