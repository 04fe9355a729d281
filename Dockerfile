# docker build -t so2docs . && docker run --rm -v "$PWD:/data" so2docs convert Posts.xml questions.jsonl.gz
FROM python:3.13-slim AS build
# What compiles is not in the image; any version of it does.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev
COPY . /source
RUN pip wheel --no-cache-dir --wheel-dir /wheels "/source[parquet]"

FROM python:3.13-slim
# The versions are those of the wheels that were built above.
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels "so2docs[parquet]" && \
    useradd --uid 1000 so2docs && mkdir /data && chown so2docs /data
USER 1000
WORKDIR /data
RUN --mount=type=bind,source=packaging/check_conversion.py,target=/check.py \
    SO2DOCS_CORE=compiled python /check.py
ENTRYPOINT ["so2docs"]
CMD ["--help"]
