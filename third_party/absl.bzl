"""Abseil as the distribution cuts it into libraries, which differs from one release to the next: asked of pkg-config."""

# What the tree includes; pkg-config adds what these need.
_MODULES = [
    "absl_statusor",
    "absl_status",
    "absl_cord",
    "absl_strings",
    "absl_str_format",
    "absl_synchronization",
    "absl_time",
    "absl_flat_hash_map",
    "absl_hash",
    "absl_optional",
    "absl_variant",
    "absl_span",
]

def _absl_impl(ctx):
    result = ctx.execute(["pkg-config", "--libs"] + _MODULES)
    if result.return_code != 0:
        fail("pkg-config knows no Abseil (Debian: pkg-config, libabsl-dev): " + result.stderr)
    libraries = [word for word in result.stdout.strip().split(" ") if word.startswith("-labsl_")]

    # All of them into each program: the shared libraries of Bazel's tests name none of those that they need.
    ctx.file("BUILD", """cc_library(
    name = "absl",
    linkopts = {},
    visibility = ["//visibility:public"],
)
""".format(repr(libraries)))

absl = repository_rule(implementation = _absl_impl, local = True)
