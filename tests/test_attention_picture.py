"""Pictures of attention: whose weights they show, with which tokens, in a file that opens."""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import recaffe
from recaffe.framework.alignment import labels
from recaffe.framework.attention_picture import draw
from recaffe.framework.cli import attention as command
from recaffe.layers.data.vocabulary import Unit, Vocabulary
from recaffe.proto import NetParameter, parse_net

from tests.command_line import run_cli, run_process
from tests.encoder_decoders import SOURCE, TARGET, attention_text, net_text, transformer_text
from tests.support import make_net

pytest.importorskip("matplotlib")

FILLER = "weight_filler { type: 'gaussian' std: 1 }"


def language_model_text(weights: bool = False) -> str:
    """A language model of one attention layer with two heads."""
    return f"""name: "lm"
    layer {{ name: 'in' type: 'Input' top: 'data' input_param {{ shape {{ dim: 1 dim: 1 }} }} }}
    layer {{ name: 'e' type: 'Embed' bottom: 'data' top: 'e'
             embed_param {{ input_dim: 256 num_output: 8 bias_term: false {FILLER} }} }}
    layer {{ name: 'look' type: 'MultiHeadAttention' bottom: 'e' top: 'y' {"top: 'w'" * weights}
             attention_param {{ num_output: 8 num_heads: 2 causal: true carry_state: true {FILLER} }} }}
    layer {{ name: 's' type: 'InnerProduct' bottom: 'y' top: 's'
             inner_product_param {{ axis: 2 num_output: 256 {FILLER} }} }}"""


NETS = {
    "weights are a top": attention_text(),
    "no top": attention_text().replace("top: 'alpha'", ""),
    "transformer": transformer_text(),
    "language model": language_model_text(),
    "GRU": net_text(),
}
ROWS, COLUMNS = ["a", "c", "b", "</s>"], ["p", "q", "r"]


def folder_with(tmp_path: Path, net: str) -> Path:
    """A folder with the net, weights and vocabularies."""
    (tmp_path / "net.prototxt").write_text(NETS[net])
    recaffe.set_random_seed(5)
    make_net(NETS[net], recaffe.TEST).save(tmp_path / "net.caffemodel")
    Vocabulary(Unit.CHAR, SOURCE).save(tmp_path / "source.json")
    Vocabulary(Unit.CHAR, TARGET).save(tmp_path / "target.json")
    return tmp_path


COMMAND = ["attention", "--model", "net.prototxt", "--weights", "net.caffemodel", "--input", "pqr"]


@pytest.fixture
def drawn(monkeypatch) -> list[Any]:
    """What the command hands to be drawn."""
    calls: list[Any] = []
    monkeypatch.setattr(command, "save_picture", lambda *args, **options: calls.append((args, options)))
    return calls


def run_by_hand(folder: Path, param: NetParameter, target: str, blob: str) -> np.ndarray:
    """A blob of the net, after one pass over the source and the true start of the target."""
    net = recaffe.Net(param, recaffe.TEST, weights=folder / "net.caffemodel")
    inputs = {
        "source": np.array([[1], [2], [3]]),
        "source_lengths": np.array([3]),
        "target_input": np.array([1, *(TARGET.index(letter) for letter in target)])[:, None],
    }
    for name, values in inputs.items():
        net.blobs[name].reshape(*values.shape)
    net.forward(**inputs)
    return np.array(net.blobs[blob].data)


@pytest.mark.parametrize("net", ["weights are a top", "no top"])
def test_the_weights_of_a_decoder_are_drawn_beside_what_it_writes(net, tmp_path, drawn):
    folder = folder_with(tmp_path, net)
    result = run_cli([*COMMAND, "--target", "acb"], folder)
    assert result.status == 0, result.err
    (((path, weights, rows, columns), options),) = drawn
    assert (path, rows, columns, options) == ("attention.png", ROWS, COLUMNS, {"title": "decoder"})
    assert weights.shape == (1, 4, 3)
    np.testing.assert_allclose(weights.sum(axis=2), 1, rtol=1e-5)
    expected = run_by_hand(folder, parse_net(attention_text()), "acb", "alpha")
    np.testing.assert_allclose(weights[0], expected[:, 0], rtol=1e-5)
    assert np.ptp(weights) > 0.1


LOOKS = {  # layer: the pieces' bottom that is looked at decides whose tokens stand at the axes
    "": ("decoder/1/cross_attention", ROWS, COLUMNS),
    "decoder/0/cross_attention": ("decoder/0/cross_attention", ROWS, COLUMNS),
    "decoder/0/self_attention": ("decoder/0/self_attention", ["<s>", "a", "c", "b"], ["<s>", "a", "c", "b"]),
    "encoder/1/self_attention": ("encoder/1/self_attention", COLUMNS, COLUMNS),
}


@pytest.mark.parametrize("layer", LOOKS)
def test_every_head_of_any_layer_of_a_transformer(layer, tmp_path, drawn):
    folder = folder_with(tmp_path, "transformer")
    name, rows, columns = LOOKS[layer]
    result = run_cli([*COMMAND, "--target=acb", *([f"--layer={layer}"] if layer else [])], folder)
    assert result.status == 0, result.err
    assert f"Attention of layer {name}" in result.lines
    (((_, weights, found_rows, found_columns), _),) = drawn
    assert (found_rows, found_columns, weights.shape) == (rows, columns, (2, len(rows), len(columns)))
    np.testing.assert_allclose(weights.sum(axis=2), 1, rtol=1e-5)
    part, piece = name.split("/", 1)
    param = parse_net(transformer_text())
    (composite,) = (each for each in param.layer if each.name == part)
    composite.transformer_param.piece.add(name=piece, top=["w"])
    expected = run_by_hand(folder, param, "acb", "w")
    np.testing.assert_allclose(weights, expected[:, 0].transpose(1, 0, 2), rtol=1e-4)
    if "decoder" in name and "self" in name:
        assert not np.triu(weights[0], 1).any()


def test_without_a_target_the_net_writes_one(tmp_path, drawn):
    folder = folder_with(tmp_path, "no top")
    result = run_cli([*COMMAND, "--beam=3", "--max-length", "7"], folder)
    assert result.status == 0, result.err
    (((_, weights, rows, _), _),) = drawn
    (folder / "in.txt").write_text("pqr\n")
    arguments = [*COMMAND[1:5], "--input=in.txt", "--beam=3", "--max-length=7"]
    written = run_cli(["translate", *arguments], folder).out.removesuffix("\n")
    assert rows == [*written, "</s>"] and f"Target: {written}" in result.lines
    expected = run_by_hand(folder, parse_net(attention_text()), written, "alpha")
    np.testing.assert_allclose(weights[0], expected[:, 0], rtol=1e-5)


def test_a_language_model_looks_at_its_own_text(tmp_path, drawn):
    folder = folder_with(tmp_path, "language model")
    result = run_cli([*COMMAND[:-1], "a \n\u00e9"], folder)
    assert result.status == 0, result.err
    (((_, weights, rows, columns), options),) = drawn
    assert rows == columns == ["a", "\u2423", "\\n", "\\xc3", "\\xa9"] and options == {"title": "look"}
    net = make_net(language_model_text(weights=True), recaffe.TEST, weights=folder / "net.caffemodel")
    net.blobs["data"].reshape(5, 1)
    net.forward(data=np.array([[97], [32], [10], [0xC3], [0xA9]]))
    np.testing.assert_allclose(weights, net.blobs["w"].data[:, 0].transpose(1, 0, 2), rtol=1e-5)


def test_labels_can_be_seen():
    vocabulary = Vocabulary(Unit.CHAR, ["<s>", " ", "\t", "$", "\u20ac"])
    assert labels(vocabulary, range(5)) == ["<s>", "\u2423", "\\t", "$", "\u20ac"]


# the file


def test_a_panel_for_each_head_shows_its_weights():
    weights = np.random.default_rng(0).uniform(size=(3, 4, 2)).astype(np.float32)
    figure = draw(weights, ["a", "b", "$c$", "</s>"], ["p", "q"], "layer_1")
    panels = [axes for axes in figure.axes if axes.images]
    assert len(panels) == 3 and figure.get_suptitle() == "layer_1"
    for head, axes in enumerate(panels):
        (image,) = axes.images
        np.testing.assert_array_equal(image.get_array(), weights[head])
        assert image.get_clim() == (0, weights.max())
        assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "$c$", "</s>"]
        assert [label.get_text() for label in axes.get_xticklabels()] == ["p", "q"]
        assert axes.get_xlabel() == f"head {head + 1}"


def test_long_texts_have_numbers_for_tokens():
    (axes, *_) = draw(np.zeros((1, 600, 500), np.float32), ["x"] * 600, ["y"] * 500, "long").axes
    texts = [label.get_text() for label in axes.get_yticklabels()]
    assert "x" not in texts and len(texts) < 20
    assert max(axes.figure.get_size_inches()) < 30


def test_a_png_opens(tmp_path):
    folder = folder_with(tmp_path, "no top")
    result = run_process([*COMMAND, "--target", "acb"], folder)
    assert result.status == 0, result.err
    assert result.lines[-1] == "Wrote attention.png"
    from PIL import Image

    with Image.open(folder / "attention.png") as picture:
        assert picture.format == "PNG"
        pixels = np.asarray(picture.convert("L"))
    assert min(pixels.shape) > 150 and pixels.min() < 100 and pixels.max() == 255


def test_an_svg_has_the_tokens_as_text(tmp_path):
    folder = folder_with(tmp_path, "transformer")
    result = run_cli([*COMMAND, "--target", "acb", "--output=picture.svg"], folder)
    assert result.status == 0, result.err
    texts = [
        element.text for element in ElementTree.parse(folder / "picture.svg").iter() if element.tag.endswith("text")
    ]
    assert [text for text in texts if text in SOURCE] == COLUMNS * 2
    assert [text for text in texts if text in TARGET] == ROWS * 2
    assert {"decoder/1/cross_attention", "head 1", "head 2"} <= set(texts)


MISTAKES = {
    "format": (["--output", "a.jpg"], 1, "a.jpg: a picture's name ends in .png or .svg"),
    "folder": (["--output", "no/a.png"], 1, "no/a.png: the picture cannot be written"),
    "layer": (["--layer", "decodr"], 1, "no attention layer 'decodr'; did you mean 'decoder'?"),
    "other layer": (["--layer", "scores"], 1, "no attention layer 'scores'; it has: decoder"),
    "input": (["--input", "px"], 1, "--input: the character 'x' is not in the vocabulary"),
    "target": (["--target", "ax"], 1, "--target: the character 'x' is not in the vocabulary"),
    "nothing": (["--input", ""], 1, "--input has no tokens"),
    "beam": (["--beam", "0"], 2, "0 is not in the range x>=1"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_in_one_message(mistake, tmp_path):
    arguments, status, message = MISTAKES[mistake]
    result = run_cli([*COMMAND, *arguments], folder_with(tmp_path, "no top"))
    assert result.status == status
    assert message in result.err and "Traceback" not in result.err


def test_a_language_model_has_no_target(tmp_path):
    result = run_cli([*COMMAND, "--target", "acb"], folder_with(tmp_path, "language model"))
    assert result.status == 1 and "--target is for an encoder-decoder; net" in result.err
    assert not (tmp_path / "attention.png").exists()


def test_a_net_without_attention(tmp_path):
    result = run_cli(COMMAND, folder_with(tmp_path, "GRU"))
    assert (result.status, "net 'pair' has no attention layer (Attention, Multi" in result.err) == (1, True)


def test_without_matplotlib(tmp_path, monkeypatch):
    folder = folder_with(tmp_path, "no top")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run_cli(COMMAND, folder)
    assert (result.status, "pictures are drawn with matplotlib, which cannot be imported" in result.err) == (1, True)
    assert "pip install matplotlib" in result.err


def test_no_weights(tmp_path):
    result = run_cli([*COMMAND[:3], "--input=p"], tmp_path)
    assert (result.status, "Missing option '--weights'" in result.err) == (2, True)
