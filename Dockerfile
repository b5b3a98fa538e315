# exhume in a slim image: docker build -t exhume . && docker run --rm -v "$PWD/data:/data:ro" exhume triage /data
ARG PYTHON=3.12
FROM python:${PYTHON}-slim AS build
# The kernels need a C compiler, which stays in this stage.
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN python -m venv /opt/exhume \
 && /opt/exhume/bin/pip install --no-cache-dir --constraint constraints.txt '.[sql]' \
 && /opt/exhume/bin/pip uninstall --yes pip \
 && find /opt/exhume -name __pycache__ -prune -exec rm -rf {} +

FROM python:${PYTHON}-slim
COPY --from=build /opt/exhume /opt/exhume
ENV PATH=/opt/exhume/bin:$PATH PYTHONDONTWRITEBYTECODE=1
RUN useradd --create-home --uid 10001 exhume
USER exhume
WORKDIR /home/exhume
ENTRYPOINT ["exhume"]
CMD ["--help"]
