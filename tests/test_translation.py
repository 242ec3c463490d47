"""Text to text: what is carried, what is searched, and the command translate."""

import io
import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import recaffe
from recaffe.framework.beam_search import log_softmax
from recaffe.framework.strict_backend import StrictBackend
from recaffe.framework.transduction import Transducer
from recaffe.framework.translation import Translator
from recaffe.layers.data.vocabulary import Unit, Vocabulary

from tests.command_line import run_cli
from tests.encoder_decoders import SOURCE, TARGET, attention_text, net_text, transformer_text
from tests.support import make_net

PAD, START, END = range(3)

TEXTS = {"GRU": net_text, "AttentionLSTM": attention_text, "transformer": transformer_text}
PADDINGS = ["LENGTHS", "MASK", "NO_PADDING"]


def pair(padding: str = "LENGTHS", seed: int = 24, kind: str = "GRU", **options) -> recaffe.Net:
    """The net, always with the same weights for a seed."""
    recaffe.set_random_seed(seed)
    return make_net(TEXTS[kind](padding, **options), recaffe.TEST)


def translator(padding: str = "LENGTHS", seed: int = 24, kind: str = "GRU") -> Translator:
    return Translator(pair(padding, seed, kind), Vocabulary(Unit.CHAR, SOURCE), Vocabulary(Unit.CHAR, TARGET))


def log_probability(net: recaffe.Net, source: list[int], target: list[int]) -> float:
    """log P of a whole target, of a net that reads it in one pass from its true start."""
    T = len(target)
    inputs = {"source": np.array(source)[:, None], "target_input": np.array([START, *target[:-1]])[:, None]}
    if "source_lengths" in net.inputs:
        inputs["source_lengths"] = np.array([len(source)])
    if "source_mask" in net.inputs:
        inputs["source_mask"] = np.ones((len(source), 1))
    net.reset_states()
    for name, values in inputs.items():
        net.blobs[name].reshape(*values.shape)
    scores = log_softmax(net.forward(**inputs)["scores"].reshape(T, -1).astype(np.float64))
    return float(scores[np.arange(T), target].sum())


SOURCES = ["pq", "rrsq", "p", "srqp", "qs"]


def encoded(texts):
    return [Vocabulary(Unit.CHAR, SOURCE).encode(text) for text in texts]


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("padding", PADDINGS)
def test_the_best_of_all_texts_is_found(kind, padding):
    model, whole = translator(padding, kind=kind), pair(padding, kind=kind, carry=False)
    found = model.translate(encoded(SOURCES), model.search(beam=200, length_penalty=1.0, n_best=3), max_length=5)
    for source, texts in zip(encoded(SOURCES), found, strict=True):
        expected = []
        for length in range(5):
            for text in itertools.product((3, 4, 5), repeat=length):
                score = log_probability(whole, list(source), [*text, END]) / ((5 + length + 1) / 6)
                expected.append((score, "".join(TARGET[token] for token in text)))
        expected.sort(reverse=True)
        assert [text.text for text in texts] == [text for _, text in expected[:3]]
        np.testing.assert_allclose([text.score for text in texts], [score for score, _ in expected[:3]], atol=1e-4)


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("padding", PADDINGS)
def test_greedy_is_the_best_token_of_the_whole_prefix_run_again(kind, padding):
    model, whole = translator(padding, kind=kind), pair(padding, kind=kind, carry=False)
    found = model.translate(encoded(SOURCES), model.search(beam=1), max_length=8)
    for source, (best,) in zip(encoded(SOURCES), found, strict=True):
        tokens: list[int] = []
        while len(tokens) < 8 and END not in tokens:
            allowed = {token: log_probability(whole, list(source), [*tokens, token]) for token in (END, 3, 4, 5)}
            tokens.append(max(allowed, key=allowed.get))
        assert best.tokens == tuple(token for token in tokens if token != END)


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("beam", [1, 3])
def test_a_batch_gives_what_each_source_gives_alone(beam, kind):
    model = translator(kind=kind)
    search = model.search(beam, n_best=beam)
    together = model.translate(encoded(SOURCES), search)
    for source, texts in zip(SOURCES, together, strict=True):
        (alone,) = model.translate(encoded([source]), search)
        assert [text.text for text in alone] == [text.text for text in texts]
        np.testing.assert_allclose([text.score for text in alone], [text.score for text in texts], rtol=1e-4)


def test_the_most_tokens_by_default():
    model = translator()
    net = model.transducer.net
    net.params["scores"][0].data[...] = 0
    net.params["scores"][1].data[...] = [0, 0, -50, 9, 0, 0]  # it never ends
    ((short,), (longer,)) = model.translate(encoded(["p", "pqrs"]), model.search(beam=1))
    assert (short.text, longer.text) == ("a" * 12, "a" * 18)


def test_an_empty_source_gives_an_empty_text():
    model = translator()
    found = model.translate(encoded(["", "pq", ""]), model.search(beam=2, n_best=2))
    assert [len(texts) for texts in found] == [1, 2, 1]
    assert found[0][0].text == found[2][0].text == ""
    assert found[1] == model.translate(encoded(["pq"]), model.search(beam=2, n_best=2))[0]
    assert model.translate([], model.search()) == []


def test_the_source_ends_where_its_vocabulary_has_an_end():
    with_end = ["<pad>", "p", "q", "r", "</s>"]
    model = Translator(pair(), Vocabulary(Unit.CHAR, with_end), Vocabulary(Unit.CHAR, TARGET))
    search = model.search(beam=2, n_best=2)
    plain = translator()
    assert model.translate([np.array([1, 2])], search, 9) == plain.translate([np.array([1, 2, 4])], search, 9)


def test_the_encoder_runs_once(monkeypatch):
    model, runs = translator(), []
    for name in ("es", "encoder", "decoder"):
        layer = model.transducer.net.layer_dict[name]
        forward = layer.forward
        monkeypatch.setattr(layer, "forward", lambda *args, name=name, f=forward: (runs.append(name), f(*args)))
    model.translate(encoded(SOURCES), model.search(beam=2), max_length=6)
    assert (runs.count("es"), runs.count("encoder")) == (1, 1)
    assert runs.count("decoder") > 1 and runs[:2] == ["es", "encoder"]


@pytest.mark.parametrize("kind", TEXTS)
def test_device_arrays_are_not_mixed_with_host_arrays(kind):
    recaffe.set_random_seed(24)
    net, plain = make_net(TEXTS[kind](), recaffe.TEST, backend=StrictBackend()), translator(kind=kind)
    for name, blobs in plain.transducer.net.params.items():
        for blob, source in zip(net.params[name], blobs, strict=True):
            blob.data[...] = net.backend.to_device(source.data)
    model = Translator(net, plain.source, plain.target)
    search = model.search(beam=3, n_best=2)
    found, expected = (each.translate(encoded(SOURCES), search) for each in (model, plain))
    assert [[text.text for text in texts] for texts in found] == [[text.text for text in texts] for texts in expected]


PLAIN = net_text("NO_PADDING")
NETS = {
    "no source": (PLAIN.replace("'source'", "'x'"), "net 'pair' has no input 'source'"),
    "no target": (PLAIN.replace("'target_input'", "'y'"), "net 'pair' has no input 'target_input'"),
    "other input": (
        net_text().replace("source_lengths", "lengths"),
        "the input 'lengths', expected source, source_lengths, source_mask, target_input alone",
    ),
    "nothing carried": (net_text("NO_PADDING", carry=False), "that reads target_input carries a state"),
    "positions not carried": (
        transformer_text("NO_PADDING").replace("positional_encoding_param { carry_state: true }", ""),
        "layer 'pt' .*: it depends on the steps before, but carries nothing",
    ),
    "keys not carried": (
        transformer_text("NO_PADDING").replace("memory_padding: NO_PADDING carry_state: true", ""),
        "layer 'decoder/0/self_attention' .*: it depends on the steps before, but carries nothing",
    ),
    "two outputs": (
        net_text("NO_PADDING", ending="layer { name: 'p' type: 'Power' bottom: 'decoded' top: 'p' }"),
        "net 'pair' has the outputs p, scores; say which holds the scores",
    ),
}


@pytest.mark.parametrize("net", NETS)
def test_a_net_of_another_kind(net):
    text, message = NETS[net]
    with pytest.raises(recaffe.RecaffeError, match=message):
        transducer = Transducer(make_net(text, recaffe.TEST))
        transducer.read([np.array([1, 2]), np.array([2, 1])])
        transducer.feed(np.full((1, 2), START))


def test_an_output_of_another_shape():
    net = make_net(
        net_text(ending="layer { name: 'sum' type: 'Reduction' bottom: 'decoded' top: 'sum' }"), recaffe.TEST
    )
    vocabularies = Vocabulary(Unit.CHAR, SOURCE), Vocabulary(Unit.CHAR, TARGET)
    with pytest.raises(
        recaffe.RecaffeError, match="output 'sum' of net 'pair' scores 1 tokens, but the vocabulary has 6"
    ):
        Translator(net, *vocabularies, scores="sum")
    transducer = Transducer(net, "sum")
    transducer.read([np.array([1])])
    with pytest.raises(recaffe.RecaffeError, match=r"output 'sum' has shape \(\), expected T x N x K with 1 x 1"):
        transducer.feed(np.array([[START]]))


def test_without_lengths_sources_are_of_one_length():
    with pytest.raises(recaffe.RecaffeError, match="sources of 1 and 2 tokens cannot be read together"):
        Transducer(pair("NO_PADDING")).read(encoded(["pq", "p"]))


def test_scores_that_are_no_numbers():
    model = translator()
    model.transducer.net.params["scores"][1].data[...] = np.nan
    with pytest.raises(recaffe.RecaffeError, match="output 'scores' of net 'pair' has NaN"):
        model.translate(encoded(["p"]), model.search())


# the command


@pytest.fixture
def model(tmp_path) -> Path:
    """A folder with the net, its weights and its vocabularies."""
    (tmp_path / "pair.prototxt").write_text(net_text())
    pair().save(tmp_path / "pair.caffemodel")
    Vocabulary(Unit.CHAR, SOURCE).save(tmp_path / "source.json")
    Vocabulary(Unit.CHAR, TARGET).save(tmp_path / "target.json")
    (tmp_path / "in.txt").write_text("\n".join(SOURCES) + "\n")
    return tmp_path


COMMAND = ["translate", "--model", "pair.prototxt", "--weights", "pair.caffemodel"]


def run_with_input(arguments: list[str], folder: Path, text: bytes) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "recaffe", *arguments]
    return subprocess.run(command, cwd=folder, input=text, capture_output=True, timeout=120)


def expected_lines(texts=SOURCES, **options) -> list[str]:
    model = translator()
    return [best.text for best, *_ in model.translate(encoded(texts), model.search(**options))]


def test_lines_of_standard_input_are_translated_in_order(model):
    texts = [*SOURCES[:2], "", *SOURCES[2:]]
    done = run_with_input([*COMMAND, "--batch", "2"], model, "\r\n".join(texts).encode())
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().splitlines() == expected_lines(texts)
    assert expected_lines(texts)[2] == "" and len(set(expected_lines(texts))) > 2
    assert b"Vocabulary of the source: source.json" in done.stderr


def test_files_are_read_and_written(model):
    result = run_cli([*COMMAND, "--input", "in.txt", "--output", "out.txt", "--beam=1"], model)
    assert (result.status, result.out) == (0, ""), result.err
    assert (model / "out.txt").read_text().splitlines() == expected_lines(beam=1)
    (model / "s.json").write_bytes((model / "source.json").read_bytes())
    (model / "source.json").unlink()
    again = run_cli(
        [*COMMAND, "--input=in.txt", "-source_vocabulary=s.json", "-target_vocabulary", "target.json"], model
    )
    assert again.out.splitlines() == expected_lines()


def test_the_n_best_are_ranked(model):
    result = run_cli([*COMMAND, "--input", "in.txt", "--n-best", "2", "--beam", "3", "--length-penalty", "1"], model)
    found = translator()
    expected = found.translate(encoded(SOURCES), found.search(3, 1.0, 2))
    lines = [line.split("\t") for line in result.out.splitlines()]
    assert [line[0] for line in lines] == ["1", "2"] * len(SOURCES)
    assert [line[2] for line in lines] == [text.text for texts in expected for text in texts]
    scores = [text.score for texts in expected for text in texts]
    np.testing.assert_allclose([float(line[1]) for line in lines], scores, atol=2e-4)


def test_a_text_stays_on_its_line(model):
    Vocabulary(Unit.CHAR, [*TARGET[:3], "\n", "b", "c"]).save(model / "target.json")
    result = run_cli([*COMMAND, "--input", "in.txt"], model)
    assert result.out == "".join(f"{line.replace('a', ' ')}\n" for line in expected_lines())
    assert " " in result.out


MISTAKES = {
    "beam": (["--beam", "0"], 2, "0 is not in the range x>=1"),
    "n-best": (["--n-best", "5"], 2, "--n-best 5 needs a beam of 5 or more; --beam is 4"),
    "penalty": (["--length-penalty", "-1"], 1, "length_penalty is -1, expected 0"),
    "batch": (["--batch", "0"], 2, "0 is not in the range x>=1"),
    "max-length": (["--max-length", "0"], 2, "0 is not in the range x>=1"),
    "no input": (["--input", "no.txt"], 1, "no.txt: cannot be read"),
    "output": (["--output", "no/out.txt"], 1, "--output no/out.txt: cannot be written"),
    "same file": (["--output", "./in.txt"], 2, "--input and --output are the same file"),
    "scores": (["--scores", "q"], 1, "net 'pair' has no blob 'q'"),
    "weights": (["--weights", "no.caffemodel"], 1, "no.caffemodel"),
    "vocabulary": (["--source-vocabulary", "no.json"], 1, "no.json: the vocabulary cannot be read"),
    "other vocabulary": (["--target-vocabulary", "source.json"], 1, "scores 6 tokens, but the vocabulary has 5"),
    "no start": (["--target-vocabulary", "letters.json"], 1, "target vocabulary: the vocabulary has no token '<s>'"),
    "unknown token": (["--input", "unknown.txt"], 1, "unknown.txt:2: the character 'x' is not in the vocabulary"),
    "encoding": (["--input", "latin.txt"], 1, "latin.txt:1: byte 0xe9 is not UTF-8"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_in_one_message(mistake, model):
    Vocabulary(Unit.CHAR, "abcdef").save(model / "letters.json")
    (model / "unknown.txt").write_text("pq\npx\n")
    (model / "latin.txt").write_bytes(b"p\xe9\n")
    arguments, status, message = MISTAKES[mistake]
    result = run_cli([*COMMAND, "--input", "in.txt", *arguments], model)
    assert result.status == status
    assert message in result.err and "Traceback" not in result.err
    assert result.out == ""
    assert (model / "in.txt").read_text().splitlines() == SOURCES


def test_no_weights_no_vocabulary(model):
    result = run_cli(COMMAND[:3], model)
    assert (result.status, "Missing option '--weights'" in result.err) == (2, True)
    (model / "target.json").unlink()
    result = run_cli(COMMAND, model)
    assert (result.status, "there is no target.json; give the model's vocabulary with --target-" in result.err) == (
        1,
        True,
    )


def test_an_unknown_token_on_standard_input_names_its_line(model, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"p\nq\nrx\n")))
    result = run_cli([*COMMAND, "--batch=2"], model)
    assert (result.status, result.out.splitlines()) == (1, expected_lines(["p", "q"]))
    assert "standard input:3: the character 'x' is not in the vocabulary" in result.err


def test_interrupted_while_it_waits_for_lines(model):
    command = [sys.executable, "-m", "recaffe", *COMMAND, "--batch=1"]
    with subprocess.Popen(
        command, cwd=model, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write(b"pq\n")
        process.stdin.flush()
        line = process.stdout.readline().decode()
        assert line == expected_lines(["pq"])[0] + "\n"
        os.kill(process.pid, signal.SIGINT)
        rest, err = process.communicate(timeout=60)
    assert (process.returncode, rest) == (130, b"")
    assert err.decode().endswith("recaffe: error: interrupted\n") and b"Traceback" not in err
