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

/** The options that the client has, with what each may be. */
const OPTIONS: Record<string, [pattern: RegExp, expected: string]> = {
  tls: [/^(true|false)$/, 'true or false'],
  tlsCAFile: [/./, 'the name of a file'],
  usercertfile: [/./, 'the name of a file'],
  userkeyfile: [/./, 'the name of a file'],
  connectionName: [/./, 'a name'],
  nodePreference: [
    /^leader$/i,
    'leader, because a follower that is behind would deny what was written',
  ],
  maxDiscoverAttempts: [/^\d+$/, 'a whole number'],
  discoveryInterval: [/^\d+$/, 'a whole number of milliseconds'],
  gossipTimeout: [/^\d+$/, 'a whole number of seconds'],
  defaultDeadline: [/^\d{4,}$/, 'at least 1000 milliseconds'],
  keepAliveInterval: [/^(-1|\d+)$/, 'a whole number of milliseconds, or -1'],
  keepAliveTimeout: [/^(-1|\d+)$/, 'a whole number of milliseconds, or -1'],
  throwOnAppendFailure: [/^true$/, 'true'],
};
const OPTIONS_BY_NAME = new Map(Object.entries(OPTIONS).map(([name, o]) => [flatten(name), o]));

const ENCODE = 'must have %40, %2F and the like for special characters of name and password';
const INVISIBLE = /[\s\p{C}]/u;
const LOGIN = /^[^:]*:\/\/[^:@/?#]+:[^:@/?#]+@/;
const PARTS =
  /^esdb(?:\+discover)?:\/\/(?:([^:@/?#]+):([^:@/?#]+)@)?((?:[\w.-]+(?::\d{1,5})?,?)+)\/*(?:\?(.*))?$/;

/**
 * Finds why the client could not use a connection string, or would use it in another way than it was meant. Contains no
 * part of a password, whatever its characters make the client take for a host or an option.
 * @returns a message that continues the name of the setting; undefined: it can be used
 */
export function findConnectionStringError(url: string): string | undefined {
  const [match, name = '', password = '', , options = ''] = INVISIBLE.test(url)
    ? []
    : (PARTS.exec(renameProtocol(url)) ?? []);
  if (match === undefined || !isEncoded(name + password) || options.includes('@')) {
    return url.replace(LOGIN, '').includes('@') || !isEncoded(name + password)
      ? ENCODE
      : 'must be a connection string such as kurrentdb://db.example:2113';
  }
  for (const option of options === '' ? [] : options.split('&')) {
    const [key = '', value = ''] = option.split('=');
    const [pattern, expected] = OPTIONS_BY_NAME.get(flatten(key)) ?? [];
    if (!pattern) {
      return `has an option that does not exist, ${key}: there are ${Object.keys(OPTIONS).join(', ')}`;
    }
    if (!isEncoded(value) || !pattern.test(value)) return `${key} must be ${expected}`;
  }
  return undefined;
}

function isEncoded(text: string): boolean {
  return !/%(?![0-9a-f]{2})/i.test(text);
}

/** Names an option as the client compares names. */
function flatten(name: string): string {
  return name.trim().toLowerCase().replaceAll(/[_-]/g, '');
}

/** Names the protocol of a connection string as the client knows it: KurrentDB's names mean the same. */
export function renameProtocol(url: string): string {
  return url.trim().replace(/^(?:kurrentdb|kdb)(\+discover)?:/i, 'esdb$1:');
}

/** Parses where the client connects to, and as whom. */
export function parseConnectionString(url: string): ConnectionString {
  const [, name, password, hosts = '', options = ''] = PARTS.exec(renameProtocol(url)) ?? [];
  const values = new Map(
    [...new URLSearchParams(options)].map(([option, value]) => [flatten(option), value]),
  );
  return {
    credentials:
      name === undefined || password === undefined
        ? null
        : { name: decodeURIComponent(name), password: decodeURIComponent(password) },
    hosts: hosts.split(',').map((host) => (/:\d+$/.test(host) ? host : `${host}:${DEFAULT_PORT}`)),
    isTls: values.get('tls')?.toLowerCase() !== 'false',
    caFile: values.get('tlscafile') ?? null,
  };
}
