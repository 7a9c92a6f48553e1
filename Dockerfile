# One image for all of Inkpad; the command selects the process (see docker-compose.yml for all three).

FROM node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6 AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Without install scripts: the only useful ones unpack a PostgreSQL, which is removed below.
RUN npm ci --ignore-scripts
COPY apps ./apps
COPY clients/typescript/LICENSE clients/typescript/README.md clients/typescript/mark-commonjs.mjs clients/typescript/package.json clients/typescript/tsconfig.json clients/typescript/tsconfig.cjs.json ./clients/typescript/
COPY clients/typescript/src ./clients/typescript/src
COPY clients/python/LICENSE clients/python/README.md clients/python/pyproject.toml ./clients/python/
COPY clients/python/src ./clients/python/src
COPY docs/guides ./docs/guides
COPY docs/receivers ./docs/receivers
COPY docs/pictures ./docs/pictures
COPY docs/admin-api.md docs/api.md docs/webhooks.md ./docs/
COPY CHANGELOG.md openapi.json ./
COPY libs ./libs
COPY tools ./tools
# Not --omit=optional: argon2's native part is an optional package.
RUN npm run build \
  && npm prune --omit=dev --ignore-scripts \
  && node tools/build/prune-image.mjs

FROM node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6
LABEL org.opencontainers.image.title="Inkpad" \
      org.opencontainers.image.description="Self-hosted loyalty stamp cards" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production \
    DATA_DIR=/data \
    MONITORING_HOST=0.0.0.0
WORKDIR /app
RUN install -d -o node -g node /data /checkpoints
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY data ./data
COPY package.json openapi.json openapi-admin.json LICENSE NOTICE ./
COPY deploy/health.mjs ./deploy/
# The command inkpad. The rest of it is in dist.
COPY apps/cli/start-failure.mjs apps/cli/inkpad.cjs apps/cli/launcher.mjs apps/cli/log-lines.mjs apps/cli/node-version.cjs apps/cli/npm-parent.mjs apps/cli/start-settings.mjs ./apps/cli/
RUN ln -s /app/apps/cli/inkpad.cjs /usr/local/bin/inkpad
# Files are owned by root: the process cannot modify its own code. A numeric user lets orchestrators verify
# that it is not root.
USER 1000:1000
EXPOSE 3000 9464 9465 9466
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "deploy/health.mjs"]
CMD ["node", "dist/apps/api/main.js"]
