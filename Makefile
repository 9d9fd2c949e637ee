# Every target says what it does while it does it. `make setup` needs Python 3.11 or newer and nothing else.
SHELL := /bin/sh
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup serve test check lint types docs tour bench bench-groups bench-dashboard compare bench-stores faults soak fuzz live agents container lock clean

setup: $(READY)

# The packages and their hashes come from the lock files alone; uv itself is taken from there too.
# Two versions of one package cannot share an environment: OpenAI's SDK 1.x lies in a folder of its own, for tests.
$(READY): pyproject.toml requirements.lock requirements-dev.lock requirements-openai-1.lock
	@echo "setup: creating .venv with $(PYTHON)"
	@$(PYTHON) -c 'import sys; sys.exit("setup: Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; name one with: make setup PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "setup: installing the locked packages into .venv (hash-checked, a minute on a fresh machine)"
	@sed -n '/^uv==/,/[^\\]$$/p' requirements-dev.lock > .venv/uv.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r .venv/uv.lock
	@$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements-dev.lock
	@rm -rf .venv/openai-1
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --target .venv/openai-1 --no-deps --require-hashes -r requirements-openai-1.lock
	@echo "setup: installing tfgrpo-proxy and tfgrpo"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q proxy tfgrpo
	@touch $(READY)
	@echo "setup: done; $(BIN)/tfgrpo-proxy and $(BIN)/tfgrpo are ready"

serve: setup
	@echo "serve: starting the proxy with config.yaml"
	@exec $(BIN)/tfgrpo-proxy

test: setup
	@echo "test: running the test suite, two tests at a time"
	@$(BIN)/python -m pytest -n 3 --dist worksteal

check: lint types test

lint: setup
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: setup
	@$(BIN)/mypy

# The reference pages, from the settings' classes, the parsers and the OpenAPI document.
docs: setup
	@$(BIN)/python -m tests.references

tour: setup
	@$(BIN)/python docs/tour.py

# NGINX=, LITELLM= and PORTKEY= name the programs to compare with; ARGS= takes options: make bench ARGS="--quick --only 1KB".
bench: setup
	@$(BIN)/python -m benchmarks.compare $(if $(NGINX),--nginx $(NGINX)) $(if $(LITELLM),--litellm $(LITELLM)) $(if $(PORTKEY),--portkey $(PORTKEY)) $(ARGS)

bench-groups: setup
	@echo "bench-groups: a store of 1,000,000 exchanges, then groups formed from it; a few minutes"
	@$(BIN)/python -m benchmarks.groups $(ARGS)

bench-dashboard: setup
	@echo "bench-dashboard: stores of 1,000,000 exchanges, SQLite and PostgreSQL, then each page of the dashboard; ten minutes"
	@$(BIN)/python -m benchmarks.pages $(ARGS)

# SEEDS= seeds of each setting; 100 take an hour or so on two cores.
compare: setup
	@$(BIN)/python -m benchmarks.learning --seeds $(or $(SEEDS),100) $(ARGS)

bench-stores: setup
	@echo "bench-stores: exchanges and labels a second of SQLite and PostgreSQL; a minute and a half"
	@$(BIN)/python -m benchmarks.stores $(ARGS)

# ROUNDS= says how often: kills and outages hit another moment each time.
faults: setup
	@echo "faults: kills, outages, full disks, clocks set back and swaps over workers, $(or $(ROUNDS),10) rounds of half a minute"
	@for round in $$(seq $(or $(ROUNDS),10)); do $(BIN)/python -m pytest -q -p no:cacheprovider tests/proxy/test_spill.py tests/proxy/test_outages.py tests/proxy/test_faults.py tests/proxy/test_workers.py tests/proxy/test_recording.py tests/proxy/test_label_writer.py || exit 1; done

soak: setup
	@echo "soak: 100,000 requests, 2,000 aborted streams, and a store that takes nothing; a few minutes"
	@$(BIN)/python -m benchmarks.soak $(ARGS)

fuzz: setup
	@echo "fuzz: $(or $(EXAMPLES),500) requests of each kind to each call of the admin API and feedback; minutes"
	@FUZZ_EXAMPLES=$(or $(EXAMPLES),500) $(BIN)/python -m pytest tests/proxy/test_openapi.py

container: setup
	@echo "container: the install and start steps of the Dockerfile, without an engine; a few minutes"
	@$(BIN)/python -m tests.outside_container

# SEEDS= says how many runs of each case; 200 take about twelve minutes on two cores.
live: setup
	@echo "live: simulated live traffic, $(or $(SEEDS),200) runs of each case, two at a time"
	@$(BIN)/python -m benchmarks.live --seeds $(or $(SEEDS),200) $(ARGS)

# The newest of each, into .venv/agents (2 GB); ARGS="--only codex" takes some. npm and PyPI are asked for them.
agents: setup
	@echo "agents: installs agent programs, runs each direct and through the proxy against a scripted model; some minutes"
	@$(BIN)/python -m tests.agents $(ARGS)

# Writes the lock files anew. No index address may stand in them. The container gets what requirements.lock names, so the
# small extra is in it.
lock: setup
	@echo "lock: resolving pyproject.toml"
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url --extra otlp pyproject.toml -o requirements.lock
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url --group dev -c requirements.lock pyproject.toml -o requirements-dev.lock
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url --group openai-1 -o requirements-openai-1.lock
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url --group build -c requirements.lock -o requirements-build.lock

clean:
	rm -rf .venv data .pytest_cache .mypy_cache .ruff_cache
