# nab-sync as an image: `make image` builds it with podman or docker. Build context: the checkout; .dockerignore says what of it.

FROM docker.io/library/node:24-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --loglevel=error
COPY src src
COPY build build
RUN npm run --silent build \
 && npm sbom --package-lock-only --omit=dev --sbom-format=spdx > dist/nab-sync.spdx.json

# The same Debian as above, so that node finds the libraries that it was built against; without npm and what else comes with it.
FROM docker.io/library/debian:bookworm-slim
ARG VERSION=0.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="nab-sync" \
      org.opencontainers.image.description="Brings the NonAdminBackups of OADP back after a disaster: at once, and only where they belong" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      name="nab-sync" \
      version="${VERSION}" \
      summary="Brings the NonAdminBackups of OADP back after a disaster" \
      io.k8s.display-name="nab-sync" \
      io.k8s.description="Brings the NonAdminBackups of OADP back after a disaster"
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /build/dist/nab-sync.mjs /build/dist/nab-sync.spdx.json /app/
COPY LICENSE /licenses/LICENSE
# The build ends here if node lacks a library, or the bundle a module.
RUN ["node", "/app/nab-sync.mjs", "--version"]
# A number, so that Kubernetes can see that it is not root. OpenShift puts a number of its own in its place.
USER 65532:65532
ENTRYPOINT ["node", "/app/nab-sync.mjs"]
CMD ["run"]
