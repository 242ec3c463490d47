"""Write the prototxts of ResNet-50 (He et al., "Deep residual learning for image recognition", CVPR 2016).

Sixteen blocks of three convolutions, each followed by BatchNorm and Scale; the first block of a stage halves the
picture in its first convolution and in its shortcut.  Run it again after a change: the prototxts are its output.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
STAGES = ((2, 64, 3), (3, 128, 4), (4, 256, 6), (5, 512, 3))  # number, width, blocks

DATA = """layer {{
  name: "data"
  type: "Data"
  top: "data"
  top: "label"
  include {{ phase: {phase} }}
  transform_param {{ {mirror}crop_size: 224 mean_value: 104 mean_value: 117 mean_value: 123 }}
  data_param {{ source: "models/resnet50/{source}_lmdb" batch_size: {batch} backend: LMDB }}
}}
"""
INPUT = """layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 224 dim: 224 } } }
"""
LOSSES = """layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc1000" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "fc1000" bottom: "label" top: "accuracy" include { phase: TEST } }
layer {
  name: "accuracy_top5"
  type: "Accuracy"
  bottom: "fc1000"
  bottom: "label"
  top: "accuracy_top5"
  include { phase: TEST }
  accuracy_param { top_k: 5 }
}
"""
PROB = """layer { name: "prob" type: "Softmax" bottom: "fc1000" top: "prob" }
"""


def convolution(name: str, bottom: str, width: int, kernel: int, stride: int = 1, relu: bool = True) -> str:
    """A convolution without bias that keeps the size (or divides it by ``stride``), BatchNorm, Scale, and ReLU."""
    pad = f" pad: {kernel // 2}" if kernel > 1 else ""
    step = f" stride: {stride}" if stride > 1 else ""
    text = (
        f'layer {{\n  name: "{name}"\n  type: "Convolution"\n  bottom: "{bottom}"\n  top: "{name}"\n'
        f"  convolution_param {{\n    num_output: {width} kernel_size: {kernel}{pad}{step} bias_term: false\n"
        '    weight_filler { type: "msra" variance_norm: FAN_OUT }\n  }\n}\n'
        f'layer {{ name: "{name}_bn" type: "BatchNorm" bottom: "{name}" top: "{name}" }}\n'
        f'layer {{\n  name: "{name}_scale"\n  type: "Scale"\n  bottom: "{name}"\n  top: "{name}"\n'
        "  param { decay_mult: 0 }\n  param { decay_mult: 0 }\n  scale_param { bias_term: true }\n}\n"
    )
    return text + (rectify(name) if relu else "")


def rectify(blob: str) -> str:
    """ReLU in place."""
    return f'layer {{ name: "{blob}_relu" type: "ReLU" bottom: "{blob}" top: "{blob}" }}\n'


def block(name: str, bottom: str, width: int, stride: int, project: bool) -> str:
    """1x1, 3x3 and 1x1 convolutions beside a shortcut, added and rectified; its top is ``name``."""
    text, shortcut = "", bottom
    if project:
        shortcut = f"{name}_shortcut"
        text += convolution(shortcut, bottom, 4 * width, 1, stride, relu=False)
    text += convolution(f"{name}_1x1a", bottom, width, 1, stride)
    text += convolution(f"{name}_3x3", f"{name}_1x1a", width, 3)
    text += convolution(f"{name}_1x1b", f"{name}_3x3", 4 * width, 1, relu=False)
    text += f'layer {{ name: "{name}" type: "Eltwise" bottom: "{shortcut}" bottom: "{name}_1x1b" top: "{name}" }}\n'
    return text + rectify(name)


def body() -> str:
    """All layers from ``data`` to ``fc1000``."""
    text = convolution("conv1", "data", 64, 7, 2)
    text += (
        'layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"'
        " pooling_param { kernel_size: 3 stride: 2 } }\n"
    )
    bottom = "pool1"
    for stage, width, blocks in STAGES:
        for i in range(blocks):
            name = f"block{stage}{'abcdef'[i]}"
            text += block(name, bottom, width, stride=2 if i == 0 and stage > 2 else 1, project=i == 0)
            bottom = name
    text += (
        f'layer {{ name: "pool5" type: "Pooling" bottom: "{bottom}" top: "pool5"'
        " pooling_param { pool: AVE global_pooling: true } }\n"
        'layer {\n  name: "fc1000"\n  type: "InnerProduct"\n  bottom: "pool5"\n  top: "fc1000"\n'
        "  param { lr_mult: 1 decay_mult: 1 }\n  param { lr_mult: 1 decay_mult: 0 }\n"
        '  inner_product_param { num_output: 1000 weight_filler { type: "gaussian" std: 0.01 } }\n}\n'
    )
    return text


def main() -> None:
    """Write train_val.prototxt and deploy.prototxt beside this file."""
    head = '# ResNet-50; written by generate.py.\nname: "resnet50"\n'
    data = DATA.format(phase="TRAIN", mirror="mirror: true ", source="train", batch=32)
    data += DATA.format(phase="TEST", mirror="", source="test", batch=25)
    (FOLDER / "train_val.prototxt").write_text(head + data + body() + LOSSES)
    (FOLDER / "deploy.prototxt").write_text(head + INPUT + body() + PROB)


if __name__ == "__main__":
    main()
