# SPDX-License-Identifier: Apache-2.0
"""PyTorch's counterparts of the cases of op_bench, and their times. Used by op_bench.py."""
import ast
import functools
import math
import statistics
import time

import torch
import torch.nn.functional as F

SAMPLE_NS, TOTAL_NS, SAMPLES = 20_000, 20_000_000, 5  # as in op_bench.cc

# Case -> function of its tensors: the arguments, then the auxiliary states. Integer arguments are int64, conditions bool. Results are contiguous.
PLAIN = {
    "_copy": torch.clone,
    "Activation/relu": torch.relu,
    "Activation/sigmoid": torch.sigmoid,
    "Activation/tanh": torch.tanh,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "square": torch.square,
    "abs": torch.abs,
    "erf": torch.erf,
    "gelu": F.gelu,
    "silu": F.silu,
    "mish": F.mish,
    "hard_swish": F.hardswish,
    "smooth_l1": lambda x: F.smooth_l1_loss(x, x.new_zeros(()).expand_as(x), reduction="none"),
    "clip": lambda x: torch.clamp(x, -0.5, 0.5),
    "elemwise_add": torch.add,
    "elemwise_mul": torch.mul,
    "elemwise_div": torch.div,
    "_power": torch.pow,
    "ElementWiseSum": lambda x, y, z: x + y + z,
    "where": torch.where,
    "Cast/float16": lambda x: x.half(),
    "Dropout": lambda x: F.dropout(x, 0.5, training=True),
    "norm": torch.linalg.vector_norm,
    "argmax/last": lambda x: torch.argmax(x, 1),
    "argmax/axis1": lambda x: torch.argmax(x, 1),
    "softmax/last": lambda x: F.softmax(x, 1),
    "softmax/axis1": lambda x: F.softmax(x, 1),
    "log_softmax/last": lambda x: F.log_softmax(x, 1),
    "log_softmax/axis1": lambda x: F.log_softmax(x, 1),
    "SoftmaxOutput": lambda x, label: F.softmax(x, 1),
    "LayerNorm": lambda x, gamma, beta: F.layer_norm(x, gamma.shape, gamma, beta),
    "RMSNorm": lambda x, gamma: F.rms_norm(x, gamma.shape, gamma, 1e-6),
    "GroupNorm": lambda x, gamma, beta: F.group_norm(x, 8, gamma, beta),
    "InstanceNorm": lambda x, gamma, beta: F.instance_norm(x, weight=gamma, bias=beta, eps=1e-3),
    "L2Normalization/channel": lambda x: F.normalize(x, dim=1),
    "BatchNorm": lambda x, gamma, beta, mean, var: F.batch_norm(x, mean, var, gamma, beta, training=True, eps=1e-3),
    "LRN": lambda x: F.local_response_norm(x, 5, alpha=1e-4, beta=0.75, k=2),
    "transpose/2d": lambda x: x.t().contiguous(),
    "transpose/nhwc": lambda x: x.permute(0, 2, 3, 1).contiguous(),
    "transpose/0213": lambda x: x.transpose(1, 2).contiguous(),
    "SwapAxis": lambda x: x.transpose(1, 2).contiguous(),
    "slice/crop": lambda x: x[:, :, 2:, 2:].contiguous(),
    "slice/step2": lambda x: x[:, :, ::2, ::2].contiguous(),
    "Concat": lambda x, y: torch.cat((x, y), 1),
    "stack": lambda x, y: torch.stack((x, y), 1),
    "tile": lambda x: x.repeat(2, 2),
    "repeat": lambda x: x.repeat_interleave(2, 1),
    "Pad/constant": lambda x: F.pad(x, (1, 1, 1, 1)),
    "Pad/reflect": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "reverse": lambda x: torch.flip(x, (1,)),
    "depth_to_space": lambda x: F.pixel_shuffle(x, 2),  # takes channels in another order: as many moves
    "Embedding": F.embedding,
    "take": lambda x, index: torch.index_select(x, 0, index),
    "pick": lambda x, index: torch.gather(x, 1, index[:, None])[:, 0],
    "gather_nd": lambda x, index: x[index[0], index[1]],
    "topk": lambda x: torch.topk(x, 5),
    "sort": torch.sort,
    "argsort": torch.argsort,
    "Pooling/max": lambda x: F.max_pool2d(x, 3, stride=2, padding=1),
    "Pooling/avg": lambda x: F.avg_pool2d(x, 2),
    "Pooling/global": lambda x: F.adaptive_avg_pool2d(x, 1),
    "UpSampling/nearest": lambda x: F.interpolate(x, scale_factor=2, mode="nearest"),
    "AdaptiveAvgPooling2D": lambda x: F.adaptive_avg_pool2d(x, 7),
    "FullyConnected": F.linear,
    "dot": torch.mm,
    "batch_dot/nn": torch.bmm,
    "batch_dot/nt": lambda a, b: torch.bmm(a, b.mT),
    "batch_dot/tn": lambda a, b: torch.bmm(a.mT, b),
    "batch_dot/tt": lambda a, b: torch.bmm(a.mT, b.mT),
    "scaled_dot_product_attention": F.scaled_dot_product_attention,
    "scaled_dot_product_attention/causal": functools.partial(F.scaled_dot_product_attention, is_causal=True),
    "Convolution/3x3": lambda x, weight, bias: F.conv2d(x, weight, bias, padding=1),
    "Convolution/1x1": F.conv2d,
    "Convolution/depthwise": lambda x, weight, bias: F.conv2d(x, weight, bias, padding=1, groups=len(weight)),
}
for _name, _reduce in (("sum", torch.sum), ("mean", torch.mean), ("max", torch.amax)):
    PLAIN[f"{_name}/all"] = _reduce
    for _axes, _dim in (("last", 1), ("first", 0), ("channel", (0, 2, 3))):
        PLAIN[f"{_name}/{_axes}"] = functools.partial(_reduce, dim=_dim)
for _variant in ("channel", "plane", "last"):
    PLAIN[f"broadcast_add/{_variant}"] = torch.add
    PLAIN[f"broadcast_mul/{_variant}"] = torch.mul


def _resize(p, x):
    return F.interpolate(x, size=(p["height"], p["width"]), mode="bilinear", align_corners=True)


def _recurrent(function, gates, p, x, parameters, *states):
    """By PyTorch's own function, of weights that are views of one array: its gradient costs PyTorch one copy."""
    units, inputs, layers = p["state_size"], x.shape[2], p["num_layers"]
    shapes = [shape for layer in range(layers) for shape in ((gates * units, inputs if layer == 0 else units), (gates * units, units))]
    shapes += [(gates * units,)] * (2 * layers)
    flat = [part.view(shape) for part, shape in zip(parameters.split([math.prod(shape) for shape in shapes]), shapes)]
    # Weights and biases of a layer follow each other there.
    weights = [flat[i] for layer in range(layers) for i in (2 * layer, 2 * layer + 1, 2 * layers + 2 * layer, 2 * layers + 2 * layer + 1)]
    hidden = states if len(states) > 1 else states[0]
    return function(x, hidden, weights, True, layers, 0.0, True, False, False)[0]


# The same for functions of the case's parameters and tensors.
WITH_PARAMETERS = {
    "broadcast_to/channel": lambda p, x: x.expand(p["shape"]).contiguous(),
    "one_hot": lambda p, index: torch.zeros(len(index), p["depth"]).scatter_(1, index[:, None], 1.0),
    "BilinearResize2D/up": _resize,
    "BilinearResize2D/down": _resize,
    "RNN/lstm": functools.partial(_recurrent, torch.lstm, 4),
    "RNN/gru": functools.partial(_recurrent, torch.gru, 3),
}

# Losses whose backward pass is that of an output operator, which computes no loss.
LOSSES = {"SoftmaxOutput": lambda x, label: F.cross_entropy(x, label, reduction="sum")}

# Optimizers of one weight.
OPTIMIZERS = {
    "sgd_mom_update": lambda weight: torch.optim.SGD([weight], 1e-3, momentum=0.9, weight_decay=1e-3, fused=True),
    "adam_update": lambda weight: torch.optim.Adam([weight], 1e-3, weight_decay=1e-3, fused=True),
}


def _tensors(case):
    tensors = []
    for shape, values in zip(case["shapes"], case["values"]):
        if not values["integers"]:
            tensors.append(torch.empty(shape).uniform_(values["low"], values["high"]))
        elif values["high"] == 2:
            tensors.append(torch.randint(2, shape, dtype=torch.bool))
        else:
            tensors.append(torch.randint(int(values["high"]), shape))
    return tensors + [torch.rand(shape) for shape in case["auxiliaries"]]


def _parameters(case):
    """Numbers and tuples by key; words are skipped."""
    found = {}
    for key, text in case["kwargs"].items():
        try:
            found[key] = ast.literal_eval(text)
        except ValueError:
            pass
    return found


def _function(case, functions):
    name = case["case"]
    if name in WITH_PARAMETERS:
        return functools.partial(WITH_PARAMETERS[name], _parameters(case))
    return functions.get(name)


def _forward_run(case):
    """A call of the case's counterpart; None: there is none."""
    tensors = _tensors(case)
    if case["case"] in OPTIMIZERS:
        weight = tensors[0].requires_grad_()
        weight.grad = tensors[1]
        return OPTIMIZERS[case["case"]](weight).step
    function = _function(case, PLAIN)
    return function and functools.partial(function, *tensors)


def _backward_run(case):
    """A call of the backward pass alone, which makes the gradients that ours makes, contiguous. None: there is none."""
    function = _function(case, PLAIN | LOSSES)
    if function is None:
        return None
    tensors = _tensors(case)
    leaves = [tensor.requires_grad_() for tensor, wanted in zip(tensors, case["gradients"]) if wanted]
    outputs = function(*tensors)
    outputs = [output for output in (outputs if isinstance(outputs, tuple) else (outputs,)) if output.requires_grad]
    if not leaves or not outputs:
        return None
    heads = [torch.rand_like(output) for output in outputs]

    def run():
        # A gradient may be a view (expanded, transposed) that its reader would have to copy.
        return [gradient.contiguous() for gradient in torch.autograd.grad(outputs, leaves, heads, retain_graph=True)]

    return run


def _measure(run):
    """Best and median time of a call in nanoseconds, from samples like those of op_bench."""
    def sample(calls):
        begin = time.perf_counter_ns()
        for _ in range(calls):
            run()
        return time.perf_counter_ns() - begin

    sample(1)
    calls = max(SAMPLE_NS // max(sample(1), 1), 1)
    times, total = [], 0
    while len(times) < SAMPLES or total < TOTAL_NS:
        ns = sample(calls)
        times.append(ns / calls)
        total += ns
    return min(times), statistics.median(times)


def times(case, which):
    """Best and median time of the pass `which` of a case that op_bench lists; None without a counterpart."""
    if which == "backward":
        run = _backward_run(case)
        return run and _measure(run)
    run = _forward_run(case)
    with torch.no_grad():
        return run and _measure(run)
