#include "app/commands/help_topics.h"

#include <algorithm>

namespace mxtrain::commands {

std::span<const HelpTopic> HelpTopics() {
  static const std::vector<HelpTopic> topics = {
      {{"net", "layers", "nets"},
       "how a net is written",
       R"(A list of layers, each of which takes the one before it. A layer is the name of an operator with its
parameters:

    net:
      input: [3, 32, 32]                    # one example: channels, height, width
      layers:
        - Convolution: {name: stem, num_filter: 16, kernel: 3, pad: 1}
        - Activation: {act_type: relu}
        - Convolution: {name: side, num_filter: 16, kernel: 1}
        - elemwise_add: {name: sum, inputs: [stem, side]}
        - Flatten
        - FullyConnected: {num_hidden: 10, attrs: {lr_mult: 10}}
        - SoftmaxOutput: {name: softmax}    # the loss is the last layer

`mxtrain ops` lists the operators, `mxtrain ops Convolution` the parameters of one. A number where a pair is
due is repeated: kernel: 3. Beside its parameters every layer may have

  name      what others call it; by default the operator's name and a number: convolution0
  inputs    the layers or inputs that it takes, in place of the one before it: NAME, or NAME.OUTPUT
  attrs     {lr_mult, wd_mult} of its parameters: 0 keeps them as they are
  when      true or false, often an expression: whether the layer is there
  weight, bias, ...   a `Variable` or another layer's parameter that it shares

Several inputs have names, net.inputs: {left: [2], right: [2]}, and data.train.columns or the data say what
they are. A net may have several losses; each reads a label called as it is, NAME_label. `Variable: {name,
shape, init, lr_mult, wd_mult}` declares a parameter of its own. ${classes} is the number of classes in the
training data.

Further: `mxtrain help blocks`, `help repeat`, `help expressions`. `mxtrain plan CONFIG` shows every layer
with its shape, `--plot-net net.svg` draws the net.
)"},
      {{"blocks", "block"},
       "layers with a name, to be used several times",
       R"(`blocks` stands beside `net`. A block has parameters, some with defaults, and layers, which call them
${name}:

    blocks:
      unit:                                 # a residual unit
        params: {width, stride: 1}          # width must be given, stride need not
        layers:
          - Convolution: {name: a, num_filter: "${width}", kernel: 3, stride: "${stride}", pad: 1}
          - Activation: {act_type: relu}
          - Convolution: {name: b, num_filter: "${width}", kernel: 3, pad: 1}
          - Convolution: {name: shortcut, inputs: input, num_filter: "${width}", kernel: 1, stride: "${stride}"}
          - elemwise_add: {name: sum, inputs: [b, shortcut]}
    net:
      input: [3, 32, 32]
      layers:
        - unit: {name: first, width: 16}
        - unit: {name: second, width: 32, stride: 2}
        - Flatten
        - FullyConnected: {num_hidden: 10}
        - SoftmaxOutput

A block is used like an operator. Its names begin with that of the use: first_a, second_a_weight. Inside,
`input` is what the block was given; `inputs: [left, right]` beside `params` gives several of them names. It
gives what its last layer gives, unless `outputs` names others: NAME.OUTPUT. Its layers see its parameters,
its own layers and the Variables of the net, and no others. Blocks may use other blocks.
)"},
      {{"repeat"},
       "layers that are repeated",
       R"(`repeat` stands where a layer does:

    net:
      input: [3, 32, 32]
      layers:
        - repeat:
            count: 3
            index: i                        # counts from 0; i without this line
            layers:
              - Convolution: {name: "conv${i}", num_filter: "${16 * (i + 1)}", kernel: 3, pad: 1}
              - Activation: {act_type: relu}
        - Flatten
        - FullyConnected: {num_hidden: 10}
        - SoftmaxOutput

The layers follow each other `count` times. A name inside holds the index, since names are unique. `count`
may be an expression, 0 gives no layer, and `when` may stand beside it. Layers that are used with other
parameters, or at several places, are a block: `mxtrain help blocks`.
)"},
      {{"expressions", "expression", "arithmetic"},
       "what may stand in ${...}",
       R"(A value may be computed, from `vars`, the parameters of a block and the index of a repeat:

    vars: {width: 32, deep: true}
    net:
      input: [3, 32, 32]
      layers:
        - Convolution: {num_filter: "${width}", kernel: 3}
        - Convolution: {num_filter: "${min(2 * width, 512)}", kernel: 3, when: "${deep and width >= 32}"}
        - Flatten
        - FullyConnected: {num_hidden: "${deep ? 100 : 10}"}
        - SoftmaxOutput

  or  and  not        == != < <= > >=        a ? b : c
  + - * / // %        / gives a fraction where there is one; // and % round down
  min(a, b, ...)  max(a, b, ...)  abs  int  floor  ceil  round
  3  0.5  true  false  'text'  NAME

vars stand at the top level; each may use those above it, and the command line sets them: vars.width=64.
Other keys may use vars too: batch_size: ${width}. ${classes} is the number of classes in the training data.
A name in capitals alone is an environment variable, ${DATA} or ${DATA:-photos}. In {braces} an expression
stands in quotes where it holds a comma, a colon or a bracket.
)"},
      {{"list", "lists"},
       "text files that name pictures and their labels",
       R"(data.train: {source: list, path: photos.txt}. A line each, the path and then a label:

    cats/001.jpg  cat
    dogs/a picture.jpg<TAB>dog

Columns are parted by tabs, where a line has none by commas, else by spaces; a path that holds spaces wants
tabs or commas. Empty lines and lines that begin with '#' are skipped. Paths are relative to the list, or to
data.train.root. A label is a class: its number from 0, or its name, and the classes are then the names
found, in order. Several columns of numbers are targets, of a regression. With label_delim: ';' the label
cat;dog names any number of classes. Lists of MXNet (number, labels, path) are read as they are. `eval` and
`infer` take lists too; `infer` reads the first column.
)"},
      {{"csv", "table", "tables"},
       "tables of numbers, words, pictures and labels",
       R"(data.train: {source: csv, path: points.csv, columns: {data: [a, b, c], softmax_label: y}}. The first line
names the columns:

    a,b,c,y
    0.5,1,2.25,0
    1.5,0,0.75,1

`columns` says which columns make up each input of the net and each label; other columns are passed over,
whatever they hold. An input takes as many columns as its shape has numbers. A label bears the name that its
loss gives it, NAME_label. Columns may also be called by their numbers, from 0, as in a file without a first
line of names. One column for an input of channels, height and width holds paths of pictures, relative to the
table or to data.train.root.

A label is a number, or a class by its number from 0 or by its name: the words of its column are the classes,
sorted, and ${classes} is the number of those of the first such label. A regression takes a number for each
column. Cells are parted by , ; tab or |, as the first line shows (else say `delimiter`), and may be quoted.

    normalize: auto   inputs, and what a regression learns, are brought to a mean of 0 and a standard
                      deviation of 1; metrics and predictions are in the column's own units
    missing: mean     empty cells (of numbers also nan, NA, n/a, null) take the mean of their column, rows
                      without a label are passed over; drop: such rows are passed over; error: the default

`mxtrain check` names the first line that cannot be read. `mxtrain infer RUN new.csv --key id` predicts the
rows of another table, by the columns of the inputs; it needs no labels.
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
