"""Packs for tests: fixtures.cc, compiled once per behaviour."""

load("//packs:mk_pack.bzl", "mk_pack")

def _defines(name, version):
    return ["MK_FIXTURE_" + name.upper(), "MK_FIXTURE_VERSION=" + str(version)]

def fixture(name, version = 1):
    """A pack as the rule makes it; `name` chooses the behaviour."""
    mk_pack(
        name = name,
        testonly = True,
        srcs = ["fixtures.cc"],
        local_defines = _defines(name, version),
        deps = ["//core/sdk"],
    )

def broken_fixture(name, linkopts = []):
    """A shared object that the rule would have refused."""
    native.cc_binary(
        name = name + ".so",
        testonly = True,
        srcs = ["fixtures.cc"],
        additional_linker_inputs = ["broken.lds"],
        copts = ["-fvisibility=hidden"],
        linkopts = ["-Wl,--version-script=$(location broken.lds)"] + linkopts,
        linkshared = True,
        linkstatic = True,
        local_defines = _defines(name, 1),
        deps = ["//core/sdk"],
    )
