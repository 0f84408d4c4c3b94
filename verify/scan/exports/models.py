"""Models with random weights for export.py: each entry builds a module and its example inputs.

Sizes are those of the published models in everything that shapes the graph; depth is cut where the same layer repeats,
so that an export takes seconds and its skeleton stays small. `expect` is the label by the rules of docs/scan.md, argued
in `why` before the scan was run; `mission` is the count that the project's plan names, where it names one.
"""

import torch
from torch import nn


def _eval(module):
    return module.eval().requires_grad_(False)


def resnet():
    from transformers import ResNetConfig, ResNetModel
    return _eval(ResNetModel(ResNetConfig())), (torch.zeros(1, 3, 224, 224),), {}


def vit():
    from transformers import ViTConfig, ViTModel
    return _eval(ViTModel(ViTConfig(num_hidden_layers=3))), (torch.zeros(1, 3, 224, 224),), {}


def bert():
    from transformers import BertConfig, BertModel
    ids = torch.ones(1, 16, dtype=torch.int64)
    shapes = {"input_ids": {0: "batch", 1: "length"}, "attention_mask": {0: "batch", 1: "length"}}

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = BertModel(BertConfig(num_hidden_layers=2))

        def forward(self, input_ids, attention_mask):
            return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    return _eval(Encoder()), (ids, torch.ones_like(ids)), {"names": ["input_ids", "attention_mask"], "dynamic": shapes}


def detr():
    from transformers import DetrConfig, DetrModel, ResNetConfig
    config = DetrConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
                        backbone_config=ResNetConfig(out_features=["stage4"]), encoder_layers=2, decoder_layers=2)
    return _eval(DetrModel(config)), (torch.zeros(1, 3, 320, 320), torch.ones(1, 320, 320, dtype=torch.int64)), {}


def swin():
    from transformers import SwinConfig, SwinModel
    return _eval(SwinModel(SwinConfig(depths=[2, 2, 2, 2]))), (torch.zeros(1, 3, 224, 224),), {}


def depth_anything():
    from transformers import DepthAnythingConfig, DepthAnythingForDepthEstimation, Dinov2Config
    backbone = Dinov2Config(hidden_size=384, num_attention_heads=6, num_hidden_layers=4, image_size=518, patch_size=14,
                            out_features=["stage1", "stage2", "stage3", "stage4"], apply_layernorm=True,
                            reshape_hidden_states=False)
    config = DepthAnythingConfig(backbone_config=backbone, neck_hidden_sizes=[48, 96, 192, 384],
                                 fusion_hidden_size=64, reassemble_hidden_size=384)
    return _eval(DepthAnythingForDepthEstimation(config)), (torch.zeros(1, 3, 518, 518),), {}


def mamba():
    from transformers import MambaConfig, MambaModel

    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = MambaModel(MambaConfig(num_hidden_layers=2, hidden_size=64, vocab_size=128))

        def forward(self, ids):
            return self.model(ids, use_cache=False).last_hidden_state

    return _eval(Step()), (torch.ones(1, 12, dtype=torch.int64),), {}


class ConvGRU(nn.Module):
    """The update of RAFT-like optical flow: gates by convolutions over hidden state and input."""

    def __init__(self, hidden, inputs):
        super().__init__()
        self.z = nn.Conv2d(hidden + inputs, hidden, 3, padding=1)
        self.r = nn.Conv2d(hidden + inputs, hidden, 3, padding=1)
        self.q = nn.Conv2d(hidden + inputs, hidden, 3, padding=1)

    def forward(self, h, x):
        both = torch.cat([h, x], 1)
        z, r = torch.sigmoid(self.z(both)), torch.sigmoid(self.r(both))
        q = torch.tanh(self.q(torch.cat([r * h, x], 1)))
        return (1 - z) * h + z * q


class RaftLike(nn.Module):
    """Correlation look-ups by grid_sample and a ConvGRU, four iterations."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Conv2d(3, 32, 3, stride=8, padding=1)
        self.motion = nn.Conv2d(18 + 2, 16, 3, padding=1)
        self.gru = ConvGRU(32, 16)
        self.head = nn.Conv2d(32, 2, 3, padding=1)

    def forward(self, a, b):
        fa, fb = self.encode(a), self.encode(b)
        n, c, h, w = fa.shape
        volume = torch.einsum("nchw,ncij->nhwij", fa, fb).reshape(n * h * w, 1, h, w)
        pyramid = [volume, nn.functional.avg_pool2d(volume, 2)]
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        start = torch.stack([xs, ys]).float()[None].expand(n, -1, -1, -1)
        at, hidden = start, torch.tanh(fa)
        steps = torch.stack(torch.meshgrid(torch.arange(-1, 2), torch.arange(-1, 2), indexing="ij"), -1).float()
        for _ in range(4):
            looked = []
            for level, corr in enumerate(pyramid):
                center = at.permute(0, 2, 3, 1).reshape(-1, 1, 1, 2) / 2**level
                where = center + steps[None]
                size = torch.tensor([corr.shape[-1] - 1, corr.shape[-2] - 1]).float()
                looked.append(nn.functional.grid_sample(corr, 2 * where / size - 1, align_corners=True)
                              .reshape(n, h, w, -1))
            found = torch.cat(looked, -1).permute(0, 3, 1, 2)
            hidden = self.gru(hidden, self.motion(torch.cat([found, at - start], 1)))
            at = at + self.head(hidden)
        return at - start


def raft():
    return _eval(RaftLike()), (torch.zeros(1, 3, 128, 128), torch.zeros(1, 3, 128, 128)), {"opset": 18}


def grounding_dino(exporter):
    from transformers import GroundingDinoConfig, GroundingDinoForObjectDetection, SwinConfig
    backbone = SwinConfig(depths=[2, 2, 2, 2], out_features=["stage2", "stage3", "stage4"], window_size=7,
                          image_size=224)
    config = GroundingDinoConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
                                 backbone_config=backbone, encoder_layers=2, decoder_layers=2, num_queries=100)
    config._attn_implementation = "eager"

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = GroundingDinoForObjectDetection(config)

        def forward(self, pixels, ids, mask):
            out = self.model(pixel_values=pixels, input_ids=ids, attention_mask=mask,
                             token_type_ids=torch.zeros_like(ids))
            return out.logits, out.pred_boxes

    if exporter == "old":  # it has no isin, cummax and cummin: the same written out
        torch.isin = lambda values, of: (values[..., None] == of).any(-1)

        def cummax(values, dim):
            length = values.shape[dim]
            before = torch.ones(length, length, dtype=torch.bool).tril()
            low = torch.full((), -1_000_000, dtype=values.dtype)
            return torch.where(before, values[:, None, :], low).amax(-1), None

        torch.cummax = cummax
        torch.cummin = lambda values, dim: (-cummax(-values, dim)[0], None)
    ids = torch.tensor([[101, 4937, 1012, 6556, 2491, 1012, 102]])
    return _eval(Detector()), (torch.zeros(1, 3, 224, 224), ids, torch.ones_like(ids)), {}


def sam2_image():
    from transformers import Sam2Config, Sam2Model

    class Image(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = Sam2Model(Sam2Config())

        def forward(self, pixels, points, labels):
            out = self.model(pixel_values=pixels, input_points=points, input_labels=labels, multimask_output=True)
            return out.pred_masks, out.iou_scores

    size = 1024
    return (_eval(Image()), (torch.zeros(1, 3, size, size), torch.zeros(1, 1, 2, 2),
                             torch.ones(1, 1, 2, dtype=torch.int32)), {})


def sam2_memory_attention():
    from transformers import Sam2VideoConfig
    from transformers.models.sam2_video.modeling_sam2_video import Sam2VideoMemoryAttention

    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            config = Sam2VideoConfig()
            config._attn_implementation = "eager"
            self.attention = Sam2VideoMemoryAttention(config)

        def forward(self, now, memory, now_pos, memory_pos):
            return self.attention(now, memory, now_pos, memory_pos, num_object_pointer_tokens=16)

    tokens, held = 64 * 64, 2 * 64 * 64 + 16
    return (_eval(Step()), (torch.zeros(tokens, 1, 256), torch.zeros(held, 1, 64), torch.zeros(tokens, 1, 256),
                            torch.zeros(held, 1, 64)), {})


def sam3_vision():
    from transformers import Sam3VisionConfig
    from transformers.models.sam3.modeling_sam3 import Sam3VisionModel
    config = Sam3VisionConfig()
    config.backbone_config.num_hidden_layers = 2
    config.backbone_config.global_attn_indexes = [1]
    config._attn_implementation = "eager"
    config.backbone_config._attn_implementation = "eager"

    class Vision(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = Sam3VisionModel(config)

        def forward(self, pixels):
            return self.model(pixels).last_hidden_state

    return _eval(Vision()), (torch.zeros(1, 3, 1008, 1008),), {}


def _roi_align_stand_in():
    """torchvision is not needed for one operator: a stand-in that is exported as ONNX RoiAlign."""
    import importlib
    import types

    @torch.library.custom_op("standin::roi_align", mutates_args=())
    def roi_align(features: torch.Tensor, boxes: torch.Tensor, batch: torch.Tensor, size: int) -> torch.Tensor:
        return features.new_zeros(boxes.shape[0], features.shape[1], size, size)

    @roi_align.register_fake
    def _(features, boxes, batch, size):
        return features.new_empty(boxes.shape[0], features.shape[1], size, size)

    from torch.onnx import register_custom_op_symbolic, symbolic_helper
    register_custom_op_symbolic("standin::roi_align", symbolic_helper.parse_args("v", "v", "v", "i")(
        lambda g, features, boxes, batch, size: g.op("RoiAlign", features, boxes, batch, output_height_i=size,
                                                     output_width_i=size)), 17)

    def call(features, boxes, output_size, **_):
        size = output_size if isinstance(output_size, int) else output_size[0]
        places = torch.cat([torch.full((len(b),), i, dtype=torch.int64) for i, b in enumerate(boxes)])
        return torch.ops.standin.roi_align(features, torch.cat(list(boxes)), places, size)

    module = types.ModuleType("torchvision")
    module.ops = types.SimpleNamespace(roi_align=call)
    # By its full name: the package hands out a placeholder where torchvision is missing.
    importlib.import_module("transformers.models.sam3.modeling_sam3").torchvision = module


def _roi_align_translation():
    import onnxscript
    op = onnxscript.opset18

    def roi_align(features, boxes, batch, size: int):
        return op.RoiAlign(features, boxes, batch, output_height=size, output_width=size)

    return {torch.ops.standin.roi_align.default: roi_align}


def sam3_detector():
    _roi_align_stand_in()
    from transformers import Sam3Config
    from transformers.models.sam3.modeling_sam3 import Sam3Model
    config = Sam3Config()
    config.vision_config.backbone_config.num_hidden_layers = 2
    config.vision_config.backbone_config.global_attn_indexes = [1]
    config.text_config.num_hidden_layers = 1
    config.detr_encoder_config.num_layers = 1
    config.detr_decoder_config.num_layers = 2
    config.geometry_encoder_config.num_layers = 1

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = Sam3Model(config)

        def forward(self, pixels, ids, mask, boxes, labels):
            out = self.model(pixel_values=pixels, input_ids=ids, attention_mask=mask, input_boxes=boxes,
                             input_boxes_labels=labels)
            return out.pred_masks, out.pred_boxes, out.pred_logits

    ids = torch.ones(1, 32, dtype=torch.int64)
    return (_eval(Detector()), (torch.zeros(1, 3, 1008, 1008), ids, torch.ones_like(ids),
                                torch.full((1, 2, 4), .5), torch.ones(1, 2, dtype=torch.int64)),
            {"translation": _roi_align_translation})


def sam3_video_selection():
    """What the video model does between detector and tracker: detections above a threshold, as many as there are."""

    class Selection(nn.Module):
        def forward(self, logits, presence, boxes, masks):
            scores = logits.sigmoid() * presence.sigmoid()
            where = torch.where(scores > 0.5)
            return boxes[where[0], where[1]], masks[where[0], where[1]], scores[where[0], where[1]]

    return _eval(Selection()), (torch.zeros(1, 200), torch.zeros(1, 1), torch.zeros(1, 200, 4),
                                torch.zeros(1, 200, 288, 288)), {}


def sam3_tracker_step():
    """One step of a bounded memory: attend to the bank, then drop the oldest entry and append the new one."""
    from transformers import Sam3TrackerVideoConfig
    from transformers.models.sam3_tracker_video.modeling_sam3_tracker_video import (
        Sam3TrackerVideoMemoryAttention, Sam3TrackerVideoMemoryEncoder)

    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            config = Sam3TrackerVideoConfig()
            config._attn_implementation = "eager"
            self.attention = Sam3TrackerVideoMemoryAttention(config)
            self.encoder = Sam3TrackerVideoMemoryEncoder(config)

        def forward(self, now, now_pos, bank, bank_pos, features, masks):
            seen = self.attention(now, bank.flatten(0, 1), now_pos, bank_pos.flatten(0, 1),
                                  num_object_pointer_tokens=0)
            made, made_pos = self.encoder(features, masks)
            entry = made.flatten(2).permute(2, 0, 1)[None]
            entry_pos = made_pos.flatten(2).permute(2, 0, 1)[None]
            return seen, torch.cat([bank[1:], entry]), torch.cat([bank_pos[1:], entry_pos])

    tokens = 72 * 72
    return (_eval(Step()), (torch.zeros(tokens, 1, 256), torch.zeros(tokens, 1, 256), torch.zeros(2, tokens, 1, 64),
                            torch.zeros(2, tokens, 1, 64), torch.zeros(1, 256, 72, 72), torch.zeros(1, 1, 1152, 1152)),
            {})


MODELS = {
    "resnet": dict(make=resnet, expect="", why="convolutions only"),
    "vit": dict(make=vit, expect="", why="plain attention"),
    "bert": dict(make=bert, expect="", why="plain attention; symbolic lengths and embeddings are no blind spot"),
    "detr": dict(make=detr, expect="", why="plain attention; masks and CumSum for positions are no blind spot"),
    "depth_anything": dict(make=depth_anything, expect="", why="plain attention and convolutions", mission=0),
    "swin": dict(make=swin, expect="S4", why="shifted windows with relative positions"),
    "mamba": dict(make=mamba, expect="S5", why="selective scan, unrolled by tracing"),
    "raft": dict(make=raft, expect="S2 S5", why="look-ups by GridSample; a ConvGRU unrolled"),
    "grounding_dino": dict(make=grounding_dino, by_exporter=True, expect="S2 S4", mission=3,
                           why="deformable attention; windows and shared scores. The third of the plan, S1, was in text "
                               "masks by nonzero, which this release of transformers computes by cummax instead"),
    "sam2_image": dict(make=sam2_image, expect="S4", why="Hiera's windows"),
    "sam2_memory_attention": dict(make=sam2_memory_attention, expect="S3", why="rotary embedding of 2-D positions"),
    "sam3_vision": dict(make=sam3_vision, expect="S3 S4", why="rotary embedding and windows"),
    "sam3_detector": dict(make=sam3_detector, expect="S2 S3 S4",
                          why="as the vision part; boxes pooled by RoIAlign, prompts scattered by their lengths"),
    "sam3_video_selection": dict(make=sam3_video_selection, expect="S1 S2", why="boolean indexing of detections"),
    "sam3_tracker_step": dict(make=sam3_tracker_step, expect="S3 S5", why="rotary embedding; a memory bank in and out"),
}
