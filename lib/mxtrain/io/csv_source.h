#pragma once
// Numbers and paths of pictures in text files, a line per example, separated by commas. A first line that holds no number in its first cell
// is a header of column names; where there are pictures, it is one when a column is asked for by name. Empty lines are passed over.
#include <memory>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct CsvParam : Parameter<CsvParam> {
  std::string path, data_csv, label_csv, root, label_delim;
  std::vector<std::string> label_columns, data_fields, label_fields, field_shapes, picture_fields, classes;
  TShape data_shape, label_shape;
  static void Declare(Fields<CsvParam>& f) {
    f.Add("path", &CsvParam::path).Default("").Help("one file that holds data and labels");
    f.Add("label_columns", &CsvParam::label_columns)
        .Default({})
        .Help("with path: names or numbers (from 0) of the columns that are labels");
    f.Add("data_csv", &CsvParam::data_csv).Default("").Help("instead of path: the file of the data");
    f.Add("label_csv", &CsvParam::label_csv).Default("").Help("with data_csv: the file of the labels; none: no labels");
    f.Add("data_fields", &CsvParam::data_fields)
        .Default({})
        .Help("with path: FIELD=COLUMN for each column of each field of the data, in order: left=a, left=b, right=c, right=d");
    f.Add("label_fields", &CsvParam::label_fields).Default({}).Help("with data_fields: FIELD=COLUMN for the labels");
    f.Add("field_shapes", &CsvParam::field_shapes)
        .Default({})
        .Help("with data_fields: FIELD=SHAPE of one example, y=1 or image=1x28x28; default: as data_shape and label_shape");
    f.Add("picture_fields", &CsvParam::picture_fields).Default({}).Help("with data_fields: those whose one column holds paths of pictures");
    f.Add("root", &CsvParam::root).Default("").Help("folder to which the paths are relative; default: that of the file");
    f.Add("label_delim", &CsvParam::label_delim)
        .Default("")
        .Help("with data_fields: what parts the classes in the first label of one column, which names any number of them: ';' in cat;dog");
    f.Add("classes", &CsvParam::classes)
        .Default({})
        .Help("with picture_fields or label_delim: class names of the label in order of their numbers; default: the words found, sorted");
    f.Add("data_shape", &CsvParam::data_shape).Default(TShape()).Help("of one example; default: a row of all data columns");
    f.Add("label_shape", &CsvParam::label_shape).Default(TShape()).Help("of one label; default: a scalar, or a row of several columns");
  }
};

// Holds all numbers in memory; pictures are read when asked for. With pictures a label may be words: the names of classes. Fields: those
// that data_fields and label_fields name, or one "data" of data_shape and one "label" of label_shape. Columns that no field names are left
// out. With label_delim the first label of one column becomes a 0 or 1 for each class, [classes]. Throws kConfig for parameters that
// contradict, kFileSystem for a missing file, and kData, with file, line and column, for what is no number, for lines of different lengths,
// for a width that the shape does not fit, and for files of different lengths.
MXTRAIN_API std::unique_ptr<Source> NewCsvSource(const CsvParam& param);

}  // namespace mxtrain::io
