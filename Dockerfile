# Two stages: the first installs what the lock files name, hash-checked, and builds our wheel; the second holds the result
# and nothing to build or install with. `make container` runs these very steps without an engine.
FROM python:3.11-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY requirements.lock requirements-build.lock ./
RUN python -m venv /app && /app/bin/pip install --require-hashes --no-deps -r requirements.lock
RUN python -m venv /build && /build/bin/pip install --require-hashes --no-deps -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY proxy proxy
COPY tfgrpo tfgrpo
RUN /build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheel . \
    && /app/bin/pip install --no-deps /wheel/*.whl \
    && /app/bin/pip uninstall --yes --quiet pip setuptools

FROM python:3.11-slim-bookworm
# tini passes SIGTERM on and buries what training leaves behind. Debian keeps one version at a time: pinned, it would break.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends tini && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /data --no-create-home tfgrpo \
    && mkdir /data && chown 10001:10001 /data
COPY --from=build /app /app
USER 10001:10001
# The only place that is written to: the root file system can be read-only (--read-only, with --tmpfs /tmp).
WORKDIR /data
VOLUME /data
ENV PATH=/app/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    LITELLM_LOCAL_MODEL_COST_MAP=True \
    TFGRPO_SERVER__HOST=0.0.0.0 \
    TFGRPO_SERVER__PORT=8000 \
    TFGRPO_STORE__URL=sqlite:////data/tfgrpo.db
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f\"http://127.0.0.1:{os.environ['TFGRPO_SERVER__PORT']}/health/readiness\", timeout=2)"]
# Exec form: the signal reaches the proxy, which stops taking requests, lets streams finish and writes its records.
ENTRYPOINT ["tini", "--"]
CMD ["tfgrpo-proxy"]
