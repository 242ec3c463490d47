"""Attention and the transformer."""
