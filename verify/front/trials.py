"""Programs of our own and configs of transformers through `mk scan`, against the labels they should have. On demand:

    python3 verify/front/trials.py --mk bazel-bin/server/cli/mk --python VENV/bin/python --out DIR [--only NAME,...]

`--python` has torch 2.13, onnx, onnxscript and transformers 5.18. Sources are made in DIR. One line each: what was expected,
what mk answered; then how many differ. A label "-S3" is a model that is not exported, with that hint.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

# name: (label, why, inputs, the rest of __init__ and forward).
PROGRAMS = {
    "plain": ("", "none: convolutions", "(torch.randn(1, 3, 16, 16),)", """
        self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
    def forward(self, x):
        return self.b(torch.relu(self.a(x)))"""),
    "nonzero": ("S1 S2", "places by nonzero, elements at them", "(torch.randn(4, 4),)", """
        pass
    def forward(self, x):
        at = torch.nonzero(x > 0)
        return x[at[:, 0], at[:, 1]]"""),
    "branch": ("S1", "torch.cond on data", "(torch.randn(4),)", """
        pass
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, (x,))"""),
    "sampling": ("S2", "sampling at computed places", "(torch.randn(1, 4, 8, 8), torch.randn(1, 5, 5, 2))", """
        self.a = nn.Conv2d(4, 4, 1)
    def forward(self, x, at):
        return nn.functional.grid_sample(self.a(x), torch.tanh(at), align_corners=False)"""),
    "rope": ("S3", "rotary embedding in real numbers, with attention", "(torch.randn(1, 2, 8, 16),)", """
        angles = torch.outer(torch.arange(8.0), 10.0 ** -torch.arange(8.0))
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, -1))
        self.register_buffer("sin", torch.cat([angles.sin()] * 2, -1))
    def forward(self, x):
        a, b = x.chunk(2, -1)
        q = x * self.cos + torch.cat([-b, a], -1) * self.sin
        return torch.softmax(q @ q.transpose(-1, -2), -1) @ x"""),
    "complex-rope": ("-S3", "the same in complex numbers", "(torch.randn(1, 8, 2, 16),)", """
        pass
    def forward(self, x):
        turns = torch.polar(torch.ones(8, 8), torch.outer(torch.arange(8.0), torch.arange(8.0)))
        return torch.view_as_real(torch.view_as_complex(x.reshape(1, 8, 2, 8, 2)) * turns[:, None]).flatten(-2)"""),
    "fourier": ("S3", "a Fourier transform", "(torch.randn(2, 16),)", """
        pass
    def forward(self, x):
        return torch.fft.rfft(x).abs()"""),
    "window-roll": ("S4", "shifted windows", "(torch.randn(1, 16, 16, 8),)", """
        pass
    def forward(self, x):
        x = torch.roll(x, (-2, -2), (1, 2)).reshape(1, 4, 4, 4, 4, 8).permute(0, 1, 3, 2, 4, 5).reshape(16, 16, 8)
        return torch.softmax(x @ x.transpose(1, 2), -1) @ x"""),
    "scan": ("S5", "a selective scan, unrolled", "(torch.randn(1, 6, 4),)", """
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        decay, drive, h, out = torch.exp(-nn.functional.softplus(self.a(x))), self.b(x), torch.zeros(1, 4), []
        for t in range(6):
            h = decay[:, t] * h + drive[:, t]
            out.append(h)
        return torch.stack(out, 1)"""),
    "lstm": ("S5", "an LSTM", "(torch.randn(1, 5, 4),)", """
        self.a = nn.LSTM(4, 8, batch_first=True)
    def forward(self, x):
        return self.a(x)[0]"""),
}  # fmt: skip
CONFIGS = {
    "vit": ("", "ViTConfig(num_hidden_layers=3)"),
    "resnet": ("", "ResNetConfig()"),
    "bert": ("", "BertConfig(num_hidden_layers=2)"),
    "detr": ("", 'DetrConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, encoder_layers=2, decoder_layers=2, '
             'backbone_config=ResNetConfig(out_features=["stage4"]))'),
    "swin": ("S4", "SwinConfig(depths=[2, 2, 2, 2])"),
    "mamba": ("S5", "MambaConfig(num_hidden_layers=2, hidden_size=64, vocab_size=128)"),
    "depth_anything": ("", 'DepthAnythingConfig(backbone_config=Dinov2Config(hidden_size=384, num_attention_heads=6, num_hidden_layers=4, '
                       'image_size=518, patch_size=14, out_features=["stage1", "stage2", "stage3", "stage4"], apply_layernorm=True, '
                       'reshape_hidden_states=False), neck_hidden_sizes=[48, 96, 192, 384], fusion_hidden_size=64, reassemble_hidden_size=384)'),
    "llama": ("S3", "LlamaConfig(num_hidden_layers=2, hidden_size=256, intermediate_size=512, num_attention_heads=4, vocab_size=1000)"),
    "t5": ("S4", "T5Config(num_layers=1, num_decoder_layers=1)"),  # relative positions, looked up in a table
    "grounding_dino": ("-", 'GroundingDinoConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, encoder_layers=2, '
                       'decoder_layers=2, num_queries=100, backbone_config=SwinConfig(depths=[2, 2, 2, 2], window_size=7, image_size=224, '
                       'out_features=["stage2", "stage3", "stage4"]))'),
}  # fmt: skip
SPOTS = ("S1", "S2", "S3", "S4", "S5")


def make_program(name: str, path: pathlib.Path) -> str:
    """Python that makes the .pt2."""
    _, _, inputs, body = PROGRAMS[name]
    return ("import torch\nfrom torch import nn\ntorch.manual_seed(0)\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()"
            f"{body}\ntorch.export.save(torch.export.export(M().eval(), {inputs}), {str(path)!r})\n")  # fmt: skip


def make_config(name: str, folder: pathlib.Path) -> str:
    text = CONFIGS[name][1]
    kinds = sorted({word for word in text.replace("(", " ").replace("=", " ").split() if word.endswith("Config")})
    return f"from transformers import {', '.join(kinds)}\n{text}.save_pretrained({str(folder)!r})\n"


def scan(mk: str, python: str, source: pathlib.Path) -> tuple[str, str]:
    """(blind spots, what exported it); "-", "-S1" where it was not exported."""
    done = subprocess.run([mk, "scan", "--json", "--python", python, str(source)], capture_output=True, text=True, check=False)
    if done.stdout:
        report = json.loads(done.stdout)
        found = [spot["id"] for spot in report["spots"] if spot["structure_count"]]
        return " ".join(found), report["origin"]["exporter"].split(" of ")[0]
    error = json.loads(done.stderr.strip().splitlines()[-1])["error"]
    hint = next((spot for spot in SPOTS if f"blind spot {spot}" in error["hint"]), "")
    return f"-{hint}", error["message"].split(": ", 1)[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mk", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in args.only.split(",") if name] or [*PROGRAMS, *CONFIGS]
    differ = 0
    print(f"{'source':28}{'expected':10}{'found':10}{'seconds':>8}  exported by, or why not")
    for name in wanted:
        is_program = name in PROGRAMS
        source = args.out / (f"{name}.pt2" if is_program else f"{name}/config.json")
        expected = (PROGRAMS if is_program else CONFIGS)[name][0]
        if not source.exists():
            text = make_program(name, source) if is_program else make_config(name, source.parent)
            subprocess.run([args.python, "-c", text], check=True, capture_output=True)
        began = time.monotonic()
        found, by = scan(args.mk, args.python, source)
        differ += found != expected
        print(f"{source.relative_to(args.out)!s:28}{expected or 'none':10}{found or 'none':10}{time.monotonic() - began:8.0f}  {by}"
              f"{'' if found == expected else '  DIFFERS'}", flush=True)  # fmt: skip
    print(f"{len(wanted)} sources, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
