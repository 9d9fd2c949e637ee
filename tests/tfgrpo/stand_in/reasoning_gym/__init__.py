"""A small package with the face of reasoning-gym, for tests where that is not installed (it needs a C compiler)."""
