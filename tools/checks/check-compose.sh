#!/usr/bin/env bash
# Validates both compose files against the Compose schema and tests deploy/Caddyfile in Caddy, with the Debian
# packages docker-compose and caddy. Needs no Docker engine.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ " ${SKIP_PARTS:-} " == *" compose "* ]]; then
  echo 'SKIP_PARTS: the compose files are not checked.' >&2
  exit 0
fi
for program in docker-compose caddy; do
  if ! command -v "$program" >/dev/null; then
    echo "check-compose: $program is missing; run: apt-get install -y --no-install-recommends docker-compose caddy" >&2
    exit 1
  fi
done

empty=$(mktemp)
trap 'rm -f "$empty"' EXIT

# With an empty environment and no .env, so that this machine's settings cannot affect the result.
compose() {
  env -i PATH="$PATH" HOME="${HOME:-/}" "$@" docker-compose --env-file "$empty" -f "$file" config
}

# @param the settings that the file asks for, each with a value
check() {
  local complaints name one left_out said resolved wanted
  complaints=$(compose "$@" 2>&1 >/dev/null) || { echo "check-compose: $file: $complaints" >&2; exit 1; }
  if [ -n "$complaints" ]; then
    echo "check-compose: $file: $complaints" >&2
    exit 1
  fi

  for left_out in "$@"; do
    name=${left_out%%=*}
    local given=()
    for one in "$@"; do
      if [ "$one" != "$left_out" ]; then given+=("$one"); fi
    done
    if said=$(compose "${given[@]}" 2>&1) || [[ $said != *": set $name to "* ]]; then
      echo "check-compose: $file: expected an error about the missing $name, but got: ${said:-nothing}" >&2
      exit 1
    fi
  done

  # A domain and ports in .env are all that TLS takes.
  resolved=$(compose "$@" DOMAIN=cards.example PROXY_PORT=80 TLS_PORT=443)
  for wanted in 'SITE_ADDRESS: cards\.example' 'published: "?80"?' 'published: "?443"?'; do
    if ! [[ $resolved =~ $wanted ]]; then
      echo "check-compose: $file: with DOMAIN, $wanted is missing" >&2
      exit 1
    fi
  done
  echo "$file is valid"
}

always=(POSTGRES_PASSWORD=p POSTGRES_APP_PASSWORD=a REDIS_PASSWORD=r MASTER_KEY=m)
file=docker-compose.yml check "${always[@]}" EVENT_STORE_PASSWORD=e EVENT_STORE_APP_PASSWORD=u
file=docker-compose.postgres.yml check "${always[@]}"

# The settings that deploy/create-env.sh writes are all that it takes.
folder=$(mktemp -d)
trap 'rm -rf "$empty" "$folder"' EXIT
create=$PWD/deploy/create-env.sh
(cd "$folder" && "$create" cards.example)
if (cd "$folder" && "$create" other.example 2>/dev/null); then
  echo "check-compose: deploy/create-env.sh overwrites an .env" >&2
  exit 1
fi
file=docker-compose.postgres.yml
if ! resolved=$(env -i PATH="$PATH" HOME="${HOME:-/}" docker-compose --env-file "$folder/.env" -f "$file" config 2>&1) ||
  ! [[ $resolved =~ SITE_ADDRESS:\ cards\.example ]]; then
  echo "check-compose: deploy/create-env.sh: $file does not accept the .env that it writes: $resolved" >&2
  exit 1
fi
echo "deploy/create-env.sh writes a complete .env"
node tools/checks/check-proxy.mjs
