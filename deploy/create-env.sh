#!/usr/bin/env bash
# deploy/create-env.sh DOMAIN: writes the .env with which Docker Compose runs Inkpad for one shop, with secrets of its own.
# An existing one stays as it is: without its MASTER_KEY nothing that is stored can be opened.
set -euo pipefail
: "${1:?name your domain: deploy/create-env.sh cards.example}"
openssl version > /dev/null
umask 077
set -o noclobber
cat > .env <<END
COMPOSE_FILE=docker-compose.postgres.yml
DOMAIN=$1
PUBLIC_URL=https://$1
PROXY_PORT=80
TLS_PORT=443
POSTGRES_PASSWORD=$(openssl rand -hex 24)
POSTGRES_APP_PASSWORD=$(openssl rand -hex 24)
REDIS_PASSWORD=$(openssl rand -hex 24)
MASTER_KEY=$(openssl rand -base64 32)
END
