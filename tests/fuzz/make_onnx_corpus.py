#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes corpus/onnx: small models of every family of operators, as other programs write them. Needs: pip install onnx numpy"""
import os

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "onnx")


def array(name, values, dtype=numpy.float32):
    return numpy_helper.from_array(numpy.array(values, dtype=dtype), name)


def save(name, nodes, arrays=(), shape=("N", 2, 4, 4), opset=17):
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], list(arrays))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    with open(os.path.join(FOLDER, name + ".onnx"), "wb") as out:
        out.write(model.SerializeToString())


def main():
    os.makedirs(FOLDER, exist_ok=True)
    node = helper.make_node
    ones = numpy.ones(2)
    save("conv", [node("Conv", ["x", "w", "b"], ["a"], pads=[1, 0, 1, 1], strides=[2, 1]),
                  node("BatchNormalization", ["a", "s", "s", "s", "s"], ["c"]), node("Relu", ["c"], ["d"]),
                  node("GlobalAveragePool", ["d"], ["e"]), node("Flatten", ["e"], ["f"]),
                  node("Gemm", ["f", "g"], ["h"], transB=1), node("Softmax", ["h"], ["y"])],
         [array("w", numpy.ones((2, 2, 3, 3))), array("b", ones), array("s", ones), array("g", numpy.ones((3, 2)))])
    save("shape", [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"], axis=0),
                   node("Unsqueeze", ["n", "axes"], ["u"]), node("Concat", ["u", "rest"], ["t"], axis=0),
                   node("Reshape", ["x", "t"], ["r"]), node("MatMul", ["r", "w"], ["m"]), node("Add", ["m", "b"], ["y"])],
         [array("zero", 0, numpy.int64), array("axes", [0], numpy.int64), array("rest", [-1], numpy.int64),
          array("w", numpy.ones((32, 2))), array("b", ones)])
    save("old", [node("Upsample", ["x", "s"], ["a"], mode="nearest"), node("Clip", ["a"], ["b"], min=0.0, max=6.0),
                 node("Dropout", ["b"], ["c"], ratio=0.5), node("ReduceMean", ["c"], ["y"], axes=[2, 3], keepdims=0)],
         [array("s", [1, 1, 2, 2])], opset=9)
    save("slices", [node("Split", ["x"], ["a", "b"], axis=1), node("Slice", ["a", "i", "j", "k"], ["c"]),
                    node("Transpose", ["c"], ["d"], perm=[0, 2, 1, 3]), node("Pad", ["d", "p"], ["e"]),
                    node("Tile", ["e", "t"], ["f"]), node("Squeeze", ["f", "k2"], ["g"]), node("Expand", ["g", "t2"], ["y"])],
         [array("i", [1], numpy.int64), array("j", [9223372036854775807], numpy.int64), array("k", [2], numpy.int64),
          array("p", [0, 0, 0, 1, 0, 0, 0, 1], numpy.int64), array("t", [1, 1, 1, 2], numpy.int64),
          array("k2", [2], numpy.int64), array("t2", [1, 1, 1], numpy.int64)])
    save("norms", [node("LayerNormalization", ["x", "s", "s"], ["a"]), node("InstanceNormalization", ["a", "t", "t"], ["b"]),
                   node("LRN", ["b"], ["c"], size=1), node("Mul", ["c", "c"], ["d"]), node("Div", ["d", "two"], ["e"]),
                   node("Pow", ["e", "two"], ["f"]), node("PRelu", ["f", "q"], ["g"]), node("MaxPool", ["g"], ["h"], kernel_shape=[2, 2], ceil_mode=1),
                   node("Resize", ["h", "", "r"], ["y"], mode="linear")],
         [array("s", numpy.ones(4)), array("t", ones), array("two", 2), array("q", numpy.ones((2, 1, 1))), array("r", [1, 1, 2, 2])])
    most, least = 2 ** 63 - 1, -2 ** 63
    save("parts", [node("Split", ["x", "p"], ["a", "b", "y"], axis=1)], [array("p", [most, most, 4], numpy.int64)])
    save("step", [node("Slice", ["d", "o", "o", "o", "s"], ["a"]), node("Reshape", ["x", "a"], ["y"])],
         [array("d", [1, 2, 3], numpy.int64), array("o", [0], numpy.int64), array("s", [least], numpy.int64)])
    save("empty", [node("Resize", ["x", "", "", "r"], ["y"], mode="nearest")], [array("r", [1, 3, 2, 4], numpy.int64)], shape=(1, 3, 0, 4))
    save("second", [node("MaxPool", ["x"], ["a", "b"], kernel_shape=[2, 2]), node("Cast", ["b"], ["y"], to=TensorProto.FLOAT)])
    save("third", [node("Shape", ["x"], ["", "a"]), node("Reshape", ["x", "a"], ["y"])])
    save("strides", [node("ConvTranspose", ["x", "w"], ["y"], strides=[2 ** 62, 2 ** 62], group=2)], [array("w", numpy.ones((2, 1, 4, 4)))])
    save("numbers", [node("Neg", ["m"], ["a"]), node("Abs", ["a"], ["b"]), node("Range", ["o", "b", "b"], ["c"]),
                     node("Slice", ["x", "c", "b", "c"], ["y"])], [array("m", [most], numpy.int64), array("o", [0], numpy.int64)])
    save("indices", [node("Gather", ["x", "i"], ["a"], axis=1), node("GatherND", ["w", "p"], ["b"]), node("ScatterND", ["w", "p", "u"], ["c"]),
                     node("Mul", ["a", "c"], ["d"]), node("TopK", ["d", "k"], ["e", "f"]), node("Div", ["f", "two"], ["g"]),
                     node("Mod", ["g", "two"], ["h"]), node("OneHot", ["h", "depth", "values"], ["m"]), node("CumSum", ["m", "axis"], ["y"])],
         [array("i", [-1, 0], numpy.int64), array("w", numpy.ones((4, 4))), array("p", [[0, -1], [1, 2]], numpy.int64), array("u", [5, 6]),
          array("k", [2], numpy.int64), array("two", 2, numpy.int64), array("depth", [3], numpy.int64), array("values", [0, 1]), array("axis", 1, numpy.int64)])
    save("products", [node("Einsum", ["x", "x"], ["a"], equation="bcij,bcik->bcjk"), node("Einsum", ["a", "w"], ["b"], equation="b c i j, j k -> b k c i"),
                      node("ConvTranspose", ["b", "t"], ["c"], strides=[2, 2], output_padding=[1, 0]), node("Greater", ["c", "half"], ["d"]),
                      node("Where", ["d", "c", "half"], ["y"])],
         [array("w", numpy.ones((4, 2))), array("t", numpy.ones((2, 3, 2, 3))), array("half", 0.5)])
    save("regions", [node("RoiAlign", ["x", "r", "n"], ["a"], output_height=2, output_width=3), node("MaxRoiPool", ["a", "q"], ["b"], pooled_shape=[2, 2]),
                     node("GridSample", ["b", "g"], ["y"], align_corners=1)],
         [array("r", [[0, 0, 3, 3]]), array("n", [0], numpy.int64), array("q", [[0, 0, 0, 2, 1]]), array("g", numpy.zeros((1, 2, 2, 2)))])
    # Arrays of no elements with axes of any length.
    save("lengths", [node("Concat", ["l", "l"], ["a"], axis=1), node("Transpose", ["a"], ["b"]), node("Flatten", ["x"], ["c"]),
                     node("Gemm", ["c", "l"], ["d"]), node("MatMul", ["d", "b"], ["y"])], [array("l", numpy.zeros((2 ** 43, 0)))])
    save("remainders", [node("Mod", ["a", "b"], ["c"], fmod=1), node("Pow", ["b", "c"], ["d"]), node("Slice", ["x", "d", "c", "b"], ["y"])],
         [array("a", [-7], numpy.int64), array("b", [3], numpy.int64)])
    save("same", [node("Conv", ["x", "w"], ["a"], strides=[3, 1], auto_pad="SAME_UPPER"), node("MaxPool", ["a"], ["b"], kernel_shape=[2, 2], auto_pad="SAME_LOWER"),
                  node("Resize", ["b", "", "s"], ["y"], mode="linear", coordinate_transformation_mode="pytorch_half_pixel")],
         [array("w", numpy.ones((2, 2, 1, 1))), array("s", [1, 1, 2, 0.25])])
    save("cycle", [node("Relu", ["z"], ["a"]), node("Relu", ["a"], ["z"]), node("Add", ["x", "z"], ["y"])])


if __name__ == "__main__":
    main()
