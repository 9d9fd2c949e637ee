"""Training-Free GRPO as a library: a dataset and a grader in, an experience set out."""
