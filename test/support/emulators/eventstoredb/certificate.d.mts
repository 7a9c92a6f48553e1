/** For `localhost` and 127.0.0.1; the certificate is its own authority. PEM. */
export function selfSigned(until?: Date): { cert: Buffer; key: Buffer };
