import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#platform/database/connection.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import type { Claim } from '#platform/event-store/port/event-store.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import { ClaimHolders } from '#loyalty/stamping/claim-holders.service.js';
import { normalizePhone } from '#loyalty/customers/contact.js';
import {
  customer,
  listUniqueValues,
  type Customer,
  type CustomerChanges,
  type StoreRegion,
  type UniqueCustomerValue,
} from '#loyalty/customers/customer.js';
import { customerReadModel } from '#loyalty/customers/customer.entity.js';
import type { ImportEntry } from './import-row.dto.js';
import type { RowValues } from './row-values.js';

/**
 * Who a row is about.
 * @property keys what no other row of the file may have, because it identifies one customer
 * @property customers more than one: its values belong to different customers
 * @property heldByMerged the fields of the row whose values somebody holds who was merged into the customer
 * @property codeHolderId the customer who has the card with the code of the row
 */
export type Match = {
  keys: string[];
  customers: Customer[];
  heldByMerged: (keyof CustomerChanges)[];
  codeHolderId: number | null;
};

/**
 * Whom a row may be about, so that the erasure of any of them finds it.
 * @property claims what it says about people, as it is stored
 * @property customerIds who has any of that now
 */
export type RowPeople = { claims: Buffer[]; customerIds: number[] };

export const EMPTY_MATCH: Match = {
  keys: [],
  customers: [],
  heldByMerged: [],
  codeHolderId: null,
};

type ClaimRow = { place: number; kind: keyof typeof FIELDS_BY_KIND; stream_id: string };

const FIELDS_BY_KIND = {
  email: 'email',
  phone: 'phone',
  external_references: 'externalReferences',
} as const;

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
    const holders = await this.findHolders(
      accountId,
      valuesOfRows.map((values) => this.createClaims(accountId, values)),
    );
    const claimsOfRows = holders.map((rows) =>
      rows.map(({ kind, id }) => ({ id, field: FIELDS_BY_KIND[kind] })),
    );
    const codeHolders = await this.findCodeHolders(
      accountId,
      entries.map(({ code }) => code),
    );
    return Promise.all(
      entries.map(async ({ code }, place) => {
        const claimed = claimsOfRows[place] ?? [];
        const customers = await this.load([...new Set(claimed.map(({ id }) => id))]);
        return {
          keys: [
            ...(valuesOfRows[place] ?? []).map(({ kind, value }) => `${kind} ${value}`),
            ...(code === null ? [] : [`code ${code}`]),
          ],
          customers,
          heldByMerged: claimed
            .filter(({ id }) => !customers.some((holder) => holder.id === id))
            .map(({ field }) => field),
          codeHolderId: (code !== null && codeHolders.get(code)) || null,
        };
      }),
    );
  }

  /** Finds whom rows may be about, even those that cannot be read; in their order. */
  async findPeople(accountId: number, rows: RowValues[]): Promise<RowPeople[]> {
    const claimsOfRows = rows.map(({ values }) => this.createClaims(accountId, values));
    const holders = await this.findHolders(accountId, claimsOfRows);
    return rows.map(({ code }, place) => {
      const claims = claimsOfRows[place] ?? [];
      if (code !== null) claims.push(this.keys.createClaim(accountId, 'card_code', code, ''));
      return {
        claims: claims.map(({ value }) => value),
        customerIds: [...new Set((holders[place] ?? []).map(({ id }) => id))],
      };
    });
  }

  private createClaims(accountId: number, values: UniqueCustomerValue[]): Claim[] {
    return values.map(({ kind, value }) => this.keys.createClaim(accountId, kind, value, ''));
  }

  private async findHolders(
    accountId: number,
    claimsOfRows: Claim[][],
  ): Promise<{ id: number; kind: ClaimRow['kind'] }[][]> {
    const claims = claimsOfRows.flatMap((each, place) => each.map((claim) => ({ place, claim })));
    const rows = await query<ClaimRow>(this.pool, {
      name: 'customer_matches_claims',
      text: `select x.place, x.kind, c.stream_id from unnest($2::int[], $3::text[], $4::bytea[]) as x (place, kind, value)
             join es.claims c on c.account_id = $1 and c.kind = x.kind and c.value = x.value`,
      values: [
        accountId,
        claims.map(({ place }) => place),
        claims.map(({ claim }) => claim.kind),
        claims.map(({ claim }) => claim.value),
      ],
    });
    const holders = claimsOfRows.map((): { id: number; kind: ClaimRow['kind'] }[] => []);
    for (const { place, kind, stream_id } of rows) {
      holders[place]?.push({ id: toCustomerId(stream_id), kind });
    }
    return holders;
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
    codesOfRows: (string | null)[],
  ): Promise<Map<string, number>> {
    const codes = codesOfRows.filter((code) => code !== null);
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
