"""Fused versions of ``@fusable`` functions, a folder a device."""
