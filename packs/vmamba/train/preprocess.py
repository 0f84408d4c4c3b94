"""The pack's preprocessing in numpy: the definition that the C++ side repeats.

image [H,W,C] uint8, C = 1 or 3  ->  [channels, crop+2*pad, crop+2*pad] float32, in this order:

1. convert to float32, values 0..255. C = 3 to one channel: (0.299*R + 0.587*G) + 0.114*B in
   float32. C = 1 to three channels: the value three times.
2. resize, when resize != 0 and min(H, W) != resize: the shorter side becomes `resize`, the longer
   one (longer * resize) div shorter in integers. Separable filter with antialias, first along x,
   then along y. For an axis of `n` samples made into `m`:
       scale = n / m;  stretch = max(1, scale);  centre_i = (i + 0.5) * scale
       w_ij = k(|j + 0.5 - centre_i| / stretch)   for j in [0, n), so clipped at the edge
       out_i = sum_j fl32(w_ij / sum_j w_ij) * in_j
   triangle: k(t) = max(0, 1 - t). bicubic (Keys, a = -0.5): 1.5 t^3 - 2.5 t^2 + 1 below 1,
   -0.5 t^3 + 2.5 t^2 - 4 t + 2 below 2, else 0; it overshoots, so each pass is clamped to 0..255.
   Weights are computed in double and rounded once; the sum is in float32 over the non-zero weights
   with j ascending. Nothing is rounded to integers.
3. crop x crop window at (floor((H - crop) / 2), floor((W - crop) / 2)); crop = 0 keeps all.
4. `pad` samples of value 0 on each side.
5. ((x / 255) - mean[c]) / std[c] in float32. A padded sample therefore becomes -mean/std.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PreprocessConfig:
    """resize: shorter side, 0 for none. crop: side of the centre window, 0 for none. pad: samples
    added per side."""

    resize: int
    crop: int
    pad: int
    channels: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    filter: str = "triangle"  # or "bicubic"

    def to_metadata(self) -> dict[str, str]:
        """The configuration as safetensors metadata (strings); lists joined by ","."""
        return {
            "preprocess.resize": str(self.resize),
            "preprocess.crop": str(self.crop),
            "preprocess.pad": str(self.pad),
            "preprocess.channels": str(self.channels),
            "preprocess.mean": ",".join(map(str, self.mean)),
            "preprocess.std": ",".join(map(str, self.std)),
        }


PICO = PreprocessConfig(resize=28, crop=28, pad=2, channels=1, mean=(0.2860,), std=(0.3530,))


def kernel(name: str, t: np.ndarray) -> np.ndarray:
    """k(t) of the definition above, t >= 0."""
    if name == "triangle":
        return np.maximum(0.0, 1.0 - t)
    outer = np.where(t < 2, ((-0.5 * t + 2.5) * t - 4) * t + 2, 0.0)
    return np.where(t < 1, (1.5 * t - 2.5) * t * t + 1, outer)


def resize_weights(source: int, target: int, name: str = "triangle") -> np.ndarray:
    """[target, source] float32: row i holds the normalised filter of output sample i."""
    scale = source / target
    stretch = max(1.0, scale)
    centre = (np.arange(target) + 0.5) * scale
    distance = np.abs(np.arange(source) + 0.5 - centre[:, None])
    weights = kernel(name, distance / stretch)
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32)


def _apply(weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """rows [n, ...] float32 -> [m, ...]: the filter along axis 0, summed in float32 with j
    ascending."""
    out = np.zeros((weights.shape[0], *rows.shape[1:]), np.float32)
    for i, filter_i in enumerate(weights):
        for j in np.flatnonzero(filter_i):
            out[i] += filter_i[j] * rows[j]
    return out


def resize_shorter(image: np.ndarray, side: int, name: str = "triangle") -> np.ndarray:
    """[H,W,C] float32 -> the same with min(H, W) = side."""
    height, width = image.shape[:2]
    shorter = min(height, width)
    if side == 0 or shorter == side:
        return image
    clamp = (lambda x: np.clip(x, 0, 255)) if name == "bicubic" else (lambda x: x)
    columns = resize_weights(width, width * side // shorter, name)
    across = clamp(_apply(columns, image.swapaxes(0, 1)).swapaxes(0, 1))
    return clamp(_apply(resize_weights(height, height * side // shorter, name), across))


def convert_channels(image: np.ndarray, channels: int) -> np.ndarray:
    """[...,C] float32 -> [...,channels]; REQUIRES: C and channels are 1 or 3."""
    have = image.shape[-1]
    if have == channels:
        return image
    if have == 1:
        return np.repeat(image, channels, axis=-1)
    weights = np.array([0.299, 0.587, 0.114], np.float32)
    red, green, blue = (image[..., c] * weights[c] for c in range(3))
    return ((red + green) + blue)[..., None]


def pad_and_normalise(image: np.ndarray, cfg: PreprocessConfig) -> np.ndarray:
    """[...,h,w,channels] float32 0..255 -> [...,channels,h+2*pad,w+2*pad] float32."""
    margins = [(0, 0)] * (image.ndim - 3) + [(cfg.pad, cfg.pad)] * 2 + [(0, 0)]
    padded = np.pad(image, margins) / np.float32(255)
    scaled = (padded - np.array(cfg.mean, np.float32)) / np.array(cfg.std, np.float32)
    return np.ascontiguousarray(np.moveaxis(scaled, -1, -3))


def preprocess(image: np.ndarray, cfg: PreprocessConfig = PICO) -> np.ndarray:
    """One image [H,W,C] uint8 -> the network's input [channels, h, w] float32."""
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in (1, 3):
        raise ValueError(f"preprocess: want uint8 [H,W,1|3], got {image.dtype} {list(image.shape)}")
    pixels = resize_shorter(convert_channels(image.astype(np.float32), cfg.channels), cfg.resize, cfg.filter)
    height, width = pixels.shape[:2]
    if cfg.crop:
        if min(height, width) < cfg.crop:
            raise ValueError(f"preprocess: {height}x{width} is smaller than the crop {cfg.crop}")
        top, left = (height - cfg.crop) // 2, (width - cfg.crop) // 2
        pixels = pixels[top : top + cfg.crop, left : left + cfg.crop]
    return pad_and_normalise(pixels, cfg)
