"""Text from a recurrent language model: the state is carried, sampling is what was asked for."""

import numpy as np
import pytest
import recaffe
from recaffe.framework.generation import Sampler, StepNet, sample
from recaffe.layers.data.vocabulary import Unit, Vocabulary
from recaffe.proto import parse_net

from tests.command_line import run_cli, run_process
from tests.support import make_net

TOKENS = ["<unk>", "a", "b", "c", "\n"]

LSTM = "recurrent_param { num_output: 6 num_layers: 2 weight_filler { type: 'uniform' min: -3 max: 3 } }"


def net_text(T: int = 1, recurrent: str = LSTM, cont: bool = True, prob: bool = True, K: int = len(TOKENS)) -> str:
    """A language model of K tokens with random weights."""
    softmax = "layer { name: 'p' type: 'Softmax' bottom: 's' top: 'p' softmax_param { axis: 2 } }"
    return f"""name: "tiny"
    layer {{ name: 'd' type: 'Input' top: 'data' {"top: 'cont'" * cont} input_param {{ shape {{ dim: {T} dim: 1 }} }} }}
    layer {{ name: 'e' type: 'Embed' bottom: 'data' top: 'e' embed_param {{ input_dim: {K} num_output: 4
             weight_filler {{ type: 'gaussian' std: 1 }} }} }}
    layer {{ name: 'l' type: 'LSTM' bottom: 'e' {"bottom: 'cont'" * cont} top: 'l' {recurrent} }}
    layer {{ name: 's' type: 'InnerProduct' bottom: 'l' top: 's'
             inner_product_param {{ axis: 2 num_output: {K} weight_filler {{ type: 'gaussian' std: 2 }} }} }}
    {softmax * prob}"""


def tiny(**options) -> recaffe.Net:
    """The model, always with the same weights."""
    recaffe.set_random_seed(3)
    return make_net(net_text(**options), recaffe.TEST)


@pytest.mark.parametrize("prob", [True, False])
def test_the_best_tokens_are_those_of_the_whole_prefix_run_again(prob):
    greedy = Sampler(top_k=1)
    got = list(sample(StepNet(tiny(prob=prob)), [1, 2, 3], 12, greedy, np.random.default_rng(0)))
    prefix = [1, 2, 3]
    whole = tiny(prob=prob)
    for token in got:
        whole.reset_states()
        cont = np.ones((len(prefix), 1))
        cont[0] = 0
        for name in ("data", "cont"):
            whole.blobs[name].reshape(len(prefix), 1)
        scores = next(iter(whole.forward(data=np.array(prefix)[:, None], cont=cont).values()))
        assert token == scores[-1, 0].argmax()
        prefix.append(token)
    assert len(set(got)) > 2


def test_scores_are_carried_and_forgotten():
    step_net = StepNet(tiny())
    together = step_net.feed(np.array([[1], [2], [3]]))
    step_net.restart()
    one_by_one = [step_net.feed(np.array([[token]])) for token in (1, 2, 3)][-1]
    np.testing.assert_allclose(one_by_one, together, atol=1e-5)
    step_net.restart()
    assert np.abs(step_net.feed(np.array([[3]])) - together).max() > 1e-2


def test_probabilities_and_scores_are_the_same_up_to_a_constant():
    a, b = (StepNet(tiny(prob=prob)).feed(np.array([[1], [2]]))[0] for prob in (True, False))
    np.testing.assert_allclose(a - a[0], b - b[0], atol=1e-5)


def test_several_streams_go_their_own_ways():
    step_net = StepNet(tiny())
    both = step_net.feed(np.array([[1, 3], [2, 2]]))
    for n, tokens in enumerate(([1, 2], [3, 2])):
        step_net.restart()
        np.testing.assert_allclose(step_net.feed(np.array(tokens)[:, None])[0], both[n], atol=1e-5)


def test_a_net_that_carries_its_state_needs_no_cont():
    carried = LSTM.replace("num_output", "carry_state: true num_output")
    got = StepNet(tiny(cont=False, recurrent=carried))
    expected = StepNet(tiny())
    for token in (1, 2, 3):
        np.testing.assert_allclose(got.feed(np.array([[token]])), expected.feed(np.array([[token]])), atol=1e-6)


FILLER = "weight_filler { type: 'gaussian' std: 0.7 }"
BLOCKS = {
    "sines": ("layer { name: 'p' type: 'PositionalEncoding' bottom: 'e' top: 'x' CARRY }", ""),
    "rotary": ("layer { name: 'p' type: 'Dropout' bottom: 'e' top: 'x' }", "rotary: true norm_first: true"),
    "window": ("layer { name: 'p' type: 'PositionalEncoding' bottom: 'e' top: 'x' CARRY }", "window: 5"),
}


def transformer(blocks: str, carry: bool) -> recaffe.Net:
    """A language model of two decoder layers, always with the same weights."""
    position, options = BLOCKS[blocks]
    carried = "carry_state: true" if carry else ""
    recaffe.set_random_seed(7)
    text = f"""name: "blocks"
    layer {{ name: 'd' type: 'Input' top: 'data' input_param {{ shape {{ dim: 1 dim: 1 }} }} }}
    layer {{ name: 'e' type: 'Embed' bottom: 'data' top: 'e' embed_param {{ input_dim: 5 num_output: 8 {FILLER} }} }}
    {position.replace("CARRY", f"positional_encoding_param {{ {carried} }}")}
    layer {{ name: 'b' type: 'TransformerEncoder' bottom: 'x' top: 'h' transformer_param {{ num_layers: 2 num_output: 8
             num_heads: 2 causal: true {options} {carried} {FILLER} }} }}
    layer {{ name: 's' type: 'InnerProduct' bottom: 'h' top: 's'
             inner_product_param {{ axis: 2 num_output: 5 {FILLER} }} }}"""
    return make_net(text, recaffe.TEST)


@pytest.mark.parametrize("sampler", [Sampler(top_k=1), Sampler(temperature=1.3)], ids=["greedy", "drawn"])
@pytest.mark.parametrize("blocks", BLOCKS)
def test_a_transformer_with_a_cache_writes_what_it_does_with_the_whole_prefix_run_again(blocks, sampler):
    prompt = [1, 2, 3]
    got = list(sample(StepNet(transformer(blocks, True)), prompt, 40, sampler, np.random.default_rng(5)))
    whole, rng, tokens = transformer(blocks, False), np.random.default_rng(5), list(prompt)
    while len(tokens) < len(prompt) + 40:
        whole.blobs["data"].reshape(len(tokens), 1)
        scores = whole.forward(data=np.array(tokens)[:, None])["s"][-1, 0].astype(np.float64)
        tokens.append(sampler.choose(scores, rng))
    assert got == tokens[len(prompt) :]
    assert len(set(got)) > 1


@pytest.mark.parametrize("blocks", BLOCKS)
def test_a_transformer_with_a_cache_scores_as_in_one_pass(blocks):
    tokens = np.random.default_rng(2).integers(5, size=(30, 3))
    step_net, whole = StepNet(transformer(blocks, True)), transformer(blocks, False)
    pieces = [tokens[:4], *np.split(tokens[4:], 26)]
    got = np.array([step_net.feed(piece) for piece in pieces])
    whole.blobs["data"].reshape(30, 3)
    np.testing.assert_allclose(got, whole.forward(data=tokens)["s"][3:], atol=2e-5)


def test_every_token_but_the_prompt_goes_through_a_transformer_once(monkeypatch):
    net = transformer("sines", True)
    layer, read = net.layer_dict["b/0/self_attention"], []
    forward = layer.forward
    monkeypatch.setattr(layer, "forward", lambda bottom, top: (read.append(len(bottom[0].data)), forward(bottom, top)))
    list(sample(StepNet(net), [1, 2, 3, 4], 6, Sampler(), np.random.default_rng(0)))
    assert read == [4, 1, 1, 1, 1, 1]


def test_a_transformer_that_carries_nothing():
    with pytest.raises(recaffe.RecaffeError, match="no layer of net 'blocks' carries a state"):
        StepNet(transformer("sines", False)).feed(np.array([[1]]))


def forgets(layer: str, text: str) -> bool:
    """Whether the net of this text is refused because of ``layer``, once it has read a token."""
    net = make_net(text, recaffe.TEST)
    net.reset_states()
    try:
        StepNet(net).feed(np.array([[1]]))
    except recaffe.RecaffeError as error:
        assert f"layer {layer!r}" in str(error) and "set carry_state: true" in str(error)
        return True
    return False


@pytest.mark.parametrize(
    "layer",
    [
        "type: 'PositionalEncoding'",
        "type: 'MultiHeadAttention' attention_param { num_output: 4 }",
        "type: 'MultiHeadAttention' attention_param { num_output: 4 causal: true window: 2 }",
        "type: 'MultiHeadAttention' bottom: 'carried' attention_param { num_output: 4 cross: true causal: true }",
        "type: 'Attention' bottom: 'carried' attention_param { num_output: 4 window: 3 }",
        "type: 'RNN' recurrent_param { num_output: 4 cont_bottom: false }",
        "type: 'LSTM' recurrent_param { num_output: 4 direction: REVERSE }",
        "type: 'AttentionGRU' bottom: 'carried' recurrent_param { num_output: 4 } attention_param { num_output: 3 }",
        """type: 'Recurrent' recurrent_param { step {
           input: 'x_t' output: 'h_t' state { name: 'h' next: 'h_t' shape { dim: 4 } }
           layer { name: 'add' type: 'Eltwise' bottom: 'x_t' bottom: 'h' top: 'h_t' } } }""",
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_one_layer_that_forgets_among_others_that_do_not(layer, first):
    before, after = ("e", "carried") if first else ("carried", "e")
    own = layer.replace("'carried'", "'e'")
    text = f"""
    layer {{ name: 'd' type: 'Input' top: 'data' input_param {{ shape {{ dim: 1 dim: 1 }} }} }}
    layer {{ name: 'e' type: 'Embed' bottom: 'data' top: 'e' embed_param {{ input_dim: 5 num_output: 4 }} }}
    layer {{ name: 'carried' type: 'RNN' bottom: 'e' top: 'carried'
             recurrent_param {{ num_output: 4 carry_state: true }} }}
    layer {{ name: 'own' bottom: '{before}' {own} top: 'own' }}
    layer {{ name: 'sum' type: 'Eltwise' bottom: 'own' bottom: '{after}' top: 'sum' }}
    layer {{ name: 's' type: 'InnerProduct' bottom: 'sum' top: 's' inner_product_param {{ axis: 2 num_output: 5 }} }}"""
    assert forgets("own", text)


@pytest.mark.parametrize("layer", ["MultiHeadAttention", "Attention"])
def test_a_layer_that_looks_at_all_of_a_memory_need_not_carry_it(layer):
    cross = "cross: true" if layer == "MultiHeadAttention" else ""
    text = f"""
    layer {{ name: 'd' type: 'Input' top: 'data' input_param {{ shape {{ dim: 1 dim: 1 }} }} }}
    layer {{ name: 'e' type: 'Embed' bottom: 'data' top: 'e' embed_param {{ input_dim: 5 num_output: 4 }} }}
    layer {{ name: 'carried' type: 'RNN' bottom: 'e' top: 'carried'
             recurrent_param {{ num_output: 4 carry_state: true }} }}
    layer {{ name: 'own' type: '{layer}' bottom: 'carried' bottom: 'e' attention_param {{ num_output: 4 {cross} }}
             top: 'own' }}
    layer {{ name: 's' type: 'InnerProduct' bottom: 'own' top: 's' inner_product_param {{ axis: 2 num_output: 5 }} }}"""
    assert not forgets("own", text)


SCORES = np.log(np.array([0.1, 0.2, 0.3, 0.4]))


def shares(sampler: Sampler) -> np.ndarray:
    """How often each token is chosen."""
    rng = np.random.default_rng(1)
    return np.bincount([sampler.choose(SCORES.copy(), rng) for _ in range(4000)], minlength=4) / 4000


def test_sampling_follows_the_probabilities():
    np.testing.assert_allclose(shares(Sampler()), [0.1, 0.2, 0.3, 0.4], atol=0.03)
    sharper = np.array([1, 4, 9, 16]) / 30
    np.testing.assert_allclose(shares(Sampler(temperature=0.5)), sharper, atol=0.03)
    np.testing.assert_allclose(shares(Sampler(top_k=2)), [0, 0, 3 / 7, 4 / 7], atol=0.03)
    np.testing.assert_allclose(shares(Sampler(never=[3])), [1 / 6, 2 / 6, 3 / 6, 0], atol=0.03)
    np.testing.assert_array_equal(shares(Sampler(top_k=1, never=[3])), [0, 0, 1, 0])
    np.testing.assert_allclose(shares(Sampler(top_k=9)), [0.1, 0.2, 0.3, 0.4], atol=0.03)


def test_a_seed_gives_the_same_tokens_again():
    step_net = StepNet(tiny())
    runs = [list(sample(step_net, [1], 40, Sampler(), np.random.default_rng(seed))) for seed in (5, 5, 6)]
    assert runs[0] == runs[1] != runs[2]


@pytest.fixture
def model(tmp_path):
    """model.prototxt, its weights and its vocabulary, in a folder."""
    recaffe.set_random_seed(3)
    (tmp_path / "model.prototxt").write_text(net_text())
    make_net(net_text(), recaffe.TEST).save(tmp_path / "model.caffemodel")
    Vocabulary(Unit.CHAR, TOKENS).save(tmp_path / "vocabulary.json")
    return tmp_path


COMMAND = ["generate", "--model", "model.prototxt", "--weights", "model.caffemodel", "--length", "30", "--seed", "4"]


def test_the_command_writes_text(model):
    first = run_process([*COMMAND, "--prompt", "ab"], model)
    assert first.status == 0, first.err
    assert first.out.startswith("ab")
    assert len(first.out) == 2 + 30 + 1
    assert set(first.out) <= set("abc\n")
    step_net = StepNet(recaffe.Net(model / "model.prototxt", model / "model.caffemodel", recaffe.TEST))
    tokens = sample(step_net, [1, 2], 30, Sampler(never=[0]), np.random.default_rng(4))
    assert first.out == "ab" + Vocabulary(Unit.CHAR, TOKENS).decode(tokens) + "\n"
    assert run_cli([*COMMAND, "--prompt", "ab"], model).out == first.out
    assert run_cli([*COMMAND, "--prompt", "ab", "--temperature", "0.3"], model).out != first.out
    greedy = [run_cli([*COMMAND, "-top_k", "1", f"-seed={seed}"], model).out for seed in (1, 2)]
    assert greedy[0] == greedy[1]


def test_bytes_need_no_vocabulary(model):
    text = net_text(K=256)
    (model / "vocabulary.json").unlink()
    (model / "model.prototxt").write_text(text)
    recaffe.Net(parse_net(text), recaffe.TEST).save(model / "model.caffemodel")
    result = run_process([*COMMAND, "--prompt", "h\u00e9"], model)
    assert result.status == 0, result.err
    assert result.out.startswith("h\u00e9")
    raw = run_process([*COMMAND, "--prompt", "h\udcff"], model)  # an argument that is not UTF-8
    assert (raw.status, raw.out[:2]) == (0, "h\ufffd"), raw.err


def test_any_terminal_will_do(model, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    tokens = ["<unk>", "\u20ac", "b", "c", "\n"]
    Vocabulary(Unit.CHAR, tokens).save(model / "vocabulary.json")
    result = run_process([*COMMAND, "--prompt", "\u20acb"], model)
    assert (result.status, result.out[:2]) == (0, "?b"), result.err


MISTAKES = {
    "temperature": (["--temperature", "0"], 1, "temperature is 0, expected more than 0"),
    "top-k": (["--top-k", "0"], 2, "0 is not in the range x>=1"),
    "length": (["--length", "0"], 2, "0 is not in the range x>=1"),
    "prompt": (["--prompt", ""], 1, "the prompt has no tokens"),
    "output": (["--output", "q"], 1, "net 'tiny' has no blob 'q'"),
    "weights": (["--weights", "no.caffemodel"], 1, "no.caffemodel"),
    "vocabulary": (["--vocabulary", "no.json"], 1, "no.json: the vocabulary cannot be read"),
    "other vocabulary": (
        ["--vocabulary", "two.json"],
        1,
        "output 'p' of net 'tiny' scores 5 tokens, but the vocabulary has 2",
    ),
    "unknown token": (["--vocabulary", "two.json", "--prompt", "x"], 1, "--prompt: the character 'x' is not in the"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_in_one_message(mistake, model):
    Vocabulary(Unit.CHAR, ["a", "\n"]).save(model / "two.json")
    arguments, status, message = MISTAKES[mistake]
    result = run_cli([*COMMAND, *arguments], model)
    assert result.status == status
    assert message in result.err
    assert result.out == ""


def test_no_weights(model):
    result = run_cli(COMMAND[:3], model)
    assert (result.status, "Missing option '--weights'" in result.err) == (2, True)


NETS = {
    "no data": (net_text().replace("'data'", "'x'"), "net 'tiny' has no input 'data' for the tokens"),
    "other input": (net_text().replace("'cont'", "'mask'"), "the input 'mask', expected data and cont"),
    "no state": (net_text(cont=False), "no layer of net 'tiny' carries a state from pass to pass"),
    "two outputs": (
        net_text() + "layer { name: 'q' type: 'Softmax' bottom: 's' top: 'q' softmax_param { axis: 2 } }",
        "net 'tiny' has the outputs p, q; say which holds the scores",
    ),
}


@pytest.mark.parametrize("net", NETS)
def test_a_net_of_another_kind(net):
    text, message = NETS[net]
    with pytest.raises(recaffe.RecaffeError, match=message):
        StepNet(make_net(text, recaffe.TEST)).feed(np.array([[1]]))
