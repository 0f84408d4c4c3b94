"""The rules of an op family: its library, the loops of each instruction set, one test and one bench for each op."""

load("//kernels:copts.bzl", "KERNEL_COPTS", "SIMD_COPTS")

_X86_ONLY = ["avx2", "avx512"]

_SIMD_DEPS = [
    "//core/abi",
    "//kernels/math",
    "//kernels/simd:isa",
    "//kernels/simd:vec",
]

def mk_simd_library(name, srcs, hdrs, deps = [], testonly = 0, visibility = None):
    """Compiles `srcs` once for each instruction set, with MK_SIMD_ISA set to its namespace.

    The sources include nothing but kernels/simd, plain parameter structs and headers with declarations
    (//kernels/simd:symbols_test looks at what comes out): an inline function compiled for AVX-512 here and for the
    base elsewhere would be one function to the linker.

    Args:
      name: of the library that ops depend on; `<name>_<set>` are its parts.
      srcs: sources, everything in them in namespace mk::simd::MK_SIMD_ISA or a template over a vector type.
      hdrs: their headers.
      deps: beside the vectors.
      testonly: as everywhere.
      visibility: as everywhere.
    """
    for isa in ["base"] + _X86_ONLY:
        native.cc_library(
            name = name + "_" + isa,
            srcs = select({
                "@platforms//cpu:x86_64": srcs,
                "//conditions:default": [] if isa in _X86_ONLY else srcs,
            }),
            hdrs = hdrs,
            copts = KERNEL_COPTS + select({
                "@platforms//cpu:x86_64": SIMD_COPTS[isa],
                "//conditions:default": SIMD_COPTS["base"],
            }),
            linkstatic = True,
            testonly = testonly,
            visibility = ["//kernels/simd:__pkg__"],
            deps = _SIMD_DEPS + deps,
        )
    native.cc_library(
        name = name,
        hdrs = hdrs,
        testonly = testonly,
        visibility = visibility,
        deps = _SIMD_DEPS + deps + [":{}_{}".format(name, isa) for isa in ["base"] + _X86_ONLY],
    )

def mk_ops(name, ops, simd = [], deps = []):
    """A family of ops.

    For each op: <op>.h, <op>_params.h, <op>.cc; <op>_shapes.h, <op>_test.cc, <op>_bench.cc. One library has all of the
    code.

    Args:
      name: of the library, by convention that of the folder.
      ops: base names of the op's files.
      simd: of those, the ones with <op>_simd.h and <op>_simd.cc, compiled for each instruction set.
      deps: of the library, beside what every op needs.
    """
    if simd:
        mk_simd_library(
            name = name + "_simd",
            srcs = [op + "_simd.cc" for op in simd],
            hdrs = [op + "_simd.h" for op in simd] + [op + "_params.h" for op in ops],
            visibility = ["//kernels:__subpackages__"],
        )
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
            "//kernels/math",
            "//kernels/simd:isa",
        ] + deps + ([":" + name + "_simd"] if simd else []),
    )
    native.cc_library(
        name = "shapes",
        testonly = 1,
        hdrs = [op + "_shapes.h" for op in ops],
    )
    for op in ops:
        native.cc_test(
            name = op + "_test",
            size = "small",
            srcs = [op + "_test.cc"],
            data = ["//packs/vmamba:op_goldens"],
            deps = [
                ":" + name,
                ":shapes",
                "//kernels/simd:isas",
                "//kernels/testing",
                "@system//:gtest_main",
            ],
        )
        native.cc_binary(
            name = op + "_bench",
            testonly = 1,
            srcs = [op + "_bench.cc"],
            deps = [
                ":" + name,
                ":shapes",
                "//kernels/simd:isas",
                "//kernels/testing",
                "@system//:benchmark",
            ],
        )
