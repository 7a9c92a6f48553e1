import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { getNow } from '#platform/kernel/clock.js';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { query } from '#platform/database/connection.js';
import { HistoryService } from '#loyalty/history/history.service.js';
import { NO_FILTER } from '#loyalty/history/history-query.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import type { Localization } from '#translations/translations.js';
import type { Action, OutcomeInput } from './counter-outcome.js';
import { formatWhen } from './counter-time.js';
import type { CounterVisit } from './counter-visit.js';

/** Within this time a second stamping of a card is questions for first: most are the same scan. */
const RECENT_SECONDS = 120;
const MAX_RECENT = 5;
/** The sources of what somebody has stamped; not welcome stamps and corrections. */
const STAMPED: ReadonlySet<string | null> = new Set(['api', 'pos', 'app_scan']);

const NAMES = {
  name: 'counter_names',
  text: `select r.id, c.name as card_name, n.first_name, n.last_name
         from customer_cards r join cards c on c.id = r.card_id
         left join customer_names n on n.id = r.customer_id
         where r.id = any ($1) and r.account_id = $2`,
};

type NameRow = { first_name: string | null; last_name: string | null };

/** A stamping or redemption that somebody made. @property eventId null: it may no longer be undone here */
export type RecentLine = {
  cardId: number;
  name: string;
  cardName: string;
  what: string;
  at: string;
  when: string;
  isUndone: boolean;
  eventId: string | null;
};

/** How many stampings and redemptions the list of one's own has. */
const MAX_LINES = 20;
/** As long as staff may undo what they did themselves. */
const UNDO_MS = 10 * 60_000;

/** Finds what was stamped and redeemed a moment ago, and by whom. */
@Injectable()
export class RecentActions {
  constructor(
    private readonly pool: Pool,
    private readonly history: HistoryService,
    private readonly storeTimes: StoreTimes,
  ) {}

  /** Finds the last stamping of a card, if it was a moment ago and is not the one with this receipt number. */
  async findStamping(
    { context: { accountId }, user }: CounterVisit,
    cardId: number,
    receipt: string,
  ): Promise<OutcomeInput['recent']> {
    const now = getNow();
    const from = new Date(now.getTime() - RECENT_SECONDS * 1000);
    const filter = { ...NO_FILTER, customerCardId: cardId, name: 'stamp.earned', from };
    const readPage = await this.history.list(accountId, filter, null);
    const entries = await readPage({ after: null, limit: MAX_RECENT });
    const stampings = entries.filter(
      ({ entry, reversedBy }) => reversedBy === null && STAMPED.has(entry.source),
    );
    const [last] = stampings;
    const isRepeated = stampings.some(
      ({ event }) => (event.data as { externalRef?: unknown }).externalRef === receipt,
    );
    if (!last || isRepeated) return null;
    const { actor } = last.event.meta;
    return {
      secondsAgo: Math.round((now.getTime() - Date.parse(last.entry.recordedAt)) / 1000),
      by: last.actorName,
      isOwn: actor.type === 'user' && actor.id === user.id,
    };
  }

  /** Lists what the user has stamped and redeemed last, newest first. */
  async list({ context, user, localization }: CounterVisit): Promise<RecentLine[]> {
    const { accountId } = context;
    const lists = await Promise.all(
      ['stamp.earned', 'reward.redeemed'].map(async (name) => {
        const filter = { ...NO_FILTER, actor: `user:${user.id}`, name };
        const readPage = await this.history.list(accountId, filter, null);
        return readPage({ after: null, limit: MAX_LINES });
      }),
    );
    const entries = lists
      .flat()
      .filter(({ entry }) => entry.name !== 'stamp.earned' || STAMPED.has(entry.source))
      .sort((a, b) => b.entry.seq - a.entry.seq)
      .slice(0, MAX_LINES)
      // By the time that is shown: a till that was offline reports late.
      .sort((a, b) => Date.parse(b.entry.occurredAt) - Date.parse(a.entry.occurredAt));
    const ids = entries.flatMap(({ entry }) => entry.customerCardId ?? []);
    const names = await this.findNames(accountId, ids, localization);
    const { t, locale } = localization;
    const { timeline } = t.customerPages;
    const timeZone = await this.storeTimes.getTimeZone(accountId);
    const now = getNow();
    return entries.map(({ entry, event, isLost, reversedBy }) => {
      const reward = readRewardName(event);
      const cardId = entry.customerCardId ?? 0;
      const isOpen = user.isManager || now.getTime() - Date.parse(entry.recordedAt) < UNDO_MS;
      return {
        cardId,
        name: names.get(cardId)?.name ?? t.counter.outcome.customer,
        cardName: names.get(cardId)?.cardName ?? '',
        what:
          entry.name === 'reward.redeemed'
            ? reward === null
              ? timeline.kinds['reward.redeemed']
              : timeline.names.redeemed({ reward, count: Math.abs(entry.stamps ?? 0) })
            : t.stamps.count({ count: entry.stamps ?? 0 }),
        at: entry.occurredAt,
        when: formatWhen(new Date(entry.occurredAt), now, { locale, timeZone }),
        isUndone: reversedBy !== null,
        eventId: isOpen && !isLost ? toPublicEventId(entry.eventId) : null,
      };
    });
  }

  /** Finds a stamping or redemption among the last events of a card. */
  async findAction(
    accountId: number,
    cardId: number,
    eventId: string,
  ): Promise<Action | undefined> {
    const filter = { ...NO_FILTER, customerCardId: cardId };
    const readPage = await this.history.list(accountId, filter, null);
    const entries = await readPage({ after: null, limit: MAX_LINES });
    const match = entries.find(({ entry }) => toPublicEventId(entry.eventId) === eventId);
    if (!match) return undefined;
    const { entry, event, reversedBy } = match;
    return {
      stamps: entry.stamps ?? 0,
      reward: readRewardName(event),
      isReversed: reversedBy !== null,
    };
  }

  /** Finds the names of customer cards and of their holders, by card. */
  async findNames(
    accountId: number,
    ids: number[],
    localization: Localization,
  ): Promise<Map<number, { name: string; cardName: string }>> {
    const rows = await query<NameRow & { id: number; card_name: string }>(this.pool, {
      ...NAMES,
      values: [ids, accountId],
    });
    return new Map(
      rows.map((row) => [row.id, { name: toName(row, localization), cardName: row.card_name }]),
    );
  }
}

/** Reads the name of the reward from the event of a redemption. @returns null of other events */
function readRewardName({ data }: { data: object }): string | null {
  const { rewardName } = data as { rewardName?: unknown };
  return typeof rewardName === 'string' ? rewardName : null;
}

/** Returns the name of a customer; nobody knows that of one who was erased. */
function toName({ first_name, last_name }: NameRow, { t }: Localization): string {
  return [first_name, last_name].filter(Boolean).join(' ') || t.counter.outcome.customer;
}
