#!/usr/bin/env bash
# Validates docker-compose.yml against the Compose schema and tests deploy/Caddyfile in Caddy, with the
# Debian packages docker-compose and caddy. Needs no Docker engine.
set -euo pipefail
cd "$(dirname "$0")/.."

for program in docker-compose caddy; do
  if ! command -v "$program" >/dev/null; then
    echo "check-compose: $program is missing; run: apt-get install -y --no-install-recommends docker-compose caddy" >&2
    exit 1
  fi
done

empty=$(mktemp)
trap 'rm -f "$empty"' EXIT
required=(POSTGRES_PASSWORD=p POSTGRES_APP_PASSWORD=a EVENT_STORE_PASSWORD=e EVENT_STORE_APP_PASSWORD=u REDIS_PASSWORD=r MASTER_KEY=m)

# With an empty environment and no .env, so that this machine's settings cannot affect the result.
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
    echo "check-compose: expected an error about the missing $name, but got: ${said:-nothing}" >&2
    exit 1
  fi
done

node scripts/check-proxy.mjs
echo 'docker-compose.yml is valid'
