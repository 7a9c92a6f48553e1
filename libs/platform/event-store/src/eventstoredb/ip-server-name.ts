import { ChannelCredentials } from '@grpc/grpc-js';
import { isIP } from 'node:net';

/** The method of gRPC's credentials that prepares the connections of a channel. */
const METHOD = '_createSecureConnector';

type SecureCredentials = Record<
  typeof METHOD,
  (...options: unknown[]) => { connectionOptions?: { host?: string; servername?: string } }
>;

/**
 * Makes gRPC clients of this process name no server in the TLS handshake where they connect to an IP address: RFC 6066
 * (section 3) does not allow it, and Node.js warns about it (DEP0123). The certificate is checked against the host all
 * the same.
 */
export function omitIpServerName(): void {
  // The class is not exported.
  const prototype = Object.getPrototypeOf(ChannelCredentials.createSsl()) as SecureCredentials;
  const createSecureConnector = prototype[METHOD];
  prototype[METHOD] = function (...options) {
    const connector = createSecureConnector.apply(this, options);
    const { connectionOptions } = connector;
    if (connectionOptions?.servername !== undefined && isIP(connectionOptions.servername) !== 0)
      delete connectionOptions.servername;
    return connector;
  };
}
