import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#platform/database/connection.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import { ClaimHolders } from '#loyalty/stamping/claim-holders.service.js';
import { normalizePhone } from '#loyalty/customers/contact.js';
import {
  customer,
  listUniqueValues,
  type Customer,
  type StoreRegion,
} from '#loyalty/customers/customer.js';
import { customerReadModel } from '#loyalty/customers/customer.entity.js';
import type { ImportEntry } from './import-row.dto.js';

/**
 * Who a row is about.
 * @property keys what no other row of the file may have, because it identifies one customer
 * @property customers more than one: its values belong to different customers
 * @property codeHolderId the customer who has the card with the code of the row
 */
export type Match = { keys: string[]; customers: Customer[]; codeHolderId: number | null };

type ClaimRow = { place: number; stream_id: string };

/** Finds the customers of rows by what is unique: external id, e-mail address and phone number. */
@Injectable()
export class CustomerMatches {
  constructor(
    private readonly pool: Pool,
    private readonly keys: PersonalKeys,
    private readonly readModels: ReadModels,
    private readonly holders: ClaimHolders,
  ) {}

  /** Finds the customers of many rows at once; in their order. */
  async find(accountId: number, region: StoreRegion, entries: ImportEntry[]): Promise<Match[]> {
    const valuesOfRows = entries.map(({ changes }) => listValues(changes, region));
    const claims = valuesOfRows.flatMap((values, place) =>
      values.map(({ kind, value }) => ({
        place,
        claim: this.keys.createClaim(accountId, kind, value, ''),
      })),
    );
    const rows = await query<ClaimRow>(this.pool, {
      name: 'customer_matches_claims',
      text: `select x.place, c.stream_id from unnest($2::int[], $3::text[], $4::bytea[]) as x (place, kind, value)
             join es.claims c on c.account_id = $1 and c.kind = x.kind and c.value = x.value`,
      values: [
        accountId,
        claims.map(({ place }) => place),
        claims.map(({ claim }) => claim.kind),
        claims.map(({ claim }) => claim.value),
      ],
    });
    const idsOfRows = entries.map(() => new Set<number>());
    for (const { place, stream_id } of rows) idsOfRows[place]?.add(toCustomerId(stream_id));
    const codeHolders = await this.findCodeHolders(accountId, entries);
    return Promise.all(
      entries.map(async ({ code }, place) => ({
        keys: [
          ...(valuesOfRows[place] ?? []).map(({ kind, value }) => `${kind} ${value}`),
          ...(code === null ? [] : [`code ${code}`]),
        ],
        customers: await this.load([...(idsOfRows[place] ?? [])]),
        codeHolderId: (code !== null && codeHolders.get(code)) || null,
      })),
    );
  }

  /** Loads customers; those who were merged into others are one person with them. */
  private async load(ids: number[]): Promise<Customer[]> {
    const customers = new Map<number, Customer>();
    for (const id of ids) {
      const survivor = await this.holders.findSurvivor(
        customerReadModel,
        id,
        ({ mergedInto }) => mergedInto?.customerId,
      );
      const loaded = await this.readModels.load(customerReadModel, survivor);
      if (loaded?.state.erasedAt === null) customers.set(survivor, loaded.state);
    }
    return [...customers.values()];
  }

  private async findCodeHolders(
    accountId: number,
    entries: ImportEntry[],
  ): Promise<Map<string, number>> {
    const codes = entries.flatMap(({ code }) => (code === null ? [] : [code]));
    if (codes.length === 0) return new Map();
    const rows = await query<{ code: string; customer_id: number }>(this.pool, {
      name: 'customer_matches_codes',
      text: 'select code, customer_id from customer_cards where account_id = $1 and code = any ($2)',
      values: [accountId, codes],
    });
    return new Map(rows.map(({ code, customer_id }) => [code, customer_id]));
  }
}

function listValues(
  { email, phone, externalReferences }: ImportEntry['changes'],
  region: StoreRegion,
) {
  return listUniqueValues({
    firstName: '',
    lastName: null,
    email: email ?? null,
    phone: phone ? (normalizePhone(phone, region.country) ?? null) : null,
    birthday: null,
    metadata: {},
    externalReferences: (externalReferences ?? []).map((reference) => ({
      ...reference,
      createdAt: '',
      updatedAt: '',
    })),
  });
}

function toCustomerId(stream: string): number {
  return Number(stream.slice(customer.name.length + 1));
}
