"""The two rules of a model pack: its shared object, and its folder in a repository."""

def mk_pack(name, deps, srcs = [], linkopts = [], **kwargs):
    """Links `<name>.so`, a pack that exports `mk_pack_entry` and nothing else.

    The version script hides every other symbol (visibility flags alone leave a score of template instances, some of
    them STB_GNU_UNIQUE, which would make dlclose a no-op); `-z defs` turns a stray reference to the host into a build
    error instead of a failed load.

    Args:
      name: of the pack; the output is `<name>.so`.
      deps: libraries with the pack's code. The one that holds MK_PACK needs `alwayslink = 1`.
      srcs: sources, for packs too small to need a library.
      linkopts: added to the rule's own.
      **kwargs: as for cc_binary.
    """
    native.cc_binary(
        name = name + ".so",
        srcs = srcs,
        additional_linker_inputs = ["//packs:pack.lds"],
        copts = ["-fvisibility=hidden"],
        linkopts = [
            "-Wl,--version-script=$(location //packs:pack.lds)",
            "-Wl,-z,defs",
            "-Wl,-z,now",
            "-Wl,--as-needed",
        ] + linkopts,
        linkshared = True,
        linkstatic = True,
        deps = deps,
        **kwargs
    )

def mk_pack_dir(name, pack, version, library, manifest, files = [], weights = [], visibility = None, testonly = None):
    """Assembles `<name>/<pack>/<version>/` as it stands in a repository: library, files, and a manifest with digests.

    Args:
      name: of the target and of the folder that becomes the repository's root.
      pack: the pack's name, equal to the manifest's.
      version: an integer, equal to the manifest's.
      library: label of the `mk_pack`'s `.so`; it becomes `pack.so`.
      manifest: a Manifest in text form without `files`, which this rule appends.
      files: small files, copied under their own base names.
      weights: safetensors files that are streamed at load.
      visibility: as everywhere.
      testonly: as everywhere.
    """
    folder = "{}/{}/{}".format(name, pack, version)
    labels = [library, manifest] + files + weights
    outs = [folder + "/pack.so", folder + "/manifest.textproto"]
    for label in files + weights:
        outs.append(folder + "/" + label.split(":")[-1].split("/")[-1])
    native.genrule(
        name = name,
        srcs = labels,
        outs = outs,
        cmd = "$(location //packs:assemble) $(RULEDIR)/{folder} $(location {library}) $(location {manifest}) {files} -- {weights}".format(
            folder = folder,
            library = library,
            manifest = manifest,
            files = " ".join(["$(location {})".format(f) for f in files]),
            weights = " ".join(["$(location {})".format(w) for w in weights]),
        ),
        tools = ["//packs:assemble"],
        visibility = visibility,
        testonly = testonly,
    )
