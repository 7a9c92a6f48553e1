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
import { ANSWER_WITHIN_MS, faultOf, within } from '#event-store/eventstoredb-faults.js';
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
    await within(grantLog(connection.client, user), ANSWER_WITHIN_MS);
    await within(grantStreams(connection.client, user), ANSWER_WITHIN_MS);
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
  const readRoles = withRole(typeof acl === 'object' ? acl.readRoles : undefined, user);
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
    $r: withRole(known.$r, user),
    $w: withRole(known.$w, user),
    $d: closed(known.$d),
    $mr: withRole(known.$mr, user),
    $mw: closed(known.$mw),
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
    if ((error as { type?: string }).type !== 'stream-not-found') throw error;
  }
  return {};
}

/** Administrators and the user, beside whoever else was let in by name. */
function withRole(roles: Roles | undefined, user: string): string[] {
  return [...new Set([ADMINS, ...named(roles), user])];
}

/** What was open to all is closed; whoever was let in by name stays. */
function closed(roles: Roles | undefined): string[] {
  return [...new Set([ADMINS, ...named(roles)])];
}

function named(roles: Roles | undefined): string[] {
  return [roles ?? []].flat().filter((role) => role !== '$all');
}
