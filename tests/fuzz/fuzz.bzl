"""Fuzz targets: one source, two programs."""

def mk_fuzz(name, src, deps, data = [], size = "small"):
    """Builds `src` (tests/fuzz/fuzz.h says what is in it) twice.

    `<name>_replay` is a test of the default run: the seeds and their neighbours.
    `<name>_libfuzzer` is built by tests/fuzz/run.sh with clang, which searches by coverage.
    """
    native.cc_library(
        name = name,
        testonly = True,
        srcs = [src],
        deps = deps + ["//tests/fuzz"],
        alwayslink = True,
    )
    native.cc_test(
        name = name + "_replay",
        size = size,
        srcs = ["//tests/fuzz:replay.cc"],
        deps = [
            ":" + name,
            "//tests/fuzz",
        ],
    )
    native.cc_binary(
        name = name + "_libfuzzer",
        testonly = True,
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = [":" + name],
    )
