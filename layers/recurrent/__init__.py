"""Recurrent layers: the shared loop, and the cells that run on it."""

from . import continuation_indicator, fork_lstm, gru, lstm, lstm_unit, recurrent, rnn  # noqa: F401
