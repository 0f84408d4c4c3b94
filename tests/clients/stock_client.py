"""What a stock tritonclient sees of the daemon: stock_client.py ADDRESS MK IMAGE. Prints one line per check; exit code 1 when one fails."""

import json
import subprocess
import sys

import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

PACK = "vmamba-pico"
failures = []


def check(what, good, seen=""):
    print(f"{'ok    ' if good else 'FAILED'} {what}{'' if good else f': {seen}'}")
    if not good:
        failures.append(what)


def refused(what, code, call):
    """The call must be refused with gRPC's `code`."""
    try:
        call()
        check(what, False, "it was answered")
    except InferenceServerException as error:
        check(what, error.status() == f"StatusCode.{code}", f"{error.status()}: {error.message()}")


def image_input(data):
    tensor = triton.InferInput("encoded_image", [1], "BYTES")
    tensor.set_data_from_numpy(np.array([data], dtype=np.object_))
    return tensor


def main():
    address, mk, path = sys.argv[1:4]
    client = triton.InferenceServerClient(address)
    check("the server is live and ready", client.is_server_live() and client.is_server_ready())
    names = [model.name for model in client.get_model_repository_index().models]
    check("the index lists both packs", names == ["echo", PACK], names)

    client.unload_model(PACK)
    check("unload: known, and not ready", not client.is_model_ready(PACK))
    refused("infer while unloaded", "UNAVAILABLE", lambda: client.infer(PACK, [image_input(b"x")]))
    client.load_model(PACK)
    check("load: ready again", client.is_model_ready(PACK))
    metadata = client.get_model_metadata(PACK)
    check("metadata", [t.name for t in metadata.outputs] == ["logits"], metadata)
    config = client.get_model_config(PACK).config
    check("config carries the labels", "Ankle boot" in config.parameters["labels"].string_value)

    with open(path, "rb") as file:
        data = file.read()
    logits = client.infer(PACK, [image_input(data)], request_id="7").as_numpy("logits")
    printed = json.loads(subprocess.run([mk, "--address", address, "infer", PACK, path, "--json"],
                                        capture_output=True, check=True).stdout)
    same = np.array(printed[0]["outputs"][0]["data"], dtype=np.float32)
    check("the logits are those of mk infer, bit for bit", np.array_equal(logits, same), (logits, same))
    check("the picture is an ankle boot", int(logits.argmax()) == 9, logits)

    pixels = triton.InferInput("image", [28, 28, 1], "UINT8")
    pixels.set_data_from_numpy(np.zeros([28, 28, 1], np.uint8))
    check("raw pixels are taken too", client.infer(PACK, [pixels]).as_numpy("logits").shape == (10,))
    refused("both inputs at once", "INVALID_ARGUMENT", lambda: client.infer(PACK, [pixels, image_input(data)]))
    refused("no picture at all", "INVALID_ARGUMENT", lambda: client.infer(PACK, [image_input(b"no picture")]))
    refused("an unknown model", "NOT_FOUND", lambda: client.infer("nope", [pixels]))
    refused("a client's short deadline", "DEADLINE_EXCEEDED", lambda: client.infer(
        "echo", [echo_input()], client_timeout=0.05, parameters={"delay_ms": 2000}))
    statistics = client.get_inference_statistics(PACK).model_stats[0]
    check("statistics count", statistics.inference_stats.success.count >= 3, statistics)
    print(f"{len(failures)} checks failed")
    return 1 if failures else 0


def echo_input():
    tensor = triton.InferInput("INPUT0", [4], "UINT8")
    tensor.set_data_from_numpy(np.arange(4, dtype=np.uint8))
    return tensor


if __name__ == "__main__":
    sys.exit(main())
