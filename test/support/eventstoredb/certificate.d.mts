/** For `localhost` and 127.0.0.1; the certificate is its own authority. PEM. */
export function selfSigned(): { cert: Buffer; key: Buffer };
