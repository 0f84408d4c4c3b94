"""Ops with fp16 device code: their library, device files and tests."""

load("//kernels:copts.bzl", "KERNEL_COPTS")
load("//kernels:cuda.bzl", "cuda_kernels")

def mk_f16_ops(name, ops, device_hdrs = [], dynamic_shared = {}, deps = [], test_deps = {}, test_sizes = {}):
    """A family's fp16 ops.

    For each op: <op>.h, <op>_params.h, <op>.cc, <op>.cu; <op>_shapes.h, <op>_test.cc. One library has the host's code
    of all; each device file is a module of its own (`<op>_kernels_emulated`, `<op>_kernels_images`), which packs hand to
    the op's Load.

    Args:
      name: of the library, by convention that of the folder and `_f16`.
      ops: from the base name of an op's files to the names of its device functions.
      device_hdrs: what their params headers include, beside kernels/device and kernels/math.
      dynamic_shared: as of cuda_kernels, of all of them.
      deps: of the library, beside what every op needs.
      test_sizes: from the base name of an op's files to the size of its test, where that is not small.
      test_deps: from the base name of an op's files to what its test needs beside that.
    """
    native.cc_library(
        name = name,
        srcs = [op + ".cc" for op in ops],
        hdrs = [op + ".h" for op in ops] + [op + "_params.h" for op in ops],
        copts = KERNEL_COPTS,
        linkstatic = True,  # its symbols are hidden, so a test cannot take it as a shared library
        visibility = [
            "//kernels:__subpackages__",
            "//packs:__subpackages__",
        ],
        deps = [
            "//core/abi",
            "//core/sdk",
            "//kernels:op",
            "//kernels/device",
            "//kernels/device:image",
            "//kernels/math",
        ] + deps,
    )
    for op, kernels in ops.items():
        cuda_kernels(
            name = op + "_kernels",
            src = op + ".cu",
            dynamic_shared = dynamic_shared,
            hdrs = [
                op + "_params.h",
                "//kernels/math:device_headers",
            ] + device_hdrs,
            kernels = kernels,
            visibility = [
                "//kernels:__subpackages__",
                "//packs:__subpackages__",
            ],
        )
        native.cc_test(
            name = op + "_test",
            size = test_sizes.get(op, "small"),
            srcs = [
                op + "_shapes.h",
                op + "_test.cc",
            ],
            deps = [
                ":" + name,
                ":" + op + "_kernels_emulated",
                ":" + op + "_kernels_images",
                "//kernels/testing",
                "//kernels/testing:op_context",
                "@system//:gtest_main",
            ] + test_deps.get(op, []),
        )
