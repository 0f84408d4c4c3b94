"""What a stock tritonclient.grpc sees of a daemon that serves echo and has vmamba-pico in its repository.

Usage: check_tritonclient.py --address HOST:PORT --mk PATH --packs FOLDER
"""

import argparse
import json
import pathlib
import queue
import struct
import subprocess
import tempfile
import zlib

import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from checks import Checks, expect, expect_equal

PICO = "vmamba-pico"


def refused(call, code, *parts):
    """Calls `call`; it must be refused with `code` and a message that has all `parts`."""
    try:
        call()
    except InferenceServerException as error:
        status = str(error.status()).replace("StatusCode.", "")
        expect_equal(status, code, f"code (message '{error.message()}')")
        for part in parts:
            expect(part in error.message(), f"'{part}' is not in '{error.message()}'")
    else:
        raise AssertionError(f"was not refused with {code}")


def tensor(name, values, datatype=None):
    datatype = datatype or {"uint8": "UINT8", "float32": "FP32", "object": "BYTES"}[values.dtype.name]
    made = triton.InferInput(name, list(values.shape), datatype)
    made.set_data_from_numpy(values)
    return made


def shaped(name, shape, datatype, values):
    """An input whose declared shape need not fit its bytes."""
    made = tensor(name, values)
    made.set_shape(shape)
    made._input.datatype = datatype
    return made


def picture(height=28, width=28, channels=1):
    """The same picture everywhere: a bright ring on a dark ground."""
    y, x = np.mgrid[0:height, 0:width]
    radius = np.hypot((y - height / 2) / height, (x - width / 2) / width)
    grey = np.where(np.abs(radius - 0.3) < 0.12, 220, 15).astype(np.uint8)
    return np.repeat(grey[:, :, None], channels, axis=2)


class Client:
    def __init__(self, address):
        self.triton = triton.InferenceServerClient(address)

    def echo(self, values, **options):
        return self.triton.infer("echo", [tensor("INPUT0", values)], **options)

    def pico(self, image, **options):
        return self.triton.infer(PICO, [tensor("image", image)], **options).as_numpy("logits")


# ---- What the server and its models say of themselves


def server(client):
    expect(client.triton.is_server_live(), "not live")
    expect(client.triton.is_server_ready(), "not ready")
    metadata = client.triton.get_server_metadata()
    expect_equal(metadata.name, "mergekernel", "name")
    expect("statistics" in metadata.extensions, "no statistics among the extensions")
    expect(not any("shared_memory" in e for e in metadata.extensions), "claims shared memory")
    return f"version {metadata.version}"


def states(client):
    return {(m.name, m.version): m.state for m in client.triton.get_model_repository_index().models}


def lists(client):
    expect_equal(states(client)[("echo", "1")], "READY", "echo")
    expect_equal(states(client)[(PICO, "1")], "UNAVAILABLE", PICO)
    expect(client.triton.is_model_ready("echo"), "echo is not ready")
    expect(not client.triton.is_model_ready(PICO), f"{PICO} is ready before it was loaded")


def loads(client):
    client.triton.load_model(PICO)
    expect(client.triton.is_model_ready(PICO), "not ready")
    expect(client.triton.is_model_ready(PICO, "1"), "version 1 not ready")
    expect_equal(states(client)[(PICO, "1")], "READY", "state")
    client.triton.load_model(PICO)  # again: nothing to do, and no error


def metadata(client):
    got = client.triton.get_model_metadata(PICO)
    expect_equal(got.name, PICO, "name")
    expect_equal(list(got.versions), ["1"], "versions")
    expect_equal([(i.name, i.datatype, list(i.shape)) for i in got.inputs],
                 [("image", "UINT8", [-1, -1, -1]), ("encoded_image", "BYTES", [1])], "inputs")
    expect_equal([(o.name, o.datatype, list(o.shape)) for o in got.outputs], [("logits", "FP32", [10])], "outputs")
    return got.platform


def config(client):
    got = client.triton.get_model_config(PICO).config
    expect_equal((got.name, got.max_batch_size), (PICO, 0), "name and batch")
    expect_equal([i.optional for i in got.input], [True, True], "optional")
    expect(got.instance_group[0].count >= 1, "no instances")
    expect_equal(len(got.parameters["labels"].string_value.split("\n")[:10]), 10, "labels")
    expect_equal(len(got.parameters["digest"].string_value), 64, "digest")
    as_json = client.triton.get_model_config(PICO, as_json=True)
    expect("dynamic_batching" not in as_json["config"], "claims dynamic batching")


# ---- Inference


def echoes(client):
    for size in (0, 1, 1000, 5_000_000):  # the last is above gRPC's own limit of 4 MiB
        values = (np.arange(size) % 251).astype(np.uint8)
        result = client.echo(values, request_id=f"size {size}")
        expect_equal(result.get_response().id, f"size {size}", "id")
        expect(np.array_equal(result.as_numpy("OUTPUT0").reshape(-1), values), f"{size} bytes came back changed")


def echoes_as_asked(client):
    result = client.echo(np.ones(4, np.uint8), outputs=[triton.InferRequestedOutput("OUTPUT0")], model_version="1")
    expect_equal(result.as_numpy("OUTPUT0").tolist(), [1, 1, 1, 1], "values")
    expect_equal(result.get_response().model_version, "1", "version")


def echoes_at_once(client):
    answers = queue.Queue()
    for i in range(32):
        client.triton.async_infer("echo", [tensor("INPUT0", np.full(16, i, np.uint8))],
                                  lambda result, error: answers.put((result, error)), request_id=str(i))
    for _ in range(32):
        result, error = answers.get(timeout=10)
        expect(error is None, f"{error}")
        i = int(result.get_response().id)
        expect_equal(result.as_numpy("OUTPUT0").tolist(), [i] * 16, f"answer {i}")


def classifies(client, mk, address):
    image = picture()
    logits = client.pico(image)
    expect_equal(logits.shape, (10,), "shape")
    expect(np.isfinite(logits).all(), f"not finite: {logits}")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "image.npy")
        np.save(path, image)
        answer = subprocess.run([mk, "--address", address, "infer", PICO, "--input", f"image={path}", "--json"],
                                check=True, capture_output=True, text=True, timeout=30)
    outputs = {o["name"]: o for o in json.loads(answer.stdout)["outputs"]}
    expect_equal(np.float32(outputs["logits"]["data"]).tolist(), logits.tolist(), "logits of `mk infer`")
    return "the same logits as `mk infer`"


def png_of(grey):
    """An 8-bit grey PNG file, with nothing but the standard library."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width = grey.shape
    rows = b"".join(b"\0" + row.tobytes() for row in grey)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def classifies_files(client):
    encoded = tensor("encoded_image", np.array([png_of(picture()[:, :, 0])], dtype=np.object_))
    logits = client.triton.infer(PICO, [encoded]).as_numpy("logits")
    expect_equal(logits.tolist(), client.pico(picture()).tolist(), "logits of the PNG and of its pixels")


def counts(client):
    def of(name):
        return client.triton.get_inference_statistics(name).model_stats[0]
    before = of("echo")
    for _ in range(3):
        client.echo(np.zeros(8, np.uint8))
    after = of("echo")
    expect_equal(after.inference_count - before.inference_count, 3, "inferences")
    for duration in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
        new = getattr(after.inference_stats, duration).count - getattr(before.inference_stats, duration).count
        expect_equal(new, 3, duration)
    expect_equal(int(after.version), 1, "version")
    everyone = {s.name: s for s in client.triton.get_inference_statistics().model_stats}
    expect(set(everyone) >= {"echo", PICO}, f"statistics of {sorted(everyone)} alone")
    expect(sum(m.byte_size for m in everyone[PICO].memory_usage) > 0, "no memory in use")


# ---- Refusals


def refuses_names(client):
    refused(lambda: client.triton.infer("nobody", [tensor("INPUT0", np.zeros(1, np.uint8))]), "NOT_FOUND", "nobody")
    refused(lambda: client.triton.get_model_metadata("nobody"), "NOT_FOUND")
    refused(lambda: client.triton.is_model_ready("nobody"), "NOT_FOUND")
    refused(lambda: client.echo(np.zeros(1, np.uint8), model_version="7"), "NOT_FOUND", "7")
    refused(lambda: client.echo(np.zeros(1, np.uint8), model_version="1/../2"), "INVALID_ARGUMENT")
    refused(lambda: client.triton.load_model("nobody"), "NOT_FOUND")
    refused(lambda: client.triton.load_model("../etc"), "INVALID_ARGUMENT")
    refused(lambda: client.triton.load_model("echo", config="{}"), "INVALID_ARGUMENT", "config")


def refuses_tensors(client):
    zeros = np.zeros(16, np.uint8)
    def send(*inputs, **options):
        return lambda: client.triton.infer("echo", list(inputs), **options)
    refused(send(tensor("INPUT1", zeros)), "INVALID_ARGUMENT", "INPUT1")
    refused(send(tensor("INPUT0", np.zeros(16, np.float32))), "INVALID_ARGUMENT", "FP32", "UINT8")
    refused(send(tensor("INPUT0", zeros.reshape(4, 4))), "INVALID_ARGUMENT", "rank")
    refused(send(shaped("INPUT0", [-1], "UINT8", zeros)), "INVALID_ARGUMENT", "INPUT0", "-1")
    refused(send(shaped("INPUT0", [17], "UINT8", zeros)), "INVALID_ARGUMENT", "17", "16")
    refused(send(tensor("INPUT0", zeros), tensor("INPUT0", zeros)), "INVALID_ARGUMENT", "twice")
    refused(send(), "INVALID_ARGUMENT")
    refused(send(tensor("INPUT0", zeros), outputs=[triton.InferRequestedOutput("NONE")]), "INVALID_ARGUMENT", "NONE")
    refused(lambda: client.triton.infer(PICO, [tensor("image", picture(channels=2))]), "INVALID_ARGUMENT", "channels")
    expect_equal(client.echo(zeros).as_numpy("OUTPUT0").tolist(), zeros.tolist(), "the next request")


def refuses_what_it_does_not_serve(client):
    client.triton.unregister_cuda_shared_memory()
    refused(client.triton.get_system_shared_memory_status, "UNIMPLEMENTED", "SystemSharedMemoryStatus")
    refused(client.triton.get_cuda_shared_memory_status, "UNIMPLEMENTED", "CudaSharedMemoryStatus")
    refused(client.triton.get_trace_settings, "UNIMPLEMENTED", "TraceSetting")
    in_region = triton.InferInput("INPUT0", [16], "UINT8")
    in_region.set_shared_memory("region", 16)
    refused(lambda: client.triton.infer("echo", [in_region]), "UNIMPLEMENTED", "shared memory")
    refused(lambda: client.echo(np.zeros(1, np.uint8), sequence_id=7, sequence_start=True), "UNIMPLEMENTED")


def refuses_streams(client):
    answers = queue.Queue()
    client.triton.start_stream(lambda result, error: answers.put(error))
    try:
        client.triton.async_stream_infer("echo", [tensor("INPUT0", np.zeros(1, np.uint8))])
    except InferenceServerException:
        pass  # the refusal was there first; the callback has it too
    error = answers.get(timeout=10)
    expect("UNIMPLEMENTED" in str(error.status()), f"{error}")
    client.triton.stop_stream(cancel_requests=True)


def keeps_deadlines(client):
    refused(lambda: client.echo(np.zeros(1, np.uint8), parameters={"delay_ms": 5000}, client_timeout=0.1),
            "DEADLINE_EXCEEDED")
    refused(lambda: client.echo(np.zeros(1, np.uint8), parameters={"delay_ms": 5000}, timeout=50_000),
            "DEADLINE_EXCEEDED")
    client.echo(np.zeros(1, np.uint8), parameters={"delay_ms": 1}, client_timeout=5)


# ---- Unloading


def unloads(client):
    client.triton.unload_model(PICO)
    expect(not client.triton.is_model_ready(PICO), "still ready")
    expect_equal(states(client)[(PICO, "1")], "UNAVAILABLE", "state")
    refused(lambda: client.pico(picture()), "UNAVAILABLE", "not at ready state")
    expect(client.triton.is_model_ready("echo"), "echo went too")
    client.triton.load_model(PICO)
    expect(np.isfinite(client.pico(picture())).all(), "no answer after it was loaded again")


def names_bad_packs(client, packs):
    manifest = pathlib.Path(packs, "echo/1/manifest.textproto")
    broken = pathlib.Path(packs, "broken/1")
    broken.mkdir(parents=True)
    (broken / "manifest.textproto").write_text(manifest.read_text().replace('name: "echo"\n', 'name: "broken"\n', 1))
    (broken / "pack.so").write_bytes(b"not what the manifest's digest says")
    try:
        client.triton.load_model("broken")
    except InferenceServerException as error:
        expect("pack.so" in error.message(), f"'pack.so' is not in '{error.message()}'")
        expect(str(packs) not in error.message(), f"tells a path: '{error.message()}'")
    else:
        raise AssertionError("loaded a pack with a wrong digest")
    index = {m.name: m for m in client.triton.get_model_repository_index().models}
    expect_equal(index["broken"].state, "UNAVAILABLE", "state")
    expect("pack.so" in index["broken"].reason, f"reason '{index['broken'].reason}'")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--address", required=True)
    parser.add_argument("--mk", required=True, help="the command, to compare its answers")
    parser.add_argument("--packs", required=True, help="the daemon's repository; a broken pack is put there")
    flags = parser.parse_args()
    client = Client(flags.address)
    checks = Checks("tritonclient")
    checks.run("the server tells of itself", server, client)
    checks.run("packs are listed", lists, client)
    checks.run("a pack is loaded", loads, client)
    checks.run("metadata", metadata, client)
    checks.run("configuration", config, client)
    checks.run("echo, from nothing to 5 MB", echoes, client)
    checks.run("a chosen output of a chosen version", echoes_as_asked, client)
    checks.run("32 requests at once", echoes_at_once, client)
    checks.run("a picture is classified", classifies, client, flags.mk, flags.address)
    checks.run("a PNG file is classified", classifies_files, client)
    checks.run("statistics count", counts, client)
    checks.run("unknown names are refused", refuses_names, client)
    checks.run("wrong tensors are refused", refuses_tensors, client)
    checks.run("what is not served says so", refuses_what_it_does_not_serve, client)
    checks.run("streams are refused", refuses_streams, client)
    checks.run("deadlines are kept", keeps_deadlines, client)
    checks.run("a pack is unloaded and loaded again", unloads, client)
    checks.run("a bad pack is named", names_bad_packs, client, flags.packs)
    checks.finish()


if __name__ == "__main__":
    main()
