"""What Bazel's own tools load from rules_cc: the native rules, under their old names."""

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_proto_library = native.cc_proto_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
objc_import = native.objc_import
objc_library = native.objc_library

def _no_op(**_kwargs):
    pass

cc_flags_supplier = _no_op
compiler_flag = _no_op
