# Two stages: everything is installed from lock files, hash-checked, in the first; the second holds that and nothing
# to build with. The program writes below /data alone, so the root file system may be read-only.
FROM python:3.11-slim-bookworm AS build
# tini-static needs no library of the second stage. Its version is the distribution's, which gets its security fixes.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/*
WORKDIR /src
RUN python -m venv /app
COPY requirements.lock requirements-build.lock ./
RUN /app/bin/pip install --no-cache-dir --no-compile --require-hashes --no-deps -r requirements.lock \
    && python -m pip install --no-cache-dir --require-hashes --no-deps -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY proxy proxy
COPY tfgrpo tfgrpo
RUN python -m pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheel . \
    && /app/bin/pip install --no-cache-dir --no-compile --no-deps --no-index --find-links /wheel tfgrpo-proxy \
    && /app/bin/pip uninstall --yes --quiet pip setuptools
# Byte code is made here, once: nobody can write it where the program runs.
RUN python -m compileall -q -j 0 /app/lib

FROM python:3.11-slim-bookworm
RUN useradd --system --uid 10001 --no-create-home --home-dir /data tfgrpo && install -d -o tfgrpo /data
COPY --from=build /usr/bin/tini-static /usr/bin/tini
COPY --from=build /app /app
# By number, so that a cluster can tell that it is not root.
USER 10001
WORKDIR /data
ENV PATH=/app/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    LITELLM_LOCAL_MODEL_COST_MAP=True \
    TFGRPO_SERVER__HOST=0.0.0.0 \
    TFGRPO_STORE__URL=sqlite:////data/tfgrpo.db
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ.get('TFGRPO_SERVER__PORT', '8000') + '/health/readiness', timeout=2)"]
# tini hands SIGTERM on, at which the proxy drains, and takes in what training leaves behind.
ENTRYPOINT ["tini", "--"]
CMD ["tfgrpo-proxy"]
