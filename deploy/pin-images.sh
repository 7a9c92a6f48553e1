#!/usr/bin/env bash
# Writes the digest that the registry has for each image into the compose files and the Dockerfile: after the version in
# its tag has been raised, or to take a rebuilt image of the same version with its fixes. Needs Docker and the network.
# With --check it changes nothing, needs neither, and fails where an image has no digest.
set -euo pipefail
cd "$(dirname "$0")/.."

files=(docker-compose.yml docker-compose.postgres.yml Dockerfile)
if [ "${1:-}" = --check ]; then
  ! grep -nE '^ *(image:|FROM) +[a-z0-9./-]+:[A-Za-z0-9.-]+( |$)' "${files[@]}" | grep -v 'image: inkpad:' ||
    { echo 'run deploy/pin-images.sh, and commit what it changes' >&2; exit 1; }
  exit 0
fi
images=$(sed -nE 's/^ *(image:|FROM) +([a-z0-9./-]+:[A-Za-z0-9.-]+)(@sha256:[0-9a-f]{64})?( .*)?$/\2/p' "${files[@]}" |
  grep -v '^inkpad:' | sort -u)
for image in $images; do
  digest=$(docker buildx imagetools inspect "$image" --format '{{.Manifest.Digest}}')
  [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || { echo "no digest for $image: $digest" >&2; exit 1; }
  sed -i -E "s|(^ *(image:\|FROM) +)${image//./\\.}(@sha256:[0-9a-f]{64})?|\1$image@$digest|" "${files[@]}"
  echo "$image@$digest"
done
