import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { validate as isUuid } from 'uuid';
import { query, inTransaction, type Queryable } from '#platform/database/connection.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';
import { PASS_HOLDERS } from '#outbound/passes/pass-holders.js';
import type { UpdateRequest } from '#outbound/passes/pass-sender.js';
import { PassUpdates } from '#outbound/passes/pass-updates.service.js';
import { Passes } from '#outbound/passes/passes.service.js';

/** More devices than a customer has. Beyond that, the oldest registrations are deleted. */
const MAX_DEVICES_PER_CARD = 20;

/** @property hasFailed whether its last push did */
export type AppleDevice = {
  id: number;
  pushToken: string;
  passTypeId: string;
  hasFailed: boolean;
};

/** Identifies a device in its requests. The library identifier is also its secret. */
export type DeviceKey = { libraryId: string; passTypeId: string };

const UPSERT_DEVICE = {
  name: 'apple_device_named',
  text: `
    insert into apple_devices (library_hash, pass_type_id, push_token) values ($1, $2, $3)
    on conflict (library_hash, pass_type_id) do update
    set push_token = excluded.push_token, token_since = now()
    returning id`,
};

const REGISTER = {
  name: 'apple_register',
  text: `
    insert into apple_registrations (device_id, customer_card_id, account_id) values ($1, $2, $3)
    on conflict do nothing
    returning device_id,
      -- The pass may have changed between the download and now, when no device was registered.
      exists (select from passes p where p.customer_card_id = $2 and p.tag > 0
                and p.changed_at > now() - interval '1 hour') as late`,
};

const FIND_CHANGED = {
  name: 'apple_changed',
  text: `
    select r.uuid, p.tag
    from apple_devices d
    join apple_registrations g on g.device_id = d.id
    join passes p on p.customer_card_id = g.customer_card_id
    join ${PASS_HOLDERS} r on r.id = g.customer_card_id
    where d.library_hash = $1 and d.pass_type_id = $2
      and (p.tag > $3
           -- Changed between the download and the registration: the device's tag may already be greater.
           or g.registered_at > now() - interval '10 minutes' and p.tag > 0
              and p.changed_at between g.registered_at - interval '1 hour' and g.registered_at)
    order by p.tag`,
};

const FIND_REGISTERED = {
  name: 'apple_registered',
  text: `
    select encode(library_hash, 'hex') as name from apple_devices where library_hash = any ($1)
    union all
    select r.uuid::text from ${PASS_HOLDERS} r
    where r.uuid = any ($2) and exists (
      select from apple_registrations g where g.customer_card_id = r.id)`,
};

const DELETE_EXCESS_REGISTRATIONS = {
  name: 'apple_forget_overflowing',
  text: `
    delete from apple_registrations where customer_card_id = $1 and device_id in (
      select device_id from apple_registrations where customer_card_id = $1
      order by registered_at desc, device_id desc offset ${MAX_DEVICES_PER_CARD}
    )`,
};

/** Stores the devices that have registered for passes. */
@Injectable()
export class AppleDevices {
  constructor(
    private readonly pool: Pool,
    private readonly passes: Passes,
    private readonly updates: PassUpdates,
  ) {}

  /** Registers a device for a pass and stores its newest push token. @returns whether the registration is new */
  async register(
    { libraryId, passTypeId }: DeviceKey,
    pushToken: string,
    { id, accountId }: CustomerCard,
  ): Promise<boolean> {
    return inTransaction(this.pool, async (client) => {
      // Locks the device first, as `unregister` does.
      const { rows: devices } = await client.query<{ id: number }>({
        ...UPSERT_DEVICE,
        values: [hashLibraryId(libraryId), passTypeId, pushToken],
      });
      // Waits for transactions that record a change now; later ones see the registration.
      await this.passes.markInstalledWithin(client, id, accountId, 'apple');
      const { rows } = await client.query<{ device_id: number; late: boolean }>({
        ...REGISTER,
        values: [devices[0]?.id, id, accountId],
      });
      const [registration] = rows;
      if (!registration) return false;
      await client.query({ ...DELETE_EXCESS_REGISTRATIONS, values: [id] });
      if (registration.late)
        await this.updates.request(client, [toPassUpdate(registration.device_id, accountId)], 0);
      return true;
    });
  }

  /**
   * Finds the passes of a device that have changed after `since`, and the tag for its next request.
   * @param since null: all passes
   */
  async findChangedPasses(
    { libraryId, passTypeId }: DeviceKey,
    since: number | null,
  ): Promise<{ serials: string[]; tag: number }> {
    const rows = await query<{ uuid: string; tag: number }>(this.pool, {
      ...FIND_CHANGED,
      values: [hashLibraryId(libraryId), passTypeId, since ?? -1],
    });
    const tag = Math.max(since ?? 0, ...rows.map((row) => row.tag));
    return { serials: rows.map(({ uuid }) => uuid), tag };
  }

  /**
   * Finds which of these are identifiers of registered devices, or serial numbers of passes with a registration.
   */
  async findRegistered(identifiers: string[]): Promise<Set<string>> {
    if (identifiers.length === 0) return new Set();
    const rows = await query<{ name: string }>(this.pool, {
      ...FIND_REGISTERED,
      values: [identifiers.map(hashLibraryId), identifiers.filter((name) => isUuid(name))],
    });
    const registered = new Set(rows.map(({ name }) => name));
    return new Set(
      identifiers.filter(
        (name) =>
          registered.has(name.toLowerCase()) || registered.has(hashLibraryId(name).toString('hex')),
      ),
    );
  }

  async unregister({ libraryId, passTypeId }: DeviceKey, customerCardId: number): Promise<void> {
    await inTransaction(this.pool, async (client) => {
      // Blocks a concurrent registration of the same device until it is clear whether the device stays.
      const { rows } = await client.query<{ id: number }>({
        name: 'apple_device_hold',
        text: 'select id from apple_devices where library_hash = $1 and pass_type_id = $2 for update',
        values: [hashLibraryId(libraryId), passTypeId],
      });
      const [device] = rows;
      if (!device) return;
      await this.passes.markRemovedAfter(client, [customerCardId], 'apple', async () => {
        await client.query({
          name: 'apple_unregister',
          text: 'delete from apple_registrations where device_id = $1 and customer_card_id = $2',
          values: [device.id, customerCardId],
        });
        await client.query({
          name: 'apple_device_without_passes',
          text: `delete from apple_devices d where id = $1
                   and not exists (select from apple_registrations g where g.device_id = d.id)`,
          values: [device.id],
        });
        return findCardsWithoutDevice(client, [customerCardId]);
      });
    });
  }

  async find(id: number): Promise<AppleDevice | undefined> {
    const [row] = await query<Omit<AppleDevice, 'id'>>(this.pool, {
      name: 'apple_device',
      text: `select push_token as "pushToken", pass_type_id as "passTypeId", exists (
               select from apple_registrations g join pass_installations i using (customer_card_id)
               where g.device_id = d.id and i.platform = 'apple' and i.last_error is not null) as "hasFailed"
             from apple_devices d where id = $1`,
      values: [id],
    });
    return row && { id, ...row };
  }

  /**
   * Deletes a device that Apple reports as gone, unless it has registered again since: with another token, or after
   * that time.
   * @returns whether it was deleted
   */
  async forget({ id, pushToken }: AppleDevice, goneAt: Date | null): Promise<boolean> {
    return inTransaction(this.pool, async (client) => {
      const { rowCount } = await client.query({
        name: 'apple_device_lock',
        text: `select from apple_devices where id = $1 and push_token = $2
                 and ($3::timestamptz is null or token_since <= $3) for update`,
        values: [id, pushToken, goneAt],
      });
      if (rowCount === 0) return false;
      const { rows } = await client.query<{ customer_card_id: number }>({
        name: 'apple_registrations_of_device',
        text: 'select customer_card_id from apple_registrations where device_id = $1',
        values: [id],
      });
      const customerCardIds = rows.map((row) => row.customer_card_id);
      await this.passes.markRemovedAfter(client, customerCardIds, 'apple', async () => {
        await client.query({
          name: 'apple_forget',
          text: 'delete from apple_devices where id = $1',
          values: [id],
        });
        return findCardsWithoutDevice(client, customerCardIds);
      });
      return true;
    });
  }

  /** Records with each of the device's passes why the last push failed. @param error null once one is accepted */
  async recordError(id: number, error: string | null): Promise<void> {
    await query(this.pool, {
      name: 'apple_record_error',
      text: `update pass_installations i set last_error = $2
             from apple_registrations g
             where g.device_id = $1 and i.customer_card_id = g.customer_card_id and i.platform = 'apple'
               and i.last_error is distinct from $2`,
      values: [id, error],
    });
  }

  /** Finds the devices to push to, each once however many of its passes have changed. */
  async findTargets(customerCardIds: number[], by: Queryable): Promise<UpdateRequest[]> {
    const rows = await query<{ device_id: number; account_id: number }>(by, {
      name: 'apple_targets',
      text: `select device_id, min(account_id) as account_id from apple_registrations
             where customer_card_id = any ($1) group by device_id`,
      values: [customerCardIds],
    });
    return rows.map((row) => toPassUpdate(row.device_id, row.account_id));
  }
}

async function findCardsWithoutDevice(
  client: pg.ClientBase,
  customerCardIds: number[],
): Promise<number[]> {
  const { rows } = await client.query<{ id: number }>({
    name: 'apple_cards_without_device',
    text: `select id from unnest($1::bigint[]) as c (id)
           where not exists (select from apple_registrations g where g.customer_card_id = c.id)`,
    values: [customerCardIds],
  });
  return rows.map(({ id }) => id);
}

function toPassUpdate(deviceId: number, accountId: number): UpdateRequest {
  return { channel: 'apple', target: String(deviceId), accountId };
}

function hashLibraryId(libraryId: string): Buffer {
  return createHash('sha256').update(libraryId).digest();
}
