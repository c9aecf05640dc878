// SPDX-License-Identifier: Apache-2.0
#include "app/commands/help_topics.h"

#include <algorithm>

#include "mxtrain/io/image_formats.h"

namespace mxtrain::commands {

std::span<const HelpTopic> HelpTopics() {
  static const std::vector<HelpTopic> topics = {
      {{"net", "layers"},
       "how to write a net",
       R"(A net is a list of layers; each takes the output of the previous one. A layer is the name of an operator
with its parameters:

    net:
      input: [3, 32, 32]                  # one example: channels, height, width
      layers:
        - Convolution: {name: stem, num_filter: 16, kernel: 3, pad: 1}
        - Activation: {act_type: relu}
        - Convolution: {name: side, num_filter: 16, kernel: 1}
        - elemwise_add: {name: sum, inputs: [stem, side]}
        - Flatten
        - FullyConnected: {num_hidden: 10, attrs: {lr_mult: 10}}
        - SoftmaxOutput: {name: softmax}    # the loss is the last layer

`mxtrain ops` lists the operators, `mxtrain ops Convolution` the parameters of one. A single number for a pair
is repeated: kernel: 3. Besides its parameters, every layer may have

  name      its name; default: the operator's name and a number: convolution0
  inputs    the layers or inputs it takes instead of the previous layer: NAME or NAME.OUTPUT
  attrs     {lr_mult, wd_mult} for its parameters (lr_mult: 0 freezes them); ctx_group: its group, for --place
  when      true or false, often an expression: whether the layer exists
  weight, bias, ...   a `Variable` or another layer's parameter to share

Several inputs have names, net.inputs: {left: [2], right: [2]}; data.train.columns or the data set defines what
they hold. A net may have several losses; each reads the label NAME_label. `Variable: {name, shape, init,
lr_mult, wd_mult}` declares a separate parameter. ${classes} is the number of classes in the training data.

Nets that come with the program are used by name instead: net: {use: resnet18, classes: 12}. `mxtrain nets`
lists them; `classes` is by default that of the data, `vars` sets their variables.

See also `mxtrain help blocks`, `help repeat`, `help expressions`. `mxtrain plan CONFIG` shows every layer
with its shape, `--plot-net net.svg` draws the net.
)"},
      {{"blocks", "block"},
       "named groups of layers, to use several times",
       R"(`blocks` is a top-level key, like `net`. A block has parameters, optionally with defaults, and layers that
refer to them as ${name}:

    blocks:
      unit:                                 # a residual unit
        params: {width, stride: 1}        # width is required, stride is optional
        layers:
          - Convolution:
              {name: a, num_filter: "${width}", kernel: 3, stride: "${stride}", pad: 1}
          - Activation: {act_type: relu}
          - Convolution: {name: b, num_filter: "${width}", kernel: 3, pad: 1}
          - Convolution:
              name: shortcut
              inputs: input
              num_filter: ${width}
              kernel: 1
              stride: ${stride}
          - elemwise_add: {name: sum, inputs: [b, shortcut]}
    net:
      input: [3, 32, 32]
      layers:
        - unit: {name: first, width: 16}
        - unit: {name: second, width: 32, stride: 2}
        - Flatten
        - FullyConnected: {num_hidden: 10}
        - SoftmaxOutput

A block is used like an operator. The names in it get the name of the use as a prefix: first_a,
second_a_weight. Inside, `input` is the block's input; `inputs: [left, right]` next to `params` names several
inputs. The output of its last layer is the output of the block, unless `outputs` lists others: NAME.OUTPUT.
Its layers see only its parameters, its own layers and the Variables of the net. Blocks may use other blocks.
Blocks that several nets share can be in a file of their own, which each net includes:
include: ../common/residual.yaml
)"},
      {{"repeat"},
       "repeated layers",
       R"(`repeat` takes the place of a layer:

    net:
      input: [3, 32, 32]
      layers:
        - repeat:
            count: 3
            index: i                        # counts from 0; default: i
            layers:
              - Convolution:
                  {name: "conv${i}", num_filter: "${16 * (i + 1)}", kernel: 3, pad: 1}
              - Activation: {act_type: relu}
        - Flatten
        - FullyConnected: {num_hidden: 10}
        - SoftmaxOutput

The layers are repeated `count` times. Names inside must contain the index, since names are unique. `count`
may be an expression; 0 gives no layers. `repeat` also takes `when`. For layers that are used with different
parameters or in several places, write a block: `mxtrain help blocks`.
)"},
      {{"expressions", "expression", "arithmetic"},
       "arithmetic in ${...}",
       R"(A value may be computed from `vars`, the parameters of a block and the index of a repeat:

    vars: {width: 32, deep: true}
    net:
      input: [3, 32, 32]
      layers:
        - Convolution: {num_filter: "${width}", kernel: 3}
        - Convolution:
            num_filter: ${min(2 * width, 512)}
            kernel: 3
            when: ${deep and width >= 32}
        - Flatten
        - FullyConnected: {num_hidden: "${deep ? 100 : 10}"}
        - SoftmaxOutput

  or  and  not        == != < <= > >=        a ? b : c
  + - * / // %        / keeps fractions; // and % round down
  min(a, b, ...)  max(a, b, ...)  abs  int  floor  ceil  round  sqrt
  3  0.5  true  false  'text'  NAME

vars is a top-level key; each variable may use those above it, and the command line sets them: vars.width=64.
Other keys may use vars too: batch_size: ${width}. ${classes} is the number of classes in the training data.
A name in capitals is an environment variable: ${DATA} or ${DATA:-photos}. $${ stands for ${ itself.

Inside {...} and [...], and where ': ' is in it, YAML wants an expression in quotes: {num_filter: "${width}"}.
Its value is a number all the same; quotes around a plain 32 make it text.
)"},
      {{"list", "lists"},
       "text files that list images and their labels",
       R"(data.train: {source: list, path: photos.txt}. Each line holds a path and a label:

    cats/001.jpg,cat
    dogs/an image.jpg,dog

Columns are separated by tabs; in lines without tabs by commas, else by spaces. A path with spaces needs tabs
or commas, a path with commas tabs. Empty lines and lines starting with '#' are skipped. Paths are relative to
the list, or to data.train.root. A label is a class: its number from 0, or its name; the classes are then the
names found, sorted. Several numeric columns are regression targets. With label_delim: ';' the label cat;dog names any
number of classes. columns: {weight: 2} says that column 2, counted from 0, the path, is the weight of the image, a
number from 0: one of weight 3 counts as three of it. MXNet's lists (number, labels, path) are accepted. `eval` and `infer` take lists too;
`infer` reads the paths, and needs no labels.
)"},
      {{"csv", "table", "tables"},
       "tables of numbers, words, images and labels",
       R"(data.train: {source: csv, path: points.csv, columns: {data: [a, b, c], softmax_label: y}}. The first line
holds the column names, if columns are given by name:

    a,b,c,y
    0.5,1,2.25,0
    1.5,0,0.75,1

`columns` lists the columns of each input of the net and each label; other columns are ignored. An input takes
as many columns as its shape has elements. The label of a loss is called NAME_label. Columns may also be
numbered from 0: then the first line is the header if it has words where the lines below have numbers or
names of files, or counts the columns (0,1,2), else an example; `check` and `train` say which. A single
column for an input of channels, height and width holds image paths, relative to the table or to
data.train.root.

A label is a number, or a class given by its number from 0 or by its name: the classes are the words in its
column, sorted, and ${classes} is the number of classes of the first such label. A regression takes one number
per column. Cells are separated by , ; tab or |, else by blanks, detected from the first lines (or set
`delimiter`), and may be quoted. Decimals have a point. Files may be in UTF-8 or UTF-16, plain or .gz; sheets
of Excel must be saved as CSV.

    normalize: auto   standardize inputs and regression targets to mean 0 and
                      standard deviation 1; metrics and predictions are in the
                      column's own units. Large numbers (times in seconds) keep
                      their digits. Codes that an Embedding reads, and inputs
                      with dtype: int32, stay as they are. {columns: [a, b]}:
                      these columns alone; {except: [c]}: all but these
    missing: mean     empty cells (in numeric columns also nan, NA, n/a, null)
                      take the mean of their column, rows without a label are
                      skipped; drop: skip such rows; error: the default

`columns: {weight: w}` names a column of numbers from 0: a row of weight 3 counts as three of it, in the loss and
in metrics, one of weight 0 as none. A net with an input or a label named weight reads the column itself.

A column of words is an input where an Embedding or one_hot reads it: its categories, sorted, have the codes
1, 2, ..., and a word that the training data lacks, or an empty cell, has 0, so that input_dim is their count and one.
A column of codes holds whole numbers below input_dim. `mxtrain init houses.csv --target price` writes such a
configuration.

`mxtrain check` reports the first line that cannot be read. `mxtrain infer RUN new.csv --key id` predicts the
rows of another table with the same input columns; labels are not needed. A run on a column of images also
takes images, folders and lists: there a file, or stdin, is read as a table if its first line names that
column, and with --key.
)"},
      {{"photos", "images", "folders"},
       "from a folder of images to predictions",
       "Put the images (" + io::ImageFormatNames() +
           R"() of each class into a folder named after the class. These folders are in
train/ and val/ (or Training, seg_train, valid, ...), or all in one folder, of which a fifth is then held out
for validation:

    photos/cat/*.jpg    photos/dog/*.jpg

    mxtrain init photos                     writes photos.yaml, with comments
    mxtrain check photos.yaml               reads every image: damaged, contradictory and duplicate ones
    mxtrain train photos.yaml               Ctrl-C stops and saves; train runs/latest --resume continues
    mxtrain eval runs/latest                accuracy, each class, confusion matrix, worst mistakes
    mxtrain infer runs/latest NEW_IMAGES --top-k 3 --format csv
    mxtrain export runs/latest photos.onnx  for other programs

Under a thousand images or so, begin with published weights: `mxtrain help fine-tuning`. A fifth of a small
folder is a few dozen images, whose accuracy is known only to several per cent: `mxtrain sweep --folds 5`
validates on all of them.
)"},
      {{"boxes", "detection"},
       "the objects in an image, a class and a box each",
       R"(`init` knows labels of Pascal VOC (XML), YOLO (text), COCO (JSON) and tables of boxes by their files:

    cells/train/images      cells/train/annotations     and the same of val; or labels, as text
    cells/annotations/instances_train.json              or one folder, of which a fifth is held out

    mxtrain init cells --net efficientnet_lite0 --weights efficientnet_lite0.pth
    mxtrain check cells.yaml                boxes without an area, beyond the image, given twice
    mxtrain train cells.yaml
    mxtrain eval runs/latest                average precision by class and size, kinds of errors, worst images
    mxtrain infer runs/latest photos --output boxes.csv --annotate drawn --threshold 0.5
    mxtrain infer runs/latest photos --format yolo --output labels      or --output boxes.json, COCO's
    mxtrain export runs/latest cells.onnx   the whole detector, for other programs

`mxtrain synth shapes --task detection` makes such data, and `mxtrain pack` puts data into one file.
Coordinates are in pixels of the image as it is shown.
Difficult objects and crowds count neither as objects nor as background.

See also `mxtrain help data.train`, `help voc`, `help yolo`, `help coco`, `help box_csv`,
`help record`.
)"},
      {{"masks", "segmentation"},
       "a class for each pixel of an image",
       R"(A mask is an image of the size of its photograph, as PNG, whose pixels are classes: the numbers that an
indexed or gray PNG holds, or colours. `init` knows these folders, also under other usual names:

    streets/train/images    streets/train/masks     and the same of val; images/train beside masks/train;
    streets/classes.txt                             or images beside masks, of which a fifth is held out

    mxtrain init streets --net efficientnet_lite0 --weights efficientnet_lite0.pth
    mxtrain check streets.yaml              reads every mask: sizes, numbers of no class, classes never seen
    mxtrain train streets.yaml
    mxtrain eval runs/latest                intersection over union, Dice, precision and recall of each class
    mxtrain infer runs/latest photos --images masks --annotate painted

`mxtrain synth shapes --task segmentation` makes such data. Of photos/a.jpg the mask is targets/a.png; with
targets_suffix: _mask, a_mask.png. 255 and the numbers in mask_ignore are of no class: they do not count.

A file of COCO has masks as polygons or run lengths: source: coco, label: mask, without targets. `mxtrain init FOLDER
--task segmentation` writes that. The classes are background and the categories; of objects that overlap the smaller is seen.

See also `mxtrain help data.train`, `help net`.
)"},
      {{"fine-tuning", "fine_tuning", "finetuning", "pretrained", "transfer-learning"},
       "published weights for your own images",
       R"(`init` writes the recipe for a folder of images, a net and a file of its weights:

    mxtrain nets                            the nets, with parameters, work and memory
    mxtrain init photos --net efficientnet_lite0 --weights efficientnet_lite0.pth
    mxtrain train photos.yaml

The file may be one of PyTorch (.pth, .pt), safetensors, MXNet, a run of your own, or an address: https://...
or hf://OWNER/REPO/FILE, which is downloaded once. Who published it, told by the names of its arrays, decides
how images are prepared: torchvision, timm, or lukemelas (EfficientNet-PyTorch, whose weights are
TensorFlow's); --weights-family says which where several share the names.

The new last layer learns alone in the first epoch, then all layers with small steps. --head-only trains
the last layer alone, in seconds, and less accurately. Every value is in the file, to be changed there.

See also `mxtrain help train.weights`, `help train.freeze`.
)"},
      {{"report", "reports", "run-folder"},
       "what a run and an evaluation leave",
       R"(A run writes its folder, runs/NAME-0001; runs/latest is the newest that has saved something.

  report.html    all of the following in one file: open it in a browser
  config.yaml    the whole configuration; `mxtrain train runs/NAME-0001` trains with it again
  checkpoints/   last, best (by the first metric) and some epochs
  metrics.csv    one line per epoch; events.jsonl the same with steps; result.json how the run ended
  monitor.csv    with train.monitor: statistics of what the net computes (`mxtrain help train.monitor`)
  plots/, tb/    curves, as images and for TensorBoard
  samples/       the first batch as the net sees it
  eval/          of `mxtrain eval RUN`: tables and figures

Of `eval`: precision is the part of the predictions of a class that are right, recall the part of the
images of a class that are found, F1 between the two. The expected calibration error is the mean distance
between scores and accuracy: at 0 seven of ten predictions with score 0.7 are right. The table below it
says how many predictions remain if those with lower scores are left to a person (infer --min-score), and
how many of them are right.
)"},
      {{"calibration", "calibrate", "temperature", "confidence", "scores"},
       "scores that say how often they are right",
       R"(The score of a class is calibrated if of all predictions with score 0.7 seven of ten are right. `eval`
measures how far off they are (the expected calibration error), says what chance alone would make of as many
examples, and draws it: eval/reliability.png, where bars of fewer than ten examples are gray.

    mxtrain eval runs/latest --calibrate         on the validation data
    mxtrain eval runs/latest labelled --calibrate
    mxtrain infer runs/latest photos --copy-to sorted --min-score 0.9

--calibrate fits one number to the examples, a temperature by which logits are divided: above 1 for a net that
is too sure, as most are. It changes no prediction, only the scores. It is kept beside the checkpoint
(checkpoints/best.temperature.json), and used by eval, infer and export; a checkpoint that changes, as of a run
that is continued, needs a new one. Training with label smoothing (smooth_alpha) or mixup makes scores less sure from the start.
)"},
      {{"resume", "continue", "killed"},
       "a run that was stopped, and one that goes on",
       R"(Ctrl-C, or a signal TERM, ends the step, saves and leaves; a second one leaves at once. USR1 saves and trains on.

    mxtrain train photos.yaml --resume           from where the newest run of this name stopped, to the bit
    mxtrain train runs/photos-0001/config.yaml --resume
    mxtrain train photos.yaml --extend           train.epochs more, after a run that is complete
    mxtrain train photos.yaml --extend --or-begin        the same, or a new run: for a nightly job
    mxtrain train photos.yaml --resume-from FILE         a new run that begins at a checkpoint
    mxtrain verify-resume photos.yaml            shows that a resumed run has the weights of an undisturbed one

train.save.every says how often a checkpoint is written besides at the end of each epoch: 10min, 500steps. A
run that was killed loses the steps since. See also `mxtrain help train.save`, `help report`.
)"},
      {{"progress", "bar", "log"},
       "what the terminal shows of a run",
       R"(--progress auto is a moving bar on a terminal, and a line from time to time where output goes into a file or a
pipe; bar, lines and none choose one. -q leaves warnings and errors, -v adds details. The run folder keeps
all of it: mxtrain.log what the terminal showed, metrics.csv a line for each epoch, events.jsonl every event.

    mxtrain train photos.yaml --progress lines >train.log 2>&1
    mxtrain train photos.yaml --json | jq .      events as JSON lines on stdout, to watch it by a program
    mxtrain runs                                 all runs with their last and best metrics
    tensorboard --logdir runs                    curves, while it trains

`waiting for data` is the share of time in which the device had no batch: above a few per cent, decoding is
what limits (data.workers, data.cache: ram; `mxtrain bench CONFIG` measures it).
)"},
      {{"gpu", "gpus", "cuda", "device"},
       "training on a GPU",
       R"(The default is the first usable GPU, else the CPU. A GPU needs a build with CUDA (the preset cuda, or a
package made with scripts/package.sh --cuda), a driver, cuBLAS and cuDNN.

    mxtrain devices                              what is there, and what is missing
    mxtrain train photos.yaml --device gpu       fails where there is none, and says why
    mxtrain train photos.yaml --device gpu:0,1   each takes an equal part of every batch
    mxtrain train photos.yaml --device cpu
    mxtrain plan photos.yaml --memory 8GiB       the largest batch that fits

train.amp: bf16 computes in bfloat16, twice as fast or more on GPUs with matrix units. --deterministic gives the
same bits in every run. CUDA_VISIBLE_DEVICES hides GPUs. See also `mxtrain help train.amp`, `help 5`.
)"}};
  return topics;
}

const HelpTopic* FindHelpTopic(const std::string& word) {
  for (const HelpTopic& topic : HelpTopics()) {
    if (std::find(topic.names.begin(), topic.names.end(), word) != topic.names.end()) return &topic;
  }
  return nullptr;
}

}  // namespace mxtrain::commands
