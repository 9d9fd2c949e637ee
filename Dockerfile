# Two stages: the packages are installed from the lock file, hash-checked; the second holds them and nothing to build with.
FROM python:3.11-slim AS build
WORKDIR /src
RUN python -m venv /app
COPY requirements.lock ./
RUN /app/bin/pip install --no-cache-dir --require-hashes --no-deps -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY proxy proxy
COPY tfgrpo tfgrpo
RUN pip install --no-cache-dir hatchling editables \
    && python -m pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheel . \
    && /app/bin/pip install --no-cache-dir --no-deps /wheel/*.whl

FROM python:3.11-slim
RUN useradd --system --uid 10001 --create-home tfgrpo && mkdir /data && chown tfgrpo /data
COPY --from=build /app /app
USER tfgrpo
WORKDIR /home/tfgrpo
ENV PATH=/app/bin:$PATH \
    LITELLM_LOCAL_MODEL_COST_MAP=True \
    TFGRPO_SERVER__HOST=0.0.0.0 \
    TFGRPO_STORE__URL=sqlite:////data/tfgrpo.db
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health/readiness', timeout=2)"]
# Exec form: the proxy gets SIGTERM itself and drains.
CMD ["tfgrpo-proxy"]
