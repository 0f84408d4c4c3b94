"""Example inputs of a model of transformers, from the names of its forward's parameters and its config. Pure; standard
library only. Never guesses in silence: each size that the config does not tell is a note, an input of which nothing is
known is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from refused import Refused

STAGE = "making example inputs"
TOKENS, SIDE, SAMPLES, FRAMES = 16, 224, 16000, 16
WHOLE = ("_ids", "_mask", "labels", "bbox")  # ends of names whose elements are whole numbers


@dataclass(frozen=True)
class Input:
    """`high`: whole numbers below it; 0: floats; 1: ones."""

    name: str
    shape: tuple[int, ...]
    high: int = 0

    def text(self) -> str:
        return f"{self.name} {'x'.join(map(str, self.shape))}"


def find(config: dict, *names: str) -> object:
    """The first of `names` that the config has, at the top before below."""
    for name in names:
        if config.get(name) is not None:
            return config[name]
    for value in config.values():
        if isinstance(value, dict):
            found = find(value, *names)
            if found is not None:
                return found
    return None


def _image(config: dict, notes: list[str]) -> tuple[int, int, int]:
    size = find(config, "image_size", "input_size")
    if isinstance(size, dict):
        size = [size.get("height"), size.get("width")]
    if isinstance(size, int):
        size = [size, size]
    if not (isinstance(size, (list, tuple)) and len(size) >= 2 and all(isinstance(s, int) and s > 0 for s in size[-2:])):
        notes.append(f"the config tells no image size: {SIDE}x{SIDE} was taken")
        size = [SIDE, SIDE]
    channels = find(config, "num_channels", "in_channels", "in_chans")
    return (channels if isinstance(channels, int) and channels > 0 else 3, size[-2], size[-1])


def _tokens(config: dict, name: str) -> Input:
    most = find(config, "max_position_embeddings", "n_positions", "max_target_positions")
    length = min(TOKENS, most) if isinstance(most, int) and most > 0 else TOKENS
    vocabulary = find(config, "vocab_size")
    return Input(name, (1, length), min(vocabulary, 100) if isinstance(vocabulary, int) and vocabulary > 1 else 2)


def _known(name: str, config: dict, notes: list[str]) -> Input | None:
    """An input whose meaning its name tells."""
    if name == "pixel_values":
        frames = config.get("num_frames")
        if isinstance(frames, int) and config.get("model_type") in ("videomae", "vivit", "timesformer"):
            return Input(name, (1, frames, *_image(config, notes)))
        return Input(name, (1, *_image(config, notes)))
    if name == "pixel_values_videos":
        frames = find(config, "frames_per_clip", "num_frames")
        return Input(name, (1, frames if isinstance(frames, int) else FRAMES, *_image(config, notes)))
    if name in ("input_ids", "decoder_input_ids"):
        return _tokens(config, name)
    if name == "input_values":
        bins, length = find(config, "num_mel_bins"), find(config, "max_length")
        if isinstance(bins, int) and isinstance(length, int):
            return Input(name, (1, length, bins))
        return Input(name, (1, SAMPLES))
    if name == "input_features":
        bins, half = find(config, "num_mel_bins", "feature_projection_input_dim"), find(config, "max_source_positions")
        if isinstance(bins, int):
            return Input(name, (1, bins, 2 * half) if config.get("model_type") == "whisper" and isinstance(half, int) else (1, 128, bins))
    return None


def make(parameters: list[tuple[str, bool]], config: dict, main_input: str, given: dict[str, list[int]]) -> tuple[list[Input], list[str]]:
    """(inputs in the order of the parameters, notes). `parameters`: (name, whether forward needs it); `given`: shapes by the
    user. Raises Refused."""
    notes: list[str] = []
    names = [name for name, _ in parameters]
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise Refused("example-inputs", STAGE, f"--shapes {unknown[0]}: forward has no such parameter ({', '.join(names)})")
    wanted = {name for name, needed in parameters if needed} | set(given) | {main_input}
    if "input_ids" in names and "pixel_values" in names and not given:
        wanted |= {"input_ids", "pixel_values"}
    if config.get("is_encoder_decoder") and "decoder_input_ids" in names:
        wanted.add("decoder_input_ids")
    out = []
    for name in names:
        if name in given:
            high = 2 if name.endswith(WHOLE) else 0
            known = _known(name, config, []) if high else None
            out.append(Input(name, tuple(given[name]), known.high if known else 1 if name.endswith("_mask") else high))
        elif name == "attention_mask" and "input_ids" in wanted and main_input != "pixel_values":
            out.append(Input(name, next((tuple(given[n]) for n in ("input_ids",) if n in given), _tokens(config, name).shape), 1))
        elif name in wanted:
            known = _known(name, config, notes)
            if known is None:
                raise Refused("example-inputs", STAGE, f"forward wants {name!r}, of which the config tells no shape",
                              f"--shapes {name}=1x3x224x224 gives it one; an object that is no tensor cannot be given.")  # fmt: skip
            out.append(known)
    if not out:
        raise Refused("example-inputs", STAGE, f"none of forward's parameters is known: {', '.join(names)}",
                      "--shapes NAME=1x3x224x224 gives an input.")  # fmt: skip
    return out, notes
