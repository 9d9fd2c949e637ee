"""Learning compared on the simulated provider: no learning, guessed lessons, the paper's recipe, ours, an oracle."""
