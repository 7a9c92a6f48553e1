<?php
// A whole receiver of Inkpad's webhooks, for PHP 8.1 or newer, without any package.
//
//   WEBHOOK_SECRET=whsec_… php -S 127.0.0.1:8787 receiver.php   receives (in production your web server does)
//   php receiver.php                                            handles what was received
//
// Each event is stored before the response and handled afterwards, so that none is lost when a program is killed,
// and none is handled again when it comes twice. A folder does for that; in your database it is one statement:
//   insert into webhook_events (id, body) values (?, ?) on conflict do nothing

declare(strict_types=1);

const BODY_LIMIT = 1024 * 1024;
const TOLERANCE_SECONDS = 300;
const TRY_AGAIN_SECONDS = 60;

/** Your code. What it throws is tried again a minute later, so it has to be able to run twice. */
function handle(array $event): void
{
    echo "handled {$event['id']} {$event['type']}\n";
}

/** Takes a secret (whsec_…) or a public key (whpk_…). */
function verify(string $secret, string $id, string $timestamp, string $signatures, string $body): bool
{
    if (!ctype_digit($timestamp) || abs(time() - (int) $timestamp) > TOLERANCE_SECONDS) {
        return false;
    }
    [$kind, $encodedKey] = explode('_', $secret, 2);
    $key = base64_decode($encodedKey, true);
    $signed = "$id.$timestamp.$body";
    foreach (explode(' ', $signatures) as $one) {
        [$version, $encoded] = explode(',', $one, 2) + ['', ''];
        $signature = (string) base64_decode($encoded, true);
        $isValid = $kind === 'whpk'
            ? $version === 'v1a' && strlen($signature) === SODIUM_CRYPTO_SIGN_BYTES
                && sodium_crypto_sign_verify_detached($signature, $signed, $key)
            : $version === 'v1' && hash_equals(hash_hmac('sha256', $signed, $key, true), $signature);
        if ($isValid) {
            return true;
        }
    }
    return false;
}

function receive(string $folder): int
{
    if ($_SERVER['REQUEST_METHOD'] !== 'POST') {
        return 405;
    }
    $secret = getenv('WEBHOOK_SECRET') ?: throw new RuntimeException('Set WEBHOOK_SECRET to your subscription\'s');
    // The signature is over these bytes: parse nothing before it is verified.
    $body = file_get_contents('php://input', false, null, 0, BODY_LIMIT + 1);
    if (strlen($body) > BODY_LIMIT) {
        return 413;
    }
    $id = $_SERVER['HTTP_WEBHOOK_ID'] ?? '';
    $timestamp = $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
    if (!verify($secret, $id, $timestamp, $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? '', $body)) {
        return 401;
    }
    // It becomes the name of a file.
    if (!preg_match('/\A\w{1,64}\z/', $id)) {
        return 400;
    }
    store($folder, $id, $body);
    return 204;
}

/** Leaves an event that is there already as it is: this is a duplicate. */
function store(string $folder, string $id, string $body): void
{
    if (is_file("$folder/$id.json")) {
        return;
    }
    $draft = "$folder/$id.json." . bin2hex(random_bytes(8));
    $file = fopen($draft, 'xb');
    if ($file === false || fwrite($file, $body) !== strlen($body) || !fsync($file)) {
        throw new RuntimeException("$draft could not be written");
    }
    fclose($file);
    // The file has this name only once it is whole, and the first one keeps it.
    $isThere = @link($draft, "$folder/$id.json") || is_file("$folder/$id.json");
    unlink($draft);
    if (!$isThere) {
        throw new RuntimeException("$folder/$id.json could not be made");
    }
}

/** One after the other. */
function work(string $folder): never
{
    $notBefore = [];
    while (true) {
        clearstatcache();
        foreach (glob("$folder/*.json") as $path) {
            $done = substr($path, 0, -strlen('json')) . 'done';
            if (is_file($done) || ($notBefore[$path] ?? 0) > time()) {
                continue;
            }
            try {
                handle(json_decode(file_get_contents($path), true, flags: JSON_THROW_ON_ERROR));
                touch($done);
            } catch (Throwable $error) {
                fwrite(STDERR, "$path will be tried again: $error\n");
                $notBefore[$path] = time() + TRY_AGAIN_SECONDS;
            }
        }
        sleep(1);
    }
}

$folder = getenv('EVENTS_DIR') ?: 'events';
if (!is_dir($folder) && !mkdir($folder, 0o755, true) && !is_dir($folder)) {
    throw new RuntimeException("$folder could not be made");
}
if (PHP_SAPI === 'cli') {
    work($folder);
}
try {
    http_response_code(receive($folder));
} catch (Throwable $error) {
    error_log((string) $error);
    http_response_code(500); // Inkpad tries again.
}
