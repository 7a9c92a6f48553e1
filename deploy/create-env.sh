#!/usr/bin/env bash
# deploy/create-env.sh DOMAIN: writes the .env with which Docker Compose runs Inkpad for one shop, with secrets of its own.
# An existing one stays as it is: without its MASTER_KEY nothing that is stored can be opened.
set -euo pipefail

fail() {
  echo "deploy/create-env.sh: $1" >&2
  exit 1
}

[ $# -eq 1 ] || fail 'name your domain, such as: deploy/create-env.sh cards.example'
domain=$(printf '%s' "$1" | tr '[:upper:]' '[:lower:]')
label='[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?'
if ! [[ $domain =~ ^($label\.)+$label$ && ${#domain} -le 253 && ! $domain =~ \.[0-9]+$ ]]; then
  fail "'$1' is not a domain. Leave out https://, the port and the path: deploy/create-env.sh cards.example"
fi
if [ -e .env ] || [ -L .env ]; then
  fail 'there is an .env already, and it stays: nothing that is stored can be opened without its MASTER_KEY. To change the domain, edit DOMAIN and PUBLIC_URL in it. If nothing was ever started with it, move it away and try again.'
fi
openssl version > /dev/null || fail 'openssl is not installed; it makes the secrets'

postgres_password=$(openssl rand -hex 24)
postgres_app_password=$(openssl rand -hex 24)
redis_password=$(openssl rand -hex 24)
master_key=$(openssl rand -base64 32)
umask 077
# Two that run at once do not overwrite each other's secrets either.
set -o noclobber
cat > .env <<END
COMPOSE_FILE=docker-compose.postgres.yml
DOMAIN=$domain
PUBLIC_URL=https://$domain
PROXY_PORT=80
TLS_PORT=443
POSTGRES_PASSWORD=$postgres_password
POSTGRES_APP_PASSWORD=$postgres_app_password
REDIS_PASSWORD=$redis_password
MASTER_KEY=$master_key
END
