const DEFAULT_PORT = 2113;

export type Credentials = { name: string; password: string };

export type ConnectionString = {
  credentials: Credentials | null;
  /** Each with its port. */
  hosts: string[];
  isTls: boolean;
  /** The certificate of the authority that the server's own is signed with. */
  caFile: string | null;
};

/** Names the protocol of a connection string as the client knows it: KurrentDB's names mean the same. */
export function renameProtocol(url: string): string {
  return url.trim().replace(/^(?:kurrentdb|kdb)(\+discover)?:/i, 'esdb$1:');
}

/** Parses where the client connects to, and as whom. Names of options are read in any case, as the client does. */
export function parseConnectionString(url: string): ConnectionString {
  const [, name, password, hosts = '', options = ''] =
    /^esdb(?:\+discover)?:\/\/(?:([^:@/?]+):([^@/?]+)@)?([^@/?]+)\/?(?:\?(.*))?$/.exec(
      renameProtocol(url),
    ) ?? [];
  const variables = new Map(
    [...new URLSearchParams(options)].map(([option, value]) => [option.toLowerCase(), value]),
  );
  return {
    credentials:
      name === undefined || password === undefined
        ? null
        : { name: decodeURIComponent(name), password: decodeURIComponent(password) },
    hosts: hosts.split(',').map((host) => (/:\d+$/.test(host) ? host : `${host}:${DEFAULT_PORT}`)),
    isTls: variables.get('tls')?.toLowerCase() !== 'false',
    caFile: variables.get('tlscafile') ?? null,
  };
}
