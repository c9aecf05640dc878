#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# train.monitor: the values of its table, beside those of awk; its steps; that a run is the same with it; resumed runs, workers, and errors.
. "$(dirname "$0")/common.sh"
write_points

# --- one batch of all points, all weights 0.5: what the net computes in the first step follows from the table
cat >plain.yaml <<'END'
include: points.yaml
name: plain
net:
  layers:
    - FullyConnected: {name: fc, num_hidden: 2}
    - SoftmaxOutput: {name: softmax}
data: {batch_size: 16, train: {shuffle: false}}
train: {epochs: 1, optimizer: {name: sgd, lr: 0.1, momentum: 0, weight_decay: 0}, initializer: {constant: {value: 0.5}}}
END
all='[rms, norm, mean, std, min, max, abs_mean, abs_max, zeros, nonfinite]'
expect 0 train plain.yaml --out values "train.monitor={pattern: '*', every: 1, statistics: $all}"
holds "the header is $(head -1 values/monitor.csv)" test "$(head -1 values/monitor.csv)" = step,name,rms,norm,mean,std,min,max,abs_mean,abs_max,zeros,nonfinite
# Both outputs are half of the sum of a row, so both probabilities are 0.5. The gradient of a weight is the sum of inputs times (probability - 1 where the class is),
# the second class's the negative of the first's; the step takes a sixteenth of the tenth of it.
awk -F, '
  function show(name, v, n,   i, s, q, a, lo, hi, z, d, m) {
    lo = 1e30; hi = -1e30
    for (i = 0; i < n; i++) { s += v[i]; q += v[i]^2; a += v[i] < 0 ? -v[i] : v[i]; if (v[i] < lo) lo = v[i]; if (v[i] > hi) hi = v[i]; z += v[i] == 0 }
    m = s / n; for (i = 0; i < n; i++) d += (v[i] - m)^2
    print name, sqrt(q / n), sqrt(q), m, sqrt(d / n), lo, hi, a / n, (hi > -lo ? hi : -lo), z / n, 0
  }
  NR > 1 {
    o[2 * r] = o[2 * r + 1] = ($1 + $2 + $3) / 2; r++
    for (i = 0; i < 3; i++) { x = $(i + 1); g[i] += ($4 == 0 ? -0.5 : 0.5) * x; g[i + 3] += ($4 == 0 ? 0.5 : -0.5) * x }
    b[0] += $4 == 0 ? -0.5 : 0.5; b[1] += $4 == 0 ? 0.5 : -0.5
  }
  END {
    show("fc_output", o, 32)
    for (i = 0; i < 32; i++) p[i] = 0.5; show("softmax_output", p, 32)
    show("fc_backward_weight", g, 6); show("fc_backward_bias", b, 2)
    for (i = 0; i < 6; i++) w[i] = 0.5 - 0.1 * g[i] / 16; show("fc_weight", w, 6)
  }' points.csv >wanted
holds "awk has computed nothing" test "$(wc -l <wanted)" = 5
# Each wanted row is in the table of step 1, within the rounding of float32.
holds "the values differ from the table: $(cat wanted) | $(cat values/monitor.csv)" awk '
  NR == FNR { n = split($0, cell, " "); for (i = 2; i <= n; i++) want[cell[1], i] = cell[i]; names[cell[1]] = 1; next }
  { split($0, cell, ","); if (cell[1] == 1 && cell[2] in names) { seen++
      for (i = 2; i <= 11; i++) { d = cell[i + 1] - want[cell[2], i]; if (d < 0) d = -d; if (d > 1e-5) bad = bad " " cell[2] ":" i } } }
  END { if (bad != "" || seen != 5) { print "wrong:" bad, seen > "/dev/stderr"; exit 1 } }' wanted values/monitor.csv
holds "no bias after the step" grep -q '^1,fc_bias,' values/monitor.csv

# --- 4 steps an epoch; rows of steps 1, 4, 7, ...; the run is that without a monitor
expect 0 train points.yaml --out run train.epochs=3 "train.monitor={pattern: '*', every: 3, statistics: [rms, max]}"
steps=$(sed 1d run/monitor.csv | cut -d, -f1 | sort -nu | xargs)
holds "the steps are $steps" test "$steps" = "1 4 7 10"
holds "an array has two rows in one step" test -z "$(cut -d, -f1,2 run/monitor.csv | sort | uniq -d)"
holds "no curves" test -s run/plots/monitor.svg -a -s run/plots/monitor.png
holds "the report has no curves of the monitor" grep -q fullyconnected0_output run/report.html
expect 0 train points.yaml --out without train.epochs=3
holds "the monitor changes the run" "$helper" compare run/checkpoints/last without/checkpoints/last
holds "the monitor changes the losses" diff <(cut -d, -f1-3,6- run/metrics.csv) <(cut -d, -f1-3,6- without/metrics.csv)
holds "a table without train.monitor" test ! -e without/monitor.csv -a ! -e without/plots/monitor.svg

# --- a resumed run goes on: rows after the checkpoint and an unfinished line are those of a killed process
expect 0 train points.yaml --out resumed train.epochs=1 "train.monitor={pattern: '*', every: 3, statistics: [rms, max]}"
printf '7,fullyconnected0_output,1,1\n10,fullyco' >>resumed/monitor.csv
expect 0 train resumed --resume train.epochs=3
holds "the table of a resumed run is another" diff run/monitor.csv resumed/monitor.csv

# --- batches that are summed, workers, layers that learn later
expect 0 train points.yaml --out summed train.epochs=4 train.grad_accum=2 'train.monitor={pattern: "*_output", every: 3}'
steps=$(sed 1d summed/monitor.csv | cut -d, -f1 | sort -n | xargs)
holds "with summed batches the steps are $steps" test "$steps" = "1 1 4 4 7 7"
expect 0 train points.yaml --out two train.epochs=1 train.kvstore.workers=2 'train.monitor={pattern: "fullyconnected0_*", every: 2}'
holds "of two workers an array has two rows, or none" test -n "$(sed 1d two/monitor.csv)" -a -z "$(cut -d, -f1,2 two/monitor.csv | sort | uniq -d)"
write_deep
expect 0 train deep.yaml --out later train.epochs=3 'train.freeze={layers: [first_*], epochs: 1}' 'train.monitor={pattern: first_backward_weight, every: 1}'
says "'first_backward_weight' matches no output"
steps=$(sed 1d later/monitor.csv | cut -d, -f1 | xargs)
holds "of a layer that learns from step 5 on the steps are $steps" test "$steps" = "5 6 7 8 9 10 11 12"

# --- a run that diverges leaves the rows of its last steps
expect 7 train deep.yaml --out lost train.optimizer.lr=1e30 'train.monitor={pattern: "*_output", every: 1, statistics: [max, nonfinite]}'
holds "no row of a run that diverged" test "$(sed 1d lost/monitor.csv | wc -l)" -gt 0

# --- a pattern alone; what fits nothing; words and numbers that are none
expect 0 train points.yaml --out short train.epochs=1 'train.monitor="*_output"'
holds "the default statistic is not rms" test "$(head -1 short/monitor.csv)" = step,name,rms
expect 3 train points.yaml --out none 'train.monitor=fullyconected0_output'
says "did you mean 'fullyconnected0_output'?"
holds "a refused run has left a folder" test ! -e none
expect 3 train points.yaml --dry-run 'train.monitor={pattern: "*", statistics: [rmse]}'
says "did you mean 'rms'?"
expect 3 train points.yaml --dry-run 'train.monitor={pattern: "*", statistics: []}'
says "train.monitor.statistics is empty"
expect 3 train points.yaml --dry-run 'train.monitor={pattern: "*", every: 0}'
says "train.monitor.every"
expect 3 train points.yaml --dry-run 'train.monitor={patern: "*"}'
says "did you mean 'train.monitor.pattern'?"
expect 0 help train.monitor
prints "train.monitor.statistics"
finish
