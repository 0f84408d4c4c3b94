"""Python tests of the standard library alone, with the machine's own python3."""

def mk_py_test(name, main, data = [], args = [], size = "small", tags = ["no_asan"]):
    """Runs `main` as a test.

    Args:
      name: of the target.
      main: the script; exit code 0 passes.
      data: what it reads besides.
      args: behind the script's name.
      size: as everywhere.
      tags: as everywhere; no_asan where no program of ours is started.
    """
    native.sh_test(
        name = name,
        size = size,
        srcs = ["//tests/python:sh_python.sh"],
        args = ["$(location {})".format(main)] + args,
        data = [main] + data,
        tags = tags,
    )
