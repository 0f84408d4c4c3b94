"""torch.export.load with what runs code shut: full unpickling, pickled objects, compiled code, texts that are evaluated. The
file has passed pt2.check; this holds where PyTorch should read it differently. Needs PyTorch.
"""

from __future__ import annotations

import contextlib
import pickle
import warnings

from pt2 import is_plain_expression
from refused import Refused, line

STAGE = "reading the program"


def _shut(what: str):
    def refuse(*_, **__):
        raise Refused("untrusted", STAGE, f"loading would have {what}")

    return refuse


class _NoPickle:
    loads = staticmethod(_shut("unpickled an object"))
    load = loads


@contextlib.contextmanager
def _replaced(pairs):
    """Attributes replaced for a while; those that this PyTorch has not are left out."""
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in pairs if hasattr(owner, name)]
    try:
        for owner, name, value in pairs:
            if hasattr(owner, name):
                setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in kept:
            setattr(owner, name, value)


def load(torch, path: str):
    """The program. Raises Refused, or what PyTorch raises."""
    import sympy
    from torch.export.pt2_archive import _package

    loads, sympify = torch.load, sympy.sympify

    def only_tensors(*arguments, **more):
        return loads(*arguments, **{**more, "weights_only": True})

    def plain(text, *arguments, **more):
        if isinstance(text, str) and not is_plain_expression(text):
            raise Refused("untrusted", STAGE, f"the symbolic size {line(text, 80)!r} is no plain arithmetic")
        return sympify(text, *arguments, **more)

    shut = [
        (torch, "load", only_tensors),
        (torch._C, "_pickle_load_obj", _shut("unpickled an object")),
        (_package, "pickle", _NoPickle),
        (_package, "_load_aoti", _shut("loaded compiled code")),
        (sympy, "sympify", plain),
    ]
    with _replaced(shut), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            loaded = _package.load_pt2(path).exported_programs
        except Refused:
            raise
        except pickle.UnpicklingError as error:
            raise Refused("untrusted", STAGE, f"it holds pickled objects that are no plain tensors: {line(error, 160)}") from None
        except Exception as error:  # noqa: BLE001, anything may be wrong with a file
            raise Refused("no-program", STAGE, f"{type(error).__name__}: {line(error)}",
                          "Programs are not kept readable from one PyTorch to the next: load it with the one that saved it.") from None  # fmt: skip
    if "model" not in loaded:
        raise Refused("no-program", STAGE, "the archive holds no program called 'model'")
    loaded["model"]._guards_code = []  # texts that would be compiled; the translation does not need them
    return loaded["model"]
