#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Outputs of infer besides lists: sorted copies, annotated images, probabilities, averaged views.
. "$(dirname "$0")/common.sh"

"$helper" images large 8
"$helper" crop large photos 1 1 10 0
write_photos photos photos 4
expect 0 train photos.yaml train.epochs=10 --out model

# --- model and images swapped; values where there is no configuration
expect 2 infer photos model
says "model is a model; the model must come first: mxtrain infer model photos"
expect 2 infer photos model/checkpoints/best
says "mxtrain infer model/checkpoints/best photos"
expect 2 eval photos model
says "model is a model; the model must come first: mxtrain eval model photos"
expect 2 eval model data.val.path=photos
says "data.val.path=photos: give a folder or a list by its path alone: mxtrain eval model photos"
expect 2 eval model data.cache=ram
says "data.cache=ram overrides a configuration, but none is given: mxtrain eval model model/config.yaml data.cache=ram"
expect 2 eval model photos data.batch_size=2
says "data.batch_size=2 overrides a configuration, but photos is not one: mxtrain eval model model/config.yaml data.batch_size=2"
expect 0 eval model model/config.yaml data.val.path=photos --json
prints '"examples":16'
expect 2 infer model photos --top-k 0
says "error: --top-k: expected a whole number from 1 to 2147483647, got '0'; see \`mxtrain infer --help\`"
for number in 99999999999 -1 1.5 x; do
  expect 2 infer model photos --top-k $number
  says "error: --top-k: expected a whole number from 1 to 2147483647, got '$number'"
done
expect 2 infer model photos --copy-to x --min-score 2
says "error: --min-score: expected a number from 0 to 1, got '2'"

# --- copies sorted into class folders: names are kept, nothing is overwritten, a repetition changes nothing
expect 0 infer model photos --copy-to sorted --format csv --batch 5
tail -n +2 stdout | awk -F, '{n = split($1, part, "/"); print $2 "/" part[n]}' | sort -u >wanted
(cd sorted && find . -type f -name '???.png' | sed 's:^\./::' | sort) >found
holds "the copies are not sorted as the list says" cmp -s wanted found
holds "a copy has other bytes" cmp -s photos/dark/000.png sorted/dark/000.png
count=$(find sorted -type f | wc -l)
holds "$count of 16 images were copied" test "$count" -eq 16
expect 0 infer model photos --copy-to sorted
holds "a second run copied again" test "$(find sorted -type f | wc -l)" -eq 16
echo mine >sorted/dark/000.png
expect 0 infer model photos/dark/000.png --copy-to sorted
holds "a file was overwritten" test "$(cat sorted/dark/000.png)" = mine
holds "the copy beside it is not there" cmp -s photos/dark/000.png sorted/dark/000-2.png
expect 0 infer model photos --copy-to doubtful --min-score 1
holds "who is surely right?" test "$(find doubtful/unsure -type f | wc -l)" -eq 16
expect 2 infer model photos --min-score 0.5
says "--min-score needs --copy-to DIR"
says "awk -F, 'NR > 1 && \$NF != \"nan\" && \$NF + 0 >= 0.5'"
if [ "$(id -u)" -ne 0 ]; then expect 8 infer model photos --copy-to /proc/none; fi

# --- a run on a column of images reads such tables, as eval does; and images and lists too
{ echo id,label,file && for f in photos/*/*.png; do echo "$(basename "$f" .png)$(basename "$(dirname "$f")"),$(basename "$(dirname "$f")"),$f"; done; } >table.csv
cut -d, -f1,3 table.csv >new.csv # without labels
table='{source: csv, path: table.csv, columns: {data: file, softmax_label: label}, transforms: [{resize: [8, 8]}]}'
expect 0 train photos.yaml "data.train=$table" "data.val=$table" --out tabled
expect 0 infer tabled photos --format csv
cp stdout wanted
for file in table.csv new.csv; do
  expect 0 infer tabled $file --format csv
  holds "$file is read otherwise than its images" cmp -s wanted stdout
done
expect 0 infer tabled <(cat new.csv) --key id --format csv
holds "the head with a key" test "$(head -1 stdout)" = id,predicted,score
holds "the first row by its key" test "$(sed -n 2p stdout | cut -d, -f1)" = 000dark
holds "a key changes the predictions" cmp -s <(cut -d, -f2- stdout) <(cut -d, -f2- wanted)
expect 0 infer tabled - --key id --format csv <new.csv
holds "a table on stdin is relative to the working folder" cmp -s <(cut -d, -f2- stdout) <(cut -d, -f2- wanted)
expect 0 eval tabled - <table.csv
tail -n +2 new.csv | cut -d, -f2 >list.txt
expect 0 infer tabled list.txt --format csv
holds "a list is read otherwise than its images" cmp -s wanted stdout
expect 0 infer tabled - --format csv <list.txt
holds "a list on stdin is read otherwise than its images" cmp -s wanted stdout
says "stdin is read as a list of images: its first line has no column 'file'"
expect 0 infer tabled - --format csv < <(cat new.csv)
holds "a table on stdin is a list" cmp -s <(cut -d, -f2- stdout) <(cut -d, -f2- wanted)
{ echo photos/dark/gone.png && head -3 list.txt; } >gone.txt
expect 0 infer tabled gone.txt --skip-bad
says "1 of 4 examples could not be read"
{ printf '\357\273\277' && sed 's/,/";"/; s/.*/"&"/' new.csv; } >quoted.csv
touch id '"id";"file"' # names that begin the tables
for file in new.csv quoted.csv; do
  expect 0 infer tabled $file --format csv
  holds "$file is a list, as its header begins with the name of a file" cmp -s wanted stdout
done
rm id '"id";"file"'
expect 0 infer tabled new.csv --key id --copy-to by_table
holds "the images of a table are copied" test "$(find by_table -type f | wc -l)" -eq 16
expect 3 infer tabled <(sed 1s/file/image/ new.csv)
says "has no column 'file'; it has 2 columns, named id, image"
expect 2 infer tabled new.csv table.csv
says "this model reads one table at a time; 2 were given"
expect 2 infer tabled photos --key id
says "--key names a column of a table, but photos is a folder"

# --- the example of \`mxtrain help list\` can be copied; other separators are those of training
mkdir -p cats dogs
cp photos/dark/000.png cats/001.jpg
cp photos/light/000.png "dogs/an image.jpg"
"$program" help list | sed '/^Keys:/,$d' | grep '^    ' >example.txt
printf '  cats/001.jpg  cat\r\n# none\ndogs/an image.jpg\n0\t1\tcats/001.jpg\n' >mixed.txt
expect 0 infer model example.txt --format csv
holds "the example of help is read otherwise" test "$(tail -n +2 stdout | cut -d, -f1 | xargs -d '\n' printf '%s;')" = "cats/001.jpg;dogs/an image.jpg;"
expect 0 infer model mixed.txt --format csv
holds "a list with spaces is read otherwise" test "$(tail -n +2 stdout | cut -d, -f1 | xargs -d '\n' printf '%s;')" = "cats/001.jpg;dogs/an image.jpg;cats/001.jpg;"
list='{source: list, path: example.txt, transforms: [{resize: [8, 8]}]}'
expect 0 train photos.yaml "data.train=$list" "data.val=$list" data.batch_size=1 --out exemplary
says "classes: 0 cat, 1 dog"

# --- a list with zero-terminated paths
checks=$((checks + 1))
find photos/dark -name '*.png' -print0 | "$program" infer model - --format csv >stdout 2>stderr || fail "a list from find -print0"
holds "not a line for each of 8 images" test "$(tail -n +2 stdout | wc -l)" -eq 8

# --- a link to itself is neither an image nor a folder
ln -s loop photos/dark/loop
expect 0 infer model photos
rm photos/dark/loop

# --- MXNet's files contain the preprocessing and give the same predictions; flags override it, and are required for other files
expect 0 train photos.yaml --out measured 'data.val.transforms=[{resize: 8}, {center_crop: 8}, {normalize: {mean: [0.5, 0.4, 0.3], std: [0.25, 0.25, 0.5]}}]'
expect 0 export measured zoo@1
says "mxtrain infer zoo@1 INPUT prepares its input like the run; for another program: RGB pixels, upright (EXIF orientation applied), resize size=8, center_crop size=8, (pixel / 255 - mean) / std with mean=(0.5, 0.4, 0.3) std=(0.25, 0.25, 0.5), float32 [N, 3, 8, 8]"
flags=(--size 3,8,8 --mean 0.5,0.4,0.3 --std 0.25,0.25,0.5 --labels zoo-labels.txt)
expect 0 infer measured photos --format csv
cp stdout wanted
expect 0 infer zoo@1 photos --format csv
holds "the exported files predict otherwise" cmp -s wanted stdout
expect 0 infer zoo@1 photos --format csv "${flags[@]}"
holds "the exported files predict otherwise with flags" cmp -s wanted stdout
expect 0 infer zoo@1 photos --format csv --size 3,8,8
says "warning: zoo-0001.params says how its images are prepared; --size replaces all of it: size, cropping and normalization"
holds "flags do not go before what the files say" test "$(cmp -s wanted stdout && echo same)" != same
expect 0 eval measured photos
cp stdout measures
expect 0 eval zoo@1 photos
holds "eval of the exported files differs" test "$(tail -n +2 measures)" = "$(tail -n +2 stdout)"
# The exported files do not tell where the data was.
expect 0 export measured zoo.safetensors
for file in zoo-symbol.json zoo.safetensors; do
  holds "$file holds a path of this machine" test "$(grep -c "$work" $file)" -eq 0
  holds "$file lacks the transforms" grep -q center_crop $file
done
expect 2 eval zoo@1
says "zoo-0001.params does not name any data; give it: mxtrain eval MODEL DATA"
expect 0 export zoo@1 again@2
for number in -1 x '' 1.5; do
  expect 2 export zoo@1 "odd@$number"
  says "'odd@$number': N in PREFIX@N is a number from 0, got '$number'"
done
expect 0 infer again@2 photos --format csv
holds "files that were exported twice predict otherwise" cmp -s wanted stdout
# A crop that is smaller than what it is taken from, and images of another size than the net's.
"$helper" crop large odd 1 1 12 0
expect 0 train photos.yaml train.epochs=1 --out cropped 'data.val.transforms=[{resize: 11}, {center_crop: 8}]'
expect 0 infer cropped odd --format csv --top-k 2
cp stdout wanted
expect 0 export cropped crop@3
expect 0 infer crop@3 odd --format csv --top-k 2
holds "the crop does not travel" cmp -s wanted stdout
# So do the modes of computation: other roundings would show in the last digits. Only some processors compute in bfloat16.
rounded=(train photos.yaml train.epochs=1 --out rounded train.math=exact)
if computes_bfloat16; then
  expect 0 "${rounded[@]}" train.amp=bf16
else
  expect 3 "${rounded[@]}" train.amp=bf16
  says "mixed precision in bfloat16 is not supported on cpu(0): "
  says "; train in float32"
  expect 0 "${rounded[@]}"
fi
expect 0 infer rounded photos --format csv --top-k 2
cp stdout rounded.csv
expect 0 export rounded round@1
expect 0 infer round@1 photos --format csv --top-k 2
holds "the modes of computation do not travel" cmp -s rounded.csv stdout
# An image that a transform would make too large is one that cannot be read, to every command.
cp -r odd extreme
{ printf 'BM\226\352\0\0\0\0\0\0\066\0\0\0\050\0\0\0\040\116\0\0\001\0\0\0\001\0\030\0' && head -c 60024 /dev/zero; } >extreme/dark/thread.bmp
why="extreme/dark/thread.bmp: resize would make an image of 220000x11 pixels"
expect 4 infer cropped extreme --format csv
says "warning: $why"
holds "the other images have no lines" test "$(wc -l <stdout)" -eq 17
expect 0 infer cropped extreme --skip-bad
expect 4 eval cropped extreme
says "$why"
chain='transforms=[{resize: 11}, {center_crop: 8}]'
expect 4 check photos.yaml data.train.path=extreme "data.train.$chain"
says "$why"
expect 4 train photos.yaml data.train.path=extreme "data.train.$chain" --out strict
says "$why"
expect 0 train photos.yaml data.train.path=extreme "data.train.$chain" data.max_bad=0.1 --out tolerant
says "1 example could not be read, the first: "
# The arrays alone, in a run of no steps: the same model, the same predictions.
expect 0 export cropped crop.safetensors
expect 0 train photos.yaml train.epochs=0 train.weights.file=crop.safetensors --out taken 'data.val.transforms=[{resize: 11}, {center_crop: 8}]'
says "next: mxtrain eval taken, or mxtrain infer taken INPUT"
expect 0 runs .
holds "a run of no steps is not finished" grep -q 'taken  *finished' stdout
holds "a run of no steps has other checkpoints than last and best" test "$(ls taken/checkpoints | tr '\n' ' ')" = "best last "
expect 0 infer taken odd --format csv --top-k 2
holds "a run of no steps is another model" cmp -s wanted stdout
expect 0 train photos.yaml train.epochs=0 train.weights.file=crop.safetensors --resume --out taken
expect 0 train photos.yaml --resume --out taken train.epochs=1
expect 3 train photos.yaml train.epochs=0
says "train.epochs = 0 trains nothing, and train.weights names no model to save"
# Files of others: no attribute, and a label whose name does not say so.
strip() { sed -i 's/__mxtrain_model__/__mood__/' "$1-symbol.json"; }
cp zoo-symbol.json foreign-symbol.json && cp zoo-0001.params foreign-0001.params
strip foreign && sed -i 's/"softmax_label"/"truth"/g' foreign-symbol.json
expect 3 infer foreign@1 photos "${flags[@]}"
says "lacks arrays for data, truth; name those that are inputs (--input NAME)"
expect 0 infer measured photos --format csv
cp stdout wanted
expect 0 infer foreign@1 photos --format csv --input data "${flags[@]}"
holds "the input that was named gives other predictions" cmp -s wanted stdout
expect 2 infer foreign@1 photos --input dat
says "'dat' is not an input of foreign-0001.params: the variables without an array are data, truth"
expect 2 infer measured photos --input data
says "declares its own inputs"
cp zoo-symbol.json bare-symbol.json && cp zoo-0001.params bare-0001.params && strip bare
expect 2 infer measured photos --size 3,8,8
says "defines its own preprocessing"
expect 2 infer bare@1 photos
says "does not define the size of its input"
expect 2 infer zoo@1 photos --mean 0.5
says "--mean and --std need --size C,H,W"
expect 3 infer zoo@1 photos --size 3,8,8 --mean 0.5,0.5
says "mean has 2 numbers, but the images have 3 channels"

# --- evaluation at a size other than in training, if the net accepts it; the model then uses that size
pooled='net.layers=[{Convolution: {num_filter: 4, kernel: 3}}, {Pooling: {global_pool: true, kernel: 1, pool_type: avg}}, Flatten, {FullyConnected: {num_hidden: 2}}, {SoftmaxOutput: {name: softmax}}]'
larger='data.val.transforms=[{resize: [12, 12]}]'
expect 0 train photos.yaml "$pooled" "$larger" --out sizes
expect 0 infer sizes photos --probabilities large.npy
"$helper" crop photos small 0 0 8 0
expect 0 eval sizes small
expect 0 bench photos.yaml "$pooled" "$larger" --infer --seconds 0.05 --rounds 1
prints "computing would give one after the other)"
expect 3 train photos.yaml "$larger" --out refused
says "the data has shape [3, 12, 12] for input 'data', but the net declares [3, 8, 8]"

# --- annotated images: one for each, large enough to read
expect 0 infer model photos/light --annotate drawn
holds "not an image for each" test "$(find drawn -name '*.png' | wc -l)" -eq 8
expect 0 infer model drawn
holds "the letters have no room" test "$("$helper" size drawn/000.png)" = "130 130"
holds "nothing was drawn" sh -c '! cmp -s drawn/000.png photos/light/000.png'

python=$(command -v python3 || true)
if [ -n "$python" ]; then
  # Drawing takes no second decoded image: 6000x4000 pixels have 72 MB.
  { printf 'BM\066\242\112\004\0\0\0\0\066\0\0\0\050\0\0\0\160\027\0\0\240\017\0\0\001\0\030\0' && head -c 72000024 /dev/zero; } >sky.bmp
  cat >peak.py <<'PY'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000)
PY
  plain=$("$python" peak.py "$program" infer model sky.bmp)
  with=$("$python" peak.py "$program" infer model sky.bmp --annotate skies)
  holds "annotating takes $((with - plain)) MB more than $plain" test $((with - plain)) -lt 40
  holds "the large image was not drawn" test "$("$helper" size skies/sky.png)" = "6000 4000"
fi

# --- probabilities: a row for each, NaN for one that cannot be read
expect 0 infer model photos --probabilities plain.npy
holds "the shape" grep -qaF "'shape': (16, 2,)" plain.npy
expect 2 infer model photos --probabilities p.npy --output-layer flatten0 --output f.npy
says "--copy-to, --annotate, --images and --probabilities"

# --- the ending of a file is that of its content
expect 2 infer model photos --output o.npy
says "--output o.npy: predictions are text (.csv, .jsonl, or a table); --probabilities o.npy writes the scores of all classes"
expect 2 infer model photos --output-layer flatten0 --output o.csv
says "--output o.csv: --output-layer writes .npy, not .csv; give --output o.npy"
expect 2 infer model photos --output o.xlsx
says "--output o.xlsx: predictions are not written as .xlsx; name it .csv, which spreadsheets open"
holds "a refused file was written" test ! -e o.npy -a ! -e o.csv -a ! -e o.xlsx
expect 0 infer model photos --output o.log --format csv

# --- images that are not read are named for what they are
printf '\0\0\0\030ftypheic\0\0\0\0' >phone.jpg
printf 'GIF89a\1\0\1\0\0\0\0' >moving.gif
expect 4 infer model phone.jpg moving.gif
says "phone.jpg: a HEIC image, which is not supported; convert it to JPEG or PNG"
says "moving.gif: damaged or unsupported GIF: the file ends early"
expect 0 infer model photos --output-layer flatten0 --output o.npy
holds "features are no .npy" grep -qaF NUMPY o.npy

# --- views: the mean of the model's outputs for images that were cropped and mirrored beforehand
expect 0 infer model photos --tta crops --probabilities crops.npy --batch 3
expect 2 infer model photos --tta rotate
view() { # NAME FOLDER Y X SIDE MIRROR
  "$helper" crop "$2" "cut_$1" "$3" "$4" "$5" "$6"
  expect 0 infer model "cut_$1" --probabilities "view_$1.npy"
}
i=0
for place in "1 1" "0 0" "0 2" "2 0" "2 2"; do
  for mirror in 0 1; do
    # shellcheck disable=SC2086
    view $i photos $place 8 $mirror
    i=$((i + 1))
  done
done
expect 0 infer model cut_0 --tta flip --probabilities flip.npy --batch 3
if [ -n "$python" ]; then
  cat >means.py <<'PY'
import struct
def load(name):
    data = open(name, "rb").read()
    return struct.unpack("<32f", data[-128:])
def compare(what, views):
    views = [load(v) for v in views]
    mean = [sum(column) / len(views) for column in zip(*views)]
    worst = max(abs(a - b) for a, b in zip(load(what), mean))
    assert worst < 1e-5, (what, worst)
assert all(abs(a + b - 1) < 1e-5 for a, b in zip(load("plain.npy")[::2], load("plain.npy")[1::2]))
compare("flip.npy", ["view_0.npy", "view_1.npy"])
compare("crops.npy", ["view_%d.npy" % i for i in range(10)])
assert load("crops.npy") != load("plain.npy")
PY
  holds "the views are averaged otherwise" "$python" means.py

  # --- a parameter that is not finite: predictions are written, and not taken for good ones
  expect 0 export model whole.safetensors
  expect 0 export model broken@1
  cat >break.py <<'PY'
import json, struct
data = open("whole.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
tensors = {k: v for k, v in json.loads(data[8:8 + size]).items() if k != "__metadata__"}
begin, end = max((v["data_offsets"] for v in tensors.values()), key=lambda of: of[1] - of[0])
weights = data[8 + size + begin:8 + size + end]
params = open("broken-0001.params", "rb").read()
at = params.index(weights)
open("broken-0001.params", "wb").write(params[:at] + struct.pack("<f", float("nan")) + params[at + 4:])
PY
  holds "no parameter was broken" "$python" break.py
  expect 7 infer broken@1 photos --format csv
  says "contains nan, so predictions are meaningless"
  holds "the warning comes more than once" test "$(grep -c meaningless stderr)" -eq 1
  holds "not a line for each image" test "$(wc -l <stdout)" -eq 17
fi
finish
