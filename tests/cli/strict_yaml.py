#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are our configurations YAML to another parser, and valid by our JSON schema?

    strict_yaml.py SCHEMA SOURCE BLOCKS FILE...

SCHEMA is the output of `mxtrain check --schema`, SOURCE the source tree, FILE... are configurations that the program wrote. Reads them,
configs/**/*.yaml, and every ```yaml block of the documentation with PyYAML; what has the keys of a configuration is validated. Blocks that
are whole configurations are written into the folder BLOCKS; what they include is in ../common. Prints what is wrong; exits with 1 then,
with 77 without the packages."""
import json
import os
import re
import sys
import textwrap

try:
    import jsonschema
    import yaml
except ImportError as error:
    print(f"skipped: {error}; needs the packages python3-yaml and python3-jsonschema")
    sys.exit(77)

Validator = getattr(jsonschema, "Draft202012Validator", jsonschema.Draft7Validator)


class Loader(yaml.SafeLoader):
    """PyYAML with the scalars of YAML 1.2, as editors and this project read them (to 1.1, 1e-4 is a text and `off` is false), with texts as
    keys, and without duplicate keys."""

    yaml_implicit_resolvers = {}

    def construct_mapping(self, node, deep=False):
        self.flatten_mapping(node)
        return {key.value: self.construct_object(value, deep=True) for key, value in node.value}

    def flatten_mapping(self, node):
        keys = [key.value for key, _ in node.value]
        for i, key in enumerate(keys):
            if not isinstance(key, str) or key in keys[:i]:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate or composed key {key!r}", node.value[i][0].start_mark)
        super().flatten_mapping(node)
        # Keys of the node itself come last, and win.
        node.value = list({key.value: (key, value) for key, value in node.value}.values())


for kind, pattern in {
    "null": "~|null|Null|NULL|",
    "bool": "true|True|TRUE|false|False|FALSE",
    "int": "[-+]?[0-9]+",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    "merge": "<<",
}.items():
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(f"^(?:{pattern})$"), None)

# Values that the schema accepts, and that it refuses.
GOOD = """
batch_size of data: {data: {batch_size: "${size}"}}
words beside numbers: {data: {batch_size: auto}}
parts of an included file: {include: base.yaml, data: {train: {path: x}, val: {split: null}}, train: {optimizer: {lr: "${lr}"}}}
one file and a list: {include: [a.yaml, b.yaml], plugins: a.so}
texts that look like numbers: {name: 5, data: {val: {path: 2024}}}
short forms: {train: {optimizer: sgd, metrics: accuracy, early_stop: 5, time_limit: 0, save: 500steps, ema: 0.9}}
kinds by key: {train: {lr_schedule: {step: {every: 3}}, metrics: [{top_k: 5}, {name: mse, output: size}]}}
normalize: {data: {train: {transforms: [flip, {normalize: imagenet}], source: image_folder, path: x}}}
more of normalize: {data: {val: {transforms: [{normalize: {mean: 0.5}}, {normalize: auto}, {resize: "${size}"}]}}}
an empty section: {train: null}
layers: {net: {layers: [Flatten, {Convolution: {name: c, num_filter: "${width}", kernel: [3, 3], weight: w1}}, {unit: {width: 3}}, Dropout: ]}}
a net by name: {net: {use: resnet18, classes: 12}, train: {weights: {file: "https://example.org/a.pth", sha256: "0a"}}}
layers of blocks: {blocks: {unit: {params: {width: }, layers: [{repeat: {count: 2, layers: [{Pooling: {kernel: 2}}]}}]}}}
"""
BAD = """
an unknown key: {data: {batchsize: 4}}
a text for a number: {train: {epochs: many}}
a quoted number: {train: {epochs: "32"}}
another choice: {train: {math: sloppy}}
an unknown kind: {train: {optimizer: sdg}}
an unknown parameter: {train: {optimizer: {name: sgd, beta1: 0.5}}}
a parameter of no kind: {train: {optimizer: {lrate: 0.5}}}
another word of normalize: {data: {train: {transforms: [{normalize: imagenot}]}}}
a list for a section: {data: [1, 2]}
an unknown parameter of a layer: {net: {layers: [{Convolution: {num_filters: 20, kernel: 5}}]}}
a text for a number of a layer: {net: {layers: [{Convolution: {num_filter: many, kernel: 5}}]}}
another choice of a layer: {net: {layers: [{Activation: {act_type: rellu}}]}}
an unknown parameter in a repeated layer of a block: {blocks: {unit: {layers: [{repeat: {count: 2, layers: [{Pooling: {kernel_size: 2}}]}}]}}}
two layers in one: {net: {layers: [{Flatten: , Dropout: {p: 0.5}}]}}
"""
# Not YAML: a `{` begins a mapping.
REFUSED = ["a: {b: ${c}}", "a: [${b}]", "a: ${b ? c : d}", "a: {b: 1, b: 2}"]


class Report:
    def __init__(self, schema):
        self.validator = Validator(schema)
        self.keys = set(schema["properties"])
        self.problems = self.validated = self.read = 0

    def problem(self, name, text):
        self.problems += 1
        print(f"{name}: {text}")

    def parse(self, name, text):
        """The value, or None with a problem."""
        try:
            self.read += 1
            return yaml.load(text, Loader)
        except yaml.YAMLError as error:
            self.problem(name, f"not YAML: {' '.join(str(error).split())}")
            return None

    def same_in_both_versions(self, name, text, value):
        """What people and the program write means the same to parsers of YAML 1.1, such as PyYAML itself: 1.0e-4, not 1e-4; "off", not off."""
        try:
            if yaml.safe_load(text) != value:
                self.problem(name, "YAML 1.1 reads it differently")
        except yaml.YAMLError as error:
            self.problem(name, f"not YAML 1.1: {' '.join(str(error).split())}")

    def errors(self, value):
        return ["/".join(map(str, error.absolute_path)) + ": " + error.message[:200] for error in self.validator.iter_errors(value)]

    def validate(self, name, value):
        self.validated += 1
        for error in self.errors(value):
            self.problem(name, f"invalid by the schema: {error}")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def files_below(folder, ending):
    return sorted(os.path.join(path, name) for path, _, names in os.walk(folder) for name in names if name.endswith(ending))


def yaml_blocks(text):
    """(line, text) of each ```yaml block of a Markdown text."""
    for block in re.finditer(r"^( *)```ya?ml *\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, block.start()) + 1, textwrap.dedent(block[2])


def check_schema(report):
    for name, value in yaml.load(GOOD, Loader).items():
        for error in report.errors(value):
            report.problem(f"schema, {name}", f"refused: {error}")
    for name, value in yaml.load(BAD, Loader).items():
        if not report.errors(value):
            report.problem(f"schema, {name}", "accepted")
    for text in REFUSED:
        try:
            yaml.load(text, Loader)
            report.problem(text, "the parser is not strict")
        except yaml.YAMLError:
            pass


def check_documentation(report, source, blocks):
    whole = 0
    files = [os.path.join(source, name) for name in ("README.md", "data/README.md")] + files_below(os.path.join(source, "lib"), ".md")
    for file in files:
        for line, text in yaml_blocks(read(file)):
            name = f"{os.path.relpath(file, source)}:{line}"
            value = report.parse(name, text)
            report.same_in_both_versions(name, text, value)
            if not isinstance(value, dict) or not report.keys & set(value):
                continue
            report.validate(name, value)
            if "net" in value and ("data" in value or "include" in value):
                whole += 1
                with open(os.path.join(blocks, f"{whole}.yaml"), "w", encoding="utf-8") as copy:
                    copy.write(text)
    if whole == 0:
        report.problem("documentation", "no block is a whole configuration")


def main():
    schema_file, source, blocks, *written = sys.argv[1:]
    report = Report(json.loads(read(schema_file)))
    check_schema(report)
    for file in files_below(os.path.join(source, "configs"), ".yaml") + written:
        text = read(file)
        value = report.parse(file, text)
        report.same_in_both_versions(file, text, value)
        if os.path.basename(os.path.dirname(file)) == "names":  # lists of names, with families of weights or without
            if not isinstance(value.get("rules") if isinstance(value, dict) else value, list):
                report.problem(file, "not a list of names")
        elif isinstance(value, dict):
            report.validate(file, value)
        else:
            report.problem(file, "not a configuration")
    check_documentation(report, source, blocks)
    print(f"{report.read} texts read, {report.validated} validated, {report.problems} problems")
    sys.exit(1 if report.problems else 0)


if __name__ == "__main__":
    main()
