"""Adapters: each carries messages over one wire and knows nothing of operations, load or storage."""
