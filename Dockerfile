# `difflogic serve` on the processor and, through Vulkan, on graphics cards: see docs/how-to/server.md.
FROM python:3.13-slim-trixie
RUN apt-get update \
    && apt-get install -y --no-install-recommends libvulkan1 libx11-6 libxext6 mesa-vulkan-drivers \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN pip install --no-cache-dir '/src[serve,sweep]' \
    && useradd --create-home difflogic && install -d -o difflogic /jobs
USER difflogic
# What a card of NVIDIA needs for Vulkan in a container; others ignore it.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,graphics,utility
VOLUME /jobs
EXPOSE 8765
STOPSIGNAL SIGTERM
CMD ["difflogic", "serve", "/jobs", "--host", "0.0.0.0"]
