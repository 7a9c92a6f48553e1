import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { maskPhone, normalizePhone } from './contact.js';
import { customerReadModel } from './customer.entity.js';
import { getPhoneKey } from './phone-plans.js';

const PAGE_SIZE = 500;

/** @property heldBy the customer who has the number already */
export type PhoneConflict = {
  accountId: number;
  customerId: number;
  heldBy: number;
  maskedPhone: string;
};

type NumberRow = { id: number; account_id: number; country: string | null; phone: string };
type HolderRow = { place: number; stream_id: string };

const NUMBERS = {
  name: 'phone_conflicts_numbers',
  text: `select c.id, c.account_id, a.country, c.state ->> 'phone' as phone
         from customers c join accounts a on a.id = c.account_id
         where ($1::bigint is null or c.account_id = $1) and (c.account_id, c.id) > ($2, $3)
           and c.state ->> 'phone' is not null and c.merged_into is null
         order by c.account_id, c.id limit ${PAGE_SIZE}`,
};

const HOLDERS = {
  name: 'phone_conflicts_holders',
  text: `select x.place, c.stream_id
         from unnest($1::bigint[], $2::bytea[]) with ordinality as x (account_id, value, place)
         join es.claims c on c.account_id = x.account_id and c.kind = 'phone' and c.value = x.value
         order by x.place`,
};

/**
 * Finds customers whose number another customer of the store has. They were added while the store had another country,
 * or none, or their country had other numbers. Whether they are one person is for people to say.
 */
@Injectable()
export class PhoneConflicts {
  constructor(
    private readonly pool: Pool,
    private readonly keys: PersonalKeys,
  ) {}

  /** @param accountId null: of all stores */
  async *find(accountId: number | null): AsyncGenerator<PhoneConflict> {
    let after = { account_id: 0, id: 0 };
    for (;;) {
      const { rows } = await this.pool.query<NumberRow>({
        ...NUMBERS,
        values: [accountId, after.account_id, after.id],
      });
      yield* await this.findAmong(rows);
      const last = rows.at(-1);
      if (!last || rows.length < PAGE_SIZE) return;
      after = last;
    }
  }

  private async findAmong(rows: NumberRow[]): Promise<PhoneConflict[]> {
    const candidates = rows.flatMap(({ id, account_id: accountId, country, phone }) => {
      const normalized = normalizePhone(phone, country);
      if (normalized === undefined || getPhoneKey(normalized) === phone) return [];
      return [{ accountId, customerId: id, phone: normalized }];
    });
    const claims = candidates.map(({ accountId, phone }) =>
      this.keys.createClaim(accountId, 'phone', getPhoneKey(phone), ''),
    );
    const holders = await this.pool.query<HolderRow>({
      ...HOLDERS,
      values: [candidates.map(({ accountId }) => accountId), claims.map(({ value }) => value)],
    });
    return holders.rows.flatMap(({ place, stream_id: stream }) => {
      const candidate = candidates[place - 1];
      if (!candidate) return [];
      const { phone, ...ids } = candidate;
      const heldBy = Number(stream.slice(customerReadModel.name.length + 1));
      return heldBy === ids.customerId ? [] : [{ ...ids, heldBy, maskedPhone: maskPhone(phone) }];
    });
  }
}
