"""An honest simulated provider: to try the product with no key, and to compare learning algorithms.

The rooms: `vocabulary` and `parsing` (what can be said, and what a text says), `language` (many ways to say it),
`world` and `families` (what is true, drawn from a seed), `policy` and `optimizer` (the two models, pure
functions), `provider` (one request body to one answer), `server` (the HTTP around it), `tasks` (grading).
It knows nothing of the learner, the store, or how lessons reach a prompt.
"""
