"""The nets that are timed: the models' own prototxts with fixed random input in place of data."""

from pathlib import Path

from recaffe.framework.net_state import filter_layers
from recaffe.proto import TEST, TRAIN, NetParameter, parse_net, read_net

MODELS = Path(__file__).parent.parent / "models"

MLP = """name: "mlp"
layer { name: "data" type: "Data" top: "data" top: "label" }
layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
  inner_product_param { num_output: 256 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param { num_output: 128 weight_filler { type: "xavier" } } }
layer { name: "relu2" type: "ReLU" bottom: "ip2" top: "ip2" }
layer { name: "ip3" type: "InnerProduct" bottom: "ip2" top: "ip3"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip3" bottom: "label" top: "loss" }
"""

# name: batch size, shape of one example, classes
NETS = {
    "mlp": (16, (784,), 10),
    "lenet": (64, (1, 28, 28), 10),
    "cifar10_quick": (100, (3, 32, 32), 10),
    "caffenet": (16, (3, 227, 227), 1000),
    "googlenet": (8, (3, 224, 224), 1000),
    "resnet50": (4, (3, 224, 224), 1000),
}


def training_net(name: str) -> NetParameter:
    """The net in its training form, its data layer replaced by Input."""
    batch, shape, _ = NETS[name]
    param = parse_net(MLP, "mlp") if name == "mlp" else read_net(MODELS / name / "train_val.prototxt")
    param.state.phase = TRAIN
    param, _ = filter_layers(param, [""] * len(param.layer))
    data = param.layer[0]
    data.Clear()
    data.name, data.type = "data", "Input"
    data.top.extend(["data", "label"])
    data.input_param.shape.add().dim.extend((batch, *shape))
    data.input_param.shape.add().dim.append(batch)
    return param


def inference_net(name: str) -> NetParameter:
    """The training net's layers in the test phase, up to the scores (no loss, no labels)."""
    param = training_net(name)
    param.state.phase = TEST
    data = param.layer[0]
    del data.top[1:]
    del data.input_param.shape[1:]
    layers = [layer for layer in param.layer if "label" not in layer.bottom]
    del param.layer[:]
    param.layer.extend(layers)
    return param
