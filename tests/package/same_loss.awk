# SPDX-License-Identifier: Apache-2.0
# awk -f same_loss.awk A/metrics.csv B/metrics.csv: whether train_loss is the same in every epoch, to one in a thousand, and falls.
BEGIN { FS = "," }
FNR == 1 {
  column = 0
  for (i = 1; i <= NF; ++i) if ($i == "train_loss") column = i
  if (!column) failed = 1
  next
}
NR == FNR { expected[FNR] = $column; last = FNR; next }
{
  rows = FNR
  difference = $column - expected[FNR]
  if (difference < 0) difference = -difference
  if (!(difference <= 0.001 * expected[FNR])) {
    printf "row %d: %s and %s\n", FNR, expected[FNR], $column
    failed = 1
  }
}
END { exit failed || rows != last || last < 3 || !(expected[last] < expected[2]) }
