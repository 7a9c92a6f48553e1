import { isDeepStrictEqual } from 'node:util';
import {
  BACKWARDS,
  EventStoreDBClient,
  jsonEvent,
  type JSONRecordedEvent,
} from '@eventstore/db-client';
import { randomUUID } from 'node:crypto';
import { ConfigError } from '#platform/kernel/config-error.js';
import { readSecretFiles } from '#configuration/secret-files.js';
import { EventStoreDbConnection } from '#platform/event-store/eventstoredb/eventstoredb-connection.js';
import { classifyError } from '#platform/event-store/eventstoredb/eventstoredb-errors.js';
import { createUser, parseUser } from './moves/event-store-user.js';
import { parseProgram } from './programs.js';
import { getHosts, runProgram } from './run-program.js';

const ALL = '$all';
const SETTINGS = '$settings';
const ADMINS = '$admins';

type Roles = string | string[];
type Acl = Partial<Record<'$r' | '$w' | '$d' | '$mr' | '$mw', Roles>>;
type Settings = { $userStreamAcl?: Acl; $systemStreamAcl?: Acl };

/**
 * Lets one user of EventStoreDB, who is no administrator, do what Inkpad does, and nobody but administrators anything
 * else: read `$all`, and read and append to streams. Deleting and truncating streams is left to administrators. By
 * default the user of EVENT_STORE_URL, who is created if need be. May be run again, also for further users: what is
 * granted already is not written again.
 */
const { user: named } = parseProgram('event-store-access').opts<{ user?: string }>();
runProgram(async () => {
  const { settings, errors } = readSecretFiles(process.env);
  if (errors.length > 0) throw new ConfigError(errors.join('\n'));
  const url = settings['EVENT_STORE_ADMIN_URL'];
  if (url === undefined) {
    throw new ConfigError(
      'EVENT_STORE_ADMIN_URL must be set: as EVENT_STORE_URL, with the user and password of an administrator.',
    );
  }
  const connection = new EventStoreDbConnection(url, 'EVENT_STORE_ADMIN_URL');
  console.error(`KurrentDB: ${getHosts(url)}`);
  try {
    const user = named ?? (await createLoginUser(url, settings['EVENT_STORE_URL']));
    await connection.call((client) => grantLog(client, user));
    await connection.call((client) => grantStreams(client, user));
    console.log(
      `${user} may read ${ALL}, and read and append to streams; everything else needs an administrator`,
    );
  } catch (error) {
    if (error instanceof ConfigError || classifyError(error) === 'other') throw error;
    throw new ConfigError(
      `KurrentDB (EventStoreDB) refuses this at EVENT_STORE_ADMIN_URL: ${(error instanceof Error && error.message) || 'access denied'}`,
      { cause: error },
    );
  } finally {
    await connection.dispose();
  }
});

async function createLoginUser(adminUrl: string, url: string | undefined): Promise<string> {
  const user = parseUser(url ?? '', 'EVENT_STORE_URL');
  const admin = parseUser(adminUrl, 'EVENT_STORE_ADMIN_URL');
  if (user.name === admin.name) {
    throw new ConfigError(
      `EVENT_STORE_URL names the administrator ${admin.name}: choose a user that only Inkpad uses.`,
    );
  }
  await createUser(adminUrl, user);
  return user.name;
}

async function grantLog(client: EventStoreDBClient, user: string): Promise<void> {
  const { metadata } = await client.getStreamMetadata(ALL);
  const { acl } = metadata ?? {};
  const readers = typeof acl === 'object' ? acl.readRoles : undefined;
  const readRoles = addRoles(readers, user);
  if (isDeepStrictEqual(readers, readRoles)) return;
  await client.setStreamMetadata(ALL, {
    ...metadata,
    acl: { ...(typeof acl === 'object' && acl), readRoles },
  });
}

/** Grants access by the default of all streams, because ours are too many for a list each. */
async function grantStreams(client: EventStoreDBClient, user: string): Promise<void> {
  const settings = await readSettings(client);
  const acl = settings.$userStreamAcl ?? {};
  const $userStreamAcl = {
    ...acl,
    $r: addRoles(acl.$r, user),
    $w: addRoles(acl.$w, user),
    $d: addRoles(acl.$d),
    $mr: addRoles(acl.$mr, user),
    $mw: addRoles(acl.$mw),
  };
  if (isDeepStrictEqual(acl, $userStreamAcl)) return;
  const event = jsonEvent({
    id: randomUUID(),
    type: 'update-default-acl',
    data: { ...settings, $userStreamAcl },
  });
  await client.appendToStream(SETTINGS, event);
}

async function readSettings(client: EventStoreDBClient): Promise<Settings> {
  try {
    const reading = client.readStream(SETTINGS, {
      direction: BACKWARDS,
      fromRevision: 'end',
      maxCount: 1,
    });
    for await (const { event } of reading) return (event as JSONRecordedEvent).data as Settings;
  } catch (error) {
    if (classifyError(error) !== 'missing') throw error;
  }
  return {};
}

/** Administrators and those users, beside whoever else was let in by name: what was open to all is closed. */
function addRoles(roles: Roles | undefined, ...users: string[]): string[] {
  const named = [roles ?? []].flat().filter((role) => role !== '$all');
  return [...new Set([ADMINS, ...named, ...users])];
}
