"""C++ from .proto files, with the distribution's protoc and gRPC plugin."""

def mk_proto_library(name, src, deps = [], grpc = False, visibility = None):
    """A cc_library of the messages (and, with `grpc`, the service stubs) of one .proto file.

    Args:
      name: of the library.
      src: the .proto file, in this package; it is imported by its path from the top of the tree.
      deps: other mk_proto_library targets that it imports.
      grpc: whether the file declares a service.
      visibility: as everywhere.
    """
    base = src[:-len(".proto")]
    headers = [base + ".pb.h"] + ([base + ".grpc.pb.h"] if grpc else [])
    sources = [base + ".pb.cc"] + ([base + ".grpc.pb.cc"] if grpc else [])
    plugin = "--grpc_out=$(GENDIR) --plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin)" if grpc else ""
    native.filegroup(
        name = name + "_proto",
        srcs = [src] + [dep + "_proto" for dep in deps],
        visibility = visibility,
    )
    native.genrule(
        name = name + "_gen",
        srcs = [":" + name + "_proto"],
        outs = headers + sources,
        cmd = "protoc -I . --cpp_out=$(GENDIR) {plugin} {package}/{src}".format(
            plugin = plugin,
            package = native.package_name(),
            src = src,
        ),
    )
    native.cc_library(
        name = name,
        srcs = sources,
        hdrs = headers,
        # Generated code; its warnings are not ours to mend.
        copts = ["-w"],
        visibility = visibility,
        deps = deps + ["@system//:grpc" if grpc else "@system//:protobuf"],
    )
