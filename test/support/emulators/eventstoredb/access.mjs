/** Documented default permissions of the server, without access lists. */
const DEFAULTS = {
  $userStreamAcl: { $r: '$all', $w: '$all', $d: '$all', $mr: '$all', $mw: '$all' },
  $systemStreamAcl: { $r: '$admins', $w: '$admins', $d: '$admins', $mr: '$admins', $mw: '$admins' },
};
const ADMIN = 'admin';

/** Finds the credentials of basic authentication; null without them. */
export function findCaller(call) {
  return parseCredentials(call.metadata.get('authorization')[0]);
}

/** @param {string | undefined} header of basic authentication */
export function parseCredentials(header) {
  if (header === undefined) return null;
  const [name, password] = Buffer.from(String(header).replace(/^Basic /, ''), 'base64')
    .toString('utf8')
    .split(/:(.*)/s);
  return { name, password };
}

/**
 * Access control lists: a stream's own in its metadata, else the default of user or system streams in `$settings`.
 * @param {import('./event-log.mjs').EventLog} log
 * @param {string} user
 * @param {'read' | 'write' | 'delete'} action
 * @param {string} streamName `$all` for the whole log
 */
export function mayAccess(log, user, action, streamName) {
  if (user === ADMIN) return true;
  const isMetadata = streamName.startsWith('$$') && streamName !== '$all';
  const stream = isMetadata ? streamName.slice(2) : streamName;
  const right = `$${isMetadata ? 'm' : ''}${action[0]}`;
  const own = latestJson(log, `$$${stream}`)?.$acl;
  const kind = stream.startsWith('$') ? '$systemStreamAcl' : '$userStreamAcl';
  const settings = latestJson(log, '$settings')?.[kind];
  const roles = own?.[right] ?? settings?.[right] ?? DEFAULTS[kind][right];
  return [roles].flat().some((role) => role === '$all' || role === user);
}

/** @param {import('./event-log.mjs').EventLog} log @param {string} stream */
function latestJson(log, stream) {
  const last = log.stream(stream).at(-1);
  return last && JSON.parse(last.data.toString('utf8'));
}
