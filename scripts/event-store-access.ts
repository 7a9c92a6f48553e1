import { parseArgs } from 'node:util';
import {
  BACKWARDS,
  EventStoreDBClient,
  jsonEvent,
  type JSONRecordedEvent,
} from '@eventstore/db-client';
import { randomUUID } from 'node:crypto';
import { ConfigError } from '#kernel/config.js';
import { messageOf } from '#kernel/errors.js';
import { EventStoreDbConnection } from '#event-store/eventstoredb-connection.js';
import { faultOf } from '#event-store/eventstoredb-faults.js';
import { runScript } from './run-script.js';

const ALL = '$all';
const SETTINGS = '$settings';
const ADMINS = '$admins';

type Roles = string | string[];
type Acl = Partial<Record<'$r' | '$w' | '$d' | '$mr' | '$mw', Roles>>;
type Settings = { $userStreamAcl?: Acl; $systemStreamAcl?: Acl };

/**
 * Lets one user of EventStoreDB, who is no administrator, do what Inkpad does, and nobody but administrators anything
 * else: read `$all`, and read and append to streams. Deleting and truncating streams is left to administrators. May be
 * run again, also for further users.
 */
runScript(async () => {
  const user = userIn(process.argv.slice(2));
  const url = process.env['EVENT_STORE_ADMIN_URL'];
  if (url === undefined) {
    throw new ConfigError(
      'EVENT_STORE_ADMIN_URL must be set: as EVENT_STORE_URL, with the user and password of an administrator.',
    );
  }
  const connection = new EventStoreDbConnection(url, 'EVENT_STORE_ADMIN_URL');
  try {
    await connection.ask((client) => grantLog(client, user));
    await connection.ask((client) => grantStreams(client, user));
  } catch (error) {
    if (faultOf(error) === 'other') throw error;
    throw new ConfigError(
      `EventStoreDB does not do this at EVENT_STORE_ADMIN_URL: ${messageOf(error) || 'access denied'}`,
      { cause: error },
    );
  } finally {
    await connection.dispose();
  }
  console.log(
    `${user} may read ${ALL}, and read and append to streams; all else is left to administrators`,
  );
});

function userIn(args: string[]): string {
  const usage = 'Usage: npm run event-store-access -- --user <name of a user that exists>';
  try {
    const { user } = parseArgs({ args, options: { user: { type: 'string' } } }).values;
    if (user !== undefined && user !== '' && !user.startsWith('$')) return user;
  } catch (cause) {
    throw new ConfigError(usage, { cause });
  }
  throw new ConfigError(usage);
}

async function grantLog(client: EventStoreDBClient, user: string): Promise<void> {
  const { metadata } = await client.getStreamMetadata(ALL);
  const { acl } = metadata ?? {};
  const readRoles = rolesWith(typeof acl === 'object' ? acl.readRoles : undefined, user);
  await client.setStreamMetadata(ALL, {
    ...metadata,
    acl: { ...(typeof acl === 'object' && acl), readRoles },
  });
}

/** The default of all streams, because ours are too many for a list each. */
async function grantStreams(client: EventStoreDBClient, user: string): Promise<void> {
  const settings = await settingsIn(client);
  const known = settings.$userStreamAcl ?? {};
  const $userStreamAcl = {
    ...known,
    $r: rolesWith(known.$r, user),
    $w: rolesWith(known.$w, user),
    $d: rolesWith(known.$d),
    $mr: rolesWith(known.$mr, user),
    $mw: rolesWith(known.$mw),
  };
  const event = jsonEvent({
    id: randomUUID(),
    type: 'update-default-acl',
    data: { ...settings, $userStreamAcl },
  });
  await client.appendToStream(SETTINGS, event);
}

async function settingsIn(client: EventStoreDBClient): Promise<Settings> {
  try {
    const reading = client.readStream(SETTINGS, {
      direction: BACKWARDS,
      fromRevision: 'end',
      maxCount: 1,
    });
    for await (const { event } of reading) return (event as JSONRecordedEvent).data as Settings;
  } catch (error) {
    if (faultOf(error) !== 'missing') throw error;
  }
  return {};
}

/** Administrators and those users, beside whoever else was let in by name: what was open to all is closed. */
function rolesWith(known: Roles | undefined, ...users: string[]): string[] {
  const named = [known ?? []].flat().filter((role) => role !== '$all');
  return [...new Set([ADMINS, ...named, ...users])];
}
