#!/usr/bin/env bash
# Holds docker-compose.yml against the Compose schema and tries deploy/Caddyfile in Caddy, with the
# programs of Debian's packages docker-compose and caddy. Needs no Docker engine.
set -euo pipefail
cd "$(dirname "$0")/.."

for program in docker-compose caddy; do
  if ! command -v "$program" >/dev/null; then
    echo "check-compose: $program is missing; apt-get install -y --no-install-recommends docker-compose caddy" >&2
    exit 1
  fi
done

empty=$(mktemp)
trap 'rm -f "$empty"' EXIT
required=(POSTGRES_PASSWORD=p EVENTSTORE_PASSWORD=e MASTER_KEY=m)

# From an empty environment and without .env, so that what is set on this machine proves nothing.
compose() {
  env -i PATH="$PATH" HOME="${HOME:-/}" "$@" \
    docker-compose --env-file "$empty" -f docker-compose.yml config --quiet
}

complaints=$(compose "${required[@]}" 2>&1) || { echo "check-compose: $complaints" >&2; exit 1; }
if [ -n "$complaints" ]; then
  echo "check-compose: $complaints" >&2
  exit 1
fi

for left_out in "${required[@]}"; do
  name=${left_out%%=*}
  given=()
  for one in "${required[@]}"; do
    if [ "$one" != "$left_out" ]; then given+=("$one"); fi
  done
  if said=$(compose "${given[@]}" 2>&1) || [[ $said != *": set $name to "* ]]; then
    echo "check-compose: without $name it must refuse and say so, but says: ${said:-nothing}" >&2
    exit 1
  fi
done

node scripts/check-proxy.mjs
echo 'docker-compose.yml is valid'
