"""Write the prototxts of GoogLeNet (Szegedy et al., "Going deeper with convolutions", CVPR 2015).

Nine inception modules; while training, two more classifiers look at the modules 4a and 4d with a weight of 0.3.
Run it again after a change: the prototxts are its output.
"""

from pathlib import Path

FOLDER = Path(__file__).parent

# name: 1x1; 3x3 reduce, 3x3; 5x5 reduce, 5x5; pool projection
MODULES = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}
POOL_AFTER = {"3b": "pool3", "4e": "pool4"}
CLASSIFIER_AFTER = {"4a": "loss1", "4d": "loss2"}

DATA = """layer {{
  name: "data"
  type: "Data"
  top: "data"
  top: "label"
  include {{ phase: {phase} }}
  transform_param {{ {mirror}crop_size: 224 mean_value: 104 mean_value: 117 mean_value: 123 }}
  data_param {{ source: "models/googlenet/{source}_lmdb" batch_size: {batch} backend: LMDB }}
}}
"""
INPUT = """layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 10 dim: 3 dim: 224 dim: 224 } } }
"""
PARAMS = "  param { lr_mult: 1 decay_mult: 1 }\n  param { lr_mult: 2 decay_mult: 0 }\n"
NORM = "lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 }"


def layer(kind: str, name: str, bottom: str, top: str, rest: str = "") -> str:
    """One short layer on one line."""
    return f'layer {{ name: "{name}" type: "{kind}" bottom: "{bottom}" top: "{top}"{rest and " " + rest} }}\n'


def weighted(kind: str, name: str, bottom: str, block: str, options: str, bias: float) -> str:
    """A layer with Xavier weights and a constant bias."""
    return (
        f'layer {{\n  name: "{name}"\n  type: "{kind}"\n  bottom: "{bottom}"\n  top: "{name}"\n{PARAMS}'
        f'  {block} {{\n    {options}\n    weight_filler {{ type: "xavier" }}\n'
        f'    bias_filler {{ type: "constant" value: {bias:g} }}\n  }}\n}}\n'
    )


def convolution(name: str, bottom: str, width: int, kernel: int, stride: int = 1) -> str:
    """A convolution that keeps the size (or divides it by ``stride``) and ReLU in place."""
    pad = f" pad: {kernel // 2}" if kernel > 1 else ""
    step = f" stride: {stride}" if stride > 1 else ""
    options = f"num_output: {width} kernel_size: {kernel}{pad}{step}"
    return weighted("Convolution", name, bottom, "convolution_param", options, 0.2) + rectify(name)


def rectify(blob: str) -> str:
    """ReLU in place."""
    return layer("ReLU", f"{blob}_relu", blob, blob)


def pool(name: str, bottom: str, options: str) -> str:
    """A pooling layer."""
    return layer("Pooling", name, bottom, name, f"pooling_param {{ {options} }}")


def module(name: str, bottom: str) -> str:
    """Four branches beside each other, concatenated over the channels; the top is ``inception_NAME``."""
    one, three_reduce, three, five_reduce, five, projection = MODULES[name]
    top = f"inception_{name}"
    text = convolution(f"{top}_1x1", bottom, one, 1)
    text += convolution(f"{top}_3x3_reduce", bottom, three_reduce, 1)
    text += convolution(f"{top}_3x3", f"{top}_3x3_reduce", three, 3)
    text += convolution(f"{top}_5x5_reduce", bottom, five_reduce, 1)
    text += convolution(f"{top}_5x5", f"{top}_5x5_reduce", five, 5)
    text += pool(f"{top}_pool", bottom, "pool: MAX kernel_size: 3 stride: 1 pad: 1")
    text += convolution(f"{top}_pool_proj", f"{top}_pool", projection, 1)
    bottoms = " ".join(f'bottom: "{top}_{branch}"' for branch in ("1x1", "3x3", "5x5", "pool_proj"))
    return text + f'layer {{ name: "{top}" type: "Concat" {bottoms} top: "{top}" }}\n'


def classify(name: str, bottom: str, weight: float) -> str:
    """The last product, its loss, and in the test phase its accuracies."""
    text = weighted("InnerProduct", f"{name}_classifier", bottom, "inner_product_param", "num_output: 1000", 0)
    bottoms = f'bottom: "{name}_classifier" bottom: "label"'
    text += f'layer {{ name: "{name}" type: "SoftmaxWithLoss" {bottoms} top: "{name}" loss_weight: {weight:g} }}\n'
    for k in (1, 5):
        text += (
            f'layer {{ name: "{name}_top{k}" type: "Accuracy" {bottoms} top: "{name}_top{k}"'
            f" include {{ phase: TEST }} accuracy_param {{ top_k: {k} }} }}\n"
        )
    return text


def side_classifier(name: str, bottom: str) -> str:
    """The classifier that helps the lower modules to learn."""
    text = pool(f"{name}_pool", bottom, "pool: AVE kernel_size: 5 stride: 3")
    text += convolution(f"{name}_conv", f"{name}_pool", 128, 1)
    text += weighted("InnerProduct", f"{name}_fc", f"{name}_conv", "inner_product_param", "num_output: 1024", 0.2)
    text += rectify(f"{name}_fc")
    text += layer("Dropout", f"{name}_drop", f"{name}_fc", f"{name}_fc", "dropout_param { dropout_ratio: 0.7 }")
    return text + classify(name, f"{name}_fc", 0.3)


def body(train: bool) -> str:
    """All layers from ``data`` to the last pooling, with the side classifiers where ``train``."""
    halve = "pool: MAX kernel_size: 3 stride: 2"
    text = convolution("conv1", "data", 64, 7, 2) + pool("pool1", "conv1", halve)
    text += layer("LRN", "norm1", "pool1", "norm1", NORM)
    text += convolution("conv2_reduce", "norm1", 64, 1) + convolution("conv2", "conv2_reduce", 192, 3)
    text += layer("LRN", "norm2", "conv2", "norm2", NORM) + pool("pool2", "norm2", halve)
    bottom = "pool2"
    for name in MODULES:
        text += module(name, bottom)
        bottom = f"inception_{name}"
        if train and name in CLASSIFIER_AFTER:
            text += side_classifier(CLASSIFIER_AFTER[name], bottom)
        if name in POOL_AFTER:
            text += pool(POOL_AFTER[name], bottom, halve)
            bottom = POOL_AFTER[name]
    text += pool("pool5", bottom, "pool: AVE kernel_size: 7 stride: 1")
    return text + layer("Dropout", "drop5", "pool5", "pool5", "dropout_param { dropout_ratio: 0.4 }")


def main() -> None:
    """Write train_val.prototxt and deploy.prototxt beside this file."""
    head = '# GoogLeNet; written by generate.py.\nname: "googlenet"\n'
    data = DATA.format(phase="TRAIN", mirror="mirror: true ", source="train", batch=32)
    data += DATA.format(phase="TEST", mirror="", source="test", batch=50)
    (FOLDER / "train_val.prototxt").write_text(head + data + body(train=True) + classify("loss3", "pool5", 1))
    last = 'layer { name: "loss3_classifier" type: "InnerProduct" bottom: "pool5" top: "loss3_classifier"'
    last += " inner_product_param { num_output: 1000 } }\n"
    prob = layer("Softmax", "prob", "loss3_classifier", "prob")
    (FOLDER / "deploy.prototxt").write_text(head + INPUT + body(train=False) + last + prob)


if __name__ == "__main__":
    main()
