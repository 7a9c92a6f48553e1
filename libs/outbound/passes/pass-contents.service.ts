import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#platform/database/connection.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import type { Account } from '#loyalty/accounts/account.js';
import { toContactDetails } from '#loyalty/accounts/contact-details.js';
import type { Card } from '#loyalty/cards/card.js';
import type { Reward } from '#loyalty/rewards/reward.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';
import { customerCardReadModel } from '#loyalty/stamping/customer-card.entity.js';
import { toMilestones } from '#loyalty/stamping/templates.service.js';
import { isPrecise, type Location } from '#loyalty/locations/location.js';
import {
  hashContent,
  createPassContent,
  type PassContent,
  type PassLocation,
  type PassParts,
} from './pass-content.js';
import { PASS_HOLDERS, getDecoyContext } from './pass-holders.js';
import { Passes, type Pass } from './passes.service.js';

type PartsRow = {
  customer_card: CustomerCard;
  card: Card;
  account: Account;
  rewards: Reward[];
  store_name: string;
  locale: string;
  time_zone: string;
  first_name: string | null;
  last_name: string | null;
  customer_id: number;
  sealed: Buffer | null;
  /** The customer's own card, which a confirmed decoy card leads to. */
  own_card: CustomerCard | null;
  erased: boolean;
  last_location_id: number | null;
};

const PARTS = {
  name: 'pass_parts',
  text: `
    select r.state as customer_card, c.state as card, a.state as account, a.display_name as store_name, a.locale, a.time_zone,
      coalesce((select jsonb_agg(w.state) from rewards w where w.card_id = c.id), '[]') as rewards,
      n.first_name, n.last_name, r.customer_id, r.sealed,
      o.state as own_card,
      not exists (select from personal_keys k where k.subject_id = r.customer_id) as erased,
      (select h.location_id from history h
       where h.stream = 'customer_card-' || coalesce(o.id, r.id) and h.location_id is not null
       order by h.seq desc limit 1) as last_location_id
    from ${PASS_HOLDERS} r
    join cards c on c.id = r.card_id
    join accounts a on a.id = r.account_id
    left join decoy_owners w on r.confirmed and w.decoy_id = r.id
    left join customer_cards o on o.id = w.customer_card_id
    left join customer_names n on n.id = coalesce(o.customer_id, r.customer_id)
    where r.id = any ($1)`,
};

const LOCATIONS = {
  name: 'pass_locations',
  text: 'select account_id, state from locations where account_id = any ($1) and deleted_at is null order by id',
};

/** Loads the current content of passes. */
@Injectable()
export class PassContents {
  constructor(
    private readonly pool: Pool,
    private readonly readModels: ReadModels,
    private readonly passes: Passes,
    private readonly keys: PersonalKeys,
  ) {}

  /** Loads contents by customer card. Leaves out cards that do not exist. */
  async load(customerCardIds: number[]): Promise<Map<number, PassContent>> {
    const parts = await query<PartsRow>(this.pool, { ...PARTS, values: [customerCardIds] });
    const readLocations = await this.locations([
      ...new Set(parts.map(({ customer_card: { accountId } }) => accountId)),
    ]);
    const members = await this.openMembers(parts);
    return new Map(
      parts.map((row, i) => {
        const { card } = row;
        const customerCard = findShownCard(row);
        const content = createPassContent({
          customerCard,
          card,
          rewards: toMilestones(row.rewards),
          store: {
            name: row.store_name,
            locale: row.locale,
            addressForm: row.account.addressForm,
            timeZone: row.time_zone,
            logo: row.account.logo,
            logoContainsName: row.account.logoContainsName,
            contact: toContactDetails(row.account),
          },
          member: members[i] ?? null,
          locations: sortByDistance(
            readLocations.get(customerCard.accountId) ?? [],
            row.last_location_id,
          ),
        });
        return [customerCard.id, content];
      }),
    );
  }

  /**
   * Opens a pass, so that its changes are sent from now on. Stores that first and reads the content then, so that a
   * change between the two is sent afterwards instead of going unnoticed. While the event store is away, the pass stays new.
   */
  async open(customerCard: CustomerCard): Promise<{ pass: Pass; content: PassContent }> {
    const pass = await this.passes.open(customerCard);
    // Later changes are sent as the log has them: only the first content must not miss one.
    const isFirst =
      pass.isNew && (await this.readModels.refresh(customerCardReadModel, customerCard.id));
    const content = (await this.load([customerCard.id])).get(customerCard.id);
    if (!content) throw new Error(`customer card ${customerCard.id} has no row`);
    if (isFirst) await this.passes.saveContentHash(customerCard.id, hashContent(content));
    return { pass, content };
  }

  /**
   * Decrypts the names of members; undefined for an erased one. A decoy card has the name that was typed for it, until it
   * is confirmed.
   */
  private async openMembers(parts: PartsRow[]): Promise<(PassParts['member'] | undefined)[]> {
    const decoys = parts.filter(({ sealed, own_card }) => sealed !== null && own_card === null);
    const names = await this.keys.openAll(
      decoys.map(({ customer_id: subjectId, sealed, customer_card: { uuid } }) => ({
        subjectId,
        sealed: sealed ?? Buffer.alloc(0),
        context: getDecoyContext(uuid),
      })),
    );
    return parts.map((row) => {
      if (row.erased) return undefined;
      if (row.sealed !== null && row.own_card === null) {
        const name = names[decoys.indexOf(row)];
        return name && (JSON.parse(name.toString()) as PassParts['member']);
      }
      const { first_name: firstName, last_name: lastName } = row;
      return firstName === null ? undefined : { firstName, lastName };
    });
  }

  private async locations(accountIds: number[]): Promise<Map<number, Location[]>> {
    const rows = await query<{ account_id: number; state: Location }>(this.pool, {
      ...LOCATIONS,
      values: [accountIds],
    });
    const byAccount = new Map<number, Location[]>();
    for (const { account_id: accountId, state } of rows) {
      const others = byAccount.get(accountId);
      if (others) others.push(state);
      else byAccount.set(accountId, [state]);
    }
    return byAccount;
  }
}

/** Finds the card whose balance a pass shows: for a confirmed decoy card the customer's own, which it stamps. */
function findShownCard({ customer_card: holder, own_card: own }: PartsRow): CustomerCard {
  const { id, uuid, code } = holder;
  return own ? { ...own, id, uuid, code } : holder;
}

/** Sorts locations: the one where the card was last stamped first, the others by their distance from it. */
function sortByDistance(locations: Location[], lastId: number | null): PassLocation[] {
  const precise = locations.flatMap(({ id, name, latitude, longitude, precision }) =>
    latitude === null || longitude === null || !isPrecise(precision)
      ? []
      : [{ id, name, latitude, longitude }],
  );
  const last = precise.find(({ id }) => id === lastId);
  const ordered = last
    ? precise.sort((a, b) => calculateDistance(last, a) - calculateDistance(last, b) || a.id - b.id)
    : precise;
  return ordered.map(({ name, latitude, longitude }) => ({ name, latitude, longitude }));
}

/** Calculates a distance that is exact enough for sorting only. */
function calculateDistance(
  from: Omit<PassLocation, 'name'>,
  to: Omit<PassLocation, 'name'>,
): number {
  const narrowing = Math.cos((from.latitude * Math.PI) / 180);
  const turn = Math.abs(from.longitude - to.longitude);
  return Math.hypot(from.latitude - to.latitude, Math.min(turn, 360 - turn) * narrowing);
}
