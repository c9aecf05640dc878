#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Images in archives: init, check, train, eval and infer without unpacking; images, archives and lists on stdin.
. "$(dirname "$0")/common.sh"
"$helper" images set/train 8
"$helper" images set/val 4
tar cf set.tar set
tar czf set.tar.gz set
(cd set/val && tar cf ../../val.tar dark light)

# --- init: the parts of a data set in an archive, or one folder of classes
expect 0 init set.tar --output set.yaml
prints "set.yaml: 2 classes, 16 images to train on, 8 to validate"
holds "the recipe does not name the archive" grep -qF 'source: image_archive' set.yaml
holds "the recipe does not name the part" grep -qF 'folder: "set/val"' set.yaml
expect 9 check set.yaml
prints "16 training examples, 8 for validation"
prints "1 finding: 1 warning"
says "8 validation images are also training images, which makes validation results too good: $work/set.tar/set/val/dark/000.png is $work/set.tar/set/train/dark/000.png"
holds "something was unpacked" test ! -e train
rm set.yaml
expect 0 init set.tar.gz
holds "the name of the configuration" test -s set.yaml -a ! -e set.tar.yaml
expect 0 init val.tar
prints "(a fifth of each class, held out)"
echo "no archive" >broken.tar
expect 8 init broken.tar
says "no archive of images (.tar, .zip)"

# --- the same run as of the folder, bit for bit
write_photos set/train set/val 4
expect 0 train photos.yaml --out folder
sed 's/image_folder, path: set\/\([a-z]*\)/image_archive, path: set.tar, folder: set\/\1/' photos.yaml >archive.yaml
expect 0 train archive.yaml --out archive
holds "the run is another" "$helper" compare folder/checkpoints/last archive/checkpoints/last
sed 's/set.tar/set.tar.gz/' archive.yaml >packed.yaml
expect 0 train packed.yaml --out packed
says "set.tar.gz is compressed"
holds "the run of a compressed archive is another" "$helper" compare folder/checkpoints/last packed/checkpoints/last

# --- infer and eval
expect 0 infer folder set/val --format csv
sed 's,^set/,,' stdout >wanted
expect 0 infer folder val.tar --format csv
sed 's,^val.tar/,val/,' stdout >of_archive
holds "the predictions are others" cmp -s wanted of_archive
expect 0 eval folder val.tar
prints "8 examples"
# Of images that a run was trained on it says so, whether it was trained on a folder or an archive, and is evaluated on either.
{ command -v zip >/dev/null && (cd set/val && zip -qr ../../val.zip dark light); } || cp val.tar val.zip
for data in set/val val.tar; do
  sed "s,path: set/train,path: $data,; s,val: {.*,val: {split: 0.5}," photos.yaml >half.yaml
  [ -d $data ] || sed -i 's/image_folder/image_archive/' half.yaml
  expect 0 train half.yaml --out half --overwrite
  holds "$data: $(cat half/trained_on.txt)" test "$(wc -l <half/trained_on.txt)" -eq 4
  for again in set/val val.tar val.zip; do
    expect 0 eval half $again
    says "warning: the run was trained on 4 of these 8 examples, so the metrics are too good"
  done
done
expect 4 eval folder set.tar
says "name the one to read: folder: set/train"
expect 2 infer folder val.tar --copy-to sorted
says "--copy-to and --annotate are for images that are files; those of val.tar are not"
expect 2 infer folder val.tar set.tar
says "val.tar is an archive; give it alone"

# --- stdin: what it is, its first bytes say
feed() { # CODE FILE ARGUMENT...
  local wanted=$1 file=$2
  shift 2
  checks=$((checks + 1))
  last="mxtrain $* <$file"
  cat "$file" | "$program" "$@" >stdout 2>stderr
  local code=$?
  [ $code -eq "$wanted" ] || fail "$last: exit code $code, expected $wanted"
}
"$helper" jpeg photo.jpg 20
for image in photo.jpg set/val/dark/000.png; do
  expect 0 infer folder "$image" --format csv
  sed "s,^$image,/dev/stdin," stdout >wanted
  feed 0 "$image" infer folder - --format csv
  holds "$image on stdin is predicted otherwise" cmp -s wanted stdout
done
expect 0 infer folder val.tar --format csv
sed 's,^val.tar/,stdin/,' stdout >wanted
feed 0 val.tar infer folder - --format csv
holds "an archive on stdin is predicted otherwise" cmp -s wanted stdout
tar czf val.tar.gz -C set val
feed 0 val.tar.gz infer folder - --format csv
holds "a compressed archive on stdin lacks images" test "$(wc -l <stdout)" -eq 9
ls set/val/dark/*.png >list
feed 0 list infer folder - --format csv
holds "a list on stdin" test "$(wc -l <stdout)" -eq 5
find set/val/dark -name '*.png' -print0 >zeros
feed 0 zeros infer folder - --format csv
holds "paths that end in zeros" test "$(wc -l <stdout)" -eq 5
head -c 300 photo.jpg >cut.jpg
printf '\001\002\003\004 no image' >noise
feed 4 noise infer folder -
says "stdin is no list of paths, no archive (tar, zip), and no image that can be read"
: >empty
feed 0 empty infer folder -
says "no images found: nothing to predict"
finish
