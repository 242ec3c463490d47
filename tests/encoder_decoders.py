"""Encoder-decoders with random weights as prototxts, and their tokens."""

SOURCE = ["<pad>", "p", "q", "r", "s"]
TARGET = ["<pad>", "<s>", "</s>", "a", "b", "c"]

FILLER = "weight_filler { type: 'uniform' min: -1.5 max: 1.5 }"


def inputs_text(padding: str) -> str:
    """The inputs and the embeddings, in mixed order."""
    extra = {"LENGTHS": "top: 'source_lengths'", "MASK": "top: 'source_mask'", "NO_PADDING": ""}[padding]
    shape = {"LENGTHS": "shape { dim: 1 }", "MASK": "shape { dim: 1 dim: 1 }", "NO_PADDING": ""}[padding]
    return f"""name: "pair"
    layer {{ name: 't' type: 'Input' top: 'target_input' input_param {{ shape {{ dim: 1 dim: 1 }} }} }}
    layer {{ name: 'et' type: 'Embed' bottom: 'target_input' top: 'et'
             embed_param {{ input_dim: 6 num_output: 4 bias_term: false {FILLER} }} }}
    layer {{ name: 's' type: 'Input' top: 'source' {extra} input_param {{ shape {{ dim: 1 dim: 1 }} {shape} }} }}
    layer {{ name: 'es' type: 'Embed' bottom: 'source' top: 'es'
             embed_param {{ input_dim: 5 num_output: 4 bias_term: false {FILLER} }} }}"""


def scores_text(decoded: str = "decoded") -> str:
    """The scores."""
    return f"""layer {{ name: 'scores' type: 'InnerProduct' bottom: '{decoded}' top: 'scores'
        inner_product_param {{ axis: 2 num_output: 6 {FILLER.replace("1.5", "4")} }} }}"""


def padding_bottom(padding: str) -> str:
    """The bottom that says what of the source is padding."""
    return {"LENGTHS": "bottom: 'source_lengths'", "MASK": "bottom: 'source_mask'", "NO_PADDING": ""}[padding]


def net_text(padding: str = "LENGTHS", carry: bool = True, ending: str = "") -> str:
    """GRU to GRU."""
    return f"""{inputs_text(padding)}
    layer {{ name: 'encoder' type: 'GRU' bottom: 'es' {padding_bottom(padding)} top: 'encoded' top: 'h'
             recurrent_param {{ num_output: 6 expose_hidden: true padding: {padding} {FILLER} }} }}
    layer {{ name: 'decoder' type: 'GRU' bottom: 'et' bottom: 'h' top: 'decoded' top: 'h_end'
             recurrent_param {{ num_output: 6 expose_hidden: true {FILLER} {"carry_state: true" * carry} }} }}
    {scores_text()}
    layer {{ name: 'unused' type: 'Silence' bottom: 'encoded' bottom: 'h_end' }} {ending}"""


def attention_text(padding: str = "LENGTHS", carry: bool = True) -> str:
    """GRU to AttentionLSTM, whose weights are an output too."""
    return f"""{inputs_text(padding)}
    layer {{ name: 'encoder' type: 'GRU' bottom: 'es' {padding_bottom(padding)} top: 'encoded'
             recurrent_param {{ num_output: 5 padding: {padding} cont_bottom: false {FILLER} }} }}
    layer {{ name: 'decoder' type: 'AttentionLSTM' bottom: 'et' bottom: 'encoded' {padding_bottom(padding)}
             top: 'decoded' top: 'context' top: 'alpha'
             recurrent_param {{ num_output: 6 {FILLER} {"carry_state: true" * carry} }}
             attention_param {{ num_output: 6 padding: {padding} {FILLER} }} }}
    layer {{ name: 'both' type: 'Concat' bottom: 'decoded' bottom: 'context' top: 'both' concat_param {{ axis: 2 }} }}
    {scores_text("both")}"""


def transformer_text(padding: str = "LENGTHS", carry: bool = True) -> str:
    """A transformer."""
    carried = "carry_state: true" * carry
    sizes = f"num_layers: 2 num_output: 4 num_heads: 2 num_hidden: 8 {FILLER}"
    return f"""{inputs_text(padding)}
    layer {{ name: 'ps' type: 'PositionalEncoding' bottom: 'es' top: 'ps' }}
    layer {{ name: 'encoder' type: 'TransformerEncoder' bottom: 'ps' {padding_bottom(padding)} top: 'encoded'
             transformer_param {{ {sizes} padding: {padding} }} }}
    layer {{ name: 'pt' type: 'PositionalEncoding' bottom: 'et' top: 'pt' positional_encoding_param {{ {carried} }} }}
    layer {{ name: 'decoder' type: 'TransformerDecoder' bottom: 'pt' bottom: 'encoded' {padding_bottom(padding)}
             top: 'decoded' transformer_param {{ {sizes} memory_padding: {padding} {carried} }} }}
    {scores_text()}"""
