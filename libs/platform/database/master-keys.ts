import { Injectable, type OnModuleInit } from '@nestjs/common';
import { randomBytes } from 'node:crypto';
import { Pool } from 'pg';
import { ConfigError } from '#platform/kernel/config-error.js';
import { PlatformConfig } from '#platform/kernel/platform-config.js';
import { getKeyId, Keyring, createMasterKey, type MasterKey } from '#platform/kernel/keyring.js';
import { queryAtStartup } from './connection.js';
import { ProcessLink } from './process-link.js';
import { assertNoUnfinishedRestore } from './unfinished-restore.js';

/** A column whose values are sealed with the master key. Names are SQL identifiers. */
export type SealedColumn = {
  /** Label in the progress of a rotation. */
  name: string;
  table: string;
  column: string;
  id: string;
  idType: 'bigint' | 'bytea' | 'text' | 'uuid';
  purpose: string;
  getContext: (id: unknown) => string;
};

const DATA_KEYS = 'data keys';
const getDataKeyContext = (purpose: unknown): string => `data key ${String(purpose)}`;

export const DATA_KEYS_COLUMN: SealedColumn = {
  name: 'data keys',
  table: 'data_keys',
  column: 'sealed',
  id: 'purpose',
  idType: 'text',
  purpose: DATA_KEYS,
  getContext: getDataKeyContext,
};

/**
 * Purposes of data keys. A hash can be found only under the key that created it, and short-lived values need not be
 * resealed. Their keys are random, never change, and are themselves sealed with the master key.
 */
export const DATA_KEY_PURPOSES = [
  'claims',
  'idempotency keys',
  'cursors',
  'texts about nobody',
  'token checksums',
  'admin token checksums',
  'web push',
  'apple passes',
  'counts',
  'uploaded files',
  'preview links',
  'remembered contacts',
  'consent links',
] as const;

export type DataKeyPurpose = (typeof DATA_KEY_PURPOSES)[number];

/** The sealing key as stored in the database. `previous` is the one being rotated out. */
export type SealingKeyRow = { fingerprint: Buffer; previous: Buffer | null };

type Loaded = { ring: Keyring; dataKeys: ReadonlyMap<string, Buffer> };

/**
 * Holds the master keys of this process, the one that seals, and the data keys of the database. The database records
 * which key sealed it; otherwise a service with the wrong key would start and fail at the first value.
 */
@Injectable()
export class MasterKeys implements OnModuleInit {
  private loaded: Loaded | undefined;

  /** @param link by which a process that seals follows a rotation */
  constructor(
    private readonly pool: Pool,
    private readonly config: PlatformConfig,
    private readonly link?: ProcessLink,
  ) {}

  /** Creates an instance without a database, for tests. */
  static withKeys(ring: Keyring, dataKeys: ReadonlyMap<string, Buffer>): MasterKeys {
    const holding: MasterKeys = Object.create(MasterKeys.prototype);
    holding.loaded = { ring, dataKeys };
    return holding;
  }

  /** @throws ConfigError */
  async onModuleInit(): Promise<void> {
    await assertNoUnfinishedRestore(this.pool);
    await this.load();
  }

  /** Loads the keys, also while a restore is not finished. @throws ConfigError */
  async load(): Promise<void> {
    const { pool, config } = this;
    const keys = [config.masterKey, config.masterKeyPrevious].flatMap((key) =>
      key === null ? [] : [createMasterKey(key)],
    );
    const state = (await findSealingKeyRow(pool)) ?? (await recordKey(pool, config));
    const sealing = findKey(state, keys);
    if (!sealing) throw createWrongKeyError(state, config);
    const { previous } = state;
    if (previous && !findKey({ fingerprint: previous }, keys)) {
      throw new ConfigError(
        `The master key of this database is being changed: set MASTER_KEY_PREVIOUS to the former key (${getKeyId(previous)}) until inkpad key:rotate has said that it is done.`,
      );
    }
    const ring = new Keyring(keys, sealing);
    this.loaded = { ring, dataKeys: await loadDataKeys(pool, ring) };
    if (keys.length > 1) this.followRotation(ring, keys);
  }

  seal(purpose: string, plain: Buffer, context: string): Buffer {
    return this.keys.ring.seal(purpose, plain, context);
  }

  /** @throws when neither key opens it */
  open(purpose: string, sealed: Buffer, context: string): Buffer {
    return this.keys.ring.open(purpose, sealed, context);
  }

  getDataKey(purpose: DataKeyPurpose): Buffer {
    const key = this.keys.dataKeys.get(purpose);
    if (!key) throw new Error(`there is no data key for ${purpose}`);
    return key;
  }

  private get keys(): Loaded {
    if (!this.loaded) throw new Error('the master keys are loaded when the process starts');
    return this.loaded;
  }

  /** Takes the key that seals from each poll: with two keys, a rotation may begin at any time. */
  private followRotation(ring: Keyring, keys: MasterKey[]): void {
    this.link?.join<{ sealing_fingerprint: Buffer }>({
      columns: '(select fingerprint from master_key) as sealing_fingerprint',
      receive: ({ sealing_fingerprint: fingerprint }) => {
        const sealing = findKey({ fingerprint }, keys);
        if (sealing) ring.sealWith(sealing);
      },
    });
  }
}

export function findSealingKeyRow(pool: Pick<Pool, 'query'>): Promise<SealingKeyRow | undefined> {
  return queryAtStartup<SealingKeyRow>(pool, 'select fingerprint, previous from master_key');
}

/** Records the key of a new database. When two processes start at once with different keys, one is refused. */
async function recordKey(pool: Pool, { masterKey }: PlatformConfig): Promise<SealingKeyRow> {
  await pool.query('insert into master_key (fingerprint) values ($1) on conflict do nothing', [
    createMasterKey(masterKey).fingerprint,
  ]);
  const state = await findSealingKeyRow(pool);
  if (!state) throw new Error('the master key was just recorded');
  return state;
}

function findKey(
  { fingerprint }: Pick<SealingKeyRow, 'fingerprint'>,
  keys: MasterKey[],
): MasterKey | undefined {
  return keys.find((key) => key.fingerprint.equals(fingerprint));
}

const ADVICE =
  'set MASTER_KEY to the key that was used until now (npm start keeps its own in master.key in the data folder), or use the database that belongs to this key.';

function createWrongKeyError(state: SealingKeyRow, config: PlatformConfig): ConfigError {
  const ids = `${getKeyId(createMasterKey(config.masterKey).fingerprint)}, not ${getKeyId(state.fingerprint)}`;
  return new ConfigError(
    `${describeKeySource(config)} is not the key of this database (${ids}): ${ADVICE}`,
  );
}

function describeKeySource({ masterKeyFile }: PlatformConfig): string {
  if (masterKeyFile === null) return 'MASTER_KEY';
  return masterKeyFile.isNew
    ? `The master key that was just made, since MASTER_KEY is not set and ${masterKeyFile.path} did not exist,`
    : `The master key in ${masterKeyFile.path}`;
}

async function loadDataKeys(pool: Pool, ring: Keyring): Promise<Map<string, Buffer>> {
  const existing = await pool.query<{ purpose: string }>('select purpose from data_keys');
  const purposes = new Set(existing.rows.map(({ purpose }) => purpose));
  for (const purpose of DATA_KEY_PURPOSES) {
    if (purposes.has(purpose)) continue;
    await pool.query(
      'insert into data_keys (purpose, sealed) values ($1, $2) on conflict do nothing',
      [purpose, ring.seal(DATA_KEYS, randomBytes(32), getDataKeyContext(purpose))],
    );
  }
  const { rows } = await pool.query<{ purpose: string; sealed: Buffer }>(
    'select purpose, sealed from data_keys',
  );
  return new Map(
    rows.map(({ purpose, sealed }) => [
      purpose,
      ring.open(DATA_KEYS, sealed, getDataKeyContext(purpose)),
    ]),
  );
}
