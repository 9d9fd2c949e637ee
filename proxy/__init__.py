"""The live path: a transparent OpenAI-compatible proxy that records, takes labels and injects experiences."""
